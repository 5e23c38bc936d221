//! Launcher of servers on hosts that are reached by `ssh`.

use sdm_text::{printable_name, shell_word_of_bytes};
use std::ffi::{OsStr, OsString};
use std::ops::Range;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use nix::sys::signal::Signal;
use sdm_hosts::job::is_this_host;
use sdm_system::{files, programs};

use crate::hosts::spread;
use crate::launched_process::ProcessSpec;
use crate::spec::{SERVER_COUNT_VARIABLE, command_line};
use crate::ssh_advice::WHO;
use crate::{Launch, LaunchError, LaunchSpec, Launcher, SharedServers, Streams};

/// Options after the user's own. If an option is given twice, `ssh` uses the first value.
const OPTIONS: [&str; 5] = ["-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=20"];

/// Command for a host's login shell. All other data comes on standard input, where no other user sees it: the script
/// first.
const REMOTE: &str = r#"exec /bin/sh -c 'read -r length; script=$(PATH=/usr/local/bin:/usr/bin:/bin; head -c "$length"); eval "$script"' sdm-launch-ssh"#;
/// The script that runs on a host.
const SCRIPT: &str = include_str!("ssh.sh");

/// Starts servers through one `ssh` to each host other than this one, all at once. Where there are more than
/// [`LaunchSpec::fanout`] hosts, the first ones start the others, in a tree.
///
/// The session's key and other handed-over data are sent on `ssh`'s standard input and are never
/// on a command line. The user's options go to `ssh` unchanged and take precedence over ours:
/// `BatchMode=yes`, since a user could not type a password for each of many hosts, and `ConnectTimeout`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ssh;

/// A host with its servers.
#[derive(Clone, Debug)]
struct Place<'a> {
    host: &'a str,
    servers: Range<u32>,
}

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

    fn stages(&self) -> bool {
        true
    }

    fn share(
        &self,
        spec: &LaunchSpec,
        count: u32,
        each: u32,
    ) -> Result<Option<SharedServers>, LaunchError> {
        SharedServers::over(self.name(), &spec.hosts, count, each).map(Some)
    }

    fn launch(&self, spec: &LaunchSpec) -> Result<Launch, LaunchError> {
        spec.check(self.name())?;
        spec.check_no_part_options(self.name())?;
        let shares = spread(self.name(), &spec.hosts, spec.count)?;
        let mut places = Vec::new();
        let mut first = 0;
        for (share, count) in spec.hosts.iter().zip(shares) {
            let servers = first..first + count;
            first = servers.end;
            if !servers.is_empty() {
                let host = &*share.host;
                places.push(Place { host, servers });
            }
        }
        let mut launch = Launch::new();
        for group in groups(&places, spec.fanout) {
            if let Err(error) = start(spec, group, &mut launch) {
                launch.abandon();
                return Err(error);
            }
        }
        launch.all_started()
    }
}

/// Divides hosts into at most `count` groups of consecutive hosts, of equal size except for the last.
fn groups<'a, 'b>(places: &'b [Place<'a>], count: u32) -> impl Iterator<Item = &'b [Place<'a>]> {
    let count = usize::try_from(count.max(1)).unwrap_or(usize::MAX);
    places.chunks(places.len().div_ceil(count).max(1))
}

/// Starts the servers of the first host of a group, which starts the other hosts.
fn start(spec: &LaunchSpec, group: &[Place<'_>], launch: &mut Launch) -> Result<(), LaunchError> {
    let host = group[0].host;
    let command = command(spec, host);
    if spec.verbose {
        launch.note(command_line(&command));
    }
    let last = group.last().expect("a group has somebody");
    let started = ProcessSpec {
        is_launcher: false,
        who: format!("{WHO}{host}"),
        server: None,
        servers: group[0].servers.start..last.servers.end,
        input: input(spec, group)?,
        files: staged(spec).map(Path::to_owned).collect(),
        streams: Streams::Private,
        death_signal: Signal::SIGTERM,
    };
    launch.spawn(command, started)
}

/// The command that starts the servers of a host: through `ssh`, or directly for this host.
fn command(spec: &LaunchSpec, host: &str) -> Command {
    let mut command;
    if is_this_host(host) {
        command = spec.command("/bin/sh");
        command.args(["-c", REMOTE]);
    } else {
        // Without ssh, the start fails with this path in the error.
        command = programs::at(files::search("ssh").unwrap_or_else(|| "/usr/bin/ssh".into()));
        command.arg0("ssh");
        command.args(ssh_words(spec)).args(["--", host, REMOTE]);
    }
    command
}

fn ssh_words(spec: &LaunchSpec) -> impl Iterator<Item = &OsStr> {
    let own = OPTIONS.iter().map(OsStr::new);
    spec.launcher_options
        .iter()
        .map(OsString::as_os_str)
        .chain(own)
}

/// Words as one line that a shell reads.
fn line_of<'a>(words: impl Iterator<Item = &'a OsStr>) -> OsString {
    words
        .map(|word| OsString::from_vec(shell_word_of_bytes(word.as_bytes())))
        .collect::<Vec<_>>()
        .join(OsStr::new(" "))
}

/// The input of the script, in the order in which the script reads it.
fn input(spec: &LaunchSpec, group: &[Place<'_>]) -> Result<Vec<u8>, LaunchError> {
    let script = SCRIPT.trim_end();
    let mut input = format!("{}\n{script}", script.len()).into_bytes();
    let refuse = |what: String| LaunchError::Hosts {
        launcher: "ssh".to_owned(),
        what,
    };
    let mut say = |name: &str, line: &OsStr| {
        let line = line.as_bytes();
        if line.contains(&b'\n') {
            return Err(refuse(format!("{name}: contains a line break")));
        }
        input.extend(line);
        input.push(b'\n');
        Ok(())
    };
    say(
        "the value of --fanout",
        OsStr::new(&spec.fanout.max(1).to_string()),
    )?;
    say("the directory", &directory(spec))?;
    let ssh = [OsStr::new("ssh")].into_iter().chain(ssh_words(spec));
    say("an ssh option", &line_of(ssh))?;
    let arguments = spec.server_args.iter().map(OsString::as_os_str);
    let server = [spec.server.as_os_str()].into_iter().chain(arguments);
    say("the server's command line", &line_of(server))?;
    let mut sizes = [0; 2];
    for (size, path) in sizes.iter_mut().zip(staged(spec)) {
        let found = std::fs::metadata(path);
        let found = found.map_err(|error| refuse(format!("{}: {error}", printable_name(path))))?;
        *size = found.len();
    }
    let sizes: Vec<String> = sizes.iter().map(u64::to_string).collect();
    say(
        "the sizes of the copied programs",
        OsStr::new(&sizes.join(" ")),
    )?;
    let entries: Vec<String> = group
        .iter()
        .map(|it| format!("{}/{}/{}", it.servers.start, it.servers.len(), it.host))
        .collect();
    say("a host", OsStr::new(&entries.join(" ")))?;
    let count = OsString::from(spec.count.to_string());
    let count = (OsString::from(SERVER_COUNT_VARIABLE), count);
    for (name, value) in spec.environment.iter().chain([&count]) {
        let mut pair = name.clone();
        pair.push("=");
        pair.push(value);
        say(&name.to_string_lossy(), &pair)?;
    }
    say("", OsStr::new(""))?;
    Ok(input)
}

/// The copied files in the script's order: the server, and then the `sdm-pmix` that is placed next to it.
fn staged(spec: &LaunchSpec) -> impl Iterator<Item = &Path> {
    let server = spec.stage.then_some(spec.server.as_path());
    let beside = spec.stage.then_some(spec.pmix.as_deref()).flatten();
    server.into_iter().chain(beside)
}

/// The script's line for the servers' directory. `!` precedes the user's directory, which must exist. `?` precedes this
/// process's own, which is used if the host has it.
fn directory(spec: &LaunchSpec) -> OsString {
    let (mark, path) = match &spec.directory {
        Some(path) => ("!", path.clone()),
        None => ("?", std::env::current_dir().unwrap_or_default()),
    };
    let mut line = OsString::from(mark);
    line.push(path);
    line
}

#[cfg(test)]
mod tests {
    use std::process::Stdio;

    use super::*;
    use crate::ssh_advice::advice;

    /// Runs the script for a host in a local shell instead of by `ssh`, and returns its standard output.
    fn on_a_host(spec: &LaunchSpec, hosts: &[&str]) -> String {
        let places: Vec<Place<'_>> = (0..)
            .zip(hosts)
            .map(|(server, host)| Place {
                host,
                servers: server..server + 1,
            })
            .collect();
        let mut child = Command::new("/bin/sh")
            .args(["-c", REMOTE])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        std::io::Write::write_all(&mut stdin, &input(spec, &places).unwrap()).unwrap();
        let output = child.wait_with_output().unwrap();
        drop(stdin);
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    #[test]
    fn arguments_pass_a_remote_shell_unchanged() {
        let mut spec = LaunchSpec::new(2, "/bin/echo");
        spec.server_args = ["a b", "it's", "$HOME", "`x`", "!"].map(Into::into).into();
        spec.environment = vec![("SDM_KEY".into(), "x y".into())];
        assert_eq!(on_a_host(&spec, &["a"]), "a b it's $HOME `x` !\n");
        spec.directory = Some("/a\nb".into());
        let place = Place {
            host: "a",
            servers: 0..1,
        };
        assert!(input(&spec, &[place]).is_err());
    }

    #[test]
    fn failed_ssh_between_hosts_is_reported_for_each_server() {
        let mut spec = LaunchSpec::new(3, "/bin/true");
        // An option that no ssh knows.
        spec.launcher_options = vec!["-oNoSuchOption=1".into()];
        let said = on_a_host(&spec, &["a", "b", "c"]);
        let mut lines: Vec<&str> = said.lines().collect();
        lines.sort_unstable();
        assert_eq!(lines.len(), 2, "{said}");
        assert!(
            lines[0].starts_with("SDM1 failed=1 why=ssh b (from "),
            "{said}"
        );
        assert!(
            lines[1].starts_with("SDM1 failed=2 why=ssh c (from "),
            "{said}"
        );
    }

    #[test]
    fn hosts_share_ssh_logins_evenly() {
        let hosts: Vec<String> = (0..100).map(|it| format!("h{it}")).collect();
        let places: Vec<Place<'_>> = hosts
            .iter()
            .map(|host| Place {
                host,
                servers: 0..1,
            })
            .collect();
        let sizes = |fanout| groups(&places, fanout).map(<[_]>::len).collect::<Vec<_>>();
        assert_eq!(sizes(200), [1; 100]);
        assert_eq!(sizes(32).len(), 25);
        assert_eq!(sizes(1), [100]);
        assert_eq!(sizes(3), [34, 34, 32]);
    }

    #[test]
    fn known_ssh_errors_have_advice() {
        let words = |text: &str| [text.to_owned()];
        let advice_to = |text: &str| advice("ssh h2", &words(text)).unwrap_or_default();
        assert!(advice_to("root@h2: Permission denied (publickey,password).").contains("key"));
        assert!(advice_to("sh: 1: /opt/sdm-server: not found").contains("--server-path"));
        assert_eq!(advice_to("something else"), "");
        assert_eq!(advice("mpirun", &words("not found")), None);
    }
}
