//! Tests of waits other than for messages, and of missing observations.

use super::*;

#[test]
fn cycles_of_locks_and_files_are_deadlocks() {
    let lock = "main:13 pthread_mutex_lock:13";
    let look: Look<'_> = &[("0-3", lock, "", "")];
    let mut seen = observed(&[look, look]);
    check(&seen, Step::HeldUp, "0-3", "a lock or a thread");
    seen.samples.last_mut().unwrap().waits = vec![(set("0-3"), circle_of_locks())];
    check(&seen, Step::Deadlock, "0-3", "each other's locks");
    let orphaned = TaskWaits {
        call: None,
        threads: vec![waits_for_lock(1, None)],
        ..TaskWaits::default()
    };
    seen.samples.last_mut().unwrap().waits = vec![(set("0-3"), orphaned)];
    check(&seen, Step::CannotGoOn, "0-3", "whose holder has ended");
    let look: Look<'_> = &[("0-3", "main:9 flock:9", "", "")];
    check(
        &observed(&[look, look]),
        Step::HeldUp,
        "0-3",
        "a file, in flock",
    );
}

/// Rank 1 has the lock of a file, and waits in a barrier for rank 0, which waits for the lock.
#[test]
fn holder_of_a_file_lock_in_a_wait_cycle_is_blamed() {
    let look: Look<'_> = &[
        ("0", "main:9 flock:9", "", ""),
        ("1-3", "main:12 MPI_Barrier:12", "", ""),
    ];
    let mut seen = observed(&[look, look]);
    call(&mut seen, "1-3", "MPI_Barrier", &[WORLD]);
    let resource = ResourceWait {
        call: "flock".to_owned(),
        what: "the lock on /scratch/x".to_owned(),
        holders: vec![Holder {
            pid: 4711,
            name: "solver".to_owned(),
            letter: 'S',
        }],
    };
    let waits = TaskWaits {
        call: None,
        threads: vec![ThreadWait {
            thread: 1,
            what: WaitFor::Resource(resource),
        }],
        ..TaskWaits::default()
    };
    seen.samples[1].waits.push((set("0"), waits));
    check(&seen, Step::HeldUp, "0", "for something else");
    seen.pids.insert(4711, sdm_idset::TaskId(1));
    // The rank that holds the lock while all others wait is the cause.
    check(
        &seen,
        Step::Deadlock,
        "1",
        "a lock that other ranks wait for",
    );
    let found = judge(&seen);
    let line = "in flock, for the lock on /scratch/x; the wait depends on process 4711 (solver)";
    let of_waiting = found.findings.iter().find(|one| one.tasks == set("0"));
    assert_eq!(of_waiting.unwrap().evidence, [line]);
}

#[test]
fn unobserved_ranks_yield_no_verdict() {
    check(
        &Observed::default(),
        Step::CannotTell,
        "",
        "progress cannot be judged",
    );
    let look: Look<'_> = &[("0-3", WAITING, "", "")];
    check(
        &observed(&[look]),
        Step::CannotTell,
        "",
        "progress cannot be judged",
    );
    let mut seen = observed(&[look, look]);
    reduce_all(&mut seen, "0-3");
    check(
        &seen,
        Step::CannotTell,
        "",
        "the stacks do not show the cause",
    );
    let look: Look<'_> = &[("0-2", WAITING, "", "")];
    for why in 0..4 {
        let mut seen = observed(&[look, look]);
        reduce_all(&mut seen, "0-2");
        match why {
            0 => seen.samples[0].marks.partial = set("3"),
            1 => seen.samples[1].cut = set("3"),
            2 => seen
                .unseen
                .push((set("3"), "could not be stopped".to_owned())),
            _ => {
                let own = (set("3"), stacks("main:1 f:2"));
                seen.samples
                    .iter_mut()
                    .for_each(|one| one.stacks.push(own.clone()));
                seen.samples[1].marks.starved = set("3");
            }
        }
        check(&seen, Step::CannotTell, "", "whose activity is unknown");
    }
}

#[test]
fn rank_in_file_input_or_output_is_in_no_deadlock() {
    let look: Look<'_> = &[
        ("0-1", "main:3 MPI_File_write_all:3", "", ""),
        ("2-3", "main:9 MPI_Barrier:9", "", ""),
    ];
    let mut seen = observed(&[look, look]);
    call(&mut seen, "2-3", "MPI_Barrier", &[WORLD]);
    check(&seen, Step::HeldUp, "0-1", "for something else");
    let at = |tasks: &str, what| {
        let mut seen = seen.clone();
        let waits = TaskWaits {
            call: None,
            threads: vec![ThreadWait { thread: 1, what }],
            ..TaskWaits::default()
        };
        seen.samples[1].waits.push((set(tasks), waits));
        seen
    };
    let writing = at("0", WaitFor::SystemCall("pwrite64".to_owned()));
    check(&writing, Step::HeldUp, "0-1", "for something else");
    // A rank that polls, without a file system call, waits for the other ranks.
    let part = at("0", WaitFor::Polling);
    check(&part, Step::HeldUp, "1", "for something else");
    let polling = at("0-1", WaitFor::Polling);
    check(
        &polling,
        Step::Deadlock,
        "",
        "other blocked ranks have not reached",
    );
}

/// Rank 3 is in an operation of one communicator, the other ranks in the same operation of another communicator.
#[test]
fn communicators_are_distinguished_by_their_context_id() {
    let look: Look<'_> = &[
        ("0-2", "main:80 MPI_Allreduce:80", "", ""),
        ("3", "main:90 MPI_Allreduce:90", "", ""),
    ];
    let seen = |role, numbers: [&'static str; 2]| {
        let mut seen = observed(&[look, look]);
        for (tasks, number) in ["0-2", "3"].into_iter().zip(numbers) {
            let with = [(ArgumentRole::Communicator, "comm"), (role, number)];
            call(&mut seen, tasks, "MPI_Allreduce", &with);
        }
        seen
    };
    let mut twins = seen(ArgumentRole::Context, ["7", "8"]);
    for (_, waits) in &mut twins.samples[1].waits {
        let arguments = &mut waits.call.as_mut().unwrap().arguments;
        let text = "0-3".to_owned();
        arguments[0].value = Some(Value { text, cut: None });
    }
    check(&twins, Step::CannotGoOn, "3", "different communicators");
    // The communicator's variable may have another name in another rank.
    let waits = &mut twins.samples[1].waits;
    for (_, waits) in waits.iter_mut() {
        let arguments = &mut waits.call.as_mut().unwrap().arguments;
        arguments.retain(|one| one.role == ArgumentRole::Communicator);
    }
    let last = &mut waits[1].1.call.as_mut().unwrap().arguments[0];
    last.expression = "solver->comm".to_owned();
    let part = "are in the same MPI_Allreduce";
    check(&twins, Step::CannotTell, "", part);
    // A handle may be another one at each rank.
    let handles = seen(ArgumentRole::Handle, ["7", "8"]);
    check(
        &handles,
        Step::CannotTell,
        "",
        "different communicator handles",
    );
    let alike = seen(ArgumentRole::Handle, ["7", "7"]);
    check(
        &alike,
        Step::CannotTell,
        "",
        "are in the same MPI_Allreduce",
    );
}

/// Ranks 1 and 3 wait for rank 2, which is in the operation of the others.
#[test]
fn rank_whose_message_several_ranks_await_is_blamed() {
    let look: Look<'_> = &[
        ("0,2,4", WAITING, "", ""),
        ("1,3", "main:80 MPI_Recv:80", "", ""),
    ];
    let mut seen = observed(&[look, look]);
    reduce_all(&mut seen, "0,2,4");
    receive(&mut seen, "1,3", "2");
    let part = "2 other ranks wait for a message from this rank";
    check(&seen, Step::Deadlock, "2", part);
    let mut own = observed(&[look, look]);
    reduce_all(&mut own, "0,2,4");
    receive(&mut own, "1,3", "1");
    check(&own, Step::Deadlock, "1", "a message from itself");
}

/// Rank 0 waits for a process of another job, or in a communicator whose ranks are unknown.
#[test]
fn wait_for_another_job_proves_no_deadlock() {
    let look: Look<'_> = &[
        ("0", "main:80 MPI_Recv:80", "", ""),
        ("1-3", "main:12 MPI_Barrier:12", "", ""),
    ];
    let seen = |more: &[(ArgumentRole, &str)]| {
        let mut seen = observed(&[look, look]);
        call(&mut seen, "1-3", "MPI_Barrier", &[WORLD]);
        let from = [
            (ArgumentRole::Source, "0"),
            (ArgumentRole::Communicator, "ic"),
        ];
        call(&mut seen, "0", "MPI_Recv", &[&from, more].concat());
        seen
    };
    let with_others = seen(&[(ArgumentRole::OtherJobs, "1")]);
    check(&with_others, Step::HeldUp, "0", "for something else");
    // A circle is not made of guesses.
    let found = seen(&[]);
    check(&found, Step::Deadlock, "", "is unknown");
    assert_eq!(judge(&found).circle, Vec::<u32>::new());
}

/// If process ids are given as ranks, 0 and 1 are positions in that list, and not the ranks in the calls.
#[test]
fn pids_as_ranks_prove_no_deadlock() {
    let look: Look<'_> = &[("0-1", "main:80 MPI_Recv:80", "", "")];
    let mut seen = observed(&[look, look]);
    receive(&mut seen, "0", "1");
    receive(&mut seen, "1", "0");
    assert_eq!(judge(&seen).step, Step::Deadlock);
    seen.unranked = true;
    assert_eq!(judge(&seen).step, Step::CannotTell);
    let look: Look<'_> = &[
        ("0", "main:80 MPI_Barrier:80", "", ""),
        ("1", "main:80 MPI_Recv:80", "", ""),
    ];
    let mut seen = observed(&[look, look]);
    call(&mut seen, "0", "MPI_Barrier", &[WORLD]);
    receive(&mut seen, "1", "0");
    seen.unranked = true;
    assert!(!judge(&seen).step.is_proved());
}

/// Ranks 0 and 1 receive from each other; a second thread of rank 1 is somewhere else.
fn with_a_thread(frames: &str, what: Option<WaitFor>) -> Observed {
    let look: Look<'_> = &[
        ("0", "main:80 MPI_Recv:80", "", ""),
        ("1", "main:80 MPI_Recv:80", "", ""),
    ];
    let mut seen = observed(&[look, look]);
    for sample in &mut seen.samples {
        let other = ThreadStack {
            main: false,
            ..stacks(frames).threads.remove(0)
        };
        sample.stacks[1].1.threads.push(other);
    }
    receive(&mut seen, "0", "1");
    receive(&mut seen, "1", "0");
    let waits = &mut seen.samples.last_mut().unwrap().waits;
    waits[1]
        .1
        .threads
        .extend(what.map(|what| ThreadWait { thread: 2, what }));
    seen
}

#[test]
fn user_function_without_lines_is_no_runtime_frame() {
    let frame = |function: &str| StackFrame::own(function, "", 0);
    let wait = |functions: [&'static str; 2]| Wait::of_frames(&functions.map(frame)).unwrap();
    let found = wait(["main", "iterate"]);
    assert_eq!(
        (found.kind, found.frame.function),
        (WaitKind::Running, "iterate".to_owned())
    );
    let found = wait(["main", "MPI_Recv"]);
    assert_eq!(
        (found.kind, found.frame.function),
        (WaitKind::Message, "main".to_owned())
    );
}

#[test]
fn rank_with_runnable_thread_is_in_no_deadlock() {
    let system_call = |name: &str| Some(WaitFor::SystemCall(name.to_owned()));
    for (frames, what) in [
        ("work:5 step:9", None),
        ("work:5 sleep:9", system_call("clock_nanosleep")),
        ("work:5 read:9", system_call("read")),
        (
            "work:5 pthread_cond_timedwait:9",
            system_call("timed futex"),
        ),
    ] {
        let seen = with_a_thread(frames, what);
        check(&seen, Step::HeldUp, "1", "another of its threads runs");
    }
    for (frames, what) in [
        ("work:5 pthread_cond_wait:9", system_call("futex")),
        // Python's threads wait for each other by locks of the interpreter's own.
        ("work:5 Event.wait:9", system_call("futex")),
        ("work:5 GOMP_barrier:9", None),
        ("work:5 MPI_Recv:9", None),
    ] {
        let seen = with_a_thread(frames, what);
        check(&seen, Step::Deadlock, "", "in a cycle");
    }
}

/// Rank 1's main thread waits for its threads, which are in MPI.
#[test]
fn joining_thread_waits_for_what_its_threads_await() {
    let seen = |frames, join: &str| {
        let look: Look<'_> = &[("0", "main:80 MPI_Recv:80", "", ""), ("1", join, "", "")];
        let mut seen = observed(&[look, look]);
        for sample in &mut seen.samples {
            let mut other = stacks(frames).threads.remove(0);
            other.main = false;
            sample.stacks[1].1.threads.push(other);
        }
        receive(&mut seen, "0", "1");
        seen
    };
    let join = "main:90 pthread_join:90";
    let found = seen("work:5 MPI_Recv:9", join);
    check(
        &found,
        Step::Deadlock,
        "",
        "which rank each one waits for is unknown",
    );
    let found = seen("work:5 step:9", join);
    check(&found, Step::HeldUp, "1", "computes in step ()");
    // Where the function name is unknown, the system call identifies the wait.
    let mut found = seen("work:5 MPI_Recv:9", "main:90 libc.so.6:90");
    check(&found, Step::HeldUp, "1", "for something else");
    let waits = TaskWaits {
        call: None,
        threads: vec![ThreadWait {
            thread: 1,
            what: WaitFor::SystemCall("futex".to_owned()),
        }],
        ..TaskWaits::default()
    };
    found.samples[1].waits.push((set("1"), waits));
    check(
        &found,
        Step::Deadlock,
        "",
        "which rank each one waits for is unknown",
    );
}

/// Ranks 0 and 2 are in an operation of the even ranks. Rank 4 computes, or waits in a receive for rank 5.
#[test]
fn rank_missing_from_subcommunicator_collective_is_found() {
    let seen = |four: &str, kind| {
        let look: Look<'_> = &[
            ("0,2", "main:12 MPI_Barrier:12", "", ""),
            ("1,3,5", "main:14 MPI_Recv:14", "", ""),
            ("4", four, "", ""),
        ];
        let mut seen = observed(&[look, look]);
        let even = (ArgumentRole::Communicator, "even");
        call(&mut seen, "0,2", "MPI_Barrier", &[even]);
        let waits = &mut seen.samples[1].waits;
        let arguments = &mut waits.last_mut().unwrap().1.call.as_mut().unwrap().arguments;
        let text = "0,2,4".to_owned();
        arguments[0].value = Some(Value { text, cut: None });
        let with = |rank| [(kind, rank), (ArgumentRole::Tag, "1")];
        for (tasks, peer) in [("1", "3"), ("3", "5"), ("5", "0")] {
            call(&mut seen, tasks, "MPI_Wait", &with(peer));
        }
        seen
    };
    let mut found = seen("main:9 step:3", ArgumentRole::Target);
    found.samples[1].marks.inner_changed = set("4");
    check(&found, Step::HeldUp, "4", "while it computes");
    assert_eq!(judge(&found).graph.sets.len(), 1);
    let mut found = seen("main:9 MPI_Wait:9", ArgumentRole::Target);
    let with = [(ArgumentRole::Target, "5"), (ArgumentRole::Tag, "1")];
    call(&mut found, "4", "MPI_Wait", &with);
    check(
        &found,
        Step::Deadlock,
        "",
        "have not reached (0 -> 4 -> 5 -> 0); no single rank is to blame",
    );
    let lines = judge(&found).findings;
    let lines: Vec<&String> = lines.iter().flat_map(|one| &one.evidence).collect();
    assert!(
        lines.iter().any(|line| **line == "with 5, tag 1"),
        "{lines:?}"
    );
}

#[test]
fn polling_by_all_ranks_is_no_progress() {
    let seen = |three| {
        let look = |inner| {
            [
                ("0-2", "main:80 ask:60 MPI_Iprobe:60", inner, ""),
                ("3", three, inner, ""),
            ]
        };
        observed(&[&look("x"), &look("y")])
    };
    let found = seen("main:80 ask:60 MPI_Test:60");
    check(&found, Step::HeldUp, "0-3", "all ranks poll");
    let found = seen("main:80 work:31");
    check(&found, Step::NoHangSeen, "", "the samples show progress");
    // A rank that sleeps between polls counts as polling. An ended rank is not considered.
    let found = seen("main:80 ask:61 usleep:61");
    check(&found, Step::HeldUp, "0-3", "all ranks poll");
    let mut found = seen("main:80 ask:60 MPI_Test:60");
    for sample in &mut found.samples {
        sample.forget(&set("3"));
    }
    found.gone.push((set("3"), "exited with code 1".to_owned()));
    check(&found, Step::HeldUp, "0-2", "all ranks poll");
    // A rank of unknown state may be the sender.
    found.gone.clear();
    found.unseen.push((set("3"), "its gdb is gone".to_owned()));
    check(&found, Step::CannotTell, "", "whose activity is unknown");
}

/// A rank that polls now and then, and works in between, is not polling all the time.
#[test]
fn rank_polling_between_steps_of_work_progresses() {
    let look = |frames, inner| [("0-3", frames, inner, "")];
    let (work, ask) = ("main:80 work:31", "main:80 MPI_Testall:81");
    let found = observed(&[&look(work, "x"), &look(ask, "y"), &look(work, "z")]);
    check(&found, Step::NoHangSeen, "", "the samples show progress");
    let found = observed(&[&look(ask, "x"), &look(work, "y"), &look(ask, "z")]);
    check(&found, Step::HeldUp, "0-3", "all ranks poll");
}

/// Samples of a polling rank can be mostly between two polls. The rank counts as polling if it has not left its
/// function and nothing has changed there.
#[test]
fn rank_staying_in_its_polling_function_is_polling() {
    let look = |three, inner| {
        [
            ("0-2", "main:80 ask:60 MPI_Iprobe:60", inner, ""),
            ("3", three, inner, ""),
        ]
    };
    let (asks, between) = ("main:80 ask:60 MPI_Test:60", "main:80 ask:61");
    let looks = [look(between, "x"), look(asks, "y"), look(between, "z")];
    let mut seen = observed(&[&looks[0], &looks[1], &looks[2]]);
    check(&seen, Step::NoHangSeen, "", "the samples show progress");
    let mut within = Within {
        depth: 1,
        frame: StackFrame::own("ask", "halo.c", 0),
        changed: false,
        noted: false,
    };
    for sample in &mut seen.samples[1..] {
        sample.within = vec![(set("0-3"), within.clone())];
    }
    check(&seen, Step::HeldUp, "0-3", "all ranks poll");
    within.changed = true;
    seen.samples[2].within = vec![(set("0-3"), within)];
    check(&seen, Step::NoHangSeen, "", "the samples show progress");
}

#[test]
fn repeatedly_sleeping_rank_does_not_compute() {
    let look = |three, inner| [("0-2", WAITING, "", ""), ("3", three, inner, "")];
    let naps = "main:80 retry:18 usleep:18";
    let mut seen = observed(&[&look(naps, "x"), &look(naps, "y")]);
    reduce_all(&mut seen, "0-2");
    check(&seen, Step::HeldUp, "3", "while it sleeps, ");
    let found = judge(&seen).findings;
    let told = "sleeping repeatedly in usleep";
    assert!(found[0].what.starts_with(told), "{found:?}");
    // A rank that was also seen at work counts as computing.
    let mut seen = observed(&[&look("main:80 work:31", "x"), &look(naps, "y")]);
    reduce_all(&mut seen, "0-2");
    check(&seen, Step::HeldUp, "3", "while it computes");
}
