//! The end of the programs, until it is reported to the client.

use std::time::Instant;

use sdm_debug::event::Stream;
use sdm_idset::IdSet;

/// State of the programs' end.
#[derive(Debug, Default)]
pub(crate) struct ExitState {
    /// Tasks whose standard output has ended, and those whose standard error has.
    pub(crate) ended: [IdSet; 2],
    /// The time until which the rest of the output is awaited. `None` before the end of the programs.
    pub(crate) until: Option<Instant>,
}

impl ExitState {
    pub(crate) fn note_end(&mut self, tasks: &IdSet, stream: Stream) {
        self.ended[usize::from(stream == Stream::Stderr)].union_with(tasks);
    }

    pub(crate) fn due(&self) -> Option<Instant> {
        self.until
    }
}
