//! What is said of tasks that stand in such places and go on or not.

use std::time::Duration;

use sdm_debug::probe::{
    ArgumentRole, Call, CallArgument, LockWait, ProcessState, TaskWaits, ThreadWait, WaitFor,
};
use sdm_debug::reply::{StackFrame, TaskStacks, Value};
use sdm_debug::rules::Probes;
use sdm_idset::IdSet;

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
    let sample = |(index, look): (usize, &Look<'_>)| {
        let mut probes = Probes::default();
        for (tasks, stack, inner, outer) in *look {
            probes.stacks.push((set(tasks), stacks(stack)));
            let before = index.checked_sub(1).map(|before| looks[before]);
            let was = before.and_then(|look| look.iter().find(|was| was.0 == *tasks));
            if was.is_some_and(|was| was.2 != *inner) {
                probes.inner_changed.union_with(&set(tasks));
            }
            if was.is_some_and(|was| was.3 != *outer) {
                probes.outer_changed.union_with(&set(tasks));
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

/// Some tasks wait for a message from a rank.
fn receive(seen: &mut Observed, tasks: &str, peer: &str) {
    let value = |text: &str| {
        Some(Value {
            text: text.to_owned(),
            cut: None,
        })
    };
    let argument = |role, expression: &str, text| CallArgument {
        role,
        expression: expression.to_owned(),
        value: value(text),
    };
    let call = Call {
        function: "MPI_Recv".to_owned(),
        place: StackFrame::own("exchange", "halo.c", 60),
        source: "MPI_Recv(...)".to_owned(),
        arguments: vec![
            argument(ArgumentRole::Source, "left", peer),
            argument(ArgumentRole::Tag, "99", "99"),
        ],
    };
    let waits = TaskWaits {
        call: Some(call),
        threads: Vec::new(),
    };
    seen.samples
        .last_mut()
        .unwrap()
        .waits
        .push((set(tasks), waits));
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
    receive(&mut seen, "3", "2");
    check(
        &seen,
        true,
        "3",
        "MPI_Allreduce, which was not reached here",
    );
    let found = judge(&seen);
    assert_eq!(
        found.findings[0].evidence,
        ["60: MPI_Recv(...)", "from 2 (left), tag 99"]
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
    for rank in 0..3_u32 {
        receive(&mut seen, &rank.to_string(), &((rank + 1) % 3).to_string());
    }
    check(
        &seen,
        true,
        "",
        "(0 -> 1 -> 2 -> 0): no single one is to blame",
    );
    seen.samples.last_mut().unwrap().waits.pop();
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
    let wait = |thread, holder| ThreadWait {
        thread,
        what: WaitFor::Lock(LockWait {
            mutex: "&m".to_owned(),
            place: StackFrame::own("f", "a.c", 1),
            holder: Some(holder),
        }),
    };
    let waits = TaskWaits {
        call: None,
        threads: vec![wait(1, 2), wait(2, 1)],
    };
    let last = seen.samples.last_mut().unwrap();
    last.waits.push((set("0-3"), waits));
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
        seen.samples[1].cpu_ms = vec![(set("3"), 200)];
        seen
    };
    let own = seen("main:80 compute:44 MPI_Wtime:44");
    check(&own, false, "", "there is progress");
    // MPI spins: there it says nothing.
    let text = "nothing changed here, while others went on";
    check(&seen("main:80 work:31 usleep:31"), true, "3", text);
}

#[test]
fn processor_time_is_summed_over_the_samples_and_told_of_a_group() {
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
fn who_could_not_be_stopped_is_told_with_the_kernels_word() {
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
        ["the kernel has it in state D, in nfs_wait"]
    );
    assert!(told("9").what.contains("too many different stacks"));
}
