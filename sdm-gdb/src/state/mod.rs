//! The driver's state of its gdb and its task. Data only: nothing here sends a command or waits.

pub(super) mod activity;
pub(super) mod breakpoints;
pub(super) mod commands;
pub(super) mod console_capture;
pub(super) mod internal;
pub(super) mod last_probe;
pub(super) mod objects;
pub(super) mod origin;
pub(super) mod processes;
pub(super) mod return_tracking;
pub(super) mod scope;
pub(super) mod signals;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;
use std::time::Instant;

use sdm_core::CommandId;
use sdm_debug::reply::StopReason;
use sdm_debug::{Failure, FailureCode, Reply, TaskState};

use super::action::Action;
use super::config::DriverConfig;
use activity::Activity;
use breakpoints::{BreakpointHit, Breakpoints, Owner};
use commands::{Commands, GdbLife};
use last_probe::Probed;
use objects::Object;
use origin::Origin;
use processes::Processes;
use sdm_mi::Results;
use signals::{Handling, Interrupts, Sigcont};

/// Features that this gdb lacks and later ones have.
#[derive(Debug, Default)]
pub(super) struct GdbLacks {
    /// True for gdb 10 or 11. There MI's condition command takes the quotes as a part of the condition, and an attach
    /// beside other processes stays incomplete.
    pub(super) is_before_12: bool,
    /// gdb's version, if it cannot write this processor's registers.
    pub(super) unwritable: Option<String>,
    /// True for a gdb that cannot call SDM's function in Fortran; `None` until it is known.
    pub(super) function: Option<bool>,
}

/// The state of one gdb and its task.
pub(super) struct State {
    /// The time as last set by the owner.
    pub(super) now: Instant,
    pub(super) config: Rc<DriverConfig>,
    /// Actions for the owner, in order.
    pub(super) actions: VecDeque<Action>,
    /// Open commands: each is answered exactly once.
    pub(super) open: BTreeSet<CommandId>,
    /// The MI commands sent to gdb.
    pub(super) commands: Commands,
    pub(super) life: GdbLife,
    /// The activity of the task.
    pub(super) activity: Activity,
    pub(super) origin: Origin,
    /// The task's process, and other processes that gdb holds.
    pub(super) processes: Processes,
    pub(super) lacks: GdbLacks,
    pub(super) handling: Handling,
    pub(super) interrupts: Interrupts,
    /// The variable objects by name: those made by the front-end, and those that stand for parts of them.
    pub(super) objects: BTreeMap<String, Object>,
    /// The program's file name without directories, for frames without a name.
    pub(super) program_name: String,
    /// The last probe; `None` before the first.
    pub(super) probed: Option<Probed>,
    /// Level of the frame that the last stop showed: above 0 if the innermost ones were a runtime's.
    pub(super) shown_level: u32,
    pub(super) breakpoints: Breakpoints,
    /// Stops that were received and not handled yet.
    pub(super) stops: VecDeque<StopRecord>,
    /// Number of commands that are detaching from the program; counted by [`DetachGuard`](super::guards::DetachGuard).
    pub(super) letting_go: u32,
    /// True once gdb was told to detach: it receives nothing more about the task, as a gdb of several tasks would
    /// apply commands to the others.
    pub(super) is_leaving: bool,
}

/// A received stop.
#[derive(Default)]
pub(super) struct StopRecord {
    /// The fields of gdb's `*stopped` record.
    pub(super) results: Results,
    /// The owner of the breakpoint that was hit; `None` for other stops. It is looked up at once, because gdb next
    /// reports a temporary breakpoint as deleted.
    pub(super) owner: Option<Owner>,
    /// The end of a watchpoint that gdb has deleted, as the watched variable is gone; `None` for other stops.
    pub(super) scope: Option<StopReason>,
    /// All breakpoints that were hit.
    pub(super) met: Vec<BreakpointHit>,
    /// True for a stop in a function that gdb has called.
    pub(super) in_call: bool,
    /// True for a stop by a signal that the driver has sent. It is recorded at once: a stop is not examined if the user
    /// has resumed the program since.
    pub(super) signal_sent: bool,
    /// True for the end of a process that is not the task's own.
    pub(super) other_ended: bool,
}

impl State {
    pub(super) fn new(now: Instant, config: Rc<DriverConfig>) -> Self {
        Self {
            now,
            config,
            actions: VecDeque::new(),
            open: BTreeSet::new(),
            commands: Commands::default(),
            life: GdbLife::default(),
            activity: Activity::default(),
            origin: Origin::default(),
            processes: Processes::default(),
            lacks: GdbLacks::default(),
            handling: Handling::default(),
            interrupts: Interrupts::default(),
            objects: BTreeMap::new(),
            program_name: String::new(),
            probed: None,
            shown_level: 0,
            breakpoints: Breakpoints::default(),
            stops: VecDeque::new(),
            letting_go: 0,
            is_leaving: false,
        }
    }

    /// The pid of the task's process; `None` if there is none.
    pub(super) fn pid(&self) -> Option<i32> {
        self.processes.pid()
    }

    /// Forgets everything that holds only until the program runs.
    pub(super) fn forget_stop(&mut self) {
        self.breakpoints.forget_hits();
        self.commands.language = None;
        let objects = self.objects.values_mut();
        for fortran in objects.filter_map(|object| object.fortran.as_mut()) {
            fortran.place = None;
        }
    }

    /// Answers a command, unless it is answered already: a run's end, a cancel and gdb's end can coincide.
    pub(super) fn answer(&mut self, id: CommandId, result: Result<Reply, Failure>) {
        if self.open.remove(&id) {
            self.actions.push_back(Action::Answer { id, result });
        }
    }

    /// Requests a separate gdb for the attach, which then answers the command.
    pub(super) fn attach_apart(&mut self, id: CommandId) {
        if self.open.remove(&id) {
            self.actions.push_back(Action::AttachApart { id });
        }
    }

    /// The failure of a command that needs a live process; `None` if there is one.
    pub(super) fn why_not_live(&self) -> Option<Failure> {
        let how = match self.activity.task() {
            TaskState::Starting | TaskState::Stopped | TaskState::Running => return None,
            TaskState::Absent => "not started".to_owned(),
            TaskState::Exited(code) => format!("not running (exited {code})"),
            TaskState::Signalled(signal) => format!("not running (ended by {signal})"),
            TaskState::Detached => "not running (detached)".to_owned(),
            TaskState::GdbDead => {
                return Some(Failure::new(
                    FailureCode::GdbDead,
                    "the gdb of this rank has ended",
                ));
            }
        };
        Some(Failure::new(FailureCode::NotRunning, how))
    }

    /// The failure of a command that needs a stopped process; `None` if the process is stopped.
    pub(super) fn why_not_stopped(&self) -> Option<Failure> {
        let running = || Failure::new(FailureCode::Running, "running");
        self.why_not_live()
            .or_else(|| (!self.activity.is_stopped()).then(running))
    }

    /// Moves the task to another state. Take the open run out first if the state ends it.
    pub(super) fn set_task(&mut self, next: TaskState) {
        if next == TaskState::Stopped && self.activity.is_running() {
            self.handling.sigcont = Sigcont::Told;
        }
        self.activity.set_task(next);
    }
}
