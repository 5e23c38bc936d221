//! What outlives a job: breakpoints and sets, written down and taken up again; core files.

use std::fmt::Write;

use sdm_debug::Command;
use sdm_idset::IdSet;
use sdm_session::Debug;
use sdm_view::item::{Gathered, Item};

use super::run::Said;
use super::wait::{Goal, Waited};
use super::{Shell, Verdict};
use crate::commands::Point;

/// The most core files that one command writes.
const CORES_MAX: u64 = 256;

impl<D: Debug> Shell<D> {
    /// `save FILE`: commands that make the breakpoints and sets again.
    pub(super) fn save(&mut self, file: &str) -> Verdict {
        let text = self.saved();
        match sdm_core::files::replace(file.as_ref(), text.as_bytes()) {
            Ok(()) => Verdict::Done,
            Err(error) => self.complain(format!("save: {file}: {error}"), ""),
        }
    }

    fn saved(&self) -> String {
        let mut text = String::from("# breakpoints and sets of sdm; `load` takes them up again\n");
        let mut line = |written: std::fmt::Arguments<'_>| {
            let _ = writeln!(text, "{written}");
        };
        for (name, tasks) in self
            .sets
            .named
            .iter()
            .filter(|(_, tasks)| !tasks.is_empty())
        {
            line(format_args!("defset {name} {tasks}"));
        }
        if let Some(pending) = self.breaks.pending {
            let word = if pending { "on" } else { "off" };
            line(format_args!("set breakpoint pending {word}"));
        }
        let all = self.debug.tasks();
        for row in self.breaks.rows() {
            for (tasks, point, enabled) in self.breaks.again(row) {
                let to = if tasks == *all {
                    "all".to_owned()
                } else {
                    tasks.to_string()
                };
                line(format_args!("[{to}] {}", point.line()));
                let (ignore, commands) = match &point {
                    Point::Break(spec) => (spec.ignore, &spec.commands[..]),
                    Point::Watch(spec) => (spec.ignore, &[][..]),
                    Point::Catch(_) => (0, &[][..]),
                };
                if ignore > 0 {
                    line(format_args!("ignore $bpnum {ignore}"));
                }
                if !commands.is_empty() {
                    line(format_args!("commands"));
                    for command in commands {
                        line(format_args!("{command}"));
                    }
                    line(format_args!("end"));
                }
                if !enabled {
                    line(format_args!("disable $bpnum"));
                }
            }
        }
        text
    }

    /// `gcore FILE`: every task writes its own, all at once.
    pub(super) fn dump(&mut self, said: &Said<'_>, file: &str) -> Verdict {
        if said.to.len() > CORES_MAX {
            return self.complain(
                format!("gcore: {} core files at once", said.to.len()),
                "say whose: [3] gcore FILE; at most 256 at a time",
            );
        }
        let mut asked = Vec::new();
        for task in &said.to {
            let command = Command::Console {
                line: format!("gcore {file}.{}", task.0),
            };
            asked.push(self.send(said.line, &IdSet::single(task), &command));
        }
        let mut all = Gathered {
            command: said.line.to_owned(),
            to: said.to.clone(),
            ..Gathered::default()
        };
        let mut verdict = Verdict::Done;
        for id in asked {
            let waited = self.wait_for(&Goal::Answered(id), said.line, None);
            let Some(mut open) = self.open.remove(id) else {
                continue;
            };
            match waited {
                Waited::Reached => {}
                Waited::GivenUp => open.give_up("given up"),
                Waited::TimedOut => open.give_up("the tree gave no answer"),
                Waited::Over => open.give_up("the session is over"),
            }
            if open.has_failed() {
                verdict = Verdict::Failed;
            }
            all.ok.extend(open.gathered.ok);
            all.failed.extend(open.gathered.failed);
            all.missing.extend(open.gathered.missing);
            all.lost.union_with(&open.gathered.lost);
        }
        self.show(&Item::Answer(all));
        verdict
    }
}
