//! Queries of servers: lists, queries by key, and substitutes for keys that a server does not answer.

use sdm_foreign::names;
use sdm_foreign::tool_protocol::{Attribute, AttributeValue, Datum, JobPart, Line, ToolRequest};
use sdm_hosts::job::is_this_host;
use sdm_system::proc;
use serde_json::json;

use super::error::ToolError;
use super::session::Session;
use super::show;
use super::words::among;
use crate::cli::PmixQueryArgs;
use crate::sink::{complain, tell};

const NAMESPACES: &str = "pmix.qry.ns";
/// The key for the description of jobs and connected tools.
pub(super) const JOBS: &str = "pmix.qry.nsinfo";
const TABLE: &str = "pmix.qry.ptable";
const LOCAL_TABLE: &str = "pmix.qry.lptable";
const STATUS: &str = "pmix.qry.jst";
const MEMORY: &str = "pmix.qry.mem";
const KEYS: &str = "pmix.qry.keys";
const QUEUES: [&str; 2] = ["pmix.qry.qlst", "pmix.qry.qst"];
/// The status of a server for a key that it does not support.
const NOT_SUPPORTED: i32 = -47;
/// Short names for keys.
const WORDS: [(&str, &str); 11] = [
    ("namespaces", NAMESPACES),
    ("jobs", JOBS),
    ("processes", TABLE),
    ("local-processes", LOCAL_TABLE),
    ("status", STATUS),
    ("memory", MEMORY),
    ("queues", QUEUES[0]),
    ("queue-status", QUEUES[1]),
    ("spawn", "pmix.qry.spawn"),
    ("debug", "pmix.qry.debug"),
    ("keys", KEYS),
];

fn plain(key: &str) -> ToolRequest {
    ToolRequest::Query {
        key: key.to_owned(),
        attributes: Vec::new(),
    }
}

/// The namespaces of a server's jobs, without that of SDM's own tools.
pub(super) fn namespaces(session: &mut Session) -> Result<Vec<String>, ToolError> {
    let found = session.must("namespaces", plain(NAMESPACES))?;
    let lists = found.into_iter().filter_map(|line| match line.value {
        Datum::Text(text) => Some(text),
        _ => None,
    });
    let lists: Vec<String> = lists.collect();
    let names = lists.iter().flat_map(|list| list.split(','));
    let names = names.filter(|name| !name.is_empty() && *name != "sdm-pmix");
    Ok(names.map(ToOwned::to_owned).collect())
}

/// The process table of a job. Empty for a tool.
pub(super) fn table(session: &mut Session, namespace: &str) -> Result<Vec<Line>, ToolError> {
    let ask = ToolRequest::Query {
        key: TABLE.to_owned(),
        attributes: vec![text("pmix.nspace", namespace, false)],
    };
    let (status, mut lines) = session.ask(ask)?;
    lines.retain(|line| matches!(line.value, Datum::ProcessInfo { .. }));
    Ok(if status == 0 { lines } else { Vec::new() })
}

/// The named processes of a job; an error where the server does not know them.
pub(super) fn processes(session: &mut Session, of: &JobPart) -> Result<Vec<Line>, ToolError> {
    let JobPart { namespace, rank } = of;
    if !namespaces(session)?.contains(namespace) {
        return Err(ToolError::UnknownJob(namespace.clone()));
    }
    let mut table = table(session, namespace)?;
    table.retain(|line| is_of(line, *rank));
    if *rank != names::RANK_ALL && table.is_empty() {
        return Err(ToolError::NoRank(namespace.clone(), *rank));
    }
    Ok(table)
}

/// True for a line about a process of this rank. If `rank` stands for all ranks, true for a line about any process.
pub(super) fn is_of(line: &Line, rank: u32) -> bool {
    match &line.value {
        Datum::ProcessInfo { of, .. } => [names::RANK_ALL, of.rank].contains(&rank),
        _ => false,
    }
}

fn text(key: &str, value: &str, is_required: bool) -> Attribute {
    Attribute {
        key: key.to_owned(),
        value: AttributeValue::Text(value.to_owned()),
        is_required,
    }
}

/// Carries out `sdm pmix query`.
pub(super) fn query(
    session: &mut Session,
    args: &PmixQueryArgs,
    is_json: bool,
) -> Result<(), ToolError> {
    let word = WORDS.iter().find(|(word, _)| *word == args.key);
    let key = word.map_or(args.key.as_str(), |(_, key)| key);
    let of = args.job.as_deref().map(among).transpose()?;
    if args.get {
        let of = of.ok_or(ToolError::NoWhose)?;
        let key = key.to_owned();
        let found = session.must(&args.key, ToolRequest::Get { of, key })?;
        return shown(&args.key, &found, None, is_json);
    }
    let mut attributes = Vec::new();
    if let Some(of) = &of {
        attributes.push(text("pmix.nspace", &of.namespace, args.required));
        if of.rank != names::RANK_ALL {
            attributes.push(Attribute {
                key: "pmix.rank".to_owned(),
                value: AttributeValue::Rank(of.rank),
                is_required: args.required,
            });
        }
    }
    let ask = ToolRequest::Query {
        key: key.to_owned(),
        attributes,
    };
    match session.ask(ask)? {
        // The server answered with a status of its own, which is the same for all running jobs.
        (0, found) if key == STATUS => {
            if let Some(of) = &of {
                processes(session, of)?;
            }
            match filled(session, key, of.as_ref())? {
                Some((words, _)) if !words.is_empty() => shown(key, &words, None, is_json),
                _ => shown(key, &found, None, is_json),
            }
        }
        (0, mut found) => {
            // Servers return the whole table, whichever rank is requested.
            if let Some(of) = of.filter(|of| of.rank != names::RANK_ALL)
                && [TABLE, LOCAL_TABLE].contains(&key)
            {
                found.retain(|line| is_of(line, of.rank));
                if found.is_empty() {
                    return Err(ToolError::NoRank(of.namespace, of.rank));
                }
            }
            shown(key, &found, None, is_json)
        }
        (status, found) => {
            if let Some(of) = &of {
                processes(session, of)?;
            }
            if status == NOT_SUPPORTED
                && let Some((found, from)) = filled(session, key, of.as_ref())?
            {
                return shown(key, &found, Some(from), is_json);
            }
            if !found.is_empty() {
                shown(key, &found, None, is_json)?;
            }
            let what = key.to_owned();
            Err(ToolError::Status { what, status })
        }
    }
}

fn shown(
    key: &str,
    found: &[Line],
    from: Option<&'static str>,
    is_json: bool,
) -> Result<(), ToolError> {
    if is_json {
        let document = json!({
            "key": key, "from": from.unwrap_or("server"), "values": show::document(found),
        });
        return tell(&document.to_string()).map_err(ToolError::Shown);
    }
    if let Some(from) = from {
        complain(format_args!(
            "sdm: the PMIx server does not support the query {key}; the answer below is {from}"
        ));
    }
    tell(show::lines(found).trim_end()).map_err(ToolError::Shown)
}

/// Computes a substitute for a key that the server does not support, or whose answer is the same for all jobs. The text
/// tells the user how it was found. None if there is no substitute for this key.
fn filled(
    session: &mut Session,
    key: &str,
    of: Option<&JobPart>,
) -> Result<Option<(Vec<Line>, &'static str)>, ToolError> {
    let names = match of {
        Some(of) => vec![of.namespace.clone()],
        None => namespaces(session)?,
    };
    let line = |key: &str, value| Line {
        depth: 0,
        key: key.to_owned(),
        value,
    };
    let mut found = Vec::new();
    match key {
        STATUS | JOBS => {
            for name in names {
                let table = table(session, &name)?;
                if !table.is_empty() {
                    found.push(line(&name, Datum::Text(show::job_status(&table))));
                }
            }
            Ok(Some((found, "derived from the states of its processes")))
        }
        MEMORY => {
            for name in names {
                for process in table(session, &name)? {
                    let Datum::ProcessInfo {
                        of: who, host, pid, ..
                    } = process.value
                    else {
                        continue;
                    };
                    let is_asked =
                        of.is_none_or(|of| [names::RANK_ALL, who.rank].contains(&of.rank));
                    if is_asked && is_this_host(&host) {
                        let status = proc::of(pid).status().ok();
                        let bytes = status.and_then(|it| it.bytes("VmRSS"));
                        found.push(line(
                            &show::among(&who),
                            bytes.map_or(Datum::Nothing, Datum::Unsigned),
                        ));
                    }
                }
            }
            Ok(Some((
                found,
                "from /proc, in bytes, for processes on this host only",
            )))
        }
        KEYS => {
            for (_, key) in WORDS {
                if session.ask(plain(key))?.0 != NOT_SUPPORTED {
                    found.push(line("", Datum::Text(key.to_owned())));
                }
            }
            Ok(Some((found, "a list of the keys that the server answers")))
        }
        key if QUEUES.contains(&key) => {
            let Ok(queues) = crate::cluster::names::queue_states() else {
                let why = "empty: no cluster with queues is connected (`sdm cluster start`)";
                return Ok(Some((found, why)));
            };
            let text = |(name, state): (String, String)| match key == QUEUES[0] {
                true => name,
                false => format!("{name}={state}"),
            };
            let texts: Vec<String> = queues.into_iter().map(text).collect();
            found.push(line(key, Datum::Text(texts.join(","))));
            Ok(Some((found, "from the clusters' resource managers")))
        }
        _ => Ok(None),
    }
}
