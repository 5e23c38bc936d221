//! What the session says.

use std::time::Instant;

use sdm_core::message::Health;
use sdm_debug::reply::Stop;
use sdm_debug::{Event, Reply};
use sdm_idset::IdSet;
use sdm_session::{Class, ClassAnswer, SessionEvent};
use serde_json::json;

use super::jobs::Purpose;
use super::{Adapter, Phase};
use crate::tasks::Condition;
use crate::values::set_name;

/// The exit code of a task that a signal has ended, as shells have it.
fn code_of(signal: &str) -> i64 {
    const NAMES: [(&str, i64); 12] = [
        ("SIGHUP", 1),
        ("SIGINT", 2),
        ("SIGQUIT", 3),
        ("SIGILL", 4),
        ("SIGTRAP", 5),
        ("SIGABRT", 6),
        ("SIGBUS", 7),
        ("SIGFPE", 8),
        ("SIGKILL", 9),
        ("SIGSEGV", 11),
        ("SIGPIPE", 13),
        ("SIGTERM", 15),
    ];
    let known = NAMES.iter().find(|(name, _)| *name == signal);
    128 + known.map_or(0, |(_, number)| *number)
}

impl Adapter {
    /// Takes in what the session says.
    pub fn handle_event(&mut self, now: Instant, event: SessionEvent) {
        self.now = now;
        match event {
            SessionEvent::Answer {
                id,
                classes,
                missing,
                lost,
                ..
            } => {
                let moves = self
                    .jobs
                    .purpose(id)
                    .is_some_and(|purpose| matches!(purpose, Purpose::Run { .. } | Purpose::Begin));
                if moves {
                    self.hear_moves(&classes);
                }
                self.jobs.take(id, classes, missing, &lost);
            }
            SessionEvent::Complete { id } => {
                if let Some(job) = self.jobs.complete(id) {
                    self.finish_job(job);
                }
            }
            SessionEvent::Events(events) => {
                for (tasks, event) in events {
                    self.hear(&tasks, event);
                }
            }
            SessionEvent::Health { tasks, health, why } => {
                if matches!(health, Health::Lost) {
                    self.say("important", &format!("{} lost: {why}\n", set_name(&tasks)));
                    self.ended(&tasks, Condition::Gone);
                }
            }
            SessionEvent::Launcher { line } => {
                self.say(
                    "console",
                    &format!("[launcher] {}\n", sdm_text::printable(line.as_bytes())),
                );
            }
            SessionEvent::Passed { stderr, bytes } => {
                let category = if stderr { "stderr" } else { "stdout" };
                let text = String::from_utf8_lossy(&bytes).into_owned();
                self.event("output", json!({"category": category, "output": text}));
            }
            SessionEvent::LauncherEnded { status, last_words } => {
                let words = last_words.join("\n");
                self.say("important", &format!("the launcher {status}\n{words}\n"));
            }
            SessionEvent::Woken => {}
            SessionEvent::Ended(why) => self.session_ended(&why),
        }
        self.settle();
    }

    /// Answers that say how a run has ended.
    fn hear_moves(&mut self, classes: &[Class]) {
        for Class { tasks, answer } in classes {
            match answer {
                ClassAnswer::Reply(Reply::Stopped(stop)) => self.stopped(tasks, stop.clone()),
                ClassAnswer::Reply(Reply::Exited { code, .. }) => {
                    self.ended(tasks, Condition::Ended(i64::from(*code)));
                }
                ClassAnswer::Reply(Reply::Signalled { signal }) => {
                    self.ended(tasks, Condition::Ended(code_of(signal)));
                }
                ClassAnswer::Reply(Reply::Detached) => self.ended(tasks, Condition::Gone),
                _ => {}
            }
        }
    }

    fn hear(&mut self, tasks: &IdSet, event: Event) {
        match event {
            Event::Output { stream, bytes } => {
                self.output.take(self.now, tasks, stream, &bytes);
            }
            Event::OutputEnd { stream } => self.ending.note_end(tasks, stream),
            Event::Stopped(stop) => self.stopped(tasks, stop),
            Event::Exited { code } => self.ended(tasks, Condition::Ended(i64::from(code))),
            Event::Signalled { signal } => self.ended(tasks, Condition::Ended(code_of(&signal))),
            Event::GdbDied { text } => {
                self.say(
                    "important",
                    &format!("{} gdb is gone: {text}\n", set_name(tasks)),
                );
                self.ended(tasks, Condition::Gone);
            }
            Event::SignalPassed { name } => self.tell(tasks, &format!("{name} was passed on")),
            Event::Notice { text } => self.tell(tasks, &text),
            Event::Printed { text, .. } => self.tell(tasks, text.trim_end_matches('\n')),
            Event::BreakpointPlaced(place) => self.placed(tasks, &place),
            Event::BreakpointRefused { text, .. } => self.tell(tasks, &text),
            Event::Progress(_) | Event::OutputComplete { .. } => {}
        }
    }

    /// Says what tasks say beside their output, in order with that.
    fn tell(&mut self, tasks: &IdSet, text: &str) {
        self.flush_output(true);
        let text = match self.tasks.all().len() {
            0 | 1 => format!("{text}\n"),
            _ => format!("{} {text}\n", set_name(tasks)),
        };
        self.say("console", &text);
    }

    fn stopped(&mut self, tasks: &IdSet, stop: Stop) {
        self.tasks.set(tasks, Condition::Standing(stop));
        if self.phase == Phase::Live {
            self.note_stops(tasks);
        }
    }

    pub(super) fn ended(&mut self, tasks: &IdSet, condition: Condition) {
        // Who has ended keeps its exit code.
        let tasks = tasks.intersection(&self.tasks.live());
        self.tasks.set(&tasks, condition);
        self.forget(&tasks);
        self.settling.changed = true;
    }
}
