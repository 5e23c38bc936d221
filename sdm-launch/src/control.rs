//! Jobs that their own launcher starts and holds for a debugger.
//!
//! In contrast to [`Launcher::launch`] for servers, here the launcher starts
//! the program itself, and all processes stop at their beginning. The debugger then attaches to
//! them and releases the hold. There are two interfaces:
//!
//! - **MPIR** (Open MPI 4's `mpirun`, Slurm's `srun`): a debugger sets `MPIR_being_debugged` in the launcher
//!   before it begins, and the launcher stops at `MPIR_Breakpoint` once all processes exist. Here a gdb does
//!   that. When that gdb detaches, at the latest at the end of its input, the launcher continues and lets the
//!   processes continue as well.
//! - **PMIx** (Open MPI 5's `mpirun`): an option makes the launcher stop all processes on their exec. The job is
//!   ready when all of them are stopped.

mod gdb;
mod poll;

use sdm_text::printable_name;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use sdm_hosts::job::{self, Access, HeldRanks, JobError, StoppedAt};

use crate::{Launch, LaunchError, LaunchEvent, LaunchSpec, Launcher};
pub use gdb::HoldFailure;
use gdb::{AttachPipe, Gdb};
use poll::await_any;

/// Interval between two checks whether all processes are stopped.
const TURN: Duration = Duration::from_millis(100);
/// Time limit for a launcher to end after a request, and again after a kill.
const END_WAIT: Duration = Duration::from_secs(5);
/// Options of Open MPI 5 that stop all processes when they execute their program.
const STOP_ON_EXEC: [&str; 2] = ["--runtime-options", "stop-on-exec"];
/// Variable that suppresses Open MPI 4's warning that MPIR is deprecated.
const NO_WARNING: (&str, &str) = ("OMPI_MPIR_DO_NOT_WARN", "1");

/// The interface by which a launcher holds the processes that it starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// The launcher stops at `MPIR_Breakpoint` if `MPIR_being_debugged` is set (MPIR).
    Mpir,
    /// The launcher stops all processes on their exec (PMIx).
    Pmix,
}

impl Control {
    /// Name of the interface in options and messages.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Mpir => "mpir",
            Self::Pmix => "pmix",
        }
    }
}

/// Reason for which the processes of a started job are not held.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HoldError {
    /// The job's launcher ended before its processes existed.
    #[error("{who} {status} before it had started its processes")]
    Ended {
        /// Display name of the launcher: `mpirun`.
        who: String,
        /// The launcher's exit, in words.
        status: String,
    },
    /// gdb, which was to hold the launcher by MPIR, failed.
    #[error("cannot stop the processes of {who} for the debugger: {source}")]
    NotHeld {
        /// Display name of the launcher: `mpirun`.
        who: String,
        /// The step that gdb did not complete.
        source: HoldFailure,
    },
    /// The job's processes were not stopped in time.
    #[error(
        "the processes of {who} were not stopped by {control} within {seconds} s{cause}",
        seconds = wait.as_secs(),
        cause = behind(why)
    )]
    TooSlow {
        /// Display name of the launcher: `mpirun`.
        who: String,
        /// The interface that was to hold them: `mpir` or `pmix`.
        control: &'static str,
        /// Time for which the stop of the processes was awaited.
        wait: Duration,
        /// Reason for which the launcher's PMIx server could not be queried for the processes on other hosts; `None` if
        /// it was not needed.
        why: Option<String>,
    },
    /// The state of the job's processes cannot be read, so it is unknown whether they are held.
    #[error(transparent)]
    Job(#[from] JobError),
    /// Waiting for events failed.
    #[error("cannot wait for {who}: {source}")]
    Wait {
        /// Display name of the launcher: `mpirun`.
        who: String,
        /// The error of the system.
        source: io::Error,
    },
}

fn behind(why: &Option<String>) -> String {
    why.as_ref().map_or_else(String::new, |why| {
        format!(" (its PMIx server did not list the processes on other hosts: {why})")
    })
}

/// A job that is being started, or held.
///
/// Dropping it releases the hold, and sends its launcher SIGTERM.
pub struct HeldLauncher {
    launch: Launch,
    hold: Option<Gdb>,
    who: String,
    control: Control,
    ranks: HeldRanks,
    standing: StoppedAt,
    started: Instant,
    wait: Duration,
}

impl HeldLauncher {
    /// Makes `launcher` start a job whose processes will be held. `gdb` is for MPIR; `wait` limits the time until
    /// they are held.
    ///
    /// # Errors
    /// The launcher cannot hold a job in this way, or could not be started. For MPIR also: gdb could not be started or
    /// may not trace the launcher, or its pipe could not be created.
    pub fn start(
        launcher: &dyn Launcher,
        control: Control,
        mut spec: LaunchSpec,
        gdb: &Path,
        wait: Duration,
    ) -> Result<Self, LaunchError> {
        check(launcher, control, &spec)?;
        let who = launcher.name().to_owned();
        let started = Instant::now();
        let hold = match control {
            Control::Pmix => {
                let own = STOP_ON_EXEC.map(Into::into);
                spec.launcher_options.splice(0..0, own);
                None
            }
            Control::Mpir => {
                let (name, value) = NO_WARNING;
                spec.variables.push((name.into(), value.into()));
                let gate = AttachPipe::new().map_err(|source| watch(&who, "pipe", source))?;
                spec.gate = Some(gate.path());
                Some(gate)
            }
        };
        let mut launch = launcher.launch(&spec)?;
        launch.pass_on();
        let hold = match hold {
            None => None,
            Some(gate) => {
                check_access(launcher, control, launch.first_pid())?;
                let attached = Gdb::start(gdb, launch.first_pid(), gate);
                Some(attached.map_err(|source| LaunchError::Spawn {
                    who: "gdb".to_owned(),
                    program: gdb.to_owned(),
                    source,
                })?)
            }
        };
        Ok(Self {
            ranks: HeldRanks::of(launch.first_pid()),
            standing: StoppedAt::NotYet,
            launch,
            hold,
            who,
            control,
            started,
            wait,
        })
    }

    /// The launcher's pid, by which [`job::find`] finds the job.
    #[must_use]
    pub fn starter(&self) -> i32 {
        self.launch.first_pid()
    }

    /// Waits until all processes are held. The launcher's output meanwhile goes to `pass`; the flag is true for
    /// standard error.
    ///
    /// # Errors
    /// [`HoldError`]: the launcher ended before, the processes were not held in time, gdb cannot hold the launcher,
    /// the state of the processes cannot be read, or waiting failed.
    pub fn wait(&mut self, pass: &mut dyn FnMut(bool, &[u8])) -> Result<(), HoldError> {
        let deadline = self.started + self.wait;
        loop {
            if let Some(status) = self.pump(pass)? {
                return Err(self.too_early(&status));
            }
            let is_held = match &mut self.hold {
                Some(gdb) => match gdb.advance() {
                    Ok(is_held) => is_held,
                    Err(why) => return Err(self.not_held(why, pass)),
                },
                None => {
                    self.standing = self.ranks.look()?;
                    self.standing != StoppedAt::NotYet
                }
            };
            if is_held {
                return Ok(());
            }
            if Instant::now() >= deadline {
                return Err(HoldError::TooSlow {
                    who: self.who.clone(),
                    control: self.control.name(),
                    wait: self.wait,
                    why: self.ranks.unasked().map(ToString::to_string),
                });
            }
        }
    }

    fn too_early(&self, status: &str) -> HoldError {
        HoldError::Ended {
            who: self.who.clone(),
            status: status.to_owned(),
        }
    }

    /// The error if gdb did not reach the point at which the launcher holds its processes. If the launcher has ended
    /// meanwhile, the error contains its exit.
    fn not_held(&mut self, why: HoldFailure, pass: &mut dyn FnMut(bool, &[u8])) -> HoldError {
        let who = self.who.clone();
        let why = HoldError::NotHeld { who, source: why };
        let Some(gdb) = self.hold.take_if(|gdb| gdb.has_begun()) else {
            return why;
        };
        // It ends in any case.
        let _ = gdb.release();
        let deadline = Instant::now() + END_WAIT;
        while Instant::now() < deadline {
            match self.pump(pass) {
                Ok(None) => {}
                Ok(Some(status)) => return self.too_early(&status),
                Err(_) => break,
            }
        }
        why
    }

    /// Waits for output, at most [`TURN`]. Returns the launcher's exit in words if it has ended, and `None` while it
    /// runs.
    fn pump(&mut self, pass: &mut dyn FnMut(bool, &[u8])) -> Result<Option<String>, HoldError> {
        let gdb = self.hold.iter().flat_map(Gdb::fds);
        let fds = self.launch.borrowed_fds().into_iter().chain(gdb);
        await_any(fds, TURN).map_err(|source| HoldError::Wait {
            who: self.who.clone(),
            source,
        })?;
        Ok(self.take_events(pass))
    }

    fn take_events(&mut self, pass: &mut dyn FnMut(bool, &[u8])) -> Option<String> {
        let mut ended = None;
        for fd in self.launch.fds() {
            while self.launch.handle_ready(fd) {}
        }
        while let Some(event) = self.launch.poll_event() {
            match event {
                LaunchEvent::Bytes { stderr, bytes } => pass(stderr, &bytes),
                LaunchEvent::Ended { status, .. } => ended = Some(status),
                LaunchEvent::Note(text) => pass(true, format!("[launcher] {text}\n").as_bytes()),
                _ => {}
            }
        }
        ended
    }

    /// Separates the launch from the hold on its processes.
    #[must_use]
    pub fn into_parts(mut self) -> (Launch, Hold) {
        // Whether ranks on other hosts have ended cannot be seen.
        if self.standing == StoppedAt::Here {
            self.launch.end_lingering();
        }
        (self.launch, Hold(self.hold))
    }

    /// Ends the job, whether it is held or not, and waits until its launcher has ended, at most ten seconds.
    pub fn end(mut self) {
        // It ends in any case.
        let _ = Hold(self.hold.take()).release();
        for end in [Launch::terminate, Launch::kill] {
            end(&mut self.launch);
            let deadline = Instant::now() + END_WAIT;
            while !self.launch.is_over() && Instant::now() < deadline {
                if self.pump(&mut |_, _| {}).is_err() {
                    break;
                }
            }
        }
    }
}

/// The hold on a launcher's processes. Dropping it releases them.
pub struct Hold(Option<Gdb>);

impl Hold {
    /// Releases the launcher, which then continues and does not hold its processes any more. Call this once gdb is
    /// attached to the processes.
    ///
    /// # Errors
    /// gdb does not detach.
    pub fn release(self) -> io::Result<()> {
        self.0.map_or(Ok(()), Gdb::release)
    }
}

/// Returns an error if the launcher cannot hold a job in this way.
fn check(launcher: &dyn Launcher, control: Control, spec: &LaunchSpec) -> Result<(), LaunchError> {
    let refuse = |why: String| LaunchError::Control {
        launcher: launcher.describe(),
        control: control.name(),
        why,
    };
    match launcher.control() {
        Some(own) if own == control => {}
        Some(own) => {
            let own = own.name();
            let why = format!("sdm stops the processes of this launcher by --control {own} only");
            return Err(refuse(why));
        }
        None => {
            let why = "this launcher cannot stop its processes for a debugger: omit --control, or use mpirun or srun";
            return Err(refuse(why.to_owned()));
        }
    }
    let options = spec.all_options();
    let is_ours = |it: &&std::ffi::OsString| {
        crate::spec::is_option(it, &["runtime-options", "rtos", "runtime-option"])
    };
    match options.iter().find(is_ours) {
        Some(option) if control == Control::Pmix => Err(LaunchError::Option {
            launcher: launcher.name().to_owned(),
            option: printable_name(option),
            why: "--control pmix sets this option itself",
        }),
        _ => Ok(()),
    }
}

/// Returns an error if gdb cannot attach to the launcher: for example, this machine lets gdb trace only its own
/// descendants.
fn check_access(launcher: &dyn Launcher, control: Control, pid: i32) -> Result<(), LaunchError> {
    match job::obstacles(&[pid], Access::Attach).pop() {
        Some((_, obstacle)) => Err(LaunchError::Control {
            launcher: launcher.describe(),
            control: control.name(),
            why: format!("it {obstacle}"),
        }),
        None => Ok(()),
    }
}

fn watch(who: &str, op: &'static str, source: io::Error) -> LaunchError {
    LaunchError::Watch {
        who: who.to_owned(),
        op,
        source,
    }
}
