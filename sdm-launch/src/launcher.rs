//! What every launcher can be asked.

use sdm_hosts::mpi::Mpi;

use crate::{Control, Launch, LaunchError, LaunchSpec, SharedServers};

/// A way to start the servers of a session: by itself, or by a program that is made for it.
pub trait Launcher {
    /// The launcher's short name: `local`, `mpirun`, `mpiexec`.
    fn name(&self) -> &str;

    /// The launcher in a person's words: which program, which version.
    fn describe(&self) -> String;

    /// The MPI whose ranks find one another by what it gives them, where it is made for one.
    fn mpi(&self) -> Option<Mpi> {
        None
    }

    /// Whether its servers can be on other hosts, as far as `spec` and the environment tell.
    fn may_span_hosts(&self, spec: &LaunchSpec) -> bool {
        let _ = spec;
        false
    }

    /// Whether the environment goes to the servers over channels of its own, which others may listen to, and stays
    /// with its daemons.
    fn carries_environment(&self) -> bool {
        false
    }

    /// How `count` processes come to servers of at most `each` (1 or more), where it is the servers who start them and
    /// not the launcher; none where the launcher starts each process itself, which then has what a rank must have.
    ///
    /// # Errors
    /// The hosts of `spec` have no room for so many, or it needs some and there are none.
    fn share(
        &self,
        spec: &LaunchSpec,
        count: u32,
        each: u32,
    ) -> Result<Option<SharedServers>, LaunchError> {
        let _ = (spec, count, each);
        Ok(None)
    }

    /// Whether somebody else starts the master too.
    fn is_by_hand(&self) -> bool {
        false
    }

    /// How it can hold what it starts for a debugger, if it can.
    fn control(&self) -> Option<Control> {
        None
    }

    /// Whether it can copy the server to its hosts.
    fn stages(&self) -> bool {
        false
    }

    /// Starts the servers and returns at once; everything else is heard from the [`Launch`].
    ///
    /// The calling thread must live as long as the session: the kernel sends SIGTERM to what it
    /// started when it ends.
    ///
    /// # Errors
    /// Where nothing could be started; then nothing is left behind.
    fn launch(&self, spec: &LaunchSpec) -> Result<Launch, LaunchError>;
}
