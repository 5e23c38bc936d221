//! A place and what was found there.

use sdm_doctor::Finding;

/// What was found at one place.
#[derive(Debug)]
pub(super) struct Section {
    /// Where: this machine, a host, a job.
    pub(super) place: String,
    pub(super) findings: Vec<Finding>,
}

impl Section {
    pub(super) fn new(place: impl Into<String>, findings: Vec<Finding>) -> Self {
        let place = place.into();
        Self { place, findings }
    }
}
