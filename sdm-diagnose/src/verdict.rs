//! The verdict: its strength, cause and text, and the ranks it names.

use sdm_idset::IdSet;

use super::{Cause, Step};

/// Maximum number of ranks of a cycle that is printed in full. Of a longer cycle the first 8 and the last 2 ranks are
/// printed.
const CIRCLE_SHOWN: usize = 12;

/// A verdict with the ranks that it names.
#[derive(Debug)]
pub(super) struct Verdict {
    pub(super) step: Step,
    pub(super) cause: Cause,
    pub(super) text: String,
    pub(super) suspects: IdSet,
    /// The ranks between which the error is, if no particular rank is to blame.
    pub(super) between: IdSet,
    pub(super) held_up_by: IdSet,
}

impl Verdict {
    /// A verdict of this strength, with the most frequent cause for that strength.
    pub(super) fn new(step: Step, text: impl Into<String>) -> Self {
        let cause = match step {
            Step::Deadlock | Step::CannotGoOn => Cause::CallOrdering,
            Step::HeldUp | Step::CannotTell => Cause::Unknown,
            Step::NoHangSeen => Cause::None,
        };
        Self {
            step,
            cause,
            text: text.into(),
            suspects: IdSet::new(),
            between: IdSet::new(),
            held_up_by: IdSet::new(),
        }
    }

    pub(super) fn of(self, cause: Cause) -> Self {
        Self { cause, ..self }
    }

    pub(super) fn blaming(self, suspects: IdSet) -> Self {
        Self { suspects, ..self }
    }

    pub(super) fn between(self, between: IdSet) -> Self {
        Self { between, ..self }
    }
}

/// The words for one or for several ranks: `rank 3` or `ranks 1-2`.
pub(super) fn ranks(tasks: &IdSet) -> String {
    in_number("[rank|ranks] ", tasks.len()) + &tasks.to_string()
}

/// As `ranks`, with the verb: `rank 3 waits` or `ranks 1-2 wait`.
pub(super) fn waiting(tasks: &IdSet) -> String {
    ranks(tasks) + in_number(" [waits|wait]", tasks.len()).as_str()
}

/// A text that has the words for one and for several ranks in brackets: `[it waits|they wait] for a lock`.
pub(super) fn in_number(text: &str, count: u64) -> String {
    let mut parts = text.split(['[', ']']);
    let mut told = parts.next().unwrap_or_default().to_owned();
    while let (Some(words), Some(rest)) = (parts.next(), parts.next()) {
        let (one, several) = words.split_once('|').unwrap_or((words, words));
        told += if count == 1 { one } else { several };
        told += rest;
    }
    told
}

/// The text for a cycle of waits: `0 -> 1 -> 2 -> 0`. None without a cycle.
pub(super) fn circle_text(circle: &[u32]) -> Option<String> {
    let first = circle.first()?;
    let arrow = |ranks: &[u32]| {
        let ranks: Vec<String> = ranks.iter().map(u32::to_string).collect();
        ranks.join(" -> ")
    };
    Some(if circle.len() <= CIRCLE_SHOWN {
        format!("{} -> {first}", arrow(circle))
    } else {
        let (head, tail) = (CIRCLE_SHOWN - 4, 2);
        format!(
            "{} -> ... {} more ... -> {} -> {first}",
            arrow(&circle[..head]),
            circle.len() - head - tail,
            arrow(&circle[circle.len() - tail..])
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_code_of_each_verdict_is_documented() {
        let guide = include_str!("../../docs/guide.md");
        let (_, row) = include_str!("../../docs/reference.md")
            .split_once("\n| `diagnose` |")
            .unwrap();
        let row = row.lines().next().unwrap().to_lowercase();
        for step in [
            Step::NoHangSeen,
            Step::Deadlock,
            Step::CannotTell,
            Step::CannotGoOn,
            Step::HeldUp,
        ] {
            let (code, name) = (step.exit_code(), step.word());
            let mut rows = guide
                .lines()
                .filter(|row| row.starts_with(&format!("| `{name}")));
            let cells: Vec<&str> = rows.next().unwrap().split(" | ").collect();
            assert_eq!(cells[1], code.to_string(), "{name}");
            assert!(
                row.contains(&format!(" {code} {}", name.to_lowercase())),
                "{name}: {row}"
            );
        }
    }
}
