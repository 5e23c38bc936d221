//! Sessions under Open MPI 5, whose `prterun` has no MPIR: launching, and attaching to running jobs.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use nix::sys::signal::Signal;
use sdm_system::proc::State;
use sdm_tests::control;
use sdm_tests::job::{Folder, HeldJob, look, look_after_kill, running};
use sdm_tests::parts;
use sdm_tests::place::{Compiler, Place};
use sdm_tests::processes;
use sdm_tests::run::until;
use sdm_tests::sdm::Sdm;

use super::seized::ENDS;

/// Options without which each process searches for networks for seconds.
const QUICK: [&str; 6] = ["--mca", "pml", "ob1", "--mca", "btl", "self,sm"];

#[test]
fn four_ranks_of_open_mpi_5_are_launched() {
    let Some(folder) = parts::openmpi5() else {
        return;
    };
    let place = Place::new();
    let sum = place.compile("mpi_sum", Compiler::OpenMpi5);
    let path = std::env::var("PATH").expect("a path");
    let path = format!("{}:{path}", folder.join("bin").display());
    let done = Sdm::run(&place, 4)
        .env("PATH", path)
        .args(QUICK.iter().flat_map(|it| ["--launcher-option", it]))
        .lines(&["break add_up", "continue", "print contribution", "next"])
        .lines(&["stacks", "continue"])
        .program(&sum, &[])
        .finish()
        .code(0);
    assert!(done.err.contains("is linked with Open MPI"), "{done}");
    done.expect_part(
        "continue",
        "ranks 0-3 (4): stopped at breakpoint 1, add_up ()",
    );
    let each = "rank 0: 1\nrank 1: 2\nrank 2: 3\nrank 3: 4\n";
    done.expect("print contribution", each);
    done.expect_part("next", "ranks 0-3 (4): add_up () at mpi_sum.c:");
    done.expect_part("stacks", "ranks 0-3 (4): main ()");
    for rank in 0..4 {
        let said = format!("[{rank}] rank {rank} of 4: sum 10\n");
        assert!(done.out.contains(&said), "no {said:?} in {done}");
    }
}

#[test]
fn crash_abort_or_early_exit_is_reported_under_prterun() {
    let Some(folder) = parts::openmpi5() else {
        return;
    };
    let place = Place::new();
    let ends = place.compile("mpi_ends", Compiler::OpenMpi5);
    let mpirun = folder.join("bin/mpirun").to_string_lossy().into_owned();
    for (how, code, shown) in ENDS {
        for gdb in ["gdb", "/nosuch/gdb"] {
            let done = Sdm::run(&place, 4)
                .args(["--launcher", &mpirun, "--batch", "--no-report"])
                .args(QUICK.iter().flat_map(|it| ["--launcher-option", it]))
                .args(["--gdb", gdb])
                .program(&ends, &[how])
                .finish()
                .code(code);
            let shown = format!("rank 2: {shown}");
            assert!(done.out.contains(&shown), "{how} {gdb}: {done}");
            done.expect_part("[@stopped] stacks", "MPI_Allreduce");
        }
    }
}

/// The ranks are held before their first instruction until SDM attaches.
#[test]
fn prterun_holds_its_ranks_until_attach() {
    let Some(folder) = parts::openmpi5() else {
        return;
    };
    let place = Place::new();
    let mpirun = folder.join("bin/mpirun").to_string_lossy().into_owned();
    let sdm = |count| {
        Sdm::run(&place, count)
            .args(["--launcher", &mpirun, "--control", "pmix"])
            .args(QUICK.iter().flat_map(|it| ["--launcher-option", it]))
    };
    let sum = place.compile("mpi_sum", Compiler::OpenMpi5);
    control::four_ranks_add_up(sdm(4), &sum, &["tbreak main", "continue"]);
    control::held_ranks_end_well(&place, Compiler::OpenMpi5, &sdm);
    let done = Sdm::run(&place, 1)
        .args(["--launcher", &mpirun, "--control", "mpir"])
        .program(&sum, &[]);
    let done = done.finish().code(124);
    assert!(done.err.contains("by --control pmix"), "{done}");
}

fn library(mpi: &Path) -> PathBuf {
    mpi.join("lib/openmpi/libpmix.so.2")
}

/// The command `sdm-pmix` for a query of a server.
fn helper(library: &Path, server: u32) -> Command {
    let mut helper = Command::new(sdm_tests::binaries::folder().join("sdm-pmix"));
    helper.arg(library).arg(server.to_string());
    helper.env("PMIX_MCA_psec", "native").stdin(Stdio::null());
    helper
}

/// A library that stops the helper when the helper is about to ask.
fn holding_library(mpi: &Path, folder: &Folder) -> PathBuf {
    let slow = folder.0.join("held_library.so");
    let real = library(mpi).to_string_lossy().into_owned();
    let found = format!("-Wl,-rpath,{}", mpi.join("lib/openmpi").display());
    let options = ["-shared", "-fPIC", "-Wl,--no-as-needed", &real, &found];
    sdm_tests::fixture::compile(Compiler::C, "held_library", &options, &slow);
    slow
}

/// A helper that is killed before its query costs the job nothing, and the next query is answered.
fn kill_the_helper(mpi: &Path, folder: &Folder, server: u32) {
    let mut asking = helper(&holding_library(mpi, folder), server);
    let mut asking = asking.stdout(Stdio::null()).spawn().expect("it runs");
    until("the helper is held", || states(asking.id()) == [State('T')]);
    asking.kill().expect("it is ours");
    let status = asking.wait().expect("it ends");
    assert_eq!(status.signal(), Some(Signal::SIGKILL as i32), "{status}");
    assert_answered(&helper(&library(mpi), server).output().expect("it runs"));
}

fn assert_answered(answer: &Output) {
    let said = String::from_utf8_lossy(&answer.stdout);
    assert!(said.ends_with("\nend\n"), "{answer:?}");
}

fn held_job(mpi: &Path, folder: &Folder, program: &Path) -> HeldJob {
    let mut mpirun = Command::new(mpi.join("bin/mpirun"));
    mpirun.args(["--oversubscribe", "--bind-to", "none", "-n", "4"]);
    mpirun.args(QUICK);
    HeldJob::start(mpirun, folder, program, 4)
}

#[test]
fn hung_job_is_attached_and_left_unchanged() {
    let Some(mpi) = parts::openmpi5() else {
        return;
    };
    let place = Place::new();
    let folder = Folder::new("prterun");
    let program = folder.compile(Compiler::OpenMpi5, "mpi_held");
    let job = held_job(&mpi, &folder, &program);
    let ranks = running(&program);
    let looks = || ranks.iter().map(|pid| look(*pid)).collect::<Vec<_>>();
    let before = looks();
    let starter = job.starter().to_string();
    let done = Sdm::new(&place, "stacks").args([&starter]).finish().code(1);
    assert!(done.out.contains("ranks 0,2-3 (3): main ()"), "{done}");
    assert!(done.out.contains("rank 1: main ()"), "{done}");
    assert_eq!(looks(), before);
    let done = Sdm::new(&place, "attach")
        .args([&*starter, "--ranks", "1-2"])
        .lines(&["[2] print rank", "attach 0", "print 1", "detach 1-2"])
        .lines(&["print 2", "attach 1", "print 3", "detach"])
        .finish()
        .code(0);
    done.expect("[2] print rank", "rank 2: 2\n");
    done.expect_part("attach 0", "rank 0: attached, in MPI_Allreduce");
    // The focus grows and shrinks with the attached ranks.
    done.expect("print 1", "ranks 0-2 (3): 1\n");
    done.expect("print 2", "rank 0: 2\n");
    done.expect("print 3", "ranks 0-1 (2): 3\n");
    assert_eq!(looks(), before);
    let attached = Sdm::new(&place, "attach").args([&starter]).talk().spawn();
    attached.out.wait(0, "rank 1: attached");
    kill_the_helper(&mpi, &folder, job.starter());
    processes::signal(attached.pid(), Signal::SIGKILL);
    assert_eq!(attached.finish().code, None);
    let after: Vec<_> = ranks.iter().map(|pid| look_after_kill(*pid)).collect();
    assert_eq!(after, before);
    job.finish();
}

/// The states of a process's threads.
fn states(pid: u32) -> Vec<State> {
    let process = processes::of(pid);
    let threads = process.thread_ids().expect("it is there");
    threads
        .filter_map(|id| process.thread(id).state())
        .collect()
}

fn stop(pid: u32) {
    processes::signal(pid, Signal::SIGSTOP);
    until("it is stopped", || {
        states(pid).into_iter().all(State::is_stopped)
    });
}

/// True if a connection of a process has unread bytes at its other end.
fn has_unread(pid: u32) -> bool {
    let sockets = processes::sockets(pid);
    let table = sdm_system::proc::of_machine("net/tcp").expect("there is one");
    let rows: Vec<Vec<&str>> = table
        .lines()
        .map(|line| line.split_whitespace().collect())
        .filter(|row: &Vec<&str>| row.len() > 9)
        .collect();
    let own = rows
        .iter()
        .filter(|row| row[9].parse().is_ok_and(|number| sockets.contains(&number)));
    own.clone().any(|own| {
        let other = rows.iter().find(|row| row[1] == own[2] && row[2] == own[1]);
        other.is_some_and(|other| !other[4].ends_with(":00000000"))
    })
}

/// Script in place of a `prterun` that never ends: the real one sometimes waits for a lock in freed memory.
const NEVER_ENDS: &str = r#"#!/bin/sh
if [ "$1" = --version ]; then echo 'mpirun (Open MPI) 5.0.11'; exit; fi
trap '' TERM
while [ "$1" != -n ]; do shift; done
shift 2
for rank in 0 1; do
    OMPI_COMM_WORLD_RANK=$rank OMPI_COMM_WORLD_SIZE=2 sh -c 'kill -STOP $$; exec "$@"' sh "$@" &
done
wait
exec sleep 1000
"#;

#[test]
fn launcher_that_outlives_its_job_is_ended() {
    let place = Place::new();
    let mpirun = place.path().join("mpirun");
    std::fs::write(&mpirun, NEVER_ENDS).expect("a file");
    std::fs::set_permissions(&mpirun, Permissions::from_mode(0o755)).expect("it is ours");
    let done = Sdm::run(&place, 2)
        .args(["--control", "pmix", "--launcher"])
        .args([&mpirun])
        .lines(&["detach"])
        .program(Path::new("/bin/true"), &[]);
    let done = done.finish().code(0);
    assert!(done.out.contains("was still running 10 s after"), "{done}");
    let end = "the launcher ended: killed by SIGKILL\n";
    assert!(done.out.contains(end), "{done}");
}

/// `prterun` does not survive a tool that hangs up before it has all replies to its connection message.
#[test]
fn job_survives_a_helper_killed_while_connecting() {
    let Some(mpi) = parts::openmpi5() else {
        return;
    };
    let folder = Folder::new("prterun-stopped");
    let program = folder.compile(Compiler::OpenMpi5, "mpi_held");
    let slow = holding_library(&mpi, &folder);
    let job = held_job(&mpi, &folder, &program);
    let server = job.starter();
    // A stopped server is not queried.
    stop(server);
    let refused = helper(&library(&mpi), server).output().expect("it runs");
    let said = String::from_utf8_lossy(&refused.stderr);
    let wanted = format!("prterun (pid {server}) is stopped and cannot answer");
    assert!(said.contains(&wanted), "{said}");
    processes::signal(server, Signal::SIGCONT);
    // This server is stopped when it is about to be queried.
    let mut asking = helper(&slow, server);
    let mut asking = asking.stdout(Stdio::null()).spawn().expect("it runs");
    until("the helper is held", || states(asking.id()) == [State('T')]);
    stop(server);
    processes::signal(asking.id(), Signal::SIGCONT);
    until("the server is asked", || has_unread(asking.id()));
    asking.kill().expect("it is ours");
    asking.wait().expect("it ends");
    processes::signal(server, Signal::SIGCONT);
    assert_answered(&helper(&library(&mpi), server).output().expect("it runs"));
    job.finish();
}
