//! The data from which the report of a session is written.

use std::time::{Duration, Instant};

use sdm_idset::IdSet;
use sdm_view::item::Item;
use sdm_view::render::Names;
use sdm_view::report::Recorder;

use crate::ReportFiles;

/// The items shown so far, and the files of the report.
pub(super) struct Reporting {
    pub(super) recorder: Recorder,
    pub(super) files: Option<ReportFiles>,
    /// Files that could not be written, for one more attempt at the end. None without a failure.
    pub(super) unwritten: Option<ReportFiles>,
    pub(super) next: Instant,
    /// Tasks whose stacks the last look has read while they ran.
    pub(super) looked: IdSet,
}

impl Reporting {
    /// A record without files.
    pub(super) fn new(now: Instant) -> Self {
        Self {
            recorder: Recorder::new(Vec::new(), Names::ranks()),
            files: None,
            unwritten: None,
            next: now,
            looked: IdSet::new(),
        }
    }

    pub(super) fn record(&mut self, at: Duration, item: &Item) {
        self.recorder.record(at, item);
    }
}
