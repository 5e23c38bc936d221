//! What a verdict rests on, as a file: written for a bug report, judged again without the job.
//!
//! The format has a version of its own and is documented in docs/json.md. It is no serialised type of ours: types may
//! change, and a file that was written before still means the same. A field that is not there is empty, false or
//! unknown; a field that nobody knows is refused by its name.

mod decode;
mod encode;
mod fields;
mod layout;
mod names;
#[cfg(test)]
mod tests;

use serde_json::Value;

use super::{Diagnosis, Observed, judge};

/// The version of the format: raised where a field changes its meaning or goes.
pub const OBSERVATIONS_VERSION: u32 = 1;

/// The most bytes of a file that is read.
pub const OBSERVATIONS_BYTES_MAX: u64 = 256 << 20;

/// The rank behind the highest that may be named: what one names, all below it cost.
const RANKS_MAX: u32 = 1 << 22;

/// The most looks at a job.
const SAMPLES_MAX: usize = 1000;

/// The most numbers of arguments, of all ranks, roles and samples together.
const NUMBERS_MAX: u64 = 16 << 20;

/// What was observed of a job, and what was said of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Observations {
    /// What the verdict rests on.
    pub observed: Observed,
    /// What was said of it, as the record `diagnosis` of docs/json.md.
    pub verdict: Value,
}

/// A text that holds no observations.
#[derive(Debug, thiserror::Error)]
pub enum ObservationsError {
    /// It is no JSON.
    #[error("no JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// It is of a version that this program does not know.
    #[error("observations of version {0}: this program reads version {OBSERVATIONS_VERSION}")]
    Version(u32),
    /// A field is not there that must be.
    #[error("{at}: the field `{field}` is missing")]
    Missing {
        /// Where: `samples[1].waits[0]`.
        at: String,
        /// The name of the field.
        field: &'static str,
    },
    /// A field is there that nobody knows.
    #[error("{at}: the field `{field}` is unknown")]
    Unknown {
        /// Where.
        at: String,
        /// The name of the field.
        field: String,
    },
    /// A value is none of those that may stand there.
    #[error("{at}: expected {expected}")]
    Value {
        /// Where, with the name of the field.
        at: String,
        /// What may stand there.
        expected: &'static str,
    },
}

impl Observations {
    /// What was observed, with what was said of it.
    #[must_use]
    pub fn new(observed: Observed, found: &Diagnosis) -> Self {
        Self {
            observed,
            verdict: found.to_json(),
        }
    }

    /// As text: equal ones have equal texts.
    #[must_use]
    pub fn encode(&self) -> String {
        layout::text(&encode::file(self))
    }

    /// Reads what [`Observations::encode`] has written.
    ///
    /// # Errors
    /// [`ObservationsError`], which names the place and the field.
    pub fn decode(text: &str) -> Result<Self, ObservationsError> {
        decode::file(serde_json::from_str(text)?)
    }

    /// Judged anew.
    #[must_use]
    pub fn judge(&self) -> Diagnosis {
        judge(&self.observed)
    }
}
