//! The interface of every launcher.

use sdm_hosts::mpi::Mpi;

use crate::{Control, Launch, LaunchError, LaunchSpec, SharedServers};

/// A way to start the servers of a session: directly, or by a program such as `mpirun` or `srun`.
pub trait Launcher {
    /// Short name of the launcher: `local`, `mpirun`, `mpiexec`.
    fn name(&self) -> &str;

    /// Display text of the launcher: program and version.
    fn describe(&self) -> String;

    /// The MPI implementation for whose ranks the launcher provides the process management; `None` if it provides it
    /// for none.
    fn mpi(&self) -> Option<Mpi> {
        None
    }

    /// True if the launcher's servers can be on other hosts, as far as `spec` and the environment show.
    fn may_span_hosts(&self, spec: &LaunchSpec) -> bool {
        let _ = spec;
        false
    }

    /// True if the launcher passes the environment to the servers over channels of its own. Other users may read these,
    /// and the launcher's daemons keep the environment.
    fn carries_environment(&self) -> bool {
        false
    }

    /// Distribution of `count` processes over servers of at most `each` (1 or more) processes, if the servers start the
    /// processes. `None` if the launcher starts each process itself and gives it the environment of a rank.
    ///
    /// # Errors
    /// The hosts of `spec` have no room for so many processes, or the launcher needs hosts and none are given.
    fn share(
        &self,
        spec: &LaunchSpec,
        count: u32,
        each: u32,
    ) -> Result<Option<SharedServers>, LaunchError> {
        let _ = (spec, count, each);
        Ok(None)
    }

    /// True if the user starts the master by hand as well.
    fn is_by_hand(&self) -> bool {
        false
    }

    /// The interface by which the launcher can hold its processes for a debugger; `None` if it cannot.
    fn control(&self) -> Option<Control> {
        None
    }

    /// True if the launcher can copy the server to its hosts.
    fn stages(&self) -> bool {
        false
    }

    /// Starts the servers and returns at once; everything else is reported by the [`Launch`].
    ///
    /// The calling thread must live as long as the session: the kernel sends SIGTERM to the started
    /// processes when it ends.
    ///
    /// # Errors
    /// If nothing could be started; then nothing is left behind.
    fn launch(&self, spec: &LaunchSpec) -> Result<Launch, LaunchError>;
}
