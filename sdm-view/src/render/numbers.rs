//! `outliers`, `stats` and `compare` on a screen.

use sdm_debug::rules::{Extreme, Histogram, Number, Stats, Who};
use sdm_idset::IdSet;
use sdm_text::{agree, counted, printable};

use super::page::Page;
use crate::compare::{Comparison, grouped};

/// Maximum number of classes of values that are shown.
const ROWS_MAX: usize = 16;
/// Maximum length of a histogram's bars, in characters.
const BAR_MAX: u64 = 40;

/// The lines of an evaluated expression: its distinct values with their tasks, at most [`ROWS_MAX`], and a line about
/// the other values.
pub(super) fn values(page: &Page<'_>, expression: &str, values: &[(IdSet, String)]) -> Vec<String> {
    let whole: u64 = values.iter().map(|(tasks, _)| tasks.len()).sum();
    let all = IdSet::union_all(values.iter().map(|(tasks, _)| tasks));
    let name = printable(expression.as_bytes());
    let who = page.label(&all);
    if let [(_, value)] = values {
        let text = format!("{name}: {} on {who}", printable(value.as_bytes()));
        return vec![page.style.wrap(&text, 4)];
    }
    let mut lines = vec![match values.len() {
        count if count as u64 == whole => {
            format!("{name}: {count} distinct values, all different on {who}")
        }
        count => format!("{name}: {count} distinct values on {who}"),
    }];
    let bigger = values.first().is_some_and(|(tasks, _)| tasks.len() > 1);
    let shown = values.len().min(ROWS_MAX);
    for (tasks, value) in &values[..shown] {
        let mark = if bigger {
            page.few(tasks.len(), whole)
        } else {
            String::new()
        };
        let line = page.said(tasks, &printable(value.as_bytes()), false);
        lines.push(format!("  {line}{mark}"));
    }
    if let rest @ [_, ..] = &values[shown..] {
        let tasks = IdSet::union_all(rest.iter().map(|(tasks, _)| tasks));
        let alone = rest.iter().filter(|(tasks, _)| tasks.len() == 1).count();
        let text = format!(
            "{}, {alone} on a single rank",
            counted(rest.len(), "more value")
        );
        lines.push(format!("  {}", page.said(&tasks, &text, false)));
    }
    lines
}

/// One line for each distinct value: `1: step = 41`. At most [`ROWS_MAX`], and a line about the other values.
pub(super) fn display(
    page: &Page<'_>,
    number: u32,
    expression: &str,
    values: &[(IdSet, String)],
) -> Vec<String> {
    let name = printable(expression.as_bytes());
    let shown = values.len().min(ROWS_MAX);
    let whole: u64 = values.iter().map(|(tasks, _)| tasks.len()).sum();
    let line = |(tasks, value): &(IdSet, String)| {
        let text = format!("{number}: {name} = {}", printable(value.as_bytes()));
        let mark = match values {
            [(first, _), _, ..] if first.len() > 1 => page.few(tasks.len(), whole),
            _ => String::new(),
        };
        format!("{}{mark}", page.said(tasks, &text, false))
    };
    let mut lines: Vec<_> = values[..shown].iter().map(line).collect();
    if let rest @ [_, ..] = &values[shown..] {
        let tasks = IdSet::union_all(rest.iter().map(|(tasks, _)| tasks));
        let text = format!("{number}: {name} has {}", counted(rest.len(), "more value"));
        lines.push(page.said(&tasks, &text, false));
    }
    lines
}

/// The text of statistics.
pub(super) fn stats(
    page: &Page<'_>,
    expression: &str,
    tasks: &IdSet,
    stats: &Stats,
) -> Vec<String> {
    let name = printable(expression.as_bytes());
    let mut lines = vec![match stats.count > tasks.len() {
        true => format!("{name}: {} numbers on {}", stats.count, page.label(tasks)),
        false => format!("{name}: {}", counted(stats.count, "rank")),
    }];
    let mut row = |label: &str, text: String| lines.push(format!("  {label:<7} {text}"));
    if let Some(min) = &stats.min {
        row("min", extreme(page, min));
    }
    if let Some(max) = &stats.max {
        row("max", extreme(page, max));
    }
    if stats.count > 0 {
        row("mean", short(stats.mean));
        if let Some(variance) = stats.variance() {
            row("stddev", short(variance.max(0.0).sqrt()));
        }
        row("sum", sum(stats));
    }
    for (label, who) in [
        ("nan", &stats.not_a_number),
        ("inf", &stats.infinite_up),
        ("-inf", &stats.infinite_down),
    ] {
        if who.count > 0 {
            row(label, format!("on {}", named(page, who)));
        }
    }
    if let Some(histogram) = &stats.histogram {
        lines.extend(bars(histogram));
    }
    lines
}

fn sum(stats: &Stats) -> String {
    if stats.float_sum == 0.0 {
        return stats.int_sum.to_string();
    }
    short(stats.sum())
}

fn extreme(page: &Page<'_>, extreme: &Extreme) -> String {
    let value = match extreme.value {
        Number::Int(int) => int.to_string(),
        Number::Float(float) => short(float),
    };
    format!("{value} on {}", named(page, &extreme.who))
}

fn named(page: &Page<'_>, who: &Who) -> String {
    match &who.tasks {
        Some(tasks) => page.label(tasks),
        None => format!("{} ranks", who.count),
    }
}

fn bars(histogram: &Histogram) -> Vec<String> {
    let most = histogram.counts.iter().copied().max().unwrap_or(0).max(1);
    let edges: Vec<_> = (0..=histogram.bins.count)
        .map(|index| short(histogram.bins.edge(index)))
        .collect();
    let width = edges.iter().map(String::len).max().unwrap_or(0);
    let count_width = most.to_string().len();
    let rows = histogram.counts.iter().enumerate().map(|(index, count)| {
        let length = count.saturating_mul(BAR_MAX).div_ceil(most);
        let bar = "#".repeat(usize::try_from(length).unwrap_or(0));
        let (low, high) = (&edges[index], &edges[index + 1]);
        format!("  {low:>width$} .. {high:>width$} {count:>count_width$} {bar}")
            .trim_end()
            .to_owned()
    });
    rows.collect()
}

/// The text of a number, with at most five digits behind the point and six significant ones. From 100,000 up to 1e9 it
/// is a whole number with all its digits.
pub(super) fn short(value: f64) -> String {
    let size = value.abs();
    if value == 0.0 {
        return "0".to_owned();
    }
    if !(1e-4..1e9).contains(&size) {
        return format!("{value:.5e}");
    }
    // One digit less behind the point for each before it.
    let digits = [10.0, 1e2, 1e3, 1e4, 1e5]
        .iter()
        .filter(|bound| size < **bound);
    let text = format!("{value:.*}", digits.count());
    if !text.contains('.') {
        return text;
    }
    let text = text.trim_end_matches('0').trim_end_matches('.');
    text.to_owned()
}

/// The text of a [`Comparison`].
pub(super) fn comparison(page: &Page<'_>, found: &Comparison) -> Vec<String> {
    let name = printable(found.expression.as_bytes());
    let who = page.label(&found.reference);
    if found.others.is_empty() {
        let cut = if found.cut {
            " (only the printed part was compared)"
        } else {
            ""
        };
        return vec![format!("{name}: the same on {who}{cut}")];
    }
    let whole = found.reference.len()
        + found
            .others
            .iter()
            .map(|other| other.tasks.len())
            .sum::<u64>();
    let value = shortened(&found.value);
    let mut lines = vec![page.style.wrap(&format!("{name}: {value} on {who}"), 4)];
    let (shown, rest) = found.others.split_at(found.others.len().min(ROWS_MAX));
    for other in shown {
        let (own, reference) = apart(other.value.as_deref(), other.reference.as_deref());
        let text = match (other.of, other.path.as_str()) {
            // The values have the same beginning.
            (_, "") if own.starts_with("...") => format!("{own}, not {reference}"),
            (_, "") => own,
            (all, path) => format!(
                "{} of {all} elements {}, first {}{path}: {own}, not {reference}",
                other.count,
                agree(other.count, "differs", "differ"),
                grouped(&name),
            ),
        };
        let mark = page.few(other.tasks.len(), whole);
        lines.push(format!("  {}{mark}", page.said(&other.tasks, &text, false)));
    }
    if !rest.is_empty() {
        let tasks = IdSet::union_all(rest.iter().map(|other| &other.tasks));
        let text = format!(
            "{}, different from the reference",
            counted(rest.len(), "more value")
        );
        lines.push(format!("  {}", page.said(&tasks, &text, false)));
    }
    if found.cut {
        lines.push(
            "  (truncated: `gdb set print elements 0` and `gdb set max-value-size 100000000` show more)"
                .to_owned(),
        );
    }
    lines
}

/// Maximum number of characters that are shown of a compared value.
const SHOWN_MAX: usize = 120;
/// Number of equal characters that are shown before the first difference of long values.
const EQUAL_SHOWN: usize = 20;

/// The texts of two values that differ. If the shown beginnings are equal, each text begins shortly before the first
/// difference.
fn apart(own: Option<&str>, reference: Option<&str>) -> (String, String) {
    let or_none = |text: Option<&str>| text.map_or("none".to_owned(), shortened);
    let shown = (or_none(own), or_none(reference));
    let (Some(own), Some(reference)) = (own, reference) else {
        return shown;
    };
    if shown.0 != shown.1 || own == reference {
        return shown;
    }
    let [own, reference] = [own, reference].map(|text| printable(text.as_bytes()));
    let pairs = own.chars().zip(reference.chars());
    let equal = pairs.take_while(|(a, b)| a == b).count();
    let begin = equal.saturating_sub(EQUAL_SHOWN);
    let from = |text: &str| {
        let rest: String = text.chars().skip(begin).collect();
        format!("...{}", shortened(&rest))
    };
    (from(&own), from(&reference))
}

fn shortened(text: &str) -> String {
    let text = printable(text.as_bytes());
    if text.chars().count() <= SHOWN_MAX {
        return text;
    }
    let cut: String = text.chars().take(SHOWN_MAX).collect();
    format!("{cut}...")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_values_are_shown_from_their_difference() {
        let long = |last: &str| format!("{}{last}", "abcdefghij".repeat(30));
        let shown = |own: &str, reference: &str| apart(Some(own), Some(reference));
        let equal = "abcdefghij".repeat(2);
        assert_eq!(
            shown(&long("1x"), &long("0x")),
            (format!("...{equal}1x"), format!("...{equal}0x"))
        );
        assert_eq!(shown("1", "0"), ("1".to_owned(), "0".to_owned()));
        assert_eq!(apart(None, Some("0")).0, "none");
        let (own, _) = shown(&format!("1{}", long("")), &long(""));
        assert!(own.starts_with("1abc") && own.ends_with("..."), "{own}");
    }

    #[test]
    fn statistics_are_shown_in_short_form() {
        for (value, expect) in [
            (0.0, "0"),
            (59.875, "59.875"),
            (1.0 / 3.0, "0.33333"),
            (123_456.789, "123457"),
            (1e12, "1.00000e12"),
            (-2.5, "-2.5"),
            (0.000_01, "1.00000e-5"),
            (100.0, "100"),
        ] {
            assert_eq!(short(value), expect);
        }
    }
}
