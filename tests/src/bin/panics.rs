//! Opens the terminal as a screen, and panics; a test checks the state of the terminal afterwards.

use sdm_screen::{Style, Terminal, Top};

fn main() {
    let terminal = Terminal::take("", true);
    let mut terminal = terminal.expect("the test gives it a terminal");
    let mut top = Top::new(Style::default(), 0);
    let drawn = terminal.draw(|frame| top.draw(frame));
    drawn.expect("it is there");
    let word = std::env::args().nth(1);
    let _word = word.expect("as a defect would be");
}
