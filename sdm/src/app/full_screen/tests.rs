//! Tests of the full screen's state: the place of input requests, and messages that are repeated at the
//! prompt.

use super::*;

#[test]
fn colour_sequences_are_removed() {
    assert_eq!(uncoloured("\x1b[1mrank 3\x1b[0m: x\n"), "rank 3: x\n");
    assert_eq!(uncoloured("a\x1b[3"), "a");
}

#[test]
fn messages_hidden_by_the_screen_are_kept_up_to_a_bound() {
    let full = Full::new(&LookArgs::default()).unwrap();
    assert!(!full.say("before\n"));
    full.lock().on = true;
    for number in 0..20_000 {
        assert!(full.say(&format!("line {number}\n")));
    }
    let state = full.lock();
    assert!(state.missed.len() <= MISSED_BYTES_MAX);
    assert!(state.missed.starts_with("line ") && state.missed.ends_with("line 19999\n"));
    assert_eq!(state.texts.len(), TEXTS_MAX);
}

#[test]
fn line_request_goes_to_the_screen_while_it_is_shown() {
    let full = Full::new(&LookArgs::default()).unwrap();
    let asked = ("(sdm) ".to_owned(), false);
    assert_eq!(full.ask(asked.clone()), Some(asked.clone()));
    full.enter(asked.clone(), "pri".to_owned());
    assert_eq!(full.ask(asked), None);
    let mut debugger = Debugger::new(full.look.style(false), Names::ranks());
    full.lock().give_to(&mut debugger);
    assert!(full.lock().typed.is_none() && full.is_on());
}
