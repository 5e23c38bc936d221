//! The page (`sdm web`) of a real MPI job that hangs: its diagnosis is worded as on the terminal.

use std::collections::BTreeSet;

use sdm_tests::browser::Browser;
use sdm_tests::job::Folder;
use sdm_tests::page::BrowserPage;
use sdm_tests::place::{Compiler, Place};
use sdm_tests::sdm::Sdm;
use serde_json::json;

use super::hangs::job::{Job, Under};

/// Words with one blank between them, however the lines are folded.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn page_describes_a_deadlock_in_the_words_of_the_terminal() {
    let Some(browser) = Browser::find() else {
        return;
    };
    let folder = Folder::new("page");
    let program = folder.compile(Compiler::OpenMpi, "hangs");
    let job = Job::start(Under::new(Compiler::OpenMpi), &program, "ring");
    let place = Place::new();
    let pid = job.launcher.id().to_string();
    let terminal = Sdm::new(&place, "diagnose").args([&pid]).finish();
    let terminal = words(&terminal.out);
    let running = Sdm::new(&place, "web").args([&pid]).spawn();
    let line = running.err.wait_line(0, "/enter/");
    let (_, address) = line.rsplit_once(' ').expect("the address is last");
    let mut page = BrowserPage::open(&browser, place.path(), address, (1280, 800));
    page.wait_text("#states", "8 not attached");
    // By the keyboard alone.
    page.key("d");
    let verdict = page.wait_text("#waits .verdict", "Deadlock: ");
    assert!(
        terminal.contains(&words(&verdict)),
        "{verdict} | {terminal}"
    );
    let waits = page.value(
        "[...document.querySelectorAll('#waits .wait.circle title')].map((it) => it.textContent)",
    );
    let waits = waits.as_array().expect("a list").iter();
    let waits: BTreeSet<&str> = waits.filter_map(|it| it.as_str()).collect();
    let place_of = "waiting in MPI_Recv, called from receive_from () at hangs.c:";
    // Each receives from its left before it sends to its right.
    let of = |rank: u32| format!("rank {rank} for rank {}: {place_of}", (rank + 7) % 8);
    assert_eq!(waits.len(), 8, "{waits:?}");
    for rank in 0..8 {
        let is_there = waits.iter().any(|wait| wait.starts_with(&of(rank)));
        assert!(is_there, "{} | {waits:?}", of(rank));
    }
    let finding = page.wait_text("#findings > li", "MPI_Recv");
    let (finding, _) = finding.split_once(';').expect("what has changed");
    assert!(finding.contains(place_of), "{finding}");
    let said = words(finding).replacen(") waiting", "): waiting", 1);
    assert!(terminal.contains(&said), "{said} | {terminal}");
    // Boxes and arrows are inside the picture, and no box lies on another.
    let over = page.value("(() => { const all = [...document.querySelectorAll('#waitssvg .node rect')].map((it) => it.getBoundingClientRect());
        const frame = document.querySelector('#waitssvg').getBoundingClientRect();
        const texts = [...document.querySelectorAll('#waitssvg .node')].flatMap((node) => [...node.querySelectorAll('text')].map((text) => [text.getBoundingClientRect(), node.querySelector('rect').getBoundingClientRect()]));
        const on = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
        return { boxes: all.length, over: all.flatMap((a, at) => all.slice(at + 1).filter((b) => on(a, b))).length,
          outside: all.filter((a) => a.left < frame.left || a.right > frame.right + 1 || a.bottom > frame.bottom + 1).length,
          cut: texts.filter(([text, box]) => text.left < box.left || text.right > box.right).length }; })()");
    assert_eq!(
        over,
        json!({ "boxes": 8, "over": 0, "outside": 0, "cut": 0 })
    );
    if let Some(folder) = std::env::var_os("SDM_PICTURES") {
        page.picture(&std::path::Path::new(&folder).join("ring.png"));
    }
    // A box is a set of ranks: a click makes it the focus.
    page.click("#waitssvg .node");
    page.wait_text("#prompt", "[0: 1 not attached]");
    page.line("quit");
    page.wait_text("#link", "The session is over.");
    assert_eq!(page.complaints, Vec::<String>::new());
    drop(page);
    let _done = running.finish().code(0);
    drop(job);
}
