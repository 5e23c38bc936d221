//! Ctrl-C, Ctrl-Z, Ctrl-D and `quit` at a real terminal, over an MPI job.

use nix::sys::signal::Signal;
use sdm_idset::TaskId;
use sdm_tests::place::{Compiler, Place};
use sdm_tests::processes;
use sdm_tests::run::until;
use sdm_tests::terminal::Terminal;
use sdm_tests::united::printed_by;

const CTRL_C: &str = "\x03";
const CTRL_D: &str = "\x04";
const CTRL_Z: &str = "\x1a";

/// Four ranks of a job under `mpirun`, held at `main`.
fn start<'a>(place: &'a Place, program: &str) -> Terminal<'a> {
    let args = format!("run -n 4 --launcher mpirun --tasks-per-server 1 -- {program}");
    let args: Vec<_> = args.split(' ').collect();
    let mut terminal = Terminal::start(place, &args, 200);
    terminal.wait("(sdm) ");
    let held = "ranks 0-3 (4): at main ()";
    assert!(terminal.united().contains(held), "{}", terminal.text());
    terminal
}

#[test]
fn ctrl_c_stops_every_task_without_killing() {
    let place = Place::new();
    let _halo = place.compile("halo", Compiler::OpenMpi);
    // It computes for ever.
    let mut terminal = start(&place, "./halo 1000000000");
    terminal.ask("tbreak solve", "breakpoint 1");
    terminal.ask("continue", "stopped at breakpoint 1");
    let all = "ranks 0-3 (4): stopped at breakpoint 1";
    assert!(terminal.united().contains(all), "{}", terminal.text());
    for _ in 0..2 {
        terminal.keys("continue\n");
        terminal.wait("continue: 0/4 stopped, running: 0-3 (");
        terminal.keys(CTRL_C);
        terminal.wait("interrupted");
        terminal.wait("[all 4: 4 stopped] (sdm) ");
    }
    let stacks = terminal.ask("stacks", "not shown\n");
    assert!(
        stacks.contains("ranks 0-3 (4): main () at halo.c:"),
        "{stacks}"
    );
    assert!(stacks.contains("solve () at halo.c:"), "{stacks}");
    let ranks = terminal.ask("ranks", "stopped");
    assert!(!ranks.contains("exited"), "{ranks}");
    quit(terminal, &place, "halo");
}

/// `quit` asks once; the answer no returns to the prompt.
fn quit(mut terminal: Terminal<'_>, place: &Place, program: &str) {
    terminal.keys("quit\n");
    terminal.wait("kill 4 ranks started here? (y/n/detach) ");
    terminal.keys("n\n");
    terminal.wait("(sdm) ");
    terminal.keys(CTRL_D);
    terminal.wait("kill 4 ranks started here? (y/n/detach) ");
    let program = place.path().join(program);
    assert_eq!(place.pids(&program.display().to_string()).len(), 4);
    terminal.keys("y\n");
    let (code, screen) = terminal.finish();
    assert_eq!(code, 0, "{screen}");
}

#[test]
fn a_second_ctrl_c_and_ctrl_z_return_the_prompt() {
    let place = Place::new();
    let program = place.compile("hangs", Compiler::OpenMpi);
    // Rank 3 is in an uninterruptible system call until its child has ended.
    let mut terminal = start(&place, "./hangs in_kernel");
    terminal.keys("continue\n");
    terminal.wait("running: 0-3 (");
    terminal.keys(CTRL_Z);
    terminal.wait("[all 4: 4 running] (sdm) ");
    let ranks = place.pids(&program.display().to_string());
    let is_child = |pid: &u32| processes::parent(*pid).is_some_and(|it| ranks.contains(&it));
    let mut child = None;
    until("rank 3 has a child", || {
        let there = place.pids(&program.display().to_string());
        child = there.into_iter().find(is_child);
        child.is_some()
    });
    // Every report redraws the prompt; this is the last one.
    terminal.wait_displayed(&["rank 3: the process has forked a child"]);
    let is_ready = |rank| printed_by(&terminal.shown(), TaskId(rank)) == ["ready"];
    until("all are ready", || (0..4).all(is_ready));
    // At an idle prompt Ctrl-C clears the line.
    terminal.keys("print 11");
    terminal.wait("print 11");
    terminal.keys(CTRL_C);
    terminal.wait("(sdm) ");
    terminal.ask("print 22", "running: ranks 0-3 (4) (interrupt first)\n");
    terminal.keys("wait\n");
    terminal.wait("wait: 0/4 stopped");
    terminal.keys(CTRL_C);
    terminal.wait("wait: 3/4 stopped, running: 3 (");
    terminal.keys(CTRL_C);
    terminal.wait("[all 4: 3 stopped, 1 running] (sdm) ");
    terminal.keys("wait\n");
    terminal.wait("wait: 3/4 stopped, running: 3 (");
    processes::signal(child.expect("it was found"), Signal::SIGKILL);
    terminal.wait("interrupted");
    terminal.wait("[all 4: 4 stopped] (sdm) ");
    quit(terminal, &place, "hangs");
}

/// While a command waits, the status line shows the possible keys, and typed text is shown after it until the prompt
/// takes it.
#[test]
fn typeahead_is_kept_and_status_line_shows_keys() {
    let place = Place::new();
    let _program = place.compile("loop", Compiler::C);
    let mut terminal = Terminal::start(&place, &["run", "-n", "2", "./loop"], 80);
    terminal.wait("(sdm) ");
    terminal.keys("continue\n");
    terminal.wait(" s); ^C stops them, ^Z returns to the prompt");
    terminal.keys("print 7*6x");
    terminal.wait("returns to the prompt > print 7*6x");
    terminal.keys("\x7f");
    terminal.wait("returns to the prompt > print 7*6");
    // The line is redrawn with the typed text.
    terminal.wait("returns to the prompt > print 7*6");
    terminal.keys(CTRL_C);
    terminal.wait("interrupted");
    terminal.wait("(sdm) print 7*6");
    terminal.keys("\n");
    terminal.wait("ranks 0-1 (2): 42");
    terminal.keys("continue\n");
    terminal.wait("^C stops them");
    terminal.keys("interrupt\nwait\nprint 11*");
    terminal.wait("interrupt | wait | print 11*");
    terminal.keys(&format!("2\n{CTRL_Z}"));
    terminal.wait("(sdm) interrupt");
    terminal.wait("(sdm) wait");
    terminal.wait("ranks 0-1 (2): 22");
    terminal.wait("(sdm) ");
    terminal.keys("quit\ny\n");
    let (code, screen) = terminal.finish();
    assert_eq!(code, 0, "{screen}");
}
