//! Output of the program for a report: its beginning and its end, grouped by tasks with equal output.

use std::collections::VecDeque;

use sdm_debug::event::Stream;
use sdm_idset::IdSet;
use sdm_text::counted;

use super::exceptions::Exceptions;

/// Maximum size of the beginning that is kept, in bytes.
const HEAD_BYTES_MAX: usize = 64 << 10;
/// Maximum size of the end that is kept, in bytes.
const TAIL_BYTES_MAX: usize = 192 << 10;
/// Bytes that are counted for a line in addition to its text.
const LINE_BYTES: usize = 64;
/// Maximum number of bytes that are kept of one line.
const LINE_BYTES_MAX: usize = 4 << 10;
/// Maximum number of lines that are searched for the beginning of an incomplete line.
const LOOK_BACK_MAX: usize = 64;
/// Maximum number of classes.
const CLASSES_MAX: usize = 16;

/// A line of output, with its tasks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputLine {
    /// The tasks that printed it.
    pub tasks: IdSet,
    /// The stream that it was printed on.
    pub stream: Stream,
    /// The bytes of the line, without its newline.
    pub bytes: Vec<u8>,
    /// False if the line is continued in a later entry.
    pub complete: bool,
}

/// The output of some tasks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputClass {
    /// The tasks that printed it.
    pub tasks: IdSet,
    /// The lines in the order in which each task printed them.
    pub lines: Vec<OutputLine>,
    /// True if all of the tasks printed all lines. Otherwise each line names its tasks.
    pub same: bool,
    /// Number of lines of all classes together that were left out, after the first `head` lines.
    pub left_out: u64,
    /// Number of lines before those left out.
    pub head: usize,
}

/// The output of the program, bounded in size.
#[derive(Clone, Debug, Default)]
pub(super) struct OutputLog {
    head: Vec<OutputLine>,
    head_bytes: usize,
    tail: VecDeque<OutputLine>,
    tail_bytes: usize,
    dropped_lines: u64,
    dropped_bytes: u64,
    cut_lines: u64,
    pub(super) exceptions: Exceptions,
}

impl OutputLog {
    pub(super) fn push(&mut self, tasks: &IdSet, stream: Stream, text: &[u8], complete: bool) {
        if self.joins(tasks, stream, text, complete) {
            return;
        }
        let kept = &text[..text.len().min(LINE_BYTES_MAX)];
        self.cut_lines += u64::from(kept.len() < text.len());
        let line = OutputLine {
            tasks: tasks.clone(),
            stream,
            bytes: kept.to_vec(),
            complete,
        };
        let bytes = line.bytes.len() + LINE_BYTES;
        if self.tail.is_empty() && self.head_bytes + bytes <= HEAD_BYTES_MAX {
            self.head_bytes += bytes;
            self.head.push(line);
            return;
        }
        self.tail_bytes += bytes;
        self.tail.push_back(line);
        while self.tail_bytes > TAIL_BYTES_MAX {
            let Some(oldest) = self.tail.pop_front() else {
                break;
            };
            self.tail_bytes -= oldest.bytes.len() + LINE_BYTES;
            self.dropped_lines += 1;
            self.dropped_bytes += oldest.bytes.len() as u64;
        }
    }

    /// Appends to an incomplete line of the same tasks. Returns false if there is none.
    fn joins(&mut self, tasks: &IdSet, stream: Stream, text: &[u8], complete: bool) -> bool {
        let in_head = self.tail.is_empty();
        let lines = match in_head {
            true => self.head.iter_mut().rev().take(LOOK_BACK_MAX).collect(),
            false => self
                .tail
                .iter_mut()
                .rev()
                .take(LOOK_BACK_MAX)
                .collect::<Vec<_>>(),
        };
        let last = lines
            .into_iter()
            .find(|line| line.stream == stream && !line.tasks.is_disjoint(tasks));
        let Some(last) = last.filter(|line| !line.complete && line.tasks == *tasks) else {
            return false;
        };
        let kept = text
            .len()
            .min(LINE_BYTES_MAX.saturating_sub(last.bytes.len()));
        last.bytes.extend_from_slice(&text[..kept]);
        last.complete = complete;
        let bytes = if in_head {
            &mut self.head_bytes
        } else {
            &mut self.tail_bytes
        };
        *bytes += kept;
        self.cut_lines += u64::from(kept < text.len());
        true
    }

    /// Describes the output that is not kept: the lines from the middle, and the ends of long lines. Empty if all is
    /// kept.
    pub(super) fn cut(&self) -> Vec<String> {
        let mut cut = Vec::new();
        if self.dropped_lines > 0 {
            cut.push(format!(
                "output: {} ({} bytes) from the middle",
                counted(self.dropped_lines, "line"),
                self.dropped_bytes
            ));
        }
        if self.cut_lines > 0 {
            cut.push(format!(
                "output: the end of {} longer than {LINE_BYTES_MAX} bytes",
                counted(self.cut_lines, "line")
            ));
        }
        cut
    }

    /// The output grouped by tasks with equal output, largest class first. A single class if there would be
    /// too many.
    pub(super) fn classes(&self) -> Vec<OutputClass> {
        let lines = || self.head.iter().chain(&self.tail);
        let Some(parts) = parts(lines().map(|line| &line.tasks)) else {
            let all = IdSet::union_all(lines().map(|line| &line.tasks));
            return vec![self.class(all, false)];
        };
        let mut classes: Vec<_> = parts
            .into_iter()
            .map(|tasks| self.class(tasks, true))
            .collect();
        classes.sort_by(|a, b| {
            let size = b.tasks.len().cmp(&a.tasks.len());
            size.then(a.tasks.first().cmp(&b.tasks.first()))
        });
        classes
    }

    fn class(&self, tasks: IdSet, same: bool) -> OutputClass {
        let of = |line: &&OutputLine| !line.tasks.is_disjoint(&tasks);
        let mut lines: Vec<_> = self.head.iter().filter(of).cloned().collect();
        let head = lines.len();
        lines.extend(self.tail.iter().filter(of).cloned());
        OutputClass {
            lines,
            same,
            left_out: self.dropped_lines,
            head,
            tasks,
        }
    }
}

/// The coarsest partition of which each set is a union of parts. None if it has too many parts.
fn parts<'a>(sets: impl Iterator<Item = &'a IdSet>) -> Option<Vec<IdSet>> {
    let mut distinct: Vec<&IdSet> = Vec::new();
    for set in sets {
        if !distinct.contains(&set) {
            distinct.push(set);
        }
        if distinct.len() > 8 * CLASSES_MAX {
            return None;
        }
    }
    let mut parts: Vec<IdSet> = Vec::new();
    for set in distinct {
        let mut new = set.clone();
        let mut next = Vec::with_capacity(parts.len() + 1);
        for part in parts {
            new.subtract(&part);
            let both = part.intersection(set);
            let rest = part.difference(set);
            next.extend([both, rest].into_iter().filter(|part| !part.is_empty()));
        }
        next.extend(Some(new).filter(|new| !new.is_empty()));
        if next.len() > CLASSES_MAX {
            return None;
        }
        parts = next;
    }
    Some(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(lines: &[(&str, &str, bool)]) -> OutputLog {
        let mut log = OutputLog::default();
        for (set, text, complete) in lines {
            let set = set.parse().unwrap();
            log.push(&set, Stream::Stdout, text.as_bytes(), *complete);
        }
        log
    }

    fn said(log: &OutputLog) -> String {
        let classes = log.classes().into_iter().map(|class| {
            let lines = class.lines.iter();
            let lines = lines.map(|line| String::from_utf8_lossy(&line.bytes).into_owned());
            format!("{}: {}", class.tasks, lines.collect::<Vec<_>>().join("|"))
        });
        classes.collect::<Vec<_>>().join("; ")
    }

    #[test]
    fn ranks_with_equal_output_form_one_class() {
        let lines = [("0-7", "a", true), ("3", "b", true), ("0-7", "c", true)];
        assert_eq!(said(&log(&lines)), "0-2,4-7: a|c; 3: a|b|c");
        let lines = [("0-3", "a", true), ("2-5", "b", true)];
        assert_eq!(said(&log(&lines)), "0-1: a; 2-3: a|b; 4-5: b");
        assert_eq!(said(&log(&[])), "");
    }

    #[test]
    fn line_received_in_parts_is_joined() {
        let lines = [
            ("0-1", "be", false),
            ("2", "other", true),
            ("0-1", "gun", true),
            ("0-1", "next", true),
        ];
        assert_eq!(said(&log(&lines)), "0-1: begun|next; 2: other");
    }

    #[test]
    fn output_keeps_beginning_and_end_and_counts_the_rest() {
        let mut log = OutputLog::default();
        let all = IdSet::all_below(4);
        for number in 0..20_000 {
            log.push(&all, Stream::Stdout, number.to_string().as_bytes(), true);
        }
        let long = vec![b'x'; 2 * LINE_BYTES_MAX];
        log.push(&all, Stream::Stderr, &long, true);
        let class = log.classes().remove(0);
        assert_eq!(class.lines[0].bytes, b"0");
        assert_eq!(class.lines.last().unwrap().bytes.len(), LINE_BYTES_MAX);
        let kept = class.lines.len() as u64;
        assert_eq!(kept + class.left_out, 20_001);
        assert!(log.head_bytes + log.tail_bytes <= HEAD_BYTES_MAX + TAIL_BYTES_MAX);
        assert_eq!(log.cut().len(), 2, "{:?}", log.cut());
    }

    #[test]
    fn too_many_output_classes_become_one() {
        let mut log = OutputLog::default();
        for task in 0..100 {
            log.push(
                &IdSet::single(sdm_idset::TaskId(task)),
                Stream::Stdout,
                b"me",
                true,
            );
        }
        let classes = log.classes();
        assert_eq!((classes.len(), classes[0].same), (1, false));
        assert_eq!(classes[0].lines.len(), 100);
    }
}
