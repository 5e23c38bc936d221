//! The remains of a shell after its session is closed: it shows the last item and writes the report.

use std::time::Instant;

use sdm_idset::IdSet;
use sdm_text::printable_name;
use sdm_view::item::{Happening, Item, View};
use sdm_view::report::Report;

use super::LocalMachine;
use crate::{NotWritten, ReportFiles};

/// The remains of a shell after its session is closed.
pub struct Ended {
    pub(super) view: Box<dyn View>,
    pub(super) machine: Box<dyn LocalMachine>,
    pub(super) clock: Box<dyn Fn() -> Instant>,
    pub(super) began: Instant,
    pub(super) report: Option<(ReportFiles, Report)>,
}

impl Ended {
    /// Shows the end of the session.
    pub fn show(mut self, code: u8, reason: Option<String>) {
        self.view.status(None);
        let at = (self.clock)().saturating_duration_since(self.began);
        self.view.show(at, &Item::End { code, reason });
    }

    /// Names the tasks of an interrupted command of which it is not known that they were left as before.
    pub fn tell_unsure(&mut self, tasks: IdSet) {
        let at = (self.clock)().saturating_duration_since(self.began);
        let what = Happening::Notice("may be stopped or still traced".to_owned());
        self.view.show(at, &Item::Happened { tasks, what });
    }

    /// Finishes the report, if there is one. Returns a note about it for the screen.
    ///
    /// # Errors
    /// [`NotWritten`] names the file that could not be written.
    pub fn finish_report(
        &mut self,
        code: u8,
        reason: Option<&String>,
    ) -> Result<Option<String>, NotWritten> {
        let Some((files, mut report)) = self.report.take() else {
            return Ok(None);
        };
        report.end = Some(sdm_view::report::End {
            code,
            reason: reason.cloned(),
        });
        report.took = (self.clock)().saturating_duration_since(self.began);
        files.write(&report, &mut *self.machine)?;
        let page = printable_name(&files.page);
        Ok(Some(format!(
            "{}  {page} has the full report\n",
            sdm_view::report::text(&report)
        )))
    }
}
