//! What a server knows of the PMIx server that its programs find, and what waits for it.

use std::os::fd::RawFd;
use std::time::Instant;

use sdm_debug::{BackendSettings, PmixJob};
use sdm_idset::IdSet;

use crate::own_tasks::WaitingCommand;
use crate::pmix::PmixServer;

/// The PMIx server of this node, and what waits for it.
#[derive(Default)]
pub(crate) struct Hosted {
    pub(crate) server: Option<PmixServer>,
    /// What the backend will be like, until it is there.
    pub(crate) setting_up: Option<SettingUp>,
    /// A process has ended the job: when those of these tasks that still run are killed.
    pub(crate) ending: Option<(Instant, IdSet)>,
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
