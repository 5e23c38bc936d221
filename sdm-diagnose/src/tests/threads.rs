//! Tests of threads that wait for the locks of one another.

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
