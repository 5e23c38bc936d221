//! The values of variables and expressions, with the tasks that differ.

use sdm_idset::IdSet;
use sdm_text::{counted, printable};
use sdm_view::overview::{Named, Sight};
use sdm_view::render::Names;

use crate::style::{Style, Tone};

/// Maximum length of a set's text before a value, in bytes.
const SET_WIDTH: usize = 20;
/// Maximum number of distinct values that are shown per name.
const VALUES_SHOWN_MAX: usize = 12;
/// Characters for the height of a histogram's bin.
const BARS: [&str; 9] = [
    " ", "\u{2581}", "\u{2582}", "\u{2583}", "\u{2584}", "\u{2585}", "\u{2586}", "\u{2587}",
    "\u{2588}",
];
/// The bars in ASCII.
const ASCII_BARS: [&str; 9] = [" ", ".", ".", ":", ":", "|", "|", "#", "#"];

/// A line of the panel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ValueRow {
    /// Index of the name that the line belongs to.
    pub(crate) of: usize,
    pub(crate) text: String,
    pub(crate) tone: Option<Tone>,
}

/// All names with values: the displayed expressions, then the local variables.
pub(crate) fn named(sight: &Sight) -> impl Iterator<Item = &Named> {
    sight.watched.iter().chain(&sight.locals)
}

/// The lines for all names.
pub(crate) fn rows(sight: &Sight, names: &Names, style: Style, parts: usize) -> Vec<ValueRow> {
    let mut rows = Vec::new();
    for (of, it) in named(sight).enumerate() {
        let name = printable(it.name.as_bytes());
        let mut say = |text: String, tone| rows.push(ValueRow { of, text, tone });
        match &it.values[..] {
            [] => say(
                format!("{name}: no value in the selected frame"),
                Some(Tone::Off),
            ),
            [(_, value)] => say(format!("{name} = {}", line_of(value)), None),
            [(most, _), ..] => {
                let most = most.len();
                let spread = histogram(it, style, parts).unwrap_or_default();
                let odd = it.not_finite();
                let count = match odd.len() {
                    0 => String::new(),
                    odd => format!(", {odd} not finite"),
                };
                let values = it.values.len();
                say(format!("{name}: {values} values{count}{spread}"), None);
                let is_odd = |(tasks, _): &&(IdSet, String)| tasks.is_subset(&odd);
                let (first, rest) = (it.values.iter(), it.values.iter());
                let all = first.filter(is_odd).chain(rest.filter(|it| !is_odd(it)));
                for (tasks, value) in all.take(VALUES_SHOWN_MAX) {
                    let who = printable(names.label(tasks, SET_WIDTH).as_bytes());
                    // Values of a minority, and values that are not numbers, are marked.
                    let differs = tasks.len() < most || tasks.is_subset(&odd);
                    let sign = if differs { '*' } else { ' ' };
                    let tone = differs.then_some(Tone::Wait);
                    say(format!(" {sign}{who}: {}", line_of(value)), tone);
                }
                if it.values.len() > VALUES_SHOWN_MAX {
                    let more = it.values.len() - VALUES_SHOWN_MAX;
                    say(
                        format!("  and {}", counted(more, "more value")),
                        Some(Tone::Off),
                    );
                }
            }
        }
    }
    rows
}

/// A value on one line.
fn line_of(value: &str) -> String {
    let words: Vec<&str> = value.split_whitespace().collect();
    printable(words.join(" ").as_bytes())
}

/// A small histogram of numbers, from the smallest to the largest. None for values that are not numbers.
fn histogram(named: &Named, style: Style, parts: usize) -> Option<String> {
    let (counts, low, high) = named.histogram(parts)?;
    if style.linear {
        return Some(format!(", from {low} to {high}"));
    }
    let most = counts.iter().copied().max().unwrap_or(0).max(1);
    let bars = if style.ascii { ASCII_BARS } else { BARS };
    let bar = |count: &u64| {
        let eighths = (count * 8).div_ceil(most);
        bars[usize::try_from(eighths).unwrap_or(8).min(8)]
    };
    let bars: String = counts.iter().map(bar).collect();
    Some(format!(", {low} [{bars}] {high}"))
}
