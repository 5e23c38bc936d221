//! The command `sdm pmix list`: servers, their jobs and processes.

use std::collections::BTreeMap;

use sdm_foreign::tool_protocol::{Datum, Line, ToolRequest};
use sdm_hosts::pmix::Rendezvous;
use sdm_shell::exit_codes::NOT_STARTED;
use sdm_text::printable;
use serde_json::{Value, json};

use super::error::ToolError;
use super::query::{JOBS, namespaces, table};
use super::session::Session;
use super::show;
use crate::sink::{complain, tell};

/// The local rank of a process without one, for example a tool.
const NO_LOCAL_RANK: u64 = u16::MAX as u64;

/// A job of a server.
struct PmixJob {
    namespace: String,
    /// The command line of the job; None if the server does not report it.
    command: Option<String>,
    /// The table of the job's processes.
    table: Vec<Line>,
}

/// The description of a job in the answer to [`JOBS`].
#[derive(Debug, Default, PartialEq)]
struct JobDescription {
    command: Option<String>,
    /// True for a tool: the server has started none of its processes.
    is_tool: bool,
}

/// Lists servers, their jobs and processes.
pub(super) fn list(servers: &[Rendezvous], is_json: bool) -> Result<u8, ToolError> {
    let mut document = Vec::new();
    let mut failed = 0;
    for server in servers {
        let jobs = match jobs(server) {
            Ok(jobs) => jobs,
            Err(error) => {
                complain(format_args!("sdm: {server}: {error}"));
                failed += 1;
                continue;
            }
        };
        if is_json {
            document.push(server_document(server, &jobs));
            continue;
        }
        let mut shown = format!("{server}, PMIx {}", printable(server.version.as_bytes()));
        for job in jobs {
            let name = printable(job.namespace.as_bytes());
            shown.push_str(&format!("\n  {name}: {}", show::job_status(&job.table)));
            if let Some(command) = &job.command {
                shown.push_str(&format!(", {}", printable(command.as_bytes())));
            }
            for line in job.table {
                shown.push_str(&format!("\n    {}", show::text(&line.value)));
            }
        }
        tell(&shown).map_err(ToolError::Shown)?;
    }
    if is_json {
        tell(&Value::Array(document).to_string()).map_err(ToolError::Shown)?;
    } else if servers.is_empty() {
        complain("none of your PMIx servers on this host accepts tools");
    }
    Ok(if failed == 0 { 0 } else { NOT_STARTED })
}

fn server_document(server: &Rendezvous, jobs: &[PmixJob]) -> Value {
    let jobs = jobs.iter().map(|job| {
        json!({
            "namespace": job.namespace, "command": job.command, "status": show::job_status(&job.table),
            "processes": show::document(&job.table),
        })
    });
    json!({
        "pid": server.pid, "program": server.program, "namespace": server.namespace,
        "version": server.version, "file": server.file.to_string_lossy(), "uri": server.uri,
        "system": server.level == sdm_hosts::pmix::Level::System, "jobs": jobs.collect::<Vec<_>>(),
    })
}

fn jobs(server: &Rendezvous) -> Result<Vec<PmixJob>, ToolError> {
    let mut session = Session::open(server)?;
    let key = JOBS.to_owned();
    let attributes = Vec::new();
    // A server that does not answer this tells nothing of tools.
    let (status, lines) = session.ask(ToolRequest::Query { key, attributes })?;
    let mut told = match status {
        0 => told(&lines),
        _ => BTreeMap::new(),
    };
    let mut jobs = Vec::new();
    for namespace in namespaces(&mut session)? {
        let about = told.remove(&namespace).unwrap_or_default();
        if about.is_tool {
            continue;
        }
        let table = table(&mut session, &namespace)?;
        // At other servers a tool has no process table.
        if !table.is_empty() {
            jobs.push(PmixJob {
                namespace,
                command: about.command,
                table,
            });
        }
    }
    Ok(jobs)
}

/// Splits an answer into descriptions by namespace.
fn told(lines: &[Line]) -> BTreeMap<String, JobDescription> {
    let mut all = Vec::<(String, JobDescription)>::new();
    for line in lines {
        match (&*line.key, &line.value) {
            ("pmix.nspace", Datum::Text(name)) => {
                all.push((name.clone(), JobDescription::default()))
            }
            (key, value) => {
                if let Some((_, job)) = all.last_mut() {
                    job.take(key, value);
                }
            }
        }
    }
    all.into_iter().collect()
}

impl JobDescription {
    fn take(&mut self, key: &str, value: &Datum) {
        match (key, value) {
            ("pmix.cmd.line", Datum::Text(command)) => self.command = Some(command.clone()),
            ("pmix.lrank", Datum::Unsigned(rank)) => self.is_tool = *rank == NO_LOCAL_RANK,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_are_distinguished_from_jobs() {
        let line = |key: &str, value| Line {
            depth: 0,
            key: key.to_owned(),
            value,
        };
        let text = |text: &str| Datum::Text(text.to_owned());
        let lines = [
            line("pmix.lrank", Datum::Unsigned(7)),
            line("pmix.nspace", text("p@1")),
            line("pmix.cmd.line", text("sh -c x")),
            line("pmix.lrank", Datum::Unsigned(0)),
            line("pmix.nspace", text("p@2")),
            line("pmix.lrank", Datum::Unsigned(65535)),
        ];
        let job = JobDescription {
            command: Some("sh -c x".to_owned()),
            is_tool: false,
        };
        let tool = JobDescription {
            command: None,
            is_tool: true,
        };
        let all = [("p@1".to_owned(), job), ("p@2".to_owned(), tool)];
        assert_eq!(told(&lines), all.into());
    }
}
