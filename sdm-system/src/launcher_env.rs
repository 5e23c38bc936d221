//! The number of a server or rank that a runtime has started, from an argument or from the runtime's environment
//! variables. The variables of every known runtime are listed here.

use sdm_text::printable_name;
use std::ffi::OsString;

/// Largest number of a server. Larger numbers identify members of the tree that are not servers.
pub const NUMBER_MAX: u32 = u32::MAX - 16;

/// The number of this server or rank, and further numbers from the same source.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Identity {
    /// The number in the session, at most [`NUMBER_MAX`]: the argument, or the rank that the runtime gave this process.
    pub server: u32,
    /// Number of servers, above `server`; `None` if the runtime does not provide it.
    pub size: Option<u32>,
    /// The index among the servers of its host; `None` if the runtime does not provide it.
    pub local_index: Option<u32>,
    /// The variable with the number, or `argument`.
    pub source: &'static str,
}

/// The reason for which a server does not know its number.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum IdentityError {
    /// Neither an argument nor an environment variable gives the number.
    Unknown,
    /// A variable or the argument has no valid number.
    Bad {
        /// The name of the variable, or `argument`.
        variable: &'static str,
        /// Value of the variable, cut to a printable length.
        value: String,
    },
    /// The number is not below the number of servers.
    OutOfSize {
        /// The number, from 0.
        server: u32,
        /// The variable with the number.
        source: &'static str,
        /// Number of servers, from the variable.
        size: u32,
        /// The variable with the number of servers.
        variable: &'static str,
    },
}

impl std::fmt::Display for IdentityError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unknown => {
                write!(
                    f,
                    "sdm-server has no server number: give --id, or set one of"
                )?;
                for (index, runtime) in RUNTIMES.iter().enumerate() {
                    let comma = if index == 0 { "" } else { "," };
                    write!(f, "{comma} {}", runtime.rank)?;
                }
                Ok(())
            }
            Self::Bad { variable, value } => {
                let max = NUMBER_MAX;
                write!(f, "{variable}={value:?}: not a number of 0 to {max}")
            }
            Self::OutOfSize {
                server,
                source,
                size,
                variable,
            } => write!(
                f,
                "server number {server} (from {source}) must be less than {variable}={size}"
            ),
        }
    }
}

impl std::error::Error for IdentityError {}

/// The environment variables of one runtime.
struct Runtime {
    rank: &'static str,
    sizes: &'static [&'static str],
    local_index: &'static [&'static str],
}

/// Every known runtime except `torchrun`, the innermost first. `mpirun` in a Slurm batch script inherits the script's
/// `SLURM_PROCID=0`, but no other runtime's processes inherit `OMPI_COMM_WORLD_RANK`.
const RUNTIMES: &[Runtime] = &[
    Runtime {
        rank: "SDM_SERVER_ID",
        sizes: &["SDM_SERVER_COUNT"],
        local_index: &["SDM_LOCAL_INDEX"],
    },
    // Open MPI 1.3 and later.
    Runtime {
        rank: "OMPI_COMM_WORLD_RANK",
        sizes: &["OMPI_COMM_WORLD_SIZE"],
        local_index: &["OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_NODE_RANK"],
    },
    // Hydra, and `srun --mpi=pmi2`, which has a different variable for the local index.
    Runtime {
        rank: "PMI_RANK",
        sizes: &["PMI_SIZE"],
        local_index: &["MPI_LOCALRANKID", "SLURM_LOCALID"],
    },
    // Hydra with `-pmi-port` does not set the size.
    Runtime {
        rank: "PMI_ID",
        sizes: &["PMI_SIZE"],
        local_index: &["MPI_LOCALRANKID"],
    },
    // Any PMIx, including `srun --mpi=pmix`. The size is that of a step, which a batch script does not have.
    Runtime {
        rank: "PMIX_RANK",
        sizes: &["SLURM_STEP_NUM_TASKS"],
        local_index: &["SLURM_LOCALID"],
    },
    Runtime {
        rank: "SLURM_PROCID",
        sizes: &["SLURM_STEP_NUM_TASKS", "SLURM_NTASKS", "SLURM_NPROCS"],
        local_index: &["SLURM_LOCALID"],
    },
];

/// PyTorch's `torchrun`. Its variable names are generic. So they count only if a variable that is specific to
/// `torchrun` is set, too.
const TORCHRUN: Runtime = Runtime {
    rank: "RANK",
    sizes: &["WORLD_SIZE"],
    local_index: &["LOCAL_RANK"],
};
const TORCHRUN_MARK: &str = "TORCHELASTIC_RUN_ID";

impl Identity {
    /// Finds this server's number: `argument` takes precedence, then the first runtime that sets a rank.
    ///
    /// With an argument nothing is read from the environment, as it may have another rank.
    ///
    /// # Errors
    /// No number is found, or it is out of range; the error names the variable.
    pub fn from_env(
        lookup: impl Fn(&str) -> Option<OsString>,
        argument: Option<u32>,
    ) -> Result<Self, IdentityError> {
        if let Some(server) = argument {
            if server > NUMBER_MAX {
                return Err(IdentityError::Bad {
                    variable: "argument",
                    value: server.to_string(),
                });
            }
            return Ok(Self {
                server,
                size: None,
                local_index: None,
                source: "argument",
            });
        }
        for runtime in RUNTIMES {
            if let Some(server) = number(&lookup, runtime.rank)? {
                return runtime.identity(server, &lookup);
            }
        }
        if lookup(TORCHRUN_MARK).is_some()
            && let Some(server) = number(&lookup, TORCHRUN.rank)?
        {
            return TORCHRUN.identity(server, &lookup);
        }
        Err(IdentityError::Unknown)
    }
}

impl Runtime {
    fn identity(
        &self,
        server: u32,
        lookup: &impl Fn(&str) -> Option<OsString>,
    ) -> Result<Identity, IdentityError> {
        let size = first(lookup, self.sizes)?;
        let local_index = first(lookup, self.local_index)?.map(|(_, index)| index);
        if let Some((variable, size)) = size
            && server >= size
        {
            return Err(IdentityError::OutOfSize {
                server,
                source: self.rank,
                size,
                variable,
            });
        }
        Ok(Identity {
            server,
            size: size.map(|(_, size)| size),
            local_index,
            source: self.rank,
        })
    }
}

/// The first of these variables that is set, and its number; `None` if none is set.
fn first(
    lookup: &impl Fn(&str) -> Option<OsString>,
    variables: &'static [&'static str],
) -> Result<Option<(&'static str, u32)>, IdentityError> {
    for variable in variables {
        if let Some(value) = number(lookup, variable)? {
            return Ok(Some((variable, value)));
        }
    }
    Ok(None)
}

fn number(
    lookup: &impl Fn(&str) -> Option<OsString>,
    variable: &'static str,
) -> Result<Option<u32>, IdentityError> {
    let Some(value) = lookup(variable) else {
        return Ok(None);
    };
    let digits = value.to_str().filter(|text| {
        let all = text.bytes().all(|byte| byte.is_ascii_digit());
        all && !text.is_empty()
    });
    let parsed = digits.and_then(|text| text.parse().ok());
    match parsed.filter(|&number: &u32| number <= NUMBER_MAX) {
        Some(number) => Ok(Some(number)),
        None => Err(IdentityError::Bad {
            variable,
            value: printable_name(&value).chars().take(40).collect(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(variables: &str, argument: Option<u32>) -> Result<Identity, IdentityError> {
        let lookup = |name: &str| {
            let values = variables.split(' ').filter_map(|it| it.split_once('='));
            let mut values = values.filter(|(variable, _)| *variable == name);
            values.next().map(|(_, value)| value.into())
        };
        Identity::from_env(lookup, argument)
    }

    /// Environment variables as the supported launchers set them, one case per launcher.
    #[test]
    fn server_identity_is_read_from_launcher_variables() {
        let check = |variables, server, size, local_index, source| {
            let expect = Identity {
                server,
                size,
                local_index,
                source,
            };
            assert_eq!(identity(variables, None), Ok(expect), "{variables}");
        };
        let open_mpi = "OMPI_COMM_WORLD_RANK=3 OMPI_COMM_WORLD_SIZE=8 OMPI_COMM_WORLD_LOCAL_RANK=1 \
                        OMPI_COMM_WORLD_NODE_RANK=2 PMIX_RANK=3";
        check(open_mpi, 3, Some(8), Some(1), "OMPI_COMM_WORLD_RANK");
        let batch = "SLURM_PROCID=0 SLURM_NTASKS=1 SLURM_LOCALID=0 PMIX_RANK=0";
        let in_batch = format!("{batch} {open_mpi}");
        check(&in_batch, 3, Some(8), Some(1), "OMPI_COMM_WORLD_RANK");
        let hydra = "PMI_RANK=2 PMI_SIZE=4 MPI_LOCALRANKID=2 MPI_LOCALNRANKS=4 PMI_FD=9";
        check(hydra, 2, Some(4), Some(2), "PMI_RANK");
        let hydra_port = "PMI_PORT=host:7 PMI_ID=5 MPI_LOCALRANKID=1";
        check(hydra_port, 5, None, Some(1), "PMI_ID");
        let pmi2 = "PMI_RANK=6 PMI_SIZE=8 PMI_FD=9 SLURM_PROCID=6 SLURM_NTASKS=8 SLURM_LOCALID=1";
        check(pmi2, 6, Some(8), Some(1), "PMI_RANK");
        check("PMIX_RANK=7 PMIX_NAMESPACE=a@1", 7, None, None, "PMIX_RANK");
        let pmix = "PMIX_RANK=7 SLURM_PROCID=7 SLURM_STEP_NUM_TASKS=9 SLURM_LOCALID=3";
        check(pmix, 7, Some(9), Some(3), "PMIX_RANK");
        let slurm = "SLURM_PROCID=4 SLURM_NTASKS=6 SLURM_LOCALID=0";
        check(slurm, 4, Some(6), Some(0), "SLURM_PROCID");
        check(
            "SLURM_PROCID=4 SLURM_NPROCS=6",
            4,
            Some(6),
            None,
            "SLURM_PROCID",
        );
        let local = "SDM_SERVER_ID=1 SDM_SERVER_COUNT=2 SDM_LOCAL_INDEX=1 PMI_RANK=0 PMI_SIZE=1";
        check(local, 1, Some(2), Some(1), "SDM_SERVER_ID");
        let torch = "RANK=5 WORLD_SIZE=8 LOCAL_RANK=1 TORCHELASTIC_RUN_ID=none";
        check(torch, 5, Some(8), Some(1), "RANK");
        // Without torchrun's own variable, variables with these names do not count.
        assert!(identity("RANK=5 WORLD_SIZE=8 LOCAL_RANK=1", None).is_err());
    }

    #[test]
    fn server_id_argument_overrides_launcher_variables() {
        let found = identity("OMPI_COMM_WORLD_RANK=3 OMPI_COMM_WORLD_SIZE=4", Some(9)).unwrap();
        assert_eq!(
            (found.server, found.size, found.source),
            (9, None, "argument")
        );
    }

    #[test]
    fn invalid_identity_variable_is_named() {
        let check = |variables, argument, expect: &str| {
            let error = identity(variables, argument).unwrap_err().to_string();
            assert!(error.contains(expect), "{variables}: {error}");
        };
        check(
            "",
            None,
            "no server number: give --id, or set one of SDM_SERVER_ID, OMPI_COMM_WORLD_RANK",
        );
        check("PMI_RANK=", None, "PMI_RANK=\"\": not a number of 0 to");
        check("PMI_RANK=-1", None, "PMI_RANK=\"-1\"");
        check("PMI_RANK=+1", None, "PMI_RANK=\"+1\"");
        check("SDM_SERVER_ID=x PMI_RANK=1", None, "SDM_SERVER_ID=\"x\"");
        check(
            "SLURM_PROCID=4294967295",
            None,
            "SLURM_PROCID=\"4294967295\"",
        );
        check(
            "PMIX_RANK=99999999999999999999",
            None,
            "PMIX_RANK=\"99999999999999999999\"",
        );
        check("PMI_RANK=1 PMI_SIZE=two", None, "PMI_SIZE=\"two\"");
        check(
            "PMI_RANK=1 MPI_LOCALRANKID=x",
            None,
            "MPI_LOCALRANKID=\"x\"",
        );
        check(
            "PMI_RANK=4 PMI_SIZE=4",
            None,
            "server number 4 (from PMI_RANK) must be less than PMI_SIZE=4",
        );
        check("", Some(u32::MAX), "argument=\"4294967295\"");
    }
}
