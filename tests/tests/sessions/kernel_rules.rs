//! Machines whose kernel forbids more than others: inspections name the rule that forbids them and do no harm, and the
//! user's own programs are debugged as far as the rule allows.

use std::process::Command;

use sdm_tests::place::{Compiler, Place};
use sdm_tests::sdm::{Done, Sdm};

use super::doctor_faults::OWN;

/// Runs `sdm WORDS PID` under a simulated scope of Yama, on a program that runs in the same namespaces of the
/// test's own. The last line of output is the program's state afterwards. `None`, with a message, where namespaces
/// are not allowed.
fn restricted(place: &Place, scope: u32, words: &[&str]) -> Option<Done> {
    let behind = format!("./restricted {scope}");
    in_namespaces(place, &under_scope(scope), &behind, words)
}

/// Commands that have this machine's files say that Yama has this scope.
fn under_scope(scope: u32) -> String {
    format!(
        "mount -t tmpfs none /proc/sys/kernel; mkdir /proc/sys/kernel/yama; \
         echo {scope} >/proc/sys/kernel/yama/ptrace_scope"
    )
}

fn in_namespaces(place: &Place, planting: &str, behind: &str, words: &[&str]) -> Option<Done> {
    let output = Command::new(OWN[0])
        .args(&OWN[1..])
        .args(["sh", "-ec", planting])
        .output()
        .expect("unshare is there");
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr).into_owned();
        println!(
            "SKIP: this machine lets an ordinary user plant no such fault: {}",
            why.trim()
        );
        return None;
    }
    let line = format!(
        "{planting}\nmkfifo wait; $less ./work echo <wait >/dev/null & exec 3>wait\n\
         until [ \"$(cat /proc/$!/comm)\" = work ] && grep -q '^State:.S' /proc/$!/status; do :; done\n\
         setpriv --bounding-set=-sys_ptrace {behind} \"$0\" \"$@\" $! && code=0 || code=$?\n\
         grep -E '^(State|TracerPid)' /proc/$!/status; exit $code"
    );
    let prefix = [&OWN[..], &["sh", "-ec", &line]].concat();
    let sdm = Sdm::wrapped(&prefix, place, words[0]);
    Some(sdm.args(&words[1..]).finish())
}

fn assert_unharmed(done: &Done) {
    assert!(done.out.contains("State:\tS"), "{done}");
    assert!(done.out.contains("TracerPid:\t0"), "{done}");
}

#[test]
fn forbidden_inspection_names_ptrace_scope() {
    for scope in 1..=3 {
        let place = Place::new();
        let _ = place.compile("work", Compiler::C);
        let _ = place.compile("restricted", Compiler::C);
        let Some(done) = restricted(&place, scope, &["stacks"]) else {
            return;
        };
        assert_unharmed(&done);
        let done = done.code(2);
        let said = format!("{}{}", done.out, done.err);
        let rule = match scope {
            // Whether a process allows it all the same only the attempt shows.
            1 => {
                "does not allow the process to be traced: kernel.yama.ptrace_scope is 1".to_owned()
            }
            _ => format!("kernel.yama.ptrace_scope={scope}"),
        };
        assert!(said.contains(&rule), "no {rule:?} in {done}");
        assert!(said.contains("run sdm as root"), "{done}");
    }
}

/// The real kernel permits tracing, as for a process that has called `prctl(PR_SET_PTRACER)`; no file shows that.
#[test]
fn process_that_allows_tracing_is_sampled_at_scope_1() {
    let place = Place::new();
    let _ = place.compile("work", Compiler::C);
    // The program has no more rights than `sdm`, which the kernel asks for, too.
    let planted = format!(
        "{}; less='setpriv --bounding-set=-sys_ptrace'",
        under_scope(1)
    );
    let Some(done) = in_namespaces(&place, &planted, "", &["stacks", "--gdb", "/no/gdb"]) else {
        return;
    };
    assert_unharmed(&done);
    let done = done.code(0);
    assert!(done.out.contains("echo () at work.c:"), "{done}");
    let place = Place::new();
    let _ = place.compile("work", Compiler::C);
    let done = in_namespaces(&place, &planted, "", &["attach", "-c", "bt"]);
    let done = done.expect("as before").code(124);
    assert!(done.err.contains("kernel.yama.ptrace_scope=1"), "{done}");
}

#[test]
fn started_program_is_traced_only_up_to_ptrace_scope_1() {
    let place = Place::new();
    let work = place.compile("work", Compiler::C);
    let restricted = place.compile("restricted", Compiler::C);
    let restricted = restricted.to_str().expect("text");
    let done = Sdm::behind(&[restricted, "1"], &place, 2).args(["--batch", "--no-report"]);
    let _ = done.program(&work, &[]).finish().code(0);
    for scope in ["2", "3"] {
        let done = Sdm::behind(&[restricted, scope], &place, 2).args(["--batch", "--no-report"]);
        let done = done.program(&work, &[]).finish().code(126);
        assert!(
            done.out.contains("the program could not be started"),
            "{done}"
        );
    }
}

#[test]
fn processes_hidden_by_hidepid_are_reported() {
    let place = Place::new();
    let _ = place.compile("work", Compiler::C);
    let hidden = "mount -t proc -o hidepid=2 proc /proc";
    let Some(done) = in_namespaces(&place, hidden, "", &["stacks"]) else {
        return;
    };
    assert_unharmed(&done);
    let done = done.code(2);
    assert!(done.err.contains("checks this (hidepid)"), "{done}");
}
