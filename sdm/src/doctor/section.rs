//! The findings of one place.

use sdm_doctor::Finding;

/// The findings of one place.
#[derive(Debug)]
pub(super) struct Section {
    /// The place: this machine, a host, a job.
    pub(super) place: String,
    pub(super) findings: Vec<Finding>,
}

impl Section {
    pub(super) fn new(place: impl Into<String>, findings: Vec<Finding>) -> Self {
        let place = place.into();
        Self { place, findings }
    }
}
