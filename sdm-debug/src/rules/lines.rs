//! The merge rule for text: distinct lines, each with the tasks that printed it.

use sdm_core::aggregate::Rejected;
use sdm_idset::IdSet;
use xxhash_rust::xxh3::xxh3_64;

use super::capped::{Capped, CappedKey, TaskCount};
use super::coding::{Reader, Writer, is_merged};
use super::plain::MergedForm;
use super::rule_numbers::RULE_LINES;
use crate::fold::shorten_to;
use crate::{Reply, wire};

/// Maximum length of a line, in bytes. A longer one is cut and ends with the hash of the whole line.
pub const LINE_BYTES_MAX: usize = 4 << 10;

/// Distinct lines with their tasks: the merged form of texts and values, by `RULE_LINES`.
///
/// Merged payload: `fe 03`, cut, count and set of the others, count of lines, then for each its text, count, first
/// position and set.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Lines {
    /// The lines, in the order of their first position.
    pub lines: Vec<LineClass>,
    /// Tasks with lines that the merged answer has no room for.
    pub others: IdSet,
    /// Number of lines that the merged answer has no room for, over all tasks.
    pub others_count: u64,
}

/// A distinct line with its tasks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineClass {
    /// The line, without its line end, at most [`LINE_BYTES_MAX`] bytes.
    pub text: String,
    /// The tasks that printed the line.
    pub tasks: IdSet,
    /// Number of times that the line was printed, over all tasks.
    pub count: u64,
}

impl Lines {
    /// Reads a task's own answer or a merged payload of these sources.
    ///
    /// # Errors
    /// The payload has no lines.
    pub fn decode(sources: &IdSet, payload: &[u8]) -> Result<Self, Rejected> {
        let capped = read(sources, payload)?;
        let mut entries: Vec<(&String, &TaskCount)> =
            capped.entries().map(|(t, h)| (&t.0, h)).collect();
        entries.sort_by(|a, b| (a.1.at, a.0).cmp(&(b.1.at, b.0)));
        let class = |(text, held): (&String, &TaskCount)| LineClass {
            text: text.clone(),
            tasks: held.tasks.clone(),
            count: held.count,
        };
        Ok(Self {
            lines: entries.into_iter().map(class).collect(),
            others: capped.others.clone(),
            others_count: capped.others_count,
        })
    }
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Line(String);

impl CappedKey for Line {
    fn cost(&self) -> usize {
        self.0.len()
    }

    fn hash(&self) -> u64 {
        xxh3_64(self.0.as_bytes())
    }
}

/// Lines of many tasks, while they are merged.
pub(super) type Gathered = Capped<Line>;

impl MergedForm for Gathered {
    fn read(sources: &IdSet, payload: &[u8]) -> Result<Self, Rejected> {
        read(sources, payload)
    }

    fn absorb(&mut self, other: Self) {
        Self::absorb(self, other);
    }

    fn write(self, bytes_max: usize) -> Vec<u8> {
        self.within(bytes_max, write)
    }
}

fn write(lines: &Capped<Line>, named: bool) -> Vec<u8> {
    let mut writer = Writer::new(RULE_LINES);
    lines.write_rest(&mut writer, named);
    writer.size(lines.entries().len());
    for (line, held) in lines.entries() {
        writer.text(&line.0);
        writer.number(held.count);
        writer.number(held.at);
        writer.set(&held.tasks);
    }
    writer.out
}

fn read(sources: &IdSet, payload: &[u8]) -> Result<Capped<Line>, Rejected> {
    if !is_merged(payload) {
        return own(sources, payload);
    }
    let mut reader = Reader::new(RULE_LINES, payload, sources)?;
    let lines = Capped::read(&mut reader, |reader| {
        let line = Line(reader.text()?.to_owned());
        if line.0.len() > LINE_BYTES_MAX {
            return Err(Rejected(
                "a line of the merged answer has more than 4096 bytes",
            ));
        }
        let (count, at) = (reader.number()?, reader.number()?);
        let tasks = reader.set()?;
        Ok((line, TaskCount { tasks, count, at }))
    })?;
    reader.end()?;
    Ok(lines)
}

/// The lines that a task answered.
fn own(sources: &IdSet, payload: &[u8]) -> Result<Capped<Line>, Rejected> {
    let text = match wire::decode(payload) {
        Ok(Reply::Text(text)) => text,
        Ok(Reply::Value(value)) if value.cut.is_none() => value.text,
        _ => return Err(Rejected("no text")),
    };
    let mut lines = Capped::default();
    for (at, line) in (0..).zip(text.lines()) {
        let held = TaskCount {
            tasks: sources.clone(),
            count: sources.len(),
            at,
        };
        lines.insert(Line(shorten_to(line, LINE_BYTES_MAX)), &held);
    }
    Ok(lines)
}
