//! Comparison of frames as text with the files in `golden/`. `UPDATE_GOLDEN=1` rewrites them.

use ratatui::backend::TestBackend;
use ratatui::{Frame, Terminal};

/// The text of a frame of this size.
pub(crate) fn drawn(draw: impl FnOnce(&mut Frame<'_>), width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(draw).unwrap();
    let buffer = terminal.backend().buffer();
    let line = |y| {
        // The cell behind a wide character is a part of it.
        let covered = |x: u16| x > 0 && sdm_text::columns(buffer[(x - 1, y)].symbol()) == 2;
        let cells = (0..width).filter(|x| !covered(*x));
        let cells = cells.map(|x| buffer[(x, y)].symbol());
        cells.collect::<String>().trim_end().to_owned() + "\n"
    };
    (0..height).map(line).collect()
}

/// Compares the frame, in two sizes, with the files of this name.
pub(crate) fn check(name: &str, mut draw: impl FnMut(&mut Frame<'_>)) {
    for (width, height) in [(80, 24), (200, 60)] {
        let text = drawn(&mut draw, width, height);
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("golden");
        let path = folder.join(format!("{name}_{width}x{height}.txt"));
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(&path, &text).unwrap();
        }
        let kept = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            kept == text,
            "{name} at {width}x{height} is now:\n{text}\nkept:\n{kept}"
        );
    }
}
