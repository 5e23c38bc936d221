//! Errors of a session's start and end.

use std::io;
use std::time::Duration;

use sdm_core::dialer::UNANSWERED;
use sdm_core::ids::ServerId;
use sdm_core::transport::NoAddress;
use sdm_launch::LaunchError;

/// An error that prevents the start of a session.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum SessionError {
    #[error("a session needs at least one process")]
    NoTasks,
    #[error(
        "{program} was found neither in the folder of {beside} nor on PATH: install it there, or build all programs of sdm"
    )]
    NoBinary {
        program: &'static str,
        beside: String,
    },
    #[error("{what}: {source}")]
    Io { what: String, source: io::Error },
    #[error("{0}")]
    Launch(#[from] LaunchError),
    #[error(
        "--stage: launcher {0} cannot copy servers to other hosts: install sdm-server there (--server-path), or use \
         the launcher ssh or srun"
    )]
    CannotStage(String),
    #[error(
        "--reverse cannot be used with the launcher manual: its sdm-master is started by hand and does not listen"
    )]
    CannotReverse,
    #[error("{0}")]
    NoAddress(#[from] NoAddress),
    #[error("cannot generate a session key: {0}")]
    Random(String),
    #[error(
        "{launcher} {status} before all servers had reported{}{}",
        advised(*advice),
        said(last_words)
    )]
    LauncherEnded {
        launcher: String,
        status: String,
        last_words: Vec<String>,
        advice: Option<&'static str>,
    },
    #[error("{why}{}{}", advised(*advice), said(last_words))]
    Refused {
        why: String,
        last_words: Vec<String>,
        advice: Option<&'static str>,
    },
    #[error("{missing} of {total} servers did not report within {wait:?}: {names}")]
    TooSlow {
        missing: usize,
        total: u32,
        wait: Duration,
        names: String,
    },
    #[error("two sdm-servers have the same number, {id}: pid {first} and pid {second}")]
    Twice {
        id: ServerId,
        first: u32,
        second: u32,
    },
    #[error("two processes reported as rank {rank}: the second has pid {pid}")]
    RankTwice { rank: u32, pid: u32 },
    #[error("{id} connected, but only servers 0-{last} were started", last = total - 1)]
    Unexpected { id: ServerId, total: u32 },
    #[error("not all servers are reachable: {why}{}", unanswered(.0), why = .0)]
    Unreachable(String),
    #[error("the start of the session was cancelled")]
    GivenUp,
    #[error("sdm-master, the root of the servers, has ended{0}")]
    MasterGone(String),
}

/// A failure to end a session.
#[derive(Debug, thiserror::Error)]
pub enum EndError {
    /// A member has not confirmed its end.
    #[error("not all processes of sdm (servers and master) ended within {wait:?}")]
    TooSlow {
        /// The time that was waited.
        wait: Duration,
    },
    /// Waiting for the end has failed.
    #[error("cannot wait for the end of the session: {0}")]
    Wait(io::Error),
}

/// Advice for a network that drops packets. Empty for other reasons.
fn unanswered(why: &str) -> &'static str {
    if why.contains(UNANSWERED) {
        "; a firewall may drop connections to the hosts: --reverse lets the servers connect to this host, --tunnel \
         connects through ssh"
    } else {
        ""
    }
}

fn advised(advice: Option<&str>) -> String {
    advice.map_or_else(String::new, |advice| format!(": {advice}"))
}

fn said(last_words: &[String]) -> String {
    let lines: String = last_words
        .iter()
        .map(|line| format!("\n    {line}"))
        .collect();
    if lines.is_empty() {
        lines
    } else {
        format!("; it said:{lines}")
    }
}
