//! Commands for this machine, and for threads one by one.

use std::process::{Command as Process, ExitStatus};
use std::time::Duration;

use sdm_debug::{Command, Reply};
use sdm_idset::IdSet;
use sdm_session::Debug;
use sdm_view::item::Item;

use super::gather::join;
use super::run::Said;
use super::{Shell, Verdict};
use crate::commands::UserCommand;

/// The most threads that one `thread apply all` goes to.
const THREADS_MAX: usize = 64;
/// How often it is looked whether a command of this machine has ended: the session goes on meanwhile.
const TURN: Duration = Duration::from_millis(20);

impl<D: Debug> Shell<D> {
    /// `shell COMMAND`, `make`. It has the terminal; the session goes on behind it.
    pub(super) fn system(&mut self, command: &str) -> Verdict {
        let mut process = match command {
            "" => Process::new(std::env::var_os("SHELL").unwrap_or_else(|| "/bin/sh".into())),
            command => {
                let mut process = Process::new("/bin/sh");
                process.args(["-c", command]);
                process
            }
        };
        self.show_held();
        let mut child = match process.spawn() {
            Ok(child) => child,
            Err(error) => return self.complain(format!("{command}: {error}"), ""),
        };
        let status = loop {
            match child.try_wait() {
                Ok(Some(status)) => break status,
                Ok(None) => {}
                Err(error) => return self.complain(format!("{command}: {error}"), ""),
            }
            // Ctrl-C is for who has the terminal.
            let _ = self.take_control();
            if self.over.is_some() {
                // It has no terminal and nobody who waits for it any more.
                let _ = child.kill();
                let _ = child.wait();
                return Verdict::Failed;
            }
            let until = self.now() + TURN;
            self.pump(Some(until));
        };
        self.ended(command, status)
    }

    fn ended(&mut self, command: &str, status: ExitStatus) -> Verdict {
        if status.success() || command.is_empty() {
            return Verdict::Done;
        }
        self.complain(format!("{command}: {status}"), "")
    }

    /// `thread apply N... COMMAND`; all threads where none is named.
    pub(super) fn thread_apply(
        &mut self,
        said: &Said<'_>,
        threads: &[u32],
        command: UserCommand,
    ) -> Verdict {
        let (verdict, open) = self.ask_quietly(said.line, &said.to, &Command::Threads);
        let Some(mut open) = open else {
            return verdict;
        };
        let mut known: Vec<(IdSet, u32)> = Vec::new();
        for (tasks, reply) in std::mem::take(&mut open.gathered.ok) {
            let Reply::Threads(threads) = reply else {
                continue;
            };
            for thread in threads {
                join(&mut known, &tasks, thread.number);
            }
        }
        known.sort_by_key(|(_, number)| *number);
        let mut verdict = verdict;
        self.show(&Item::Answer(open.gathered));
        for number in threads {
            if !known.iter().any(|(_, known)| known == number) {
                verdict = self.complain(format!("Unknown thread {number}."), "");
            }
        }
        known.retain(|(_, number)| threads.is_empty() || threads.contains(number));
        let more = known.len().saturating_sub(THREADS_MAX);
        for (tasks, number) in known.into_iter().take(THREADS_MAX) {
            self.show(&Item::Text(format!("Thread {number}:")));
            let narrowed = Said {
                line: said.line,
                to: tasks,
                named: true,
            };
            let one = self.with_thread(&narrowed, number, |shell, said| {
                shell.carry_out(said, command.clone())
            });
            if one != Verdict::Done {
                verdict = one;
            }
            if one == Verdict::GivenUp || self.over.is_some() {
                return verdict;
            }
        }
        if more > 0 {
            self.say(&format!("{more} more threads: name them"));
        }
        verdict
    }
}
