//! What is kept for the report of a session while it goes on.

use std::time::{Duration, Instant};

use sdm_view::item::Item;
use sdm_view::render::Names;
use sdm_view::report::Recorder;

use crate::ReportFiles;

/// What was shown, and where a report of it goes.
pub(super) struct Reporting {
    pub(super) recorder: Recorder,
    pub(super) files: Option<ReportFiles>,
    /// Those that could not be written, for one more time at the end.
    pub(super) unwritten: Option<ReportFiles>,
    pub(super) next: Instant,
}

impl Reporting {
    /// Records, and writes nothing by itself.
    pub(super) fn new(now: Instant) -> Self {
        Self {
            recorder: Recorder::new(Vec::new(), Names::ranks()),
            files: None,
            unwritten: None,
            next: now,
        }
    }

    pub(super) fn record(&mut self, at: Duration, item: &Item) {
        self.recorder.record(at, item);
    }
}
