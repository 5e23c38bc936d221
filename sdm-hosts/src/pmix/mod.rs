//! PMIx servers of this machine that accept tools, and the choice of the server that the user names.
//!
//! The choice is made here and not by libpmix. libpmix takes files of dead servers for servers, and reads all of a
//! large `/tmp`. It does not try the system's server first, as RFC0010 (`PMIx extension of tool interaction support`)
//! requires.

mod rendezvous;

use std::path::{Path, PathBuf};
use std::process::Command;

pub use crate::job::PmixError;
pub use rendezvous::{Level, RejectedFile, Rendezvous, fuzz_rendezvous};

/// The user's choice of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerChoice {
    /// The system's server if one runs, else the only session server.
    Any,
    /// The system's server.
    System,
    /// The server in the process with this pid.
    Pid(i32),
    /// The server with this namespace.
    Namespace(String),
    /// The server that has written this rendezvous file.
    File(PathBuf),
    /// The server at this address: `NAMESPACE.RANK;tcp4://IP:PORT`, or the part after the semicolon.
    Uri(String),
}

/// Reason for which no server was chosen.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ChoiceError {
    /// No usable server runs. The texts name the rejected servers, each with the reason.
    #[error("none of your PMIx servers on this machine accepts tools{ignored}", ignored = left_out(.0))]
    None(Vec<String>),
    /// No server matches.
    #[error(
        "{wanted}: not one of your PMIx servers that accept tools{ignored}",
        ignored = left_out(left)
    )]
    NoSuch {
        /// The user's choice, as text.
        wanted: String,
        /// Rejected servers with the reasons, each as text.
        left: Vec<String>,
    },
    /// Several servers run, and the user has named none. The texts name the servers.
    #[error("several PMIx servers run; name one by --pid or --server: {}", .0.join("; "))]
    Several(Vec<String>),
}

/// Maximum number of rejected servers that an error message lists.
const NAMED_MAX: usize = 3;

fn left_out(left: &[String]) -> String {
    let named = left[..left.len().min(NAMED_MAX)].join("; ");
    match left.len().saturating_sub(NAMED_MAX) {
        _ if left.is_empty() => String::new(),
        0 => format!(" (ignored: {named})"),
        more => format!(" (ignored: {named}; and {more} more)"),
    }
}

/// The servers on this machine that this user may query, each once, the system's first. Also returns, for each
/// rendezvous file of a rejected server, the reason.
#[must_use]
pub fn servers() -> (Vec<Rendezvous>, Vec<String>) {
    rendezvous::find(&rendezvous::folders())
}

/// The server that has written a rendezvous file.
///
/// # Errors
/// [`RejectedFile`]: why this user cannot ask the server.
pub fn server_of(file: &Path) -> Result<Rendezvous, RejectedFile> {
    rendezvous::read(file)
}

/// The server that the user has chosen by `wanted`.
///
/// # Errors
/// [`ChoiceError`]: no server matches, or several run and `wanted` names none.
pub fn choose(wanted: &ServerChoice) -> Result<Rendezvous, ChoiceError> {
    if let ServerChoice::File(file) = wanted {
        return rendezvous::read(file).map_err(|why| ChoiceError::NoSuch {
            wanted: sdm_text::printable_name(file),
            left: vec![why.to_string()],
        });
    }
    let (found, left) = servers();
    choose_of(wanted, found, left)
}

/// The command of a tool that connects to a server and uses the server's own library: `sdm-pmix tool LIBRARY PID FILE`.
/// The process gives up all rights but this user's, and has the three standard descriptors of its parent.
///
/// # Errors
/// [`PmixError`]: the command cannot be made.
pub fn tool(server: &Rendezvous) -> Result<Command, PmixError> {
    let mut command = crate::job::pmix_helper(server.pid, &["tool"])?;
    command.arg(&server.file);
    Ok(command)
}

fn choose_of(
    wanted: &ServerChoice,
    mut found: Vec<Rendezvous>,
    left: Vec<String>,
) -> Result<Rendezvous, ChoiceError> {
    let name = match wanted {
        ServerChoice::Any => {
            let system = found.iter().position(|it| it.level == Level::System);
            return match (system, found.len()) {
                (None, 0) => Err(ChoiceError::None(left)),
                (None, 1) => Ok(found.remove(0)),
                (Some(at), _) => Ok(found.remove(at)),
                (None, _) => {
                    let all = found.iter().map(ToString::to_string).collect();
                    Err(ChoiceError::Several(all))
                }
            };
        }
        ServerChoice::System => "the system server".to_owned(),
        ServerChoice::Pid(pid) => format!("process {pid}"),
        ServerChoice::Namespace(name) | ServerChoice::Uri(name) => {
            sdm_text::printable(name.as_bytes())
        }
        ServerChoice::File(file) => sdm_text::printable_name(file),
    };
    let is_it = |it: &Rendezvous| match wanted {
        ServerChoice::System => it.level == Level::System,
        ServerChoice::Pid(pid) => it.pid == *pid,
        ServerChoice::Namespace(name) => it.namespace == *name,
        ServerChoice::Uri(uri) => it.has_address(uri),
        ServerChoice::Any | ServerChoice::File(_) => false,
    };
    let found = found.into_iter().find(is_it);
    found.ok_or(ChoiceError::NoSuch { wanted: name, left })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(pid: i32, level: Level) -> Rendezvous {
        Rendezvous {
            file: PathBuf::from(format!("/tmp/prte.{pid}/pmix.h.tool")),
            level,
            namespace: format!("prte-h-{pid}@0"),
            uri: format!("prte-h-{pid}@0.0;tcp4://127.0.0.1:{pid}"),
            version: "5.0.11".to_owned(),
            pid,
            program: "prte".to_owned(),
        }
    }

    #[test]
    fn system_server_is_preferred_and_ambiguity_is_an_error() {
        let choose = |wanted: &ServerChoice, all: &[Rendezvous]| {
            choose_of(wanted, all.to_vec(), Vec::new()).map(|it| it.pid)
        };
        let (a, b) = (server(11, Level::Session), server(12, Level::Session));
        let system = server(13, Level::System);
        assert_eq!(
            choose(&ServerChoice::Any, &[]),
            Err(ChoiceError::None(vec![]))
        );
        assert_eq!(choose(&ServerChoice::Any, std::slice::from_ref(&a)), Ok(11));
        let all = [a.clone(), b.clone(), system];
        assert_eq!(choose(&ServerChoice::Any, &all), Ok(13));
        assert_eq!(choose(&ServerChoice::Any, &all[2..]), Ok(13));
        let error = choose(&ServerChoice::Any, &[a, b]).unwrap_err().to_string();
        assert!(
            error.contains("prte (pid 11)") && error.contains("prte (pid 12)"),
            "{error}"
        );
        assert_eq!(choose(&ServerChoice::Pid(12), &all), Ok(12));
        assert_eq!(choose(&ServerChoice::System, &all), Ok(13));
        assert!(choose(&ServerChoice::System, &all[..2]).is_err());
        assert_eq!(
            choose(&ServerChoice::Namespace("prte-h-11@0".to_owned()), &all),
            Ok(11)
        );
        assert_eq!(
            choose(&ServerChoice::Uri("tcp4://127.0.0.1:12".to_owned()), &all),
            Ok(12)
        );
        assert_eq!(
            choose(
                &ServerChoice::Uri("prte-h-12@0.0;tcp4://127.0.0.1:12".to_owned()),
                &all
            ),
            Ok(12)
        );
        assert!(choose(&ServerChoice::Uri("127.0.0.1:12".to_owned()), &all).is_err());
    }
}
