//! The opener of sessions whose master and servers are processes: starts a session, adopts a launcher, and ends the
//! session.

use std::sync::Arc;

use sdm_debug::EndPolicy;
use sdm_idset::IdSet;
use sdm_launch::Launch;
use sdm_session::{Session, SessionConfig, StartProgress};

use super::error::AppError;
use super::opener::Opener;
use super::wake::Wake;
use crate::sink::Sink;

/// The opener of sessions whose members are processes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Live;

impl Opener for Live {
    type Session = Session;

    fn open(
        &mut self,
        config: &SessionConfig,
        tell: &mut dyn FnMut(StartProgress),
    ) -> Result<(Session, Wake), AppError> {
        let mut session = Session::start(config, tell)?;
        session.pass_late_to(pass_late);
        let waker = session.waker();
        Ok((session, Arc::new(move || waker.wake())))
    }

    fn adopt(
        &mut self,
        session: &mut Session,
        starter: Launch,
        records: bool,
    ) -> Result<(), AppError> {
        session.adopt(starter, records).map_err(AppError::Adopt)
    }

    fn close(&mut self, session: &mut Session, policy: EndPolicy) -> Result<(), AppError> {
        Ok(session.end(policy)?)
    }

    fn lost<'a>(&self, session: &'a Session) -> &'a IdSet {
        session.lost()
    }
}

/// Prints output that the launcher carries while a session ends. There is no prompt left to be kept intact.
fn pass_late(stderr: bool, bytes: &[u8]) {
    // A failed write is ignored: the output is not read.
    let _ = match stderr {
        true => Sink::Complaints.pass(bytes),
        false => Sink::Output.pass(bytes),
    };
}
