//! Choice of the resource manager for a job of the invoke server.

use std::path::Path;

use sdm_hosts::HostShare;
use sdm_hosts::job::is_this_host;
use sdm_hosts::mpi::{Linked, Mpi};
use serde::{Deserialize, Serialize};

use super::attributes::{Backend, JobRequest};
use crate::error::ManagerError;
use crate::gridengine::GridEngine;
use crate::local::{HYDRA, Local, OPEN_MPI};
use crate::manager::Manager;
use crate::slurm::Slurm;
use crate::ssh::Ssh;

/// Prefix of an invoke server's type that names a manager, such as `SDMslurm`.
const PREFIX: &str = "SDM";

/// A resource manager.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Target {
    /// This host; processes are started directly, without a launcher.
    Local,
    /// This host, with Open MPI's launcher.
    OpenMpi,
    /// This host, with MPICH's launcher.
    Hydra,
    /// The Slurm whose commands are on `PATH`.
    Slurm,
    /// The Grid Engine whose commands are on `PATH`.
    GridEngine,
    /// A host that is reached by `ssh`.
    Ssh {
        /// Name of the host.
        host: String,
        /// Options of `ssh`, one word each.
        options: Vec<String>,
        /// Path of `sdm-agent` on the host; `None` for the path of this program.
        agent: Option<String>,
    },
}

/// Reason for which no manager takes a job.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// No manager of this type.
    #[error("`{0}` is not a type of resource manager")]
    Unknown(String),
    /// The program is not linked with an MPI for which a launcher is known.
    #[error("program {0} is linked with neither Open MPI nor MPICH")]
    NoMpi(String),
}

impl Target {
    /// The manager for a job: by the server's type (`SDMslurm`), else by `jobmanager` (`jobmanager-slurm`), else by
    /// the host.
    ///
    /// # Errors
    /// There is no such manager, or no manager for such a job.
    pub fn of(server_type: &str, request: &JobRequest) -> Result<Self, TargetError> {
        let by_type = server_type.strip_prefix(PREFIX).unwrap_or(server_type);
        let by_job = request
            .jobmanager
            .rsplit(['/', '-'])
            .next()
            .unwrap_or_default();
        let word = if by_type.is_empty() { by_job } else { by_type };
        match word.to_ascii_lowercase().as_str() {
            "slurm" => Ok(Self::Slurm),
            "gridengine" | "sge" => Ok(Self::GridEngine),
            "openmpi" => Ok(Self::OpenMpi),
            "hydra" => Ok(Self::Hydra),
            "local" => Self::here(request),
            "ssh" => Ok(Self::there(request)),
            "" | "fork" if is_this_host(&request.hostname) => Self::here(request),
            "" | "fork" => Ok(Self::there(request)),
            _ => Err(TargetError::Unknown(word.chars().take(80).collect())),
        }
    }

    fn here(request: &JobRequest) -> Result<Self, TargetError> {
        if request.backend == Backend::Normal {
            return Ok(Self::Local);
        }
        let program = &request.job.program;
        match Linked::of(Path::new(program), &|name| std::env::var_os(name)).mpi {
            Some(Mpi::Mpich) => Ok(Self::Hydra),
            Some(Mpi::OpenMpi) => Ok(Self::OpenMpi),
            None => Err(TargetError::NoMpi(program.clone())),
        }
    }

    fn there(request: &JobRequest) -> Self {
        let mut options = request.ssh_options.clone();
        // The first one counts, so that a client's own option does.
        if request.port != 0 {
            options.extend(["-p".to_owned(), request.port.to_string()]);
        }
        Self::Ssh {
            host: request.hostname.clone(),
            options,
            agent: request.agent.clone(),
        }
    }

    /// Opens the manager.
    ///
    /// # Errors
    /// The manager is not available here.
    pub fn open(&self) -> Result<Box<dyn Manager>, ManagerError> {
        Ok(match self {
            Self::Local => Box::new(Local::new("local", None)?),
            Self::OpenMpi => Box::new(Local::new("openmpi", Some(&OPEN_MPI))?),
            Self::Hydra => Box::new(Local::new("hydra", Some(&HYDRA))?),
            Self::Slurm => Box::new(Slurm::new()?),
            Self::GridEngine => Box::new(GridEngine::new()?),
            Self::Ssh {
                host,
                options,
                agent,
            } => {
                let shares = HostShare::list(host);
                let shares = shares.map_err(|why| ManagerError::program("hostname", why))?;
                let agent = agent.as_ref().map(Into::into);
                Box::new(Ssh::new(&shares, options.clone(), agent)?)
            }
        })
    }

    /// True if the manager itself writes the job's output files, so that nothing is copied at the job's end.
    #[must_use]
    pub fn writes_files(&self) -> bool {
        matches!(self, Self::Slurm | Self::GridEngine)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn target_is_chosen_by_server_type_then_jobmanager_then_host() {
        let request = |jobmanager: &str, hostname: &str| JobRequest {
            jobmanager: jobmanager.to_owned(),
            hostname: hostname.to_owned(),
            ..JobRequest::default()
        };
        let of =
            |server_type, jobmanager, host| Target::of(server_type, &request(jobmanager, host));
        assert_eq!(of("SDM", "", "localhost"), Ok(Target::Local));
        assert_eq!(of("SDM", "jobmanager-fork", "localhost"), Ok(Target::Local));
        assert_eq!(of("SDM", "h/jobmanager-slurm", "h"), Ok(Target::Slurm));
        assert_eq!(of("SDMslurm", "jobmanager-fork", "h"), Ok(Target::Slurm));
        assert_eq!(of("openmpi", "", "h"), Ok(Target::OpenMpi));
        assert!(
            matches!(of("SDM", "", "far.example.org"), Ok(Target::Ssh { host, .. }) if host == "far.example.org")
        );
        let mut at_port = request("", "far.example.org");
        at_port.ssh_options = vec!["-4".to_owned()];
        at_port.port = 2022;
        let Ok(Target::Ssh { options, .. }) = Target::of("SDMssh", &at_port) else {
            panic!("it is reached by ssh");
        };
        assert_eq!(options, ["-4", "-p", "2022"]);
        assert!(matches!(of("SDMlsf", "", "h"), Err(TargetError::Unknown(word)) if word == "lsf"));
    }
}
