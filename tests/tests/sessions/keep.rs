//! Sessions that outlive their terminal, on real terminals with real gdbs.

use std::process::Command;

use nix::sys::signal::Signal;
use sdm_tests::binaries;
use sdm_tests::place::{Compiler, Place};
use sdm_tests::processes;
use sdm_tests::terminal::Terminal;

/// `sdm WORDS`: its exit code, and its output on either stream.
fn say(place: &Place, words: &[&str]) -> (Option<i32>, String) {
    let done = Command::new(binaries::folder().join("sdm"))
        .args(words)
        .env("XDG_RUNTIME_DIR", place.runtime())
        .output()
        .expect("sdm starts");
    let text = [done.stdout, done.stderr].concat();
    (
        done.status.code(),
        String::from_utf8_lossy(&text).into_owned(),
    )
}

/// The numbers of the program's lines that are complete in a text.
fn line_numbers(text: &str) -> Vec<u32> {
    let whole = text
        .split_inclusive('\n')
        .filter(|line| line.ends_with('\n'));
    whole
        .filter_map(|line| {
            let rest = line.split_once(": line ")?.1;
            rest.split_whitespace().next()?.parse().ok()
        })
        .collect()
}

/// The detached session `held` is listed as text and as JSON.
fn check_list(place: &Place) {
    let (code, listed) = say(place, &["sessions"]);
    assert_eq!(code, Some(0));
    assert!(listed.starts_with("held  detached  "), "{listed}");
    assert!(listed.contains("run -n 1 -- ./work"), "{listed}");
    let (code, listed) = say(place, &["sessions", "--json"]);
    let listed: serde_json::Value = serde_json::from_str(&listed).expect("JSON");
    let one = &listed["sessions"][0];
    assert_eq!(
        (code, &one["name"], &one["attached"]),
        (Some(0), &"held".into(), &false.into())
    );
    assert!(
        one["command"]
            .as_str()
            .is_some_and(|it| it.contains("run -n 1 -- ./work")),
        "{listed}"
    );
}

/// While a signal stops the keeper of the session `held`, each command names the process and how it continues.
fn check_stopped(place: &Place) {
    let keeper = place.pids("sdm keeper held");
    let [keeper] = keeper[..] else {
        panic!("{keeper:?}");
    };
    processes::signal(keeper, Signal::SIGSTOP);
    processes::wait_state(keeper, "T");
    let hint = format!("`kill -CONT {keeper}` continues");
    let (code, listed) = say(place, &["sessions"]);
    let row = format!("held  stopped: {hint} the process that keeps it\n");
    assert_eq!((code, listed), (Some(0), row));
    let (_, listed) = say(place, &["sessions", "--json"]);
    let listed: serde_json::Value = serde_json::from_str(&listed).expect("JSON");
    let one = serde_json::json!({ "name": "held", "stopped_pid": keeper });
    assert_eq!(listed["sessions"][0], one);
    for words in [&["resume", "held"][..], &["resume"], &["detach"]] {
        let (_, told) = say(place, words);
        let expected =
            format!("session 'held': the process {keeper} that keeps it is stopped; {hint} it");
        assert!(told.contains(&expected), "{words:?}: {told}");
    }
    processes::signal(keeper, Signal::SIGCONT);
}

/// A session is detached by a key, attached again, taken by another terminal, and detached from elsewhere while the
/// program prints. Then it is attached again after a kill of the terminal's process. No output is lost or shown
/// twice, and the terminal that is attached at the end gets the exit code.
#[test]
fn kept_session_outlives_its_terminals() {
    let place = Place::new();
    let _program = place.compile("work", Compiler::C);
    let line = [
        "run",
        "--keep=held",
        "-n",
        "1",
        "--",
        "./work",
        "lines",
        "400000",
    ];
    let mut first = Terminal::start(&place, &line, 100);
    first.wait("session held is kept");
    first.ask("set var code = 7", "set var");
    first.keys("\x1c");
    let (code, screen) = first.leave();
    assert_eq!(code, 0, "{screen}");
    assert!(screen.contains("session held keeps running"), "{screen}");
    check_stopped(&place);
    check_list(&place);
    let again = Terminal::start(&place, &line, 100).leave();
    assert!(again.1.contains("'held' exists already"), "{again:?}");

    let mut second = Terminal::start(&place, &["resume"], 100);
    second.wait("(sdm) ");
    second.ask("print code", "rank 0: 7");
    let mut third = Terminal::start(&place, &["resume", "held"], 100);
    let (code, screen) = second.leave();
    assert_eq!(code, 0, "{screen}");
    assert!(
        screen.contains("was resumed at another terminal"),
        "{screen}"
    );

    third.wait("(sdm) ");
    third.keys("continue\n");
    third.wait(": line 20 ");
    let (code, told) = say(&place, &["detach"]);
    assert_eq!(
        (code, told.contains("keeps running")),
        (Some(0), true),
        "{told}"
    );
    // A line whose beginning was shown on this terminal is shown whole on the next.
    let (_, screen) = third.leave();
    let upto = screen
        .rfind("\nsdm: session held keeps running")
        .expect("told");
    let mut seen = line_numbers(&screen[..upto]);
    let mut fourth = Terminal::start(&place, &["resume", "held"], 100);
    fourth.wait("exited with code 7");
    fourth.wait("(sdm) ");
    fourth.kill();
    seen.extend(line_numbers(&fourth.leave().1));
    let count = u32::try_from(seen.len()).expect("some thousands");
    assert!(count > 4000, "{count}");
    let odd = (0..count).zip(&seen).find(|(wanted, got)| wanted != *got);
    assert_eq!(odd, None, "each once and in order");

    let mut fifth = Terminal::start(&place, &["resume", "held"], 100);
    fifth.wait("(sdm) ");
    fifth.keys("quit\n");
    let (code, screen) = fifth.finish();
    assert!(!screen.contains(": line "), "{screen}");
    assert_eq!(code, 0, "{screen}");
    assert!(say(&place, &["sessions"]).1.contains("no kept session"));
}

/// A killed keeper takes everything with it, and its name is free again.
#[test]
fn a_killed_keeper_leaves_nothing() {
    let place = Place::new();
    let _program = place.compile("work", Compiler::C);
    let line = ["run", "--keep=gone", "-n", "2", "--", "./work"];
    let mut terminal = Terminal::start(&place, &line, 100);
    terminal.wait("(sdm) ");
    let keepers = place.pids("keeper gone");
    let [keeper] = keepers[..] else {
        panic!("one keeper: {keepers:?}");
    };
    processes::signal(keeper, Signal::SIGKILL);
    let (code, screen) = terminal.finish();
    assert_eq!(code, 2, "{screen}");
    assert!(
        screen.contains("the process that keeps the session was killed"),
        "{screen}"
    );
    let (code, told) = say(&place, &["resume", "gone"]);
    assert_eq!(code, Some(2));
    assert!(told.contains("no such session"), "{told}");
}

#[test]
fn invalid_kept_session_is_refused_with_a_reason() {
    let place = Place::new();
    for (words, part) in [
        (&["resume", "../x"][..], "session '../x': a name has"),
        (&["detach"], "no kept session on this host"),
        (&["run", "--keep=a/b", "--", "./x"], "session 'a/b'"),
        (&["resume", "nobody"], "no such session"),
    ] {
        let (code, told) = say(&place, words);
        assert_eq!(code, Some(2), "{told}");
        assert!(told.contains(part), "{told}");
    }
    // No terminal, so nothing is started.
    let (code, told) = say(&place, &["run", "--keep", "--", "./x"]);
    assert_eq!(code, Some(2), "{told}");
    assert!(told.contains("must be a terminal"), "{told}");
    assert_eq!(say(&place, &["sessions"]).0, Some(0));
    place.assert_gone();
}

#[test]
fn keeper_without_its_starter_starts_nothing() {
    let place = Place::new();
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let mut keeper = sdm_tests::sdm::command(&place, binaries::folder().join("sdm"));
    keeper.args(["keeper", "alone", "--", "emulate", "-n", "1"]);
    keeper
        .env("XDG_RUNTIME_DIR", place.runtime())
        .stdout(writer);
    let output = keeper.output().expect("sdm starts");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(124), "{said}");
    assert!(
        said.contains("cannot keep the session: Broken pipe"),
        "{said}"
    );
    place.assert_gone();
}
