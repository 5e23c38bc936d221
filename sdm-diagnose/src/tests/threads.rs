//! Tests of threads that wait for the locks of one another.

use sdm_debug::probe::ArgumentRole as R;

use super::causes::{BARRIER, standing};
use super::*;

/// A lock of OpenMP names no holder: both threads' locks are shown, and that no thread can release one.
#[test]
fn threads_waiting_for_one_another_are_all_shown() {
    let lock = "main:5 move:9 omp_set_lock:9";
    let mut seen = standing(&[("1", lock, "", ""), ("0,2-3", BARRIER, "", "")]);
    call(&mut seen, "0,2-3", "MPI_Barrier", &[WORLD]);
    for sample in &mut seen.samples {
        let (_, stacks) = &mut sample.stacks[0];
        let mut second = stacks.threads[0].clone();
        second.main = false;
        stacks.threads.push(second);
    }
    let wait = |(thread, mutex): (u32, &str)| {
        let mut wait = waits_for_lock(thread, Some(9));
        if let WaitFor::Lock(lock) = &mut wait.what {
            lock.holder = None;
            lock.mutex = mutex.to_owned();
        }
        wait
    };
    let locks = [
        (1, "&cells[b].lock (cells+80)"),
        (2, "&cells[b].lock (cells+48)"),
    ];
    let waits = TaskWaits {
        threads: locks.map(wait).into(),
        ..TaskWaits::default()
    };
    seen.samples[1].waits.push((set("1"), waits));
    check(
        &seen,
        Step::HeldUp,
        "1",
        "whose threads all wait for one another",
    );
    let found = judge(&seen);
    let of_rank = found.findings.iter().find(|one| one.tasks == set("1"));
    let lines = [
        "for &cells[b].lock (cells+80)",
        "thread 2 waits in f () at a.c:1 for &cells[b].lock (cells+48)",
    ];
    assert_eq!(of_rank.unwrap().evidence, lines);
    // A thread with no known wait can release one.
    let (_, waits) = seen.samples[1].waits.last_mut().unwrap();
    waits.threads.pop();
    check(
        &seen,
        Step::HeldUp,
        "1",
        "what would end that wait is unknown",
    );
}

/// A thread of rank 0 computes, and sends what rank 1 waits for. Both main threads are in the same call.
#[test]
fn equal_waits_with_a_running_thread_are_no_deadlock() {
    for source in ["5", sdm_mpi::ANY_SOURCE] {
        let mut seen = standing(&[
            ("0", "main:4 MPI_Recv:4", "", ""),
            ("1", "main:4 MPI_Recv:4", "", ""),
        ]);
        for sample in &mut seen.samples {
            let (_, stacks) = &mut sample.stacks[0];
            let mut second = super::stacks("compute:3 burn:15").threads.remove(0);
            second.main = false;
            stacks.threads.push(second);
        }
        let of_unknown = [(R::Source, source), WORLD];
        call(&mut seen, "0-1", "MPI_Recv", &of_unknown);
        let part = "whose main thread waits while another of their threads runs";
        check(&seen, Step::HeldUp, "0", part);
    }
}

/// The thread that receives has its message from rank 0 only; the other thread of rank 1 is a timer.
#[test]
fn computing_rank_is_awaited_by_ranks_with_a_running_thread() {
    let looks = ["12", "13"].map(|line| format!("main:7 burn:{line}"));
    let looks = looks.each_ref().map(|place| {
        [
            ("0", place.as_str(), "i=1", ""),
            ("1", "main:9 MPI_Recv:9", "", ""),
        ]
    });
    let mut seen = observed(&looks.each_ref().map(|look| &look[..]));
    for sample in &mut seen.samples {
        let (_, stacks) = &mut sample.stacks[1];
        let mut timer = super::stacks("timer:4 sleep:4").threads.remove(0);
        timer.main = false;
        stacks.threads.push(timer);
    }
    receive(&mut seen, "1", "0");
    check(&seen, Step::HeldUp, "0", "which compute");
}
