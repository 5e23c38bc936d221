//! The pictures of the guide: frames as SVG, kept in `docs/pictures`. `scripts/pictures` generates them;
//! otherwise a test compares them with the frames.

use std::fmt::Write;

use ratatui::backend::TestBackend;
use ratatui::buffer::Cell;
use ratatui::style::{Color, Modifier};
use ratatui::{Frame, Terminal};

use crate::{Palette, Style};

const CELL: (u16, u16) = (8, 17);
const SHADE: &str = "#1c1c1c";
const INK: &str = "#d8d8d8";

/// Colours as in the guide.
pub(crate) const COLOURED: Style = Style {
    color: true,
    ascii: false,
    palette: Palette::Blind,
    linear: false,
};

fn ink(color: Color) -> String {
    let Color::Indexed(number @ 16..) = color else {
        return INK.to_owned();
    };
    let level = |at: u8| [0, 95, 135, 175, 215, 255][usize::from(at)];
    let [r, g, b] = match number {
        232.. => [8 + 10 * (number - 232); 3],
        _ => [(number - 16) / 36, (number - 16) / 6 % 6, (number - 16) % 6].map(level),
    };
    format!("#{r:02x}{g:02x}{b:02x}")
}

fn escaped(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    text.replace('>', "&gt;")
}

/// Draws a run of cells with equal attributes.
fn run(svg: &mut String, x: u16, y: u16, text: &str, cell: &Cell) {
    let (across, down) = CELL;
    let (left, top) = (x * across, y * down);
    let width = u16::try_from(sdm_text::columns(text)).unwrap() * across;
    let mut color = ink(cell.fg);
    if cell.modifier.contains(Modifier::REVERSED) {
        let place = format!("x=\"{left}\" y=\"{top}\" width=\"{width}\" height=\"{down}\"");
        writeln!(svg, "<rect {place} fill=\"{color}\"/>").unwrap();
        SHADE.clone_into(&mut color);
    }
    if text.trim().is_empty() {
        return;
    }
    let mut more = String::new();
    for (modifier, attribute) in [
        (Modifier::BOLD, " font-weight=\"bold\""),
        (Modifier::DIM, " opacity=\"0.6\""),
        (Modifier::UNDERLINED, " text-decoration=\"underline\""),
    ] {
        if cell.modifier.contains(modifier) {
            more.push_str(attribute);
        }
    }
    // Browsers collapse blanks even with `xml:space`, but not non-breaking ones.
    let text = escaped(text).replace(' ', "\u{a0}");
    let base = top + down - 4;
    writeln!(
        svg,
        "<text x=\"{left}\" y=\"{base}\" textLength=\"{width}\" fill=\"{color}\"{more}>{text}</text>"
    )
    .unwrap();
}

/// A frame of this size as SVG.
fn svg(draw: impl FnOnce(&mut Frame<'_>), width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(draw).unwrap();
    let buffer = terminal.backend().buffer();
    let (across, down) = (width * CELL.0, height * CELL.1);
    // At this size DejaVu's letters are as wide as a cell, for renderers that ignore `textLength`.
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {across} {down}\" \
         font-family=\"DejaVu Sans Mono, monospace\" font-size=\"13.288\">\n\
         <rect width=\"{across}\" height=\"{down}\" fill=\"{SHADE}\"/>\n"
    );
    for y in 0..height {
        let (mut from, mut text) = (0, String::new());
        let mut x = 0;
        while x < width {
            let (first, cell) = (&buffer[(from, y)], &buffer[(x, y)]);
            let is_alike = (first.fg, first.modifier) == (cell.fg, cell.modifier);
            if !is_alike {
                run(&mut svg, from, y, &text, first);
                (from, text) = (x, String::new());
            }
            text.push_str(cell.symbol());
            x += u16::try_from(sdm_text::columns(cell.symbol()).max(1)).unwrap();
        }
        run(&mut svg, from, y, &text, &buffer[(from, y)]);
    }
    svg + "</svg>\n"
}

/// Compares the frame with the picture of this name.
pub(crate) fn check(name: &str, draw: impl FnOnce(&mut Frame<'_>)) {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/pictures");
    let path = folder.join(format!("{name}.svg"));
    let text = svg(draw, 100, 30);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(&path, &text).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(kept == text, "{name}: scripts/pictures makes it anew");
}
