//! What the session says, taken in.

use std::time::{Duration, Instant};

use sdm_core::CommandId;
use sdm_core::message::Health;
use sdm_debug::reply::StopReason;
use sdm_debug::{Event, FailureCode, Reply, TaskState};
use sdm_idset::IdSet;
use sdm_session::{Class, ClassAnswer, Debug, SessionEvent};
use sdm_view::item::{Happening, Item};

use super::Shell;
use super::gather::join;
use super::notices::Patience;
use super::open::Open;

impl<D: Debug> Shell<D> {
    /// Waits for one event and takes it in; then shows what has been held back for long enough.
    pub(super) fn pump(&mut self, until: Option<Instant>) {
        let deadlines = [until, self.output.deadline(), self.notices.deadline()];
        let next = deadlines.into_iter().flatten().min();
        let now = self.now();
        let wait = next.map(|next| next.saturating_duration_since(now));
        if let Some(event) = self.debug.next_event(wait) {
            self.handle(event);
        }
        self.show_due();
        self.write_due_report();
    }

    /// Shows what has been held back for long enough.
    fn show_due(&mut self) {
        let now = self.now();
        let output = self.output.take_due(now);
        let notices = self.notices.take_due(now);
        if output.is_empty() && notices.is_empty() {
            return;
        }
        self.view.group(true);
        for item in output.iter().chain(&notices) {
            self.show(item);
        }
        self.view.group(false);
    }

    /// Shows all that has been held back: output first, since it was there first.
    pub(super) fn show_held(&mut self) {
        let output = self.output.take_all();
        let happened = self.notices.take_happened();
        self.view.group(true);
        for item in output.iter().chain(&happened) {
            self.show(item);
        }
        self.view.group(false);
    }

    /// Shows what was told and held back, for where nothing else that has happened is of interest any more.
    pub(super) fn show_told(&mut self) {
        let told = |item: &Item| {
            let what = match item {
                Item::Happened { what, .. } => Some(what),
                _ => None,
            };
            matches!(what, Some(Happening::Notice(_)))
        };
        for item in self.notices.take_happened().into_iter().filter(told) {
            self.show(&item);
        }
    }

    /// Shows who and what is gone, without waiting for more.
    pub(super) fn show_gone(&mut self) {
        for item in self.notices.take_gone() {
            self.show(&item);
        }
    }

    fn handle(&mut self, event: SessionEvent) {
        let now = self.now();
        if matches!(event, SessionEvent::Answer { .. } | SessionEvent::Events(_)) {
            self.activity = now;
        }
        match event {
            SessionEvent::Answer {
                id,
                classes,
                missing,
                lost,
                late,
            } => self.handle_answer(id, classes, missing, &lost, late),
            SessionEvent::Complete { id } => self.handle_complete(id),
            SessionEvent::Events(events) => {
                for (tasks, event) in events {
                    self.handle_event(now, &tasks, event);
                }
            }
            SessionEvent::Health { tasks, health, why } => {
                self.handle_health(now, tasks, health, why);
            }
            SessionEvent::Launcher { line } => self.notices.launcher_line(now, line),
            SessionEvent::Passed { stderr, bytes } => {
                self.activity = now;
                self.view.pass(stderr, &bytes);
            }
            SessionEvent::LauncherEnded { status, last_words } => {
                self.launcher_over = true;
                self.notices.launcher_ended(now, status, last_words);
            }
            SessionEvent::Woken => {}
            SessionEvent::Ended(why) => self.session_ended(why),
        }
    }

    fn handle_answer(
        &mut self,
        id: CommandId,
        classes: Vec<Class>,
        missing: Vec<(IdSet, String)>,
        lost: &IdSet,
        late: bool,
    ) {
        if !lost.is_empty() {
            self.tasks.mark_lost(lost);
        }
        let mut rest = Vec::new();
        for class in classes {
            match end_of_run(&class.answer) {
                Some(what) => self.handle_end_of_run(id, &class.tasks, what),
                None => {
                    self.note_failed_run(id, &class);
                    rest.push(class);
                }
            }
        }
        if let Some(open) = self.open.find(id) {
            rest.into_iter().for_each(|class| open.take(class));
            open.miss(missing, lost);
            return;
        }
        if rest.is_empty() && missing.is_empty() {
            return;
        }
        let has_answers = !rest.is_empty();
        let name = self.open.name_of(id).unwrap_or("an earlier command");
        let mut open = Open::new(name, &IdSet::new());
        rest.into_iter().for_each(|class| open.take(class));
        open.miss(missing, lost);
        // What comes when the command is over is late, also where only the person who gave it up thinks that it is.
        open.gathered.late = late || has_answers;
        self.show(&Item::Answer(open.gathered));
    }

    fn handle_end_of_run(&mut self, id: CommandId, tasks: &IdSet, what: Happening) {
        let mut quiet = false;
        if let Some(open) = self.open.find(id) {
            open.left.subtract(tasks);
            open.stopped.union_with(tasks);
            quiet = !open.run || open.quiet;
        }
        self.happened(tasks, what, quiet);
    }

    /// A run that was refused leaves its tasks where they were.
    fn note_failed_run(&mut self, id: CommandId, class: &Class) {
        let Some(open) = self.open.get(id).filter(|open| open.run) else {
            return;
        };
        match &class.answer {
            ClassAnswer::Failed(failure) => match failure.code {
                FailureCode::AlreadyRunning | FailureCode::Running => {
                    self.tasks.set(&class.tasks, TaskState::Running, None);
                }
                FailureCode::GdbDead => self.tasks.set(&class.tasks, TaskState::GdbDead, None),
                _ => self.tasks.restore(&open.before, &class.tasks),
            },
            _ => self.tasks.set(&class.tasks, TaskState::Stopped, None),
        }
    }

    fn handle_complete(&mut self, id: CommandId) {
        if self.input_taken(id) {
            return;
        }
        let Some(open) = self.open.find(id) else {
            return;
        };
        open.complete = true;
        if open.unattended
            && let Some(open) = self.open.remove(id)
            && !(open.quiet && open.gathered.failed.is_empty())
        {
            self.notices.conclude(self.now(), open.gathered);
        }
    }

    fn handle_event(&mut self, now: Instant, tasks: &IdSet, event: Event) {
        let what = match event {
            Event::Output { stream, bytes } => {
                return self.output.push(now, tasks, stream, &bytes);
            }
            Event::OutputEnd { stream } => return self.output.end(tasks, stream),
            Event::Stopped(stop) => Happening::Stopped(stop),
            Event::Exited { code } => Happening::Exited {
                code,
                before_finalize: false,
            },
            Event::Signalled { signal } => Happening::Signalled(signal),
            Event::SignalPassed { name } => Happening::SignalPassed(name),
            Event::GdbDied { text } => Happening::GdbDied(text),
            Event::Progress(phase) => Happening::Progress(phase),
            Event::BreakpointPlaced(place) => Happening::BreakpointPlaced(place),
            Event::Notice { text } => Happening::Notice(text),
            Event::Printed { number, text } => Happening::Printed { number, text },
            Event::BreakpointRefused { number, text } => {
                self.breaks.remove(number, tasks);
                Happening::Notice(format!("breakpoint {number} is given up: {text}"))
            }
        };
        self.happened(tasks, what, false);
    }

    fn handle_health(&mut self, now: Instant, tasks: IdSet, health: Health, why: String) {
        match health {
            Health::Reachable => {
                self.tasks.mark_reachable(&tasks);
                let tasks = self.notices.hear(&tasks);
                if !tasks.is_empty() {
                    self.show(&Item::Reachable { tasks });
                }
            }
            Health::Silent => {
                self.tasks.mark_silent(&tasks);
                self.notices.silence(now, &tasks, why);
            }
            Health::Lost => {
                self.tasks.mark_lost(&tasks);
                self.notices.lose(now, &tasks, &self.tasks.ended(), why);
            }
        }
    }

    /// Something happened to tasks; `quiet` where it is not to be shown.
    pub(super) fn happened(&mut self, tasks: &IdSet, what: Happening, quiet: bool) {
        let state = match &what {
            Happening::Stopped(_) => Some(TaskState::Stopped),
            Happening::Exited { code, .. } => Some(TaskState::Exited(*code)),
            Happening::Signalled(signal) => Some(TaskState::Signalled(signal.clone())),
            Happening::Detached => Some(TaskState::Detached),
            Happening::GdbDied(_) => Some(TaskState::GdbDead),
            Happening::Progress(phase) => {
                return join(&mut self.phases, tasks, *phase);
            }
            Happening::BreakpointPlaced(place) => {
                self.breaks.placed(place, tasks);
                None
            }
            Happening::SignalPassed(_) | Happening::Notice(_) | Happening::Printed { .. } => None,
        };
        let mut tasks = tasks.clone();
        if let Some(state) = state {
            if matches!(state, TaskState::Exited(_) | TaskState::Signalled(_)) {
                // The end of a task can be told twice: by its run, and by who killed it.
                tasks.subtract(&self.tasks.ended());
            }
            self.tasks.set(&tasks, state, Some(what.clone()));
        }
        if let Happening::Stopped(stop) = &what {
            match &stop.reason {
                StopReason::Breakpoint { number } | StopReason::Catch { number, .. } => {
                    self.breaks.hit(*number, &tasks);
                }
                StopReason::Watchpoint(hit) => self.breaks.hit(hit.number, &tasks),
                _ => {}
            }
        }
        if !quiet && !tasks.is_empty() {
            self.notices.push(self.now(), &tasks, what);
        }
    }

    /// Waits for what comes with the end of a run on another lane: what the program printed last.
    pub(super) fn settle(&mut self, ended: &IdSet) {
        const OUTPUT_END_WAIT: Duration = Duration::from_secs(2);
        const QUIET: Duration = Duration::from_millis(20);
        // All that happened is shown together at the end.
        self.notices.patience = Patience::START;
        let until = self.now() + OUTPUT_END_WAIT;
        let ended = ended.difference(self.tasks.lost());
        while !self.options.attached
            && !self.output.has_ended(&ended)
            && self.now() < until
            && self.over.is_none()
        {
            self.pump(Some(until));
        }
        let until = self.now() + QUIET;
        while self.now() < until && self.over.is_none() {
            self.pump(Some(until));
        }
        self.notices.patience = Patience::IDLE;
    }

    /// Shows what came of a command that is over, and takes it out.
    pub(super) fn conclude(&mut self, id: CommandId) -> Option<Open> {
        let open = self.open.remove(id)?;
        self.show(&Item::Answer(open.gathered.clone()));
        Some(open)
    }
}

/// What an answer says of the end of a run.
fn end_of_run(answer: &ClassAnswer) -> Option<Happening> {
    let ClassAnswer::Reply(reply) = answer else {
        return None;
    };
    Some(match reply {
        Reply::Stopped(stop) => Happening::Stopped(stop.clone()),
        Reply::Exited {
            code,
            before_finalize,
        } => Happening::Exited {
            code: *code,
            before_finalize: *before_finalize,
        },
        Reply::Signalled { signal } => Happening::Signalled(signal.clone()),
        Reply::Detached => Happening::Detached,
        _ => return None,
    })
}
