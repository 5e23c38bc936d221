//! Jobs of the local manager: real processes, whose records a later agent finds.
#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use nix::sys::wait::{WaitStatus, waitpid};
use sdm_agent::local::Local;
use sdm_agent::local::record::{Records, began, state};
use sdm_agent::manager::{Manager, Submission};
use sdm_agent::snapshot::Job;

const PATIENCE: Duration = Duration::from_secs(60);

struct Place {
    folder: PathBuf,
}

impl Place {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("sdm-agent-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        Self { folder }
    }

    fn records(&self) -> Records {
        Records::below(&self.folder.join("sdm"), "local").unwrap()
    }

    /// A new agent for each call, which knows only the records on disk.
    fn local(&self) -> Local {
        let program = env!("CARGO_BIN_EXE_sdm-agent").into();
        Local::with(self.records(), None, program).unwrap()
    }

    fn submit(&self, script: &str, processes: u32) -> String {
        let job = Submission {
            processes,
            program: "/bin/sh".to_owned(),
            arguments: vec!["-c".to_owned(), script.to_owned()],
            environment: vec!["WORD=a b".to_owned()],
            directory: self.folder.display().to_string(),
            ..Submission::default()
        };
        self.local().submit(&job).unwrap()
    }

    /// The job, which is in this state. It is asked for once, after the kernel says that its runner has ended or, for
    /// a job that runs, after its processes are recorded.
    fn job(&self, number: &str, wanted: &str) -> Job {
        let folder = self.records().place(number.parse().unwrap());
        let has_come = || {
            state(&folder).is_ok_and(|state| match wanted {
                "RUNNING" => !state.started.is_empty(),
                _ => began(state.runner).is_none(),
            })
        };
        let deadline = Instant::now() + PATIENCE;
        while !has_come() {
            assert!(Instant::now() < deadline, "job {number} is not {wanted}");
            std::thread::yield_now();
        }
        let mut snapshot = self.local().look().unwrap();
        let job = snapshot.jobs.remove(number).unwrap();
        assert_eq!(job.attributes["jobState"], wanted, "{job:?}");
        job
    }

    fn pids(&self, number: &str) -> Vec<i32> {
        let state = state(&self.records().place(number.parse().unwrap())).unwrap();
        state.started.iter().map(|it| it.pid).collect()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn read(path: &str) -> String {
    std::fs::read_to_string(Path::new(path)).unwrap()
}

fn wait_gone(pids: &[i32]) {
    let deadline = Instant::now() + PATIENCE;
    while pids.iter().any(|pid| began(*pid).is_some()) {
        assert!(Instant::now() < deadline, "{pids:?} are left");
        std::thread::yield_now();
    }
}

#[test]
fn job_survives_its_agent_and_is_found_again() {
    let place = Place::new("runs");
    let number = place.submit(
        "read -r line < go; echo $SDM_JOB_INDEX $WORD $line; exit $SDM_JOB_INDEX",
        2,
    );
    // The FIFO does not exist yet: the job must end with an error.
    assert_eq!(number, "1");
    let ended = place.job(&number, "TERMINATED");
    assert_eq!(ended.processes.len(), 2);
    let go = place.folder.join("go");
    std::fs::write(&go, "now\n").unwrap();
    let number = place.submit(
        "read -r line < go; echo $SDM_JOB_INDEX $WORD $line; exit $SDM_JOB_INDEX",
        2,
    );
    assert_eq!(number, "2");
    let ended = place.job(&number, "TERMINATED");
    let value = |index: usize, id: &str| ended.processes[index].attributes.get(id).cloned();
    assert_eq!(ended.attributes["env"], "WORD=a b\0");
    let words: Vec<&str> = ended.attributes["progArgs"]
        .split_terminator('\0')
        .collect();
    assert_eq!((words.len(), words[0]), (2, "-c"));
    assert_eq!(value(0, "processExitCode").as_deref(), Some("0"));
    assert_eq!(value(1, "processExitCode").as_deref(), Some("1"));
    assert_eq!(value(1, "processState").as_deref(), Some("EXITED"));
    assert_eq!(ended.attributes["exitCode"], "1");
    let mut lines: Vec<_> = read(&ended.attributes["outputPath"])
        .lines()
        .map(str::to_owned)
        .collect();
    lines.sort();
    assert_eq!(lines, ["0 a b now", "1 a b now"]);
    // Each process has its own output.
    assert_eq!(value(0, "processStdout").as_deref(), Some("0 a b now\n"));
    assert_eq!(value(1, "processStdout").as_deref(), Some("1 a b now\n"));
    assert_eq!(value(1, "processStderr"), None);
    let number = place.submit("head -c 100000 /dev/zero | tr '\\0' x >&2", 1);
    let ended = place.job(&number, "TERMINATED");
    let told = &ended.processes[0].attributes["processStderr"];
    assert_eq!(*told, "x".repeat(4096));
}

#[test]
fn cancelled_job_ends_with_all_its_processes() {
    let place = Place::new("ends");
    let number = place.submit("sleep 1000 & sleep 1000", 2);
    let running = place.job(&number, "RUNNING");
    assert_eq!(running.processes.len(), 2);
    let pids = place.pids(&number);
    place.local().terminate(&number).unwrap();
    let ended = place.job(&number, "TERMINATED");
    let signal = ended.processes[0].attributes.get("processSignalName");
    assert_eq!(signal.map(String::as_str), Some("SIGTERM"));
    wait_gone(&pids);
    let again = place.local().terminate(&number).unwrap_err().to_string();
    assert!(again.contains("has ended"), "{again}");
}

/// A job is ended whole also while its runner still starts processes.
#[test]
fn job_that_is_still_starting_is_ended_whole() {
    let place = Place::new("starts");
    let number = place.submit("exec sleep 1000", 200);
    place.local().terminate(&number).unwrap();
    let ended = place.job(&number, "TERMINATED");
    assert_eq!(ended.processes.len(), 200);
    wait_gone(&place.pids(&number));
}

#[test]
fn process_that_a_debugger_stops_is_suspended() {
    let place = Place::new("traced");
    let number = place.submit("exec sleep 1000", 2);
    place.job(&number, "RUNNING");
    let states = || {
        let job = place.job(&number, "RUNNING");
        let states = job.processes.iter();
        let states = states.map(|it| it.attributes["processState"].clone());
        states.collect::<Vec<_>>()
    };
    let second = nix::unistd::Pid::from_raw(place.pids(&number)[1]);
    nix::sys::ptrace::attach(second).unwrap();
    // A process that is about to execute `sleep` stops for that first.
    let stopped = WaitStatus::Stopped(second, Signal::SIGSTOP);
    while waitpid(second, None).unwrap() != stopped {
        nix::sys::ptrace::cont(second, None).unwrap();
    }
    assert_eq!(states(), ["RUNNING", "SUSPENDED"]);
    nix::sys::ptrace::detach(second, None).unwrap();
    assert_eq!(states(), ["RUNNING", "RUNNING"]);
    place.local().terminate(&number).unwrap();
    place.job(&number, "TERMINATED");
}

#[test]
fn killed_runner_ends_its_processes_and_is_reported() {
    let place = Place::new("gone");
    let number = place.submit("exec sleep 1000", 3);
    place.job(&number, "RUNNING");
    let pids = place.pids(&number);
    let runner = state(&place.records().place(1)).unwrap().runner;
    nix::sys::signal::kill(
        nix::unistd::Pid::from_raw(runner),
        nix::sys::signal::Signal::SIGKILL,
    )
    .unwrap();
    let ended = place.job(&number, "ERROR");
    assert_eq!(
        ended.attributes["jobStatusMessage"],
        "the process that ran the job has ended"
    );
    let states = ended.processes.iter();
    let mut states = states.map(|it| &*it.attributes["processState"]);
    assert!(states.all(|it| it == "UNKNOWN"));
    wait_gone(&pids);
}

#[test]
fn failed_start_is_an_error_with_its_reason() {
    let place = Place::new("cannot");
    let job = Submission {
        processes: 1,
        program: "/no/such/program".to_owned(),
        ..Submission::default()
    };
    let number = place.local().submit(&job).unwrap();
    let ended = place.job(&number, "ERROR");
    let why = ended.attributes["jobStatusMessage"].clone();
    assert_eq!(why, "/no/such/program: No such file or directory");
    assert!(ended.processes.is_empty());
    // Nor is a launcher started for it, or a debugger, or a session.
    let debugged = Submission {
        debug: true,
        debugger: vec!["/usr/bin/env".to_owned()],
        ..job.clone()
    };
    for (launcher, job) in [(Some("/bin/true"), &job), (None, &debugged)] {
        let program = env!("CARGO_BIN_EXE_sdm-agent").into();
        let launcher = launcher.map(PathBuf::from);
        let mut manager = Local::with(place.records(), launcher, program).unwrap();
        let number = manager.submit(job).unwrap();
        let ended = place.job(&number, "ERROR");
        assert_eq!(&ended.attributes["jobStatusMessage"], &why);
        assert!(ended.processes.is_empty());
    }
    let nowhere = Submission {
        directory: "/no/such/folder".to_owned(),
        ..job
    };
    let refused = place.local().submit(&nowhere).unwrap_err().to_string();
    assert!(refused.contains("/no/such/folder"), "{refused}");
}

#[test]
fn processes_that_a_launcher_has_not_started_are_not_listed() {
    let place = Place::new("unstarted");
    let job = Submission {
        processes: 2,
        program: "/bin/true".to_owned(),
        ..Submission::default()
    };
    let program = env!("CARGO_BIN_EXE_sdm-agent").into();
    let launcher = Some(PathBuf::from("/bin/false"));
    let mut manager = Local::with(place.records(), launcher, program).unwrap();
    let number = manager.submit(&job).unwrap();
    let ended = place.job(&number, "TERMINATED");
    assert_eq!(ended.attributes["exitCode"], "1");
    assert!(ended.processes.is_empty(), "{ended:?}");
}
