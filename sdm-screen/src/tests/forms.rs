//! Tests of the forms for jobs and clusters.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::{PLAIN, facts, frame, keys, top};
use crate::{Bindings, Palette, Request, Top};

fn run(text: &str) -> Option<Request> {
    Some(Request::Run(text.split(' ').map(str::to_owned).collect()))
}

#[test]
fn form_and_profile_submit_a_job() {
    let mut known = facts();
    known.profiles = vec!["halo".to_owned()];
    let mut top = Top::new(PLAIN, super::NOW);
    top.handle_facts(known);
    // A missing field is reported, and gets the focus.
    keys(&mut top, "n\t\n");
    assert_eq!(top.poll_request(), None);
    assert!(
        top.hint
            .contains("program: a program or a profile is required"),
        "{}",
        top.hint
    );
    keys(&mut top, "./app\t\t\t8\n");
    assert_eq!(
        top.poll_request(),
        run("submit --cluster here -n 8 -- ./app")
    );
    assert!(frame(&mut top, 80, 24).contains("$ sdm submit --cluster here -n 8 -- ./app ..."));
    keys(&mut top, "n\t\t");
    top.handle_key(KeyEvent::from(KeyCode::Right));
    assert!(frame(&mut top, 80, 24).contains("sdm submit --cluster here --profile halo"));
    keys(&mut top, "\n");
    assert_eq!(
        top.poll_request(),
        run("submit --cluster here --profile halo")
    );
    keys(&mut top, "nx\x1b");
    assert_eq!(top.poll_request(), None);
    assert_eq!(top.hint, "not done");
}

#[test]
fn top_form_adds_and_edits_a_cluster() {
    let mut top = top(PLAIN);
    keys(&mut top, "1aphys\t");
    top.handle_key(KeyEvent::from(KeyCode::Right));
    keys(&mut top, "\n");
    assert_eq!(top.poll_request(), run("cluster add phys slurm"));
    keys(&mut top, "e\t");
    let control = KeyEvent::new(KeyCode::Char('u'), KeyModifiers::CONTROL);
    top.handle_key(control);
    keys(&mut top, "\n");
    assert_eq!(top.poll_request(), run("cluster edit c0 --host="));
}

#[test]
fn key_bindings_do_not_apply_in_text_fields() {
    let mut top = top(PLAIN);
    top.bind(Bindings::parse(["x=c", "c=none", "F2=n"]).unwrap());
    keys(&mut top, "c");
    assert_eq!(top.over, crate::top::Overlay::Nothing);
    assert!(frame(&mut top, 80, 24).contains("x cancel"));
    keys(&mut top, "xy");
    assert_eq!(top.poll_request(), run("cancel here:1"));
    top.handle_key(KeyEvent::from(KeyCode::F(2)));
    keys(&mut top, "xc");
    assert!(frame(&mut top, 80, 24).contains("sdm submit --cluster here -- xc"));
    keys(&mut top, "\x1b?");
    assert!(frame(&mut top, 80, 30).contains("F2       as n"));
}

#[test]
fn view_settings_are_saved_and_restored() {
    let mut top = top(PLAIN);
    keys(&mut top, "ooOm2P");
    let text = top.remembered();
    let mut again = super::top(PLAIN);
    again.recall(&format!("nonsense\nview x\n{text}"));
    assert_eq!(again.remembered(), text);
    assert_eq!(again.style.palette, Palette::Dark);
    keys(&mut again, "3");
    let frame = frame(&mut again, 80, 24);
    assert!(frame.contains("by user, reversed, mine"), "{frame}");
}

#[test]
fn copy_key_copies_the_selection() {
    let mut top = top(PLAIN);
    keys(&mut top, "y");
    assert_eq!(top.poll_request(), Some(Request::Copy("here:1".to_owned())));
    keys(&mut top, "2\ty");
    assert_eq!(top.poll_request(), Some(Request::Copy("n100".to_owned())));
}

#[test]
fn output_follows_until_it_is_scrolled_up() {
    let mut many = facts();
    let output = many.output.as_mut().unwrap();
    output.lines = (1..=100).map(|line| format!("step {line}")).collect();
    let mut top = top(PLAIN);
    top.handle_facts(many.clone());
    keys(&mut top, "3↓↓\t\n");
    assert!(frame(&mut top, 80, 24).contains("step 100"));
    keys(&mut top, "\t↑↑");
    let text = frame(&mut top, 80, 24);
    assert!(
        !text.contains("step 100") && text.contains("step 98"),
        "{text}"
    );
    assert!(text.contains("2 below (G: follow)"), "{text}");
    keys(&mut top, "G");
    many.output
        .as_mut()
        .unwrap()
        .lines
        .push("the end".to_owned());
    top.handle_facts(many);
    assert!(frame(&mut top, 80, 24).contains("the end"));
}

#[test]
fn guide_pictures_match_the_screen() {
    let mut known = facts();
    known.clusters.retain(|it| it.name == "here");
    known
        .items
        .retain(|it| it.get("jobState") != Some("UNKNOWN"));
    for it in &mut known.items {
        for (id, value) in &mut it.attributes {
            if id == "name" && value.starts_with("halo") {
                "halo".clone_into(value);
            }
        }
    }
    known.profiles = vec!["halo".to_owned()];
    for (name, typed) in [
        ("pictures_jobs", "3\u{2193}\u{2193}"),
        ("pictures_nodes", "2\n\u{2192}\u{2192}"),
        ("pictures_submit", "n./halo\t\t\t64"),
        ("pictures_menu", "3\u{2193}\u{2193}\n"),
    ] {
        let mut top = Top::new(crate::pictures::COLOURED, super::NOW);
        top.handle_facts(known.clone());
        keys(&mut top, typed);
        let name = name.trim_start_matches("pictures_");
        crate::pictures::check(name, |frame| top.draw(frame));
    }
}
