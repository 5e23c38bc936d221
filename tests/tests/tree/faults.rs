//! Servers that die or are stopped, with real processes. Each task of a command is answered, failed, missing or lost,
//! and exactly one of these. The other servers answer, and every affected task is named.

use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use sdm_core::message::Health;
use sdm_core::topology::Topology;
use sdm_debug::Command;
use sdm_idset::{IdSet, TaskId};
use sdm_session::{SendOptions, SessionConfig};
use sdm_tests::processes;
use sdm_tests::run::{Run, evaluate, fake, within};

const _: () = sdm_tests::run::test_group("crowded", "16 servers");

const SERVERS: u32 = 64;

/// The servers that are hit: server i owns task i. In the binomial tree of 64 servers below the master,
/// server 31 is the master's largest child (with 32-62 below it) and server 7 has seven below it.
const VICTIMS: [(&str, &[u32]); 4] = [
    ("a leaf", &[62]),
    ("an inner server", &[7]),
    ("the master's largest child", &[31]),
    ("five at once", &[3, 15, 16, 47, 63]),
];

/// Queries take their time, so that they are under way when something happens.
const SLOW: &str = "answer = 150ms..300ms\nvalue n = 0\n";
/// Tasks that print while they run.
const NOISY: &str = "continue = never\noutput = 20ms line {n} of {rank}\nvalue n = 0\n";

/// The configuration of a session in a binomial tree, where many servers are below others.
fn binomial(scenario: &str) -> SessionConfig {
    SessionConfig {
        topology: Topology::Binomial,
        ..fake(SERVERS, scenario)
    }
}

fn set(ids: &[u32]) -> IdSet {
    ids.iter().copied().map(TaskId).collect()
}

fn signal_all(run: &Run, victims: &[u32], signal: Signal) {
    let servers = processes::servers(run.mark());
    for victim in victims {
        processes::signal(servers[victim], signal);
    }
}

fn count_up() -> Command {
    Command::SetVariable {
        expression: "n = n + 1".to_owned(),
    }
}

/// The living answer, the dead are lost, and each of the living has counted as far as `count`.
fn check_survivors(run: &mut Run, dead: &IdSet, count: u32) -> Duration {
    let all = run.all();
    let begin = Instant::now();
    let ledger = run.ask(&all, &evaluate("n"));
    assert_eq!(ledger.lost, *dead);
    assert_eq!(ledger.answered, all.difference(dead));
    for (task, value) in ledger.values() {
        assert_eq!(
            value,
            count.to_string(),
            "task {task} did it once each time"
        );
    }
    begin.elapsed()
}

#[test]
fn killed_servers_are_lost_during_commands() {
    let mut run = Run::start(&binomial(SLOW));
    run.start_tasks();
    let all = run.all();
    let mut dead = IdSet::new();
    for (count, (name, victims)) in (1..).zip(VICTIMS) {
        let id = run.send(&all, &count_up(), &SendOptions::default());
        signal_all(&run, victims, Signal::SIGKILL);
        dead.union_with(&set(victims));
        let reported = run.wait_health(&set(victims), Health::Lost);
        let ledger = run.finish(id);
        assert!(ledger.lost.is_subset(&dead), "{}", ledger.lost);
        assert!(ledger.failed.is_empty() && ledger.missing.is_empty());
        let answered = check_survivors(&mut run, &dead, count);
        println!("kill -9 of {name}: reported after {reported:?}, all answered in {answered:?}");
    }
    run.close();
}

#[test]
fn stopped_servers_are_silent_and_recover_during_commands() {
    let mut run = Run::start(&binomial(SLOW));
    run.start_tasks();
    let all = run.all();
    for (count, (name, victims)) in (1..).zip(VICTIMS) {
        let stopped = set(victims);
        let id = run.send(&all, &count_up(), &SendOptions::default());
        signal_all(&run, victims, Signal::SIGSTOP);
        let reported = run.wait_health(&stopped, Health::Silent);
        // A query with a time limit ends although some servers are stopped; the missing tasks are reported.
        let begin = Instant::now();
        let query = run.send(&all, &evaluate("n"), &within(Duration::from_millis(400)));
        let ledger = run.finish(query);
        assert!(stopped.is_subset(&ledger.missing), "{:?}", ledger.reasons);
        assert!(ledger.lost.is_empty(), "{} are only stopped", ledger.lost);
        let answered = begin.elapsed();
        // All tasks of running servers answer, also those below a stopped one.
        let others = all.difference(&stopped);
        assert_eq!(run.ask(&others, &evaluate("n")).answered, others);
        signal_all(&run, victims, Signal::SIGCONT);
        let back = run.wait_health(&stopped, Health::Reachable);
        let ledger = run.finish(id);
        assert_eq!(ledger.answered, all, "all did it in the end");
        // The missing answers follow, marked late (the ledger checks the mark).
        run.wait_until("late answers", |run| run.ledgers[&query].missing.is_empty());
        check_survivors(&mut run, &IdSet::new(), count);
        println!(
            "SIGSTOP of {name}: reported after {reported:?}, the others answered in {answered:?}, \
             back {back:?} after SIGCONT"
        );
    }
    run.close();
}

#[test]
fn killed_servers_are_lost_during_output() {
    let mut run = Run::start(&binomial(NOISY));
    run.start_tasks();
    let all = run.all();
    let mut dead = IdSet::new();
    let going = run.send(&all, &Command::Continue, &SendOptions::default());
    for (name, victims) in VICTIMS {
        let before = run.events.len();
        run.wait_until("output", |run| run.events.len() > before + 64);
        signal_all(&run, victims, Signal::SIGKILL);
        dead.union_with(&set(victims));
        let reported = run.wait_health(&set(victims), Health::Lost);
        println!("kill -9 of {name} during output: reported after {reported:?}");
        assert_eq!(run.ledgers[&going].lost, dead, "their run is over");
    }
    let stop = run.ask(&all, &Command::Interrupt);
    assert_eq!(
        (stop.lost, stop.answered),
        (dead.clone(), all.difference(&dead))
    );
    let ledger = run.finish(going);
    assert_eq!(
        (ledger.lost, ledger.answered),
        (dead.clone(), all.difference(&dead))
    );
    check_survivors(&mut run, &dead, 0);
    run.close();
}

#[test]
fn stopped_servers_are_silent_and_recover_during_output() {
    let mut run = Run::start(&binomial(NOISY));
    run.start_tasks();
    let all = run.all();
    let going = run.send(&all, &Command::Continue, &SendOptions::default());
    for (name, victims) in VICTIMS {
        let before = run.events.len();
        run.wait_until("output", |run| run.events.len() > before + 64);
        signal_all(&run, victims, Signal::SIGSTOP);
        let reported = run.wait_health(&set(victims), Health::Silent);
        signal_all(&run, victims, Signal::SIGCONT);
        let back = run.wait_health(&set(victims), Health::Reachable);
        println!("SIGSTOP of {name} during output: reported after {reported:?}, back {back:?}");
    }
    let stop = run.ask(&all, &Command::Interrupt);
    assert_eq!(stop.answered, all);
    assert_eq!(run.finish(going).answered, all);
    check_survivors(&mut run, &IdSet::new(), 0);
    run.close();
}
