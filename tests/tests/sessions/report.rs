//! Report of `sdm run --batch`, however the run ends, and `report` at the prompt.

use std::fs;
use std::path::Path;

use nix::sys::signal::Signal;
use roxmltree::{Document, ParsingOptions};
use sdm_tests::browser::Browser;
use sdm_tests::place::{Compiler, Place};
use sdm_tests::processes::signal;
use sdm_tests::run::until;
use sdm_tests::sdm::Sdm;
use serde_json::Value;

fn batch<'a>(place: &'a Place, options: &[&str], what: &str) -> Sdm<'a> {
    let program = place.path().join("work");
    Sdm::run(place, 3)
        .args(["--batch"])
        .args(options)
        .lines(&["[1] set var rank = 1"])
        .program(&program, &[what])
}

fn read(place: &Place, name: &str) -> String {
    let path = place.path().join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn record(place: &Place, name: &str) -> Value {
    serde_json::from_str(&read(place, name)).expect("it is JSON")
}

fn parsed(text: &str) -> Document<'_> {
    let options = ParsingOptions {
        allow_dtd: true,
        ..ParsingOptions::default()
    };
    Document::parse_with_options(text, options).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("the folder is there");
    let name = |entry: std::io::Result<fs::DirEntry>| entry.map(|entry| entry.file_name());
    let mut names: Vec<_> = entries
        .map(|entry| {
            name(entry)
                .expect("it can be read")
                .to_string_lossy()
                .into_owned()
        })
        .filter(|name| name.contains("report"))
        .collect();
    names.sort();
    names
}

#[test]
fn report_of_a_crash_escapes_hostile_output() {
    let place = Place::new();
    let _program = place.compile("work", Compiler::C);
    let done = batch(&place, &["--junit", "report.xml"], "hostile")
        .finish()
        .code(139);
    assert!(done.err.contains("sdm report: rank"), "{done}");
    assert!(
        done.err.contains("report.html has the full report"),
        "{done}"
    );
    let files = ["report.html", "report.json", "report.txt", "report.xml"];
    assert_eq!(names(place.path()), files);

    let page = read(&place, "report.html");
    let document = parsed(&page);
    assert!(
        !document
            .descendants()
            .any(|node| node.has_tag_name("script") || node.has_tag_name("img"))
    );
    let texts = document.descendants().filter_map(|node| node.text());
    let text: String = texts.collect();
    for part in [
        "</pre><script>document.title = 'owned'</script>",
        "</td><script>",
        "\\x1b[2J\\x1b]0;owned\\x07 steering \\x0d back \\x9b31m",
        "invalid \\xff\\xfe\\xc3( and \\u{202e} turned",
        "write_through",
        "be_hostile",
        "GNU gdb",
        "build-id",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let report = record(&place, "report.json");
    assert_eq!(report["end"]["code"], 139);
    assert_eq!(report["tasks"], "0-2");
    assert!(
        report["first"]["what"]
            .as_str()
            .is_some_and(|what| what.contains("SIGSEGV"))
    );
    let place_of = &report["crashed"][0]["frames"][0]["place"];
    assert!(
        place_of
            .as_str()
            .is_some_and(|place| place.starts_with("write_through"))
    );
    let xml = read(&place, "report.xml");
    assert_eq!(parsed(&xml).root_element().attribute("name"), Some("work"));

    let Some(browser) = Browser::find() else {
        return;
    };
    let file = place.path().join("report.html");
    let shown = browser.document(&file, 1200);
    assert!(shown.contains("<title>sdm: rank"), "{shown}");
    for width in [500, 1200] {
        let measured = browser.measure(&file, width);
        let number = |name: &str| measured[name].as_i64().expect("it is a number");
        assert!(number("width") <= number("window"), "{measured}");
        assert_eq!(number("over"), 0, "{measured}");
        assert!(number("texts") >= 3 && number("seen") > 1000, "{measured}");
    }
}

#[test]
fn html_report_does_not_break_names_in_tables() {
    let Some(browser) = Browser::find() else {
        return;
    };
    let place = Place::new();
    let _program = place.compile("work", Compiler::C);
    let _done = batch(&place, &[], "segv").finish().code(139);
    let measured = browser.measure(&place.path().join("report.html"), 800);
    assert_eq!(measured["split"], 0, "{measured}");
}

#[test]
fn termination_signal_writes_the_report_first() {
    let place = Place::new();
    let _program = place.compile("work", Compiler::C);
    for (number, code, said) in [
        (Signal::SIGTERM, 143, "signal 15 (SIGTERM)"),
        (
            Signal::SIGUSR1,
            120,
            "SIGUSR1 was received: the time limit is near",
        ),
    ] {
        let running = batch(&place, &["--on-timeout", "ranks"], "spin").spawn();
        running.out.wait(0, "spinning");
        signal(running.pid(), number);
        let _done = running.finish().code(code);
        let report = record(&place, "report.json");
        assert_eq!(report["end"]["reason"], said);
        let places = report["stacks"]["stacks"].to_string();
        assert!(places.contains("\"spin\""), "{report}");
        assert!(read(&place, "report.txt").contains("where the ranks were:"));
    }
}

#[test]
fn last_written_report_survives_sigkill() {
    let place = Place::new();
    let _program = place.compile("work", Compiler::C);
    let running = batch(&place, &["--report", "deep.html"], "spin").spawn();
    running.out.wait(0, "spinning");
    // The report is rewritten every two seconds.
    let written = || {
        record(&place, "deep.json")["output"]
            .to_string()
            .contains("spinning")
    };
    until("it is written", written);
    signal(running.pid(), Signal::SIGKILL);
    let done = running.finish();
    assert_eq!(done.code, None, "{done}");
    assert!(record(&place, "deep.json")["end"].is_null());
    let page = read(&place, "deep.html");
    assert!(
        page.contains("still running when this report was written"),
        "{page}"
    );
    parsed(&page);
}

#[test]
fn unwritable_report_and_failed_start_are_reported() {
    let place = Place::new();
    let _program = place.compile("work", Compiler::C);
    let done = batch(&place, &["--report", "none/r.html"], "steps")
        .finish()
        .code(125);
    let problem = "no report: cannot write none/r.html: No such file";
    assert_eq!(done.out.matches(problem).count(), 1, "{done}");
    let done = batch(&place, &["--no-report"], "steps").finish().code(0);
    assert!(!done.err.contains("sdm report"), "{done}");
    assert_eq!(names(place.path()), Vec::<String>::new());
    let done = batch(&place, &["--launcher", "/no/such"], "steps")
        .finish()
        .code(124);
    assert!(done.err.contains("/no/such"), "{done}");
    assert_eq!(record(&place, "report.json")["end"]["code"], 124);

    let program = place.path().join("work");
    let lines = ["break twice", "continue", "report here.html"];
    let done = Sdm::run(&place, 2)
        .lines(&lines)
        .program(&program, &[])
        .finish()
        .code(0);
    done.expect_part(
        "report here.html",
        "here.html, here.txt and here.json are written",
    );
    let page = read(&place, "here.html");
    assert!(page.contains("step_through"), "{page}");
    assert!(record(&place, "here.json")["end"].is_null());
}

#[test]
fn report_of_a_hang_has_the_places_of_running_ranks() {
    let place = Place::new();
    let program = place.compile("work", Compiler::C);
    let _done = Sdm::run(&place, 3)
        .args(["--batch", "--hang-timeout", "1", "--on-timeout", "ranks"])
        .program(&program, &["spin"])
        .finish()
        .code(120);
    let report = record(&place, "report.json");
    let states = report["states"].as_array().expect("an array");
    let running = states.iter().filter(|row| row["state"] == "running");
    let places: Vec<_> = running.map(|row| row["place"].as_str()).collect();
    let is_known = |place: &Option<&str>| place.is_some_and(|at| at.contains(" at work.c:"));
    assert!(
        !places.is_empty() && places.iter().all(is_known),
        "{report}"
    );
    let text = read(&place, "report.txt");
    assert!(text.contains(": running in "), "{text}");
}
