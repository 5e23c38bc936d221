//! What a server knows of the PMIx server that its programs find, and what waits for it.

use std::collections::BTreeMap;
use std::os::fd::RawFd;
use std::time::Instant;

use bytes::Bytes;
use sdm_core::message::ExchangeId;
use sdm_debug::{BackendSettings, Failure, LauncherDuties, PmixJob};
use sdm_idset::IdSet;

use crate::own_tasks::{Tasks, WaitingCommand};
use crate::pmix::PmixServer;
use crate::spawning::Spawning;

/// The PMIx server of this node, and what waits for it.
#[derive(Default)]
pub(crate) struct Hosted {
    pub(crate) server: Option<PmixServer>,
    /// What the backend will be like, until it is there.
    pub(crate) setting_up: Option<SettingUp>,
    /// The job's tasks on other nodes.
    pub(crate) others: IdSet,
    /// What this node has for barriers that it has not come to yet, by their numbers.
    pub(crate) given: BTreeMap<u64, Vec<Bytes>>,
    /// The barriers at which this server speaks for its node, with their numbers there.
    pub(crate) spoken: Vec<(ExchangeId, u64)>,
    /// A process has ended the job: when those of these tasks that still run are killed.
    pub(crate) ending: Option<(Instant, IdSet)>,
    /// The programs that processes have started.
    pub(crate) spawning: Spawning,
}

/// What a backend will be like.
pub(crate) struct SettingUp {
    pub(crate) settings: BackendSettings,
    pub(crate) pmix: PmixJob,
    pub(crate) waiting: Vec<WaitingCommand>,
}

impl Hosted {
    /// Where commands wait, while they do.
    pub(crate) fn waiting(&mut self) -> Option<&mut Vec<WaitingCommand>> {
        self.setting_up.as_mut().map(|it| &mut it.waiting)
    }

    /// The tasks of the server that this is of.
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

    /// When the PMIx server is to be there.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let ready = self.server.as_ref().and_then(|it| it.deadline);
        let kill = self.ending.as_ref().map(|(at, _)| *at);
        ready.into_iter().chain(kill).min()
    }

    /// Whether a descriptor is the PMIx server's.
    pub(crate) fn holds(&self, fd: RawFd) -> bool {
        let server = self.server.as_ref();
        server.is_some_and(|it| it.fds().contains(&fd))
    }
}
