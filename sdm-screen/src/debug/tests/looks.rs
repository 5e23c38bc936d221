//! Tests of the debugger's screen: mouse, key bindings, and the linear style for screen readers.

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyModifiers, MouseButton, MouseEvent, MouseEventKind};

use super::{PLAIN, board, debugger, keys, line, set};
use crate::debug::{Debugger, Panel, ScreenAction};
use crate::{Bindings, Palette, Style, snapshot};

const LINEAR: Style = Style {
    linear: true,
    ..PLAIN
};

fn used(debugger: &mut Debugger, kind: MouseEventKind, column: u16, row: u16) -> Vec<ScreenAction> {
    debugger.handle_mouse(MouseEvent {
        kind,
        column,
        row,
        modifiers: KeyModifiers::NONE,
    });
    std::iter::from_fn(|| debugger.poll_action()).collect()
}

/// Clicks a number of columns before the first occurrence of a text.
fn click(debugger: &mut Debugger, wanted: &str, before: usize) -> Vec<ScreenAction> {
    let text = snapshot::drawn(|frame| debugger.draw(frame), 80, 24);
    let row = text.lines().position(|line| line.contains(wanted));
    let row = row.unwrap_or_else(|| panic!("no {wanted} in\n{text}"));
    let line = text.lines().nth(row).unwrap();
    let found = &line[..line.find(wanted).unwrap()];
    let column = sdm_text::columns(found) - before;
    let kind = MouseEventKind::Down(MouseButton::Left);
    let (column, row) = (column.try_into().unwrap(), row.try_into().unwrap());
    used(debugger, kind, column, row)
}

#[test]
fn clicks_select_lines_frames_and_ranks_and_press_keys() {
    let check = |wanted: &str, before: usize, expect: &str| {
        let mut debugger = debugger(PLAIN, board());
        assert_eq!(
            click(&mut debugger, wanted, before),
            line(expect),
            "{wanted}"
        );
    };
    check("rank 62: solve", 0, "focus 62");
    check("44 ", 2, "break halo.c:44");
    check("46 ", 2, "delete 2");
    check("aaaaaaaa", 0, "focus 0");
    check("n next", 0, "next &");
    let mut debugger = debugger(PLAIN, board());
    assert_eq!(click(&mut debugger, "line_43", 0), []);
    assert_eq!((debugger.panel, debugger.source.at), (Panel::Source, 43));
    assert_eq!(click(&mut debugger, "(sdm)", 0), []);
    assert_eq!(debugger.panel, Panel::Prompt);
    // A second click on a value lists the ranks that differ.
    let _ = click(&mut debugger, "left: 3", 0);
    assert_eq!(click(&mut debugger, "left: 3", 0), line("outliers left"));
}

#[test]
fn wheel_scrolls_the_panel_under_the_pointer() {
    let mut debugger = debugger(PLAIN, board());
    let _ = snapshot::drawn(|frame| debugger.draw(frame), 80, 24);
    assert_eq!(used(&mut debugger, MouseEventKind::ScrollDown, 5, 5), []);
    assert_eq!((debugger.panel, debugger.source.at), (Panel::Source, 47));
    let deeds = used(&mut debugger, MouseEventKind::ScrollDown, 60, 3);
    assert_eq!(deeds, line("focus 62"));
}

#[test]
fn click_at_any_position_never_panics() {
    for (typed, style) in [
        ("", PLAIN),
        ("3", PLAIN),
        ("2z", PLAIN),
        ("4", LINEAR),
        ("?", LINEAR),
    ] {
        for (width, height) in [(1, 1), (80, 24)] {
            let mut debugger = debugger(style, board());
            keys(&mut debugger, typed);
            for row in (0..=height).step_by(5) {
                for column in (0..=width).step_by(13) {
                    let _ = snapshot::drawn(|frame| debugger.draw(frame), width, height);
                    let kind = MouseEventKind::Down(MouseButton::Left);
                    let _ = used(&mut debugger, kind, column, row);
                }
            }
        }
    }
}

#[test]
fn key_bindings_do_not_apply_at_the_prompt() {
    let mut debugger = debugger(PLAIN, board());
    debugger.bind(Bindings::parse(["v=n", "n=none"]).unwrap());
    let text = snapshot::drawn(|frame| debugger.draw(frame), 80, 24);
    assert!(text.contains("c continue  v next"), "{text}");
    assert_eq!(keys(&mut debugger, "n"), []);
    assert_eq!(keys(&mut debugger, "v"), line("next &"));
    assert_eq!(keys(&mut debugger, ":vn\n"), line("vn"));
}

#[test]
fn linear_style_shows_one_panel_as_text_lines() {
    for (name, typed, wanted) in [
        ("debug_linear_source", "1", "line_44"),
        ("debug_linear_stacks", "2↓↓", "rank 62"),
        ("debug_linear_ranks", "3", "rank 63: exited with code 3"),
        ("debug_linear_values", "4↓", "rank 62: nan"),
        ("debug_linear_prompt", "6print 1", "print 1"),
    ] {
        let mut debugger = debugger(LINEAR, board());
        keys(&mut debugger, typed);
        snapshot::check(name, |frame| debugger.draw(frame));
        let mut terminal = Terminal::new(TestBackend::new(80, 24)).unwrap();
        terminal.draw(|frame| debugger.draw(frame)).unwrap();
        let at = terminal.backend().cursor_position();
        let text = snapshot::drawn(|frame| debugger.draw(frame), 80, 24);
        let found = text.lines().nth(at.y.into()).unwrap();
        assert!(found.contains(wanted), "{found} of\n{text}");
        let drawn = |c: char| ('\u{2500}'..'\u{25ff}').contains(&c);
        assert!(!text.contains(drawn), "{text}");
    }
}

#[test]
fn age_of_the_view_is_shown_while_tasks_run() {
    let mut debugger = debugger(PLAIN, board());
    let _ = debugger.take_changed();
    debugger.handle_age(10);
    assert!(!debugger.take_changed());
    let mut moved = board();
    moved.is_stale = true;
    moved.running = set("0-62");
    debugger.handle_board(moved);
    debugger.handle_age(70);
    assert!(debugger.take_changed());
    let text = snapshot::drawn(|frame| debugger.draw(frame), 80, 24);
    assert!(
        text.contains("(shown: the previous stop, 1:10 ago)"),
        "{text}"
    );
}

#[test]
fn view_settings_are_saved_and_restored() {
    let mut debugger = debugger(PLAIN, board());
    keys(&mut debugger, "zPP");
    let mut again = Debugger::new(PLAIN, sdm_view::render::Names::ranks());
    again.recall(&debugger.remembered());
    assert!(again.zoomed);
    assert_eq!(again.style.palette, Palette::Light);
}

#[test]
fn guide_pictures_match_the_screen() {
    let mut plain = board();
    let source = [
        "static void exchange(struct rod *rod)",
        "{",
        "    pack(rod);",
        "    MPI_Send(rod->cells, rod->count, MPI_DOUBLE, rod->right, 0, world);",
        "    MPI_Recv(rod->halo, rod->count, MPI_DOUBLE, rod->left, 0, world, &status);",
        "    unpack(rod);",
        "    check(rod);",
        "}",
    ];
    let sight = std::sync::Arc::make_mut(&mut plain.sight);
    let shown = sight.source.as_mut().unwrap();
    shown.first = 40;
    shown.lines = std::sync::Arc::new(source.map(str::to_owned).to_vec());
    for (name, typed) in [("debugger", ""), ("focus", "2\u{2193}\u{2193}")] {
        let mut debugger = debugger(crate::pictures::COLOURED, plain.clone());
        keys(&mut debugger, typed);
        crate::pictures::check(name, |frame| debugger.draw(frame));
    }
}
