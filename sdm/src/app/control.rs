//! `sdm run --control`: the job's own launcher starts and holds the job, and the session attaches to it.

use std::path::PathBuf;
use std::time::Duration;

use sdm_debug::BackendSettings;
use sdm_debug::command::AttachSpec;
use sdm_launch::{Control, HeldLauncher, Hold, LaunchSpec, Launcher, Part};
use sdm_session::{DebugSession, SessionConfig};
use sdm_shell::Shell;
use sdm_shell::exit_codes::NOT_STARTED;

use super::attach::{Attachment, look_up};
use super::error::AppError;
use super::opener::{Opener, Refused, refused};
use super::wake::Wake;
use crate::cli::{ProgramPart, ReachArgs, RunArgs, TargetArgs};
use crate::sink::Sink;

/// The start of a job that its launcher holds.
pub(super) struct Controlled {
    launcher: Box<dyn Launcher>,
    control: Control,
    spec: LaunchSpec,
    gdb: Option<PathBuf>,
    reach: ReachArgs,
    backend: BackendSettings,
    wait: Duration,
    partial: bool,
}

/// Processes that the launcher holds until the session has attached to them.
pub(super) struct HeldProcesses {
    spec: AttachSpec,
    hold: Hold,
    partial: bool,
}

/// A session on the hosts of the held processes, and the handle that wakes it; or the reason why there is none.
type Opened<O> = Result<(<O as Opener>::Session, Wake), Refused>;

impl Controlled {
    /// A start by the launcher of `session`.
    pub(super) fn new(
        args: &RunArgs,
        parts: &[ProgramPart],
        session: &SessionConfig,
        control: Control,
    ) -> Result<Self, Refused> {
        if !args.gdb_use.wrapper_words().is_empty() {
            let text =
                "--wrapper, --memcheck: not with --control: gdb does not start the program then";
            return Err((2, text.to_owned()));
        }
        let launcher = sdm_launch::find(&session.launcher);
        let launcher = launcher.map_err(|error| (NOT_STARTED, error.to_string()))?;
        let mut spec = LaunchSpec::new(session.servers, &parts[0].words[0]);
        spec.server_args = parts[0].words[1..].to_vec();
        if parts.len() > 1 {
            let part = |part: &ProgramPart| Part {
                count: part.count,
                options: part.options.clone(),
                words: part.words.clone(),
            };
            spec.parts = parts.iter().map(part).collect();
        }
        spec.launcher_options.clone_from(&session.launcher_options);
        spec.hosts.clone_from(&session.hosts);
        spec.directory.clone_from(&args.directory);
        spec.streams = session.streams;
        for (name, value) in &args.environment {
            match value {
                Some(value) => spec.environment.push((name.into(), value.into())),
                None => spec.unset.push(name.into()),
            }
        }
        // The launcher options apply to the launcher of the job, and not to that of the servers beside it.
        let reach = ReachArgs {
            launcher_options: Vec::new(),
            ..args.launch.reach.clone()
        };
        Ok(Self {
            launcher,
            control,
            spec,
            gdb: args.gdb.clone(),
            reach,
            backend: args.gdb_use.backend(),
            wait: session.config.start_wait,
            partial: args.tree.partial,
        })
    }

    /// Starts the job, waits until it is held, and opens a session for it. On failure the job is ended. The first value
    /// is None if there is no session.
    pub(super) fn open<O: Opener>(
        self,
        opener: &mut O,
        records: bool,
    ) -> (Option<HeldProcesses>, Opened<O>) {
        let gdb = self.gdb.clone().unwrap_or_else(|| "gdb".into());
        let started =
            HeldLauncher::start(&*self.launcher, self.control, self.spec, &gdb, self.wait);
        let mut held = match started {
            Ok(held) => held,
            Err(error) => return (None, Err((NOT_STARTED, error.to_string()))),
        };
        let mut pass = |stderr: bool, bytes: &[u8]| {
            // A failed write is ignored: the output is not read.
            let _ = match stderr || records {
                true => Sink::Complaints.pass(bytes),
                false => Sink::Output.pass(bytes),
            };
        };
        let found = held.wait(&mut pass).map_err(AppError::from);
        let found = found.and_then(|()| {
            let target = TargetArgs::of_starter(held.starter(), self.reach, self.gdb);
            let mut found = look_up(&target, false)?;
            found.spec.held = true;
            found.session.backend = self.backend;
            match found.left_out.is_empty() || self.partial {
                true => Ok(found),
                false => Err(AppError::LeftOut(found.left_out)),
            }
        });
        let opened = found.and_then(|found| {
            let opened = super::opener::open(opener, &found.session)?;
            Ok((found, opened))
        });
        match opened {
            Ok((found, opened)) => adopt(opener, held, found, opened, (records, self.partial)),
            Err(why) => {
                held.end();
                (None, Err(refused(why)))
            }
        }
    }
}

fn adopt<O: Opener>(
    opener: &mut O,
    held: HeldLauncher,
    mut found: Attachment,
    (mut session, wake): (O::Session, Wake),
    (records, partial): (bool, bool),
) -> (Option<HeldProcesses>, Opened<O>) {
    let (starter, hold) = held.into_parts();
    if let Err(why) = opener.adopt(&mut session, starter, records) {
        return (None, Err(refused(why)));
    }
    found.keep_to(session.tasks());
    let waiting = HeldProcesses {
        spec: found.spec,
        hold,
        partial,
    };
    (Some(waiting), Ok((session, wake)))
}

impl HeldProcesses {
    /// Attaches to all held processes, and lets their launcher continue. Returns false on failure.
    pub(super) fn attach<D: DebugSession + 'static>(self, shell: &mut Shell<D>) -> bool {
        shell.begin_input();
        let attached = shell.attach_held(self.spec, self.partial);
        if let Err(error) = self.hold.release() {
            shell.say(&format!("cannot let the launcher continue: {error}"));
            return false;
        }
        attached
    }
}
