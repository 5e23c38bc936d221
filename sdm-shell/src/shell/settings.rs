//! What gdb was told to be like: it is so in the next job, too.

use sdm_debug::Command;
use sdm_idset::IdSet;
use sdm_session::Debug;

use super::run::Said;
use super::{Shell, Verdict};

/// The most settings of gdb's that are remembered.
const SETTINGS_MAX: usize = 256;

impl<D: Debug> Shell<D> {
    /// A question of the user's. What gdb is told to be like it is in the next job, too.
    pub(super) fn ask_of_user(&mut self, said: &Said<'_>, command: &Command) -> Verdict {
        let (verdict, done) = self.ask(said.line, &said.to, command);
        self.remember_setting(&done, command);
        verdict
    }

    fn remember_setting(&mut self, done: &IdSet, command: &Command) {
        let Command::Console { line } = command else {
            return;
        };
        if !is_setting(line) || done.is_empty() {
            return;
        }
        for (tasks, known) in &mut self.settings {
            if known == line {
                tasks.subtract(done);
            }
        }
        self.settings.retain(|(tasks, _)| !tasks.is_empty());
        // The last word counts, so it stands behind those before it.
        self.settings.push((done.clone(), line.clone()));
        if self.settings.len() > SETTINGS_MAX {
            self.settings.remove(0);
        }
    }
}

/// True for a line that changes gdb and not the program.
fn is_setting(line: &str) -> bool {
    let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    match word {
        "handle" | "unset" | "skip" | "directory" => true,
        // `set x = 3` is an assignment like `set var`, but a convenience variable is gdb's own.
        "set" => {
            let rest = rest.trim_start();
            let plain = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
            let after = rest.trim_start_matches(plain).trim_start();
            rest.starts_with('$')
                || (rest.starts_with(|c: char| c.is_ascii_alphabetic())
                    && !after.starts_with(['=', '[', '.', '(', '+', '>', '*'])
                    && !rest.starts_with("var"))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_told_from_assignments() {
        for (line, expect) in [
            ("set print pretty on", true),
            ("set $i = 3", true),
            ("set logging file=x", true),
            ("handle SIGUSR1 stop", true),
            ("set x = 3", false),
            ("set x=3", false),
            ("set a[2] = 3", false),
            ("set p->x = 3", false),
            ("set *p = 3", false),
            ("set var x = 3", false),
            ("info line", false),
            ("set", false),
        ] {
            assert_eq!(is_setting(line), expect, "{line}");
        }
    }
}
