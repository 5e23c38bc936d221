//! Failing starts: servers that fail, stay away, lie, or announce an address at which nothing listens.

use std::time::Duration;

use sdm_core::transport::PortRange;
use sdm_idset::IdSet;
use sdm_session::SessionError;
use sdm_tests::disturbed::Disturbed;
use sdm_tests::leftovers;
use sdm_tests::run::{Run, evaluate, fake};

const _: () = sdm_tests::run::test_group("crowded", "24 servers");

/// Longer than a server takes to come, where it comes.
const LONG: Duration = Duration::from_secs(60);
/// Time limit for a server that does not come.
const SHORT: Duration = Duration::from_secs(10);

/// Starts a session that must fail, and checks that no process of it is left. Returns the error.
fn refused(lines: &str, wait: Duration) -> SessionError {
    let disturbed = Disturbed::new(lines);
    let error = match Run::try_start(&disturbed.config(6, wait)) {
        Ok(_) => panic!("it started, in spite of: {lines}"),
        Err(error) => error,
    };
    leftovers::assert_childless();
    println!("{error}");
    error
}

fn says(error: &SessionError, parts: &[&str]) {
    let text = error.to_string();
    for part in parts {
        assert!(text.contains(part), "{part:?} is not in: {text}");
    }
}

#[test]
fn failed_start_names_the_server() {
    let error = refused("[ $id = 3 ] && { echo no licence here >&2; exit 9; }", LONG);
    says(&error, &["server 3 exited with code 9", "no licence here"]);
    let error = refused("[ $id = 3 ] && export SDM_SERVER_ID=4", LONG);
    says(
        &error,
        &["two sdm-servers have the same number, server 4: pid "],
    );
    let error = refused(
        "[ $id = 3 ] && export SDM_SERVER_ID=70 SDM_SERVER_COUNT=71",
        LONG,
    );
    says(
        &error,
        &["server 70 connected, but only servers 0-5 were started"],
    );
    let error = refused(
        "[ $id = 2 ] && exec sleep 1000; [ $id = 5 ] && exec sleep 1000",
        SHORT,
    );
    says(
        &error,
        &["2 of 6 servers did not report within", "servers 2,5"],
    );
}

/// A server that announces an address without a listener: its parent cannot reach it.
const NOT_THERE: &str = "[ $id = 4 ] && { echo SDM1 server=4 host=here port=1 pid=$$ \
                         addresses=127.0.0.1; exec sleep 1000; }";

/// Script of a server that announces a port at which another server listens.
fn elsewhere(port: u16) -> String {
    format!(
        "[ $id = 4 ] && {{ echo SDM1 server=4 host=here port={port} pid=$$ addresses=127.0.0.1; \
         exec sleep 1000; }}"
    )
}

#[test]
fn unreachable_server_is_named_with_address_and_reason() {
    let error = refused(NOT_THERE, SHORT);
    says(
        &error,
        &["server 4 on here", "tcp://127.0.0.1:1", "refused"],
    );
    // A server of another session listens there: it has another key.
    let mut other = Run::start(&fake(2, ""));
    let port = other.port(0);
    let error = refused_beside(&elsewhere(port), &mut other);
    says(&error, &["server 4 on here", &format!("127.0.0.1:{port}")]);
    let all = other.all();
    other.start_tasks();
    assert_eq!(other.ask(&all, &evaluate("rank")).answered, all);
    other.close();
}

/// As [`refused`], while another session continues.
fn refused_beside(lines: &str, other: &mut Run) -> SessionError {
    let before = leftovers::children().len();
    let disturbed = Disturbed::new(lines);
    let error = match Run::try_start(&disturbed.config(6, SHORT)) {
        Ok(_) => panic!("it started, in spite of: {lines}"),
        Err(error) => error,
    };
    assert!(before >= 3, "master and servers of the other session");
    let servers = other.all();
    other.start_tasks();
    assert_eq!(other.ask(&servers, &evaluate("rank")).answered, servers);
    println!("{error}");
    error
}

#[test]
fn partial_start_continues_with_the_present_servers() {
    let lines = format!("[ $id = 2 ] && exit 3; [ $id = 5 ] && exec sleep 1000; {NOT_THERE}");
    let disturbed = Disturbed::new(&lines);
    let mut config = disturbed.config(8, SHORT);
    config.config.partial = true;
    let mut notes = Vec::new();
    let session = sdm_session::Session::start(&config, &mut |progress| notes.extend(progress.note));
    let mut run = Run::of(session.unwrap_or_else(|error| panic!("{error}")));
    let expect = [
        "server 2 exited with code 3 before all servers had reported",
        "the session starts without servers 2,5, which did not connect",
    ];
    assert_eq!(notes, expect);
    let there: IdSet = "0-1,3,6-7".parse().expect("a set");
    run.start_tasks();
    let all = run.all();
    assert_eq!(
        all.to_string(),
        "0-1,3-4,6-7",
        "server 4 came, and was lost"
    );
    let ledger = run.ask(&all, &evaluate("rank"));
    assert_eq!(ledger.answered, there);
    assert_eq!(ledger.lost.union(&ledger.failed).to_string(), "4");
    run.close();
}

#[test]
fn two_sessions_start_within_one_port_range() {
    // Below the ephemeral range; both try the same ports at the same time.
    let base = 21_000 + u16::try_from(std::process::id() % 100).expect("below 100") * 64;
    let config = |value: &str| {
        let mut config = fake(12, &format!("value who = {value}\n"));
        config.network.ports = PortRange::from(base);
        config
    };
    let mut first = Run::start(&config("1"));
    let mut second = Run::start(&config("2"));
    for (run, value) in [(&mut first, "1"), (&mut second, "2")] {
        run.start_tasks();
        let all = run.all();
        let ledger = run.ask(&all, &evaluate("who"));
        assert_eq!(ledger.answered, all);
        assert!(
            ledger.values().values().all(|said| said == value),
            "its own"
        );
    }
    let ports = |run: &Run| -> Vec<u16> { (0..12).map(|number| run.port(number)).collect() };
    let (mut all, second_ports) = (ports(&first), ports(&second));
    assert!(all.contains(&base), "{all:?} from {base}");
    assert!(
        second_ports
            .iter()
            .all(|port| *port > base && *port < base + 64)
    );
    all.extend(second_ports);
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 24, "nobody shares a port");
    first.close_beside_another();
    let all = second.all();
    assert_eq!(second.ask(&all, &evaluate("who")).answered, all);
    second.close();
}
