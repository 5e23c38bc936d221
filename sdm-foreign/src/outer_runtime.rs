//! Environment variables of the runtime that has started SDM itself. Programs that SDM's PMIx server serves must not
//! get them.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// Prefixes of the environment variables with which other launchers pass a process its job and rank.
const PREFIXES: [&str; 9] = [
    "PMIX_", "PMI_", "PMI2_", "PRTE_", "OMPI_", "ORTE_", "OPAL_", "SLURM_", "HYDRA_",
];
/// Prefix of parameters that a user may have set for programs, and that do not concern the job.
const OWN: &str = "OMPI_MCA_";
/// Parameters of Open MPI that its own launchers set for the processes that they start.
const OF_LAUNCHERS: [&str; 9] = [
    "OMPI_MCA_ess",
    "OMPI_MCA_orte_",
    "OMPI_MCA_pmix",
    "OMPI_MCA_schizo",
    "OMPI_MCA_plm",
    "OMPI_MCA_ras",
    "OMPI_MCA_rmaps",
    "OMPI_MCA_mpi_yield",
    "OMPI_MCA_shmem_RUNTIME",
];
/// Variables with the location of an Open MPI that was moved after its build.
const PLACES: [&str; 1] = ["OPAL_PREFIX"];

/// True for an environment variable that makes a program believe itself in the job of another launcher. A program that
/// SDM's PMIx server serves must not get it. The user's own parameters of Open MPI stay.
#[must_use]
pub fn is_outer(name: &OsStr) -> bool {
    let name = name.as_bytes();
    let begins = |prefix: &&str| name.starts_with(prefix.as_bytes());
    if PLACES.iter().any(|place| name == place.as_bytes()) {
        return false;
    }
    if begins(&OWN) {
        return OF_LAUNCHERS.iter().any(begins);
    }
    PREFIXES.iter().any(begins)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_of_an_outer_job_are_recognized() {
        for (name, expect) in [
            ("PMIX_RANK", true),
            ("PMIX_SERVER_URI41", true),
            ("PMIX_MCA_gds", true),
            ("PMI_FD", true),
            ("SLURM_NODELIST", true),
            ("OMPI_COMM_WORLD_RANK", true),
            ("OMPI_MCA_ess_base_jobid", true),
            ("OMPI_MCA_orte_hnp_uri", true),
            ("OMPI_MCA_btl", false),
            ("OPAL_PREFIX", false),
            ("PATH", false),
            ("LD_LIBRARY_PATH", false),
        ] {
            assert_eq!(is_outer(OsStr::new(name)), expect, "{name}");
        }
    }
}
