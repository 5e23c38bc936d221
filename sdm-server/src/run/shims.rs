//! A server of several ranks: connections of its shims until it gets its tasks.

use anyhow::{Context, Result};
use sdm_child::Channel;
use sdm_idset::{IdSet, TaskId};

use super::Server;
use crate::shim::ShimListener;

impl Server {
    pub(super) fn listen_for_shims(&mut self, listener: ShimListener) -> Result<()> {
        let sockets = self.driver.transport().inner().sockets();
        let watched = sockets.watch(listener.fd(), true, false);
        watched.context("cannot watch for ranks of this host")?;
        self.shims = Some(listener);
        Ok(())
    }

    /// Handles new and closed connections of shims. If shims have disconnected and none is left, the server leaves the
    /// session.
    pub(super) fn meet_shims(&mut self) {
        let server = self.driver.member().node().id();
        let Some(listener) = &mut self.shims else {
            return;
        };
        let (new, gone) = listener.handle_ready(server.0);
        let is_deserted = listener.is_empty() && !gone.is_empty();
        let sockets = self.driver.transport().inner().sockets();
        for fd in new {
            if let Err(error) = sockets.watch(fd, true, false) {
                tracing::error!("cannot watch sdm-shim: {error}");
            }
        }
        for fd in gone {
            sockets.forget(fd);
        }
        if is_deserted {
            self.leave();
        }
    }

    /// Takes the shims of the server's tasks, for the backend.
    pub(super) fn take_shims(&mut self, tasks: &IdSet) -> Vec<(TaskId, Channel)> {
        let Some(listener) = self.shims.take() else {
            return Vec::new();
        };
        let sockets = self.driver.transport().inner().sockets();
        for fd in listener.fds() {
            sockets.forget(fd);
        }
        listener.into_shims(tasks)
    }
}
