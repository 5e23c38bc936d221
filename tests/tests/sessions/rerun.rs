//! A job restarted from the prompt and from scripts: real gdb, real launchers.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use nix::libc::SYS_clock_nanosleep;
use nix::sys::signal::Signal;
use sdm_tests::place::{Compiler, Place};
use sdm_tests::processes;
use sdm_tests::run::until;
use sdm_tests::sdm::Sdm;
use sdm_tests::terminal::Terminal;
use sdm_tests::united::united;

/// True of a process of `loop` that sleeps between two steps.
fn sleeps_in_loop(pid: u32) -> bool {
    let call = processes::sleeps_in(&processes::of(pid)).map(|call| call.0);
    processes::name(pid) == "loop" && call == Some(SYS_clock_nanosleep)
}

/// A user changes a breakpoint and runs the job again. `sdm` asks first. The user's settings are kept, the temporary
/// breakpoint that was hit is not, and no process of the first job is left.
#[test]
fn restart_at_the_prompt_keeps_breakpoints_and_settings() {
    let place = Place::new();
    let _program = place.compile("loop", Compiler::C);
    let mut terminal = Terminal::start(&place, &["run", "-n", "2", "--", "./loop", "one"], 100);
    terminal.wait("(sdm) ");
    terminal.ask("tbreak step", "breakpoint 1 at");
    terminal.ask("break 16 if i > 1", "breakpoint 2 at");
    terminal.ask("[1] disable 2", "");
    terminal.ask("watch local_to_nobody_else", "No symbol");
    // The job waits at main: nothing is started for the first `run`.
    let first = terminal.ask("run", "stopped at breakpoint 1");
    assert!(!first.contains("beginning"), "{first}");
    terminal.ask("[0] print i", "rank 0: ");
    terminal.ask("up", "main");
    terminal.ask("watch i", "watchpoint 3: i");
    terminal.ask("set print address off", "");
    terminal.ask("display argc", "argc");
    terminal.ask("focus 1", "[1: ");
    terminal.keys("run a 'b c'\n");
    terminal.wait("end 2 ranks and start the job from the beginning? (y or n) ");
    terminal.keys("n\n");
    terminal.wait("the job was not started again");
    terminal.wait("(sdm) ");
    let before = place.pids("sdm-server");
    assert_eq!(before.len(), 1, "{before:?}");
    terminal.keys("run a 'b c'\ny\n");
    terminal.wait("starting again: ./loop one : ./loop a 'b c'");
    // Rank 1 has disabled the breakpoint, and runs on. Rank 0's stop is shown before the interrupt or together with
    // it, depending on the timing.
    let mut shown = terminal.wait("running: 1 ");
    until("rank 1 sleeps in its loop", || {
        place.pids("loop a b c").into_iter().any(sleeps_in_loop)
    });
    terminal.keys("\x03");
    shown += &terminal.wait("rank 1: interrupted");
    shown += &terminal.wait("(sdm) ");
    for wanted in [
        "breakpoint 3 was removed: No symbol \"i\" in current context",
        "rank 0: stopped at breakpoint 2",
        "rank 0: 1: argc = 2",
        "rank 1: 1: argc = 3",
    ] {
        assert!(shown.contains(wanted), "{wanted}: {shown}");
    }
    let after = place.pids("sdm-server");
    assert_eq!(after.len(), 1, "{after:?}");
    assert!(after.iter().all(|pid| !before.contains(pid)), "{after:?}");
    let listed = terminal.ask("info breakpoints", "");
    assert!(
        !listed.contains("tbreak") && !listed.contains("watch"),
        "{listed}"
    );
    assert!(listed.contains("already hit 1 time"), "{listed}");
    terminal.ask("all print argc", "Undefined command");
    terminal.ask("[all] print argc", "rank 1: 3");
    terminal.ask("[all] show args", "a 'b c'");
    terminal.ask("show print address", "is off");
    terminal.keys("[all] kill\n");
    terminal.wait("Kill the program on ranks 0-1 (2)? (y or n) ");
    terminal.ask("y", "killed");
    terminal.ask("[all] next", "`start` starts the job again");
    // Nothing runs, so nothing is asked.
    terminal.ask("[all] set args", "");
    let held = united(&terminal.ask("start", "at main ()"));
    assert!(held.contains("ranks 0-1 (2): at main ()"), "{held}");
    terminal.ask("[all] print argc", "ranks 0-1 (2): 1");
    terminal.ask("set confirm off", "");
    terminal.ask("release 1", "");
    terminal.keys("quit\n");
    let (code, screen) = terminal.finish();
    assert_eq!(code, 0, "{screen}");
}

/// A job that has ended, and one that is stopped in the middle, under each MPI; a script is not asked for a
/// confirmation.
#[test]
fn a_script_runs_an_mpi_job_twice() {
    for (launcher, compiler) in [("mpirun", Compiler::OpenMpi), ("mpiexec", Compiler::Mpich)] {
        let place = Place::new();
        let sum = place.compile("mpi_sum", compiler);
        let done = Sdm::run(&place, 3)
            .args(["--launcher", launcher])
            .lines(&["break main", "break add_up", "run", "continue"])
            .lines(&["[2] kill", "run 7", "print argc", "hold 1", "delete 1"])
            .lines(&["release", "continue &", "wait", "start", "info breakpoints"])
            .lines(&["delete", "run", "ranks"])
            .program(&sum, &[])
            .finish()
            .code(0);
        // The job is already stopped at the breakpoint's place, so it is restarted to reach it again.
        done.expect_part("run", "ranks 0-2 (3): stopped at breakpoint 1, main ()");
        done.expect_part(
            "continue",
            "ranks 0-2 (3): stopped at breakpoint 2, add_up ()",
        );
        done.expect_part("run 7", "ranks 0-2 (3): stopped at breakpoint 1, main ()");
        done.expect("print argc", "ranks 0-2 (3): 2\n");
        done.expect_part("wait", "ranks 0-2 (3): stopped at breakpoint 2, add_up ()");
        done.expect_part("start", "ranks 0-2 (3): at main ()");
        done.expect_part("info breakpoints", "add_up");
        done.expect_part("ranks", "ranks 0-2 (3)  exited");
        assert!(done.out.contains("[2] rank 2 of 3: sum 6\n"), "{done}");
    }
}

/// Read and access watchpoints exist again before the program runs.
#[test]
fn watchpoints_are_set_again_after_a_restart() {
    let place = Place::new();
    let tour = place.compile("tour", Compiler::C);
    let done = Sdm::run(&place, 2)
        .lines(&["rwatch called", "awatch global", "continue", "[1] continue"])
        .lines(&["run", "[0-1] continue", "info watchpoints"])
        .program(&tour, &[])
        .finish()
        .code(0);
    done.expect_part("continue", "ranks 0-1 (2): watchpoint 2 (global)");
    done.expect_part("[1] continue", "rank 1: watchpoint 1 (called)");
    done.expect_part("run", "ranks 0-1 (2): watchpoint 2 (global)");
    done.expect_part("[0-1] continue", "ranks 0-1 (2): watchpoint 1 (called)");
    let hits = "rwatch called\n\tbreakpoint already hit 1 time on ranks 0-1 (2)\n";
    done.expect_part("info watchpoints", hits);
}

/// The prompt stays and can try again after a next job that cannot be started.
#[test]
fn failed_restart_keeps_the_prompt() {
    let place = Place::new();
    let _program = place.compile("mpi_sum", Compiler::OpenMpi);
    let mpirun = place.path().join("mpirun");
    symlink("/usr/bin/mpirun.openmpi", &mpirun).unwrap();
    let line = [
        "run",
        "-n",
        "2",
        "--launcher",
        "./mpirun",
        "--",
        "./mpi_sum",
    ];
    let mut terminal = Terminal::start(&place, &line, 100);
    terminal.wait("(sdm) ");
    terminal.ask("break add_up", "breakpoint 1 at");
    terminal.ask("set confirm off", "");
    terminal.ask("kill", "killed");
    fs::remove_file(&mpirun).unwrap();
    terminal.ask("run", "the session has no job now; `run` tries again");
    terminal.ask("print 1", "the session has no job");
    terminal.ask("info breakpoints", "add_up");
    sdm_tests::leftovers::assert_none_left(|| {
        let left = place.pids("sdm-").into_iter();
        left.map(|pid| (pid, String::new())).collect()
    });
    symlink("/usr/bin/mpirun.openmpi", &mpirun).unwrap();
    terminal.ask("run", "stopped at breakpoint 1");
    let both = "ranks 0-1 (2): stopped at breakpoint 1";
    assert!(terminal.united().contains(both), "{}", terminal.text());
    // The launcher dies, and the job with it.
    let launchers = place.pids("--oversubscribe");
    let [launcher] = launchers[..] else {
        panic!("one launcher: {launchers:?}");
    };
    processes::signal(launcher, Signal::SIGKILL);
    terminal.wait("the job is gone");
    terminal.wait("(sdm) ");
    // A launcher that starts no server is waited for until the time limit.
    fs::remove_file(&mpirun).unwrap();
    let script =
        "#!/bin/sh\n[ $1 = --version ] && exec mpirun.openmpi --version\nexec sleep 1000\n";
    fs::write(&mpirun, script).unwrap();
    fs::set_permissions(&mpirun, fs::Permissions::from_mode(0o755)).unwrap();
    terminal.keys("run\n");
    terminal.wait("start: launched 0/2");
    terminal.keys("\x03");
    terminal.wait("run: the start of the session was cancelled");
    terminal.wait("(sdm) ");
    assert_eq!(place.pids("sleep 1000"), Vec::<u32>::new());
    fs::remove_file(&mpirun).unwrap();
    symlink("/usr/bin/mpirun.openmpi", &mpirun).unwrap();
    terminal.ask("run", "stopped at breakpoint 1");
    terminal.keys("quit\ny\n");
    let (code, screen) = terminal.finish();
    assert_eq!(code, 0, "{screen}");
}

/// `run` does not restart a program that was attached to.
#[test]
fn attached_program_is_not_restarted() {
    let place = Place::new();
    let program = place.compile("loop", Compiler::C);
    let mut held = sdm_tests::sdm::command(&place, &program).spawn().unwrap();
    let done = Sdm::new(&place, "attach")
        .args([held.id().to_string()])
        .lines(&["run"])
        .spawn();
    assert!(done.err.wait_end() && done.out.wait_end());
    let out = done.out.text();
    assert!(
        out.contains("attached processes cannot be started again"),
        "{out}"
    );
    held.kill().unwrap();
    held.wait().unwrap();
    let _ = done.finish().code(123);
}
