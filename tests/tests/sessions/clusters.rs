//! Clusters, from their definition to the end of their jobs, as a person has them at a shell.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::time::Instant;

use nix::sys::signal::Signal;
use sdm_tests::binaries;
use sdm_tests::place::{Compiler, MARK_VARIABLE, Place};
use sdm_tests::processes;
use sdm_tests::run::BOUND;
use serde_json::Value;

/// A user with a configuration and clusters of his own.
struct Shell {
    place: Place,
}

/// What came of a command.
struct Said {
    code: Option<i32>,
    out: String,
    err: String,
}

impl Shell {
    fn new() -> Self {
        let place = Place::new();
        fs::create_dir(place.path().join("bin")).expect("a folder");
        Self { place }
    }

    fn command(&self, words: &[&str]) -> Command {
        let path = std::env::var("PATH").expect("a path");
        let mut command = Command::new(binaries::folder().join("sdm"));
        command
            .args(words)
            .current_dir(self.place.path())
            .env(MARK_VARIABLE, self.place.mark())
            .env("HOME", self.place.path())
            .env("XDG_CONFIG_HOME", self.place.path().join("config"))
            .env("XDG_STATE_HOME", self.place.path().join("state"))
            .env("XDG_RUNTIME_DIR", self.place.runtime())
            .env(
                "PATH",
                format!("{}:{path}", self.place.path().join("bin").display()),
            );
        command
    }

    fn sdm(&self, line: &str) -> Said {
        let words: Vec<&str> = line.split(' ').collect();
        self.words(&words)
    }

    fn words(&self, words: &[&str]) -> Said {
        let Output {
            status,
            stdout,
            stderr,
        } = self.command(words).output().expect("sdm runs");
        Said {
            code: status.code(),
            out: String::from_utf8(stdout).expect("text"),
            err: String::from_utf8(stderr).expect("text"),
        }
    }

    /// A program that others find as `sdm-rm-NAME`.
    fn agent(&self, name: &str, script: &str) -> PathBuf {
        let path = self.place.path().join("bin").join(format!("sdm-rm-{name}"));
        fs::write(&path, script).expect("a file");
        fs::set_permissions(&path, Permissions::from_mode(0o755)).expect("it is ours");
        path
    }

    fn state(&self, cluster: &str) -> Value {
        let listed = self.sdm("cluster list --json").done();
        let listed: Value = serde_json::from_str(&listed.out).expect("JSON");
        let all = listed["clusters"].as_array().expect("clusters").clone();
        let found = all.into_iter().find(|it| it["name"] == cluster);
        found.unwrap_or_else(|| panic!("no {cluster} in {listed}"))
    }

    /// Waits until a job's attribute has a value.
    fn wait_job(&self, job: &str, attribute: &str, value: &str) {
        let deadline = Instant::now() + BOUND;
        loop {
            let jobs = self.sdm("jobs --json").done();
            let jobs: Value = serde_json::from_str(&jobs.out).expect("JSON");
            let is_it = |it: &&Value| it["attributes"]["systemJobId"] == job;
            let all = jobs["jobs"].as_array().expect("jobs");
            if let Some(found) = all.iter().find(is_it)
                && found["attributes"][attribute] == value
            {
                return;
            }
            assert!(
                Instant::now() < deadline,
                "no {attribute}={value} of {job} in {jobs}"
            );
        }
    }

    /// The pid of a process of the shell's by a part of its command line.
    fn pid(&self, part: &str) -> u32 {
        let pids = self.place.pids(part);
        assert_eq!(pids.len(), 1, "{part}: {pids:?}");
        pids[0]
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        for part in ["sdm-rm ", "sdm-agent", "--run-job", "sleep 1000"] {
            for pid in self.place.pids(part) {
                processes::signal(pid, Signal::SIGKILL);
            }
        }
    }
}

impl Said {
    /// It has gone well, and nothing was said on standard error.
    fn done(self) -> Self {
        assert_eq!((self.code, &*self.err), (Some(0), ""), "{}", self.out);
        self
    }

    fn refused(&self, code: i32, part: &str) {
        assert_eq!(self.code, Some(code), "{} {}", self.out, self.err);
        assert!(self.err.contains(part), "no {part:?} in {}", self.err);
    }
}

#[test]
fn a_job_is_submitted_watched_looked_at_and_ended() {
    let shell = Shell::new();
    shell
        .sdm("jobs")
        .refused(1, "no cluster is defined; `sdm cluster add NAME TYPE`");
    shell.sdm("cluster add here local").done();
    shell.sdm("cluster add here local").refused(1, "here");
    assert_eq!(shell.state("here")["state"], "STARTED");
    for verb in ["nodes", "queues", "partitions", "jobs", "cluster list"] {
        let said = shell.sdm(verb).done();
        let wide = said.out.lines().find(|line| line.chars().count() > 80);
        assert_eq!(wide, None, "{verb}");
    }
    let ended = shell.words(&[
        "submit",
        "--",
        "/bin/sh",
        "-c",
        "echo said; echo cried >&2; exit 3",
    ]);
    let ended = ended.done().out.trim_end().to_owned();
    shell.wait_job(&ended, "jobState", "TERMINATED");
    shell.wait_job(&ended, "exitCode", "3");
    assert_eq!(shell.sdm(&format!("logs {ended}")).done().out, "said\n");
    assert_eq!(
        shell.sdm(&format!("logs --err {ended}")).done().out,
        "cried\n"
    );
    assert!(shell.sdm("jobs").done().out.contains("exit code 3"));

    let work = shell.place.compile("loop", Compiler::C);
    let work = work.to_str().expect("text");
    let runs = shell.words(&["submit", "-n", "2", "--name", "turns", "--", work]);
    let runs = runs.done().out.trim_end().to_owned();
    shell.wait_job(&runs, "jobState", "RUNNING");
    let shown = shell.sdm(&format!("ps {runs}")).done();
    assert!(shown.out.contains("RUNNING"), "{}", shown.out);
    let shown = shell.sdm(&format!("show {runs}")).done();
    assert!(shown.out.contains("turns"), "{}", shown.out);
    let stacks = shell.sdm(&format!("stacks here:{runs}"));
    assert_eq!(stacks.code, Some(0), "{} {}", stacks.out, stacks.err);
    assert!(stacks.out.contains("main ()"), "{}", stacks.out);
    shell
        .sdm(&format!("stacks here:99{runs}"))
        .refused(124, "no such job");
    shell
        .sdm(&format!("hold {runs}"))
        .refused(1, "start at once");

    // It is not the manager's: it goes on without it, and another one ends it.
    shell.sdm("cluster stop here").done();
    assert_eq!(shell.state("here")["state"], "STOPPED");
    assert_eq!(shell.place.pids("sdm-rm here"), Vec::<u32>::new());
    assert_eq!(shell.place.pids("sdm-agent --rm"), Vec::<u32>::new());
    assert_ne!(shell.place.pids("loop"), Vec::<u32>::new());
    shell.sdm("jobs").refused(1, "`sdm cluster start here`");
    shell.sdm("cluster start here").done();
    shell.sdm(&format!("cancel {runs}")).done();
    shell.wait_job(&runs, "jobState", "TERMINATED");
    shell
        .sdm("cancel 999")
        .refused(1, "999: no such job of here");
    shell.sdm("cluster remove here").done();
    shell.place.assert_gone();
}

#[test]
fn an_agent_that_is_killed_stalls_or_talks_nonsense_is_an_error_with_its_reason() {
    let shell = Shell::new();
    shell.sdm("cluster add here local").done();
    let job = shell
        .sdm("submit -- sleep 1000")
        .done()
        .out
        .trim_end()
        .to_owned();
    shell.wait_job(&job, "jobState", "RUNNING");
    processes::signal(shell.pid("sdm-agent --rm local"), Signal::SIGKILL);
    let deadline = Instant::now() + BOUND;
    while shell.state("here")["state"] != "ERROR" {
        assert!(Instant::now() < deadline, "{}", shell.state("here"));
    }
    let reason = shell.state("here")["reason"].to_string();
    assert!(reason.contains("its agent has ended"), "{reason}");
    // What was known is shown, and as what it is.
    let jobs = shell.sdm("jobs --json");
    let shown: Value = serde_json::from_str(&jobs.out).expect("JSON");
    assert_eq!(shown["clusters"][0]["stale"], true, "{shown}");
    assert_eq!(shown["jobs"].as_array().map(Vec::len), Some(1), "{shown}");
    shell
        .sdm(&format!("cancel {job}"))
        .refused(1, "its agent has ended");
    // Started anew it has its job.
    shell.sdm("cluster start here").done();
    shell.sdm(&format!("cancel {job}")).done();
    shell.wait_job(&job, "jobState", "TERMINATED");

    shell.agent(
        "babble",
        "#!/bin/sh\necho this is no message at all\nexec sleep 1000\n",
    );
    shell
        .sdm("cluster add odd babble")
        .refused(1, "its agent talks nonsense");
    shell.agent("gone", "#!/bin/sh\necho no license >&2\nexit 4\n");
    shell.sdm("cluster add left gone").refused(1, "no license");
    shell.agent("still", "#!/bin/sh\nexec sleep 1000\n");
    shell.sdm("cluster add late still --no-start").done();
    let file = shell.place.path().join("config/sdm/clusters.toml");
    let text = fs::read_to_string(&file).expect("it is defined");
    let hasty = |line: &str| match line.starts_with("patience") {
        true => "patience = 2\n".to_owned(),
        false => format!("{line}\n"),
    };
    let text: String = text.lines().map(hasty).collect();
    fs::write(&file, text).expect("it is ours");
    shell
        .sdm("cluster start late")
        .refused(1, "has not answered");
    // Whatever becomes of others, this one is not touched.
    assert_eq!(shell.state("here")["state"], "STARTED");
    shell.sdm("cluster stop here odd left late").done();
    shell.place.assert_gone();
}

#[test]
fn what_is_defined_survives_and_what_is_broken_is_named() {
    let shell = Shell::new();
    shell
        .sdm("cluster add far slurm --host me@login --ssh-option=-p2222 --no-start")
        .done();
    shell
        .words(&["cluster", "edit", "far", "--description", "the big one"])
        .done();
    let listed = shell.sdm("cluster list").done().out;
    assert!(
        listed.contains("me@login") && listed.contains("the big one"),
        "{listed}"
    );
    shell.sdm("cluster add a/b local").refused(1, "a/b");
    shell.sdm("cluster remove nobody").refused(1, "nobody");
    shell
        .sdm("cluster add site nothere")
        .refused(1, "sdm-rm-nothere");
    let path = shell.agent("theirs", "#!/bin/sh\nexit 0\n");
    fs::set_permissions(&path, Permissions::from_mode(0o777)).expect("it is ours");
    shell
        .sdm("cluster add open theirs")
        .refused(1, "others may write to it");
    let file = shell.place.path().join("config/sdm/clusters.toml");
    let text = fs::read_to_string(&file).expect("it is defined");
    fs::write(&file, format!("{text}\n[[cluster\n")).expect("it is ours");
    shell.sdm("cluster list").refused(1, "clusters.toml");
    fs::write(&file, text).expect("it is ours");
    shell.sdm("cluster remove far site open").done();
    shell
        .sdm("cluster list")
        .refused(1, "no cluster is defined");
    shell.place.assert_gone();
}
