//! Joins `sdm`'s lines about tasks' output and events where a busy machine has split them.
//!
//! `sdm` delays output and events for a moment, so that equal lines of several tasks are shown once. On a busy machine
//! some lines come later and are shown separately, for other tasks. So the number of such lines is not fixed; the union
//! of their tasks is.

use std::collections::BTreeMap;

use sdm_idset::{IdSet, TaskId};

/// Commands that let tasks run, so that their answers arrive as events. Answers of other commands are complete when
/// shown.
const RUNS: &[&str] = &[
    "advance",
    "continue",
    "detach",
    "finish",
    "interrupt",
    "kill",
    "next",
    "nexti",
    "quit",
    "run",
    "start",
    "step",
    "stepi",
    "until",
    "wait",
];

/// A line of the screen, with the lines that belong below it.
struct Entry {
    who: Option<(Kind, IdSet)>,
    text: String,
    below: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// `[0-3] text`
    Output,
    /// `[0-3 err] text`
    Errors,
    /// `ranks 0-3 (4): text`
    Event,
}

/// The screen, with equal lines of several tasks about output or events of a run joined to one line, as if all had
/// arrived at the same time. The order of each task's output and events is kept.
#[must_use]
pub fn united(screen: &str) -> String {
    let mut kept: Vec<Entry> = Vec::new();
    // No entry is joined across the command, or across the task's last entry of the same lane. A task's output and
    // its events come on two lanes, and either may be the quicker.
    let mut answer = 0;
    let mut behind: BTreeMap<(TaskId, bool), usize> = BTreeMap::new();
    for mut entry in entries(screen) {
        if command(&entry.text).is_some() {
            answer = kept.len();
            behind.clear();
        }
        let Some((kind, tasks)) = entry.who.take() else {
            kept.push(entry);
            continue;
        };
        let mut others = tasks.clone();
        let lane = |task| (task, kind == Kind::Event);
        for task in tasks.iter() {
            let from = behind.get(&lane(task)).copied().unwrap_or(answer);
            let mut open = kept[from..].iter_mut().zip(from..);
            let equal = open.find_map(|(other, index)| Some((other.equal(kind, &entry)?, index)));
            if let Some((set, index)) = equal {
                set.insert(task);
                others.remove(task);
                behind.insert(lane(task), index + 1);
            }
        }
        if !others.is_empty() {
            behind.extend(others.iter().map(|task| (lane(task), kept.len() + 1)));
            entry.who = Some((kind, others));
            kept.push(entry);
        }
    }
    kept.iter().map(Entry::to_text).collect()
}

/// The tasks and the text of a line about an event, where it begins `rank 3: ` or `ranks 0-1 (2): `.
#[must_use]
pub fn told_of(line: &str) -> Option<(IdSet, &str)> {
    let (kind, tasks, text) = label(line)?;
    (kind == Kind::Event).then_some((tasks, text))
}

/// All tasks of which a line of `screen` reports a text that begins with `what`, at once or one after another: as
/// of ranks of which some end before others.
#[must_use]
pub fn all_told(screen: &str, what: &str) -> IdSet {
    let told = screen.lines().filter_map(told_of);
    let told = told.filter(|(_, said)| said.starts_with(what));
    let sets: Vec<IdSet> = told.map(|(tasks, _)| tasks).collect();
    IdSet::union_all(&sets)
}

/// The whole lines that a task has printed on its standard output.
#[must_use]
pub fn printed_by(screen: &str, task: TaskId) -> Vec<String> {
    let mut begun = String::new();
    let labels = screen.lines().filter_map(label);
    let own = labels.filter(|(kind, tasks, _)| *kind == Kind::Output && tasks.contains(task));
    own.filter_map(|(_, _, text)| whole(&mut begun, text))
        .collect()
}

/// The whole line of output that ends with `text`. A line that pauses for a second is shown in parts, each but the
/// last with a backslash at its end. The parts are collected in `begun` until the line ends.
pub fn whole(begun: &mut String, text: &str) -> Option<String> {
    if let Some(part) = text.strip_suffix('\\') {
        begun.push_str(part);
        return None;
    }
    Some(std::mem::take(begun) + text)
}

fn entries(screen: &str) -> Vec<Entry> {
    let mut entries: Vec<Entry> = Vec::new();
    // The text before the first command is that of the start, and the whole text of a session without commands.
    let mut runs = true;
    for line in screen.split_inclusive('\n') {
        if let Some(command) = command(line) {
            runs = lets_run(command);
        }
        let found = label(line).filter(|(kind, ..)| runs || *kind != Kind::Event);
        let above = entries.last_mut();
        match (found, above) {
            (Some((kind, tasks, text)), _) => entries.push(Entry {
                who: Some((kind, tasks)),
                text: text.to_owned(),
                below: String::new(),
            }),
            (None, Some(above)) if belongs_below(line, above) => above.below.push_str(line),
            (None, _) => entries.push(Entry {
                who: None,
                text: line.to_owned(),
                below: String::new(),
            }),
        }
    }
    entries
}

/// The text typed at a prompt, `(sdm) ` or `[all 4: 4 stopped] (sdm) `.
fn command(line: &str) -> Option<&str> {
    let (focus, command) = line.split_once("(sdm) ")?;
    let is_focus = focus.starts_with('[') && focus.ends_with("] ");
    (focus.is_empty() || is_focus).then_some(command)
}

/// True of a command, with or without a set before it, that lets tasks run or ends them.
fn lets_run(command: &str) -> bool {
    let bare = match command.strip_prefix('[') {
        Some(rest) => rest.split_once("] ").map_or(rest, |(_, bare)| bare),
        None => command,
    };
    let word = bare.split_whitespace().next();
    word.is_some_and(|word| RUNS.contains(&word))
}

fn label(line: &str) -> Option<(Kind, IdSet, &str)> {
    if let Some(rest) = line.strip_prefix('[') {
        let (set, text) = rest.split_once("] ")?;
        let (set, kind) = match set.strip_suffix(" err") {
            Some(set) => (set, Kind::Errors),
            None => (set, Kind::Output),
        };
        return Some((kind, set.parse().ok()?, text));
    }
    let rest = line.strip_prefix("rank")?;
    let (set, text) = rest.split_once(": ")?;
    let set = match set.strip_prefix("s ") {
        Some(several) => several.split_once(" (")?.0,
        None => set.strip_prefix(' ')?,
    };
    Some((Kind::Event, set.parse().ok()?, text))
}

/// True if a line belongs to the event above: the source line of a stop, a returned value, or a breakpoint's printed
/// text.
fn belongs_below(line: &str, above: &Entry) -> bool {
    let source = line.split_once('\t');
    let source = source.is_some_and(|(number, _)| number.parse::<u32>().is_ok());
    let value = line.starts_with("Value returned: ")
        || (above.text.ends_with(" printed\n") && line.starts_with("  "));
    matches!(above.who, Some((Kind::Event, _))) && (source || value)
}

impl Entry {
    /// The task set of this entry, where the entry is of this kind and equal to `other` but for the tasks.
    fn equal(&mut self, kind: Kind, other: &Entry) -> Option<&mut IdSet> {
        let equal = self.text == other.text && self.below == other.below;
        let (of, set) = self.who.as_mut()?;
        (*of == kind && equal).then_some(set)
    }

    fn to_text(&self) -> String {
        let Self { who, text, below } = self;
        match who {
            None => text.clone(),
            Some((Kind::Output, set)) => format!("[{set}] {text}"),
            Some((Kind::Errors, set)) => format!("[{set} err] {text}"),
            Some((Kind::Event, set)) if set.len() == 1 => format!("rank {set}: {text}{below}"),
            Some((Kind::Event, set)) => format!("ranks {set} ({}): {text}{below}", set.len()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(screen: &str, expect: &str) {
        assert_eq!(united(screen), expect);
        assert_eq!(united(expect), expect);
    }

    #[test]
    fn late_lines_join_equal_earlier_lines() {
        check(
            "(sdm) detach\n[1] going\nrank 1: exited with code 5\n[2] going\nrank 2: exited with code 5\n",
            "(sdm) detach\n[1-2] going\nranks 1-2 (2): exited with code 5\n",
        );
        check(
            "(sdm) [0-3] next\nranks 0-1 (2): f () at a.c:9\n9\t  x();\nrank 3: f () at a.c:9\n9\t  x();\n",
            "(sdm) [0-3] next\nranks 0-1,3 (3): f () at a.c:9\n9\t  x();\n",
        );
        check(
            "[all 2: 2 stopped] (sdm) step\nrank 1: a\nrank 0: a\n",
            "[all 2: 2 stopped] (sdm) step\nranks 0-1 (2): a\n",
        );
        check("[0] a\n[1 err] a\n[2 err] a\n", "[0] a\n[1-2 err] a\n");
        check(
            "(sdm) detach\n[1] going\nranks 1-2 (2): detached\n[2] going\n",
            "(sdm) detach\n[1-2] going\nranks 1-2 (2): detached\n",
        );
        check(
            "rank 0: at main () at a.c:9\n9\t  x();\nrank 1: at main () at a.c:9\n9\t  x();\n(sdm) bt\n",
            "ranks 0-1 (2): at main () at a.c:9\n9\t  x();\n(sdm) bt\n",
        );
        check(
            "rank 2: exited with code 9\nrank 0: killed\nrank 1: killed\n",
            "rank 2: exited with code 9\nranks 0-1 (2): killed\n",
        );
    }

    #[test]
    fn lines_of_a_task_keep_their_order() {
        check("[0] a\n[0] a\n[1] a\n[1] a\n", "[0-1] a\n[0-1] a\n");
        check("[0] a\n[1] b\n[1] a\n", "[0] a\n[1] b\n[1] a\n");
        check(
            "[0] a\n[0] a\n[0-1] a\n[0] b\n[1] a\n[1] a\n[1] b\n",
            "[0-1] a\n[0-1] a\n[0-1] a\n[0-1] b\n",
        );
        check("[0] a\n(sdm) bt\n[1] a\n", "[0] a\n(sdm) bt\n[1] a\n");
    }

    #[test]
    fn output_parts_that_end_in_a_backslash_are_joined() {
        let mut begun = String::new();
        let lines = ["a", "b\\", "c\\", "d", "e"];
        let lines: Vec<_> = lines
            .iter()
            .filter_map(|text| whole(&mut begun, text))
            .collect();
        assert_eq!(lines, ["a", "bcd", "e"]);
    }

    #[test]
    fn ranks_of_separate_lines_with_equal_text_are_united() {
        let screen = "ranks 0,2 (2): exited normally\n[1] exited\nrank 1: running on\n";
        let ended = |screen: &str| all_told(screen, "exited").to_string();
        assert_eq!(ended(screen), "0,2");
        assert_eq!(ended(&format!("{screen}rank 1: exited normally\n")), "0-2");
    }

    #[test]
    fn whole_output_lines_of_one_task_are_extracted() {
        let screen = "[0-1] a\n[1] b\\\n[0] c\n[1 err] d\nrank 1: e\n[1] f\n";
        assert_eq!(printed_by(screen, TaskId(1)), ["a", "bf"]);
        assert_eq!(printed_by(screen, TaskId(0)), ["a", "c"]);
    }

    #[test]
    fn answers_and_unequal_lines_of_ranks_are_not_united() {
        let apart = "(sdm) print 1\nrank 0: 1\nrank 1: 1\n";
        check(apart, apart);
        let apart = "(sdm) continue\nrank 0: finished\nValue returned: 1\nrank 1: finished\nValue returned: 2\n";
        check(apart, apart);
        check("no [0] label: at all", "no [0] label: at all");
    }
}
