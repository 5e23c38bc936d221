//! The MPI launchers of this host, recognised by their `--version` output.

use std::path::{Path, PathBuf};
use std::time::Duration;

use sdm_hosts::mpi::{Linked, Mpi};
use sdm_system::run_bounded::{Bounds, run};
use sdm_system::{files, programs};

use crate::error::ManagerError;

/// Limits of a run of a launcher with `--version`.
const BOUNDS: Bounds = Bounds {
    wait: Duration::from_secs(20),
    lines_max: 1000,
};

/// A type of launcher. The first of its names is the one that an environment module or `PATH` selects. The others are
/// names in distributions.
#[derive(Clone, Copy, Debug)]
pub struct Launcher {
    names: &'static [&'static str],
    /// Text that the launcher's `--version` output contains.
    says: &'static str,
}

/// The launcher of Open MPI, in any version.
pub const OPEN_MPI: Launcher = Launcher {
    names: &["mpirun", "mpirun.openmpi"],
    says: "Open MPI",
};
/// The launcher of MPICH and of the MPIs derived from it.
pub const HYDRA: Launcher = Launcher {
    names: &["mpiexec", "mpiexec.hydra", "mpiexec.mpich"],
    says: "HYDRA",
};

impl Launcher {
    /// The launcher of the MPI that a program is linked with.
    ///
    /// # Errors
    /// The program is linked with no MPI for which a launcher is known.
    pub fn of_program(program: &str) -> Result<&'static Self, ManagerError> {
        match Linked::of(Path::new(program), &|name| std::env::var_os(name)).mpi {
            Some(Mpi::Mpich) => Ok(&HYDRA),
            Some(Mpi::OpenMpi) => Ok(&OPEN_MPI),
            None => {
                let what = "the program is linked with neither Open MPI nor MPICH";
                Err(ManagerError::program(program, what))
            }
        }
    }

    /// The launcher of this kind on `PATH`; of several, the one whose name comes first in `names`.
    pub(super) fn find(&self) -> Result<PathBuf, ManagerError> {
        let mut found = self.names.iter().filter_map(files::search);
        let found = found.find(|path| self.is_one(path));
        found.ok_or_else(|| {
            let what = format!("{} of {}", self.names.join(", "), self.says);
            ManagerError::NoProgram(what)
        })
    }

    fn is_one(&self, path: &Path) -> bool {
        let said = run(programs::helper_at(path).arg("--version"), &[], BOUNDS);
        said.is_ok_and(|said| said.lines.iter().any(|line| line.contains(self.says)))
    }
}
