//! Two ordinary users and root on one machine: one of them plants files, which another user finds.
//!
//! Only root can act as three users; otherwise such a test reports that and is skipped.

use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::place::MARK_VARIABLE;
use crate::run::BOUND;
use crate::{binaries, leftovers};

pub use crate::ordinary::USER;
/// Unix user id of the untrusted user. No machine has an account with this id.
pub const NEIGHBOUR: u32 = 65533;

/// A user of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// The administrator, who supports all users and inspects their jobs.
    Root,
    /// The user of `sdm`, who must not be harmed.
    User,
    /// Another user, who is not trusted.
    Neighbour,
}

impl Who {
    /// The Unix user id.
    #[must_use]
    pub fn uid(self) -> u32 {
        match self {
            Self::Root => 0,
            Self::User => USER,
            Self::Neighbour => NEIGHBOUR,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Root => "root",
            Self::User => "user",
            Self::Neighbour => "neighbour",
        }
    }
}

/// The homes of the three users, and a folder that all of them can write to. Drop removes the folders.
pub struct Neighbour {
    folder: PathBuf,
}

impl Neighbour {
    /// Creates the folders. Without root rights the skip is reported and the result is `None`.
    ///
    /// # Panics
    /// If the folders cannot be made.
    #[must_use]
    pub fn new() -> Option<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        if !nix::unistd::geteuid().is_root() {
            println!(
                "SKIP: only root can be a user and a neighbour of that user: this is not root"
            );
            return None;
        }
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("sdm-neighbour-{}-{count}-", std::process::id());
        let temporary = std::env::temp_dir();
        let temporary = match is_open_to_all(&temporary) {
            true => temporary,
            false => "/tmp".into(),
        };
        assert!(is_open_to_all(&temporary), "nobody but root gets to /tmp");
        let neighbour = Self {
            folder: temporary.join(name),
        };
        let make = |path: &Path, uid: u32, mode: u32| {
            fs::create_dir(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            let rights = fs::set_permissions(path, Permissions::from_mode(mode));
            rights.and_then(|()| chown(path, Some(uid), Some(uid)))
        };
        let made = make(&neighbour.folder, 0, 0o755)
            // Where everybody leaves his mark; without the sticky bit, which has rules of its own.
            .and_then(|()| make(&neighbour.folder.join("marks"), 0, 0o777))
            .and_then(|()| make(&neighbour.home(Who::Root), 0, 0o700))
            .and_then(|()| make(&neighbour.home(Who::User), USER, 0o700))
            .and_then(|()| make(&neighbour.home(Who::Neighbour), NEIGHBOUR, 0o755))
            .and_then(|()| make(&neighbour.shared(), 0, 0o1777));
        made.expect("folders for the test");
        Some(neighbour)
    }

    /// A user's home and temporary folder. All users can read that of [`Who::Neighbour`], and only the owner any other.
    #[must_use]
    pub fn home(&self, who: Who) -> PathBuf {
        self.folder.join(who.name())
    }

    /// A folder with the rights of `/tmp`: all can write, and none can remove another's files.
    #[must_use]
    pub fn shared(&self) -> PathBuf {
        self.folder.join("shared")
    }

    /// Writes a file owned by a user; a relative path is below the user's home. Missing folders on the way to it are
    /// created, with the same owner.
    ///
    /// # Panics
    /// If it cannot be written.
    pub fn plant(
        &self,
        who: Who,
        path: impl AsRef<Path>,
        mode: u32,
        contents: impl AsRef<[u8]>,
    ) -> PathBuf {
        let path = self.path(who, path.as_ref());
        fs::write(&path, contents).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        self.give(who, &path, mode);
        path
    }

    /// Copies a file for a user, as [`Neighbour::plant`] does.
    ///
    /// # Panics
    /// If it cannot be copied.
    pub fn plant_copy(
        &self,
        who: Who,
        path: impl AsRef<Path>,
        mode: u32,
        of: impl AsRef<Path>,
    ) -> PathBuf {
        let path = self.path(who, path.as_ref());
        fs::copy(of, &path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        self.give(who, &path, mode);
        path
    }

    /// Makes a user the owner of a file or folder, and sets its mode.
    ///
    /// # Panics
    /// If the owner or the mode cannot be changed.
    pub fn give(&self, who: Who, path: &Path, mode: u32) {
        let rights = fs::set_permissions(path, Permissions::from_mode(mode));
        rights
            .and_then(|()| chown(path, Some(who.uid()), Some(who.uid())))
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }

    fn path(&self, who: Who, path: &Path) -> PathBuf {
        let path = self.home(who).join(path);
        let missing: Vec<&Path> = path
            .ancestors()
            .skip(1)
            .take_while(|it| !it.exists())
            .collect();
        for folder in missing.into_iter().rev() {
            fs::create_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
            self.give(who, folder, 0o755);
        }
        path
    }

    /// The file that a planted program makes if it is executed.
    #[must_use]
    pub fn marker(&self, name: &str) -> Marker {
        Marker(self.folder.join("marks").join(name))
    }

    /// A command of a user, in the user's home. It gets no variable of this process: only `PATH`, `HOME`, `TMPDIR`,
    /// `SDM_CONFIG` and the mark are set.
    pub fn command(&self, who: Who, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("HOME", self.home(who))
            .env("TMPDIR", self.home(who))
            .env("SDM_CONFIG", "/dev/null")
            .env(MARK_VARIABLE, self.mark())
            .current_dir(self.home(who))
            .stdin(Stdio::null());
        if who != Who::Root {
            // This drops all further groups, too.
            command.uid(who.uid()).gid(who.uid());
        }
        command
    }

    /// `sdm ARGS`, run by a user.
    pub fn sdm<S: AsRef<OsStr>>(&self, who: Who, args: impl IntoIterator<Item = S>) -> Command {
        let mut command = self.command(who, self.binaries().join("sdm"));
        command.args(args);
        command
    }

    /// A text that all its processes have in their environment or command line.
    #[must_use]
    pub fn mark(&self) -> &str {
        let name = self.folder.file_name().and_then(OsStr::to_str);
        name.expect("it is made of letters and digits")
    }

    /// Waits for a process of this test whose command line contains `part`; returns its pid.
    ///
    /// # Panics
    /// If no such process appears within the bound.
    #[must_use]
    pub fn wait_for(&self, part: &str) -> u32 {
        let deadline = Instant::now() + BOUND;
        loop {
            let mut held = leftovers::holding(self.mark()).into_iter();
            if let Some((pid, _)) = held.find(|(_, line)| line.contains(part)) {
                return pid;
            }
            assert!(Instant::now() < deadline, "no process {part:?}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Ends every process that was started here.
    pub fn end_all(&self) {
        for (pid, _) in leftovers::holding(self.mark()) {
            let _ = kill(Pid::from_raw(pid.cast_signed()), Signal::SIGKILL);
        }
    }

    /// Checks that no process is left that was started here.
    ///
    /// # Panics
    /// If a process is still left after [`leftovers::GONE_WITHIN`].
    pub fn assert_gone(&self) {
        leftovers::assert_gone(self.mark());
    }

    /// The binaries under test, where all can execute them.
    ///
    /// # Panics
    /// If they cannot be copied.
    #[must_use]
    pub fn binaries(&self) -> PathBuf {
        let built = binaries::folder();
        if is_open_to_all(&built) {
            return built;
        }
        let copies = self.folder.join("bin");
        if copies.is_dir() {
            return copies;
        }
        let ours = |name: &str| {
            let name = name.strip_prefix("lib").unwrap_or(name);
            name.starts_with("sdm") && !name.ends_with(".d")
        };
        fs::create_dir(&copies).expect("a folder for the binaries");
        for entry in fs::read_dir(&built).expect("the build's folder").flatten() {
            let name = entry.file_name();
            if entry.path().is_file() && name.to_str().is_some_and(ours) {
                fs::copy(entry.path(), copies.join(name)).expect("a copy");
            }
        }
        self.give(Who::Root, &copies, 0o755);
        copies
    }
}

impl Drop for Neighbour {
    fn drop(&mut self) {
        self.end_all();
        // A left-over folder under /tmp is harmless.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// A file that exists if a planted program was executed.
#[derive(Clone, Debug)]
pub struct Marker(PathBuf);

impl Marker {
    /// The file, which the planted program writes when it is executed.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// A shell command that appends the executing user's id to the marker file.
    #[must_use]
    pub fn shell(&self) -> String {
        // The next process may be another user's, and writes to the same file.
        format!("(umask 0; id -u >>'{}')", self.0.display())
    }

    /// A shell script that writes the marker file.
    #[must_use]
    pub fn script(&self) -> String {
        format!("#!/bin/sh\n{}\n", self.shell())
    }

    /// A line of Python that writes the marker file.
    #[must_use]
    pub fn python(&self) -> String {
        let path = self.0.display().to_string();
        format!("import os; os.umask(0); open({path:?}, 'a').write(str(os.geteuid()) + '\\n')\n")
    }

    /// Checks that the planted file was not executed; `what` describes it.
    ///
    /// # Panics
    /// If the file was executed; the message names the user.
    #[track_caller]
    pub fn assert_absent(&self, what: &str) {
        if let Ok(who) = fs::read_to_string(&self.0) {
            panic!("{what} was executed by {who:?}");
        }
    }

    /// Checks that the planted file was executed; `what` describes it.
    ///
    /// # Panics
    /// If the file was not executed.
    #[track_caller]
    pub fn assert_left(&self, what: &str) {
        assert!(self.0.exists(), "{what} was not executed");
    }
}

/// The standard output and standard error of a process.
#[must_use]
pub fn said(output: &Output) -> String {
    let [out, err] = [&output.stdout, &output.stderr].map(|it| String::from_utf8_lossy(it));
    format!("{out}{err}")
}

/// A command's exit code and output.
#[derive(Debug)]
pub struct Outcome {
    /// Its exit code; absent where a signal ended it.
    pub code: Option<i32>,
    /// Standard output, then standard error.
    pub said: String,
}

impl Outcome {
    /// Runs a command to its end.
    ///
    /// # Panics
    /// If it cannot be started, or does not end within the bound.
    #[must_use]
    pub fn of(command: &mut Command) -> Self {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command
            .spawn()
            .unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let pid = Pid::from_raw(child.id().cast_signed());
        let (send, ended) = channel();
        std::thread::spawn(move || send.send(child.wait_with_output()));
        match ended.recv_timeout(BOUND) {
            Ok(output) => Self::read(&output.expect("it is a child of this process")),
            Err(_) => {
                let _ = kill(pid, Signal::SIGKILL);
                panic!("{command:?} does not end");
            }
        }
    }

    fn read(output: &Output) -> Self {
        Self {
            code: output.status.code(),
            said: said(output),
        }
    }

    /// Checks the exit code, and that the output contains `part`.
    ///
    /// # Panics
    /// If either differs.
    #[track_caller]
    pub fn expect(&self, code: i32, part: &str) {
        assert!(
            self.code == Some(code) && self.said.contains(part),
            "no {code} and {part:?}: {self:?}"
        );
    }
}

fn is_open_to_all(folder: &Path) -> bool {
    folder.ancestors().all(|folder| {
        fs::metadata(folder)
            .is_ok_and(|found| found.is_dir() && found.permissions().mode() & 1 == 1)
    })
}
