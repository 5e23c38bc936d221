//! A session on a page in a real browser, and the requests that the page refuses.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;

use sdm_tests::accessibility::Accessibility;
use sdm_tests::browser::Browser;
use sdm_tests::golden;
use sdm_tests::page::BrowserPage;
use sdm_tests::place::{Compiler, Place};
use sdm_tests::sdm::{Running, Sdm};
use serde_json::{Value, json};

/// A window as many people have it.
pub(super) const SIZE: (u32, u32) = (1280, 900);
/// JavaScript that gives the rows of the stacks: their depths, labels and widths of bars.
const ROWS: &str = "[...document.querySelectorAll('#tree [role=treeitem]')].map((it) => `${'  '.repeat(it.ariaLevel - 1)}${it.ariaLabel.replace(', changed', '')} | ${it.querySelector('.bar').style.width}`).join('\\n')";

/// JavaScript that gives the frames of the flame graph: what they are called, and their widths of 600.
const FRAMES: &str = "[...document.querySelectorAll('.flame')].map((it) => `${it.querySelector('title').textContent} | ${it.querySelector('rect').getAttribute('width')}`).join('\\n')";

/// Waits for an address on standard error after the position `mark`; returns it.
fn address(running: &Running<'_>, mark: usize) -> String {
    let text = running.err.wait_line(mark, "/enter/");
    let (_, address) = text.rsplit_once(' ').expect("the address is last");
    address.to_owned()
}

/// `sdm` with a page that a browser shows, where there is one.
pub(super) fn served<'a>(place: &'a Place, sdm: Sdm<'a>) -> Option<(Running<'a>, BrowserPage)> {
    let browser = Browser::find()?;
    let running = sdm.spawn();
    let address = address(&running, 0);
    let page = BrowserPage::open(&browser, place.path(), &address, SIZE);
    Some((running, page))
}

pub(super) fn work<'a>(place: &'a Place, what: &str) -> Sdm<'a> {
    let program = place.compile("work", Compiler::C);
    Sdm::run(place, 8)
        .args(["--web"])
        .program(&program, &[what])
}

fn end(page: &mut BrowserPage) {
    page.line("quit");
    page.wait_text("#prompt", "ranks started here?");
    page.line("y");
    page.wait_text("#link", "The session is over.");
}

/// Ends the session by the page.
pub(super) fn quit(running: Running<'_>, mut page: BrowserPage) {
    end(&mut page);
    finish(running, page);
}

fn finish(running: Running<'_>, page: BrowserPage) {
    assert_eq!(page.complaints, Vec::<String>::new());
    drop(page);
    let _done = running.finish().code(0);
}

/// A picture for whoever looks at the pages: only where `SDM_PICTURES` names a folder.
fn picture(page: &mut BrowserPage, name: &str) {
    if let Some(folder) = std::env::var_os("SDM_PICTURES") {
        page.picture(&PathBuf::from(folder).join(name).with_extension("png"));
    }
}

/// Folds rows of the stacks by the keyboard and by the mouse, and makes a row's ranks the focus by a click.
fn check_rows(page: &mut BrowserPage) {
    let wait_rows = |page: &mut BrowserPage, rows: usize| {
        let count = "document.querySelectorAll('#tree [role=treeitem]').length";
        page.wait(&format!("{count} === {rows}"));
    };
    // From the leaf to its caller, which is folded.
    for (key, rows) in [("ArrowLeft", 3), ("ArrowLeft", 2), ("ArrowRight", 3)] {
        page.key(key);
        wait_rows(page, rows);
    }
    for rows in [1, 3] {
        page.click("#tree .twisty");
        wait_rows(page, rows);
    }
    page.click("#tree .function");
    page.wait_text("#prompt", "[all 8: 8 stopped]");
}

#[test]
fn a_page_steps_a_program_and_shows_where_ranks_are() {
    let place = Place::new();
    let Some((running, mut page)) = served(&place, work(&place, "steps")) else {
        return;
    };
    page.wait_text("#states", "8 stopped");
    page.wait_text("#program", "work: ranks 0-7 (8)");
    page.wait_text("#tree", "main");
    page.line("break twice");
    page.wait_text("#log", "breakpoint 1 at work.c:");
    page.line("[1] set var rank = 5");
    page.click("[data-line='continue &']");
    page.wait_text("#tree", "twice");
    page.line("[6] finish");
    page.wait_text("#log", "Value returned");
    page.wait_text("#tree", "ranks 0-5,7 (7)");
    page.wait_text("#tree", "changed");
    let rows = page.value(ROWS);
    // By the keyboard: down to the last row, whose ranks become the focus.
    page.value("document.querySelector('#tree [tabindex=\"0\"]').focus()");
    page.key("End");
    page.key("Enter");
    page.wait_text("#log", "(sdm) focus 0-5,7");
    page.wait("document.querySelector('#focus').value === '0-5,7' || null");
    picture(&mut page, "steps");
    check_rows(&mut page);
    // The last of the stops as a flame graph, by the keyboard.
    page.click("#tab-profile");
    page.wait_text("#flamewhen", "all of ");
    page.value("document.querySelector('#flamepart').focus()");
    page.key("End");
    page.wait_text("#flamewhen", "stop ");
    let frames = page.value(FRAMES);
    let drawn = [&rows, &frames].map(|it| format!("{}\n", it.as_str().expect("text")));
    golden::check("web_steps", &drawn.concat());
    quit(running, page);
}

/// Checks the page's layout in windows of users: a small laptop, a phone, one at 200 %; in light and in dark colours.
fn check_look(page: &mut BrowserPage) {
    for (width, height, scale) in [(1280, 800, 1), (390, 844, 1), (640, 400, 2)] {
        for colours in ["light", "dark"] {
            let window = json!({ "width": width, "height": height, "deviceScaleFactor": scale, "mobile": false });
            page.call("Emulation.setDeviceMetricsOverride", window);
            let feature = json!([{ "name": "prefers-color-scheme", "value": colours }]);
            page.call("Emulation.setEmulatedMedia", json!({ "features": feature }));
            let found = page.value(include_str!("web_look.js"));
            picture(page, &format!("look-{width}-{colours}"));
            assert_eq!(found, json!([]), "{width} x {height}, {colours}");
        }
    }
    page.call("Emulation.clearDeviceMetricsOverride", json!({}));
    page.call("Emulation.setEmulatedMedia", json!({ "features": [] }));
    // The layout is queried after the window has its former size again.
    let (width, height) = SIZE;
    page.value(&format!("new Promise((done) => {{ const look = () => (innerWidth === {width} && innerHeight === {height} ? requestAnimationFrame(() => done(true)) : requestAnimationFrame(look)); look(); }})"));
}

#[test]
fn accessibility_checker_finds_no_barrier_on_any_tab() {
    let Some(checker) = Accessibility::find() else {
        return;
    };
    let place = Place::new();
    let Some((running, mut page)) = served(&place, work(&place, "steps")) else {
        return;
    };
    page.wait_text("#states", "8 stopped");
    page.line("break twice");
    page.click("[data-line='continue &']");
    page.wait_text("#tree", "twice");
    page.line("outliers rank");
    page.wait_text("#shown h3", "rank");
    checker.check_tabs(&mut page);
    // A graph of waits, a flame graph and an array as well.
    assert_eq!(page.value(include_str!("web_views.js")), json!([]));
    page.line("plot rank");
    page.wait_text("#shown .wide", "rank");
    checker.check_tabs(&mut page);
    // Ranks that ran for a moment: the stacks are those before.
    page.value("document.getElementById('stacks').classList.add('stale')");
    checker.check_tabs(&mut page);
    end(&mut page);
    checker.check_tabs(&mut page);
    finish(running, page);
}

/// Checks that no classes have colours that are hard to tell apart, in light and in dark colours.
fn check_colours(page: &mut BrowserPage) {
    for colours in ["light", "dark"] {
        let feature = json!([{ "name": "prefers-color-scheme", "value": colours }]);
        page.call("Emulation.setEmulatedMedia", json!({ "features": feature }));
        let near = page.value(include_str!("web_colours.js"));
        assert_eq!(near, json!([]), "{colours}");
    }
}

#[test]
fn tab_in_the_console_completes_as_the_prompt_does() {
    let place = Place::new();
    let Some((running, mut page)) = served(&place, work(&place, "steps")) else {
        return;
    };
    page.wait_text("#states", "8 stopped");
    page.line("break twice");
    page.click("[data-line='continue &']");
    page.wait_text("#tree", "twice");
    // Commands, the program's names by gdb, sets, and files.
    page.complete("outl", "outliers ");
    page.complete("[3] print num", "[3] print number ");
    page.complete("[@runn", "[@running ");
    std::fs::write(place.path().join("commands.sdm"), "").expect("it is our folder");
    page.complete("source comm", "source commands.sdm ");
    // Several that begin alike are listed, and the cursor need not be at the end.
    page.complete("info l", "info l");
    page.wait_text("#log", "links  locals");
    page.value("(() => { const it = document.querySelector('#command'); it.value = 'outl rank'; it.setSelectionRange(4, 4); })()");
    page.key("Tab");
    page.wait("document.querySelector('#command').value === 'outliers rank'");
    // Where there is no word, a second Tab leads on, as it does from an empty line.
    page.complete("print no_such_name", "print no_such_name");
    page.wait_text("#log", "(no completion)");
    page.key("Tab");
    page.wait("document.activeElement.id !== 'command'");
    page.value("document.querySelector('#command').value = ''");
    quit(running, page);
}

/// The middle of a rank's number on the map, in the window.
fn cell(page: &mut BrowserPage, rank: u32) -> (f64, f64) {
    let at = page.wait(&format!(
        "(() => {{ const it = [...document.querySelectorAll('#mapcells text')].find((it) => it.textContent === '{rank}'); \
         it.scrollIntoView({{ block: 'nearest' }}); const box = it.getBoundingClientRect(); \
         return [box.x + box.width / 2, box.y + box.height / 2]; }})()"
    ));
    let number = |at: &Value| at.as_f64().expect("a place");
    (number(&at[0]), number(&at[1]))
}

/// Moves over the map and marks ranks on it by the keyboard.
fn check_map_by_keys(page: &mut BrowserPage) {
    page.value("document.querySelector('#mapsvg').focus()");
    page.key("ArrowRight");
    page.key("ArrowRight");
    page.key("Enter");
    page.wait_text("#prompt", "[5: 1 stopped]");
    for (key, rank) in [("End", 7), ("Home", 0)] {
        page.key(key);
        page.key("Enter");
        page.wait_text("#prompt", &format!("[{rank}: 1 stopped]"));
    }
    page.chord("Shift", "ArrowRight");
    page.key("Enter");
    page.wait_text("#prompt", "[0-1: 2 stopped]");
}

/// Checks integers that a number of JavaScript cannot hold, in the rows that are shown.
fn check_large_integers(page: &mut BrowserPage, rows: &str) {
    for (word, first) in [("plot", "0"), ("stats", "min")] {
        page.line(&format!("{word} rank + 9007199254740993"));
        let is_shown = format!("startsWith('{first} 9007199254740993')");
        page.wait(&format!("{rows}.some((it) => it.{is_shown})"));
        let rows = page.value(rows).to_string();
        assert!(rows.contains("9007199254741070"), "{rows}");
    }
    let expression = page.value("document.querySelector('#expression').value");
    assert_eq!(expression, "rank + 9007199254740993");
}

#[test]
fn odd_value_is_found_by_mouse_and_by_keyboard() {
    let place = Place::new();
    let Some((running, mut page)) = served(&place, work(&place, "steps")) else {
        return;
    };
    page.wait_text("#states", "8 stopped");
    page.line("[5] set var rank = 77");
    page.wait_text("#log", "(sdm) [5] set var rank = 77");
    // By the mouse: the value, who has it, and that rank as the focus.
    page.click("#tab-values");
    page.click("#expression");
    page.call("Input.insertText", json!({ "text": "rank" }));
    page.click("[data-word='outliers']");
    let rows = "document.querySelector('#shown table') && [...document.querySelectorAll('#shown tr')].map((it) => it.innerText.replace(/\\s+/g, ' ').trim())";
    let expected = json!(["ranks value", "ranks 0-4,6-7 (7) 0", "rank 5 77"]);
    assert_eq!(page.wait(rows), expected);
    page.click("#shown tr:last-child button");
    page.wait_text("#prompt", "[5: 1 stopped]");
    // The map has the classes as colours, and says them as a list.
    page.click("#tab-map");
    let by_value = "(() => { const it = document.querySelector('#mapby'); it.value = 'value'; it.dispatchEvent(new Event('change')); return true; })()";
    page.value(by_value);
    page.wait_text("#maplegend", "rank = 77");
    let classes = page.value(
        "[...document.querySelectorAll('#mapcells [data-tasks]')].map((it) => it.dataset.tasks)",
    );
    assert_eq!(classes, json!(["0-4,6-7", "5"]));
    check_look(&mut page);
    check_colours(&mut page);
    // What is drawn with the mouse is a set, also across rows.
    let (from, to) = (cell(&mut page, 1), cell(&mut page, 3));
    page.drag(from, to);
    page.wait_text("#prompt", "[1-3: 3 stopped]");
    picture(&mut page, "map");
    // By the keyboard: the console, a key for a command, the map.
    page.value("document.activeElement.blur()");
    page.key("/");
    page.call("Input.insertText", json!({ "text": "focus 5-7" }));
    page.key("Enter");
    page.wait_text("#prompt", "[5-7: 3 stopped]");
    check_map_by_keys(&mut page);
    page.value("document.querySelector('#tab-map').focus()");
    for (key, tab) in [("ArrowRight", "waits"), ("End", "source"), ("Home", "map")] {
        page.key(key);
        page.wait(&format!("document.activeElement.id === 'tab-{tab}'"));
    }
    page.click("#tab-values");
    page.value("document.querySelector('#expression').focus()");
    page.value("document.querySelector('#expression').select()");
    page.call("Input.insertText", json!({ "text": "rank + 1" }));
    page.line("focus all");
    page.wait_text("#prompt", "[all 8: 8 stopped]");
    page.value("document.querySelector('#expression').focus()");
    page.key("Enter");
    page.wait_text("#shown h3", "rank + 1");
    let expected = json!(["ranks value", "ranks 0-4,6-7 (7) 1", "rank 5 78"]);
    assert_eq!(page.wait(rows), expected);
    check_large_integers(&mut page, rows);
    quit(running, page);
}

/// The response to a request, as far as it can be read: status, head and body.
fn ask(host: &str, request: &str) -> String {
    let mut stream = TcpStream::connect(host).expect("it listens");
    // A refusal can end the connection before all is written, or read.
    let _ = stream.write_all(request.as_bytes());
    let mut response = String::new();
    let _ = stream.read_to_string(&mut response);
    response
}

/// A client of the page that is no browser.
struct Client {
    host: String,
    cookie: String,
}

impl Client {
    fn get(&self, path: &str, headers: &str) -> String {
        let cookie = &self.cookie;
        let head = format!(
            "GET /{path} HTTP/1.1\r\n{headers}Cookie: {cookie}\r\nConnection: close\r\n\r\n"
        );
        ask(&self.host, &head)
    }

    fn line(&self, origin: &str, line: &str) -> String {
        let (host, cookie, length) = (&self.host, &self.cookie, line.len());
        let head = format!(
            "POST /line HTTP/1.1\r\nHost: {host}\r\nCookie: {cookie}\r\n{origin}Connection: close\r\nContent-Length: {length}\r\n\r\n"
        );
        ask(host, &(head + line))
    }
}

fn check_status(response: &str, status: &str) {
    let head = format!("HTTP/1.1 {status} ");
    assert!(response.starts_with(&head), "{response}");
}

#[test]
fn requests_without_cookie_or_of_other_origins_get_nothing() {
    let place = Place::new();
    let running = work(&place, "steps").spawn();
    let address = address(&running, 0);
    let (host, path) = address["http://".len()..].split_once('/').expect("a path");
    let mut client = Client {
        host: host.to_owned(),
        cookie: String::new(),
    };
    let own = format!("Host: {host}\r\n");
    for (path, headers, status) in [
        (path, "Host: evil.example\r\n".to_owned(), "421"),
        (path, format!("{own}Origin: http://evil.example\r\n"), "403"),
        (&path[..path.len() - 1], own.clone(), "403"),
        ("", own.clone(), "403"),
        ("events", own.clone(), "403"),
        ("main.js", own.clone(), "403"),
    ] {
        let response = client.get(path, &headers);
        check_status(&response, status);
        assert!(!response.contains("Set-Cookie"), "{response}");
    }
    let mark = running.err.mark();
    let entered = client.get(path, &own);
    check_status(&entered, "200");
    let (_, cookie) = entered.split_once("Set-Cookie: ").expect("a cookie");
    cookie
        .split(';')
        .next()
        .expect("a pair")
        .clone_into(&mut client.cookie);
    // The same address again, also of the browser that has used it.
    check_status(&client.get(path, &own), "403");
    let next = running
        .err
        .wait_line(mark, "[web] address for another browser: http://");
    assert!(!next.ends_with(path), "{next}");
    // With the cookie a page of the same host at another port gets nothing either.
    for origin in ["", "Origin: null\r\n", "Origin: http://127.0.0.1:1\r\n"] {
        check_status(&client.line(origin, "kill"), "403");
    }
    let other = format!("{own}Sec-Fetch-Site: same-site\r\n");
    check_status(&client.get("events", &other), "403");
    let long = client.get(&"a".repeat(1 << 20), &own);
    assert!(
        long.is_empty() || long.starts_with("HTTP/1.1 413 "),
        "{long:.80}"
    );
    // No process has the token in its command line.
    let token = path.rsplit('/').next().expect("a token");
    assert_eq!(place.pids(token), [0_u32; 0]);
    for line in ["quit", "y"] {
        let origin = format!("Origin: http://{host}\r\n");
        check_status(&client.line(&origin, line), "200");
    }
    let _done = running.finish().code(0);
}

#[test]
fn hostile_output_and_values_cannot_script_a_page() {
    let place = Place::new();
    let Some((running, mut page)) = served(&place, work(&place, "hostile")) else {
        return;
    };
    page.click("[data-line='continue &']");
    page.wait_text("#states", "8 stopped at a crash");
    page.wait_text("#log", "SIGSEGV");
    page.line("focus all");
    page.line("up");
    page.wait_text("#locals", "</td><script>document.title = 'owned'</script>");
    for hostile in [
        "</pre><script>document.title = 'owned'</script>",
        "<img src=x onerror=alert(1)> & \"quoted\" 'too' <!-- -->]]>",
        "\\x1b[2J",
    ] {
        page.wait_text("#log", hostile);
    }
    // An expression that is shown where its values are.
    page.line("outliers \"<svg onload=alert(1)>\"");
    page.wait_text("#shown", "<svg onload=alert(1)>");
    let scripts = page.value("[...document.scripts].map((it) => it.src.replace(/.*\\//, ''))");
    assert_eq!(scripts, serde_json::json!(["main.js"]));
    let strange = "document.querySelectorAll('img, iframe, object, #log :not(pre)').length";
    assert_eq!(page.value(strange), 0);
    let title = page.value("document.title");
    assert_eq!(title, "work (8) - sdm");
    picture(&mut page, "hostile");
    quit(running, page);
}

/// Every renderer of the page is given records whose texts are what a page must not take for markup, or for anything but text.
#[test]
fn records_of_hostile_strings_are_shown_as_text() {
    let place = Place::new();
    let Some((running, mut page)) = served(&place, work(&place, "steps")) else {
        return;
    };
    page.wait_text("#tree", "main");
    let otherwise = page.value(include_str!("web_views.js"));
    assert_eq!(otherwise, json!([]));
    check_look(&mut page);
    let found = page.value(include_str!("web_fuzz.js"));
    assert_eq!(found, serde_json::json!({ "problems": [], "records": 400 }));
    assert_eq!(page.value("document.title"), "work (8) - sdm");
    quit(running, page);
}
