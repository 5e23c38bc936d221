//! Handling of the session's events in the model.

use std::time::{Duration, Instant};

use sdm_core::CommandId;
use sdm_core::message::Health;
use sdm_debug::event::{Phase, UNCHECKED_NOTICE, world_notice};
use sdm_debug::reply::StopReason;
use sdm_debug::{Command, Event, FailureCode, Reply, TaskState};
use sdm_idset::IdSet;
use sdm_session::{Class, ClassAnswer, SessionEvent};
use sdm_view::item::{Happening, Item};

use super::input::{INPUT, Piece};
use super::job::{Launcher, Stage, take_open};
use super::open_commands::{OpenCommand, RunEnd};
use super::tasks::Row;
use super::{Break, Effect, Model, Over};
use crate::Control;
use sdm_view::coalesce::join;

/// Longest time that gdb takes to attach to a rank that has run without one, on a loaded machine.
const ATTACH_MAX: Duration = Duration::from_secs(60);

impl Model {
    /// Handles an event of the session at this time.
    pub(crate) fn handle_event(&mut self, now: Instant, event: SessionEvent) {
        if event != SessionEvent::Woken {
            self.glance.changes += 1;
        }
        if matches!(event, SessionEvent::Answer { .. } | SessionEvent::Events(_)) {
            self.news.activity = now;
        }
        match event {
            SessionEvent::Answer {
                id,
                classes,
                missing,
                lost,
                late,
            } => self.handle_answer(now, id, (classes, missing, &lost, late)),
            SessionEvent::Complete { id } => self.handle_complete(now, id),
            SessionEvent::Events(events) => {
                for (tasks, event) in events {
                    self.handle_task_event(now, &tasks, event);
                }
            }
            SessionEvent::Health { tasks, health, why } => {
                self.handle_health(now, tasks, health, why);
            }
            SessionEvent::Launcher { line } => self.news.notices.launcher_line(now, line),
            SessionEvent::Passed { stderr, bytes } => {
                self.news.activity = now;
                self.effects.push_back(Effect::Pass { stderr, bytes });
            }
            SessionEvent::LauncherEnded {
                status,
                code,
                last_words,
            } => {
                self.job.launcher = Launcher::Ended { code };
                self.news.notices.launcher_ended(now, status, last_words);
            }
            SessionEvent::Woken => {}
            SessionEvent::Ended(why) => self.session_ended(why),
        }
    }

    /// Handles an input from outside the session.
    pub(crate) fn handle_control(&mut self, control: Control) {
        match control {
            Control::Interrupt => self.requests.add_break(Break::Interrupt),
            Control::Suspend => self.requests.add_break(Break::Suspend),
            Control::Warned => {
                self.requests.warned = true;
                self.requests.add_break(Break::Interrupt);
            }
            Control::Terminate(signal) => self.end(Over::Terminated(signal)),
            Control::Input(bytes) => match &mut self.input.own {
                Some(own) if self.job.stage == Stage::Over => own.piece = Piece::Held(bytes),
                _ => self.effects.push_back(Effect::PassInput(bytes)),
            },
            line => self.requests.add_line(line),
        }
    }

    /// Notes that a run begins on these tasks. Returns the previous rows of the tasks that it lets run, for a refused
    /// run: of the stopped ones, or of all at a start.
    pub(crate) fn note_run(&mut self, to: &IdSet, command: &Command) -> Vec<Row> {
        let starts = matches!(command, Command::Start(_));
        let still = |state: &TaskState| starts || *state == TaskState::Stopped;
        let moved = self.tasks.in_state(still).intersection(to);
        let before = self.tasks.rows_of(&moved);
        let state = if starts {
            TaskState::Starting
        } else {
            TaskState::Running
        };
        self.tasks.set(&moved, state, None);
        self.glance.changes += 1;
        before
    }

    fn handle_answer(
        &mut self,
        now: Instant,
        id: CommandId,
        (classes, missing, lost, late): (Vec<Class>, Vec<(IdSet, String)>, &IdSet, bool),
    ) {
        if !lost.is_empty() {
            self.tasks.mark_lost(lost);
        }
        let mut rest = Vec::new();
        for class in classes {
            match end_of_run(&class.answer) {
                Some(what) => self.handle_end_of_run(now, id, &class.tasks, what),
                None => {
                    let class = self.without_overtaken(id, class);
                    self.note_failed_run(id, &class);
                    if !class.tasks.is_empty() {
                        rest.push(class);
                    }
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
        let mut open = OpenCommand::new(name, &IdSet::new());
        rest.into_iter().for_each(|class| open.take(class));
        open.miss(missing, lost);
        // Answers after the end of a command are late. A command that the user gave up counts as ended.
        open.gathered.late = late || has_answers;
        self.show(Item::Answer(open.gathered));
    }

    fn handle_end_of_run(&mut self, now: Instant, id: CommandId, tasks: &IdSet, what: Happening) {
        if matches!(what, Happening::Stopped(_)) && !self.options.attached {
            self.news.output.stop(id, tasks);
        }
        let mut end = RunEnd::Shown;
        if let Some(open) = self.open.find(id) {
            open.left.subtract(tasks);
            open.stopped.union_with(tasks);
            end = match open.run_end {
                _ if !open.run => RunEnd::Hidden,
                RunEnd::Looked if !is_interrupted(&what) => RunEnd::Shown,
                of_run => of_run,
            };
        }
        self.happened(now, tasks, what, end);
    }

    /// Removes tasks from a run's `NotRunning` failures that were stopped when the run was sent and have
    /// ended or been detached since, for example by a `kill`. Such an end is reported separately, before or
    /// after the answer.
    fn without_overtaken(&mut self, id: CommandId, mut class: Class) -> Class {
        let is_over =
            matches!(&class.answer, ClassAnswer::Failed(it) if it.code == FailureCode::NotRunning);
        if let Some(open) = self.open.find(id).filter(|open| is_over && open.run) {
            let stood = open.before.iter();
            let stood = stood.filter(|row| row.state == TaskState::Stopped);
            let stood = IdSet::union_all(stood.map(|row| &row.tasks));
            let over = class.tasks.intersection(&stood);
            open.left.subtract(&over);
            open.stopped.union_with(&over);
            class.tasks.subtract(&over);
        }
        class
    }

    /// Corrects the state of tasks whose run was refused. They get back the rows from before, unless the refusal tells
    /// their state.
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

    fn handle_complete(&mut self, now: Instant, id: CommandId) {
        if self.is_input_taken(id) {
            return;
        }
        let Some(open) = self.open.find(id) else {
            return;
        };
        open.complete = true;
        if open.unattended
            && let Some(open) = take_open(self, id)
            && (open.run_end == RunEnd::Shown || !open.gathered.failed.is_empty())
        {
            self.news.notices.conclude(now, open.gathered);
        }
    }

    /// True if the completed command carried a piece of input. The next piece is requested unless the input has ended
    /// or no task reads it any more.
    fn is_input_taken(&mut self, id: CommandId) -> bool {
        let Some(length) = self.input.carried_by(id) else {
            return false;
        };
        let open = self.open.remove(id).unwrap_or_default();
        for (tasks, failure) in &open.gathered.failed {
            tracing::info!("{INPUT}: {tasks}: {}", failure.text);
        }
        if let Some(own) = &mut self.input.own
            && own.taken(length, &open.plainly_done())
        {
            self.effects.push_back(Effect::RequestInput);
        }
        true
    }

    fn handle_task_event(&mut self, now: Instant, tasks: &IdSet, event: Event) {
        let what = match event {
            Event::Output { stream, bytes } => {
                return self.news.output.push(now, tasks, stream, &bytes);
            }
            Event::OutputEnd { stream } => return self.news.output.end(tasks, stream),
            Event::OutputComplete { command } => {
                return self.news.output.complete(CommandId(command), tasks);
            }
            Event::Stopped(stop) => Happening::Stopped(stop),
            Event::Exited { code } => Happening::Exited {
                code,
                before_finalize: false,
            },
            Event::Signalled { signal } => Happening::Signalled(signal),
            Event::SignalPassed { name } => Happening::SignalPassed(name),
            // Without a gdb, it is the process that had started the program.
            Event::GdbDied { text } if tasks.is_subset(&self.job.seized) => {
                return self.handle_health(now, tasks.clone(), Health::Lost, text);
            }
            Event::GdbDied { text } => Happening::GdbDied(text),
            Event::Progress(phase) => Happening::Progress(phase),
            Event::BreakpointPlaced(place) => Happening::BreakpointPlaced(place),
            Event::Notice { text } => Happening::Notice(text),
            Event::Aborted { by, status, text } => {
                self.job.aborted.get_or_insert((by, status));
                let why = match text.is_empty() {
                    true => String::new(),
                    false => format!(": {text}"),
                };
                let words = format!("ended the job with status {status}{why}");
                self.job.abort_words.get_or_insert((by, words));
                Happening::Notice(format!("rank {by} ends the job with status {status}{why}"))
            }
            // In a job of one task, a world of size 1 is right.
            Event::World { size: 1, .. } if self.all.len() == 1 => return,
            Event::World { rank, size } => {
                self.job.isolated.union_with(tasks);
                Happening::Notice(world_notice(rank, size))
            }
            Event::Unchecked => {
                self.job.unchecked.union_with(tasks);
                Happening::Notice(UNCHECKED_NOTICE.to_owned())
            }
            Event::Joined(joined) => Happening::Notice(self.take_in(tasks, joined)),
            Event::Printed { number, text } => Happening::Printed { number, text },
            Event::BreakpointRefused { number, text } => {
                self.breaks.remove(number, tasks);
                Happening::Notice(format!("breakpoint {number} was removed: {text}"))
            }
        };
        self.happened(now, tasks, what, RunEnd::Shown);
    }

    fn handle_health(&mut self, now: Instant, tasks: IdSet, health: Health, why: String) {
        match health {
            Health::Reachable => {
                self.tasks.mark_reachable(&tasks);
                let tasks = self.news.notices.hear(&tasks);
                if !tasks.is_empty() {
                    self.show(Item::Reachable { tasks });
                }
            }
            Health::Silent => {
                self.tasks.mark_silent(&tasks);
                self.news.notices.silence(now, &tasks, why);
            }
            Health::Lost => {
                self.tasks.mark_lost(&tasks);
                self.news
                    .notices
                    .lose(now, &tasks, &self.tasks.ended(), why);
            }
        }
    }

    /// Handles an event of tasks.
    pub(crate) fn happened(&mut self, now: Instant, tasks: &IdSet, what: Happening, end: RunEnd) {
        let state = match &what {
            Happening::Stopped(_) => Some(TaskState::Stopped),
            Happening::Exited { code, .. } => Some(TaskState::Exited(*code)),
            Happening::Signalled(signal) => Some(TaskState::Signalled(signal.clone())),
            Happening::Detached => Some(TaskState::Detached),
            Happening::GdbDied(_) => Some(TaskState::GdbDead),
            Happening::Progress(phase) => {
                match phase {
                    Phase::Gdb => {
                        if !self.job.seized.is_disjoint(tasks) {
                            // What needs gdb, a crash say, is told when gdb has attached.
                            self.news.attach_until = Some(now + ATTACH_MAX);
                        }
                        self.job.seized.subtract(tasks);
                    }
                    Phase::Symbols => {}
                    Phase::Running => {
                        let begun = self.job.seized.intersection(tasks);
                        self.tasks.set(&begun, TaskState::Running, None);
                    }
                }
                return join(&mut self.job.phases, tasks, *phase);
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
                // The end of a task can arrive twice: from its run, and from the command that killed it.
                tasks.subtract(&self.tasks.ended());
            }
            self.news.activity = now;
            self.news.attach_until = None;
            if state != TaskState::Stopped {
                // A stop is reported without gdb as well.
                self.job.seized.subtract(&tasks);
            }
            self.tasks.set(&tasks, state, Some(what.clone()));
        }
        if let Happening::Stopped(stop) = &what {
            match &stop.reason {
                StopReason::Breakpoint { number } | StopReason::Catch { number, .. } => {
                    self.breaks.hit(*number, &tasks);
                }
                StopReason::Watchpoint(hit) => self.breaks.hit(hit.number, &tasks),
                StopReason::WatchpointScope { number, .. } => self.breaks.remove(*number, &tasks),
                _ => {}
            }
        }
        if end == RunEnd::Shown && !tasks.is_empty() {
            self.news.notices.push(now, &tasks, what);
        }
    }

    /// Queues an item to be shown.
    pub(super) fn show(&mut self, item: Item) {
        self.effects.push_back(Effect::Show(Box::new(item)));
    }
}

fn is_interrupted(what: &Happening) -> bool {
    matches!(what, Happening::Stopped(stop) if stop.reason == StopReason::Interrupted)
}

/// The event that ended a run, as its answer reports it. None if the answer is something else.
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
