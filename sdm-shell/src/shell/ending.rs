//! How a session ends: its exit code, what becomes of its tasks, and why.

use nix::sys::signal::Signal;
use sdm_debug::EndPolicy;
use sdm_view::item::MergedStacks;

use super::controls::ScriptLine;
use super::model::Over;
use super::{SessionHandle, Verdict, held_back};

/// How a session ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ending {
    /// The exit code of `sdm`.
    pub code: u8,
    /// What becomes of the tasks.
    pub policy: EndPolicy,
    /// Why, where it was not asked for.
    pub reason: Option<String>,
}

/// Why a look at a job came to nothing, where a person did not wait for it.
const INTERRUPTED: &str = "interrupted; every process was left as it was";

/// What `sdm stacks` found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StacksCode {
    /// All are in the same place.
    Agree = 0,
    /// Some stand elsewhere than others.
    Differ = 1,
    /// Not all could be looked at.
    Error = 2,
    /// A person has given it up.
    Interrupted = 130,
}

impl StacksCode {
    /// The same after stacks were seen; one that was not read to its end is none that was looked at.
    #[must_use]
    pub(super) fn of_stacks(self, stacks: Option<&MergedStacks>) -> Self {
        match stacks {
            Some(stacks) if !stacks.is_whole() => Self::Error,
            Some(stacks) if !stacks.agree() && self == Self::Agree => Self::Differ,
            _ => self,
        }
    }

    /// Why it is so, where that was not asked for.
    #[must_use]
    pub fn reason(self) -> Option<String> {
        (self == Self::Interrupted).then(|| INTERRUPTED.to_owned())
    }
}

/// The exit code of what a signal ends, and why it does.
pub(super) fn told_to_end(signal: u8) -> (u8, String) {
    let name = Signal::try_from(i32::from(signal)).map_or("", Signal::as_str);
    (128 + signal, format!("signal {signal} ({name})"))
}

pub(super) fn ending(session: &SessionHandle) -> Ending {
    let (code, policy, reason) = match session.read(|model| model.over.clone()) {
        None => (0, EndPolicy::KillStarted, None),
        Some(Over::Quit(policy)) => (0, policy, None),
        Some(Over::Ended(why)) => (122, EndPolicy::KillStarted, Some(why)),
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

/// How a session ends whose start failed.
pub(super) fn failed_start(session: &SessionHandle) -> Ending {
    let not_begun = |code, reason: &str| Ending {
        code,
        policy: EndPolicy::KillStarted,
        reason: Some(reason.to_owned()),
    };
    match session.read(|model| model.over.clone()) {
        Some(Over::Terminated(_) | Over::Quit(_) | Over::Unread) => ending(session),
        Some(Over::Ended(why)) => not_begun(124, &why),
        None => {
            let code = session.read(|model| model.job.programless).unwrap_or(124);
            not_begun(code, "the program could not be started")
        }
    }
}

pub(super) fn ending_of_failure(
    session: &SessionHandle,
    verdict: Verdict,
    line: &ScriptLine,
) -> Ending {
    held_back::show_gone(session);
    let (code, what) = match verdict {
        Verdict::GivenUp => (130, "given up"),
        _ => (123, "failed"),
    };
    let reason = format!("`{}` {what} ({})", line.text.trim(), line.origin);
    Ending {
        code,
        policy: EndPolicy::KillStarted,
        reason: Some(reason),
    }
}
