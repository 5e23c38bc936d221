//! Stops: when the client is told, who is one thread then, and where they stand.

use std::time::{Duration, Instant};

use sdm_debug::command::BacktraceSpec;
use sdm_debug::reply::{Stop, StopReason};
use sdm_debug::{Command, Reply};
use sdm_idset::IdSet;
use sdm_view::render::stopped as stop_text;
use serde_json::{Value, json};

use super::Adapter;
use super::jobs::Purpose;
use super::requests::Handled;
use crate::answers::Answers;
use crate::arguments::ThreadArguments;
use crate::error::RequestError;
use crate::message::Request;
use crate::rows::Row;
use crate::source::stack_frame;
use crate::tasks::Tasks;
use crate::values::set_name;

/// How long nobody may stop any more until the client is told of those that have, while others run.
const QUIET: Duration = Duration::from_millis(150);
/// How long the client is kept waiting at most; and after how long a step says who has not arrived.
const WAIT_MAX: Duration = Duration::from_secs(1);
/// The most frames of one `stackTrace`.
const FRAMES_MAX: i64 = 1024;

/// Stops that the client was not told of.
#[derive(Debug, Default)]
pub(super) struct Settling {
    /// Who has stopped.
    pub(super) fresh: IdSet,
    /// Who is asked where it stands.
    asked: IdSet,
    first: Option<Instant>,
    last: Option<Instant>,
    /// A step that is watched: since when, and which.
    step: Option<(Instant, &'static str)>,
    /// Tasks have ended.
    pub(super) changed: bool,
}

impl Settling {
    /// Tasks run from now on.
    pub(super) fn begin(&mut self) {
        self.first = None;
        self.last = None;
        self.step = None;
    }

    pub(super) fn watch_step(&mut self, now: Instant, said: &'static str) {
        self.step = Some((now, said));
    }

    /// When something is due.
    pub(super) fn due(&self, tasks: &Tasks) -> Option<Instant> {
        let step = self.step.map(|(began, _)| began + WAIT_MAX);
        let step = step.filter(|_| !tasks.running().is_empty());
        [self.stops_due(), step].into_iter().flatten().min()
    }

    /// When the client is to be told of stops, while others run.
    fn stops_due(&self) -> Option<Instant> {
        let (Some(first), Some(last)) = (self.first, self.last) else {
            return None;
        };
        if self.fresh.is_empty() {
            return None;
        }
        match self.step {
            Some((began, _)) => Some(began + WAIT_MAX),
            None => Some((last + QUIET).min(first + WAIT_MAX)),
        }
    }
}

impl Adapter {
    /// These have stopped.
    pub(super) fn note_stops(&mut self, tasks: &IdSet) {
        if tasks.is_empty() {
            return;
        }
        self.settling.fresh.union_with(tasks);
        self.settling.first = self.settling.first.or(Some(self.now));
        self.settling.last = Some(self.now);
    }

    /// Asks where those stand that have stopped, once it is time.
    pub(super) fn settle_stops(&mut self) {
        let running = self.tasks.running();
        self.say_who_runs(&running);
        if self.jobs.is_asking_for_stacks() {
            return;
        }
        if self.settling.fresh.is_empty() {
            if std::mem::take(&mut self.settling.changed) && !self.tasks.live().is_empty() {
                self.regroup();
            }
            return;
        }
        let due = self.settling.stops_due();
        if !running.is_empty() && due.is_some_and(|due| self.now < due) {
            return;
        }
        let fresh = std::mem::take(&mut self.settling.fresh);
        self.settling.begin();
        let tasks = fresh.intersection(&self.tasks.standing());
        self.settling.asked = tasks.clone();
        let spec = BacktraceSpec {
            limit: 0,
            args: false,
            full: false,
        };
        if !tasks.is_empty() {
            self.begin_job(Purpose::Stacks, vec![(tasks, Command::Backtrace(spec))]);
        }
    }

    /// A step whose peers block says so.
    fn say_who_runs(&mut self, running: &IdSet) {
        let Some((began, said)) = self.settling.step else {
            return;
        };
        if running.is_empty() || self.now < began + WAIT_MAX {
            return;
        }
        let arrived = self.tasks.standing();
        let runs = set_name(running);
        let text = match arrived.is_empty() {
            true => format!("{said}: {runs} still run\n"),
            false => format!(
                "{said}: {} have arrived, {runs} still run\n",
                set_name(&arrived)
            ),
        };
        self.settling.step = None;
        // Who has arrived is not kept waiting any longer.
        self.settling.first = self.settling.first.map(|_| began);
        self.say("console", &text);
    }

    /// It is known where they stand.
    pub(super) fn finish_stacks(&mut self, answers: &[Answers]) {
        for answers in answers {
            for (tasks, reply) in answers.replies() {
                if let Reply::Backtrace(stack) = reply {
                    self.stacks.push((tasks.clone(), stack.clone()));
                }
            }
        }
        let fresh = std::mem::take(&mut self.settling.asked);
        let fresh = fresh.intersection(&self.tasks.standing());
        self.flush_output(true);
        self.regroup();
        self.announce(&fresh);
    }

    /// Divides the tasks anew; the client does not know any of them yet.
    pub(super) fn regroup_quietly(&mut self) {
        let groups = self.rows.groups(&self.tasks, &self.stacks);
        self.rows.regroup(groups);
    }

    fn regroup(&mut self) {
        let groups = self.rows.groups(&self.tasks, &self.stacks);
        let changes = self.rows.regroup(groups);
        let changed = !changes.ended.is_empty() || !changes.started.is_empty();
        for id in changes.ended {
            self.event("thread", json!({"reason": "exited", "threadId": id}));
        }
        for id in changes.started {
            self.event("thread", json!({"reason": "started", "threadId": id}));
        }
        if changed && self.client.supports_invalidated_event {
            self.event("invalidated", json!({"areas": ["threads"]}));
        }
    }

    /// Tells the client of the threads that these are in: one takes the focus, the others leave it there.
    fn announce(&mut self, fresh: &IdSet) {
        let focused = self.rows.focused;
        let stopped =
            |row: &&Row| row.group.standing.is_some() && !row.group.tasks.is_disjoint(fresh);
        let is_crash = |row: &Row| {
            let standing = row.group.standing.as_ref();
            standing.is_some_and(|standing| standing.stop.reason.is_crash())
        };
        let mut rows: Vec<&Row> = self.rows.iter().filter(stopped).collect();
        rows.sort_by_key(|row| (row.id != focused, !is_crash(row)));
        let all = self.tasks.running().is_empty();
        let mut events = Vec::new();
        for (at, row) in rows.iter().enumerate() {
            let Some(standing) = &row.group.standing else {
                continue;
            };
            let mut body = self.stop_body(&standing.stop);
            body["threadId"] = json!(row.id);
            body["allThreadsStopped"] = json!(all);
            if at > 0 {
                body["preserveFocusHint"] = json!(true);
            }
            events.push(body);
        }
        if let Some(first) = rows.first() {
            self.rows.focused = first.id;
        }
        for body in events {
            self.event("stopped", body);
        }
    }

    /// Why they stand, as the protocol has it.
    fn stop_body(&self, stop: &Stop) -> Value {
        let (reason, number) = match &stop.reason {
            StopReason::AtMain | StopReason::AtEntry | StopReason::Attached => ("entry", None),
            StopReason::Breakpoint { number } => match self.points.is_in_functions(*number) {
                true => ("function breakpoint", Some(*number)),
                false => ("breakpoint", Some(*number)),
            },
            StopReason::StepEnd
            | StopReason::FunctionFinished { .. }
            | StopReason::LocationReached
            | StopReason::NoHistory => ("step", None),
            StopReason::Watchpoint(hit) => ("data breakpoint", Some(hit.number)),
            StopReason::WatchpointScope { number, .. } => ("data breakpoint", Some(*number)),
            StopReason::Signal { .. }
            | StopReason::Internal { .. }
            | StopReason::Core { .. }
            | StopReason::Catch { .. } => ("exception", None),
            StopReason::Interrupted | StopReason::Other(_) => ("pause", None),
        };
        let mut body = json!({"reason": reason});
        let text = stop_text(stop);
        if reason == "exception" {
            body["text"] = json!(text);
        }
        body["description"] = json!(text);
        if let Some(number) = number {
            body["hitBreakpointIds"] = json!([number]);
        }
        body
    }

    pub(super) fn threads(&self) -> Value {
        let running = self.tasks.running();
        let by_rank = self.is_by_rank();
        let threads = self.rows.iter().map(|row| {
            let mut group = row.group.clone();
            if group.tasks.is_subset(&running) {
                group.standing = None;
                group.folded = None;
            }
            json!({"id": row.id, "name": group.name(by_rank)})
        });
        json!({"threads": threads.collect::<Vec<_>>()})
    }

    pub(super) fn stack_trace(&mut self, request: &Request) -> Handled {
        let arguments: ThreadArguments = request.read()?;
        let id = arguments.thread_id;
        let row = self.rows.find(id).ok_or(RequestError::Thread(id))?;
        let name = || format!("thread {id}");
        if !row.group.tasks.is_disjoint(&self.tasks.running()) && row.group.folded.is_none() {
            return Err(RequestError::Runs(name()));
        }
        let Some(standing) = row.group.standing.clone() else {
            return Err(RequestError::Runs(name()));
        };
        let from = usize::try_from(arguments.start_frame.unwrap_or(0)).unwrap_or(0);
        let count = arguments.levels.filter(|levels| *levels > 0);
        let count = count.unwrap_or(FRAMES_MAX).min(FRAMES_MAX);
        let count = usize::try_from(count).unwrap_or(0);
        let mut frames = Vec::new();
        let handle = |index| standing.frame_handle(index);
        if let Some(inside) = &standing.stop.inside {
            let id = self.references.add_frame(handle(0));
            let hint = "subtle";
            frames.push(json!({
                "id": id, "name": inside, "line": 0, "column": 0, "presentationHint": hint,
            }));
        }
        let total = standing.frames.len() + frames.len();
        let line_base = self.line_base();
        for (index, frame) in standing.frames.iter().enumerate() {
            if frames.len() >= from.saturating_add(count) {
                break;
            }
            let id = self.references.add_frame(handle(index));
            frames.push(stack_frame(id, frame, line_base));
        }
        let frames: Vec<Value> = frames.into_iter().skip(from).take(count).collect();
        Ok(Some(json!({"stackFrames": frames, "totalFrames": total})))
    }
}
