//! The launchers of MPI's that a host has, by what they say of themselves.

use std::path::{Path, PathBuf};
use std::time::Duration;

use sdm_system::bounded::{Bounds, run};
use sdm_system::{files, programs};

use crate::error::ManagerError;

/// How long one may take to say what it is.
const BOUNDS: Bounds = Bounds {
    wait: Duration::from_secs(20),
    lines_max: 1000,
};

/// A kind of launcher. The first of its names is what a user's own choice has, by a module or `PATH`; the others are what
/// distributions call it beside that.
#[derive(Clone, Copy, Debug)]
pub struct Launcher {
    names: &'static [&'static str],
    /// What `--version` says.
    says: &'static str,
}

/// Open MPI's, of any version.
pub const OPEN_MPI: Launcher = Launcher {
    names: &["mpirun", "mpirun.openmpi"],
    says: "Open MPI",
};
/// That of MPICH and what comes from it.
pub const HYDRA: Launcher = Launcher {
    names: &["mpiexec", "mpiexec.hydra", "mpiexec.mpich"],
    says: "HYDRA",
};

impl Launcher {
    /// The first program on `PATH` that is one.
    pub(super) fn find(&self) -> Result<PathBuf, ManagerError> {
        let mut found = self.names.iter().filter_map(files::search);
        let found = found.find(|path| self.is_one(path));
        found.ok_or_else(|| {
            let what = format!("{} of {}", self.names.join(", "), self.says);
            ManagerError::NoProgram(what)
        })
    }

    fn is_one(&self, path: &Path) -> bool {
        let said = run(programs::at(path).arg("--version"), &[], BOUNDS);
        said.is_ok_and(|said| said.lines.iter().any(|line| line.contains(self.says)))
    }
}
