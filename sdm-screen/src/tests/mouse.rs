//! Tests of the mouse in the views.

use ratatui::crossterm::event::{KeyModifiers, MouseButton, MouseEvent, MouseEventKind};

use super::{PLAIN, frame, keys, top};
use crate::{Request, Top};

fn used(top: &mut Top, kind: MouseEventKind, column: u16, row: u16) {
    top.handle_mouse(MouseEvent {
        kind,
        column,
        row,
        modifiers: KeyModifiers::NONE,
    });
}

/// Clicks on the first occurrence of a text.
fn click(top: &mut Top, wanted: &str) {
    let text = frame(top, 80, 24);
    let row = text.lines().position(|line| line.contains(wanted));
    let row = row.unwrap_or_else(|| panic!("no {wanted} in\n{text}"));
    let line = text.lines().nth(row).unwrap();
    let column = sdm_text::columns(&line[..line.find(wanted).unwrap()]);
    let (column, row) = (column.try_into().unwrap(), row.try_into().unwrap());
    used(top, MouseEventKind::Down(MouseButton::Left), column, row);
}

#[test]
fn clicks_select_rows_and_panels_and_press_keys() {
    let mut top = top(PLAIN);
    click(&mut top, "RUNNING");
    assert_eq!(top.wants().job.unwrap().1, "203");
    // The part below has the keys from now on.
    click(&mut top, "100-199");
    assert!(top.second);
    click(&mut top, "100-199");
    assert!(frame(&mut top, 80, 24).contains("jobs > here:3 > process"));
    click(&mut top, "Esc jobs");
    click(&mut top, "PENDING");
    assert!(!top.second);
    click(&mut top, "PENDING");
    click(&mut top, "diagnose");
    let words = ["diagnose", "here:1"].map(str::to_owned).to_vec();
    assert_eq!(top.poll_request(), Some(Request::Show(words)));
    // A click confirms nothing.
    click(&mut top, "c cancel");
    click(&mut top, "y: yes");
    assert_eq!(top.poll_request(), None);
    keys(&mut top, "n2");
    click(&mut top, "?x");
    assert!(frame(&mut top, 80, 24).contains("UNKNOWN EXITED_PROCESS"));
    keys(&mut top, "1a");
    click(&mut top, "description");
    keys(&mut top, "ours");
    assert!(frame(&mut top, 80, 24).contains("description        ours"));
}

#[test]
fn wheel_scrolls_the_part_under_the_pointer() {
    let mut top = top(PLAIN);
    let _ = frame(&mut top, 80, 24);
    used(&mut top, MouseEventKind::ScrollDown, 10, 3);
    assert_eq!(top.wants().job.unwrap().1, "204");
    used(&mut top, MouseEventKind::ScrollUp, 10, 3);
    assert_eq!(top.wants().job.unwrap().1, "201");
    used(&mut top, MouseEventKind::ScrollDown, 10, 200);
    assert_eq!(top.wants().job.unwrap().1, "201");
    assert!(top.take_changed());
    used(&mut top, MouseEventKind::Moved, 10, 3);
    assert!(!top.take_changed());
}

#[test]
fn click_at_any_position_never_panics() {
    for typed in ["1", "2", "3", "3↓↓\t\n", "?", "↓\n", "c", "n", "1a"] {
        for (width, height) in [(1, 1), (80, 24)] {
            let mut top = top(PLAIN);
            keys(&mut top, typed);
            for row in (0..=height).step_by(5) {
                for column in (0..=width).step_by(13) {
                    let _ = frame(&mut top, width, height);
                    let kind = MouseEventKind::Down(MouseButton::Left);
                    used(&mut top, kind, column, row);
                }
            }
        }
    }
}
