//! Signals to the processes of a server's jobs.

use nix::sys::signal::Signal;
use nix::unistd::{Pid, geteuid};
use sdm_foreign::names::RANK_ALL;
use sdm_foreign::tool_protocol::{Attribute, AttributeValue, Datum, JobPart, ToolRequest};
use sdm_hosts::job::is_this_host;
use sdm_hosts::pmix::Rendezvous;
use sdm_system::proc;

use super::error::ToolError;
use super::query;
use super::session::Session;
use super::words::among;

/// The name of SDM's own PMIx server program.
pub(super) const OWN: &str = "sdm-pmix";
/// Process states between start and end.
const THERE: std::ops::Range<u8> = 1..20;

/// Sends a signal to a job or to one of its processes.
///
/// PRRTE sends a signal to all ranks regardless of the target, and never ends after such a signal has ended them. So
/// the processes of a foreign server get it directly if all of them are on this host.
pub(super) fn signal(
    session: &mut Session,
    server: &Rendezvous,
    job: &str,
    signal: i32,
) -> Result<(), ToolError> {
    let of = among(job)?;
    let processes = members(session, &of)?;
    if server.program != OWN {
        if processes.iter().all(|(host, _)| is_this_host(host)) {
            let signal =
                Signal::try_from(signal).map_err(|_| ToolError::NoSignal(signal.to_string()))?;
            return processes.iter().try_for_each(|(_, pid)| send(*pid, signal));
        }
        if of.rank != RANK_ALL {
            return Err(ToolError::OneElsewhere(job.to_owned()));
        }
    }
    control(
        session,
        of,
        job,
        ("pmix.jctrl.sig", AttributeValue::Number(signal)),
    )
}

/// Ends a job, or one of its processes.
pub(super) fn kill(session: &mut Session, server: &Rendezvous, job: &str) -> Result<(), ToolError> {
    let of = among(job)?;
    if of.rank != RANK_ALL {
        return signal(session, server, job, Signal::SIGKILL as i32);
    }
    // A server does not report that a job is unknown, so this is checked first.
    members(session, &of)?;
    control(
        session,
        of,
        job,
        ("pmix.jctrl.kill", AttributeValue::Flag(true)),
    )
}

/// The hosts and pids of the running processes among the named ones.
fn members(session: &mut Session, of: &JobPart) -> Result<Vec<(String, i32)>, ToolError> {
    let meant = query::processes(session, of)?;
    let running = meant.iter().filter_map(|line| match &line.value {
        Datum::ProcessInfo {
            host, pid, state, ..
        } => THERE.contains(state).then(|| (host.clone(), *pid)),
        _ => None,
    });
    let running: Vec<_> = running.collect();
    match running.is_empty() {
        true => Err(ToolError::HasEnded(super::show::among(of))),
        false => Ok(running),
    }
}

/// Sends a signal to a pid that a server has reported, if the process belongs to this user.
fn send(pid: i32, signal: Signal) -> Result<(), ToolError> {
    let uid = proc::of(pid).status().ok().and_then(|it| it.ids("Uid"));
    let uid = uid.and_then(|ids| ids.first().copied());
    if uid != Some(geteuid().as_raw()) {
        return Err(ToolError::NotOurs(pid));
    }
    nix::sys::signal::kill(Pid::from_raw(pid), signal)
        .map_err(|error| ToolError::Signal(pid, error.into()))
}

fn control(
    session: &mut Session,
    of: JobPart,
    job: &str,
    (key, value): (&str, AttributeValue),
) -> Result<(), ToolError> {
    let attribute = Attribute {
        key: key.to_owned(),
        value,
        is_required: true,
    };
    let attributes = vec![attribute];
    session.must(job, ToolRequest::Control { of, attributes })?;
    Ok(())
}
