//! The command language of the prompt: gdb's commands over sets of tasks.
//!
//! A [`Shell`] carries out one command at a time over a [`DebugSession`], waits for its answers, and shows
//! the result in a [`View`]. It starts no thread, has no terminal and no files, and reads no clock but the
//! one that it is given. Services come from its [`Application`]; lines and signals reach it as
//! [`Control`]s.
//!
//! `model` is the known state of the session, without I/O, and `event_loop` updates it. Every other file
//! holds commands, which are async functions over a `SessionHandle`.

mod ask;
mod attach;
mod attachment;
mod batch;
mod breakpoints;
mod closed_session;
mod complete;
mod controls;
mod cores;
mod define;
mod diagnose;
mod display;
mod effects;
mod embedded;
mod event_loop;
mod exit;
mod export;
mod free_script;
mod handle;
mod invocation;
mod leave;
mod line;
mod look;
mod memory_estimate;
mod memory_use;
mod model;
mod notices;
mod options;
mod outcome;
mod overview;
mod pagination;
mod profile;
mod program_input;
mod queues;
mod report;
mod report_state;
mod rerun;
mod run;
mod save;
mod script;
mod session_info;
mod sets;
mod slices;
mod stacks;
mod start;
mod system;
#[cfg(test)]
mod tests;
mod thread_apply;
mod values;
mod wait;
mod watch;
mod working_directory;

pub use batch::Batch;
pub use closed_session::Ended;
pub use controls::{Control, InputSource, LineSource, Script, ScriptLine};
pub use diagnose::{Diagnosed, Looks};
pub use effects::{
    Application, LocalEnd, LocalMachine, LocalProcess, NotOpened, Restart, Widen, Widened, Widening,
};
pub use embedded::EmbeddedShell;
pub use exit::{Ending, StacksCode};
pub use free_script::runs_without_gdb;
pub use invocation::Verdict;
pub use look::LookBy;
pub use options::{Options, QUERY_TIMEOUT};
pub use profile::Sampling;
pub use wait::COMPLETE_WAIT;

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use sdm_debug::TaskState;
use sdm_debug::command::{AttachSpec, CoreSpec, StartSpec};
use sdm_idset::IdSet;

use crate::ReportFiles;
use sdm_session::DebugSession;
use sdm_view::profile::Profile;
use sdm_view::render::Names;
use sdm_view::report::Fact;

use effects::SessionWidening;
use handle::SessionHandle;
use model::Model;
use model::input::ProgramInput;

/// A shell over a session. It owns the session and the event loop.
pub struct Shell<D> {
    session: Rc<RefCell<D>>,
    handle: SessionHandle,
    controls: Receiver<Control>,
}

impl<D: DebugSession + 'static> Shell<D> {
    /// A shell over a session, in an application.
    pub fn new(session: D, mut application: Application, options: Options) -> Self {
        let (_, none) = std::sync::mpsc::channel();
        let controls = std::mem::replace(&mut application.controls, none);
        let now = (application.clock)();
        let model = Model::new(now, session.tasks().clone(), options);
        let session = Rc::new(RefCell::new(session));
        let shared: Rc<RefCell<dyn DebugSession>> = session.clone();
        Self {
            session,
            handle: SessionHandle::new(shared, application, model, now),
            controls,
        }
    }

    /// Splits the shell into its session and an [`Ended`], which shows the end of the session.
    ///
    /// # Panics
    /// Never: the shell is owned, so no command is in progress.
    pub fn into_parts(self) -> (D, Ended) {
        let report = report::take_report(&self.handle);
        let shared = self.handle.into_shared();
        let shared = shared.expect("no command is under way, and only commands have handles");
        let ended = Ended {
            report,
            view: shared.view.into_inner(),
            machine: shared.machine.into_inner(),
            clock: shared.clock,
            began: shared.began,
        };
        drop((shared.restart, shared.widening, shared.session));
        let session = Rc::into_inner(self.session);
        let session = session.expect("what shared it is dropped");
        (session.into_inner(), ended)
    }

    /// True once no command can be carried out any more.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.handle.is_over()
    }

    /// The tasks that may not be detached, because their gdb was killed or their server is lost.
    #[must_use]
    pub fn unsure(&self) -> IdSet {
        let is_dead = |state: &TaskState| *state == TaskState::GdbDead;
        self.handle
            .read(|model| model.tasks.in_state(is_dead).union(&model.tasks.lost()))
    }

    /// Switches from a script to an interactive user.
    pub fn set_interactive(&mut self) {
        self.handle.edit(|model| model.options.interactive = true);
    }

    /// Shows a line.
    pub fn say(&mut self, text: &str) {
        self.handle.say(text);
    }

    /// Sets the function that restarts the job.
    pub fn set_restart(&mut self, mut restart: Restart<D>) {
        let session = Rc::clone(&self.session);
        let restart = Box::new(move || restart(&mut session.borrow_mut()));
        *self.handle.shared().restart.borrow_mut() = Some(restart);
        self.handle.edit(|model| model.job.can_rerun = true);
    }

    /// Sets the function that opens servers on further hosts of the job.
    pub fn set_widening(&mut self, widening: Widening<D>) {
        let session = Rc::clone(&self.session);
        let Widening {
            elsewhere,
            mut open,
        } = widening;
        let open = Box::new(move |wanted: &IdSet| open(&mut session.borrow_mut(), wanted));
        *self.handle.shared().widening.borrow_mut() = Some(SessionWidening { elsewhere, open });
    }

    /// Sets the source of the programs' standard input. `send` then feeds no task.
    pub fn set_input(&mut self, source: Box<dyn InputSource>) {
        *self.handle.shared().input.borrow_mut() = Some(source);
        self.handle
            .edit(|model| model.input.own = Some(ProgramInput::default()));
    }

    /// Sets the facts of the run and the names of its tasks for the report. If there are `files`, the
    /// report is written to them during the run.
    pub fn set_report(&mut self, facts: Vec<Fact>, names: Names, files: Option<ReportFiles>) {
        report::set_report(&self.handle, facts, names, files);
    }

    /// Begins the standard input of programs that are being started.
    pub fn begin_input(&mut self) {
        program_input::begin_input(&self.handle);
    }

    /// Starts programs on their tasks, up to `main`. Returns false on failure.
    pub fn start(&mut self, programs: Vec<(IdSet, StartSpec)>) -> bool {
        let session = self.handle.clone();
        self.block_on(start::start(&session, programs))
    }

    /// Attaches to the `first` of these processes, or reads their stacks and has gdb attach when a command
    /// needs it. Returns false if that succeeded for none, or if the user has interrupted it. The other
    /// processes have a server, for `attach SET`.
    pub fn attach(&mut self, spec: AttachSpec, first: &IdSet, by: LookBy) -> bool {
        let session = self.handle.clone();
        self.block_on(attachment::attach(&session, spec, first, by))
    }

    /// Attaches to the processes that the session's own launcher holds. Returns false on failure; with
    /// `partial`, only if it could attach to none.
    pub fn attach_held(&mut self, spec: AttachSpec, partial: bool) -> bool {
        let session = self.handle.clone();
        self.block_on(attach::attach_held(&session, spec, partial))
    }

    /// Carries out lines until the source ends or the session is over. A script ends at its first line that
    /// fails.
    pub fn run_lines(&mut self, source: &mut dyn LineSource) -> Ending {
        let session = self.handle.clone();
        self.block_on(script::run_lines(&session, source))
    }

    /// Runs all tasks to their end. At the first crash, a time limit or a proved hang it carries out the commands for
    /// that case, and ends. The exit code tells the outcome.
    pub fn run_batch(&mut self, batch: &Batch) -> Ending {
        let session = self.handle.clone();
        self.block_on(batch::run_batch(&session, batch))
    }

    /// Shows the errors in the use of MPI. Then stops all tasks that have a gdb and, if a report is written, reads the
    /// state of all tasks for it. With a report this is also done after a signal that requests the end.
    pub fn look_back(&mut self) {
        let session = self.handle.clone();
        batch::tell_mpi_errors(&session);
        self.block_on(report::look_back(&session, report::Values::Now));
    }

    /// In a session that has started its programs, detaches living tasks if that is the ending's policy. Stays until
    /// programs that were started and then detached have ended; Ctrl-C kills them.
    pub fn leave(&mut self, ending: Ending) -> Ending {
        let session = self.handle.clone();
        self.block_on(leave::leave(&session, ending))
    }

    /// True if the start failed in all tasks because no program can be run, so that the session is of no
    /// use.
    #[must_use]
    pub fn has_no_program(&self) -> bool {
        self.handle.read(|model| model.job.programless.is_some())
    }

    /// The ending of a session whose start failed.
    #[must_use]
    pub fn failed_start(&self) -> Ending {
        exit::failed_start(&self.handle)
    }

    /// The ending of a session whose [`Shell::attach`] failed.
    #[must_use]
    pub fn failed_attach(&self) -> Ending {
        attach::failed_attach(&self.handle)
    }

    /// Reads the stacks of processes without changing them, shows the merged stacks, and detaches.
    pub fn show_stacks_of(&mut self, spec: AttachSpec, full: bool, by: LookBy) -> StacksCode {
        let session = self.handle.clone();
        self.block_on(stacks::show_stacks_of(&session, spec, full, by))
    }

    /// Reads the stacks of processes every `period` without changing them, and shows the merged stacks
    /// whenever they have changed. Ends on Ctrl-C or when all processes have ended, and detaches. The tasks
    /// run in between.
    pub fn watch_stacks_of(
        &mut self,
        spec: AttachSpec,
        full: bool,
        by: LookBy,
        period: Duration,
    ) -> StacksCode {
        let session = self.handle.clone();
        self.block_on(watch::watch_stacks_of(&session, spec, full, by, period))
    }

    /// Samples processes many times a second without changing them. Shows and returns the merged call stacks.
    pub fn profile_of(
        &mut self,
        spec: AttachSpec,
        sampling: Sampling,
    ) -> (StacksCode, Option<Box<Profile>>) {
        let session = self.handle.clone();
        self.block_on(profile::profile_of(&session, spec, sampling))
    }

    /// Samples processes without changing them, judges which are stuck, and detaches. `observed` has the
    /// observations made before.
    pub fn diagnose_target(
        &mut self,
        spec: AttachSpec,
        looks: (Looks, LookBy),
        observed: sdm_diagnose::Observed,
    ) -> Diagnosed {
        let session = self.handle.clone();
        self.block_on(diagnose::diagnose_target(&session, spec, looks, observed))
    }

    /// Opens all core files, and shows the positions of their processes. Returns false if none could be
    /// opened.
    pub fn open_cores(&mut self, spec: CoreSpec) -> bool {
        let session = self.handle.clone();
        self.block_on(cores::open_cores(&session, spec))
    }

    /// Shows the ends of processes and their merged stacks from their core files, `at_once` files at a
    /// time.
    pub fn show_cores(&mut self, spec: &CoreSpec, full: bool, at_once: usize) -> StacksCode {
        let session = self.handle.clone();
        self.block_on(cores::show_cores(&session, spec, full, at_once))
    }
}
