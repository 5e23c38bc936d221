//! The debugger's screen on a real terminal, driven by keys and mouse: MPI jobs that are started, and that run already.

use std::process::Command;

use sdm_tests::job::{Folder, HeldJob};
use sdm_tests::place::{Compiler, Place};
use sdm_tests::terminal::Terminal;

fn quit(mut terminal: Terminal<'_>) {
    terminal.keys("q");
    terminal.wait_displayed(&["(y/n/detach)"]);
    terminal.keys("y\r");
    let (code, screen) = terminal.finish();
    assert_eq!(code, 0, "{screen}");
}

#[test]
fn screen_shows_values_per_rank_and_steps_one_rank() {
    for (launcher, compiler) in [("mpirun", Compiler::OpenMpi), ("mpiexec", Compiler::Mpich)] {
        let place = Place::new();
        let _program = place.compile("mpi_sum", compiler);
        let words = [
            "run",
            "-n",
            "4",
            "--launcher",
            launcher,
            "--tui",
            "./mpi_sum",
        ];
        let mut terminal = Terminal::start(&place, &words, 120);
        terminal.wait_displayed(&["[all 4: 4 stopped]", "1 mpi_sum.c: main", "aaaa"]);
        terminal.keys(":break add_up\r");
        terminal.wait_displayed(&["breakpoint 1 at mpi_sum.c:"]);
        terminal.keys("c");
        // Each has another contribution, and the numbers are a histogram.
        terminal.wait_displayed(&["contribution: 4 values, 1 [", "rank 3: 4"]);
        // One rank continues alone, and then stops elsewhere.
        terminal.keys("3");
        terminal.wait_displayed(&["Enter set focus"]);
        terminal.keys("\x1b[C\r");
        terminal.wait_displayed(&["[1: 1 stopped]", "contribution = 2"]);
        terminal.keys("n");
        terminal.wait_displayed(&["(sdm) next &", "abaa"]);
        // The stacks' branches are groups: the mouse chooses one.
        terminal.click("ranks 0,2-3 (3): add_up");
        terminal.wait_displayed(&["(sdm) focus 0,2-3", "[0,2-3: 3 stopped]"]);
        terminal.keys("a");
        // Keys are refused until the previous line is executed; the offered keys show that.
        terminal.wait_displayed(&[
            "(sdm) focus all",
            "[all 4: 4 stopped]",
            "arrows set the focus",
        ]);
        quit(terminal);
    }
}

#[test]
fn hanging_job_is_inspected_by_keys_and_continues() {
    let place = Place::new();
    let folder = Folder::new("screen");
    let program = folder.compile(sdm_tests::fixture::Compiler::OpenMpi, "mpi_held");
    let mut mpirun = Command::new("mpirun.openmpi");
    mpirun.args(["--oversubscribe", "-n", "4"]);
    let job = HeldJob::start(mpirun, &folder, &program, 4);
    let starter = job.starter().to_string();
    let mut terminal = Terminal::start(&place, &["attach", &starter, "--tui"], 120);
    terminal.wait_displayed(&["[all 4: 4 not attached]", "rank 1: main"]);
    terminal.keys("p");
    terminal.wait_displayed(&["rank 1: ", "ranks 0,2-3 (3): MPI_Allreduce", "ranks (4)"]);
    // The one that differs is selected, and its source is shown.
    terminal.click("rank 1: ");
    terminal.wait_displayed(&["[1: 1 stopped]", "nanosleep"]);
    terminal.keys(":detach\r");
    terminal.wait_displayed(&["detached"]);
    terminal.keys("q");
    let (code, screen) = terminal.leave();
    assert_eq!(code, 0, "{screen}");
    job.finish();
}
