//! Opens real sessions.

use std::sync::Arc;
use std::time::Duration;

use sdm_core::config::Config;
use sdm_debug::EndPolicy;

use super::{Opener, Opening, Plan, Wake};
use crate::session::{Session, SessionConfig};

/// How long a person may take to start what is to be started by hand.
const BY_HAND_WAIT: Duration = Duration::from_secs(900);

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
        let mut config = SessionConfig {
            launcher: plan.launcher,
            launcher_options: plan.launcher_options,
            hosts: plan.hosts,
            tasks: plan.tasks,
            by_host: plan.by_host,
            port: plan.port,
            server_path: plan.server_path,
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
        if config.launcher == "manual" {
            let wait = config.config.start_wait;
            config.config.start_wait = wait.max(BY_HAND_WAIT);
        }
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
