use std::time::Duration;

use sdm_debug::reply::{StackFrame, TaskStacks};
use sdm_idset::{IdSet, TaskId};

use super::*;

fn set(text: &str) -> IdSet {
    text.parse().unwrap()
}

/// `main:80 exchange:60 MPI_Recv:60`.
fn stacks(text: &str) -> TaskStacks {
    let frames = text.split_whitespace().map(|frame| {
        let (function, line) = frame.split_once(':').unwrap();
        StackFrame::own(function, "halo.c", line.parse().unwrap())
    });
    TaskStacks::of_main(frames.collect(), 0)
}

/// Per sample: who, which stack, which variables inside and around.
type Look<'a> = &'a [(&'a str, &'a str, &'a str, &'a str)];

fn observed(looks: &[Look<'_>]) -> Observed {
    let sample = |look: &Look<'_>| Sample {
        stacks: look.iter().map(|l| (set(l.0), stacks(l.1))).collect(),
        inner: look.iter().map(|l| (set(l.0), l.2.to_owned())).collect(),
        outer: look.iter().map(|l| (set(l.0), l.3.to_owned())).collect(),
        ticks: Vec::new(),
    };
    Observed {
        samples: looks.iter().map(sample).collect(),
        span: Duration::from_millis(900),
        ..Observed::default()
    }
}

fn check(observed: &Observed, stuck: bool, suspects: &str, part: &str) {
    let found = judge(observed);
    assert_eq!(found.suspects.to_string(), suspects, "{found:#?}");
    assert!(found.conclusion.contains(part), "{found:#?}");
    assert_eq!(found.stuck, stuck, "{found:#?}");
    let at_suspects = found.findings.iter().filter(|f| f.kind == Kind::Suspect);
    let named = IdSet::union_all(at_suspects.map(|finding| &finding.tasks));
    assert_eq!(named, found.suspects, "every suspect has a finding");
}

const WAITING: &str = "main:80 solve:20 total:90 MPI_Allreduce:90";

#[test]
fn a_receive_that_nobody_serves_is_the_odd_one() {
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
    seen.messages.push(Message {
        tasks: set("3"),
        peer: Some(2),
        source: "60: MPI_Recv(...)".to_owned(),
        facts: vec!["left = 2".to_owned(), "tag = 99".to_owned()],
    });
    check(
        &seen,
        true,
        "3",
        "MPI_Allreduce, which was not reached here",
    );
    let found = judge(&seen);
    assert_eq!(
        found.findings[0].evidence,
        ["60: MPI_Recv(...)", "left = 2, tag = 99"]
    );
}

#[test]
fn different_collectives_come_before_all_else() {
    let barrier = "main:80 solve:30 MPI_Barrier:30";
    let look: Look<'_> = &[("0-2", WAITING, "", ""), ("3", barrier, "", "")];
    check(
        &observed(&[look, look]),
        true,
        "3",
        "different collective operations",
    );
    let other = "main:81 total:90 MPI_Allreduce:95";
    let look: Look<'_> = &[("0-2", WAITING, "", ""), ("3", other, "", "")];
    check(
        &observed(&[look, look]),
        true,
        "3",
        "called from different places",
    );
    let look: Look<'_> = &[("0-1", WAITING, "", ""), ("2-3", barrier, "", "")];
    check(
        &observed(&[look, look]),
        true,
        "",
        "different collective operations",
    );
}

#[test]
fn an_endless_loop_is_told_from_progress() {
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
    check(
        &observed(&looks),
        true,
        "3",
        "an endless loop, or just long",
    );
    // The step goes on: slow, not stuck.
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
    check(&observed(&looks), false, "", "there is progress");
    let looks: [Look<'_>; 2] = [
        &[
            ("0-2", WAITING, "", "s=1"),
            ("3", "main:80 spin:12", "i=1", "s=1"),
        ],
        &[
            ("0-2", WAITING, "", "s=1"),
            ("3", "main:84 report:2", "", "s=1"),
        ],
    ];
    check(
        &observed(&looks),
        false,
        "",
        "nothing says that they are stuck",
    );
}

#[test]
fn a_circle_of_messages_has_no_culprit() {
    let recv = "main:80 ring:5 MPI_Recv:5";
    let look: Look<'_> = &[
        ("0", recv, "0", ""),
        ("1", recv, "1", ""),
        ("2", recv, "2", ""),
    ];
    let mut seen = observed(&[look, look]);
    check(&seen, true, "", "do not show whose fault");
    for rank in 0..3 {
        seen.messages.push(Message {
            tasks: set(&rank.to_string()),
            peer: Some((rank + 1) % 3),
            ..Message::default()
        });
    }
    check(
        &seen,
        true,
        "",
        "(0 -> 1 -> 2 -> 0): no single one is to blame",
    );
    seen.messages[2].peer = None;
    check(&seen, true, "", "do not show whose fault");
}

#[test]
fn who_is_gone_is_blamed_only_where_others_wait() {
    let look: Look<'_> = &[("0-2", WAITING, "", "")];
    let mut seen = observed(&[look, look]);
    seen.gone.push((set("3"), "exited with code 1".to_owned()));
    check(&seen, true, "3", "tasks that are gone");
    let looks: [Look<'_>; 2] = [
        &[("0-2", "main:80 f:1", "1", "s=1")],
        &[("0-2", "main:81 g:1", "1", "s=2")],
    ];
    let mut seen = observed(&looks);
    seen.gone.push((set("3"), "exited normally".to_owned()));
    check(&seen, false, "", "there is progress");
}

#[test]
fn locks_and_files() {
    let lock = "main:13 pthread_mutex_lock:13";
    let look: Look<'_> = &[("0-3", lock, "", "")];
    let mut seen = observed(&[look, look]);
    check(&seen, true, "", "nobody waits in MPI");
    seen.circles
        .push((set("0-3"), vec!["thread 1 waits for thread 2".to_owned()]));
    check(&seen, true, "0-3", "each other's locks");
    let look: Look<'_> = &[("0-3", "main:9 flock:9", "", "")];
    check(
        &observed(&[look, look]),
        true,
        "",
        "all wait for a file, in flock",
    );
}

#[test]
fn nothing_is_claimed_of_what_was_not_seen() {
    check(&Observed::default(), false, "", "nothing can be said");
    let look: Look<'_> = &[("0-3", WAITING, "", "")];
    check(&observed(&[look]), false, "", "nothing can be said");
    check(
        &observed(&[look, look]),
        true,
        "",
        "its cause is not in these stacks",
    );
}

#[test]
fn calls_of_every_kind_are_known() {
    for (stack, kind) in [
        ("main:1 MPI_Bcast:1", WaitKind::Collective),
        ("main:1 mpi_barrier_:1", WaitKind::Collective),
        ("main:1 PMPI_Recv:1", WaitKind::Message),
        ("main:1 MPI_Waitall:1", WaitKind::Message),
        ("main:1 MPI_Win_lock:1", WaitKind::Mpi),
        ("main:1 __pthread_mutex_lock:1", WaitKind::Lock),
        ("main:1 __GI___libc_read:1", WaitKind::File),
        ("main:1 usleep:1", WaitKind::Other),
        ("main:1 f:2", WaitKind::Running),
        ("main:1 f:2 MPI_Wtime:2", WaitKind::Running),
        ("main:1", WaitKind::Running),
    ] {
        assert_eq!(Wait::of(&stacks(stack)).unwrap().kind, kind, "{stack}");
    }
}

#[test]
fn who_spends_processor_time_in_its_own_code_goes_on() {
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
        seen.samples[0].ticks = vec![(TaskId(3), 100)];
        seen.samples[1].ticks = vec![(TaskId(3), 120)];
        seen
    };
    let own = seen("main:80 compute:44 MPI_Wtime:44");
    check(&own, false, "", "there is progress");
    // MPI spins: there it says nothing.
    let text = "nothing changed here, while others went on";
    check(&seen("main:80 work:31 usleep:31"), true, "3", text);
}
