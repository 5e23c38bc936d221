//! Attaching to jobs that run already, and leaving them as they were: real launchers, real gdb.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Instant;

use nix::sys::signal::Signal;
use sdm_system::proc::{self, State};
use sdm_tests::fixture::Compiler;
use sdm_tests::job::{Folder, HeldJob, Look, below, descendants, look, look_after_kill};
use sdm_tests::run::{BOUND, until};
use sdm_tests::{binaries, processes};

fn mpirun(ranks: u32) -> Command {
    let mut command = Command::new("mpirun.openmpi");
    command.args(["--oversubscribe", "-n", &ranks.to_string()]);
    command
}

fn sdm(args: &[&str]) -> Command {
    let mut command = Command::new(binaries::folder().join("sdm"));
    command.args(args).stdin(Stdio::null());
    command
}

/// Runs `sdm`, and checks its exit code and that its output contains `parts`.
fn check(args: &[&str], code: i32, parts: &[&str]) -> String {
    let begin = Instant::now();
    let output = sdm(args).output().expect("sdm runs");
    let said = said(&output);
    println!("sdm {args:?} took {:?}", begin.elapsed());
    assert_eq!(output.status.code(), Some(code), "sdm {args:?}: {said}");
    for part in parts {
        assert!(said.contains(part), "no {part:?} of sdm {args:?}: {said}");
    }
    said
}

fn said(output: &Output) -> String {
    let [out, err] = [&output.stdout, &output.stderr].map(|it| String::from_utf8_lossy(it));
    format!("{out}{err}")
}

/// An `sdm attach` that stays.
struct Attached {
    sdm: Child,
    lines: Receiver<String>,
    said: Vec<String>,
}

impl Attached {
    fn new(args: &[&str], until: &str) -> Self {
        let mut command = sdm(&["attach"]);
        command
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut sdm = command.spawn().expect("sdm runs");
        let (send, lines) = channel();
        let out = BufReader::new(sdm.stdout.take().expect("it is piped"));
        std::thread::spawn(move || {
            for line in out.lines().map_while(Result::ok) {
                let _ = send.send(line);
            }
        });
        let said = Vec::new();
        let mut attached = Self { sdm, lines, said };
        attached.wait_for(until);
        attached
    }

    fn say(&mut self, line: &str) {
        let stdin = self.sdm.stdin.as_mut().expect("it is piped");
        writeln!(stdin, "{line}").expect("sdm reads");
    }

    fn wait_for(&mut self, part: &str) {
        loop {
            let line = self.lines.recv_timeout(BOUND);
            let line = line.unwrap_or_else(|error| panic!("no {part:?}: {error}: {:?}", self.said));
            self.said.push(line);
            if self.said.last().is_some_and(|line| line.contains(part)) {
                return;
            }
        }
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        let _ = self.sdm.kill();
        let _ = self.sdm.wait();
    }
}

fn assert_gone(pids: &[u32]) {
    let is_there = |pid: &u32| processes::of(*pid).path("").exists();
    until("no process is left behind", || !pids.iter().any(is_there));
}

fn looks(ranks: &[u32]) -> Vec<Look> {
    ranks.iter().map(|pid| look(*pid)).collect()
}

fn looks_after_kill(ranks: &[u32]) -> Vec<Look> {
    ranks.iter().map(|pid| look_after_kill(*pid)).collect()
}

#[test]
fn open_mpi_job_is_attached_and_left_unchanged() {
    let folder = Folder::new("attach");
    let program = folder.compile(Compiler::OpenMpi, "mpi_held");
    let job = HeldJob::start(mpirun(4), &folder, &program, 4);
    let starter = job.starter().to_string();
    let ranks = below(job.starter(), "mpi_held");
    let before = looks(&ranks);
    let waiting = "wait_for_file () at mpi_held.c:";
    let said = check(&["stacks", &starter], 1, &["rank 1: main ()", waiting]);
    assert!(said.contains("ranks 0,2-3 (3): main ()"), "{said}");
    assert_eq!(looks(&ranks), before);
    // Only some ranks: the others are not touched.
    let said = check(
        &["stacks", &starter, "--ranks", "1"],
        0,
        &["rank 1: main ()"],
    );
    assert!(!said.contains("rank 0"), "{said}");
    let name = program.to_string_lossy().into_owned();
    check(
        &["stacks", &name, "--ranks", "0,2"],
        0,
        &["ranks 0,2 (2): main ()"],
    );
    let none = "--ranks 4: the job has only ranks 0-3 (the process table of mpirun";
    check(&["stacks", &starter, "--ranks", "4"], 2, &[none]);
    check(
        &[
            "attach",
            &starter,
            "--ranks",
            "1-2",
            "-c",
            "[2] print rank",
            "-c",
            "detach",
        ],
        0,
        &["rank 2: 2"],
    );
    assert_eq!(looks(&ranks), before);
    whatever_dies_the_job_runs_on(&starter, &ranks, &before);
    a_call_that_waits_does_not_outlive_the_server(&starter, &ranks, &before);
    job.finish();
}

/// A gdb that waits for a function that it calls reads no end of its input.
fn a_call_that_waits_does_not_outlive_the_server(starter: &str, ranks: &[u32], before: &[Look]) {
    // One gdb for one rank, and one for two.
    for attached_to in ["1", "2-3"] {
        let args = [starter, "--ranks", attached_to, "--timeout", "600"];
        let mut attached = Attached::new(&args, "attached");
        let own = descendants(attached.sdm.id());
        // A process during its attach sleeps and is traced as well.
        attached.say("print 1");
        attached.wait_for(": 1");
        // Not sleep: the kernel would go on with it where it interrupted rank 1 in a sleep of its own.
        attached.say("print (int)pause()");
        let is_in_it = |pid: &u32| {
            let state = processes::of(*pid).state().expect("it runs");
            state == State('S') && processes::tracer(*pid).is_some()
        };
        until("it is called", || ranks.iter().any(is_in_it));
        let server = below(attached.sdm.id(), "sdm-server")[0];
        processes::signal(server, Signal::SIGKILL);
        drop(attached.sdm.stdin.take());
        attached.sdm.wait().expect("sdm ends");
        assert_gone(&own);
        assert_eq!(looks_after_kill(ranks), before, "ranks {attached_to}");
    }
}

/// Kills each member in turn: while breakpoints are inserted and the tasks run, and while they are stopped.
fn whatever_dies_the_job_runs_on(starter: &str, ranks: &[u32], before: &[Look]) {
    for (victim, running) in [
        ("sdm", true),
        ("sdm", false),
        ("sdm-master", true),
        ("sdm-server", true),
        ("sdm-server", false),
    ] {
        let mut attached = Attached::new(&[starter], "rank 1: attached");
        if victim == "sdm-master" {
            let traced = ["rank 0 (pid ", "is in another session of sdm (gdb (pid "];
            check(&["stacks", starter, "--ranks", "0"], 2, &traced);
        }
        attached.say("[1] break turn if turns < 0");
        attached.say("[1] break turn");
        attached.say("[1] continue");
        attached.wait_for("stopped at breakpoint");
        if running {
            // The one that stays never holds.
            attached.say("delete 2");
            attached.say("continue &");
        }
        attached.say("ranks");
        attached.wait_for(if running {
            "ranks 0-3 (4)  running"
        } else {
            "  stopped"
        });
        let own = descendants(attached.sdm.id());
        let victim_pid = match victim {
            "sdm" => attached.sdm.id(),
            name => below(attached.sdm.id(), name)[0],
        };
        processes::signal(victim_pid, Signal::SIGKILL);
        drop(attached.sdm.stdin.take());
        attached.sdm.wait().expect("sdm ends");
        assert_gone(&own);
        assert_eq!(
            looks_after_kill(ranks),
            before,
            "kill -9 of {victim}, running: {running}"
        );
    }
}

#[test]
fn sixteen_ranks_of_mpich_are_attached_and_left_unchanged() {
    let folder = Folder::new("hang");
    let program = folder.compile(Compiler::Mpich, "mpi_held");
    let mut mpiexec = Command::new("mpiexec.hydra");
    mpiexec.args(["-n", "16"]);
    let job = HeldJob::start(mpiexec, &folder, &program, 16);
    let starter = job.starter().to_string();
    let ranks = below(job.starter(), "mpi_held");
    let before = looks(&ranks);
    check(
        &["stacks", &starter],
        1,
        &["ranks 0,2-15 (15): main ()", "rank 1: main ()"],
    );
    assert_eq!(looks(&ranks), before);
    check(
        &["stacks", &starter, "--ranks", "2-3"],
        0,
        &["ranks 2-3 (2)"],
    );
    let mut attached = Attached::new(&[&starter, "--ranks", "1-2"], "rank 1: attached");
    let own = descendants(attached.sdm.id());
    processes::signal(attached.sdm.id(), Signal::SIGKILL);
    drop(attached.sdm.stdin.take());
    attached.sdm.wait().expect("sdm ends");
    assert_gone(&own);
    assert_eq!(looks_after_kill(&ranks), before);
    job.finish();
}

#[test]
fn thread_in_state_d_is_named_by_an_attach() {
    let folder = Folder::new("uninterruptible");
    let program = folder.compile(Compiler::C, "vforks");
    let child = Command::new(&program).arg("thread").spawn();
    let child = Sleeper(child.expect("it runs"));
    let pid = child.0.id();
    let process = proc::of(pid.cast_signed());
    until("a thread waits in state D", || {
        let mut threads = process.thread_ids().into_iter().flatten();
        threads.any(|id| process.thread(id).state() == Some(State('D')))
    });
    let pid = pid.to_string();
    let said = "a thread of the process is in an uninterruptible wait in the kernel (state D";
    check(&["attach", "--pids", &pid, "-c", "bt"], 124, &[said]);
}

#[test]
fn failed_attach_names_its_reason() {
    let folder = Folder::new("refused");
    check(
        &["stacks", "2147483647"],
        2,
        &["process 2147483647: no such process"],
    );
    check(
        &["attach", "no-such-program"],
        124,
        &["none of your processes has the name `no-such-program`"],
    );
    check(
        &["stacks", "--ranks", "0", &std::process::id().to_string()],
        2,
        &["has no MPI ranks"],
    );
    // A process with a launcher's name that starts nothing.
    let starter = folder.0.join("mpiexec");
    std::fs::copy("/bin/sleep", &starter).expect("a copy");
    let child = Sleeper(Command::new(&starter).arg("1000").spawn().expect("it runs"));
    let pid = child.0.id().to_string();
    check(
        &["stacks", &pid],
        2,
        &["has not started any process on this machine"],
    );
    if nix::unistd::geteuid().is_root() {
        // Another user, who may have no access to the build's folder.
        let binary = folder.0.join("sdm");
        std::fs::copy(binaries::folder().join("sdm"), &binary).expect("a copy");
        let mut command = Command::new(&binary);
        let output = command
            .args(["stacks", &pid])
            .env("HOME", &folder.0)
            .uid(65534)
            .gid(65534)
            .output();
        let output = output.expect("sdm runs");
        assert_eq!(output.status.code(), Some(2));
        let said = said(&output);
        assert!(said.contains("belongs to root: run sdm as root"), "{said}");
        let own = std::process::id().to_string();
        let output = Command::new(&binary)
            .args(["stacks", &own])
            .env("HOME", &folder.0)
            .uid(65534)
            .output();
        let said = self::said(&output.expect("sdm runs"));
        assert!(said.contains("belongs to root and you are"), "{said}");
    } else {
        // The first process is root's.
        check(
            &["stacks", "1"],
            2,
            &["belongs to root and you are", ": run sdm as root"],
        );
    }
}

/// A process that ends with the test, however that ends.
struct Sleeper(Child);

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
