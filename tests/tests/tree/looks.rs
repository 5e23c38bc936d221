//! A thousand sleeping processes below servers of 32 hosts, sampled without gdb: real snapshots through the tree.

use std::io::pipe;
use std::process::{Child, Command as Program, Stdio};

use sdm_debug::command::LookSpec;
use sdm_debug::rules::{self, Merged};
use sdm_debug::{BackendSettings, Command};
use sdm_idset::IdSet;
use sdm_session::{ClassAnswer, DebugSession, SendOptions, SessionConfig, SessionEvent};
use sdm_tests::binaries;
use sdm_tests::ordinary::lower;
use sdm_tests::place::{Compiler, Place};
use sdm_tests::processes;
use sdm_tests::run::{BOUND, Run};

const _: () = sdm_tests::run::test_group("crowded", "a thousand processes, and 32 servers");

const RANKS: u32 = 1000;
const HOSTS: u32 = 32;

/// The tasks of each host.
fn shares() -> Vec<IdSet> {
    let begin = |host: u32| host * RANKS / HOSTS;
    let share = |host| IdSet::from_range(begin(host)..=begin(host + 1) - 1);
    (0..HOSTS).map(share).collect()
}

/// Samples all tasks; the answer has one class.
fn sample(run: &mut Run, pids: Vec<(u32, i32)>) -> (IdSet, Merged) {
    let command = Command::Look(LookSpec {
        pids,
        ..LookSpec::default()
    });
    let options = SendOptions {
        timeout: Some(BOUND),
        rule: rules::rule_of(&command),
        ..SendOptions::default()
    };
    let all = run.all();
    let asked = run.session.send(&all, &command, &options);
    let mut answers = Vec::new();
    loop {
        match run.session.next_event(Some(BOUND)).expect("an event") {
            SessionEvent::Answer { id, classes, .. } if id == asked => answers.extend(classes),
            SessionEvent::Complete { id } if id == asked => break,
            _ => {}
        }
    }
    assert_eq!(answers.len(), 1, "{answers:?}");
    let class = answers.remove(0);
    match class.answer {
        ClassAnswer::Merged(merged) => (class.tasks, merged),
        other => panic!("merged: {other:?}"),
    }
}

#[test]
fn a_thousand_processes_of_32_hosts_are_sampled() {
    let place = Place::new();
    let program = place.compile("work", Compiler::C);
    // All read from one pipe, and end with it.
    let (reader, writer) = pipe().expect("a pipe");
    let start = |_| {
        let mut command = Program::new(&program);
        command.arg("echo").stdout(Stdio::null());
        command.stdin(reader.try_clone().expect("a descriptor"));
        lower(&mut command).spawn().expect("it was compiled")
    };
    let mut processes: Vec<Child> = (0..RANKS).map(start).collect();
    for process in &processes {
        processes::wait_state(process.id(), "S");
    }
    let config = SessionConfig {
        backend: BackendSettings::Gdb,
        binaries: Some(binaries::folder()),
        tasks: shares(),
        ..SessionConfig::local(HOSTS).over_loopback(HOSTS)
    };
    let mut run = Run::start(&config);
    let pids = (0..).zip(processes.iter().map(|it| it.id().cast_signed()));
    let (tasks, merged) = sample(&mut run, pids.collect());
    assert_eq!(tasks, IdSet::all_below(RANKS));
    let Merged::Stacks(stacks) = merged else {
        panic!("stacks: {merged:?}");
    };
    let tree = stacks.tree();
    assert_eq!(tree.roots.len(), 1, "{tree:?}");
    let main = &tree.roots[0];
    let names = [&main.frame, &main.children[0].frame].map(|it| &*it.function);
    assert_eq!(names, ["main", "echo"], "{tree:?}");
    assert_eq!(main.children[0].tasks, tasks, "{tree:?}");
    run.close();
    for process in &processes {
        assert_eq!(processes::tracer(process.id()), None);
    }
    drop(writer);
    for process in &mut processes {
        let status = process.wait().expect("it is a child");
        assert_eq!(status.code(), Some(0));
    }
}
