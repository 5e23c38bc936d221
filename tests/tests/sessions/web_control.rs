//! Run control on a session's page, by the mouse and by the keyboard.

use sdm_tests::page::BrowserPage;
use sdm_tests::place::Place;
use serde_json::json;

use super::web::{quit, served, work};

/// Makes ranks the focus in the console, and leaves it.
fn focus(page: &mut BrowserPage, set: &str) {
    page.line(&format!("focus {set}"));
    page.wait_text("#prompt", &format!("[{set}"));
    leave_console(page);
}

/// Takes the keyboard from the console: keys go to the page.
fn leave_console(page: &mut BrowserPage) {
    page.value("document.activeElement.blur()");
}

/// While a line is waited for, Ctrl-Z gives the prompt back and Ctrl-C stops the ranks.
fn check_waiting(page: &mut BrowserPage) {
    page.line("continue");
    page.wait_text("#states", "8 running");
    page.chord("Ctrl", "z");
    page.wait_text("#prompt", "[all 8: 8 running]");
    page.line("interrupt");
    page.wait_text("#prompt", "[all 8: 8 stopped]");
    page.wait_text("#states", "8 stopped");
    page.line("continue");
    page.wait_text("#states", "8 running");
    page.chord("Ctrl", "c");
    page.wait_text("#prompt", "[all 8: 8 stopped]");
}

/// A question stands in the console, no button answers it, and its answer is no command.
fn check_question(page: &mut BrowserPage) {
    let question = "Make breakpoint pending on future shared library load? (y or [n])";
    page.line("break no_such_function");
    page.wait_text("#log", question);
    page.wait_text("#prompt", question);
    page.click("[data-line='stacks']");
    page.wait_text("#link", "The console asks a question: answer it first.");
    page.line("perhaps");
    page.wait_text("#log", "perhaps");
    page.wait_text("#prompt", question);
    page.line("n");
    page.wait_text("#prompt", "[all 8: 8 stopped]");
    page.wait("[...document.querySelectorAll('#log .typed')].slice(-2).map((it) => it.textContent).join() === 'perhaps,n'");
    assert_eq!(
        page.value("document.querySelector('#link').textContent"),
        ""
    );
}

/// The console shows its last line in a narrow window too, where its lines are higher. Where it was scrolled up it stays.
fn check_narrow(page: &mut BrowserPage) {
    // Observers of sizes and scrolling are called before a frame is drawn.
    const FRAME: &str = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))";
    let narrow = |page: &mut BrowserPage, width: u32| {
        let window =
            json!({ "width": width, "height": 700, "deviceScaleFactor": 1, "mobile": false });
        page.call("Emulation.setDeviceMetricsOverride", window);
        page.value(FRAME);
    };
    page.line("help run");
    page.wait_text("#log", "help run");
    page.wait_text("#prompt", "[all 8: 8 stopped]");
    let place = "(() => { const it = document.querySelector('#log'); return [it.scrollTop, it.scrollHeight - it.clientHeight - it.scrollTop]; })()";
    let rest = |page: &mut BrowserPage| page.value(place)[1].as_f64().expect("a number");
    narrow(page, 1200);
    let height = page.value("document.querySelector('#log').scrollHeight");
    narrow(page, 500);
    assert!(
        page.value("document.querySelector('#log').scrollHeight")
            .as_f64()
            > height.as_f64()
    );
    assert!(rest(page) < 2.0, "{}", page.value(place));
    page.value("document.querySelector('#log').scrollTop = 0");
    page.value(FRAME);
    narrow(page, 400);
    assert_eq!(page.value(place)[0], 0);
    page.call("Emulation.clearDeviceMetricsOverride", json!({}));
}

#[test]
fn buttons_and_keys_run_all_or_the_chosen_ranks() {
    let place = Place::new();
    let Some((running, mut page)) = served(&place, work(&place, "spin")) else {
        return;
    };
    page.wait_text("#states", "8 stopped");
    focus(&mut page, "0-2");
    page.click("[data-line='next &']");
    page.wait_text("#tree", "ranks 0-2 (3)");
    // A breakpoint is set in the ranks of the focus.
    focus(&mut page, "all");
    let call = Place::line("work.c", "        spin();");
    page.line(&format!("break work.c:{call}"));
    page.wait_text("#log", "breakpoint 1 at work.c:");
    leave_console(&mut page);
    page.key("c");
    page.wait_text("#tree", &format!("work.c:{call}"));
    page.wait_text("#states", "8 stopped");
    // A step leads into the function, and leaves the others.
    focus(&mut page, "5-6");
    page.key("s");
    page.wait_text("#tree", "spin");
    page.wait_text("#tree", "ranks 5-6 (2)");
    focus(&mut page, "all");
    page.click("[data-line='continue &']");
    page.wait_text("#states", "8 running");
    focus(&mut page, "3");
    page.key("i");
    page.wait_text("#states", "1 stopped");
    page.wait_text("#states", "7 running");
    focus(&mut page, "all");
    page.click("[data-line='interrupt']");
    page.wait_text("#states", "8 stopped");
    check_waiting(&mut page);
    check_question(&mut page);
    check_narrow(&mut page);
    quit(running, page);
}
