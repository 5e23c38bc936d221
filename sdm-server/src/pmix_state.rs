//! State of the PMIx server for this server's programs, and of work that waits for it.

use std::collections::BTreeMap;
use std::os::fd::RawFd;
use std::time::Instant;

use bytes::Bytes;
use sdm_core::message::ExchangeId;
use sdm_debug::{BackendSettings, Failure, LauncherDuties, PmixJob};
use sdm_idset::IdSet;

use crate::local_tasks::{Tasks, WaitingCommand};
use crate::pmix::PmixServer;
use crate::spawned_programs::Spawning;

/// The PMIx server of this node, and work that waits for it.
#[derive(Default)]
pub(crate) struct PmixState {
    pub(crate) server: Option<PmixServer>,
    /// The settings of the backend, and the waiting commands; `None` once the backend is set up.
    pub(crate) setting_up: Option<SettingUp>,
    /// The job's tasks on other nodes.
    pub(crate) others: IdSet,
    /// Data of this node, by fence number, for fences whose exchange over the tree has not begun here.
    pub(crate) given: BTreeMap<u64, Vec<Bytes>>,
    /// The fences in which this server takes part for its node, each with its number at the PMIx server.
    pub(crate) spoken: Vec<(ExchangeId, u64)>,
    /// Time at which these tasks are killed if they still run, because a process has aborted the job or the ranks of a
    /// fence cannot arrive. `None` otherwise, and after that time.
    pub(crate) ending: Option<(Instant, IdSet)>,
    /// True from the moment at which this server ends the job. Stays true after the deadline in `ending`.
    pub(crate) is_given_up: bool,
    /// True if no program is held before it aborts or exits.
    pub(crate) no_holds: bool,
    /// The programs that processes have spawned.
    pub(crate) spawning: Spawning,
}

/// The settings of a backend that is not set up yet, with the commands that wait for it.
pub(crate) struct SettingUp {
    pub(crate) settings: BackendSettings,
    pub(crate) pmix: PmixJob,
    pub(crate) waiting: Vec<WaitingCommand>,
}

impl PmixState {
    /// The queue of commands that wait for the backend; `None` once the backend is set up.
    pub(crate) fn waiting(&mut self) -> Option<&mut Vec<WaitingCommand>> {
        self.setting_up.as_mut().map(|it| &mut it.waiting)
    }

    /// The tasks of this server.
    pub(crate) fn tasks<'a>(
        &'a mut self,
        backend: &'a mut Option<Box<dyn LauncherDuties>>,
        stopped: &'a Option<Failure>,
    ) -> Tasks<'a> {
        Tasks {
            backend,
            stopped,
            waiting: self.setting_up.as_mut().map(|it| &mut it.waiting),
            like: self.server.as_ref().map(|_| &mut self.spawning.like),
        }
    }

    /// The earlier one of two deadlines: for the PMIx server to be ready, and for programs of an aborted job to end.
    /// `None` if neither is set.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let ready = self.server.as_ref().and_then(|it| it.deadline);
        let kill = self.ending.as_ref().map(|(at, _)| *at);
        ready.into_iter().chain(kill).min()
    }

    /// True for a descriptor of the PMIx server.
    pub(crate) fn holds(&self, fd: RawFd) -> bool {
        let server = self.server.as_ref();
        server.is_some_and(|it| it.fds().contains(&fd))
    }
}
