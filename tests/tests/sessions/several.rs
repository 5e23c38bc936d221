//! Servers that own several tasks, a gdb each.

use std::os::unix::ffi::OsStrExt;

use nix::sys::signal::Signal;
use sdm_core::message::Health;
use sdm_debug::command::StartSpec;
use sdm_debug::{BackendSettings, Command};
use sdm_idset::IdSet;
use sdm_session::{SendOptions, SessionConfig};
use sdm_tests::place::{Compiler, Place};
use sdm_tests::run::{Run, evaluate};
use sdm_tests::{binaries, leftovers, processes};

/// The tasks of the two servers.
const TASKS: [std::ops::RangeInclusive<u32>; 2] = [0..=5, 6..=7];

fn start(place: &Place) -> Run {
    let program = place.compile("work", Compiler::C);
    let mut run = Run::start(&SessionConfig {
        tasks: TASKS.map(IdSet::from_range).to_vec(),
        backend: BackendSettings::Gdb,
        binaries: Some(binaries::folder()),
        ..SessionConfig::local(2)
    });
    let spec = StartSpec {
        program: program.as_os_str().as_bytes().to_vec(),
        args: vec![b"spin".to_vec()],
        ..StartSpec::default()
    };
    let all = run.all();
    assert_eq!(run.ask(&all, &Command::Start(spec)).answered, all);
    run
}

#[test]
fn equal_answers_of_one_server_are_merged() {
    let place = Place::new();
    let mut run = start(&place);
    let all = run.all();
    let ledger = run.ask(&all, &evaluate("40 + 2"));
    assert_eq!((ledger.answered, ledger.classes.len()), (all.clone(), 1));
    let set = Command::SetVariable {
        expression: "rank = 1".to_owned(),
    };
    let [first, second] = TASKS.map(IdSet::from_range);
    let some = IdSet::from_range(1..=6);
    assert_eq!(run.ask(&some, &set).answered, some);
    let values = run.ask(&all, &evaluate("rank")).values();
    let ones = values.iter().filter(|(_, value)| *value == "1");
    assert_eq!(ones.map(|(task, _)| *task).collect::<IdSet>(), some);
    // The tasks of one server run, those of the other answer.
    let going = run.send(&first, &Command::Continue, &SendOptions::default());
    let ledger = run.ask(&second, &evaluate("rank"));
    assert_eq!(ledger.answered, second);
    let stop = run.ask(&first, &Command::Interrupt);
    assert_eq!(stop.answered, first);
    assert_eq!(run.finish(going).answered, first);
    run.close();
}

#[test]
fn killed_server_leaves_no_gdb_and_no_program() {
    let place = Place::new();
    let mut run = start(&place);
    let [first, second] = TASKS.map(IdSet::from_range);
    let server = run.server(0);
    let below: Vec<u32> = leftovers::descendants_living(server);
    let named = |name: &str| {
        let names = below.iter().map(|pid| processes::name(*pid));
        names.filter(|it| it == name).count()
    };
    assert_eq!(
        (named("gdb"), named("work"), named("sdm-warden")),
        (6, 6, 1)
    );
    // Some tasks run, some are stopped, and two have a gdb that reads no input: it waits for the function that it
    // calls.
    let going = IdSet::from_range(0..=2);
    let calling = IdSet::from_range(4..=5);
    let options = SendOptions::default();
    let going = run.send(&going, &Command::Continue, &options);
    let call = evaluate("((int (*)(int)) sleep)(1000)");
    let calling = run.send(&calling, &call, &options);
    assert_eq!(run.ask(&second, &evaluate("1")).answered, second);
    processes::signal(server, Signal::SIGKILL);
    run.wait_health(&first, Health::Lost);
    for id in [going, calling] {
        let ledger = run.finish(id);
        assert_eq!(ledger.lost, ledger.to);
    }
    for pid in below {
        processes::wait_state(pid, "ZX");
    }
    let all = run.all();
    let ledger = run.ask(&all, &evaluate("1"));
    assert_eq!((ledger.answered, ledger.lost), (second, first));
    run.close();
}
