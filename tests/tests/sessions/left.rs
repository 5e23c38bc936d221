//! Programs that were started, detached, and left running.

use std::fs;
use std::process::Command;

use sdm_idset::TaskId;
use sdm_tests::place::{Compiler, Place};
use sdm_tests::sdm::Sdm;
use sdm_tests::united;

#[test]
fn detaching_script_ends_with_its_program() {
    let place = Place::new();
    let program = place.compile("outlive", Compiler::C);
    let running = Sdm::run(&place, 3)
        .lines(&["break tick", "[0] kill", "detach"])
        .program(&program, &[])
        .spawn();
    let stays = "still running: ranks 1-2 (2); sdm waits until they have ended";
    running.out.wait(0, stays);
    fs::write(place.path().join("go"), "").expect("a file");
    let done = running.finish().code(0);
    done.expect_part("detach", stays);
    for rank in [1, 2] {
        let printed = united::printed_by(&done.out, TaskId(rank));
        assert_eq!(
            printed.iter().filter(|line| *line == "going").count(),
            1,
            "{done}"
        );
    }
    done.expect_each("detach", "1-2", "exited with code 5");
}

#[test]
fn detached_program_outlives_sdm_or_is_killed_by_ctrl_c() {
    let place = Place::new();
    let program = place.compile("outlive", Compiler::C);
    let run = |talk: &str| {
        let mut running = Sdm::run(&place, 2).talk().program(&program, &[]).spawn();
        running.ask("break tick", "breakpoint 1 at");
        running.ask("continue", "stopped at breakpoint 1");
        running.ask(talk, "still running: ranks 0-1 (2)");
        running.out.wait(0, "] tick 9\n");
        running
    };
    let killed = run("detach\nquit");
    let signal = |number: &str| {
        let pid = killed.pid().to_string();
        Command::new("kill").args([number, &pid]).status()
    };
    assert!(signal("-KILL").expect("kill").success());
    assert!(killed.out.wait_end());
    fs::write(place.path().join("go"), "").expect("a file");
    // They end by themselves, and the servers with them.
    let _ = killed.finish();
    assert!(place.path().join("done").exists());
    fs::remove_file(place.path().join("go")).expect("it is there");
    let second = run("detach\nquit");
    let interrupt = Command::new("kill")
        .args(["-INT", &second.pid().to_string()])
        .status();
    assert!(interrupt.expect("kill").success());
    let done = second.finish();
    done.expect_each("quit", "0-1", "killed (SIGKILL)");
}

#[test]
fn mpirun_job_ends_normally_after_detach() {
    for (launcher, compiler) in [("mpirun", Compiler::OpenMpi), ("mpiexec", Compiler::Mpich)] {
        let place = Place::new();
        let program = place.compile("mpi_sum", compiler);
        let done = Sdm::run(&place, 3)
            .args(["--launcher", launcher])
            .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
            .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
            .lines(&["break add_up", "continue", "detach"])
            .program(&program, &[])
            .finish()
            .code(0);
        for rank in 0..3 {
            done.expect_part("detach", &format!("rank {rank} of 3: sum 6\n"));
        }
        // Some ranks may have ended before the report that the others run on.
        done.expect_each("detach", "0-2", "exited normally");
        assert!(!done.out.contains("lost"), "{done}");
    }
}
