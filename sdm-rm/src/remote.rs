//! The agent of a manager, started on this host or through ssh ("PTP runtime platform, Remote Proxy Runtime").

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use sdm_system::programs;
use sdm_system::{files, goes_with_its_parent, own_program};

use crate::definition::Definition;
use crate::error::AgentError;

/// The types of resource managers that `sdm-agent` supports.
const OWN_TYPES: [&str; 7] = [
    "slurm",
    "gridengine",
    "openmpi",
    "hydra",
    "prrte",
    "local",
    "ssh",
];
/// The agent of the types that it supports itself.
const AGENT: &str = "sdm-agent";

/// The command that starts the agent; its three streams are pipes, and it ends with this process.
///
/// # Errors
/// The program does not exist on this host, or another user could have put it there.
pub fn command(definition: &Definition) -> Result<Command, AgentError> {
    let mut command = match &definition.host {
        None => here(definition)?,
        Some(host) => {
            let mut ssh = programs::named("ssh").map_err(|error| AgentError::Io {
                program: "ssh".to_owned(),
                error,
            })?;
            // ssh must not prompt, and must notice when the host is gone.
            ssh.args(["-T", "-o", "BatchMode=yes", "-o", "ServerAliveInterval=15"]);
            ssh.args(&definition.ssh_options);
            ssh.args(["--", host, &there(definition)]);
            ssh
        }
    };
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    goes_with_its_parent(&mut command);
    Ok(command)
}

fn is_own(definition: &Definition) -> bool {
    OWN_TYPES.contains(&&*definition.rm_type)
}

fn here(definition: &Definition) -> Result<Command, AgentError> {
    let named = program(definition);
    let path = match &definition.agent {
        Some(path) => PathBuf::from(path),
        None if is_own(definition) => {
            own_program(AGENT, None).ok_or(AgentError::Missing(named.clone()))?
        }
        None => {
            let types = || OWN_TYPES.join(", ");
            files::search(&named).ok_or_else(|| AgentError::NoType(named.clone(), types()))?
        }
    };
    check(&path).map_err(|error| match error.kind() {
        io::ErrorKind::Other => AgentError::Foreign {
            path: path.clone(),
            what: error.to_string(),
        },
        _ => AgentError::Io {
            program: sdm_text::printable_name(&path),
            error,
        },
    })?;
    let mut command = programs::at(path);
    command.args(arguments(definition));
    Ok(command)
}

/// Checks that the program and its folder belong to root or this user, and that no other user may write to them.
fn check(path: &Path) -> io::Result<()> {
    const OTHERS: u32 = 0o022;
    let whole = fs::canonicalize(path)?;
    let folder = whole.parent().unwrap_or(Path::new("/"));
    for (what, found) in [
        ("it", fs::metadata(&whole)?),
        ("its folder", fs::metadata(folder)?),
    ] {
        if !files::is_own(&found) {
            let owner = files::user(found.uid());
            return Err(io::Error::other(format!("{what} belongs to {owner}")));
        }
        if found.mode() & OTHERS != 0 {
            return Err(io::Error::other(format!("other users may write to {what}")));
        }
    }
    Ok(())
}

fn program(definition: &Definition) -> String {
    match is_own(definition) {
        true => AGENT.to_owned(),
        false => format!("sdm-rm-{}", definition.rm_type),
    }
}

fn arguments(definition: &Definition) -> Vec<&str> {
    let own = ["--rm", &definition.rm_type];
    let own = own.into_iter().filter(|_| is_own(definition));
    own.chain(definition.agent_args.iter().map(String::as_str))
        .collect()
}

/// The agent's command line for the shell of another host.
fn there(definition: &Definition) -> String {
    let program = definition.agent.clone();
    let program = program.unwrap_or_else(|| self::program(definition));
    let words = std::iter::once(&*program).chain(arguments(definition));
    format!("exec {}", shell_words::join(words))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(command: &Command) -> Vec<String> {
        let words = std::iter::once(command.get_program()).chain(command.get_args());
        words
            .map(|word| word.to_string_lossy().into_owned())
            .collect()
    }

    #[test]
    fn remote_shell_receives_the_words_unchanged() {
        let mut definition = Definition::new("far", "slurm");
        definition.host = Some("me@login".to_owned());
        definition.ssh_options = vec!["-p2222".to_owned()];
        definition.agent = Some("/opt/my tools/sdm-agent".to_owned());
        definition.agent_args = vec!["$(reboot)".to_owned()];
        let command = command(&definition).unwrap();
        let words = words(&command);
        assert!(words[0] == "ssh" || words[0].ends_with("/ssh"), "{words:?}");
        assert!(words.contains(&"-p2222".to_owned()));
        let last = "exec '/opt/my tools/sdm-agent' --rm slurm '$(reboot)'";
        assert_eq!(words[words.len() - 3..], ["--", "me@login", last]);
    }

    #[test]
    fn agent_writable_by_others_is_not_run() {
        let mut definition = Definition::new("a", "odd");
        let missing = command(&definition).unwrap_err().to_string();
        assert!(missing.contains("sdm-rm-odd"), "{missing}");
        let folder = std::env::temp_dir().join(format!("sdm-rm-remote-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("agent");
        fs::write(&path, "").unwrap();
        let mode = |path: &Path, mode| {
            use std::os::unix::fs::PermissionsExt;
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        };
        definition.agent = Some(path.to_string_lossy().into_owned());
        mode(&folder, 0o700);
        mode(&path, 0o722);
        let refused = command(&definition).unwrap_err().to_string();
        assert!(refused.contains("other users may write to it"), "{refused}");
        mode(&path, 0o700);
        mode(&folder, 0o777);
        let refused = command(&definition).unwrap_err().to_string();
        assert!(refused.contains("its folder"), "{refused}");
        mode(&folder, 0o700);
        assert!(command(&definition).is_ok());
        fs::remove_dir_all(folder).unwrap();
    }
}
