//! Tests of threads that wait for each other's locks.

use sdm_debug::probe::ArgumentRole as R;

use super::causes::{BARRIER, standing};
use super::*;

/// An OpenMP lock does not name its holder. The locks of both threads are shown, and the verdict says that no thread
/// can release one.
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
    check(&seen, Step::HeldUp, "1", "threads all wait for one another");
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

/// A thread of rank 0 computes, and will send the message that rank 1 waits for. Both main threads are in the same
/// call.
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
        let part = "main thread waits while another of";
        check(&seen, Step::HeldUp, "0", part);
    }
}

/// The main thread of rank 1 waits for a message from rank 0 only. The other thread of rank 1 is a timer.
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
    check(&seen, Step::HeldUp, "0", "while it computes");
}

/// Rank 1 has two threads, which wait for each other.
#[test]
fn threads_of_which_none_can_go_on_are_proved_stuck() {
    let join = "main:5 pthread_join:5";
    let look: Look<'_> = &[("0", WAITING, "", ""), ("1", join, "", "")];
    let mut seen = observed(&[look, look]);
    for sample in &mut seen.samples {
        let mut other = stacks("work:5 sem_wait:9").threads.remove(0);
        other.main = false;
        sample.stacks[1].1.threads.push(other);
    }
    reduce_all(&mut seen, "0");
    let place = StackFrame::own("main", "a.c", 5);
    let join = sdm_debug::probe::JoinWait { thread: 2, place };
    let threads = [WaitFor::Join(join), WaitFor::Nobody];
    let threads = (1..).zip(threads);
    let waits = TaskWaits {
        threads: threads
            .map(|(thread, what)| ThreadWait { thread, what })
            .collect(),
        ..TaskWaits::default()
    };
    seen.samples[1].waits.push((set("1"), waits));
    // A thread that spends processor time was perhaps awoken just now.
    check(
        &seen,
        Step::HeldUp,
        "1",
        "while it waits for something else",
    );
    seen.samples[1].cpu_ms = vec![(set("1"), 0)];
    check(&seen, Step::CannotGoOn, "1", "all threads of th");
    assert_eq!(judge(&seen).cause, Cause::Thread);
}

/// Rank 1 waits for a child, which reads what only rank 1 could write.
#[test]
fn rank_whose_child_waits_for_it_is_proved_stuck() {
    let mut seen = standing(&[("0", WAITING, "", ""), ("1", "main:5 waitpid:5", "", "")]);
    reduce_all(&mut seen, "0");
    let child = |what: &str| {
        let holder = Holder {
            pid: 77,
            name: "sort".to_owned(),
            letter: 'S',
        };
        let resource = ResourceWait {
            call: "wait4".to_owned(),
            what: what.to_owned(),
            holders: vec![holder],
        };
        TaskWaits {
            threads: vec![ThreadWait {
                thread: 1,
                what: WaitFor::Resource(resource),
            }],
            ..TaskWaits::default()
        }
    };
    seen.samples[1]
        .waits
        .push((set("1"), child("a child to end")));
    check(
        &seen,
        Step::HeldUp,
        "1",
        "while it waits for something else",
    );
    let waits = child(&format!("a child to end{}", sdm_debug::probe::WAITS_BACK));
    seen.samples[1].waits.last_mut().unwrap().1 = waits;
    let part = "it waits for processes that cannot go on before it does";
    check(&seen, Step::CannotGoOn, "1", part);
    assert_eq!(judge(&seen).cause, Cause::Resource);
}

/// Rank 1 sleeps for a moment after each test of a request. The other rank waits for it, or computes.
#[test]
fn rank_that_sleeps_between_polls_counts_as_polling() {
    let nap = "main:5 usleep:5";
    let mut seen = standing(&[("0", WAITING, "", ""), ("1", nap, "", "")]);
    reduce_all(&mut seen, "0");
    check(
        &seen,
        Step::HeldUp,
        "1",
        "while it sleeps, once or repeatedly",
    );
    let request = [(R::Source, "0"), (R::Tag, "4"), WORLD];
    call(&mut seen, "1", "MPI_Test", &request);
    check(&seen, Step::HeldUp, "1", "while it polls");
    let found = judge(&seen);
    assert_eq!(found.cause, Cause::Polling);
    assert_eq!(found.guilty[0].call, "MPI_Test");
    let told = found.findings.iter().find(|one| one.tasks == set("1"));
    let told = told.unwrap();
    assert!(
        told.what
            .starts_with("polling with MPI_Test, sleeping in usleep"),
        "{told:?}"
    );
    assert!(
        told.evidence.iter().any(|line| line.starts_with("from 0")),
        "{told:?}"
    );
    let looks: [Look<'_>; 2] = [
        &[("1", nap, "", ""), ("0", "main:4 work:7", "i=1", "")],
        &[("1", nap, "", ""), ("0", "main:4 work:7", "i=2", "")],
    ];
    let mut seen = observed(&looks);
    call(&mut seen, "1", "MPI_Test", &request);
    let part = "the other ranks poll while";
    check(&seen, Step::HeldUp, "0", part);
}

/// The main thread of rank 1 joins a thread that computes, and is in a library's function for a moment.
#[test]
fn thread_computing_in_a_library_function_is_named() {
    for frame in ["time@plt:0", "cos:0"] {
        let join = "main:5 pthread_join:5";
        let mut seen = standing(&[("0", WAITING, "", ""), ("1", join, "", "")]);
        for sample in &mut seen.samples {
            let mut other = stacks(&format!("crunch:9 {frame}")).threads.remove(0);
            other.main = false;
            other.frames[1].module = "libm.so.6".to_owned();
            sample.stacks[1].1.threads.push(other);
        }
        reduce_all(&mut seen, "0");
        let place = StackFrame::own("main", "a.c", 5);
        let join = sdm_debug::probe::JoinWait { thread: 2, place };
        let mut waits = TaskWaits {
            threads: vec![ThreadWait {
                thread: 1,
                what: WaitFor::Join(join),
            }],
            ..TaskWaits::default()
        };
        seen.samples[1].waits.push((set("1"), waits.clone()));
        let part = "another thread of its process computes in crunch () at halo.c:9";
        check(&seen, Step::HeldUp, "1", part);
        assert_eq!(judge(&seen).cause, Cause::Computing);
        if frame == "cos:0" {
            let what = WaitFor::SystemCall("epoll_wait".to_owned());
            waits.threads.push(ThreadWait { thread: 2, what });
            seen.samples[1].waits.last_mut().unwrap().1 = waits;
            check(
                &seen,
                Step::HeldUp,
                "1",
                "while it waits for something else",
            );
        }
    }
}
