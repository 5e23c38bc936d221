//! Tests of text search and of scrolling the output.

use super::*;

fn drawn(debugger: &mut Debugger) -> String {
    snapshot::drawn(|frame| debugger.draw(frame), 80, 24)
}

#[test]
fn search_finds_text_in_the_focused_panel() {
    let mut debugger = debugger(PLAIN, board());
    let deeds = keys(&mut debugger, "/LINE_7");
    assert!(drawn(&mut debugger).contains("\n/LINE_7  (Enter: search"));
    assert_eq!(deeds, [], "letters are no commands");
    keys(&mut debugger, "\n");
    assert_eq!(debugger.source.at, 70);
    keys(&mut debugger, "/\n/\n");
    assert_eq!(debugger.source.at, 72);
    keys(&mut debugger, "/line_1(\n");
    assert_eq!(debugger.source.at, 1);
    assert_eq!(debugger.hint, "the search continued from the top");
    keys(&mut debugger, "/nowhere\n");
    assert_eq!(
        (debugger.source.at, &*debugger.hint),
        (1, "`nowhere` was not found")
    );
    keys(&mut debugger, "/abc\x1b");
    assert_eq!(keys(&mut debugger, "2/solve\n"), line("focus 62"));
    keys(&mut debugger, "4/left\n");
    assert!(
        debugger.value_rows()[debugger.values_at]
            .text
            .starts_with("left")
    );
    keys(&mut debugger, "3/left\n");
    assert!(debugger.hint.contains("type `:` and `focus 17`"));
}

#[test]
fn output_scrolls_and_keeps_its_position() {
    let mut debugger = debugger(PLAIN, board());
    let print = |debugger: &mut Debugger, number: u32| {
        debugger.handle_printed(Printed {
            tasks: set("0-3"),
            stream: Stream::Stdout,
            line: format!("line {number} of many").into_bytes(),
        });
    };
    for number in 0..100 {
        print(&mut debugger, number);
    }
    keys(&mut debugger, "5z");
    assert!(drawn(&mut debugger).contains("line 99 of"));
    keys(&mut debugger, "/line 50 \n");
    let here = drawn(&mut debugger);
    assert!(
        here.contains("line 50 of") && !here.contains("line 51 of"),
        "{here}"
    );
    print(&mut debugger, 100);
    assert!(!drawn(&mut debugger).contains("line 51 of"), "it stays");
    keys(&mut debugger, "G");
    assert!(drawn(&mut debugger).contains("line 100 of"));
}
