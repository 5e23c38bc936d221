//! Live data of a server: its events, and the input and output of jobs, including those that `sdm pmix spawn` starts.

use std::collections::BTreeSet;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::sync::mpsc::Sender;

use sdm_foreign::names::{self, RANK_ALL};
use sdm_foreign::tool_protocol::{
    Attribute, AttributeValue, Datum, FromTool, INPUT_BYTES_MAX, JobPart, Line, ToolRequest,
};
use sdm_hosts::pmix::Rendezvous;
use sdm_shell::exit_codes::NOT_STARTED;
use serde_json::json;

use super::control::OWN;
use super::error::ToolError;
use super::session::{PmixInput, Session};
use super::words::among;
use super::{query, show};
use crate::cli::{PmixIoArgs, PmixSpawnArgs};
use crate::sink::{Sink, complain, tell};

const JOB_END: i32 = -145;
const LOST: [i32; 2] = [-61, -101];
/// The codes of the events to receive. A handler for all events does not get a job's end. In order: ends of
/// jobs, starts, ready for debug, ends of processes, a lost server.
const CODES: [i32; 12] = [
    JOB_END, -191, -192, -193, -58, -111, -200, -201, -402, -404, LOST[0], LOST[1],
];
const AFFECTED: &str = "pmix.evproc";
const STATUS: &str = "pmix.job.term.status";
const STDOUT: u16 = 2;
/// Programs of servers that run one job and end with that job.
const OF_ONE_JOB: [&str; 2] = ["prterun", "mpirun"];
/// Prefixes of variables of an outer job, which a program must not inherit.
const OUTER: [&str; 4] = ["PMIX_", "PRTE_", "OMPI_", "PMI_"];

struct Event {
    status: i32,
    /// The processes that the event is about. None if the event does not name them; its source alone does not tell.
    affected: Option<JobPart>,
    lines: Vec<Line>,
}

impl Event {
    fn of(status: i32, lines: Vec<Line>) -> Self {
        let affected = lines.iter().find_map(|line| match &line.value {
            Datum::Process(of) if line.key == AFFECTED => Some(of.clone()),
            _ => None,
        });
        Self {
            status,
            affected,
            lines,
        }
    }

    fn ends(&self) -> Option<&str> {
        let of = self.affected.as_ref()?;
        (self.status == JOB_END).then_some(&*of.namespace)
    }

    /// The exit status of the job.
    fn code(&self) -> i64 {
        let value = self.lines.iter().find(|line| line.key == STATUS);
        match value.map(|line| &line.value) {
            Some(Datum::Status(status)) => i64::from(*status),
            Some(Datum::Signed(code)) => *code,
            Some(Datum::Unsigned(code)) => i64::try_from(*code).unwrap_or(i64::MAX),
            _ => 0,
        }
    }

    fn show(&self, is_replayed: bool, is_json: bool) -> Result<(), ToolError> {
        let name = names::status(self.status);
        if is_json {
            let document = json!({
                "event": name, "replayed": is_replayed,
                "namespace": self.affected.as_ref().map(|it| it.namespace.clone()),
                "about": show::document(&self.lines),
            });
            return tell(&document.to_string()).map_err(ToolError::Shown);
        }
        let who = self.affected.as_ref().map(show::among).unwrap_or_default();
        let replayed = if is_replayed { " (earlier)" } else { "" };
        let mut text = format!("{name}{replayed} {who}");
        for line in &self.lines {
            if [STATUS, "pmix.evtext"].contains(&&*line.key) {
                text.push_str(&format!(", {}", show::text(&line.value)));
            }
        }
        tell(&text).map_err(ToolError::Shown)
    }
}

/// Carries out `sdm pmix events`.
pub(super) fn events(
    session: &mut Session,
    server: &Rendezvous,
    is_json: bool,
) -> Result<(), ToolError> {
    let mut running: BTreeSet<String> = BTreeSet::new();
    for name in query::namespaces(session)? {
        if !query::table(session, &name)?.is_empty() {
            running.insert(name);
        }
    }
    let codes = CODES.to_vec();
    session.must("events", ToolRequest::Events { codes })?;
    // A server reports all earlier ends again, each twice. Events before this answer are such reports,
    // unless their job was running.
    query::namespaces(session)?;
    let mut earlier = session.take_waiting();
    let mut known_ends: BTreeSet<String> = BTreeSet::new();
    let is_of_one = OF_ONE_JOB.contains(&&*server.program);
    loop {
        let (heard, is_early) = match earlier.pop_front() {
            Some(heard) => (Some(heard), true),
            None => (session.next(None)?, false),
        };
        match heard {
            Some(PmixInput::Tool(FromTool::Event { status, lines, .. })) => {
                let event = Event::of(status, lines);
                let ended = event.ends().map(ToOwned::to_owned);
                // Tools come and go under one name, and their ends are not shown.
                if ended.as_deref() == Some("sdm-pmix") {
                    continue;
                }
                if LOST.contains(&status) && is_there(session)? {
                    continue;
                }
                if let Some(name) = &ended
                    && !known_ends.insert(name.clone())
                {
                    continue;
                }
                let ran = ended.as_ref().is_some_and(|name| running.remove(name));
                event.show(is_early && !ran, is_json)?;
                let is_over = ended.as_deref() == Some(&*server.namespace);
                if LOST.contains(&status) || is_over || (is_of_one && ran && running.is_empty()) {
                    return Ok(());
                }
            }
            Some(PmixInput::Ended) | None => return Err(ToolError::Ended(session.last_words())),
            Some(_) => {}
        }
    }
}

/// True if the server still answers. A reported loss of connection can be another tool's.
fn is_there(session: &mut Session) -> Result<bool, ToolError> {
    let key = "pmix.qry.ns".to_owned();
    let attributes = Vec::new();
    Ok(session.ask(ToolRequest::Query { key, attributes })?.0 == 0)
}

/// The attributes of a spawned job: its end is reported, and its output is kept for tools that ask for it.
///
/// PRRTE keeps output by default, and drops it if it is marked unwanted. A plain PMIx library sends output
/// to the tool's library unless it is marked unwanted. The tool's library prints it until a tool asks for
/// it.
fn wishes(server: &Rendezvous) -> Vec<Attribute> {
    let flag = |key: &str, is_set| Attribute {
        key: key.to_owned(),
        value: AttributeValue::Flag(is_set),
        is_required: false,
    };
    let mut wishes = vec![flag("pmix.notecomp", true)];
    if server.program == OWN {
        let unwanted = ["pmix.fwd.stdout", "pmix.fwd.stderr", "pmix.fwd.stddiag"];
        wishes.extend(unwanted.map(|key| flag(key, false)));
    }
    wishes
}

/// Carries out `sdm pmix spawn`. Returns the job's exit code.
pub(super) fn spawn(
    server: &Rendezvous,
    args: &PmixSpawnArgs,
    is_json: bool,
) -> Result<u8, ToolError> {
    if OF_ONE_JOB.contains(&&*server.program) && !args.into_job {
        return Err(ToolError::IntoJob(server.to_string()));
    }
    let words: Vec<String> = args
        .words
        .iter()
        .map(|it| it.to_string_lossy().into_owned())
        .collect();
    // A program that is not there makes a server start and end a job, at best.
    let program = std::path::Path::new(&args.words[0]);
    let is_there = match program.as_os_str().as_bytes().contains(&b'/') {
        true => sdm_system::files::is_program(program),
        false => sdm_system::files::search(program).is_some(),
    };
    if !is_there {
        return Err(ToolError::NoProgram(sdm_text::printable_name(program)));
    }
    let folder = std::env::current_dir().unwrap_or_default();
    let variables = std::env::vars_os().filter_map(|(name, value)| {
        let (name, value) = (name.into_string().ok()?, value.into_string().ok()?);
        let is_own = !OUTER.iter().any(|prefix| name.starts_with(prefix));
        is_own.then(|| format!("{name}={value}"))
    });
    let session = &mut Session::open(server)?;
    let codes = CODES.to_vec();
    session.must("events", ToolRequest::Events { codes })?;
    if !args.detach {
        // The job has no name yet, and what it prints at once goes to those only that have asked: for all jobs.
        let of = JobPart {
            namespace: String::new(),
            rank: RANK_ALL,
        };
        session.must("output", ToolRequest::Pull { of })?;
    }
    let ask = ToolRequest::Spawn {
        count: args.count,
        words,
        folder: folder.to_string_lossy().into_owned(),
        environment: variables.collect(),
        attributes: wishes(server),
    };
    let started = session.must("spawn", ask)?;
    let name = started.iter().find_map(|line| match &line.value {
        Datum::Text(name) if !name.is_empty() => Some(name.clone()),
        _ => None,
    });
    let namespace = name.ok_or_else(|| ToolError::Ended(session.last_words()))?;
    if args.detach {
        let shown = match is_json {
            true => json!({"namespace": namespace}).to_string(),
            false => sdm_text::printable(namespace.as_bytes()),
        };
        tell(&shown).map_err(ToolError::Shown)?;
        return Ok(0);
    }
    let of = JobPart {
        namespace,
        rank: RANK_ALL,
    };
    let code = relay(session, &of, true, is_json)?;
    Ok(match u8::try_from(code) {
        Ok(code) => code,
        Err(_) => {
            let code = i32::try_from(code).unwrap_or(i32::MIN);
            complain(format_args!(
                "sdm: {}: {}",
                of.namespace,
                names::status(code)
            ));
            NOT_STARTED
        }
    })
}

/// Carries out `sdm pmix io`.
pub(super) fn io(
    session: &mut Session,
    server: &Rendezvous,
    args: &PmixIoArgs,
    is_json: bool,
) -> Result<(), ToolError> {
    if OF_ONE_JOB.contains(&&*server.program) {
        return Err(ToolError::NoOutput(server.to_string()));
    }
    let of = among(&args.job)?;
    if !query::namespaces(session)?.contains(&of.namespace) {
        return Err(ToolError::UnknownJob(of.namespace));
    }
    // In this order a job that has ended meanwhile tells its output before its end.
    session.must("output", ToolRequest::Pull { of: of.clone() })?;
    let codes = CODES.to_vec();
    session.must("events", ToolRequest::Events { codes })?;
    relay(session, &of, args.stdin, is_json).map(|_| ())
}

/// Passes on input and output until the job has ended. Returns its exit status.
fn relay(
    session: &mut Session,
    of: &JobPart,
    with_input: bool,
    is_json: bool,
) -> Result<i64, ToolError> {
    if with_input {
        let sender = session.sender.clone();
        std::thread::spawn(move || read_input(&sender));
    }
    loop {
        match session.next(None)? {
            Some(PmixInput::Tool(FromTool::Event { status, lines, .. })) => {
                let event = Event::of(status, lines);
                if event.ends() == Some(&*of.namespace) {
                    show_rest(session, of, is_json)?;
                    return Ok(event.code());
                } else if LOST.contains(&status) && !is_there(session)? {
                    return Err(ToolError::Ended("; the PMIx server has ended".to_owned()));
                }
            }
            Some(PmixInput::Input(bytes)) => {
                let to = JobPart {
                    rank: if of.rank == RANK_ALL { 0 } else { of.rank },
                    ..of.clone()
                };
                session.tell(ToolRequest::Push { to, bytes });
            }
            Some(PmixInput::Ended) | None => return Err(ToolError::Ended(session.last_words())),
            Some(PmixInput::Tool(told)) => show(&told, of, is_json)?,
        }
    }
}

/// Shows the output that a server has sent by the time of a job's end. The server has all output then, and the answer
/// to a question follows it.
fn show_rest(session: &mut Session, of: &JobPart, is_json: bool) -> Result<(), ToolError> {
    let heard = session.take_waiting();
    query::namespaces(session)?;
    for heard in heard.into_iter().chain(session.take_waiting()) {
        if let PmixInput::Tool(told) = heard {
            show(&told, of, is_json)?;
        }
    }
    Ok(())
}

/// Shows a message of the tool if it is output of this job.
fn show(told: &FromTool, of: &JobPart, is_json: bool) -> Result<(), ToolError> {
    match told {
        FromTool::Output {
            of: by,
            channel,
            bytes,
        } if by.namespace == of.namespace => put(by, *channel, bytes, is_json),
        _ => Ok(()),
    }
}

fn put(of: &JobPart, channel: u16, bytes: &[u8], is_json: bool) -> Result<(), ToolError> {
    if is_json {
        let document = json!({
            "namespace": of.namespace, "rank": of.rank, "channel": names::channels(channel),
            "text": String::from_utf8_lossy(bytes),
        });
        return tell(&document.to_string()).map_err(ToolError::Shown);
    }
    let sink = if channel & STDOUT != 0 {
        Sink::Output
    } else {
        Sink::Complaints
    };
    sink.show(&String::from_utf8_lossy(bytes))
        .map_err(ToolError::Shown)
}

/// Reads standard input until its end, for the job.
fn read_input(to: &Sender<PmixInput>) {
    let mut input = std::io::stdin().lock();
    let mut bytes = vec![0; INPUT_BYTES_MAX];
    loop {
        let count = input.read(&mut bytes).unwrap_or(0);
        let is_read = to.send(PmixInput::Input(bytes[..count].to_vec())).is_ok();
        if count == 0 || !is_read {
            return;
        }
    }
}
