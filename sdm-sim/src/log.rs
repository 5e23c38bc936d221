//! The log of a run: a hash of all lines, and the last lines if requested.

use std::collections::VecDeque;
use std::fmt::{self, Write};

use sdm_core::node::Delivery;
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

/// The log of one run. Equal seeds and equal code give equal hashes.
pub(crate) struct Log {
    hash: Xxh3,
    lines: VecDeque<String>,
    lines_max: usize,
    count: u64,
    line: String,
}

impl Log {
    /// A log that keeps the last `lines_max` lines.
    pub(crate) fn new(lines_max: usize) -> Self {
        Self {
            hash: Xxh3::new(),
            lines: VecDeque::new(),
            lines_max,
            count: 0,
            line: String::new(),
        }
    }

    /// Adds a line about an event at `now`, in microseconds since the start.
    pub(crate) fn note(&mut self, now: u64, what: fmt::Arguments<'_>) {
        self.line.clear();
        // Writing to a string cannot fail.
        let _ = write!(
            self.line,
            "{:>4}.{:06} {what}",
            now / 1_000_000,
            now % 1_000_000
        );
        self.hash.update(self.line.as_bytes());
        self.hash.update(b"\n");
        self.count += 1;
        if self.lines_max > 0 {
            if self.lines.len() == self.lines_max {
                self.lines.pop_front();
            }
            self.lines.push_back(self.line.clone());
        }
    }

    pub(crate) fn hash(&self) -> u64 {
        self.hash.digest()
    }

    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Removes and returns the kept lines.
    pub(crate) fn take_lines(&mut self) -> Vec<String> {
        std::mem::take(&mut self.lines).into()
    }
}

/// Formats a delivery as one line. Payloads are shown by length and hash.
pub(crate) struct DeliveryLine<'a>(pub(crate) &'a Delivery);

impl fmt::Display for DeliveryLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Delivery::Answer {
                id,
                blocks,
                missing,
                lost,
                late,
            } => {
                write!(f, "told: {id}:")?;
                for block in blocks {
                    let (len, hash) = (block.payload.len(), xxh3_64(&block.payload));
                    write!(
                        f,
                        " {:?} {} ({len} bytes {hash:016x})",
                        block.status, block.sources
                    )?;
                }
                for (tasks, why) in missing {
                    write!(f, " missing {tasks} ({why})")?;
                }
                write!(f, " lost {lost} late {late}")
            }
            Delivery::Events(blocks) => {
                write!(f, "told: events")?;
                blocks.iter().try_for_each(|block| {
                    let (len, hash) = (block.payload.len(), xxh3_64(&block.payload));
                    write!(f, " {} ({len} bytes {hash:016x})", block.sources)
                })
            }
            Delivery::Reach(change) => {
                write!(
                    f,
                    "told: {:?} {}: {}",
                    change.health, change.tasks, change.why
                )
            }
            other => write!(f, "told: {other:?}"),
        }
    }
}
