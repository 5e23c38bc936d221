//! The visible prompt shows the present state, also while the user types.

use nix::sys::signal::Signal;
use sdm_tests::place::{Compiler, Place};
use sdm_tests::processes;
use sdm_tests::terminal::Terminal;

/// Ranks of a job whose master has died are not shown as stopped, and a line that was begun can still be completed.
#[test]
fn prompt_shows_lost_ranks_as_lost() {
    let place = Place::new();
    let _program = place.compile("work", Compiler::C);
    let args = ["run", "-n", "3", "--", "./work", "spin"];
    let mut terminal = Terminal::start(&place, &args, 100);
    terminal.wait("[all 3: 3 stopped] (sdm) ");
    terminal.keys("info breakp");
    terminal.wait("info breakp");
    let masters = place.pids("sdm-master");
    let [master] = masters[..] else {
        panic!("one master, not {masters:?}");
    };
    processes::signal(master, Signal::SIGKILL);
    terminal.wait("the job is gone: ");
    terminal.wait("[all 3: 3 lost]    (sdm) info breakp");
    let shown = terminal.shown();
    let last = shown.lines().last().unwrap_or_default();
    assert_eq!(last, "[all 3: 3 lost]    (sdm) info breakp", "{shown}");
    terminal.keys("oints\n");
    terminal.wait("No breakpoints.");
    terminal.wait("[all 3: 3 lost] (sdm) ");
    terminal.keys("quit\n");
    let (code, screen) = terminal.finish();
    assert_eq!(code, 0, "{screen}");
}

/// Ranks that have ended meanwhile are not shown as running; a prompt wider than the earlier one leaves out the ranks.
#[test]
fn prompt_shows_ranks_that_ended() {
    let place = Place::new();
    let _program = place.compile("work", Compiler::C);
    let args = ["run", "-n", "2", "--", "./work", "spin"];
    let mut terminal = Terminal::start(&place, &args, 100);
    terminal.wait("[all 2: 2 stopped] (sdm) ");
    terminal.keys("continue &\n");
    terminal.wait("[all 2: 2 running] (sdm) ");
    let mut programs = place.pids("work");
    programs.retain(|pid| processes::name(*pid) == "work");
    assert_eq!(programs.len(), 2, "{programs:?}");
    for program in programs {
        processes::signal(program, Signal::SIGUSR1);
    }
    terminal.wait("[2 signalled]      (sdm) ");
    terminal.keys("\n");
    terminal.wait("[all 2: 2 signalled] (sdm) ");
    terminal.keys("quit\n");
    let (code, screen) = terminal.finish();
    assert_eq!(code, 0, "{screen}");
}
