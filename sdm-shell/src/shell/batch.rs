//! `--batch`: the program runs to its end unattended; commands run at a crash or a hang.
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use sdm_debug::{Command, EndPolicy, TaskState};
use sdm_diagnose::Diagnosis;
use sdm_idset::{IdSet, set_text};
use sdm_view::item::{Happening, Item};
use sdm_view::render::Names;

use super::controls::ScriptLine;
use super::exit::Ending;
use super::model::goal::Goal;
use super::model::job::Launcher;
use super::model::open_commands::RunEnd;
use super::model::{Break, Model, Over};
use super::report::Values;
use super::{SessionHandle, ask, diagnose, exit, notices, outcome, report, run, script};
use crate::commands::{self, UserCommand};
use crate::exit_codes::{GIVEN_UP, SIGNALLED, TIMED_OUT};

/// Maximum number of errors in the use of MPI that are repeated at the end.
const MPI_ERRORS_SHOWN_MAX: usize = 50;
/// Interval between two updates of the status line.
const TURN: Duration = Duration::from_secs(1);

/// Time without output and stops after which a checked program is diagnosed for the first time. Twice as long passes
/// before each further time.
const QUIET: Duration = Duration::from_secs(5);
/// Maximum time without output and stops before a checked program is diagnosed again.
const QUIET_MAX: Duration = Duration::from_secs(60);

/// The actions of a batch run at a crash or a hang, and the limits that define a hang.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Batch {
    /// Commands to carry out at the first crash or abort.
    pub on_crash: Vec<String>,
    /// Commands to run when a time limit is reached, or when it is proved that ranks cannot go on.
    pub on_timeout: Vec<String>,
    /// Time limit for the whole run. None: no limit.
    pub time_limit: Option<Duration>,
    /// Time limit without any output or stop. None: no limit.
    pub hang_timeout: Option<Duration>,
    /// True if the program is ended once it is proved that no rank can go on, without a time limit.
    pub ends_at_hang: bool,
}

/// Time limit for all that is asked of the ranks once a time limit is reached. Those that have not answered by then are
/// named.
const LOOK_MAX: Duration = Duration::from_secs(120);
/// Time limit for the servers of ranks that were killed to leave, where their launcher has ended the job.
const LEAVE_WAIT: Duration = Duration::from_millis(500);
/// Time limit for a launcher to end once no server is left.
const LAUNCHER_WAIT: Duration = Duration::from_secs(6);
/// Time within which ranks crash by the same fault.
const SAME_FAULT: Duration = Duration::from_millis(200);

/// The times at which a program is diagnosed whose ranks print nothing and do not stop.
struct HangSearch {
    since: Instant,
    quiet: Duration,
}

impl HangSearch {
    /// The time of the next diagnosis, if there is no output and no stop until then. None if there is to be none.
    fn next(&self, session: &SessionHandle, batch: &Batch) -> Option<Instant> {
        let activity = session.read(|model| model.news.quiet_since());
        batch
            .ends_at_hang
            .then(|| activity.max(self.since) + self.quiet)
    }

    /// Diagnoses the program if it is time to. Returns the proof that ranks cannot go on.
    async fn proof(
        &mut self,
        session: &SessionHandle,
        batch: &Batch,
        limit: Option<Instant>,
    ) -> Option<Diagnosis> {
        if self
            .next(session, batch)
            .is_none_or(|at| session.now() < at)
        {
            return None;
        }
        let now = |model: &Model| (model.news.output.pieces(), model.news.activity);
        let (printed, activity) = session.read(now);
        // A rank that does not answer does not delay the time limit.
        session.edit(|model| model.requests.wait_until = limit);
        let found = diagnose::proof_of_hang(session).await;
        session.edit(|model| model.requests.wait_until = None);
        // The answers to the diagnosis are no activity of the program.
        session.edit(|model| {
            if model.news.output.pieces() == printed {
                model.news.activity = activity;
            }
        });
        self.since = session.now();
        self.quiet = (self.quiet * 2).min(QUIET_MAX);
        found
    }
}

/// The reason of a batch run's end.
enum BatchEnd {
    /// All tasks have ended.
    Ended,
    /// A signal has ended tasks, or is about to end them.
    Crashed,
    /// A time limit is reached, or SIGUSR1 has announced one: a sentence for a person.
    TimedOut(String),
    /// The diagnosis has proved that ranks cannot go on.
    Stuck(Box<Diagnosis>),
    /// The launcher has ended the job, as it does where a rank exits: the exit code, and the reason.
    ByLauncher(u8, String),
    /// The user pressed Ctrl-C.
    GivenUp,
    /// The session is over.
    Over,
}

/// Runs all tasks to their end. At the first crash, a time limit or a proved hang it carries out the commands for that
/// case, and ends. The exit code tells the outcome.
pub(super) async fn run_batch(session: &SessionHandle, batch: &Batch) -> Ending {
    if report::writes_report(session) {
        report::look_at_versions(session).await;
    }
    let why = run_to_the_end(session, batch).await;
    session.status(None);
    notices::show_held(session);
    tell_mpi_errors(session);
    let (code, reason) = match why {
        BatchEnd::Over => {
            report::look_back(session, Values::Now).await;
            notices::show_gone(session);
            return exit::ending(session);
        }
        BatchEnd::Ended => outcome::end_of_all(session),
        BatchEnd::ByLauncher(code, why) => (code, Some(why)),
        BatchEnd::GivenUp => {
            report::look_back(session, Values::Now).await;
            (GIVEN_UP, Some("given up".to_owned()))
        }
        BatchEnd::Crashed => {
            let first = outcome::crash(session, &settled_crashes(session).await);
            // Values that gdb reads for the report can take a minute.
            let values = match batch.on_crash.iter().all(|line| only_looks(line)) {
                true => Values::Later,
                false => Values::Now,
            };
            report::look_back(session, values).await;
            carry_out_all(session, "--on-crash", &batch.on_crash).await;
            if values == Values::Later {
                report::read_deferred_values(session).await;
            }
            first
        }
        BatchEnd::TimedOut(text) => inspect_hang(session, batch, text, None).await,
        BatchEnd::Stuck(proof) => {
            let text = "the program cannot go on".to_owned();
            inspect_hang(session, batch, text, Some(*proof)).await
        }
    };
    notices::show_gone(session);
    if matches!(
        session.read(|model| model.over.clone()),
        Some(Over::Terminated(_))
    ) {
        return exit::ending(session);
    }
    Ending {
        code,
        policy: EndPolicy::KillStarted,
        reason,
    }
}

/// Carries out the commands for a hang. The diagnosis that has proved the hang replaces `diagnose` among them: a second
/// diagnosis could only see less, if a rank does not stop in time.
async fn inspect_hang(
    session: &SessionHandle,
    batch: &Batch,
    why: String,
    proof: Option<Diagnosis>,
) -> (u8, Option<String>) {
    session.say(&why);
    let until = session.now() + LOOK_MAX;
    session.edit(|model| model.requests.wait_until = Some(until));
    let mut lines = batch.on_timeout.clone();
    if let Some(proof) = proof {
        session.show(&Item::Diagnosis(proof));
        lines.retain(|line| !line.ends_with("diagnose"));
    }
    report::look_back(session, Values::Later).await;
    carry_out_all(session, "--on-timeout", &lines).await;
    report::read_deferred_values(session).await;
    session.edit(|model| model.requests.wait_until = None);
    (TIMED_OUT, Some(why))
}

/// True for a command that shows stacks and variables, and leaves the program as it is.
fn only_looks(line: &str) -> bool {
    let parsed = commands::parse(line);
    parsed.is_ok_and(|line| {
        matches!(
            line.command,
            UserCommand::Stacks { .. }
                | UserCommand::Ask(Command::Backtrace(_) | Command::Locals | Command::Arguments)
        )
    })
}

fn crashed(model: &Model) -> IdSet {
    let tasks = &model.tasks;
    tasks.crashed().difference(&tasks.killed_after_an_exit())
}

/// The crashed tasks, also those that crash soon after the first one.
async fn settled_crashes(session: &SessionHandle) -> IdSet {
    let until = session.now() + SAME_FAULT;
    while session.now() < until && !session.is_over() && !session.running().is_empty() {
        session.turn(Some(until)).await;
    }
    session.read(crashed)
}

async fn run_to_the_end(session: &SessionHandle, batch: &Batch) -> BatchEnd {
    let began = session.now();
    session.edit(|model| {
        model.news.activity = began;
        model.job.take_begun();
    });
    let mut search = HangSearch {
        since: began,
        quiet: QUIET,
    };
    loop {
        if let Some(end) = end_by_launcher(session).await {
            return end;
        }
        if session.is_over() {
            return BatchEnd::Over;
        }
        let pressed = session.take_break();
        if session.read(|model| model.requests.warned) {
            return BatchEnd::TimedOut("SIGUSR1 was received: the time limit is near".to_owned());
        }
        if pressed == Some(Break::Interrupt) {
            return BatchEnd::GivenUp;
        }
        let crashed = session.read(crashed);
        // After an abort of the job, tasks that the abort ended are not crashes.
        let is_aborted = session.read(|model| model.job.aborted.is_some());
        if !crashed.is_empty() && !is_aborted {
            return BatchEnd::Crashed;
        }
        let standing = session.standing();
        if standing.is_empty() && session.read(|model| model.tasks.running().is_empty()) {
            let ended = session.read(|model| model.tasks.ended());
            ask::settle(session, &ended).await;
            return BatchEnd::Ended;
        }
        if !standing.is_empty() {
            session.send_unattended("batch", &standing, &Command::Continue, RunEnd::Shown);
        }
        let now = session.now();
        if let Some(text) = too_long(session, batch, began, now) {
            return BatchEnd::TimedOut(text);
        }
        let limit = batch.time_limit.map(|limit| began + limit);
        if let Some(proof) = search.proof(session, batch, limit).await {
            return BatchEnd::Stuck(Box::new(proof));
        }
        let running = set_text(&session.running(), 24);
        let seconds = (now - began).as_secs();
        let line = format!("batch: running ranks: {running} ({seconds} s); ^C ends the job");
        session.status((seconds > 0).then_some(line.as_str()));
        let quiet = batch
            .hang_timeout
            .map(|quiet| session.read(|model| model.news.quiet_since()) + quiet);
        let search = search.next(session, batch);
        let next = [Some(now + TURN), limit, quiet, search]
            .into_iter()
            .flatten()
            .min();
        session.turn(next).await;
    }
}

/// The end of a batch whose launcher has ended the job, because a rank has exited or has aborted the job. The other
/// ranks were killed, and their servers have left. `None` if the launcher has not ended the job.
async fn end_by_launcher(session: &SessionHandle) -> Option<BatchEnd> {
    let (rest, by) = session.read(|model| {
        let tasks = &model.tasks;
        let exited = tasks.in_state(|state| matches!(state, TaskState::Exited(_)));
        let rest = model.all.difference(&exited);
        let is_killed = |state: &TaskState| match state {
            TaskState::GdbDead => true,
            // A crash, where no rank has exited.
            TaskState::Signalled(_) => !exited.is_empty(),
            _ => false,
        };
        let killed = tasks.in_state(is_killed).union(tasks.cut_off());
        let by = tasks.rows_of(&exited).into_iter();
        let by = by.max_by_key(|row| row.state != TaskState::Exited(0));
        (rest.is_subset(&killed).then_some(rest), by)
    });
    let rest = rest.filter(|rest| !rest.is_empty())?;
    let until = session.now() + LEAVE_WAIT;
    let have_left = |model: &Model| rest.is_subset(model.tasks.cut_off());
    while !session.read(have_left) && session.now() < until && !session.is_over() {
        session.turn(Some(until)).await;
    }
    if !session.read(have_left) {
        return None;
    }
    let until = Some(session.now() + LAUNCHER_WAIT);
    session.wait_for(&Goal::LauncherEnded, "batch", until).await;
    let Launcher::Ended { code: Some(code) } = session.read(|model| model.job.launcher) else {
        return None;
    };
    let code = u8::try_from(code).ok().filter(|code| *code != 0)?;
    let Some(by) = by else {
        // A process of the session's that is killed gives these codes: the end of the program is unknown.
        let killed = [Signal::SIGKILL as u8, SIGNALLED + Signal::SIGKILL as u8];
        if killed.contains(&code) {
            return None;
        }
        read_last_words(session, &rest).await;
        let killed = format!("the launcher killed all ranks and exited with code {code}");
        let why = match session.read(|model| model.news.output.fatal_error()) {
            Some((by, error)) => format!("{}: {error}; {killed}", Names::ranks().label(&by, 60)),
            None => format!("{killed}, as at an abort or a fatal error in MPI"),
        };
        return Some(BatchEnd::ByLauncher(code, why));
    };
    let who = Names::ranks().label(&by.tasks, 60);
    let what = match by.last {
        Some(Happening::Exited {
            code,
            before_finalize,
        }) => sdm_view::render::exited(code, before_finalize),
        _ => "ended".to_owned(),
    };
    let why = format!("{who}: {what}, and the launcher ended the job");
    Some(BatchEnd::ByLauncher(code, why))
}

/// Waits for the output of ranks that were killed: it has the reason of an abort. Their servers have passed it on
/// before they left, and mark its end.
async fn read_last_words(session: &SessionHandle, tasks: &IdSet) {
    let until = session.now() + LEAVE_WAIT;
    let has_ended = |model: &Model| model.news.output.has_ended(tasks);
    while !session.read(has_ended) && session.now() < until && !session.is_over() {
        session.turn(Some(until)).await;
    }
}

fn too_long(
    session: &SessionHandle,
    batch: &Batch,
    began: Instant,
    now: Instant,
) -> Option<String> {
    let past = |since: Instant, span: Option<Duration>| span.filter(|span| now >= since + *span);
    if let Some(limit) = past(began, batch.time_limit) {
        return Some(format!("the time limit was reached: {} s", limit.as_secs()));
    }
    let quiet = past(
        session.read(|model| model.news.quiet_since()),
        batch.hang_timeout,
    )?;
    Some(format!(
        "the program had no output and no stop for {} s",
        quiet.as_secs()
    ))
}

/// Shows the errors in the use of MPI together: their number, and the first [`MPI_ERRORS_SHOWN_MAX`].
pub(super) fn tell_mpi_errors(session: &SessionHandle) {
    let all = session.reporting(|reporting| reporting.recorder.mpi_errors().to_vec());
    if all.is_empty() {
        return;
    }
    session.say(&format!("errors in the use of MPI: {}", all.len()));
    for error in all.iter().take(MPI_ERRORS_SHOWN_MAX) {
        let who = Names::ranks().label(&error.tasks, 60);
        session.say(&format!("  {who}: {}", error.what));
    }
    if all.len() > MPI_ERRORS_SHOWN_MAX {
        session.say(&format!(
            "  and {} more; the report lists them",
            all.len() - MPI_ERRORS_SHOWN_MAX
        ));
    }
}

/// Carries out all lines, even if one fails, unless the session is over.
async fn carry_out_all(session: &SessionHandle, origin: &str, lines: &[String]) {
    for text in lines {
        if session.is_over() {
            break;
        }
        // A rank that a command has given a gdb has run on.
        let free = session.read(|model| model.job.seized.clone());
        run::stop(session, &session.running().difference(&free)).await;
        let line = ScriptLine {
            text: text.clone(),
            origin: origin.to_owned(),
        };
        script::carry_out_line(session, &line, 0).await;
        notices::show_held(session);
    }
}
