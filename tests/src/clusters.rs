//! A user's shell, with clusters and a configuration of its own.

use std::cell::RefCell;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::late::Beside;
use crate::place::{MARK_VARIABLE, Place};
use crate::questions::Questions;
use crate::screen::Screen;
use crate::{binaries, ordinary};

/// An ordinary user's shell with its own configuration and clusters.
pub struct Shell {
    /// The folder with all its files.
    pub place: Place,
    variables: Vec<(String, String)>,
    /// Pid of a process whose namespaces the user is in; `None` for those of the test.
    namespaces_of: Option<String>,
    /// The questions about its clusters and jobs.
    questions: RefCell<Questions>,
}

/// Outcome of a command: exit code and output.
pub struct Said {
    /// Its exit code; none where a signal has ended it.
    pub code: Option<i32>,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
}

impl Shell {
    /// A shell without clusters.
    ///
    /// # Panics
    /// If its folder cannot be created.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "each is another one")]
    pub fn new() -> Self {
        let place = Place::new();
        let bin = place.path().join("bin");
        fs::create_dir(&bin).expect("a folder");
        ordinary::give(&bin);
        ordinary::give(&place.runtime());
        Self {
            place,
            variables: Vec::new(),
            namespaces_of: None,
            questions: RefCell::default(),
        }
    }

    /// Adds a variable to the environment of the shell.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Moves the shell into the namespaces of a process, which only root can enter.
    #[must_use]
    pub fn inside(mut self, pid: &str) -> Self {
        self.namespaces_of = Some(pid.to_owned());
        self
    }

    /// The environment of all programs that the shell starts.
    #[must_use]
    pub fn environment(&self) -> Vec<(String, String)> {
        let below = |name: &str| self.place.path().join(name).display().to_string();
        let path = std::env::var("PATH").unwrap_or_default();
        let own = [
            (MARK_VARIABLE, self.place.mark().to_owned()),
            ("HOME", below("")),
            ("TMPDIR", below("")),
            ("XDG_CONFIG_HOME", below("config")),
            ("XDG_STATE_HOME", below("state")),
            ("XDG_RUNTIME_DIR", below("run")),
            ("PATH", format!("{}:{path}", below("bin"))),
        ];
        let own = own.map(|(name, value)| (name.to_owned(), value));
        own.into_iter().chain(self.variables.clone()).collect()
    }

    /// `sdm` with these words.
    #[must_use]
    pub fn command(&self, words: &[&str]) -> Command {
        self.program(&binaries::folder().join("sdm"), words)
    }

    /// A program with these words.
    #[must_use]
    pub fn program(&self, program: &Path, words: &[&str]) -> Command {
        let mut command = match &self.namespaces_of {
            None => Command::new(program),
            Some(pid) => {
                let user = ordinary::USER.to_string();
                let mut command = Command::new("nsenter");
                command.args(["-t", pid, "-m", "-u", "-n", "-p", "--wd=/tmp", "setpriv"]);
                command.args([
                    "--reuid",
                    &user,
                    "--regid",
                    &user,
                    "--clear-groups",
                    // `nsenter` is its parent, and all of it that can be killed from here.
                    "--pdeathsig",
                    "KILL",
                    "env",
                    "-C",
                ]);
                command.arg(self.place.path()).arg(program);
                command
            }
        };
        command
            .args(words)
            .current_dir(self.place.path())
            .envs(self.environment());
        if self.namespaces_of.is_none() {
            ordinary::lower(&mut command);
        }
        command
    }

    /// Arguments of `env` that start `sdm` with these words as the ordinary user, with the environment of this shell. A
    /// test passes them to a terminal.
    ///
    /// # Panics
    /// If the path of `sdm` is not text.
    #[must_use]
    pub fn lowered(&self, words: &[&str]) -> Vec<String> {
        let own = self.environment().into_iter();
        let mut all: Vec<String> = own.map(|(name, value)| format!("{name}={value}")).collect();
        let sdm = binaries::folder().join("sdm");
        let user = ordinary::USER.to_string();
        let lower = [
            "setpriv",
            "--reuid",
            &user,
            "--regid",
            &user,
            "--clear-groups",
        ];
        // Without root rights this is an ordinary user already.
        if nix::unistd::geteuid().is_root() {
            all.extend(lower.map(str::to_owned));
        }
        all.push(sdm.to_str().expect("text").to_owned());
        all.extend(words.iter().map(|word| (*word).to_owned()));
        all
    }

    /// Runs `sdm` with these arguments, separated by spaces.
    ///
    /// # Panics
    /// As [`Shell::words`] does.
    #[must_use]
    pub fn sdm(&self, line: &str) -> Said {
        let words: Vec<&str> = line.split(' ').collect();
        self.words(&words)
    }

    /// Runs `sdm` with these arguments.
    ///
    /// # Panics
    /// If it does not run, asks again what was asked before, or its output is not text.
    #[must_use]
    pub fn words(&self, words: &[&str]) -> Said {
        self.questions.borrow_mut().enter_words(words);
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

    /// Records that the test has changed what is listed, by other means than this shell. Each question is allowed again.
    pub fn changed(&self) {
        self.questions.borrow_mut().changed();
    }

    /// Submits a job; gives its number.
    ///
    /// # Panics
    /// If the manager refuses the job.
    #[must_use]
    pub fn submit(&self, words: &[&str]) -> String {
        let said = self.words(&[&["submit"], words].concat()).done();
        said.out.trim_end().to_owned()
    }

    /// Writes a script that is found on `PATH` as `sdm-rm-NAME`; returns its path.
    ///
    /// # Panics
    /// If it cannot be written.
    #[must_use]
    pub fn agent(&self, name: &str, script: &str) -> PathBuf {
        let path = self.place.path().join("bin").join(format!("sdm-rm-{name}"));
        self.write_program(&path, script);
        path
    }

    /// Writes an executable script that belongs to the shell's user.
    ///
    /// # Panics
    /// If it cannot be written.
    pub fn write_program(&self, path: &Path, script: &str) {
        fs::write(path, script).expect("a file");
        fs::set_permissions(path, Permissions::from_mode(0o755)).expect("it is ours");
        ordinary::give(path);
    }

    /// Runs `sdm LIST --json --watch` once, which shows the list anew at each change that the manager reports. Returns
    /// the first list for which `is_it` holds.
    ///
    /// # Panics
    /// If none comes.
    pub fn watch(&self, list: &str, is_it: impl Fn(&Value) -> bool) -> Value {
        self.changed();
        let words: Vec<&str> = list.split(' ').chain(["--json", "--watch"]).collect();
        let mut command = self.command(&words);
        let mut child = command.stdout(Stdio::piped()).spawn().expect("sdm runs");
        let (out, _) = Screen::read(child.stdout.take().expect("it is a pipe"));
        // It ends with this; its errors are those of the test.
        let err = Screen::default();
        let watch = Beside { child, out, err };
        let read = |line: &str| serde_json::from_str(line).expect("JSON");
        let line = watch.out.wait_where(0, list, |line| is_it(&read(line)));
        read(&line)
    }

    /// Waits for a job of which `is_it` holds, given its attributes.
    ///
    /// # Panics
    /// If none comes, or the manager has an error meanwhile.
    pub fn watch_jobs(&self, is_it: impl Fn(&Value) -> bool) {
        self.watch("jobs", |list| {
            for cluster in list["clusters"].as_array().expect("clusters") {
                let is_well = cluster["state"] != "ERROR" && cluster["stale"] == false;
                assert!(is_well, "{list}");
            }
            let jobs = list["jobs"].as_array().expect("jobs");
            jobs.iter().any(|job| is_it(&job["attributes"]))
        });
    }

    /// Waits until a process of a job is known to run.
    ///
    /// # Panics
    /// If none comes.
    pub fn wait_process(&self, job: &str) {
        self.watch(&format!("ps {job}"), |list| {
            let processes = list["processes"].as_array().expect("processes");
            let mut states = processes.iter().map(|it| &it["attributes"]["processState"]);
            states.any(|state| state == "RUNNING")
        });
    }

    /// The record of `sdm cluster list` about a cluster.
    ///
    /// # Panics
    /// If there is none.
    #[must_use]
    pub fn state(&self, cluster: &str) -> Value {
        let listed = self.sdm("cluster list --json").done();
        let listed: Value = serde_json::from_str(&listed.out).expect("JSON");
        let all = listed["clusters"].as_array().expect("clusters").clone();
        let found = all.into_iter().find(|it| it["name"] == cluster);
        found.unwrap_or_else(|| panic!("no {cluster} in {listed}"))
    }

    /// Waits until a job's attribute has a value.
    ///
    /// # Panics
    /// As [`Shell::watch_jobs`] does.
    pub fn wait_job(&self, job: &str, attribute: &str, value: &str) {
        self.watch_jobs(|it| it["systemJobId"] == job && it[attribute] == value);
    }

    /// The pid of the shell's only process whose command line contains `part`.
    ///
    /// # Panics
    /// If there is none, or several.
    #[must_use]
    pub fn pid(&self, part: &str) -> u32 {
        let pids = self.place.pids(part);
        assert_eq!(pids.len(), 1, "{part}: {pids:?}");
        pids[0]
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        for part in ["sdm-rm ", "sdm-agent", "--run-job", "sleep 1000"] {
            for pid in self.place.pids(part) {
                // One may have ended by itself in between.
                let pid = Pid::from_raw(pid.cast_signed());
                let _ = kill(pid, Signal::SIGKILL);
            }
        }
    }
}

impl Said {
    /// Asserts that the command succeeded without error output.
    ///
    /// # Panics
    /// If it did not.
    #[must_use]
    pub fn done(self) -> Self {
        assert_eq!((self.code, &*self.err), (Some(0), ""), "{}", self.out);
        self
    }

    /// Asserts that the command failed, with this exit code and this part of the message.
    ///
    /// # Panics
    /// If it did not.
    pub fn refused(&self, code: i32, part: &str) {
        assert_eq!(self.code, Some(code), "{} {}", self.out, self.err);
        assert!(self.err.contains(part), "no {part:?} in {}", self.err);
    }
}
