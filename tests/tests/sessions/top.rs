//! `sdm top` on a terminal, by keys, with a real agent of this host.

use sdm_tests::clusters::Shell;
use sdm_tests::terminal::Terminal;

#[test]
fn a_job_is_seen_submitted_and_ended_by_keys() {
    let shell = Shell::new();
    let _done = shell.sdm("cluster add here local").done();
    let first = shell.submit(&["--name", "sleeps", "--", "sleep", "1000"]);
    shell.wait_job(&first, "jobState", "RUNNING");

    let words = shell.lowered(&["top"]);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let mut terminal = Terminal::run(&shell.place, "/usr/bin/env".as_ref(), &words, 120);
    terminal.wait("sleeps");
    // What its agent tells comes without a key.
    let second = shell.submit(&["--name", "comes-later", "--", "sleep", "1000"]);
    terminal.wait("comes-later");
    // Ctrl-L writes every cell anew, else only cells that differ come; blank cells never do, so that words are waited for.
    terminal.keys("1\x0c");
    terminal.wait("managers");
    terminal.keys("2\x0c");
    terminal.wait("machines");
    terminal.keys("3c\x0c");
    terminal.wait("really?");
    terminal.keys("n\x0c");
    terminal.wait("done");
    // The selection is on the job that it was on before the other one came.
    terminal.keys("cy");
    shell.wait_job(&first, "jobState", "TERMINATED");
    terminal.keys(&format!(":cancel {second}\r"));
    shell.wait_job(&second, "jobState", "TERMINATED");
    terminal.keys("\x0c");
    terminal.wait("TERMINATED");
    terminal.keys("q");
    assert_eq!(terminal.leave().0, 0);
    let _done = shell.sdm("cluster remove here").done();
    shell.place.assert_gone();
}

#[test]
fn a_terminal_that_can_show_no_screen_is_told_what_can_be_had() {
    let shell = Shell::new();
    shell
        .sdm("top")
        .refused(1, "a screen needs a terminal; `sdm jobs --watch`");
    let words = shell.lowered(&["top"]);
    let mut words: Vec<&str> = words.iter().map(String::as_str).collect();
    words.insert(0, "TERM=dumb");
    let terminal = Terminal::run(&shell.place, "/usr/bin/env".as_ref(), &words, 120);
    let (code, text) = terminal.leave();
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("TERM=dumb: this terminal cannot"), "{text}");
}
