//! `plot`: numbers as lines of characters with a common scale.

use sdm_idset::IdSet;
use sdm_text::{columns, counted, printable};

use super::numbers::short;
use super::page::Page;
use crate::item::Plot;

/// The characters from the smallest to the largest number.
const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// Width of a plot if that of the screen is unknown, in columns.
const WIDTH: usize = 80;
/// Minimum width of a plotted line, in columns, even beside a long name.
const WIDTH_MIN: usize = 16;
/// Maximum number of lines of a plot.
const LINES_MAX: usize = 12;

/// The lines of a plot, and the values of its lowest and highest characters.
pub(super) fn lines(page: &Page<'_>, plot: &Plot) -> Vec<String> {
    let name = printable(plot.expression.as_bytes());
    let numbers = || plot.lines.iter().flat_map(|(_, numbers)| numbers);
    let finite = || numbers().map(|it| it.to_f64()).filter(|it| it.is_finite());
    let low = finite().fold(f64::INFINITY, f64::min);
    let high = finite().fold(f64::NEG_INFINITY, f64::max);
    let count = plot.lines.iter().map(|(_, numbers)| numbers.len()).max();
    let what = match (plot.over_ranks, count.unwrap_or(0)) {
        (true, 1) => "1 rank".to_owned(),
        (true, count) => format!("{count} ranks"),
        (false, count) => format!("{count} elements"),
    };
    let mut lines = vec![match low <= high {
        true => format!("{name}: {what}, from {} to {}", short(low), short(high)),
        false => format!("{name}: {what}, no finite number"),
    }];
    let (shown, rest) = plot.lines.split_at(plot.lines.len().min(LINES_MAX));
    for (tasks, numbers) in shown {
        let label = page.label(tasks);
        let width = page.style.width.unwrap_or(WIDTH);
        let room = width.saturating_sub(columns(&label) + "  : ".len());
        let numbers: Vec<f64> = numbers.iter().map(|it| it.to_f64()).collect();
        let line = line(&numbers, (low, high), room.max(WIDTH_MIN));
        lines.push(format!("  {}: {line}", page.style.label(&label)));
    }
    if !rest.is_empty() {
        let tasks = IdSet::union_all(rest.iter().map(|(tasks, _)| tasks));
        let text = format!("{}, not drawn", counted(rest.len(), "more line"));
        lines.push(format!("  {}", page.said(&tasks, &text, false)));
    }
    lines
}

/// A character per number, or per mean of several if they do not fit. Infinite numbers and NaN are left out of a mean;
/// a character for nothing else is a blank.
fn line(numbers: &[f64], (low, high): (f64, f64), room: usize) -> String {
    let each = numbers.len().div_ceil(room).max(1);
    let mean = |part: &[f64]| {
        let finite: Vec<f64> = part.iter().copied().filter(|it| it.is_finite()).collect();
        let count = u32::try_from(finite.len()).unwrap_or(u32::MAX);
        // Divided before they are added, their sum is no more than the largest of them.
        (count > 0).then(|| finite.iter().map(|it| it / f64::from(count)).sum::<f64>())
    };
    let level = |number: f64| {
        let share = (number / 2.0 - low / 2.0) / (high / 2.0 - low / 2.0);
        level_of(share)
    };
    numbers
        .chunks(each)
        .map(|part| mean(part).map_or(' ', level))
        .collect()
}

/// The character for a number, given as its position between the smallest (0) and the largest (1). The
/// lowest one if both are equal.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn level_of(share: f64) -> char {
    // The cast saturates, and converts NaN to 0.
    let level = (share * 8.0) as usize;
    LEVELS[level.min(LEVELS.len() - 1)]
}

#[cfg(test)]
mod tests {
    use sdm_debug::rules::{Number, Parsed};

    use super::*;
    use crate::render::label::Names;
    use crate::render::style::Style;

    fn int(value: i128) -> Parsed {
        Parsed::Finite(Number::Int(value))
    }

    #[test]
    fn numbers_are_plotted_on_one_scale() {
        let plot = Plot {
            expression: "cell[0:7]".to_owned(),
            over_ranks: false,
            row: None,
            bounds: None,
            lines: vec![
                ("0-2".parse().unwrap(), (0..8).map(int).collect()),
                (
                    "3".parse().unwrap(),
                    vec![int(7), Parsed::NotANumber, int(0)],
                ),
            ],
        };
        let page = Page {
            names: &Names::ranks(),
            style: Style::PLAIN,
        };
        let expect = [
            "cell[0:7]: 8 elements, from 0 to 7",
            "  ranks 0-2 (3): ▁▂▃▄▅▆▇█",
            "  rank 3: █ ▁",
        ];
        assert_eq!(lines(&page, &plot), expect);
    }

    #[test]
    fn long_and_constant_plots_fit_the_width() {
        let many: Vec<f64> = (0..1000).map(f64::from).collect();
        let drawn = line(&many, (0.0, 999.0), 16);
        assert!(drawn.chars().count() <= 16 && drawn.starts_with('▁') && drawn.ends_with('█'));
        assert_eq!(line(&[5.0, 5.0], (5.0, 5.0), 16), "▁▁");
        assert_eq!(
            line(&[-f64::MAX, f64::MAX], (-f64::MAX, f64::MAX), 16),
            "▁█"
        );
        let none = (f64::INFINITY, f64::NEG_INFINITY);
        assert_eq!(line(&[f64::NAN], none, 16), " ");
    }
}
