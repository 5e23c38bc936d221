//! The tasks of a server, as the tree accesses them.

use std::time::Instant;

use bytes::Bytes;
use sdm_core::CommandId;
use sdm_core::message::Status;
use sdm_core::node::LocalTasks;
use sdm_debug::command::StartSpec;
use sdm_debug::{Command, Failure, FailureCode, LauncherDuties, wire};
use sdm_idset::IdSet;

use crate::outbox::payload_of;

/// The tasks of a server, as the tree accesses them.
pub(crate) struct Tasks<'a> {
    pub(crate) backend: &'a mut Option<Box<dyn LauncherDuties>>,
    pub(crate) stopped: &'a Option<Failure>,
    /// The queue for commands while the backend is not set up; `None` once it is.
    pub(crate) waiting: Option<&'a mut Vec<WaitingCommand>>,
    /// The start specification of the last start is stored here, as a template for spawned programs. `None` if no
    /// program can spawn others.
    pub(crate) like: Option<&'a mut StartSpec>,
}

/// A command that waits for a backend.
pub(crate) struct WaitingCommand {
    pub(crate) id: CommandId,
    pub(crate) tasks: IdSet,
    pub(crate) payload: Bytes,
}

impl LocalTasks for Tasks<'_> {
    fn execute(
        &mut self,
        now: Instant,
        id: CommandId,
        tasks: &IdSet,
        payload: &[u8],
    ) -> Option<(Status, Bytes)> {
        if let Some(waiting) = &mut self.waiting {
            waiting.push(WaitingCommand {
                id,
                tasks: tasks.clone(),
                payload: Bytes::copy_from_slice(payload),
            });
            return None;
        }
        let failure = match (&mut *self.backend, wire::decode::<Command>(payload)) {
            (Some(backend), Ok(command)) => {
                tracing::info!(command = id.0, %tasks, "begins {}", command.name());
                if let (Some(like), Command::Start(spec)) = (&mut self.like, &command) {
                    like.clone_from(spec);
                }
                let result = backend.execute_at_once(now, id, tasks, command)?;
                let (status, payload) = payload_of(result);
                tracing::info!(command = id.0, %tasks, "answered: {status:?}");
                return Some((status, payload));
            }
            (None, _) => self.stopped.clone().unwrap_or_else(|| {
                Failure::new(
                    FailureCode::BadCommand,
                    "the server has not been initialized",
                )
            }),
            (_, Err(error)) => Failure::new(FailureCode::BadCommand, error.to_string()),
        };
        tracing::warn!(command = id.0, %tasks, "refused: {failure}");
        Some((Status::Failed, failure.encode()))
    }
}
