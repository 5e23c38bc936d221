//! The ending of a session: exit code, policy for its tasks, and reason.

use nix::sys::signal::Signal;
use sdm_debug::EndPolicy;
use sdm_view::item::MergedStacks;

use super::controls::ScriptLine;
use super::model::{Model, Over};
use super::{SessionHandle, Verdict, notices, outcome};
use crate::exit_codes;

/// The ending of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ending {
    /// The exit code of `sdm`.
    pub code: u8,
    /// The treatment of the tasks: kill the started ones, or leave all running.
    pub policy: EndPolicy,
    /// The reason, where the end was not requested.
    pub reason: Option<String>,
}

/// The reason of a command that the user has interrupted. The state in which the processes were left is
/// known when the session is closed.
const INTERRUPTED: &str = "interrupted";

impl Ending {
    /// Adds the state in which the processes were left by an interrupted command, with `sure` if each was detached in
    /// order. Returns false for any other ending.
    pub fn tell_left(&mut self, sure: bool) -> bool {
        let given_up = StacksCode::Interrupted as u8;
        let is_given_up = self.code == given_up && self.policy == EndPolicy::Detach;
        let Some(reason) = self.reason.as_mut().filter(|_| is_given_up) else {
            return false;
        };
        reason.push_str(match sure {
            true => "; every process was left in its previous state",
            false => "; some processes may be stopped or still traced",
        });
        true
    }
}

/// The result of `sdm stacks`, which is its exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StacksCode {
    /// All tasks have the same call stack.
    Agree = 0,
    /// Some tasks have other call stacks than others.
    Differ = 1,
    /// Some stacks could not be read.
    Error = 2,
    /// Interrupted by the user.
    Interrupted = 130,
}

impl StacksCode {
    /// The result after stacks were read. An incomplete stack counts as unread.
    #[must_use]
    pub(super) fn of_stacks(self, stacks: Option<&MergedStacks>) -> Self {
        match stacks {
            Some(stacks) if !stacks.is_whole() => Self::Error,
            Some(stacks) if !stacks.agree() && self == Self::Agree => Self::Differ,
            _ => self,
        }
    }

    /// The reason of the end if the user has interrupted the command; `None` for all other codes.
    #[must_use]
    pub fn reason(self) -> Option<String> {
        (self == Self::Interrupted).then(|| INTERRUPTED.to_owned())
    }
}

/// The exit code and the reason of an end by this signal.
pub(super) fn told_to_end(signal: u8) -> (u8, String) {
    let name = Signal::try_from(i32::from(signal)).map_or("", Signal::as_str);
    (
        exit_codes::SIGNALLED + signal,
        format!("signal {signal} ({name})"),
    )
}

pub(super) fn ending(session: &SessionHandle) -> Ending {
    let (code, policy, reason) = match session.read(|model| model.over.clone()) {
        None => (0, EndPolicy::KillStarted, None),
        Some(Over::Quit(policy)) => (0, policy, None),
        Some(Over::Ended(why)) => (exit_codes::LOST, EndPolicy::KillStarted, Some(why)),
        Some(Over::Terminated(signal)) => {
            let (code, reason) = told_to_end(signal);
            (code, EndPolicy::KillStarted, Some(reason))
        }
        Some(Over::Unread) => (1, EndPolicy::KillStarted, None),
    };
    Ending {
        code,
        policy,
        reason,
    }
}

/// The ending of a session whose lines are all carried out. A script's exit code tells how the program that it has
/// started ended; a person at a prompt has seen that.
pub(super) fn ending_of_lines(session: &SessionHandle) -> Ending {
    let mut ending = ending(session);
    let is_told = |model: &Model| {
        model.over.is_none() && !model.options.interactive && model.options.is_ours()
    };
    if session.read(is_told) {
        (ending.code, ending.reason) = outcome::end_of_script(session);
    }
    ending
}

/// The ending of a session whose start failed.
pub(super) fn failed_start(session: &SessionHandle) -> Ending {
    let not_begun = |code, reason: &str| Ending {
        code,
        policy: EndPolicy::KillStarted,
        reason: Some(reason.to_owned()),
    };
    match session.read(|model| model.over.clone()) {
        Some(Over::Terminated(_) | Over::Quit(_) | Over::Unread) => ending(session),
        Some(Over::Ended(why)) => not_begun(exit_codes::NOT_STARTED, &why),
        None => {
            let code = session.read(|model| model.job.programless);
            let code = code.unwrap_or(exit_codes::NOT_STARTED);
            not_begun(code, "the program could not be started")
        }
    }
}

pub(super) fn ending_of_failure(
    session: &SessionHandle,
    verdict: Verdict,
    line: &ScriptLine,
) -> Ending {
    notices::show_gone(session);
    let (code, what) = match verdict {
        Verdict::GivenUp => (exit_codes::GIVEN_UP, "given up"),
        _ => (exit_codes::COMMAND_FAILED, "failed"),
    };
    let reason = format!("`{}` {what} ({})", line.text.trim(), line.origin);
    Ending {
        code,
        policy: EndPolicy::KillStarted,
        reason: Some(reason),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interrupt_reason_tells_the_state_of_the_processes() {
        let told = |code, policy, sure| {
            let mut ending = Ending {
                code,
                policy,
                reason: Some("interrupted".to_owned()),
            };
            ending.tell_left(sure);
            ending.reason.unwrap()
        };
        let given_up = StacksCode::Interrupted as u8;
        let detach = EndPolicy::Detach;
        assert_eq!(
            told(given_up, detach, true),
            "interrupted; every process was left in its previous state"
        );
        assert_eq!(
            told(given_up, detach, false),
            "interrupted; some processes may be stopped or still traced"
        );
        assert_eq!(told(124, detach, true), "interrupted");
        assert_eq!(told(given_up, EndPolicy::KillStarted, true), "interrupted");
    }
}
