//! Ranks that MPICH's Hydra started on other hosts. If `mpiexec` is stripped, its MPIR process table cannot be found.
//! But the `ssh` processes by which `mpiexec` reaches hosts are its children. Hydra's proxies on those hosts have the
//! address of `mpiexec` on their command lines.
//!
//! So each host is queried by `ssh`, with the options of that `ssh` process. The program executed is the `ssh` on
//! `PATH`, never one from a command line. Options are taken only from this user's own processes, as options can name
//! commands.

use std::collections::BTreeSet;
use std::io;
use std::thread;
use std::time::Duration;

use sdm_system::run_bounded::{self, Bounds};
use sdm_system::{files, programs};

use super::JobProcess;
use super::PROCESSES_MAX;
use super::processes::{Process, Processes};
use super::remote_ranks::{RemoteProcess, programs};
use crate::host_names as hosts;

/// The program that Hydra starts on each host, and that starts the ranks there.
const PROXY: &str = "hydra_pmi_proxy";
/// Option of the proxy with the address of its `mpiexec`, which differs between jobs.
const ADDRESS_OPTION: &str = "--control-port";
/// Option of the proxy with its number among the proxies of the same `mpiexec`.
const NUMBER_OPTION: &str = "--proxy-id";
/// The program by which `mpiexec` reaches hosts, and the only one that is executed here.
const LOGIN: &str = "ssh";
/// The script that runs on a host.
const SCRIPT: &str = include_str!("hydra.sh");
/// Time limit for a host's answer.
const ANSWER_WAIT: Duration = Duration::from_secs(30);
/// Maximum number of hosts asked at the same time.
const HOSTS_MAX: usize = 32;

/// Answers of the other hosts about their ranks.
#[derive(Debug, Default)]
pub(super) struct RemoteAnswers {
    /// The ranks on these hosts.
    pub(super) processes: Vec<JobProcess>,
    /// Number of all ranks of the job; `None` if no host reports it.
    pub(super) size: Option<u32>,
    /// Messages for the user about hosts without an answer.
    pub(super) failures: Vec<String>,
}

/// An `ssh` process by which an `mpiexec` has reached a host.
#[derive(Debug, PartialEq, Eq)]
struct Login {
    /// The words of the `ssh` command line up to the remote program.
    words: Vec<String>,
    host: String,
    /// Values of the proxy's options: the address of the `mpiexec`, and the number of the proxy.
    proxy: [String; 2],
}

/// Reason for which a host was not queried for its ranks, or did not answer.
#[derive(Debug, thiserror::Error)]
enum HostFailure {
    #[error("{0}")]
    Host(&'static str),
    #[error("the job's launcher reaches this host by `{0}`, but sdm can log in by {LOGIN} only")]
    OtherLogin(String),
    #[error("{LOGIN} was not found on PATH")]
    NoLogin,
    #[error("{0}")]
    Run(io::Error),
    #[error("{0}")]
    Said(String),
    #[error("this host could not be queried, because of an internal error in sdm")]
    Panicked,
}

impl Login {
    fn of(process: &Process) -> Option<Self> {
        let words = process.words();
        let bare = |word: &String| word.trim_matches(['"', '\'']).to_owned();
        let is_proxy = |word: &String| bare(word).rsplit('/').next() == Some(PROXY);
        // A proxy on this host has no login before it.
        let at = words.iter().position(is_proxy).filter(|at| *at > 1)?;
        let plain = |c: char| c.is_ascii_alphanumeric() || ".:_-".contains(c);
        let behind = |option: &str| {
            let option = words.iter().position(|word| word == option)?;
            let value = bare(words.get(option + 1)?);
            value.chars().all(plain).then_some(value)
        };
        let proxy = [behind(ADDRESS_OPTION)?, behind(NUMBER_OPTION)?];
        let host = &words[at - 1];
        let host = host.rsplit_once('@').map_or(&**host, |(_, host)| host);
        Some(Self {
            words: words[..at].to_vec(),
            host: host.to_owned(),
            proxy,
        })
    }

    /// Queries the host. Returns its ranks, and the number of all ranks if the host reports it.
    fn ask(&self) -> Result<(Vec<JobProcess>, Option<u32>), HostFailure> {
        hosts::check_name(&self.host).map_err(HostFailure::Host)?;
        let called = self.words[0].rsplit('/').next().unwrap_or_default();
        if called != LOGIN {
            return Err(HostFailure::OtherLogin(called.to_owned()));
        }
        let login = files::search(LOGIN).ok_or(HostFailure::NoLogin)?;
        let mut command = programs::at(login);
        command
            .args(&self.words[1..])
            .args(["/bin/sh", "-s", "--"])
            .args(&self.proxy)
            // ssh must not prompt for a password.
            .env("SSH_ASKPASS_REQUIRE", "force")
            .env("SSH_ASKPASS", "/bin/false");
        let bounds = Bounds {
            wait: ANSWER_WAIT,
            lines_max: PROCESSES_MAX as usize,
        };
        let said = run_bounded::run(&mut command, SCRIPT.as_bytes(), bounds);
        let said = said.map_err(HostFailure::Run)?;
        if said.lines.last().map(String::as_str) != Some("end") {
            let why = said.complaints.last().cloned();
            return Err(HostFailure::Said(
                why.unwrap_or_else(|| said.status.to_string()),
            ));
        }
        Ok(self.read(&said.lines))
    }

    fn read(&self, lines: &[String]) -> (Vec<JobProcess>, Option<u32>) {
        let mut told = Vec::new();
        let mut below = BTreeSet::new();
        for line in lines {
            let words: Vec<&str> = line.splitn(7, '\t').collect();
            match words[..] {
                ["proxy", pid] => below.extend(pid.parse::<i32>()),
                [rank, pid, parent, of, mpi, ticks, program] => {
                    let place = (&*self.host, program);
                    let Some(one) = RemoteProcess::read([rank, pid, parent, mpi, ticks], place)
                    else {
                        continue;
                    };
                    told.push((one, of.parse().ok().filter(|of| *of > 0)));
                }
                _ => {}
            }
        }
        // Ranks of other jobs are below other proxies. A child can have a smaller pid than its parent.
        let mut known = 0;
        while known < below.len() {
            known = below.len();
            let is_below = |one: &&(RemoteProcess, Option<u32>)| below.contains(&one.0.parent());
            let more: Vec<i32> = told.iter().filter(is_below).map(|it| it.0.pid()).collect();
            below.extend(more);
        }
        told.retain(|(one, _)| below.contains(&one.pid()));
        let size = told.iter().filter_map(|(_, of)| *of).max();
        (
            programs(told.into_iter().map(|(one, _)| one).collect()),
            size,
        )
    }
}

/// The ranks on the hosts to which `starter` has connected by `ssh`; `None` if it uses this host only. Launcher and
/// `ssh` processes must belong to the user `uid`, who must be this process's user. Those of other users are not used.
pub(super) fn elsewhere(
    processes: &Processes,
    starter: &Process,
    uid: u32,
) -> Option<RemoteAnswers> {
    let logins: Vec<Login> = processes
        .children(starter.pid)
        .filter(|login| starter.is_of(uid) && login.is_of(uid))
        .filter_map(Login::of)
        .collect();
    if logins.is_empty() {
        return None;
    }
    let mut all = RemoteAnswers::default();
    for some in logins.chunks(HOSTS_MAX) {
        let answers: Vec<_> = thread::scope(|scope| {
            let asked: Vec<_> = some
                .iter()
                .map(|login| scope.spawn(|| login.ask()))
                .collect();
            let answers = asked.into_iter().map(|it| it.join());
            answers
                .map(|it| it.unwrap_or(Err(HostFailure::Panicked)))
                .collect()
        });
        for (login, answer) in some.iter().zip(answers) {
            match answer {
                Ok((processes, size)) => {
                    all.processes.extend(processes);
                    all.size = all.size.max(size);
                }
                Err(why) => {
                    let host = hosts::shown(&login.host);
                    all.failures.push(format!("{host}: {why}"));
                }
            }
        }
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::super::processes::tests::Proc;
    use super::*;

    #[test]
    fn remote_logins_are_recognized_by_their_proxy() {
        let proc = Proc::new("hydra");
        let rest = "--control-port node0:36121 --rmk user --proxy-id 1";
        proc.add(10, 1, "mpiexec.hydra -n 4 ./halo", "");
        proc.add(11, 10, &format!("/usr/bin/hydra_pmi_proxy {rest}"), "");
        let far = format!("/usr/bin/ssh -F cfg -x me@node1 \"/usr/bin/hydra_pmi_proxy\" {rest}");
        proc.add(12, 10, &far, "");
        let other = "/tmp/evil -x node3 hydra_pmi_proxy --control-port node0:36121 --proxy-id 2";
        proc.add(14, 10, other, "");
        let hostile = "ssh -x node2 hydra_pmi_proxy --control-port $(reboot) --proxy-id 1";
        proc.add(13, 10, hostile, "");
        let processes = proc.read();
        let login = |pid| Login::of(processes.get(pid).unwrap());
        assert_eq!(login(11), None);
        assert_eq!(login(13), None);
        let evil = login(14).unwrap().ask().unwrap_err();
        assert_eq!(
            evil.to_string(),
            "the job's launcher reaches this host by `evil`, but sdm can log in by ssh only"
        );
        let option = "ssh -x -oProxyCommand=reboot hydra_pmi_proxy --control-port a:1 --proxy-id 2";
        proc.add(15, 10, option, "");
        let option = Login::of(proc.read().get(15).unwrap()).unwrap();
        assert_eq!(
            option.ask().unwrap_err().to_string(),
            "a host name cannot begin with a dash"
        );
        let login = login(12).unwrap();
        assert_eq!(login.words.join(" "), "/usr/bin/ssh -F cfg -x me@node1");
        assert_eq!(login.host, "node1");
        assert_eq!(login.proxy, ["node0:36121", "1"]);
        let lines = [
            "proxy\t470",
            "3\t471\t470\t4\t0\t7\t/usr/bin/timeout",
            "3\t472\t471\t4\t1\t0\t/opt/halo",
            // Of another job.
            "3\t480\t479\t9\t1\t9\t./halo",
            "x\ty\tz\t",
            "end",
        ];
        let lines = lines.map(str::to_owned);
        let (found, size) = login.read(&lines);
        assert_eq!((found.len(), size), (1, Some(4)));
        assert_eq!((found[0].rank, found[0].pid), (3, 472));
        assert_eq!(found[0].program, "halo");
        assert_eq!(found[0].host, "node1");
    }
}
