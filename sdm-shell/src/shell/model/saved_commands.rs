//! Breakpoints and sets as commands that create them again.
use std::fmt::Write;

use super::Model;
use sdm_debug::command::PointSpec;

impl Model {
    /// Commands that create the breakpoints and sets again, and set the handling of pending breakpoints.
    pub(crate) fn saved(&self) -> String {
        let mut text = String::from("# breakpoints and sets of sdm; `load` restores them\n");
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
        let all = &self.all;
        for row in self.breaks.rows() {
            for (tasks, point, enabled) in self.breaks.again(row) {
                let to = if tasks == *all {
                    "all".to_owned()
                } else {
                    tasks.to_string()
                };
                line(format_args!("[{to}] {}", point.line()));
                let (ignore, commands) = match &point {
                    PointSpec::Break(spec) => (spec.ignore, &spec.commands[..]),
                    PointSpec::Watch(spec) => (spec.ignore, &[][..]),
                    PointSpec::Catch(_) => (0, &[][..]),
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
}
