//! The start of a gdb process with pipes for its input, output and errors.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, ExitStatus, Stdio};
use std::rc::Rc;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use sdm_debug::{Failure, FailureCode, GdbOptions};
use sdm_inferior::{Identity, identity};
use sdm_system::programs;
use sdm_text::{printable, printable_name};

use super::{Binding, Preload, autoload};
use crate::shim::ShimLink;
use crate::stdio::set_nonblocking;

/// Settings that every gdb starts with. The reasons for some:
/// - Safe path: its default begins with `$debugdir`, which is every directory if `debug-file-directory` is empty. Only
///   [`autoload`] loads scripts of programs and libraries.
/// - Scripts directory: a gdb installed elsewhere does not search the system's directory of pretty-printers.
/// - `mi-async`: without it gdb reads no commands while the program runs.
/// - `print elements`: arrays that differ after gdb's default of 200 elements must not look equal; the backend cuts
///   them for display.
/// - `max-value-size`: beyond its default of 64 KiB gdb 13 does not even print the beginning of an array.
/// - `print object`: what is behind a pointer to a base class is shown with all its members, also in editors.
/// - `unwindonsignal`: a program must not continue in an interrupted call, even after a detach or the server's death.
/// - `maintenance set`: with `confirm off` gdb answers its own question after an internal error with yes, and aborts.
///
/// An empty `debug-file-directory`, set later, makes gdb 2.7 times faster and stacks complete.
const SETTINGS: [&str; 23] = [
    "set auto-load safe-path /usr/share/gdb/auto-load",
    "set auto-load scripts-directory $datadir/auto-load:/usr/share/gdb/auto-load",
    "set auto-load local-gdbinit off",
    "set auto-load gdb-scripts off",
    "set auto-load python-scripts off",
    "set mi-async on",
    "set pagination off",
    "set confirm off",
    "set width 0",
    "set height 0",
    "set style enabled off",
    "set print elements 4000",
    "set max-value-size 16777216",
    "set print object on",
    "set startup-with-shell on",
    "set history save off",
    "set breakpoint pending off",
    "set unwindonsignal on",
    "maintenance set internal-error quit no",
    "maintenance set internal-error corefile no",
    "maintenance set internal-warning quit no",
    "maintenance set internal-warning corefile no",
    "maintenance set demangler-warning quit no",
];

/// The settings that gdb gets before it reads any file.
fn settings<'a>(options: &'a GdbOptions, scripts: &'a str) -> Vec<&'a str> {
    let mut settings = SETTINGS.to_vec();
    if !options.debuginfod {
        settings.push("set debuginfod enabled off");
    }
    if options.system_debug {
        settings.push("add-auto-load-scripts-directory /usr/lib/debug");
    } else {
        settings.push("set debug-file-directory");
    }
    settings.push(scripts);
    let set = options.settings.iter().map(String::as_str);
    settings.extend(set.filter(|line| !is_handle(line)));
    settings
}

/// The `handle` settings of the user, which gdb gets after the standard ones.
pub fn handles(options: &GdbOptions) -> Vec<String> {
    let lines = options.settings.iter();
    lines.filter(|line| is_handle(line)).cloned().collect()
}

/// True if a gdb command line is `handle` or an abbreviation of it of at least two letters.
pub fn is_handle(line: &str) -> bool {
    let word = line.split_whitespace().next().unwrap_or_default();
    word.len() > 1 && "handle".starts_with(word)
}

/// The command-line arguments of a gdb with these options. Benchmarks start their gdbs with the same arguments.
#[must_use]
pub fn gdb_arguments(options: &GdbOptions) -> Vec<&str> {
    arguments(options, autoload::command())
}

/// The command-line arguments of a gdb. `scripts` is the gdb command that loads the auto-load scripts.
fn arguments<'a>(options: &'a GdbOptions, scripts: &'a str) -> Vec<&'a str> {
    let mut arguments = vec!["-q", "-i=mi3"];
    if !options.init_files {
        arguments.push("-nx");
    }
    for setting in settings(options, scripts) {
        arguments.extend(["-iex", setting]);
    }
    arguments
}

/// The processors, the preloaded library and the environment variables of a gdb.
#[derive(Default)]
pub struct GdbEnvironment<'a> {
    /// The processor binding that gdb has until it has started its program; the program keeps it. `None` if this
    /// process is not bound.
    pub binding: Option<&'a Binding>,
    /// The library that gdb preloads; `None` for none.
    pub preload: Option<&'a Preload>,
    /// Differences of gdb's environment from this process's: a variable is set, or unset if `None`.
    pub variables: &'a [(OsString, Option<OsString>)],
}

/// A variable of which gdb and its program have different values.
const PATH: &str = "PATH";

/// The parent of a gdb.
enum GdbProcess {
    /// This process.
    Own(Child),
    /// A shim, which reports the gdb's end.
    OfShim {
        pid: i32,
        /// The process by which gdb gets signals: the pid may be reused before the shim reports gdb's end. `None` if it
        /// has ended.
        who: Option<Identity>,
        link: Rc<ShimLink>,
    },
}

/// A running gdb.
pub struct GdbChild {
    process: GdbProcess,
    status: Option<ExitStatus>,
    /// The pipe for commands; `None` once it is closed, which ends gdb.
    pub stdin: Option<OwnedFd>,
    /// The pipe from which gdb's MI records are read; `None` once it is closed.
    pub stdout: Option<OwnedFd>,
    /// The pipe from which gdb's output outside MI is read; `None` once it is closed.
    pub stderr: Option<OwnedFd>,
}

impl GdbChild {
    /// Starts a gdb in `directory` with the environment `around`.
    ///
    /// Inherited descriptors stay open for the program (`PMI_FD`); gdb also inherits the descriptors `handed`. With
    /// `goes_with_us` gdb is killed, and with it its program, when this process ends. That is for a gdb that attaches
    /// to nothing, and whose input another process holds.
    pub fn spawn(
        gdb: &Path,
        directory: &Path,
        options: &GdbOptions,
        around: &GdbEnvironment<'_>,
        handed: &[&OwnedFd],
        goes_with_us: bool,
    ) -> Result<Self, Failure> {
        let mut command = programs::helper_at(gdb);
        if let Some(preload) = around.preload {
            preload.load_into(&mut command);
        }
        let handed_scripts = autoload::handed();
        if let Some(scripts) = handed_scripts {
            sdm_system::hand_on(&mut command, &scripts.file);
        }
        let scripts = handed_scripts.map_or(autoload::command(), |it| &it.command);
        command
            .args(arguments(options, scripts))
            .current_dir(directory)
            .env("LC_ALL", "C")
            .env("SHELL", "/bin/sh")
            .env_remove("LINES")
            .env_remove("COLUMNS")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        for (name, value) in around.variables.iter().filter(|it| it.0 != PATH) {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        sdm_system::files::shut_python(&mut command);
        crate::sys::prepare_gdb(&mut command, goes_with_us);
        for file in handed {
            sdm_system::hand_on(&mut command, file);
        }
        if let Some(binding) = around.binding {
            crate::sys::bind(&mut command, binding.program);
        }
        let failed = |error: std::io::Error| {
            let text = format!("{}: {error}", printable_name(gdb));
            let check = match error.kind() {
                ErrorKind::WouldBlock => "processes",
                ErrorKind::OutOfMemory => "memory",
                _ => "gdb",
            };
            let hint = format!("`sdm doctor` checks this ({check})");
            Failure::new(FailureCode::NoGdb, text).with_hint(hint)
        };
        let mut child = command.spawn().map_err(failed)?;
        tracing::info!(pid = child.id(), "gdb started: {}", printable_name(gdb));
        let stdin = child.stdin.take().map(OwnedFd::from);
        let stdout = child.stdout.take().map(OwnedFd::from);
        let stderr = child.stderr.take().map(OwnedFd::from);
        for fd in [&stdin, &stdout, &stderr].into_iter().flatten() {
            set_nonblocking(fd.as_fd()).map_err(|errno| failed(errno.into()))?;
        }
        Ok(Self {
            process: GdbProcess::Own(child),
            status: None,
            stdin,
            stdout,
            stderr,
        })
    }

    /// The gdb that a shim has started, with its input, output and errors.
    pub fn of_shim(pid: i32, link: Rc<ShimLink>, pipes: [OwnedFd; 3]) -> Self {
        let [stdin, stdout, stderr] = pipes.map(Some);
        Self {
            process: GdbProcess::OfShim {
                pid,
                who: identity(pid),
                link,
            },
            status: None,
            stdin,
            stdout,
            stderr,
        }
    }

    /// Gives up gdb's input, output and errors, for the process that drives gdb.
    pub fn into_pipes(self) -> Vec<OwnedFd> {
        let pipes = [self.stdin, self.stdout, self.stderr];
        pipes.into_iter().flatten().collect()
    }

    /// The shim that is gdb's parent; `None` if gdb is a child of this process.
    pub fn shim(&self) -> Option<&Rc<ShimLink>> {
        match &self.process {
            GdbProcess::Own(_) => None,
            GdbProcess::OfShim { link, .. } => Some(link),
        }
    }

    /// The pid of gdb.
    pub fn pid(&self) -> i32 {
        match &self.process {
            GdbProcess::Own(child) => child.id().cast_signed(),
            GdbProcess::OfShim { pid, .. } => *pid,
        }
    }

    /// Exit status of gdb; `None` while it runs.
    pub fn try_wait(&mut self) -> Option<ExitStatus> {
        if self.status.is_none() {
            self.status = match &mut self.process {
                // An error means that another process has reaped it. It has ended in any case.
                GdbProcess::Own(child) => child.try_wait().unwrap_or(Some(ExitStatus::from_raw(0))),
                GdbProcess::OfShim { pid, link, .. } => link.status_of(*pid),
            };
        }
        self.status
    }

    /// True if a signal has ended gdb.
    pub fn was_killed(&mut self) -> bool {
        let status = self.try_wait();
        status.is_some_and(|status| status.signal().is_some())
    }

    /// Sends a signal to gdb, unless it has ended.
    pub fn signal(&mut self, signal: Signal) {
        if self.try_wait().is_some() {
            return;
        }
        match &self.process {
            // The process was not reaped, so the pid has not been reused.
            GdbProcess::Own(child) => {
                let _ = kill(Pid::from_raw(child.id().cast_signed()), signal);
            }
            GdbProcess::OfShim { who, .. } => who.iter().for_each(|it| it.signal(signal)),
        }
    }
}

/// The last lines of a gdb's output outside MI, to describe its end.
#[derive(Default)]
pub struct LastWords {
    bytes: Vec<u8>,
}

/// Maximum number of bytes that are kept of gdb's last lines.
const LAST_WORDS_BYTES_MAX: usize = 2048;

impl LastWords {
    /// Appends output of gdb.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        let excess = self.bytes.len().saturating_sub(LAST_WORDS_BYTES_MAX);
        self.bytes.drain(..excess);
    }

    /// A description of gdb's end, with its exit status and last output.
    pub fn describe(&self, status: Option<ExitStatus>) -> String {
        let mut text = match status.map(|status| (status.code(), status.signal())) {
            Some((Some(code), _)) => format!("gdb exited with {code}"),
            Some((_, Some(nix::libc::SIGKILL))) => {
                "gdb was killed by SIGKILL: by a user, or by the kernel because memory ran out"
                    .to_owned()
            }
            Some((_, Some(signal))) => {
                let name = Signal::try_from(signal).map_or("a signal", Signal::as_str);
                format!("gdb was ended by {name}")
            }
            _ => "gdb closed its output".to_owned(),
        };
        let words = String::from_utf8_lossy(&self.bytes);
        if let Some(last) = words.lines().rev().find(|line| !line.trim().is_empty()) {
            text.push_str(": ");
            text.push_str(last.trim());
        }
        if status.is_some_and(|status| status.code().is_some()) && words.contains("Python") {
            for (name, value) in sdm_system::files::python_variables() {
                let value = printable(value.as_encoded_bytes());
                text.push_str(&format!(
                    "; {name}={value} affects gdb's Python (unset {name})"
                ));
            }
        }
        text
    }
}
