//! `--batch`: to the end without anybody, with a look at what went wrong.

use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use sdm_debug::reply::{Stop, StopReason};
use sdm_debug::{Command, EndPolicy, TaskState};
use sdm_idset::IdSet;
use sdm_session::Debug;
use sdm_view::item::Happening;
use sdm_view::render::{Names, set_text};

use super::flow::Ending;
use super::input::{Control, ScriptLine};
use super::wait::Goal;
use super::{Over, Shell};

/// The exit code of a time-out or a hang.
const TIMED_OUT: u8 = 120;
/// The exit code of an abort, or of a task that left before `MPI_Finalize`.
const ABORTED: u8 = 121;
/// The exit code where tasks are lost, or their gdb.
const LOST: u8 = 122;
/// How long tasks are given to stop before they are looked at.
const STOP_WAIT: Duration = Duration::from_secs(10);
/// How often the line that tells what goes on is renewed.
const TURN: Duration = Duration::from_secs(1);

/// What a batch does when something goes wrong, and when that is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Batch {
    /// Commands at the first crash or abort.
    pub on_crash: Vec<String>,
    /// Commands when the time is over or nothing goes on any more.
    pub on_timeout: Vec<String>,
    /// How long the program may take.
    pub time_limit: Option<Duration>,
    /// How long it may print nothing and stop nowhere.
    pub hang_timeout: Option<Duration>,
}

/// Why a batch is over.
enum Why {
    Ended,
    Crashed(IdSet),
    TimedOut(String),
    GivenUp,
    Over,
}

impl<D: Debug> Shell<D> {
    /// Lets all tasks run to their end; at the first crash, or when it takes too long, carries out
    /// the commands for that and ends. The exit code says what came of it.
    pub fn run_batch(&mut self, batch: &Batch) -> Ending {
        if self.writes_report() {
            self.look_at_versions();
        }
        let why = self.run_to_the_end(batch);
        self.view.status(None);
        self.show_held();
        let (code, reason) = match why {
            Why::Over => {
                self.look_back();
                self.show_gone();
                return self.ending();
            }
            Why::Ended => self.code_of_the_end(),
            Why::GivenUp => {
                self.look_back();
                (130, Some("given up".to_owned()))
            }
            Why::Crashed(tasks) => {
                let first = self.crash_of(&tasks);
                self.look_back();
                self.carry_out_all("--on-crash", &batch.on_crash);
                first
            }
            Why::TimedOut(text) => {
                self.say(&text);
                self.look_back();
                self.carry_out_all("--on-timeout", &batch.on_timeout);
                (TIMED_OUT, Some(text))
            }
        };
        self.show_gone();
        if matches!(self.over, Some(Over::Terminated(_))) {
            return self.ending();
        }
        Ending {
            code,
            policy: EndPolicy::KillStarted,
            reason,
        }
    }

    fn run_to_the_end(&mut self, batch: &Batch) -> Why {
        let began = self.now();
        self.activity = began;
        loop {
            if self.over.is_some() {
                return Why::Over;
            }
            let control = self.take_control();
            if self.warned {
                return Why::TimedOut("the time is nearly over, as SIGUSR1 says".to_owned());
            }
            if let Some(Control::Interrupt) = control {
                return Why::GivenUp;
            }
            let crashed = self.crashed();
            if !crashed.is_empty() {
                return Why::Crashed(crashed);
            }
            let standing = self.standing();
            if standing.is_empty() && self.tasks.running().is_empty() {
                self.settle(&self.tasks.ended());
                return Why::Ended;
            }
            if !standing.is_empty() {
                self.let_run(&standing);
            }
            let now = self.now();
            if let Some(text) = self.too_long(batch, began, now) {
                return Why::TimedOut(text);
            }
            let running = set_text(&self.tasks.running(), 24);
            let seconds = (now - began).as_secs();
            let line = format!("batch: running: {running} ({seconds} s); ^C ends it");
            self.view.status((seconds > 0).then_some(line.as_str()));
            let limit = batch.time_limit.map(|limit| began + limit);
            let quiet = batch.hang_timeout.map(|quiet| self.activity + quiet);
            let next = [Some(now + TURN), limit, quiet].into_iter().flatten().min();
            self.pump(next);
        }
    }

    fn too_long(&self, batch: &Batch, began: Instant, now: Instant) -> Option<String> {
        let past =
            |since: Instant, span: Option<Duration>| span.filter(|span| now >= since + *span);
        if let Some(limit) = past(began, batch.time_limit) {
            return Some(format!("the time is over: {} s", limit.as_secs()));
        }
        let quiet = past(self.activity, batch.hang_timeout)?;
        Some(format!(
            "nothing was printed and nothing stopped for {} s",
            quiet.as_secs()
        ))
    }

    fn let_run(&mut self, tasks: &IdSet) {
        let id = self.send("batch", tasks, &Command::Continue);
        if let Some(open) = self.open.find(id) {
            open.unattended = true;
        }
    }

    /// Those that a signal has ended or is about to end, and those about to abort.
    fn crashed(&self) -> IdSet {
        let killed = self
            .tasks
            .in_state(|state| matches!(state, TaskState::Signalled(_)));
        let about = self
            .tasks
            .where_last(|last| matches!(last, Happening::Stopped(stop) if stop.reason.is_crash()));
        killed.union(&about)
    }

    /// The exit code of a crash, and who it was.
    fn crash_of(&self, tasks: &IdSet) -> (u8, Option<String>) {
        let rows = self.tasks.rows_of(tasks);
        let row = rows.first();
        let code = match row.map(|row| (&row.state, &row.last)) {
            Some((TaskState::Signalled(signal), _)) => code_of(signal),
            Some((
                _,
                Some(Happening::Stopped(Stop {
                    reason: StopReason::Signal { name, .. },
                    ..
                })),
            )) => code_of(name),
            _ => ABORTED,
        };
        let what = match row.and_then(|row| row.last.as_ref()) {
            Some(Happening::Stopped(stop)) => sdm_view::render::stopped(stop),
            _ => "ended by a signal".to_owned(),
        };
        let who = Names::ranks().label(row.map_or(tasks, |row| &row.tasks), 60);
        (code, Some(format!("{who}: {what}")))
    }

    /// 0 where all ended with 0; 122 where that cannot be known; the one code that others ended with; else 1.
    fn code_of_the_end(&self) -> (u8, Option<String>) {
        let lost = self.tasks.lost().difference(&self.tasks.ended());
        if !lost.is_empty() {
            let who = set_text(&lost, 60);
            return (LOST, Some(format!("lost: {who}")));
        }
        let without_gdb = self.tasks.in_state(|state| *state == TaskState::GdbDead);
        if !without_gdb.is_empty() {
            // How the program would have ended nobody knows: it has ended with its gdb.
            let who = set_text(&without_gdb, 60);
            return (LOST, Some(format!("their gdb was killed or failed: {who}")));
        }
        let mut codes = Vec::new();
        for row in self.tasks.rows_of(self.debug.tasks()) {
            match row.state {
                TaskState::Exited(0) => {}
                TaskState::Exited(code) => codes.push(u8::try_from(code).unwrap_or(1)),
                _ => codes.push(1),
            }
        }
        codes.sort_unstable();
        codes.dedup();
        match codes[..] {
            [] => (0, None),
            [code] => (
                code,
                Some(format!("the program ended with exit code {code}")),
            ),
            _ => (
                1,
                Some("the program ended with several exit codes".to_owned()),
            ),
        }
    }

    pub(super) fn stop_all(&mut self) {
        let running = self.tasks.running();
        if running.is_empty() || self.over.is_some() {
            return;
        }
        self.ask_quietly("interrupt", &running, &Command::Interrupt);
        let until = Some(self.now() + STOP_WAIT);
        self.wait_for(&Goal::Still(running), "interrupt", until);
        self.show_held();
    }

    /// All of them, whatever becomes of each: what can be seen is seen.
    fn carry_out_all(&mut self, origin: &str, lines: &[String]) {
        for text in lines {
            if self.over.is_some() {
                break;
            }
            let line = ScriptLine {
                text: text.clone(),
                origin: origin.to_owned(),
            };
            self.carry_out_line(&line);
            self.show_held();
        }
    }
}

/// 128 and the signal's number, as a shell says it. Real-time signals have no names of their own: SIG34.
fn code_of(signal: &str) -> u8 {
    const SIGNAL_MAX: u8 = 64;
    let named = signal.parse::<Signal>().map(|signal| signal as u8).ok();
    let numbered = || signal.strip_prefix("SIG")?.parse().ok();
    let number = named.or_else(numbered).filter(|it| *it <= SIGNAL_MAX);
    number.map_or(ABORTED, |number| 128 + number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_are_told_as_a_shell_does() {
        assert_eq!(code_of("SIGSEGV"), 139);
        assert_eq!(code_of("SIGKILL"), 137);
        assert_eq!(code_of("SIGSTKFLT"), 144);
        assert_eq!(code_of("SIG34"), 162);
        assert_eq!(code_of("SIG64"), 192);
        assert_eq!(code_of("SIG99"), ABORTED);
        assert_eq!(code_of("?"), ABORTED);
    }
}
