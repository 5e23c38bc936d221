//! `sdm top` on a real Slurm, driven by keys, as an ordinary user has it.

use sdm_tests::clusters::Shell;
use sdm_tests::parts::Part;
use sdm_tests::place::Compiler;
use sdm_tests::terminal::Terminal;

const _: () = sdm_tests::run::test_group("slurm", "one controller, and all its nodes");

#[test]
fn top_keys_submit_hold_release_and_inspect_a_slurm_job() {
    let Some(_slurm) = Part::slurm() else { return };
    let shell = Shell::new()
        .with("SLURM_CONF", "/tmp/sdm-slurm/slurm.conf")
        .with("SLURM_MPI_TYPE", "pmi2");
    let _program = shell.place.compile("mpi_held", Compiler::Mpich);
    let words = shell.lowered(&["top"]);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let mut terminal = Terminal::run(&shell.place, "/usr/bin/env".as_ref(), &words, 120);
    terminal.wait_displayed(&["no jobs; press n to submit one"]);
    terminal.keys("1a");
    terminal.wait_displayed(&["add a resource manager"]);
    // The type is chosen from a list.
    terminal.keys("s\t\x1b[C");
    terminal.wait_displayed(&["$ sdm cluster add s slurm"]);
    terminal.keys("\r");
    terminal.wait_displayed(&["STARTED"]);
    terminal.keys("2\t");
    terminal.wait_displayed(&["nodes (4)", "+. n1  UP"]);
    terminal.keys("3n");
    terminal.wait_displayed(&["submit a job"]);
    terminal.keys("./mpi_held go\t\t\t4\t\x1b[C");
    terminal.wait_displayed(&["-n 4 --queue debug -- ./mpi_held go"]);
    terminal.keys("\t\t\t--hold\r");
    terminal.wait_displayed(&["PENDING", "JobHeldUser"]);
    // An impossible action shows its reason; a possible one asks for confirmation.
    terminal.keys("ry");
    terminal.wait_displayed(&["$ sdm release s:1", "RUNNING"]);
    terminal.keys("h");
    terminal.wait_displayed(&["only a PENDING job can be held"]);
    terminal.wait_displayed(&["processes of s:1", "0-3"]);
    terminal.keys("\t\r");
    terminal.wait_displayed(&["> process", "held 4"]);
    // Enter offers the debugger's actions, such as the stacks of the processes.
    terminal.keys("\r");
    terminal.wait_displayed(&["stacks    print the stacks of its processes"]);
    terminal.keys("\r");
    terminal.wait_displayed(&["rank 1: main", "[Enter: back to sdm top]"]);
    terminal.keys("\r");
    terminal.wait_displayed(&["> process", "$ sdm stacks s:1"]);
    terminal.keys("cy");
    terminal.wait_displayed(&["$ sdm cancel s:1"]);
    terminal.keys("3");
    terminal.wait_displayed(&["CANCELLED"]);
    terminal.keys("1xy");
    terminal.wait_displayed(&["STOPPED"]);
    terminal.keys("Dy");
    terminal.wait_displayed(&["no cluster is defined; press a to define one"]);
    terminal.keys("q");
    assert_eq!(terminal.leave().0, 0);
    shell.place.assert_gone();
}
