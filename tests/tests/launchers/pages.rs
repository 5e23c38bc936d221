//! The page (`sdm web`) of real MPI jobs of eight ranks: hangs, a crash, a wrong value, a profile, and arrays.

use std::collections::BTreeSet;

use sdm_tests::accessibility::Accessibility;
use sdm_tests::browser::Browser;
use sdm_tests::golden;
use sdm_tests::job::Folder;
use sdm_tests::page::BrowserPage;
use sdm_tests::place::{Compiler, Place};
use sdm_tests::sdm::{Running, Sdm};
use serde_json::{Value, json};

use super::hangs::job::{Job, Under};

/// Words with one blank between them, however the lines are folded.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The window of the page.
const SIZE: (u32, u32) = (1280, 800);
/// The cells of the map: the colour, the ranks and the outline of each class.
pub(super) const MAP: &str = "[...document.querySelectorAll('#mapcells .class')].map((it) => `${it.getAttribute('class')} ${it.dataset.tasks} ${it.getAttribute('d')}`).join('\\n')";
/// The graph of waits: each box and arrow, with its outline.
pub(super) const WAITS: &str = "[...document.querySelectorAll('#waitssvg .node, #waitssvg .wait')].map((it) => { const shape = it.querySelector('rect, path'); return `${it.getAttribute('class')} ${it.querySelector('title').textContent.replace(/;.*/s, '')} ${shape.getAttribute('d') ?? ['x', 'y'].map((name) => Number(shape.getAttribute(name)).toFixed(1))}`; }).join('\\n')";
/// The outlines of what is drawn of an array: curves, or cells of a heat map.
const DRAWN: &str = "[...document.querySelectorAll('#plot path, #heat path, #heat text')].map((it) => `${it.getAttribute('class') ?? it.textContent} ${it.getAttribute('d') ?? [it.getAttribute('x'), it.getAttribute('y')]}`).join('\\n')";
/// The rows of the table of values.
pub(super) const TABLE: &str = "[...document.querySelectorAll('#shown tr')].map((it) => [...it.children].map((cell) => cell.innerText.trim()).join(' | ')).join('\\n')";

/// Opens the page of a session in a browser.
pub(super) fn open<'a>(
    browser: &Browser,
    place: &'a Place,
    sdm: Sdm<'a>,
) -> (Running<'a>, BrowserPage) {
    let running = sdm.spawn();
    let line = running.err.wait_line(0, "/enter/");
    let (_, address) = line.rsplit_once(' ').expect("the address is last");
    let page = BrowserPage::open(browser, place.path(), address, SIZE);
    (running, page)
}

/// A picture of the page, only where `SDM_PICTURES` names a folder.
pub(super) fn picture(page: &mut BrowserPage, name: &str) {
    if let Some(folder) = std::env::var_os("SDM_PICTURES") {
        let path = std::path::Path::new(&folder).join(name);
        page.picture(&path.with_extension("png"));
    }
}

/// Selects an entry of a list, or enters a number, as a person does.
fn select(page: &mut BrowserPage, id: &str, entry: &str) {
    page.value(&format!("(() => {{ const it = document.querySelector('#{id}'); it.value = '{entry}'; it.dispatchEvent(new Event('change')); return it.value === '{entry}' || null; }})()"));
}

/// Types an expression on the page's tab of values, and clicks a button beside it.
pub(super) fn ask(page: &mut BrowserPage, expression: &str, word: &str) {
    page.click("#tab-values");
    page.click("#expression");
    page.value("document.querySelector('#expression').select()");
    page.call("Input.insertText", json!({ "text": expression }));
    page.click(&format!("[data-word='{word}']"));
}

fn text(value: &Value) -> &str {
    value.as_str().expect("it is text")
}

/// Ends a session whose job `sdm` has started.
pub(super) fn quit(running: Running<'_>, mut page: BrowserPage) {
    page.line("quit");
    page.wait_text("#prompt", "ranks started here?");
    page.line("y");
    page.wait_text("#link", "The session is over.");
    assert_eq!(page.complaints, Vec::<String>::new());
    drop(page);
    let _done = running.finish().code(0);
}

#[test]
fn page_describes_a_deadlock_in_the_words_of_the_terminal() {
    let (Some(browser), Some(checker)) = (Browser::find(), Accessibility::find()) else {
        return;
    };
    let folder = Folder::new("page");
    let program = folder.compile(Compiler::OpenMpi, "hangs");
    let job = Job::start(Under::new(Compiler::OpenMpi), &program, "ring");
    let place = Place::new();
    let pid = job.launcher.id().to_string();
    let terminal = Sdm::new(&place, "diagnose").args([&pid]).finish();
    let terminal = words(&terminal.out);
    let web = Sdm::new(&place, "web").args([&pid]);
    let (running, mut page) = open(&browser, &place, web);
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
    golden::check("web_deadlock", &format!("{}\n", text(&page.value(WAITS))));
    picture(&mut page, "ring");
    checker.check_tabs(&mut page);
    page.click("#tab-waits");
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

/// The edges of the graph of waits: the ranks, the call and its line.
fn edges(page: &mut BrowserPage) -> Vec<String> {
    let found = page
        .value("[...document.querySelectorAll('#waits .wait title')].map((it) => it.textContent)");
    let found = found.as_array().expect("a list").iter();
    found.map(|it| text(it).to_owned()).collect()
}

#[test]
fn rank_missing_from_a_collective_is_drawn_as_waited_for() {
    let Some(browser) = Browser::find() else {
        return;
    };
    let folder = Folder::new("page");
    let program = folder.compile(Compiler::OpenMpi, "hangs");
    let job = Job::start(Under::new(Compiler::OpenMpi), &program, "collective");
    let place = Place::new();
    let pid = job.launcher.id().to_string();
    let web = Sdm::new(&place, "attach").args([&pid, "--web"]);
    let (running, mut page) = open(&browser, &place, web);
    page.wait_text("#states", "8 not attached");
    page.click("[data-line='diagnose']");
    let verdict = page.wait_text("#waits .verdict", ": ");
    let whose = "Cannot go on: likely to blame: rank 3: the ranks are in different";
    assert!(verdict.starts_with(whose), "{verdict}");
    let edges = edges(&mut page);
    let place = "waiting in MPI_Allreduce, called from sum_up () at hangs.c:";
    for waiting in ["rank 0", "ranks 1-2,4-7 (6)"] {
        let wait = format!("{waiting} for rank 3: {place}");
        assert!(edges.iter().any(|it| it.starts_with(&wait)), "{edges:?}");
    }
    // Those that wait for each other have an arrow each.
    let arrows = page.value("new Set([...document.querySelectorAll('#waits .wait path')].map((it) => it.getAttribute('d'))).size");
    assert_eq!(arrows, edges.len());
    picture(&mut page, "collective");
    // The box of the rank that is waited for is its set, for the console as well.
    page.click("#waitssvg .node.suspect");
    page.wait_text("#prompt", "[3: 1 not attached]");
    page.line("stacks");
    page.wait_text("#log", "rank 3: main () at hangs.c:");
    page.line("quit");
    page.wait_text("#link", "The session is over.");
    assert_eq!(page.complaints, Vec::<String>::new());
    drop(page);
    let _done = running.finish().code(0);
    drop(job);
}

#[test]
fn crashed_rank_is_on_the_map_and_one_click_leads_to_its_line() {
    let Some(browser) = Browser::find() else {
        return;
    };
    let place = Place::new();
    let program = place.compile("halo", Compiler::OpenMpi);
    let sdm = Sdm::run(&place, 8).args(["--web"]);
    let sdm = sdm.program(&program, &["200", "segv"]);
    let (running, mut page) = open(&browser, &place, sdm);
    page.wait_text("#states", "8 stopped");
    page.click("[data-line='continue &']");
    page.wait_text("#maplegend", "stopped at a crash, SIGSEGV rank 3");
    page.wait_text("#states", "7 running");
    page.wait_text("#states", "1 stopped at a crash");
    golden::check("web_crash", &format!("{}\n", text(&page.value(MAP))));
    page.click("#maplegend li:last-child button");
    page.wait_text("#prompt", "[3: 1 stopped]");
    // By the mouse, and the same row by the keyboard.
    let row = "#tree [data-key*='misbehave']";
    page.wait_text(row, "misbehave");
    page.click(&format!("{row} > .row .place"));
    page.wait_text("#source .here", "no_cells[0] = 1.0;");
    page.wait_text("#source .here", "rank 3");
    page.click("#tab-map");
    page.value(&format!("document.querySelector(\"{row}\").focus()"));
    page.key("l");
    page.wait("!document.querySelector('#source').hidden");
    picture(&mut page, "crash");
    quit(running, page);
}

#[test]
fn wrong_value_is_found_on_the_map_and_in_pictures_of_arrays() {
    let Some(browser) = Browser::find() else {
        return;
    };
    let place = Place::new();
    let program = place.compile("plate", Compiler::OpenMpi);
    let sdm = Sdm::run(&place, 8).args(["--web"]);
    let (running, mut page) = open(&browser, &place, sdm.program(&program, &["wrong"]));
    page.wait_text("#states", "8 stopped");
    page.line("break total");
    page.wait_text("#log", "breakpoint 1 at plate.c:");
    page.click("[data-line='continue &']");
    page.wait_text("#tree", "total");
    let mut drawn = Drawn::default();
    check_map(&mut page, &mut drawn);
    check_arrays(&mut page, &mut drawn);
    save_numbers(&mut page, &place);
    ask(&mut page, "cells", "compare");
    page.wait_text("#shown", "differ in");
    drawn.note("cells compared", &page.value(TABLE));
    ask(&mut page, "edge[0:15]", "stats");
    page.wait("document.querySelector('#histogram')");
    let bars = "[...document.querySelectorAll('#histogram rect')].map((it) => `${it.textContent} ${['x', 'y', 'width', 'height'].map((name) => Number(it.getAttribute(name)).toFixed(1))}`).join('\\n')";
    drawn.note("histogram of edge", &page.value(bars));
    drawn.note("its table", &page.value(TABLE));
    picture(&mut page, "histogram");
    golden::check("web_values", &drawn.0);
    quit(running, page);
}

/// Names and outlines of what the page has drawn.
#[derive(Default)]
pub(super) struct Drawn(pub(super) String);

impl Drawn {
    pub(super) fn note(&mut self, what: &str, found: &Value) {
        self.0.push_str(&format!("{what}\n{}\n\n", text(found)));
    }
}

/// Colours the map by value, place and host, and marks ranks on it.
fn check_map(page: &mut BrowserPage, drawn: &mut Drawn) {
    // The rank with the odd number has a colour of its own.
    ask(page, "residual", "outliers");
    page.wait_text("#shown h3", "residual");
    page.click("#tab-map");
    select(page, "mapby", "value");
    page.wait_text("#maplegend", "residual = 8");
    drawn.note("map by value", &page.value(MAP));
    for (by, class) in [("place", "total plate.c:"), ("host", "ranks 0-7 (8)")] {
        select(page, "mapby", by);
        page.wait_text("#maplegend", class);
    }
    select(page, "maporder", "host");
    let host = page.wait_text("#mapcells .host", "");
    page.wait_text("#maplegend", &format!("{host} ranks 0-7 (8)"));
    drawn.note("map by host", &page.value(MAP));
    picture(page, "hosts");
    // What is drawn on the map is a set, and the console has it.
    let middle = "(rank) => { const it = [...document.querySelectorAll('#mapcells text:not(.host)')].find((it) => it.textContent === rank); const box = it.getBoundingClientRect(); return [box.x + box.width / 2, box.y + box.height / 2]; }";
    let at = page.value(&format!("['1', '6'].map({middle})"));
    let at = |of: usize| {
        let number = |axis: usize| at[of][axis].as_f64().expect("a place");
        (number(0), number(1))
    };
    page.drag(at(0), at(1));
    page.wait_text("#prompt", "[1-2,5-6: 4 stopped]");
    page.line("print rank");
    for rank in [1, 2, 5, 6] {
        page.wait_text("#log", &format!("rank {rank}: {rank}"));
    }
    // Colour and order have the hosts in common.
    let asked = "[...document.querySelectorAll('#log .typed')].filter((it) => it.textContent.includes('info nodes')).length";
    assert_eq!(page.value(asked), 1);
    page.line("focus all");
    page.wait_text("#prompt", "[all 8: 8 stopped]");
}

/// Draws arrays of all ranks, of one, and the difference between two.
fn check_arrays(page: &mut BrowserPage, drawn: &mut Drawn) {
    // An array of one dimension: a line, a heat map and a table, and one rank's without that of the others.
    ask(page, "edge", "plot");
    page.wait_text("#shown h3", "edge");
    drawn.note("edge", &page.value(DRAWN));
    select(page, "of", "5");
    select(page, "less", "0-4,6-7");
    page.wait_text("#shown h3", "edge, less that of ranks 0-4,6-7 (7)");
    drawn.note(
        "edge of rank 5, less that of the others",
        &page.value(DRAWN),
    );
    drawn.note("its table", &page.value(TABLE));
    // A slice with a stride keeps its indices.
    ask(page, "edge[2:14:6]", "plot");
    page.wait_text("#shown h3", "edge[2:14:6]");
    let indices =
        "[...document.querySelectorAll('#shown td:first-child')].map((it) => it.textContent)";
    assert_eq!(page.value(indices), json!(["2", "8", "14"]));
    // Of two dimensions: a block for each class, and the rows of one rank as a table and a file.
    ask(page, "cells", "plot");
    page.wait_text("#heat text", "rank 5");
    assert_eq!(page.value("document.querySelector('#columns').value"), "8");
    drawn.note("cells", &page.value(DRAWN));
    picture(page, "cells");
    select(page, "of", "5");
    page.wait("document.querySelectorAll('#heat text').length === 1");
    drawn.note("cells of rank 5", &page.value(TABLE));
}

/// Saves the numbers of the array that is drawn.
fn save_numbers(page: &mut BrowserPage, place: &Place) {
    page.save("#shown > button", place.path());
    let saved = std::fs::read_to_string(place.path().join("cells.csv")).expect("it is there");
    let heads = "\"cells, rank 5\",0,1,2,3,4,5,6,7\n0,0,1,";
    assert!(saved.starts_with(heads), "{saved}");
    let row = saved.lines().nth(5).expect("row 4");
    assert_eq!(row.split(',').nth(4), Some("-100"), "{saved}");
}

/// Frames whose place is not within that of their caller, and the names and shares of all.
const FLAME: &str = "(() => { const all = [...document.querySelectorAll('.flame')].map((it) => { const rect = it.querySelector('rect'); const [x, y, width] = ['x', 'y', 'width'].map((name) => Number(rect.getAttribute(name))); return { x, y, end: x + width, text: it.querySelector('title').textContent }; });
    const isIn = (one) => one.y === 0 || all.some((other) => other.y === one.y - 20 && other.x <= one.x + 0.02 && one.end <= other.end + 0.02);
    return { outside: all.filter((one) => !isIn(one)).length, wide: all[0].end - all[0].x, texts: all.map(({ text }) => text).join('\\n') }; })()";

#[test]
fn profile_is_a_flame_graph_with_a_slider_over_time() {
    let (Some(browser), Some(checker)) = (Browser::find(), Accessibility::find()) else {
        return;
    };
    let folder = Folder::new("page");
    let program = folder.compile(Compiler::OpenMpi, "hangs");
    let job = Job::start(Under::new(Compiler::OpenMpi), &program, "ring_beside");
    let place = Place::new();
    let web = Sdm::new(&place, "web").args([&job.launcher.id().to_string()]);
    let (running, mut page) = open(&browser, &place, web);
    page.wait_text("#states", "8 not attached");
    page.line("profile 2");
    page.wait_text(
        "#flameclasses",
        "ranks 4-7 (4) always in the same place, MPI_Recv",
    );
    for part in ["all of ", "from 0.0 s to "] {
        page.wait_text("#flamewhen", part);
        let flame = page.value(FLAME);
        assert_eq!(
            (&flame["outside"], &flame["wide"]),
            (&json!(0), &json!(600))
        );
        let texts = text(&flame["texts"]);
        assert!(texts.starts_with("main at hangs.c:"), "{texts}");
        assert!(texts.contains(": 100.0 %, ranks 0-7 (8)"), "{texts}");
        assert!(texts.contains("MPI_Recv"), "{texts}");
        picture(&mut page, "flame");
        // The slider, by the keyboard.
        page.value("document.querySelector('#flamepart').focus()");
        page.key("ArrowRight");
    }
    checker.check_tabs(&mut page);
    page.click("#tab-profile");
    page.click("#flameclasses button");
    page.wait_text("#prompt", "4 not attached]");
    page.line("focus 4");
    page.line("interrupt");
    page.wait_text("#states", "1 stopped");
    // gdb is attached to it by now, and it is named.
    page.line("profile 1");
    page.wait_text(
        "#log",
        "profile: not sampled, because gdb is attached or the program has ended:\n  rank 4",
    );
    page.line("quit");
    page.wait_text("#link", "The session is over.");
    drop(page);
    let _done = running.finish().code(0);
    drop(job);
}

#[test]
fn blocks_of_all_ranks_are_drawn_as_one_array() {
    let Some(browser) = Browser::find() else {
        return;
    };
    let place = Place::new();
    let program = place.compile("blocks", Compiler::OpenMpi);
    let sdm = Sdm::run(&place, 8).args(["--web"]);
    let (running, mut page) = open(&browser, &place, sdm.program(&program, &[]));
    page.wait_text("#states", "8 stopped");
    page.line("break relax");
    page.wait_text("#log", "breakpoint 1 at blocks.c:");
    page.click("[data-line='continue &']");
    page.wait_text("#tree", "relax");
    ask(&mut page, "field", "plot");
    page.wait_text("#heat text", "rank 7");
    select(&mut page, "stitch", "rows");
    select(&mut page, "line-length", "4");
    select(&mut page, "ghosts", "1");
    let row = |first: u32| {
        (first..first + 12)
            .map(|it| format!(" | {it}"))
            .collect::<String>()
    };
    let rows: Vec<String> = (0..4).map(|at| format!("{at}{}", row(at * 12))).collect();
    let table = format!("row{}\n{}", row(0), rows.join("\n"));
    assert_eq!(page.value(TABLE), table);
    let point = "(() => { const svg = document.querySelector('#heat'); const box = svg.getBoundingClientRect(); const of = (x, y) => [box.x + (x + 0.5) * box.width / 12, box.y + 18 + (y + 0.5) * (box.height - 18) / 4]; const [clientX, clientY] = of(6, 3); svg.dispatchEvent(new PointerEvent('pointermove', { clientX, clientY })); return document.querySelector('#heathere').textContent; })()";
    assert_eq!(page.value(point), "rank 6, row 3, column 6: 42");
    picture(&mut page, "blocks");
    // By columns each column has two ranks: its rows are those of rank 0 and 1.
    select(&mut page, "stitch", "columns");
    select(&mut page, "line-length", "2");
    let first = "document.querySelectorAll('#shown tr')[3].innerText.replaceAll('\\t', ' | ')";
    assert_eq!(
        page.value(first),
        "2 | 3 | 4 | 5 | 9 | 10 | 11 | 27 | 28 | 29 | 33 | 34 | 35"
    );
    check_stop_before(&mut page);
    // An array of one dimension is a line over all ranks.
    ask(&mut page, "slice", "plot");
    page.wait_text("#shown h3", "slice");
    select(&mut page, "stitch", "rows");
    select(&mut page, "line-length", "8");
    select(&mut page, "ghosts", "0");
    page.wait("document.querySelector('#plot').ariaLabel === 'slice over elements, from 0 to 23'");
    quit(running, page);
}

/// Draws the changes of an array since the stop before, and checks them.
fn check_stop_before(page: &mut BrowserPage) {
    page.line("continue");
    ask(page, "field", "plot");
    page.wait("[...document.querySelectorAll('#less option')].some((it) => it.value === 'before')");
    select(page, "stitch", "rows");
    select(page, "line-length", "4");
    select(page, "less", "before");
    page.wait_text("#shown h3", "field, less that of the stop before");
    let change = |at: u32| {
        if at < 2 {
            [1; 12]
        } else {
            [1, 1, 1, 1, 1, 1, 2, 2, 2, 1, 1, 1]
        }
    };
    let row = |at: u32| change(at).map(|it| format!(" | {it}")).concat();
    let heads: String = (0..12).map(|it| format!(" | {it}")).collect();
    let rows: Vec<String> = (0..4).map(|at| format!("{at}{}", row(at))).collect();
    assert_eq!(
        page.value(TABLE),
        format!("row{heads}\n{}", rows.join("\n"))
    );
}
