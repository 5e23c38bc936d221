//! Output of the programs: lines are assembled per task and stream, and equal lines are shown once.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use sdm_core::CommandId;
use sdm_debug::event::Stream;
use sdm_idset::IdSet;
use sdm_view::item::Item;

use sdm_view::coalesce::Merged;

/// Time that lines are collected, so that equal lines of many tasks are merged.
const LINES_WINDOW: Duration = Duration::from_millis(100);
/// Time that a line without a line feed is delayed.
const PARTIAL_WINDOW: Duration = Duration::from_secs(1);
/// Maximum length of an incomplete line that is kept, in bytes.
const LINE_BYTES_MAX: usize = 64 << 10;
/// Maximum number of distinct lines that are collected.
const LINES_MAX: usize = 2048;

#[derive(Debug, PartialEq)]
struct PrintedLine {
    stream: Stream,
    bytes: Vec<u8>,
    complete: bool,
}

/// An incomplete line. All tasks of an entry have printed the same so far.
#[derive(Debug)]
struct Partial {
    tasks: IdSet,
    stream: Stream,
    bytes: Vec<u8>,
    since: Instant,
}

/// The most runs that are remembered while only their stop or only their output has arrived. Older ones are
/// forgotten.
const RUNS_MAX: usize = 256;

/// Tasks of a run of which only the stop or only the output has arrived. The two travel on different lanes.
#[derive(Debug, Default)]
struct Arrivals {
    /// The stop has arrived; the output before it is incomplete.
    stops: IdSet,
    /// All output before the stop has arrived; the stop has not.
    outputs: IdSet,
}

/// Collects the output of tasks.
#[derive(Debug)]
pub(crate) struct Output {
    partials: Vec<Partial>,
    lines: Merged<PrintedLine>,
    since: Option<Instant>,
    stdout_ended: IdSet,
    stderr_ended: IdSet,
    /// Runs that a stop has ended and whose stop or output is still in transit, by the command that began
    /// them.
    stops: BTreeMap<CommandId, Arrivals>,
    /// Number of pieces received.
    pieces: u64,
    /// The first error for which MPICH has ended the job, with its tasks. MPICH tells nobody else of it.
    fatal: Option<(IdSet, String)>,
    /// False if output is not shown.
    pub(crate) on: bool,
}

impl Output {
    pub(crate) fn new() -> Self {
        Self {
            partials: Vec::new(),
            lines: Merged::new(),
            since: None,
            stdout_ended: IdSet::new(),
            stderr_ended: IdSet::new(),
            stops: BTreeMap::new(),
            pieces: 0,
            fatal: None,
            on: true,
        }
    }

    /// Adds equal output of tasks.
    pub(crate) fn push(&mut self, now: Instant, tasks: &IdSet, stream: Stream, bytes: &[u8]) {
        self.pieces += 1;
        if !self.on {
            return;
        }
        let mut rest = tasks.clone();
        let (known, others): (Vec<_>, Vec<_>) = std::mem::take(&mut self.partials)
            .into_iter()
            .partition(|partial| partial.stream == stream && !partial.tasks.is_disjoint(tasks));
        self.partials = others;
        for mut partial in known {
            let both = partial.tasks.intersection(&rest);
            rest.subtract(&both);
            let mut whole = partial.bytes.clone();
            whole.extend_from_slice(bytes);
            partial.tasks.subtract(&both);
            let since = partial.since;
            if !partial.tasks.is_empty() {
                self.partials.push(partial);
            }
            self.split(now, &both, stream, &whole, since);
        }
        if !rest.is_empty() {
            self.split(now, &rest, stream, bytes, now);
        }
    }

    /// Notes the end of a stream of these tasks.
    pub(crate) fn end(&mut self, tasks: &IdSet, stream: Stream) {
        match stream {
            Stream::Stdout => self.stdout_ended.union_with(tasks),
            Stream::Stderr => self.stderr_ended.union_with(tasks),
        }
    }

    /// Notes that a run of these tasks has ended by a stop.
    pub(crate) fn stop(&mut self, command: CommandId, tasks: &IdSet) {
        let arrivals = self.stops.entry(command).or_default();
        arrivals
            .stops
            .union_with(&tasks.difference(&arrivals.outputs));
        arrivals.outputs.subtract(tasks);
        self.forget_arrived(command);
    }

    /// Notes that all output of these tasks before the end of a run has arrived.
    pub(crate) fn complete(&mut self, command: CommandId, tasks: &IdSet) {
        let arrivals = self.stops.entry(command).or_default();
        arrivals
            .outputs
            .union_with(&tasks.difference(&arrivals.stops));
        arrivals.stops.subtract(tasks);
        self.forget_arrived(command);
    }

    fn forget_arrived(&mut self, command: CommandId) {
        let arrived = |it: &Arrivals| it.stops.is_empty() && it.outputs.is_empty();
        if self.stops.get(&command).is_some_and(arrived) {
            self.stops.remove(&command);
        }
        // Entries of runs whose stop was lost would stay for ever, so their number is limited.
        while self.stops.len() > RUNS_MAX {
            self.stops.pop_first();
        }
    }

    /// True if all output before the stops that were received has arrived, except that of lost tasks.
    pub(crate) fn is_complete(&self, lost: &IdSet) -> bool {
        self.stops.values().all(|it| it.stops.is_subset(lost))
    }

    /// Gives up waiting for output before the stops that were received.
    pub(crate) fn give_up_stops(&mut self) {
        self.stops.clear();
    }

    /// A new collector for another job.
    pub(crate) fn again(before: &Self) -> Self {
        Self {
            on: before.on,
            ..Self::new()
        }
    }

    /// The tasks that have printed that MPICH ends the job for an error, and this error with its call.
    pub(crate) fn fatal_error(&self) -> Option<(IdSet, String)> {
        self.fatal.clone()
    }

    /// Number of pieces received so far. A changed number means that output is still arriving.
    pub(crate) fn pieces(&self) -> u64 {
        self.pieces
    }

    /// True if both streams of these tasks have ended.
    pub(crate) fn has_ended(&self, tasks: &IdSet) -> bool {
        tasks.is_subset(&self.stdout_ended) && tasks.is_subset(&self.stderr_ended)
    }

    /// The time at which [`Output::take_due`] returns an item. None if no output is delayed.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let lines = self.since.map(|since| since + LINES_WINDOW);
        let partials = self.partials.iter().map(|p| p.since + PARTIAL_WINDOW);
        partials.chain(lines).min()
    }

    /// Takes all complete lines if the delay of one is over, or if they are [`LINES_MAX`]. Takes the incomplete lines
    /// as well if the delay of one of them is over.
    pub(crate) fn take_due(&mut self, now: Instant) -> Vec<Item> {
        let overdue = |since: Instant| now >= since + PARTIAL_WINDOW;
        if self.partials.iter().any(|p| overdue(p.since)) {
            return self.take_all();
        }
        let due = self.since.is_some_and(|since| now >= since + LINES_WINDOW);
        if due || self.lines.len() >= LINES_MAX {
            return self.take_lines();
        }
        Vec::new()
    }

    /// Takes all lines, including incomplete ones.
    pub(crate) fn take_all(&mut self) -> Vec<Item> {
        for partial in std::mem::take(&mut self.partials) {
            let line = PrintedLine {
                stream: partial.stream,
                bytes: partial.bytes,
                complete: false,
            };
            self.lines.push(partial.tasks, line);
        }
        self.take_lines()
    }

    fn take_lines(&mut self) -> Vec<Item> {
        self.since = None;
        let lines = self.lines.take().into_iter();
        lines
            .map(|(tasks, line)| Item::Output {
                tasks,
                stream: line.stream,
                line: line.bytes,
                complete: line.complete,
            })
            .collect()
    }

    fn split(&mut self, now: Instant, tasks: &IdSet, stream: Stream, bytes: &[u8], since: Instant) {
        let mut lines = bytes.split(|byte| *byte == b'\n');
        let mut tail = lines.next_back().unwrap_or_default();
        let mut whole_lines = 0;
        for line in lines {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            self.line(now, tasks, stream, line, true);
            whole_lines += 1;
        }
        while tail.len() > LINE_BYTES_MAX {
            let (head, rest) = tail.split_at(LINE_BYTES_MAX);
            self.line(now, tasks, stream, head, false);
            tail = rest;
        }
        if tail.is_empty() {
            return;
        }
        let equal = |p: &&mut Partial| p.stream == stream && p.bytes == tail;
        match self.partials.iter_mut().find(equal) {
            Some(partial) => partial.tasks.union_with(tasks),
            None => self.partials.push(Partial {
                tasks: tasks.clone(),
                stream,
                bytes: tail.to_vec(),
                since: if whole_lines == 0 { since } else { now },
            }),
        }
    }

    fn line(&mut self, now: Instant, tasks: &IdSet, stream: Stream, line: &[u8], complete: bool) {
        self.since.get_or_insert(now);
        if stream == Stream::Stderr
            && let Some(error) = sdm_view::render::fatal_error_of_mpich(line)
        {
            let (by, known) = self
                .fatal
                .get_or_insert_with(|| (IdSet::new(), error.clone()));
            if *known == error {
                by.union_with(tasks);
            }
        }
        let line = PrintedLine {
            stream,
            bytes: line.to_vec(),
            complete,
        };
        self.lines.push(tasks.clone(), line);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pushed: &[(&str, &str)], expect: &[&str]) {
        let now = Instant::now();
        let mut output = Output::new();
        for (set, text) in pushed {
            let tasks = set.parse().unwrap();
            output.push(now, &tasks, Stream::Stdout, text.as_bytes());
        }
        let shown: Vec<_> = output
            .take_all()
            .into_iter()
            .map(|item| match item {
                Item::Output {
                    tasks,
                    line,
                    complete,
                    ..
                } => {
                    let text = String::from_utf8(line).unwrap();
                    format!("{tasks}:{text}{}", if complete { "" } else { "\\" })
                }
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(shown, expect);
    }

    #[test]
    fn printed_fatal_error_is_kept_with_its_tasks() {
        let mut output = Output::new();
        let mut push = |tasks: &str, code: u32| {
            let call = "(rank 0 in comm 0): Fatal error in internal_Send: text, error stack:";
            let line = format!("Abort({code}) on node 0 {call}\nmore\n");
            let tasks = tasks.parse().unwrap();
            output.push(Instant::now(), &tasks, Stream::Stderr, line.as_bytes());
        };
        push("2", 6);
        push("1", 6);
        push("0", 3);
        let error = "MPI_ERR_RANK (invalid rank), in MPI_Send".to_owned();
        assert_eq!(output.fatal_error(), Some(("1-2".parse().unwrap(), error)));
    }

    #[test]
    fn lines_are_assembled_per_task() {
        check(
            &[("0", "he"), ("1", "wo"), ("0", "llo\n"), ("1", "rld\n")],
            &["0:hello", "1:world"],
        );
        check(
            &[("0-3", "a"), ("0-1", "b\n"), ("2-3", "c\n")],
            &["0-1:ab", "2-3:ac"],
        );
        check(
            &[("0", "x\ny\n"), ("1", "x\nz")],
            &["0-1:x", "0:y", "1:z\\"],
        );
    }

    #[test]
    fn equal_lines_merge_without_reordering_a_task() {
        check(
            &[("0", "a\nb\n"), ("1", "a\nb\n"), ("2", "b\na\n")],
            &["0-1:a", "0-2:b", "2:a"],
        );
    }

    #[test]
    fn every_output_byte_is_shown_at_any_chunk_size() {
        let text = "one\ntwo two\n\nthree";
        for cut in 1..text.len() {
            let mut pushed = Vec::new();
            for part in text.as_bytes().chunks(cut) {
                let part = std::str::from_utf8(part).unwrap();
                pushed.push(("0-2", part));
            }
            check(&pushed, &["0-2:one", "0-2:two two", "0-2:", "0-2:three\\"]);
        }
    }

    #[test]
    fn output_counts_as_ended_only_if_both_streams_have_ended() {
        let mut output = Output::new();
        let all = IdSet::all_below(2);
        output.end(&all, Stream::Stdout);
        assert!(!output.has_ended(&all));
        output.end(&all, Stream::Stderr);
        assert!(output.has_ended(&all));
    }
}
