//! The three bugs of the tutorial (`docs/tutorial.md`) on the page. `scripts/pictures` makes its pictures of them.

use sdm_tests::browser::Browser;
use sdm_tests::golden;
use sdm_tests::page::BrowserPage;
use sdm_tests::place::{Compiler, Place};
use sdm_tests::sdm::{Running, Sdm};

use super::pages::{Drawn, MAP, TABLE, WAITS, ask, open, picture, quit};

/// The rows of the stacks: how deep, and what they are called.
const ROWS: &str = "[...document.querySelectorAll('#tree [role=treeitem]')].map((it) => `${'  '.repeat(it.ariaLevel - 1)}${it.ariaLabel.replace(', changed', '')}`).join('\\n')";
/// The variables of the focus.
const VARIABLES: &str = "[...document.querySelectorAll('#locals tr')].map((it) => [...it.cells].map((cell) => cell.innerText.trim()).join(' | ')).join('\\n')";
/// A session of four ranks on a page.
fn start<'a>(
    browser: &Browser,
    place: &'a Place,
    (program, args): (&str, &[&str]),
) -> (Running<'a>, BrowserPage) {
    let program = place.compile(program, Compiler::OpenMpi);
    let sdm = Sdm::run(place, 4).args(["--web"]);
    let (running, mut page) = open(browser, place, sdm.program(&program, args));
    page.wait_text("#states", "4 stopped");
    (running, page)
}

/// The rank that crashes, where, and with which values.
fn check_crash(browser: &Browser, drawn: &mut Drawn) {
    let place = Place::new();
    let (running, mut page) = start(browser, &place, ("halo", &["200", "segv"]));
    page.click("[data-line='continue &']");
    page.wait_text("#maplegend", "stopped at a crash, SIGSEGV rank 3");
    drawn.note("crash: the map", &page.value(MAP));
    page.click("#maplegend li:last-child button");
    page.wait_text("#prompt", "[3: 1 stopped]");
    let row = "#tree [data-key*='misbehave']";
    page.wait_text(row, "misbehave");
    page.wait_text("#locals", "no_cells");
    page.click("#tab-values");
    drawn.note("its variables", &page.value(VARIABLES));
    page.click(&format!("{row} > .row .place"));
    page.wait_text("#source .here", "no_cells[0] = 1.0;");
    picture(&mut page, "page-crash");
    quit(running, page);
}

/// The graph of waits in the job that hangs.
fn check_hang(browser: &Browser, drawn: &mut Drawn) {
    let place = Place::new();
    let (running, mut page) = start(browser, &place, ("halo", &["1000", "hang"]));
    // The others come to their collective while rank 3 is about to wait.
    page.line("break halo.c:60 if expected_tag == 99");
    page.wait_text("#log", "breakpoint 1 at halo.c:60");
    page.click("[data-line='continue &']");
    page.wait_text("#states", "1 stopped");
    page.click("[data-line='continue &']");
    page.wait_text("#states", "4 running");
    page.key("d");
    let said = "rank 2 sends tag 2 to rank 3, which waits for tag 99 from it";
    page.wait_text("#waits .verdict", said);
    drawn.note("hang: who waits for whom", &page.value(WAITS));
    picture(&mut page, "page-hang");
    quit(running, page);
}

/// The rank whose sum is wrong, and where it comes from.
fn check_wrong(browser: &Browser, drawn: &mut Drawn) {
    let place = Place::new();
    let (running, mut page) = start(browser, &place, ("sum", &[]));
    page.line("break MPI_Reduce");
    page.wait_text("#log", "breakpoint 1 in");
    page.click("[data-line='continue &']");
    page.wait_text("#tree", "MPI_Reduce");
    ask(&mut page, "part.sum", "stats");
    page.wait("document.querySelector('#histogram')");
    drawn.note("wrong: the sums", &page.value(TABLE));
    picture(&mut page, "page-wrong");
    page.click("#shown td button");
    page.wait_text("#prompt", "[3: 1 stopped]");
    drawn.note("where that rank is", &page.value(ROWS));
    quit(running, page);
}

#[test]
fn bugs_of_the_tutorial_are_found_on_the_page() {
    let Some(browser) = Browser::find() else {
        return;
    };
    let mut drawn = Drawn::default();
    check_crash(&browser, &mut drawn);
    check_hang(&browser, &mut drawn);
    check_wrong(&browser, &mut drawn);
    golden::check("web_tutorial", &drawn.0);
}
