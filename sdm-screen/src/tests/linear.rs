//! Tests of the linear style for screen readers.

use ratatui::Terminal;
use ratatui::backend::TestBackend;

use super::{NOW, facts, frame, keys};
use crate::{Style, Top};

const LINEAR: Style = Style {
    linear: true,
    ..super::PLAIN
};

fn linear() -> Top {
    let mut top = Top::new(LINEAR, NOW);
    top.handle_facts(facts());
    top
}

#[test]
fn linear_style_shows_one_part_as_text_lines() {
    for (name, typed) in [
        ("linear_managers", "1"),
        ("linear_machines", "2"),
        ("linear_nodes", "2\t"),
        ("linear_jobs", "3"),
        ("linear_processes", "3↓↓\t"),
        ("linear_process", "3↓↓\t\n"),
        ("linear_menu", "↓↓\n"),
        ("linear_submit", "n./app"),
    ] {
        let mut top = linear();
        keys(&mut top, typed);
        super::check(name, &mut top);
        let text = frame(&mut top, 80, 24);
        let drawn = |c: char| ('\u{2500}'..'\u{25ff}').contains(&c);
        assert!(!text.contains(drawn), "{text}");
    }
}

/// The cursor is on the selected line, which is the one that screen readers read.
#[test]
fn cursor_is_at_the_selection() {
    for (typed, wanted) in [
        ("1↓", "here"),
        ("3↓↓", "RUNNING"),
        ("3↓↓\t↓", "100-199"),
        ("↓↓\n↓", "diagnose"),
        ("n\t", "cluster"),
    ] {
        let mut top = linear();
        keys(&mut top, typed);
        let mut terminal = Terminal::new(TestBackend::new(80, 24)).unwrap();
        terminal.draw(|frame| top.draw(frame)).unwrap();
        let at = terminal.backend().cursor_position();
        let text = frame(&mut top, 80, 24);
        let line = text.lines().nth(at.y.into()).unwrap();
        assert!(line.contains(wanted), "{line} of\n{text}");
    }
}

#[test]
fn linear_style_is_redrawn_only_each_minute() {
    let mut top = linear();
    assert!(top.take_changed());
    top.handle_time(NOW + 30);
    assert!(!top.take_changed());
    top.handle_time(NOW + 60);
    assert!(top.take_changed());
}
