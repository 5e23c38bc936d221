//! A section of the output of `sdm doctor`: the findings about one machine or job.

use sdm_doctor::Finding;

/// The findings about one machine or job.
#[derive(Debug)]
pub(super) struct Section {
    /// The subject of the section: this machine, a host, or a job.
    pub(super) place: String,
    pub(super) findings: Vec<Finding>,
}

impl Section {
    pub(super) fn new(place: impl Into<String>, findings: Vec<Finding>) -> Self {
        let place = place.into();
        Self { place, findings }
    }
}
