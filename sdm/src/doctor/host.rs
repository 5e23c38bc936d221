//! Checks of another host: ssh, its sdm-server, the findings of that, and direct connections.

use std::io::{BufRead, BufReader, Read};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use sdm_core::frame::WIRE_VERSION;
use sdm_doctor::{Check, Finding, ReportLine};
use sdm_hosts::job::is_this_host;
use sdm_system::{files, own_program, programs};
use sdm_text::printable;

use super::section::Section;
use crate::cli::DoctorArgs;

/// Time limit for a host's findings, which include a run of gdb.
const TELL_WAIT: Duration = Duration::from_secs(90);
/// Time limit for a connection to the host.
const CONNECT_WAIT: Duration = Duration::from_secs(5);
/// Options that follow the user's. `ssh` uses the first value of each option.
const OPTIONS: [&str; 5] = ["-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=20"];
/// Maximum number of lines from a host.
const LINES_MAX: usize = 1000;
/// Maximum number of bytes of all lines.
const BYTES_MAX: u64 = 4 << 20;

/// Checks another host, by its name. Returns the findings.
pub(super) fn look(args: &DoctorArgs, name: &str) -> Section {
    let server = args.reach.server_path.clone();
    let server = server.or_else(|| own_program("sdm-server", None));
    let findings = match server {
        Some(server) => asked(args, name, &server),
        None => vec![Finding::bad(
            Check::Server,
            "no sdm-server found on this host, so its path on other hosts is unknown",
            "install it in the folder of sdm, or give its path on the hosts by --server-path",
        )],
    };
    Section::new(format!("host {name}"), findings)
}

/// The findings received from a host so far.
#[derive(Default)]
struct HostFindings {
    version: Option<(String, u8)>,
    addresses: Vec<SocketAddr>,
    findings: Vec<Finding>,
    whole: bool,
}

fn asked(args: &DoctorArgs, name: &str, server: &Path) -> Vec<Finding> {
    let mut command = command(args, name, server);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => {
            let text = format!("ssh cannot be started: {error}");
            return vec![Finding::bad(
                Check::Ssh,
                text,
                "install an ssh client on this host",
            )];
        }
    };
    let heard = hear(&mut child);
    let answer = answer(&heard);
    let reached = answer.whole.then(|| reached(&answer.addresses));
    // The remote process ends at the end of its input.
    drop(child.stdin.take());
    if !answer.whole {
        // The process is of no further use.
        let _ = child.kill();
    }
    let last_words = last_words(&mut child);
    let status = child.wait();
    let mut findings = Vec::new();
    match answer.version {
        Some((version, wire)) => {
            findings.push(Finding::good(Check::Ssh, "the host is reachable"));
            findings.push(of_version(&version, wire));
        }
        None => {
            let code = status.ok().and_then(|status| status.code());
            findings.extend(refused(code, &last_words, server));
        }
    }
    findings.extend(reached);
    findings.extend(answer.findings);
    findings
}

fn command(args: &DoctorArgs, name: &str, server: &Path) -> Command {
    let gdb = args.gdb.clone().unwrap_or_else(|| PathBuf::from("gdb"));
    let mut words = vec![
        server.to_string_lossy().into_owned(),
        format!("--doctor={}", gdb.to_string_lossy()),
        format!("--port={}", args.reach.port),
    ];
    if let Some(interface) = &args.reach.interface {
        words.push(format!("--interface={interface}"));
    }
    if is_this_host(name) {
        let mut command = programs::at(server);
        command.args(&words[1..]);
        return command;
    }
    let mut command = programs::at(files::search("ssh").unwrap_or_else(|| "/usr/bin/ssh".into()));
    command.args(&args.reach.launcher_options).args(OPTIONS);
    command.args(["--", name]).arg(shell_words::join(&words));
    command
}

/// The channel of the child's output lines.
fn hear(child: &mut Child) -> Receiver<String> {
    let (sender, heard) = channel();
    let out = child.stdout.take().expect("it is a pipe");
    std::thread::spawn(move || {
        let lines = BufReader::new(out.take(BYTES_MAX)).lines();
        for line in lines.map_while(Result::ok).take(LINES_MAX) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    heard
}

fn answer(heard: &Receiver<String>) -> HostFindings {
    let until = Instant::now() + TELL_WAIT;
    let mut answer = HostFindings::default();
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let Ok(line) = heard.recv_timeout(left) else {
            return answer;
        };
        match ReportLine::of_line(&line) {
            Some(ReportLine::Version { version, wire }) => answer.version = Some((version, wire)),
            Some(ReportLine::Listens(address)) => answer.addresses.push(address),
            Some(ReportLine::Found(finding)) => answer.findings.push(finding),
            Some(ReportLine::End) => {
                answer.whole = true;
                return answer;
            }
            // A login shell may print lines of its own.
            None => {}
        }
    }
}

fn last_words(child: &mut Child) -> Vec<String> {
    let mut said = Vec::new();
    if let Some(errors) = child.stderr.take() {
        // Text that cannot be read counts as absent.
        let _ = errors.take(BYTES_MAX).read_to_end(&mut said);
    }
    let said = String::from_utf8_lossy(&said).into_owned();
    said.lines()
        .map(|it| printable(it.trim().as_bytes()))
        .collect()
}

fn of_version(version: &str, wire: u8) -> Finding {
    let check = Check::Server;
    let own = env!("CARGO_PKG_VERSION");
    let text = format!("the host has sdm-server {version}, this host has sdm {own}");
    if wire == WIRE_VERSION {
        return Finding::good(check, text);
    }
    Finding::bad(
        check,
        format!(
            "{text}: these versions cannot communicate (wire version {wire} there, {WIRE_VERSION} here)"
        ),
        "install the same version on both hosts, or copy this one with --stage",
    )
}

/// Findings about a host without an answer. ssh exits with 255 if it does not reach the host.
fn refused(code: Option<i32>, last_words: &[String], server: &Path) -> Vec<Finding> {
    let why = last_words.iter().rfind(|line| !line.is_empty());
    let why = why.map_or("no output", |it| it.as_str());
    if code == Some(255) {
        let all = last_words.join(" ");
        let remedy = match () {
            () if all.contains("Permission denied") => {
                "set up an ssh key (ssh-copy-id) or start an ssh agent (ssh-add)"
            }
            () if all.contains("Host key") => "run ssh once by hand to accept the host key",
            () if all.contains("resolve") => "check the spelling of the host name",
            () => "check the host, the network, and the options of ssh (--launcher-option)",
        };
        return vec![Finding::bad(
            Check::Ssh,
            format!("ssh cannot connect to the host: {why}"),
            remedy,
        )];
    }
    let reached = Finding::good(Check::Ssh, "the host is reachable");
    let unknown = last_words.iter().any(|it| it.contains("--doctor"));
    let shown = sdm_text::printable_name(server);
    let finding = match unknown {
        true => Finding::bad(
            Check::Server,
            format!("{shown} on the host is an older version without --doctor"),
            "install this version on the host, or copy it with --stage",
        ),
        false => Finding::bad(
            Check::Server,
            format!("{shown} does not run on the host: {why}"),
            "install it there at the same path, give its path (--server-path), or copy it (--stage)",
        ),
    };
    vec![reached, finding]
}

/// A finding about direct connections to the addresses.
fn reached(addresses: &[SocketAddr]) -> Finding {
    let check = Check::Firewall;
    let mut failed = Vec::new();
    for address in addresses {
        match TcpStream::connect_timeout(address, CONNECT_WAIT) {
            Ok(_) => return Finding::good(check, format!("TCP connections to {address} work")),
            Err(error) => failed.push(format!("{address}: {error}")),
        }
    }
    if failed.is_empty() {
        let text = "the host has no address for connections from other hosts, or no free port";
        return Finding::unknown(check, text, "select ports with --port FIRST-LAST");
    }
    Finding::bad(
        check,
        format!("no TCP connection to the host works: {}", failed.join("; ")),
        "use --port FIRST-LAST if a range of ports is open, --reverse if the host can connect to this one, --tunnel \
         if only ssh works",
    )
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use sdm_doctor::Verdict;

    use super::*;

    #[test]
    fn failed_host_check_names_its_reason() {
        let server = Path::new("/opt/sdm/bin/sdm-server");
        let check = |code, words: &[&str], expect: &[(Check, Verdict, &str)]| {
            let words: Vec<String> = words.iter().map(|it| (*it).to_owned()).collect();
            let findings = refused(Some(code), &words, server);
            let found: Vec<_> = findings.iter().map(|it| (it.check, it.verdict)).collect();
            let wanted: Vec<_> = expect.iter().map(|it| (it.0, it.1)).collect();
            assert_eq!(found, wanted, "{words:?}");
            for (finding, (_, _, part)) in findings.iter().zip(expect) {
                let text = format!("{} {}", finding.found, finding.remedy);
                assert!(text.contains(part), "{text} says nothing of {part}");
            }
        };
        let reached = (Check::Ssh, Verdict::Good, "");
        let bad = |check, part| (check, Verdict::Bad, part);
        check(
            255,
            &["a@b: Permission denied (publickey)."],
            &[bad(Check::Ssh, "ssh-add")],
        );
        check(
            255,
            &["Could not resolve hostname x"],
            &[bad(Check::Ssh, "spelling of the host name")],
        );
        check(
            127,
            &["sh: 1: /opt/x: not found"],
            &[reached, bad(Check::Server, "not found")],
        );
        let old = "error: unexpected argument '--doctor' found";
        check(
            2,
            &[old],
            &[
                reached,
                bad(Check::Server, "an older version without --doctor"),
            ],
        );
    }

    #[test]
    fn other_wire_version_is_reported() {
        assert_eq!(of_version("0.1.0", WIRE_VERSION).verdict, Verdict::Good);
        let other = of_version("9.0.0", WIRE_VERSION + 1);
        assert_eq!(other.verdict, Verdict::Bad);
        assert!(
            other.found.contains("the host has sdm-server 9.0.0"),
            "{other:?}"
        );
    }

    #[test]
    fn connection_test_reports_reached_and_refused() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let open = listener.local_addr().unwrap();
        assert_eq!(reached(&[open]).verdict, Verdict::Good);
        drop(listener);
        assert_eq!(reached(&[open]).verdict, Verdict::Bad);
        assert_eq!(reached(&[]).verdict, Verdict::Unknown);
    }
}
