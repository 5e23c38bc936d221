//! `SDM_LOG=info` logs each event with its time and member; without it nothing is logged.

use std::collections::BTreeMap;

use nix::sys::signal::Signal;
use sdm_tests::place::{Compiler, Place};
use sdm_tests::processes;
use sdm_tests::sdm::{Running, Sdm};

/// Parses a line of the log: its spans, and the text after them.
fn parse(line: &str) -> (String, String) {
    let mut words = line.splitn(2, ' ');
    let time = words.next().expect("a time");
    let wanted = "0000-00-00T00:00:00.000000Z";
    let digits = time.replace(|c: char| c.is_ascii_digit(), "0");
    assert_eq!(digits, wanted, "{line}");
    let rest = words.next().expect("a level").trim_start();
    let (level, rest) = rest.split_once(' ').expect("a level");
    assert!(["INFO", "WARN", "ERROR"].contains(&level), "{line}");
    let (spans, text) = rest.split_once(": ").expect("spans");
    (spans.to_owned(), text.to_owned())
}

/// The pids of the servers, as the log has them.
fn pids(run: &Running<'_>) -> BTreeMap<u32, u32> {
    let text = run.err.text();
    let came = text.lines().filter(|line| line.contains("server came"));
    let field = |line: &str, name: &str| {
        let value = line.split_whitespace().find_map(|it| it.strip_prefix(name));
        value.and_then(|it| it.parse().ok()).expect("a number")
    };
    came.map(|line| (field(line, "server="), field(line, "pid=")))
        .collect()
}

#[test]
fn killed_server_is_logged() {
    let place = Place::new();
    let work = place.compile("work", Compiler::C);
    // A chain of servers, so that one is adopted.
    let mut run = Sdm::run(&place, 3)
        .env("SDM_LOG", "info")
        .args(["--topology", "kary:1", "--tasks-per-server", "1"])
        .talk()
        .program(&work, &[])
        .spawn();
    run.ask("print 6*7", "ranks 0-2 (3): 42");
    let middle = pids(&run)[&1];
    let before = run.err.mark();
    processes::signal(middle, Signal::SIGKILL);
    run.err
        .wait(before, "this server connects to the children of server 1");
    run.err.wait(before, "not reached: server 1 on ");
    run.err.wait(before, "Lost: server 1 on ");
    run.ask("print 6*8", "ranks 0,2 (2): 48");
    let done = run.finish();
    let spans: Vec<_> = done.err.lines().map(parse).collect();
    let said = |of: &str, text: &str| {
        let found = spans
            .iter()
            .any(|(spans, said)| spans.starts_with(of) && said.contains(text));
        assert!(found, "no {text:?} of {of:?} in {done}");
    };
    said("session{id=", "starts: local");
    said("server{id=2 ", "started");
    said("master{session=", "link up");
    said("session{id=", "stands");
    said("session{id=", "asked: print");
    said("server{id=2 ", "received");
    said("server{id=2 ", "gdb started");
    said("server{id=2 ", "begins print");
    said("server{id=2 ", "answered");
    said("server{id=0 ", "link down");
    let link = |(spans, _): &&(String, String)| spans.contains(":link{id=");
    assert!(spans.iter().any(|it| link(&it)), "{done}");
    said("session{id=", "Lost: ");
    said("server{id=2 ", "gdb ended");
    said("session{id=", "ends");
    let command = |(spans, _): &&(String, String)| spans.contains(":command{id=");
    assert!(spans.iter().any(|it| command(&it)), "{done}");
    // All lines belong to one session, and none is in the session's own output.
    let ids: Vec<&str> = spans
        .iter()
        .filter_map(|(spans, _)| spans.split(['{', ' ', '}']).find_map(session_of))
        .collect();
    assert!(
        ids.len() == spans.len() && ids.iter().all(|id| id == &ids[0]),
        "{done}"
    );
    assert!(!done.out.contains(" INFO "), "{done}");
}

fn session_of(field: &str) -> Option<&str> {
    let id = field
        .strip_prefix("session=")
        .or_else(|| field.strip_prefix("id="));
    id.filter(|id| id.len() == 16)
}

#[test]
fn nothing_is_logged_by_default() {
    let place = Place::new();
    let work = place.compile("work", Compiler::C);
    let done = Sdm::run(&place, 2)
        .lines(&["print 6*7"])
        .program(&work, &[])
        .finish()
        .code(0);
    assert_eq!(done.err, "", "{done}");
}
