//! Opens real sessions.

use std::sync::Arc;
use std::time::Duration;

use sdm_core::config::Config;
use sdm_debug::EndPolicy;

use super::{Opener, Opening, Plan, Wake};
use crate::session::{Session, SessionConfig};

/// Opens sessions of real processes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Live;

impl Opener for Live {
    type Session = Session;

    fn open(
        &mut self,
        plan: Plan,
        tell: &mut dyn FnMut(Opening),
    ) -> Result<(Session, Wake), String> {
        let config = SessionConfig {
            launcher: plan.launcher,
            launcher_options: plan.launcher_options,
            tasks: plan.tasks,
            topology: plan.tree.topology,
            config: Config {
                start_wait: Duration::from_secs(plan.tree.start_wait.into()),
                partial: plan.tree.partial,
                ..Config::default()
            },
            backend: plan.backend,
            directory: plan.directory,
            ..SessionConfig::local(plan.servers)
        };
        let mut progress = |progress: crate::session::StartProgress| {
            tell(Opening {
                phase: progress.phase,
                done: progress.done,
                total: progress.total,
                slowest: progress.slowest,
                note: progress.note,
            });
        };
        let session = Session::start(&config, &mut progress).map_err(|error| error.to_string())?;
        let waker = session.waker();
        Ok((session, Arc::new(move || waker.wake())))
    }

    fn close(&mut self, session: Session, policy: EndPolicy) -> Result<(), String> {
        session.close(match policy {
            EndPolicy::KillStarted => sdm_core::message::EndPolicy::KillStarted,
            EndPolicy::Detach => sdm_core::message::EndPolicy::Detach,
        })
    }
}
