//! Tests of verdicts, from samples given as text.

use std::time::Duration;

use sdm_debug::probe::{
    ArgumentRole, Call, CallArgument, Holder, Known, LockWait, ProcessState, ResourceWait,
    TaskProbe, TaskWaits, ThreadWait, WaitFor, Within,
};
use sdm_debug::reply::{StackFrame, TaskStacks, ThreadStack, Value};
use sdm_debug::rules::Probes;
use sdm_idset::IdSet;

use super::*;

mod beside;
mod causes;
mod doubts;
mod exchange;
mod groups;
mod odd;
mod outside;
mod parts;
mod past;
mod requests;
mod sources;
mod threads;

fn set(text: &str) -> IdSet {
    text.parse().unwrap()
}

/// The stack of a main thread, outermost frame first: `main:80 exchange:60 MPI_Recv:60`.
fn stacks(text: &str) -> TaskStacks {
    let frames = text.split_whitespace().map(|frame| {
        let (function, line) = frame.split_once(':').unwrap();
        StackFrame::own(function, "halo.c", line.parse().unwrap())
    });
    TaskStacks::of_main(frames.collect(), 0)
}

/// The rows of one sample: tasks, stack, values of inner variables, values of outer variables.
type Look<'a> = &'a [(&'a str, &'a str, &'a str, &'a str)];

fn observed(looks: &[Look<'_>]) -> Observed {
    let sample = |(index, look): (usize, &Look<'_>)| {
        let mut probes = Probes::default();
        for (tasks, stack, inner, outer) in *look {
            probes.stacks.push((set(tasks), stacks(stack)));
            let before = index.checked_sub(1).map(|before| looks[before]);
            let was = before.and_then(|look| look.iter().find(|was| was.0 == *tasks));
            if was.is_some_and(|was| was.2 != *inner) {
                probes.marks.inner_changed.union_with(&set(tasks));
            }
            if was.is_some_and(|was| was.3 != *outer) {
                probes.marks.outer_changed.union_with(&set(tasks));
            }
        }
        probes
    };
    Observed {
        samples: looks.iter().enumerate().map(sample).collect(),
        span: Duration::from_millis(900),
        ..Observed::default()
    }
}

/// Puts tasks in a call with these arguments. Each argument is a number or a name, with its role.
fn call(seen: &mut Observed, tasks: &str, function: &str, arguments: &[(ArgumentRole, &str)]) {
    let argument = |(role, text): &(ArgumentRole, &str)| CallArgument {
        role: *role,
        expression: (*text).to_owned(),
        value: None,
        number: text.parse().ok(),
        known: Known::Source,
    };
    let call = Call {
        function: function.to_owned(),
        place: StackFrame::own("exchange", "halo.c", 60),
        source: format!("{function}(...)"),
        arguments: arguments.iter().map(argument).collect(),
    };
    let probe = TaskProbe {
        waits: Some(TaskWaits {
            call: Some(call),
            ..TaskWaits::default()
        }),
        ..TaskProbe::default()
    };
    let more = Probes::of(&set(tasks), probe);
    seen.samples.last_mut().unwrap().absorb(more);
}

const WORLD: (ArgumentRole, &str) = (ArgumentRole::Communicator, "MPI_COMM_WORLD");

/// Puts tasks in a receive from a rank.
fn receive(seen: &mut Observed, tasks: &str, peer: &str) {
    let arguments = [
        (ArgumentRole::Source, peer),
        (ArgumentRole::Tag, "99"),
        WORLD,
    ];
    call(seen, tasks, "MPI_Recv", &arguments);
}

fn reduce_all(seen: &mut Observed, tasks: &str) {
    let arguments = [(ArgumentRole::Count, "1"), WORLD];
    call(seen, tasks, "MPI_Allreduce", &arguments);
}

/// A thread that waits for a lock of another thread, or of one that has ended.
fn waits_for_lock(thread: u32, holder: Option<u32>) -> ThreadWait {
    ThreadWait {
        thread,
        what: WaitFor::Lock(LockWait {
            mutex: "&m".to_owned(),
            place: StackFrame::own("f", "a.c", 1),
            holder,
            orphaned: holder.is_none(),
        }),
    }
}

fn circle_of_locks() -> TaskWaits {
    TaskWaits {
        call: None,
        threads: vec![waits_for_lock(1, Some(2)), waits_for_lock(2, Some(1))],
        ..TaskWaits::default()
    }
}

fn check(observed: &Observed, step: Step, named: &str, part: &str) {
    let found = judge(observed);
    assert!(found.conclusion.contains(part), "{part}: {found:#?}");
    assert_eq!(found.step, step, "{found:#?}");
    let (kind, list) = match step {
        Step::HeldUp => (Kind::Holds, &found.held_up_by),
        _ => (Kind::Suspect, &found.suspects),
    };
    assert_eq!(list.to_string(), named, "{found:#?}");
    if !step.is_proved() {
        assert!(found.suspects.is_empty(), "nobody is to blame: {found:#?}");
    }
    let so = found.findings.iter().filter(|f| f.kind == kind);
    let told = IdSet::union_all(so.map(|finding| &finding.tasks));
    assert_eq!(told, *list, "all who are named have a finding");
}

const WAITING: &str = "main:80 solve:20 total:90 MPI_Allreduce:90";

#[test]
fn unmatched_receive_is_named_in_the_deadlock() {
    let look: Look<'_> = &[
        ("0-2,4-7", WAITING, "x", "step=60"),
        (
            "3",
            "main:80 solve:18 exchange:60 MPI_Recv:60",
            "tag=99",
            "step=60",
        ),
    ];
    let mut seen = observed(&[look, look, look]);
    receive(&mut seen, "3", "2");
    reduce_all(&mut seen, "0-2,4-7");
    check(
        &seen,
        Step::Deadlock,
        "2-3",
        "rank 3 waits for rank 2, which waits for rank 3 in MPI_Allreduce; one of these two ranks is wrong",
    );
    let found = judge(&seen);
    assert_eq!(found.circle, [2, 3]);
    let evidence = &found.findings[0].evidence;
    assert_eq!(evidence[..], ["60: MPI_Recv(...)", "from 2, tag 99"]);
    // A rank that waits for the odd one is not to blame.
    let look: Look<'_> = &[
        ("0-2,5-7", WAITING, "x", ""),
        ("3-4", "main:80 exchange:60 MPI_Recv:60", "", ""),
    ];
    let mut seen = observed(&[look, look]);
    receive(&mut seen, "3", "2");
    receive(&mut seen, "4", "3");
    reduce_all(&mut seen, "0-2,5-7");
    let said = "one of these two ranks is wrong";
    check(&seen, Step::Deadlock, "2-3", said);
}

#[test]
fn mismatched_collective_operations_are_named() {
    use ArgumentRole as R;
    let barrier = "main:80 solve:30 MPI_Barrier:30";
    let look: Look<'_> = &[("0-2", WAITING, "", ""), ("3", barrier, "", "")];
    let mut seen = observed(&[look, look]);
    reduce_all(&mut seen, "0-2");
    call(&mut seen, "3", "MPI_Barrier", &[WORLD]);
    check(
        &seen,
        Step::CannotGoOn,
        "3",
        "different collective operations",
    );
    let look: Look<'_> = &[("0-1", WAITING, "", ""), ("2-3", barrier, "", "")];
    let mut seen = observed(&[look, look]);
    reduce_all(&mut seen, "0-1");
    call(&mut seen, "2-3", "MPI_Barrier", &[WORLD]);
    check(
        &seen,
        Step::CannotGoOn,
        "",
        "different collective operations",
    );
    // Ranks in a reduction with unknown roots may be there legitimately.
    let look: Look<'_> = &[
        ("0-4", barrier, "", ""),
        ("5-7", "main:80 MPI_Reduce:8", "", ""),
    ];
    let mut seen = observed(&[look, look]);
    call(&mut seen, "0-4", "MPI_Barrier", &[WORLD]);
    call(&mut seen, "5-7", "MPI_Reduce", &[(R::Count, "1"), WORLD]);
    check(
        &seen,
        Step::CannotGoOn,
        "",
        "different collective operations",
    );
    let look: Look<'_> = &[("0-3", "main:80 MPI_Reduce:8", "", "")];
    let rooted = |parts: [(&str, &str, &str); 2]| {
        let mut seen = observed(&[look, look]);
        for (tasks, root, count) in parts {
            let arguments = [(R::Root, root), (R::Count, count), WORLD];
            call(&mut seen, tasks, "MPI_Reduce", &arguments);
        }
        seen
    };
    let roots = rooted([("0-2", "0", "1"), ("3", "3", "1")]);
    check(&roots, Step::CannotGoOn, "3", "different roots: 0 and 3");
    let counts = rooted([("0-2", "0", "1"), ("3", "0", "8")]);
    check(&counts, Step::CannotGoOn, "3", "different counts: 1 and 8");
}

#[test]
fn only_mismatched_tags_are_named() {
    use ArgumentRole as R;
    let look: Look<'_> = &[
        ("0", "main:80 MPI_Ssend:5", "", ""),
        ("1", "main:80 MPI_Recv:6", "", ""),
    ];
    let with = |sent: &str, wanted: &str| {
        let mut seen = observed(&[look, look]);
        let to = [(R::Destination, "1"), (R::Tag, sent), WORLD];
        call(&mut seen, "0", "MPI_Ssend", &to);
        let from = [(R::Source, "0"), (R::Tag, wanted), WORLD];
        call(&mut seen, "1", "MPI_Recv", &from);
        seen
    };
    let text = "rank 0 sends tag 7 to rank 1, which waits for tag 8 from it";
    check(&with("7", "8"), Step::CannotGoOn, "", text);
    for wanted in ["7", "-1", "MPI_ANY_TAG", "tags[i]"] {
        check(&with("7", wanted), Step::CannotTell, "", "do not complete");
    }
}

#[test]
fn computing_rank_is_awaited_but_not_blamed() {
    let looks: [Look<'_>; 2] = [
        &[
            ("0-2", WAITING, "", "s=1"),
            ("3", "main:80 spin:12", "i=1", "s=1"),
        ],
        &[
            ("0-2", WAITING, "", "s=1"),
            ("3", "main:80 spin:13", "i=7", "s=1"),
        ],
    ];
    let mut seen = observed(&looks);
    reduce_all(&mut seen, "0-2");
    let within = Within {
        depth: 1,
        frame: StackFrame::own("spin", "halo.c", 0),
        changed: true,
        noted: true,
    };
    seen.samples[1].within = vec![(set("3"), within.clone())];
    check(&seen, Step::HeldUp, "3", "an endless loop, or a long");
    let found = judge(&seen);
    assert_eq!(
        found.findings[0].what,
        "running within spin () at halo.c, which it did not leave; its variables changed"
    );
    let within = Within {
        noted: false,
        ..within
    };
    seen.samples[1].within = vec![(set("3"), within)];
    assert_eq!(
        judge(&seen).findings[0].what,
        "running within spin () at halo.c in each sample; its variables changed"
    );
    // The time step changes: the program is slow, not stuck.
    let looks: [Look<'_>; 2] = [
        &[
            ("0-2", WAITING, "", "s=1"),
            ("3", "main:80 spin:12", "i=1", "s=1"),
        ],
        &[
            ("0-2", WAITING, "", "s=2"),
            ("3", "main:80 spin:13", "i=7", "s=2"),
        ],
    ];
    check(&observed(&looks), Step::NoHangSeen, "", "show progress");
}

#[test]
fn polling_rank_is_distinguished_from_waiting_ranks() {
    let looks: [Look<'_>; 2] = [
        &[
            ("0-4", "main:8 MPI_Recv:8", "", ""),
            ("5", "main:9 serve:3 MPI_Iprobe:4", "", ""),
        ],
        &[
            ("0-4", "main:8 MPI_Recv:8", "", ""),
            ("5", "main:9 serve:5", "", ""),
        ],
    ];
    let mut seen = observed(&looks);
    receive(&mut seen, "0-4", "5");
    check(&seen, Step::HeldUp, "5", "while it polls");
    let found = judge(&seen);
    assert!(
        found.findings[0].what.contains("polling with MPI_Iprobe"),
        "{found:#?}"
    );
}

#[test]
fn cycle_of_messages_has_no_culprit() {
    let recv = "main:80 ring:5 MPI_Recv:5";
    let ranks: Vec<String> = (0..20).map(|rank| rank.to_string()).collect();
    let look: Vec<_> = ranks.iter().map(|rank| (&**rank, recv, "", "")).collect();
    let mut seen = observed(&[&look, &look]);
    for rank in 0..20_u32 {
        receive(&mut seen, &rank.to_string(), &((rank + 1) % 20).to_string());
    }
    let text = "(0 -> 1 -> 2 -> 3 -> 4 -> 5 -> 6 -> 7 -> ... 10 more ... -> 18 -> 19 -> 0)";
    check(&seen, Step::Deadlock, "", text);
    assert_eq!(judge(&seen).circle.len(), 20);
    // Without the arguments the awaited ranks are unknown, but every rank waits.
    let seen = observed(&[&look, &look]);
    check(&seen, Step::Deadlock, "", "is unknown");
    // A rank that was not observed may be the sender.
    let mut seen = seen;
    seen.outside = set("20");
    check(&seen, Step::CannotTell, "", "whose activity is unknown");
}

#[test]
fn ended_or_stopped_rank_is_blamed_only_if_awaited() {
    let look: Look<'_> = &[("0-2", WAITING, "", "")];
    let with = |look: &[Look<'_>]| {
        let mut seen = observed(look);
        if look[0] == look[1] {
            reduce_all(&mut seen, "0-2");
        }
        seen
    };
    let mut seen = with(&[look, look]);
    seen.gone.push((set("3"), "exited with code 1".to_owned()));
    check(&seen, Step::CannotGoOn, "3", "it has ended or is lost");
    let mut seen = with(&[look, look]);
    seen.halted.push((set("3"), "stopped".to_owned()));
    check(&seen, Step::CannotGoOn, "3", "a signal has stopped");
    let mut seen = with(&[look, look]);
    seen.stood.push((set("3"), "at a breakpoint".to_owned()));
    check(&seen, Step::HeldUp, "3", "the debugger has stopped it");
    let looks: [Look<'_>; 2] = [
        &[("0-2", "main:80 f:1", "1", "s=1")],
        &[("0-2", "main:81 g:1", "1", "s=2")],
    ];
    let mut seen = with(&looks);
    seen.gone.push((set("3"), "exited normally".to_owned()));
    check(&seen, Step::NoHangSeen, "", "show progress");
}

#[test]
fn stack_determines_the_wait_kind() {
    for (stack, kind) in [
        ("main:1 MPI_Bcast:1", WaitKind::Collective),
        ("main:1 mpi_barrier_:1", WaitKind::Collective),
        ("main:1 PMPI_Recv:1", WaitKind::Message),
        ("main:1 MPI_Waitall:1", WaitKind::Message),
        ("main:1 MPI_Testsome:1", WaitKind::Poll),
        ("main:1 MPI_Win_lock:1", WaitKind::Mpi),
        ("main:1 __pthread_mutex_lock:1", WaitKind::Lock),
        ("main:1 __GI___libc_read:1", WaitKind::File),
        ("main:1 usleep:1", WaitKind::Sleep),
        ("main:1 __GI___clock_nanosleep:1", WaitKind::Sleep),
        ("main:1 pause:1", WaitKind::Other),
        ("main:1 f:2", WaitKind::Running),
        ("main:1 f:2 MPI_Wtime:2", WaitKind::Running),
        ("main:1", WaitKind::Running),
    ] {
        assert_eq!(Wait::of(&stacks(stack)).unwrap().kind, kind, "{stack}");
    }
}

#[test]
fn rank_using_cpu_time_in_user_code_progresses() {
    let seen = |stack| {
        let first: Look<'_> = &[
            ("0-2", "main:80 work:30", "", "step=1"),
            ("3", stack, "", ""),
        ];
        let second: Look<'_> = &[
            ("0-2", "main:80 work:30", "", "step=2"),
            ("3", stack, "", ""),
        ];
        let mut seen = observed(&[first, second]);
        seen.samples[1].cpu_ms = vec![(set("3"), 200)];
        seen
    };
    let own = seen("main:80 compute:44 MPI_Wtime:44");
    check(&own, Step::NoHangSeen, "", "show progress");
    // Processor time within a library function proves nothing, since MPI spins while it waits.
    let text = " made no progress, while other ranks did";
    check(&seen("main:80 work:31 usleep:31"), Step::HeldUp, "3", text);
}

#[test]
fn cpu_time_is_summed_over_samples_and_shown_per_group() {
    let look: Look<'_> = &[("0-3", WAITING, "", "")];
    let mut seen = observed(&[look, look, look]);
    seen.ran = Duration::from_secs(1);
    let share = |seen: &Observed| judge(seen).findings[0].evidence.join("; ");
    assert_eq!(share(&seen), "");
    seen.samples[1].cpu_ms = vec![(set("0-3"), 490)];
    seen.samples[2].cpu_ms = vec![(set("0-2"), 500), (set("3"), 10)];
    assert_eq!(share(&seen), "50 to 99 % of a processor each");
    seen.samples[2].cpu_ms = vec![(set("0-3"), 500)];
    assert_eq!(share(&seen), "99 % of a processor");
    for sample in &mut seen.samples[1..] {
        sample.cpu_ms = vec![(set("0-3"), 0)];
    }
    assert_eq!(share(&seen), "no processor time spent");
}

#[test]
fn verdict_notes_that_a_call_may_repeat_in_a_loop() {
    let look: Look<'_> = &[("0-3", WAITING, "", "")];
    let mut seen = observed(&[look, look]);
    assert!(judge(&seen).findings[0].evidence.is_empty());
    seen.samples[1].marks.unfollowed = set("2");
    let lines = judge(&seen).findings[0].evidence.join("; ");
    assert!(lines.contains("a loop of equal calls"), "{lines}");
}

/// One of two waiting tasks goes on before it stops. Each is reported once.
#[test]
fn rank_that_progresses_and_stops_is_reported_once() {
    let one: Look<'_> = &[
        ("0-1", "main:80 exchange:60 MPI_Recv:60", "", ""),
        ("2-3", "main:80 work:31", "", "x"),
    ];
    let two: Look<'_> = &[one[0], ("2-3", "main:80 work:31", "", "y")];
    let mut seen = observed(&[one, two]);
    receive(&mut seen, "0-1", "3");
    seen.stood.push((set("2-3"), "at a breakpoint".to_owned()));
    check(&seen, Step::HeldUp, "3", "");
    let told: Vec<String> = judge(&seen)
        .findings
        .iter()
        .map(|it| it.tasks.to_string())
        .collect();
    assert_eq!(told, ["3", "0-1", "2"]);
}

#[test]
fn unstoppable_rank_is_reported_with_kernel_state() {
    let look: Look<'_> = &[("0-2", WAITING, "", "")];
    let mut seen = observed(&[look, look]);
    seen.unseen
        .push((set("3"), "could not be stopped".to_owned()));
    let process = ProcessState {
        letter: 'D',
        wait_channel: "nfs_wait".to_owned(),
    };
    seen.samples[1].processes = vec![(set("3"), process)];
    seen.samples[1].cut = set("9");
    let found = judge(&seen);
    let told = |tasks: &str| {
        found
            .findings
            .iter()
            .find(|f| f.tasks == set(tasks))
            .unwrap()
    };
    assert_eq!(
        told("3").evidence,
        ["process state D, in the kernel function nfs_wait"]
    );
    assert!(told("9").what.contains("too many different stacks"));
}
