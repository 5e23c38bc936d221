//! State of a session for a full-screen view: the tasks, breakpoints, stacks, source and variables.
//!
//! A view that wants an [`Overview`] ([`crate::View::wants_board`]) is given one after each change. A new [`Sight`]
//! follows each stop and each command; its queries are sent while no other command waits.

use std::sync::Arc;

use sdm_debug::Reply;
use sdm_debug::event::Stream;
use sdm_debug::reply::{Frame, Variable};
use sdm_debug::rules::{Parsed, parse_number};
use sdm_idset::IdSet;

use crate::item::{BreakRow, Gathered, MergedStacks, RankRow};
use crate::render::value_text;

/// State of a session for a full-screen view.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Overview {
    /// The text of the prompt.
    pub prompt: String,
    /// All tasks of the session.
    pub all: IdSet,
    /// The target set of lines without a set.
    pub focus: IdSet,
    /// Tasks that run at present.
    pub running: IdSet,
    /// The states and positions of the tasks: for each program in turn, largest group first.
    pub ranks: Vec<RankRow>,
    /// The breakpoints, watchpoints and catchpoints.
    pub breakpoints: Vec<BreakRow>,
    /// The result of the queries after the last stop.
    pub sight: Arc<Sight>,
    /// True if tasks have moved since the queries of `sight`.
    pub is_stale: bool,
}

/// The result of the queries at a stop.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sight {
    /// The stacks of all stopped tasks; None if there are none.
    pub stacks: Option<MergedStacks>,
    /// The source around the position of most tasks in focus; None if there is none.
    pub source: Option<SourceSight>,
    /// The selected frames of the tasks in focus, without arguments, most tasks first.
    pub frames: Vec<(IdSet, Frame)>,
    /// The arguments and local variables of the selected frames, in their order.
    pub locals: Vec<Named>,
    /// The expressions of `display`.
    pub watched: Vec<Named>,
    /// Reason why a query failed; empty if none did.
    pub missing: String,
}

/// A source file with the current line.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SourceSight {
    /// The full path of the file.
    pub path: String,
    /// The number of the first line.
    pub first: u32,
    /// The lines of the file, or some around the current line.
    pub lines: Arc<Vec<String>>,
    /// The line of the selected frame.
    pub line: u32,
    /// The function of the frame.
    pub function: String,
    /// True if this is a caller's frame: the frames further in have no source.
    pub is_caller: bool,
    /// The tasks in this frame.
    pub tasks: IdSet,
}

/// A name or an expression with its values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Named {
    /// The name as in the source, or the expression as entered.
    pub name: String,
    /// The distinct values, in descending order of their numbers of tasks.
    pub values: Vec<(IdSet, String)>,
}

/// A line that programs have printed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Printed {
    /// The tasks that printed the line.
    pub tasks: IdSet,
    /// The stream that it was printed on.
    pub stream: Stream,
    /// The line, without its newline.
    pub line: Vec<u8>,
}

impl Named {
    /// The values of an expression, from the answers of the tasks.
    #[must_use]
    pub fn of_values(name: String, gathered: &Gathered) -> Self {
        let mut named = Self {
            name,
            values: Vec::new(),
        };
        for (tasks, reply) in &gathered.ok {
            match reply {
                Reply::Value(value) => named.add(tasks, value_text(value)),
                Reply::Text(text) => named.add(tasks, text.trim_end().to_owned()),
                _ => {}
            }
        }
        for (tasks, failure) in &gathered.failed {
            named.add(tasks, format!("<{}>", failure.text));
        }
        named.sort();
        named
    }

    /// The variables in the answers to a query, each once.
    #[must_use]
    pub fn of_variables(gathered: &Gathered) -> Vec<Self> {
        let mut all: Vec<Self> = Vec::new();
        for (tasks, reply) in &gathered.ok {
            let Reply::Variables(variables) = reply else {
                continue;
            };
            let mut seen: Vec<&str> = Vec::new();
            for Variable { name, value } in variables {
                // An inner block's variable hides those of the same name around it.
                if seen.contains(&name.as_str()) {
                    continue;
                }
                seen.push(name);
                let at = all.iter().position(|named| named.name == *name);
                let at = at.unwrap_or_else(|| {
                    all.push(Self {
                        name: name.clone(),
                        values: Vec::new(),
                    });
                    all.len() - 1
                });
                all[at].add(tasks, value_text(value));
            }
        }
        all.iter_mut().for_each(Self::sort);
        all
    }

    /// The arguments and then the local variables, each name once. A name can be an argument in one
    /// function and a variable in another. A local variable hides an argument of the same name.
    #[must_use]
    pub fn of_frames(arguments: &Gathered, locals: &Gathered) -> Vec<Self> {
        let mut locals = Self::of_variables(locals);
        let mut all = Self::of_variables(arguments);
        for argument in &mut all {
            let same = locals.iter().position(|local| local.name == argument.name);
            let Some(local) = same.map(|at| locals.remove(at)) else {
                continue;
            };
            let hidden = IdSet::union_all(local.values.iter().map(|(tasks, _)| tasks));
            for (tasks, _) in &mut argument.values {
                tasks.subtract(&hidden);
            }
            argument.values.retain(|(tasks, _)| !tasks.is_empty());
            for (tasks, value) in &local.values {
                argument.add(tasks, value.clone());
            }
            argument.sort();
        }
        all.extend(locals);
        all
    }

    fn add(&mut self, tasks: &IdSet, value: String) {
        match self.values.iter_mut().find(|(_, known)| *known == value) {
            Some((known, _)) => known.union_with(tasks),
            None => self.values.push((tasks.clone(), value)),
        }
    }

    fn sort(&mut self) {
        self.values
            .sort_by(|(a, _), (b, _)| b.len().cmp(&a.len()).then(a.first().cmp(&b.first())));
    }

    /// Tasks with an infinite value or NaN, where other tasks have a finite one.
    #[must_use]
    pub fn not_finite(&self) -> IdSet {
        let odd = self.values.iter().filter(|(_, text)| is_not_finite(text));
        let odd = IdSet::union_all(odd.map(|(tasks, _)| tasks));
        match self.values.iter().all(|(_, text)| is_not_finite(text)) {
            true => IdSet::new(),
            false => odd,
        }
    }

    /// The finite values as numbers, with the number of tasks of each. None if a value is not a number, or if
    /// fewer than two distinct values are finite.
    #[must_use]
    pub fn numbers(&self) -> Option<Vec<(f64, u64)>> {
        let number = |(tasks, text): &(IdSet, String)| {
            let value: f64 = text.parse().ok()?;
            value.is_finite().then_some((value, tasks.len()))
        };
        let finite = self.values.iter().filter(|(_, text)| !is_not_finite(text));
        let numbers: Option<Vec<_>> = finite.map(number).collect();
        numbers.filter(|numbers| numbers.len() > 1)
    }

    /// Returns the number of tasks in each of `parts` equal intervals, and the smallest and largest value. None in the
    /// cases of [`Named::numbers`].
    #[must_use]
    pub fn histogram(&self, parts: usize) -> Option<(Vec<u64>, f64, f64)> {
        let numbers = self.numbers()?;
        let low = numbers
            .iter()
            .map(|(value, _)| *value)
            .fold(f64::INFINITY, f64::min);
        let high = numbers
            .iter()
            .map(|(value, _)| *value)
            .fold(f64::NEG_INFINITY, f64::max);
        let mut counts = vec![0_u64; parts.max(1)];
        let last = counts.len() - 1;
        for (value, count) in numbers {
            // Halves, as the range itself may be too large for a number.
            let share = (value / 2.0 - low / 2.0) / (high / 2.0 - low / 2.0);
            let scaled = share * (last as f64 + 1.0);
            let at = (0..last).rev().find(|at| scaled >= *at as f64 + 1.0);
            counts[at.map_or(0, |at| at + 1)] += count;
        }
        Some((counts, low, high))
    }
}

fn is_not_finite(text: &str) -> bool {
    let number = parse_number(text);
    number.is_some_and(|number| !matches!(number, Parsed::Finite(_)))
}

#[cfg(test)]
mod tests {
    use sdm_debug::reply::Value;

    use super::*;

    fn set(text: &str) -> IdSet {
        text.parse().unwrap()
    }

    fn value(text: &str) -> Value {
        Value {
            text: text.to_owned(),
            cut: None,
        }
    }

    fn variables(all: &[(&str, &str)]) -> Reply {
        let variable = |(name, text): &(&str, &str)| Variable {
            name: (*name).to_owned(),
            value: value(text),
        };
        Reply::Variables(all.iter().map(variable).collect())
    }

    #[test]
    fn variables_of_all_tasks_merge_by_name() {
        let gathered = Gathered {
            ok: vec![
                (set("3"), variables(&[("i", "7"), ("n", "9"), ("i", "1")])),
                (set("0-2"), variables(&[("i", "7"), ("n", "8")])),
            ],
            ..Gathered::default()
        };
        let all = Named::of_variables(&gathered);
        let text = all.iter().map(|it| {
            let values = it
                .values
                .iter()
                .map(|(tasks, value)| format!("{tasks}={value}"));
            format!("{}: {}", it.name, values.collect::<Vec<_>>().join(" "))
        });
        assert_eq!(text.collect::<Vec<_>>(), ["i: 0-3=7", "n: 0-2=8 3=9"]);
    }

    #[test]
    fn arguments_and_locals_of_a_name_merge() {
        let of = |ok: Vec<(IdSet, Reply)>| Gathered {
            ok,
            ..Gathered::default()
        };
        let arguments = of(vec![
            (set("1"), variables(&[("rank", "1"), ("size", "4")])),
            (set("2"), variables(&[("rank", "7")])),
        ]);
        let locals = of(vec![
            (set("0,3"), variables(&[("bad", "1"), ("rank", "0")])),
            (set("2"), variables(&[("rank", "2")])),
        ]);
        let all = Named::of_frames(&arguments, &locals);
        let names: Vec<&str> = all.iter().map(|it| &*it.name).collect();
        assert_eq!(names, ["rank", "size", "bad"]);
        let rank = [("0,3", "0"), ("1", "1"), ("2", "2")];
        let rank = rank.map(|(tasks, value)| (set(tasks), value.to_owned()));
        assert_eq!(all[0].values, rank);
    }

    #[test]
    fn histogram_has_equal_bins() {
        let named = |values: &[(&str, &str)]| Named {
            name: "x".to_owned(),
            values: values
                .iter()
                .map(|(tasks, value)| (set(tasks), (*value).to_owned()))
                .collect(),
        };
        let it = named(&[("0-5", "0"), ("6", "5"), ("7-8", "10")]);
        assert_eq!(it.histogram(4), Some((vec![6, 0, 1, 2], 0.0, 10.0)));
        assert_eq!(it.histogram(0), Some((vec![9], 0.0, 10.0)));
        let wide = named(&[("0", "-1.7e308"), ("1", "1.7e308")]);
        assert_eq!(wide.histogram(2).unwrap().0, [1, 1]);
        assert_eq!(named(&[("0", "1"), ("1", "x")]).histogram(4), None);
        let nan = "-nan(0x8000000000000)";
        let some = named(&[("0-1", "1"), ("2", nan), ("3", "2"), ("4", "inf")]);
        assert_eq!(some.histogram(2), Some((vec![2, 1], 1.0, 2.0)));
        assert_eq!(some.not_finite(), set("2,4"));
        assert!(named(&[("0-1", nan)]).not_finite().is_empty());
        assert!(named(&[("0", "nancy"), ("1", "1")]).not_finite().is_empty());
        assert_eq!(named(&[("0-9", "1")]).histogram(4), None);
    }
}
