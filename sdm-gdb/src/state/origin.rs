//! The origin of a task: started by gdb, started and traced by a process of SDM, attached to, or read from a core file.

use std::path::PathBuf;
use std::rc::Rc;

use sdm_child::{Cause, Freed};
use sdm_debug::command::StopAt;
use sdm_inspect::stack::StoppedThread;

use super::breakpoints::SavedBreakpoint;
use super::scope::Scope;

/// The origin of a task.
pub(crate) enum Origin {
    /// gdb has started the program, and kills it at its own end.
    Started {
        /// A site's exec wrapper that has not executed the program yet; `None` if none runs.
        wrapped: Option<Wrapped>,
        /// The program under Valgrind; `None` if Valgrind does not run it.
        valgrind: Option<Valgrind>,
    },
    /// The program was started and seized by its parent, a process of SDM. A gdb can take it over, and kills it at
    /// gdb's own end.
    Seized {
        /// The state of the program at its release by the parent; `None` before.
        freed: Option<Freed>,
        /// The program's gdb.
        gdb: SeizedGdb,
        /// The thread that the parent has stopped, and the cause; `None` while the program runs.
        stands: Option<(i32, Cause)>,
        /// The thread that the parent has stopped, as the front-end knows it; `None` before its stop is reported.
        seen: Option<Rc<StoppedThread>>,
        /// The reason why no gdb can attach; `None` if one can.
        why_alone: Option<String>,
    },
    /// gdb has attached to a running process, and detaches at its own end.
    Attached {
        /// The permitted changes to the process.
        access: Access,
        /// The task's inferior and threads, in a gdb of several tasks.
        scope: Option<Scope>,
    },
    /// A core file: the task has no process.
    CoreFile,
}

/// The gdb of a seized program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SeizedGdb {
    /// Nothing has needed one.
    Unneeded,
    /// It is being started.
    Coming,
    /// It has attached: from now on it reports the program's events.
    Attached,
}

/// The changes that SDM may make to a process that gdb has attached to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// The process may be stopped and changed as requested.
    Full,
    /// Neither values nor code may be changed, so no breakpoint may be inserted.
    ReadOnly,
}

/// A start by a site's exec wrapper that has not executed the program yet.
pub(crate) struct Wrapped {
    /// The program that the exec wrapper will finally execute.
    pub(crate) program: PathBuf,
    /// The place at which the program is to stop first.
    pub(crate) stop: StopAt,
    /// The breakpoints to insert at this first stop.
    pub(crate) kept: Vec<SavedBreakpoint>,
    /// gdb's number of the catchpoint that catches each `exec`; `None` before the catchpoint is set.
    pub(crate) catch: Option<u32>,
}

/// A program that Valgrind runs.
#[derive(Default)]
pub(crate) struct Valgrind {
    /// Number of errors reported so far.
    pub(crate) errors: u64,
}

impl Default for Origin {
    fn default() -> Self {
        Self::Started {
            wrapped: None,
            valgrind: None,
        }
    }
}

impl Origin {
    /// True if gdb has attached to a process that SDM did not start, or reads a core file.
    pub(crate) fn is_attached(&self) -> bool {
        matches!(self, Self::Attached { .. } | Self::CoreFile)
    }

    pub(crate) fn is_core_file(&self) -> bool {
        matches!(self, Self::CoreFile)
    }

    /// True for a process that must not be changed.
    pub(crate) fn is_read_only_process(&self) -> bool {
        let access = match self {
            Self::Attached { access, .. } => *access,
            Self::Started { .. } | Self::Seized { .. } | Self::CoreFile => Access::Full,
        };
        access == Access::ReadOnly
    }

    /// True if no breakpoint can be inserted.
    pub(crate) fn takes_no_breakpoint(&self) -> bool {
        self.is_core_file() || self.is_read_only_process()
    }

    /// The state in which a seized program was released by its parent; `None` before, and for tasks of other origins.
    pub(crate) fn freed(&self) -> Option<Freed> {
        match self {
            Self::Seized { freed, .. } => *freed,
            _ => None,
        }
    }

    /// Records the release of a seized program by its parent.
    pub(crate) fn set_freed(&mut self, how: Freed) {
        if let Self::Seized { freed, stands, .. } = self {
            *freed = Some(how);
            *stands = how.stood.or(*stands);
        }
    }

    /// Records that the parent has stopped a thread of the seized program.
    pub(crate) fn set_stood(&mut self, thread: i32, cause: Cause) {
        if let Self::Seized { stands, .. } = self {
            *stands = Some((thread, cause));
        }
    }

    /// Records that the seized program has ended with its parent.
    pub(crate) fn forget_stop(&mut self) {
        self.forget_stood();
        if let Self::Seized { why_alone, .. } = self {
            *why_alone = None;
        }
    }

    /// Records that the parent is to resume the seized program.
    pub(crate) fn forget_stood(&mut self) {
        if let Self::Seized { stands, seen, .. } = self {
            (*stands, *seen) = (None, None);
        }
    }

    /// Records the stopped thread that was reported to the front-end.
    pub(crate) fn set_seen(&mut self, thread: StoppedThread) {
        if let Self::Seized { seen, .. } = self {
            *seen = Some(Rc::new(thread));
        }
    }

    /// The stopped thread that was reported to the front-end without gdb.
    pub(crate) fn seen(&self) -> Option<Rc<StoppedThread>> {
        match self {
            Self::Seized { seen, .. } => seen.clone(),
            _ => None,
        }
    }

    /// True for a program that its parent keeps stopped, while it has no gdb and none is being started.
    pub(crate) fn stands_alone(&self) -> bool {
        self.stood().is_some() && (self.why_alone().is_some() || !self.has_gdb())
    }

    /// True for a program that its parent has stopped, or to which no gdb can attach.
    pub(crate) fn is_alone(&self) -> bool {
        self.why_alone().is_some() || self.stands_alone()
    }

    /// True while gdb takes over a program whose stop the front-end knows already.
    pub(crate) fn is_stop_known(&self) -> bool {
        self.seen().is_some() && self.has_gdb() && self.why_alone().is_none()
    }

    /// True once after a takeover of a program whose stop the front-end knows already.
    pub(crate) fn take_known_stop(&mut self) -> bool {
        let is_known = self.is_stop_known();
        if is_known {
            self.forget_stood();
        }
        is_known
    }

    /// Records that a gdb is being started for a seized program.
    pub(crate) fn note_gdb_need(&mut self) {
        if let Self::Seized { gdb, .. } = self {
            *gdb = SeizedGdb::Coming;
        }
    }

    /// False for a seized program for which nothing has needed a gdb.
    pub(crate) fn may_have_gdb(&self) -> bool {
        !matches!(
            self,
            Self::Seized {
                gdb: SeizedGdb::Unneeded,
                ..
            }
        )
    }

    /// True for a seized program that has a gdb, or whose gdb is being started.
    pub(crate) fn has_gdb(&self) -> bool {
        matches!(self, Self::Seized { gdb, .. } if *gdb != SeizedGdb::Unneeded)
    }

    /// The thread of a seized program that its parent has stopped, and the cause; `None` if there is none.
    pub(crate) fn stood(&self) -> Option<(i32, Cause)> {
        match self {
            Self::Seized { stands, .. } => *stands,
            _ => None,
        }
    }

    /// Records the reason why no gdb can attach to a program that its parent has stopped. False for other programs.
    pub(crate) fn leave_alone(&mut self, why: &str) -> bool {
        match self {
            Self::Seized {
                gdb,
                stands: Some(_),
                why_alone,
                ..
            } if *gdb != SeizedGdb::Attached => {
                *why_alone = Some(why.to_owned());
                true
            }
            _ => false,
        }
    }

    /// The reason why no gdb can attach to the program; `None` if one can.
    pub(crate) fn why_alone(&self) -> Option<&str> {
        match self {
            Self::Seized { why_alone, .. } => why_alone.as_deref(),
            _ => None,
        }
    }

    /// Records that gdb has attached to the seized program.
    pub(crate) fn set_taken_over(&mut self) {
        if let Self::Seized { gdb, .. } = self {
            *gdb = SeizedGdb::Attached;
        }
    }

    /// True for a seized program to which gdb has attached.
    pub(crate) fn is_taken_over(&self) -> bool {
        matches!(
            self,
            Self::Seized {
                gdb: SeizedGdb::Attached,
                ..
            }
        )
    }

    /// The task's inferior and threads, in a gdb of several tasks; `None` in a gdb of one task.
    pub(crate) fn scope(&self) -> Option<&Scope> {
        match self {
            Self::Attached { scope, .. } => scope.as_ref(),
            Self::Started { .. } | Self::Seized { .. } | Self::CoreFile => None,
        }
    }

    /// Like `scope`, for changes; `None` in a gdb of one task.
    pub(crate) fn scope_mut(&mut self) -> Option<&mut Scope> {
        match self {
            Self::Attached { scope, .. } => scope.as_mut(),
            Self::Started { .. } | Self::Seized { .. } | Self::CoreFile => None,
        }
    }

    /// The start by an exec wrapper that has not executed the program yet; `None` if there is none.
    pub(crate) fn wrapped(&self) -> Option<&Wrapped> {
        match self {
            Self::Started { wrapped, .. } => wrapped.as_ref(),
            Self::Seized { .. } | Self::Attached { .. } | Self::CoreFile => None,
        }
    }

    /// Like `wrapped`, for changes; `None` for a task that was not started.
    pub(crate) fn wrapped_mut(&mut self) -> Option<&mut Option<Wrapped>> {
        match self {
            Self::Started { wrapped, .. } => Some(wrapped),
            Self::Seized { .. } | Self::Attached { .. } | Self::CoreFile => None,
        }
    }

    /// The task's program under Valgrind; `None` if Valgrind does not run it.
    pub(crate) fn valgrind(&self) -> Option<&Valgrind> {
        match self {
            Self::Started { valgrind, .. } => valgrind.as_ref(),
            Self::Seized { .. } | Self::Attached { .. } | Self::CoreFile => None,
        }
    }

    /// Like `valgrind`, for changes; `None` if Valgrind does not run the program.
    pub(crate) fn valgrind_mut(&mut self) -> Option<&mut Valgrind> {
        match self {
            Self::Started { valgrind, .. } => valgrind.as_mut(),
            Self::Seized { .. } | Self::Attached { .. } | Self::CoreFile => None,
        }
    }
}
