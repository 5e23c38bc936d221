//! Servers on hosts that are reached by `ssh`.

use std::ffi::{OsStr, OsString};
use std::ops::Range;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::process::Command;

use crate::hosts::spread;
use crate::job::is_this_host;
use crate::member::Started;
use crate::spec::{SERVER_COUNT_VARIABLE, command_line};
use crate::{Launch, LaunchError, LaunchSpec, Launcher};

/// Options behind the user's own: `ssh` takes the first value that it finds for each.
const OPTIONS: [&str; 5] = ["-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=20"];

/// What runs on a host, with the server and its arguments behind it. It reads what is handed over from
/// standard input, gives each server its number, and ends them when the connection is gone: then
/// nobody holds the other end of the standard input any more. No single quote may stand in it.
const SCRIPT: &str = r#"
read -r first count
IFS= read -r directory
while IFS= read -r line && [ -n "$line" ]; do export "$line"; done
exec 3<&0 </dev/null
[ -z "$directory" ] || cd -- "$directory" || exit 1
pids=
index=0
while [ "$index" -lt "$count" ]; do
    SDM_SERVER_ID=$((first + index)) SDM_LOCAL_INDEX=$index "$@" 3<&- &
    pids="$pids $!"
    index=$((index + 1))
done
{ cat <&3; kill $pids; } >/dev/null 2>&1 &
watcher=$!
exec 3<&-
status=0
for pid in $pids; do
    wait "$pid" || status=$?
done
kill "$watcher" 2>/dev/null
exit $status
"#;
/// What a person calls the `ssh` to a host, before the host's name.
const WHO: &str = "ssh ";
/// The most that is handed over, in bytes: what a pipe holds.
const INPUT_BYTES_MAX: usize = 32 << 10;

/// Starts servers through one `ssh` to each host, all at once.
///
/// The session's key and whatever else is handed over travel on `ssh`'s standard input and never
/// stand on a command line. The user's options go to `ssh` unchanged and win over ours:
/// `BatchMode=yes`, since nobody could type a password for each of many hosts, and `ConnectTimeout`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ssh;

impl Launcher for Ssh {
    fn name(&self) -> &str {
        "ssh"
    }

    fn describe(&self) -> String {
        "ssh: servers on the hosts of --host".to_owned()
    }

    fn may_span_hosts(&self, _: &LaunchSpec) -> bool {
        true
    }

    fn launch(&self, spec: &LaunchSpec) -> Result<Launch, LaunchError> {
        spec.check(self.name())?;
        spec.check_no_part_options(self.name())?;
        let shares = spread(self.name(), &spec.hosts, spec.count)?;
        let mut launch = Launch::new();
        let mut first = 0;
        for (host, count) in spec.hosts.iter().zip(shares) {
            let servers = first..first + count;
            first = servers.end;
            if servers.is_empty() {
                continue;
            }
            let command = command(spec, &host.host);
            let input = input(spec, &servers)?;
            if spec.verbose {
                launch.note(command_line(&command));
            }
            let started = Started {
                who: format!("{WHO}{}", host.host),
                server: None,
                servers,
                input,
            };
            if let Err(error) = launch.spawn(command, started) {
                launch.abandon();
                return Err(error);
            }
        }
        launch.all_started()
    }
}

/// What starts the servers of a host; on this one no `ssh` is needed.
fn command(spec: &LaunchSpec, host: &str) -> Command {
    if is_this_host(host) {
        let mut command = spec.command("/bin/sh");
        command.args(["-c", SCRIPT, "sdm-launch-ssh"]);
        command.arg(&spec.server).args(&spec.server_args);
        return command;
    }
    let mut command = Command::new("ssh");
    command.args(&spec.launcher_options).args(OPTIONS);
    command.args(["--", host]).arg(remote_command(spec));
    command
}

/// The line that the host's login shell reads, whichever it is.
fn remote_command(spec: &LaunchSpec) -> OsString {
    let mut line = OsString::from("exec /bin/sh -c ");
    for word in [
        OsStr::new(SCRIPT),
        OsStr::new("sdm-launch-ssh"),
        spec.server.as_os_str(),
    ]
    .into_iter()
    .chain(spec.server_args.iter().map(OsString::as_os_str))
    {
        line.push(quoted(word));
        line.push(" ");
    }
    line
}

/// In single quotes, which every shell leaves alone.
fn quoted(word: &OsStr) -> OsString {
    let mut bytes = vec![b'\''];
    for byte in word.as_bytes() {
        match byte {
            b'\'' => bytes.extend(br"'\''"),
            byte => bytes.push(*byte),
        }
    }
    bytes.push(b'\'');
    OsString::from_vec(bytes)
}

/// The first server's number and how many there are; the directory; `NAME=VALUE` lines and an empty one.
fn input(spec: &LaunchSpec, servers: &Range<u32>) -> Result<Vec<u8>, LaunchError> {
    let mut input = format!("{} {}\n", servers.start, servers.end - servers.start).into_bytes();
    let directory = spec.directory.as_ref().map(|path| path.as_os_str());
    let directory = directory.unwrap_or_default().as_bytes();
    let count = OsString::from(spec.count.to_string());
    let count = (OsStr::new(SERVER_COUNT_VARIABLE), count.as_os_str());
    let variables = spec
        .environment
        .iter()
        .map(|(name, value)| (name.as_os_str(), value.as_os_str()));
    let mut say = |parts: &[&[u8]]| {
        let line = parts.concat();
        if line.contains(&b'\n') {
            return Err(LaunchError::Hosts {
                launcher: "ssh".to_owned(),
                what: format!(
                    "{:?}: has a line end in it",
                    String::from_utf8_lossy(parts[0])
                ),
            });
        }
        input.extend(line);
        input.push(b'\n');
        Ok(())
    };
    say(&[directory])?;
    for (name, value) in variables.chain([count]) {
        say(&[name.as_bytes(), b"=", value.as_bytes()])?;
    }
    say(&[])?;
    assert!(
        input.len() <= INPUT_BYTES_MAX,
        "a key, a filter and a path are short"
    );
    Ok(input)
}

/// What a person can do about an `ssh` that ended with these last words.
pub(crate) fn advice(who: &str, last_words: &[String]) -> Option<&'static str> {
    const KNOWN: [(&str, &str); 8] = [
        (
            "Permission denied",
            "ssh would ask for a password: set up a key (ssh-copy-id) or start an agent (ssh-add)",
        ),
        (
            "Host key verification failed",
            "connect once by hand with ssh to accept the host key",
        ),
        ("Could not resolve hostname", "check the host's name"),
        (
            "Connection refused",
            "no sshd listens there: check the host and the port",
        ),
        ("No route to host", "check the host and the network"),
        (
            "timed out",
            "the host does not answer: check it, the network and the firewall",
        ),
        (
            "not found",
            "the server is not there: install it at the same path, or say --server-path",
        ),
        ("can't cd", "the directory is not there"),
    ];
    if !who.starts_with(WHO) {
        return None;
    }
    let says = |part: &str| last_words.iter().any(|line| line.contains(part));
    KNOWN
        .iter()
        .find(|(part, _)| says(part))
        .map(|(_, advice)| *advice)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_come_through_a_shell_unchanged() {
        let mut spec = LaunchSpec::new(2, "/bin/echo");
        spec.server_args = ["a b", "it's", "$HOME", "`x`", "!"].map(Into::into).into();
        let mut command = Command::new("/bin/sh");
        command.arg("-c").arg(remote_command(&spec));
        spec.environment = vec![("SDM_KEY".into(), "x y".into())];
        let mut child = command
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        std::io::Write::write_all(&mut stdin, &input(&spec, &(0..1)).unwrap()).unwrap();
        let output = child.wait_with_output().unwrap();
        drop(stdin);
        assert_eq!(
            String::from_utf8_lossy(&output.stdout),
            "a b it's $HOME `x` !\n"
        );
        spec.directory = Some("/a\nb".into());
        assert!(input(&spec, &(0..1)).is_err());
    }

    #[test]
    fn known_last_words_have_advice() {
        let words = |text: &str| [text.to_owned()];
        let advice_to = |text: &str| advice("ssh h2", &words(text)).unwrap_or_default();
        assert!(advice_to("root@h2: Permission denied (publickey,password).").contains("key"));
        assert!(advice_to("sh: 1: /opt/sdm-server: not found").contains("--server-path"));
        assert_eq!(advice_to("something else"), "");
        assert_eq!(advice("mpirun", &words("not found")), None);
    }
}
