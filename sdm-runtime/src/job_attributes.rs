//! Facts of a job that are read from its attributes.

use crate::attribute as id;
use crate::states::{self, State as _};

/// Attributes with a job's number: the first that a job has is the number that its manager's own commands take.
pub const JOB_NUMBERS: [&str; 2] = [id::SYSTEM_JOB_ID, id::JOB_ID];

/// The attributes of a job by their ids, as text.
pub trait JobAttributes {
    /// An attribute's value. None if it is empty.
    fn attribute(&self, id: &str) -> Option<&str>;

    /// An attribute's value as a number. None if it is empty or no number.
    fn number(&self, id: &str) -> Option<u64> {
        self.attribute(id).and_then(|value| value.parse().ok())
    }

    /// Run time of a job at the time `now` or in total, in seconds. None if it has not begun, or if its state or times
    /// are not known.
    fn run_time(&self, now: u64) -> Option<u64> {
        let start = self
            .number(id::START_TIME)
            .or_else(|| self.number(id::SUBMIT_TIME));
        let end = match states::Job::read(self.attribute(id::JOB_STATE)?)? {
            state if state.has_ended() => self.number(id::END_TIME),
            states::Job::Pending | states::Job::Unknown => None,
            _ => Some(now),
        };
        let start = start.filter(|start| *start > 0)?;
        Some(end?.saturating_sub(start))
    }

    /// The reason of a job's state: the manager's text, or the job's exit status.
    fn reason(&self) -> String {
        let message = self.attribute(id::JOB_STATUS_MESSAGE);
        if let Some(message) = message.filter(|message| *message != "None") {
            return message.to_owned();
        }
        let number = |id| self.number(id).filter(|number| *number != 0);
        match (number(id::EXIT_SIGNAL), number(id::EXIT_CODE)) {
            (Some(signal), _) => format!("signal {signal}"),
            (None, Some(code)) => format!("exit code {code}"),
            (None, None) => String::new(),
        }
    }
}
