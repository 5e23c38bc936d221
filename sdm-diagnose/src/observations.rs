//! The file of observations that a verdict rests on. It is written for bug reports and can be judged again
//! without the job.
//!
//! The format has a version of its own and is documented in docs/json.md. It is not a serialised Rust type: types can
//! change, and old files keep their meaning. A missing optional field is empty, false or unknown. An unknown field is
//! an error that names it.

mod decode;
mod encode;
mod fields;
mod layout;
mod names;
#[cfg(test)]
mod tests;

use serde_json::Value;

use super::{Diagnosis, Observed, judge};

/// The version of the format. It is raised when a field changes its meaning or is removed.
pub const OBSERVATIONS_VERSION: u32 = 1;

/// Maximum size of a file, in bytes.
pub const OBSERVATIONS_BYTES_MAX: u64 = 256 << 20;

/// Upper bound of the rank numbers in a file, exclusive. Memory use grows with the highest rank.
const RANKS_MAX: u32 = 1 << 22;

/// Maximum number of samples in a file.
const SAMPLES_MAX: usize = 1000;

/// Maximum number of argument values in a file, over all ranks, roles and samples.
const NUMBERS_MAX: u64 = 16 << 20;

/// The observations of a job, with the diagnosis.
#[derive(Clone, Debug, PartialEq)]
pub struct Observations {
    /// The observations.
    pub observed: Observed,
    /// The diagnosis, as the record `diagnosis` of docs/json.md.
    pub verdict: Value,
}

/// An error in a file of observations.
#[derive(Debug, thiserror::Error)]
pub enum ObservationsError {
    /// The file is not JSON.
    #[error("the file is not JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// The version is unknown to this program.
    #[error(
        "the file has observations of version {0}, but this program reads version {OBSERVATIONS_VERSION}"
    )]
    Version(u32),
    /// A required field is missing.
    #[error("{at}: the field `{field}` is missing")]
    Missing {
        /// The path of the object: `samples[1].waits[0]`.
        at: String,
        /// The name of the field.
        field: &'static str,
    },
    /// A field is unknown.
    #[error("{at}: the field `{field}` is unknown")]
    Unknown {
        /// The path of the object.
        at: String,
        /// The name of the field.
        field: String,
    },
    /// A value is not allowed.
    #[error("{at}: expected {expected}")]
    Value {
        /// The path of the field.
        at: String,
        /// The allowed values.
        expected: &'static str,
    },
}

impl Observations {
    /// The observations with the diagnosis.
    #[must_use]
    pub fn new(observed: Observed, found: &Diagnosis) -> Self {
        Self {
            observed,
            verdict: found.to_json(),
        }
    }

    /// The file's text. Equal observations have equal texts.
    #[must_use]
    pub fn encode(&self) -> String {
        layout::text(&encode::file(self))
    }

    /// Parses the text of a file.
    ///
    /// # Errors
    /// [`ObservationsError`]: the text is not JSON, its version is unknown, or a field is missing, unknown or not
    /// allowed.
    pub fn decode(text: &str) -> Result<Self, ObservationsError> {
        decode::file(serde_json::from_str(text)?)
    }

    /// Judges the observations again.
    #[must_use]
    pub fn judge(&self) -> Diagnosis {
        judge(&self.observed)
    }
}
