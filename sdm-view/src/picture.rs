//! Stacks as a picture: a prefix tree in which the width of a frame is its weight.

use crate::markup::{Escaped, put};

/// The width of the picture. All lengths are in the picture's own units.
pub(crate) const WIDTH: f64 = 1000.0;
/// The height of a frame.
const ROW: f64 = 20.0;
/// Maximum width of a character.
const CHARACTER: f64 = 6.7;
/// The space between text and the border of its frame.
const PADDING: f64 = 4.0;
/// Maximum depth of the picture, in frames.
const DEPTH_MAX: usize = 64;

/// A frame of the picture, with its callees.
pub(crate) struct Part<'a> {
    /// The text, which is cut to the frame's width.
    pub(crate) text: String,
    /// The text of the tooltip.
    pub(crate) title: String,
    /// The function, which determines the colour.
    pub(crate) function: &'a str,
    /// True for a highlighted frame.
    pub(crate) is_odd: bool,
    /// The relative width, at least the sum of its callees' widths.
    pub(crate) weight: f64,
    pub(crate) below: Vec<Part<'a>>,
}

/// Appends the frames to a page. Returns the height of the picture.
pub(crate) fn paint(page: &mut String, parts: &[Part<'_>]) -> f64 {
    let total: f64 = parts.iter().map(|part| part.weight).sum();
    let scale = WIDTH / total;
    Painter { page, scale }.row(parts, (0.0, 0));
    height(parts)
}

/// The height of the picture.
pub(crate) fn height(parts: &[Part<'_>]) -> f64 {
    to_f64(parts.iter().map(depth).max().unwrap_or(0)) * ROW
}

/// The number of rows of a part.
fn depth(part: &Part<'_>) -> usize {
    let below = part.below.iter().map(depth).max().unwrap_or(0);
    (below + 1).min(DEPTH_MAX)
}

fn to_f64(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

struct Painter<'a> {
    page: &'a mut String,
    scale: f64,
}

impl Painter<'_> {
    /// Parts side by side.
    fn row(&mut self, parts: &[Part<'_>], (left, level): (f64, usize)) {
        if level == DEPTH_MAX {
            return;
        }
        let mut left = left;
        for part in parts {
            self.frame(part, (left, level));
            self.row(&part.below, (left, level + 1));
            left += part.weight * self.scale;
        }
    }

    fn frame(&mut self, part: &Part<'_>, (left, level): (f64, usize)) {
        let width = part.weight * self.scale;
        let class = match part.is_odd {
            true => "few".to_owned(),
            false => format!("c{}", colour(part.function)),
        };
        let top = to_f64(level) * ROW;
        put!(
            self.page,
            "<g class=\"{class}\"><title>{}</title><rect x=\"{left:.2}\" y=\"{top}\" \
             width=\"{:.2}\" height=\"{:.0}\"/>",
            Escaped(&part.title),
            (width - 1.0).max(width * 0.5),
            ROW - 1.0,
        );
        if let Some(text) = fitted(&part.text, width - 1.0 - 2.0 * PADDING) {
            put!(
                self.page,
                "<text x=\"{:.2}\" y=\"{}\">{}</text>",
                left + PADDING,
                top + 13.5,
                Escaped(&text),
            );
        }
        self.page.push_str("</g>\n");
    }
}

/// Cuts a text to a width. None if too little would be left.
fn fitted(text: &str, width: f64) -> Option<String> {
    let room = (0_u32..).take_while(|n| f64::from(n + 1) * CHARACTER <= width);
    let room = room.take(4096).count();
    let length = text.chars().count();
    match room {
        _ if length <= room => Some(text.to_owned()),
        0..4 => None,
        _ => Some(text.chars().take(room - 1).chain(['…']).collect()),
    }
}

/// The index of one of eight colours, by function.
fn colour(function: &str) -> u64 {
    let mix = |sum: u64, byte: u8| sum.wrapping_mul(31).wrapping_add(byte.into());
    function.bytes().fold(7, mix) % 8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn picture_text_is_cut_to_its_box_or_omitted() {
        assert_eq!(fitted("main ()", 100.0).as_deref(), Some("main ()"));
        assert_eq!(fitted("exchange_halo ()", 50.0).as_deref(), Some("exchan…"));
        assert_eq!(fitted("exchange_halo ()", 20.0), None);
        assert_eq!(fitted("f", -3.0), None);
    }
}
