//! Requests of an agent to one of its hosts: a request on standard input, a reply on standard output, both one line
//! of JSON.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};

use sdm_runtime::attribute as id;
use serde::{Deserialize, Serialize};

use crate::error::ManagerError;
use crate::local::{Launcher, Local};
use crate::manager::{Manager, Submission};
use crate::snapshot::{Attributes, Job};

/// The argument with which `sdm-agent` answers one request on its standard input and output.
pub const WORD: &str = "--at-host";
/// Name of the folder in which a host keeps the records of jobs submitted through `ssh`.
const KIND: &str = "ssh";
/// Maximum length of a request, in bytes: a submission of the protocol's longest message fits into it.
const REQUEST_BYTES_MAX: u64 = 32 << 20;

/// A request to a host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum HostRequest {
    /// Queries the node's attributes and its jobs.
    Look,
    /// Starts a job.
    Submit(Submission),
    /// Ends the job of this number.
    Terminate(String),
}

/// The reply of a host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum HostReply {
    /// The node's attributes, and the jobs whose runners are on this host, by job number.
    Looked(Attributes, BTreeMap<String, Job>),
    /// The number of the job that was started.
    Submitted(String),
    /// The signal to end the job was sent.
    Done,
    /// The request failed, with the reason.
    Refused(String),
}

/// Parses arbitrary text as a request and as a reply. Checks that nothing panics.
pub(crate) fn fuzz_messages(text: &str) {
    let _ = serde_json::from_str::<HostRequest>(text);
    let _ = serde_json::from_str::<HostReply>(text);
}

/// Answers one request.
///
/// # Errors
/// The request cannot be read, or the reply cannot be written.
pub fn answer(input: impl Read, mut output: impl Write) -> io::Result<()> {
    let request = serde_json::from_reader(input.take(REQUEST_BYTES_MAX))?;
    let reply = carry_out(request).unwrap_or_else(|why| HostReply::Refused(why.to_string()));
    let mut text = serde_json::to_vec(&reply)?;
    text.push(b'\n');
    output.write_all(&text)?;
    output.flush()
}

fn carry_out(request: HostRequest) -> Result<HostReply, ManagerError> {
    let mut local = Local::new(KIND, None)?;
    Ok(match request {
        HostRequest::Look => {
            let mut found = local.look()?;
            let (host, node) = found.nodes.pop_first().unwrap_or_default();
            // Hosts may share the folder of records; each reports its own jobs.
            let is_own = |job: &Job| job.attributes.get(id::JOB_NODES) == Some(&host);
            found.jobs.retain(|_, job| is_own(job));
            HostReply::Looked(node, found.jobs)
        }
        HostRequest::Submit(job) => {
            if job.is_mpi {
                local = Local::new(KIND, Some(Launcher::of_program(&job.program)?))?;
            }
            HostReply::Submitted(local.submit(&job)?)
        }
        HostRequest::Terminate(job) => {
            local.terminate(&job)?;
            HostReply::Done
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_request_is_encoded_in_one_line() {
        let job = Submission {
            program: "/bin/a\nb".to_owned(),
            ..Submission::default()
        };
        let request = HostRequest::Submit(job);
        let text = serde_json::to_string(&request).unwrap();
        assert!(!text.contains('\n'), "{text}");
        assert_eq!(serde_json::from_str::<HostRequest>(&text).unwrap(), request);
        assert!(answer(&b"{"[..], io::sink()).is_err());
    }
}
