//! The report of a session: the queries for it, and the time at which its files are written.
use sdm_text::printable_name;
use std::time::Duration;

use sdm_debug::command::{BacktraceSpec, FrameSelect};
use sdm_debug::reply::Frame;
use sdm_debug::{Command, Reply};
use sdm_idset::{IdSet, TaskId};
use sdm_mpi::symbols::MAIN_LIBRARIES;
use sdm_view::render::{Names, frame_text, value_text};
use sdm_view::report::{Fact, Look, LookFrame, Recorder, Report, outliers};

use super::model::Over;
use super::report_state::Reporting;
use super::{SessionHandle, Verdict, notices, run};
use crate::ReportFiles;

/// The time at which the variables of outliers are read. gdb is needed for them, and takes time in which tasks without
/// a gdb run on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Values {
    /// Together with their stacks.
    Now,
    /// After all queries without gdb.
    Later,
}

/// Interval between two writes of the files during the run.
const PERIOD: Duration = Duration::from_secs(2);
/// The interval is at least this many times the duration of the last write.
const PERIOD_FACTOR: u32 = 20;
/// Time limit of a query after a signal has requested the end.
const LAST_QUERY_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum number of stacks of each kind that are read with variables.
const LOOKS_MAX: usize = 4;
/// Maximum number of frames of a stack that is read with variables.
const FRAMES_MAX: u32 = 32;
/// Maximum number of frames of a stack whose variables are read.
const LOCALS_FRAMES_MAX: usize = 4;

/// Sets the facts of the run and the names of its tasks for the report. If there are `files`, the report is
/// written to them during the run.
pub(super) fn set_report(
    session: &SessionHandle,
    facts: Vec<Fact>,
    names: Names,
    files: Option<ReportFiles>,
) {
    session.reporting(|reporting| {
        *reporting = Reporting {
            recorder: Recorder::new(facts, names),
            files,
            unwritten: None,
            next: session.now(),
            looked: IdSet::new(),
        };
    });
    write_report(session);
}

/// True if a report is written.
pub(super) fn writes_report(session: &SessionHandle) -> bool {
    session.reporting(|reporting| reporting.files.is_some())
}

/// Writes the files if there is news and a write is due.
pub(super) fn write_due_report(session: &SessionHandle) {
    let is_due = session.reporting(|reporting| {
        reporting.files.is_some()
            && session.now() >= reporting.next
            && reporting.recorder.take_dirty()
    });
    if is_due {
        write_report(session);
    }
}

/// Writes the files now. A failure is reported once, and the files are written again at the end only.
fn write_report(session: &SessionHandle) {
    let Some(files) = session.reporting(|reporting| reporting.files.take()) else {
        return;
    };
    let began = session.now();
    let report = report(session);
    let written = session.machine(|machine| files.write(&report, machine));
    let now = session.now();
    match written {
        Ok(()) => session.reporting(|reporting| {
            reporting.files = Some(files);
            reporting.next = now + PERIOD.max((now - began) * PERIOD_FACTOR);
        }),
        Err(why) => {
            session.reporting(|reporting| reporting.unwritten = Some(files));
            session.complain(format!("no report: {why}"), "");
        }
    }
}

/// The report at this time.
fn report(session: &SessionHandle) -> Report {
    let took = session.took();
    let (all, states) = session.read(|model| {
        let states = model.tasks.rank_rows(&model.all, &model.job.unattached);
        (model.all.clone(), states)
    });
    session.reporting(|reporting| {
        let states = reporting.recorder.placed(states, &reporting.looked);
        reporting.recorder.report(&all, states, took)
    })
}

/// Takes the report and its files, to be finished when the end of the session is known. None if no report is written.
pub(super) fn take_report(session: &SessionHandle) -> Option<(ReportFiles, Report)> {
    let files = session.reporting(|it| it.files.take().or_else(|| it.unwritten.take()))?;
    Some((files, report(session)))
}

/// `report FILE`: writes a page, a text and a JSON file, with the state of the session and the stacks of tasks that
/// are stopped or run without a gdb.
pub(super) async fn write_report_to(session: &SessionHandle, file: &str) -> Verdict {
    look(session, Values::Now).await;
    let files = ReportFiles::of_page(file.into(), None);
    let report = report(session);
    // Tasks that are not held run on.
    session.reporting(|reporting| reporting.looked = IdSet::new());
    match session.machine(|machine| files.write(&report, machine)) {
        Ok(()) => {
            let [text, json] = [&files.text, &files.json].map(printable_name);
            session.say(&format!("{file}, {text} and {json} are written"));
            Verdict::Done
        }
        Err(why) => session.complain(why.to_string(), ""),
    }
}

/// Stops all tasks that have a gdb and, if a report is written, reads the state of all tasks for it. With a report
/// this is also done after a signal that requests the end.
pub(super) async fn look_back(session: &SessionHandle, values: Values) {
    let over = session.edit(|model| model.over.take());
    let asked_to_end = matches!(over, Some(Over::Terminated(_)));
    if over.is_some() && !(asked_to_end && writes_report(session)) {
        session.edit(|model| model.over = over);
        return;
    }
    write_report(session);
    let timeout = session.read(|model| model.options.query_timeout);
    if asked_to_end {
        session.edit(|model| model.options.query_timeout = timeout.min(LAST_QUERY_TIMEOUT));
    }
    // Tasks without a gdb are examined while they run.
    let stopped = session.edit(|model| {
        model.job.looked_at.clone_from(&model.job.seized);
        model.all.difference(&model.job.seized)
    });
    run::stop(session, &stopped).await;
    if writes_report(session) {
        look(session, values).await;
    }
    session.edit(|model| {
        model.options.query_timeout = timeout;
        model.over = over.or(model.over.take());
    });
    write_report(session);
}

/// Reads the variables that [`look_back`] has deferred.
pub(super) async fn read_deferred_values(session: &SessionHandle) {
    if writes_report(session) && !session.is_over() {
        look(session, Values::Now).await;
        write_report(session);
    }
}

/// Reads the stacks of tasks that are stopped or run without a gdb, and further data of crashed tasks and
/// outliers.
async fn look(session: &SessionHandle, values: Values) {
    notices::show_held(session);
    let standing = session.standing();
    let (free, spec) = session.read(|model| model.without_gdb(&model.job.seized));
    let seen_all = standing.union(&free);
    if seen_all.is_empty() || session.is_over() {
        return;
    }
    let crashed = match values {
        Values::Now => looks_at_crashed(session).await,
        Values::Later => Vec::new(),
    };
    look_at_versions(session).await;
    let mut snapshot = super::look::Look::of(spec, free, false);
    let mut gathered = snapshot.take(session).await.unwrap_or_default();
    if !standing.is_empty() {
        let (_, open) = session
            .ask_quietly("report", &standing, &Command::Stacks { full: false })
            .await;
        gathered.absorb(open.map(|open| open.gathered).unwrap_or_default());
    }
    let stacks = gathered.stacks();
    let seen = IdSet::union_all(crashed.iter().map(|look| &look.tasks));
    let few = stacks.as_ref().map(|stacks| outliers(stacks, &seen));
    let mut few = few.filter(|_| values == Values::Now).unwrap_or_default();
    few.truncate(LOOKS_MAX);
    if !few.is_empty() {
        // The other ranks are stopped meanwhile, so that the gdbs have the processors for themselves.
        let free = session.read(|model| model.without_gdb(&model.job.seized).0);
        session.ask_quietly("report", &free, &Command::Hold).await;
    }
    let outliers = looks_at(session, few).await;
    session.reporting(|reporting| {
        reporting.looked = snapshot.free().clone();
        reporting
            .recorder
            .look(&seen_all, stacks, crashed, outliers)
    });
}

/// The stacks of crashed tasks, at most [`LOOKS_MAX`]; those of the first reported crash come first.
async fn looks_at_crashed(session: &SessionHandle) -> Vec<Look> {
    let mut rows = session.read(|model| model.tasks.rows_of(&model.tasks.about_to_crash()));
    let first = session.reporting(|reporting| reporting.recorder.first_crash().cloned());
    rows.sort_by_key(|row| {
        let first = first.as_ref();
        first.is_none_or(|first| first.is_disjoint(&row.tasks))
    });
    rows.truncate(LOOKS_MAX);
    looks_at(session, rows.into_iter().map(|row| row.tasks).collect()).await
}

/// The stacks of the first task of each of these sets.
async fn looks_at(session: &SessionHandle, sets: Vec<IdSet>) -> Vec<Look> {
    let mut looks = Vec::new();
    for tasks in sets {
        looks.extend(look_at(session, tasks).await);
    }
    looks
}

/// The stack with variables of the first of these tasks, whose selected frame is not changed. None if gdb gives no
/// stack.
async fn look_at(session: &SessionHandle, tasks: IdSet) -> Option<Look> {
    let task = tasks.first()?;
    // Values are read by gdb only.
    let without = session.read(|model| model.job.seized.intersection(&IdSet::single(task)));
    run::stop(session, &without).await;
    let selected = match answer_of(session, task, &Command::SelectFrame(FrameSelect::Current)).await
    {
        Some(Reply::Frame(view)) => Some(view.frame.level),
        _ => None,
    };
    let spec = |args| BacktraceSpec {
        limit: FRAMES_MAX,
        args,
        full: false,
    };
    let mut answer = answer_of(session, task, &Command::Backtrace(spec(true))).await;
    if answer.is_none() {
        // The frames are useful even without arguments.
        answer = answer_of(session, task, &Command::Backtrace(spec(false))).await;
    }
    let Some(Reply::Backtrace(backtrace)) = answer else {
        return None;
    };
    let mut left = LOCALS_FRAMES_MAX;
    let mut frames = Vec::new();
    for frame in &backtrace.frames {
        let wanted = frame.line > 0 && left > 0;
        left -= usize::from(wanted);
        frames.push(frame_of(session, task, frame, wanted).await);
    }
    if let Some(level) = selected {
        answer_of(
            session,
            task,
            &Command::SelectFrame(FrameSelect::Level(level)),
        )
        .await;
    }
    Some(Look {
        task,
        tasks,
        frames,
        more: backtrace.more,
    })
}

async fn frame_of(session: &SessionHandle, task: TaskId, frame: &Frame, wanted: bool) -> LookFrame {
    let mut found = LookFrame {
        level: frame.level,
        place: frame_text(frame),
        source: String::new(),
        locals: None,
    };
    let select = Command::SelectFrame(FrameSelect::Level(frame.level));
    if !wanted {
        return found;
    }
    if let Some(Reply::Frame(view)) = answer_of(session, task, &select).await
        && let Some(source) = view.source
    {
        found.source = format!("{}  {}", frame.line, source.trim());
    }
    if let Some(Reply::Variables(variables)) = answer_of(session, task, &Command::Locals).await {
        let pairs = variables
            .into_iter()
            .map(|variable| (variable.name, value_text(&variable.value)));
        found.locals = Some(pairs.collect());
    }
    found
}

async fn answer_of(session: &SessionHandle, task: TaskId, command: &Command) -> Option<Reply> {
    let answers = session
        .answers("report", &IdSet::single(task), command)
        .await;
    answers.into_iter().next().map(|(_, reply)| reply)
}

/// Records once the gdb versions of the stopped tasks, and the version of the first one's MPI library.
pub(super) async fn look_at_versions(session: &SessionHandle) {
    let free = session.read(|model| model.job.seized.clone());
    let standing = session.standing().difference(&free);
    if standing.is_empty() || session.reporting(|reporting| reporting.recorder.knows("gdb")) {
        return;
    }
    let version = Command::Console {
        line: "show version".to_owned(),
    };
    let answers = session
        .answers("report", &standing, &version)
        .await
        .into_iter();
    let texts = answers.filter_map(|(_, reply)| match reply {
        Reply::Text(text) => text.lines().next().map(str::to_owned),
        _ => None,
    });
    note_distinct(session, "gdb", texts.collect());
    let one = IdSet::union_all(standing.first().map(IdSet::single).as_ref());
    let answers = session
        .answers("report", &one, &Command::Libraries)
        .await
        .into_iter();
    let paths = answers.flat_map(|(_, reply)| match reply {
        Reply::Libraries(libraries) => libraries,
        _ => Vec::new(),
    });
    let paths = paths
        .map(|library| library.path)
        .filter(|path| is_mpi(path));
    note_distinct(
        session,
        "MPI library",
        paths.map(|path| followed(session, &path)).collect(),
    );
}

fn note_distinct(session: &SessionHandle, name: &str, mut values: Vec<String>) {
    values.sort_unstable();
    values.dedup();
    if !values.is_empty() {
        let fact = Fact::new(name, values.join("; "));
        session.reporting(|reporting| reporting.recorder.fact(fact));
    }
}

/// True for the library of MPI itself.
fn is_mpi(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    MAIN_LIBRARIES.iter().any(|start| name.starts_with(start))
}

/// The target of a library's symbolic link, whose name often has the version.
fn followed(session: &SessionHandle, path: &str) -> String {
    let file = session.machine(|machine| machine.without_links(path.as_ref()));
    file.display().to_string()
}
