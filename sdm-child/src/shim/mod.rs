//! Shims: small processes that a launcher starts for the ranks, while one server drives the gdbs of several of them.
//!
//! A rank's process must be the launcher's own child, with the environment of the launcher. A server for each rank
//! would cost two wake-ups of a cold process for every command. So the rank's process is a [`Shim`], which sleeps, and
//! one server has the ends of all pipes.

mod channel;
mod link;
mod local;
mod message;
mod outside_looks;
mod process;

pub use channel::Channel;
pub use local::{LocalShim, run_shim};
pub use process::{Shim, ShimEvent};

pub(crate) use link::HeldAtShim;
pub use link::{ShimLink, ShimSays};
pub use message::{StartRequest, Started, ToShim, fuzz_shim, shim_examples};

use std::io;

use sdm_debug::wire;

use channel::Received;
use message::ToServer;

impl Channel {
    /// Receives the rank of the shim at the other end, in its first message; `None` if the message has not arrived yet.
    ///
    /// # Errors
    /// [`io::Error`] if the shim sends another message, or closes the connection.
    pub fn hello(&mut self) -> io::Result<Option<u32>> {
        match self.receive()? {
            Received::Nothing => Ok(None),
            Received::Closed => Err(io::ErrorKind::ConnectionReset.into()),
            Received::Message(bytes, _) => match wire::decode(&bytes) {
                Ok(ToServer::Hello { rank }) => Ok(Some(rank)),
                _ => Err(io::Error::other(
                    "the first message of sdm-shim does not contain its rank",
                )),
            },
        }
    }

    /// Accepts the shim at the other end for this server.
    ///
    /// # Errors
    /// [`io::Error`] if the shim is gone.
    pub fn welcome(&mut self, server: u32) -> io::Result<()> {
        let pid = std::process::id().cast_signed();
        self.send(wire::encode(&ToShim::Welcome { server, pid }), Vec::new())
    }
}
