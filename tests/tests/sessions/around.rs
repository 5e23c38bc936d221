//! A stopped server whose children run: the prompt returns, the children answer, and late answers are marked as late.

use nix::sys::signal::Signal;
use sdm_tests::place::{Compiler, Place};
use sdm_tests::processes;
use sdm_tests::terminal::Terminal;

#[test]
fn servers_below_a_stopped_server_still_answer() {
    let place = Place::new();
    let _work = place.compile("work", Compiler::C);
    let options = ["-n", "8", "--topology", "binomial", "--timeout", "10"];
    let options = [&options[..], &["--tasks-per-server", "1"]].concat();
    let arguments = [&["run"], &options[..], &["--", "./work", "spin"]].concat();
    let mut terminal = Terminal::start(&place, &arguments, 120);
    terminal.wait("(sdm) ");
    terminal.keys("continue\n");
    terminal.wait("^C stops them");
    // In the binomial tree servers 4, 5 and 6 are below it.
    let inner = processes::servers(place.mark())[&3];
    processes::signal(inner, Signal::SIGSTOP);
    // One Ctrl-C: the second one would return to the prompt in any case.
    terminal.keys("\x03");
    terminal.wait("rank 3: not answering");
    terminal.wait("(sdm) ");
    terminal.keys("[0-2,4-7] print rank\n");
    terminal.wait("ranks 0-2,4-7 (7): 0");
    terminal.wait("(sdm) ");
    terminal.keys("print rank\n");
    terminal.wait("rank 3: no answer in time");
    terminal.wait("(sdm) ");
    processes::signal(inner, Signal::SIGCONT);
    terminal.wait("late, to `print rank`:");
    terminal.keys("quit\ny\n");
    let (code, screen) = terminal.finish();
    assert_eq!(code, 0, "{screen}");
}
