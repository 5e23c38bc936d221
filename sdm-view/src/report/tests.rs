//! Tests with reports of artificial sessions, including hostile ones.

use std::time::{Duration, SystemTime};

use roxmltree::{Document, ParsingOptions};
use sdm_debug::event::Stream;
use sdm_debug::reply::{Frame, StackFrame, Stop, StopReason, TaskStacks};
use sdm_debug::{Reply, TaskState};
use sdm_idset::{IdSet, TaskId};
use serde_json::Value;

use super::*;
use crate::item::{Gathered, Happening, Item};

/// Text that would become markup or control sequences without escaping.
const HOSTILE: &str = "</pre><script>x('1')</script> & \"q\" \x1b[2J\u{202e}\u{0}\u{fffe}]]>";

fn set(text: &str) -> IdSet {
    text.parse().unwrap()
}

fn frames(places: &[(&str, u32)]) -> Reply {
    let own = |(function, line): &(&str, u32)| StackFrame::own(*function, "halo.c", *line);
    let frames = places.iter().map(own).collect();
    Reply::Stacks(TaskStacks::of_main(frames, 0))
}

fn stacks(classes: Vec<(IdSet, Reply)>) -> Item {
    Item::Answer(Gathered {
        command: "stacks".to_owned(),
        to: IdSet::union_all(classes.iter().map(|(tasks, _)| tasks)),
        ok: classes,
        missing: vec![(set("6"), HOSTILE.to_owned())],
        ..Gathered::default()
    })
}

fn crash(function: &str) -> Happening {
    Happening::Stopped(Stop {
        reason: StopReason::Signal {
            name: "SIGSEGV".to_owned(),
            meaning: "Segmentation fault".to_owned(),
        },
        frame: Some(Frame {
            level: 0,
            function: function.to_owned(),
            file: "halo.c".to_owned(),
            path: "/halo.c".to_owned(),
            line: 97,
            module: String::new(),
            args: Vec::new(),
        }),
        inside: None,
        source: Some(HOSTILE.to_owned()),
    })
}

/// A session of 8 tasks in which every text is hostile.
fn hostile() -> Report {
    let mut recorder = Recorder::new(vec![Fact::new("command line", HOSTILE)], Names::ranks());
    let at = Duration::from_millis(1500);
    let happened = |what| Item::Happened {
        tasks: set("3"),
        what,
    };
    for item in [
        Item::Start {
            session: HOSTILE.to_owned(),
            tasks: IdSet::all_below(8),
            programs: vec![(IdSet::all_below(8), vec![HOSTILE.to_owned()])],
            pids: Vec::new(),
        },
        Item::Output {
            tasks: set("0-7"),
            stream: Stream::Stdout,
            line: [HOSTILE.as_bytes(), b"\xff\xfe"].concat(),
            complete: true,
        },
        Item::LauncherLine(HOSTILE.to_owned()),
        happened(crash(HOSTILE)),
        Item::Lost {
            tasks: set("7"),
            why: HOSTILE.to_owned(),
        },
        Item::Echo {
            line: HOSTILE.to_owned(),
        },
        stacks(vec![
            (set("0-2,4-5"), frames(&[("main", 1), (HOSTILE, 2)])),
            (set("3"), frames(&[("main", 1), ("misbehave", 3)])),
        ]),
    ] {
        recorder.record(at, &item);
    }
    let look = Look {
        task: TaskId(3),
        tasks: set("3"),
        frames: vec![LookFrame {
            level: 2,
            place: HOSTILE.to_owned(),
            source: HOSTILE.to_owned(),
            locals: Some(vec![(HOSTILE.to_owned(), HOSTILE.to_owned())]),
        }],
        more: true,
    };
    recorder.look(&set("3"), None, vec![look.clone()], vec![look]);
    recorder.end(139, Some(HOSTILE.to_owned()));
    let states = vec![RankRow {
        program: String::new(),
        tasks: set("3"),
        state: TaskState::Stopped,
        last: Some(crash(HOSTILE)),
        health: None,
        place: None,
    }];
    let report = recorder.report(&IdSet::all_below(8), states, at);
    Report {
        began: SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000),
        ..report
    }
}

#[test]
fn report_frames_are_numbered_as_in_backtrace() {
    let report = hostile();
    let text = text(&report);
    assert!(text.contains("\n  #2  "), "{text}");
    assert!(html(&report).contains("<li value=\"2\">"));
}

#[test]
fn text_report_says_how_many_variables_it_leaves_out() {
    let mut report = hostile();
    let variables = (0..25).map(|at| (format!("v{at}"), at.to_string()));
    report.crashed[0].frames[0].locals = Some(variables.collect());
    let text = text(&report);
    let told = "v3 = 3\n        (21 more variables in the page and the JSON)\n";
    assert!(text.contains(told), "{text}");
}

#[test]
fn text_report_shows_whole_mpi_errors_and_the_last_one() {
    let mut report = hostile();
    let error = |number: usize| MpiError {
        tasks: set("1"),
        what: format!("M{number} {}, the difference", "words ".repeat(20)),
        below: Vec::new(),
    };
    report.mpi_errors = (1..=7).map(error).collect();
    let text = text(&report);
    let numbers: Vec<_> = text
        .lines()
        .filter_map(|line| line.strip_prefix("  rank 1: M"))
        .filter_map(|line| line.split(' ').next())
        .collect();
    assert_eq!(numbers, ["1", "2", "3", "4", "7"], "{text}");
    assert!(text.contains("\n  and 2 more\n"), "{text}");
    assert_eq!(text.matches("the difference\n").count(), 5, "{text}");
    assert!(
        text.lines().all(|line| line.chars().count() <= 100),
        "{text}"
    );
}

#[test]
fn report_names_the_python_error_of_a_failed_run() {
    let mut recorder = Recorder::new(Vec::new(), Names::ranks());
    let at = Duration::from_secs(1);
    let lines = [
        ("0-1", "Traceback (most recent call last):"),
        ("1", "  File \"solve.py\", line 3, in <module>"),
        ("0", "    solve()"),
        ("1", "ValueError: no pivot"),
        ("0", "KeyError: 'x'"),
        ("1", "after it"),
    ];
    for (tasks, line) in lines {
        let tasks = set(tasks);
        let line = line.as_bytes().to_vec();
        recorder.record(
            at,
            &Item::Output {
                tasks,
                stream: Stream::Stderr,
                line,
                complete: true,
            },
        );
    }
    let first = |recorder: &Recorder| {
        let report = recorder.report(&IdSet::all_below(2), Vec::new(), at);
        report.first.map(|first| (first.tasks, first.what))
    };
    let error = "Python error: ValueError: no pivot".to_owned();
    recorder.end(0, None);
    assert_eq!(first(&recorder), None, "a program can print one and go on");
    recorder.end(121, None);
    assert_eq!(first(&recorder), Some((set("1"), error.clone())));
    let what = crash("leave");
    let tasks = set("1");
    recorder.record(at, &Item::Happened { tasks, what });
    let (_, told) = first(&recorder).unwrap();
    assert!(told.ends_with(&format!(" ({error})")), "{told}");
}

/// `count` tasks in `places` places.
fn spread(count: u32, places: u32) -> Report {
    let mut recorder = Recorder::new(Vec::new(), Names::ranks());
    let class = |place: u32| {
        let tasks = (0..count).filter(|task| task % places == place).map(TaskId);
        let name = format!("function_{place}");
        let frames = frames(&[("main", 1), (&name, place + 1)]);
        (tasks.collect(), frames)
    };
    let classes: Vec<_> = (0..places).map(class).collect();
    recorder.record(Duration::ZERO, &stacks(classes));
    recorder.report(&IdSet::all_below(count), Vec::new(), Duration::ZERO)
}

fn parsed(text: &str) -> Document<'_> {
    let options = ParsingOptions {
        allow_dtd: true,
        ..ParsingOptions::default()
    };
    Document::parse_with_options(text, options).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// The text of all elements with a name.
fn text_of(document: &Document<'_>, name: &str) -> String {
    let elements = document
        .descendants()
        .filter(|node| node.has_tag_name(name));
    let texts = elements.flat_map(|node| node.descendants().filter_map(|node| node.text()));
    texts.collect::<Vec<_>>().join("\n")
}

#[test]
fn hostile_text_is_escaped_in_html() {
    let page = html(&hostile());
    let document = parsed(&page);
    let allowed = [
        "html", "head", "meta", "title", "style", "body", "main", "header", "section", "h1", "h2",
        "h3", "p", "strong", "small", "code", "pre", "table", "tr", "th", "td", "ul", "ol", "li",
        "br", "details", "summary", "svg", "g", "rect", "text", "b", "i", "em",
    ];
    for node in document.descendants().filter(|node| node.is_element()) {
        let name = node.tag_name().name();
        assert!(allowed.contains(&name), "<{name}>");
        for attribute in node.attributes() {
            let name = attribute.name();
            assert!(
                !name.starts_with("on") && !["src", "href"].contains(&name),
                "{name}"
            );
        }
    }
    let shown = "</pre><script>x('1')</script> & \"q\" \\x1b[2J\\u{202e}\\x00\\u{fffe}]]>";
    for name in ["h1", "title", "pre", "td", "li", "code", "text"] {
        let text = text_of(&document, name);
        let wanted = if name == "text" {
            "</pre><script>"
        } else {
            shown
        };
        assert!(text.contains(wanted), "<{name}>: {text}");
    }
    assert!(text_of(&document, "pre").contains("\\xff\\xfe"), "{page}");
    let policy = document.descendants().find_map(|node| {
        node.attribute("content")
            .filter(|text| text.contains("'none'"))
    });
    assert!(policy.is_some_and(|policy| policy.starts_with("default-src 'none'")));
    let xml = junit(&hostile());
    let document = parsed(&xml);
    assert!(text_of(&document, "failure").contains("<script>"));
    assert_eq!(document.root_element().attribute("failures"), Some("2"));
}

#[test]
fn report_sections_have_their_order() {
    let page = html(&hostile());
    let document = parsed(&page);
    let ids = document
        .descendants()
        .filter(|node| node.has_tag_name("section"));
    let ids: Vec<_> = ids.filter_map(|node| node.attribute("id")).collect();
    let expect = [
        "first", "stacks", "outliers", "output", "timeline", "commands", "run", "left_out",
    ];
    assert_eq!(ids, expect);
}

#[test]
fn long_reason_is_shown_to_its_end() {
    let mut found = sdm_diagnose::judge(&sdm_diagnose::Observed::default());
    let ranks = ["rank 3 waits for rank 2"; 8].join(", and ");
    found.conclusion = format!("{ranks}; one of these two ranks is wrong");
    let mut report = spread(1, 1);
    report.diagnosis = Some(found.clone());
    let screen = text(&report);
    let reason = screen.lines().skip_while(|line| !line.starts_with("why: "));
    let reason: Vec<_> = reason.take(3).map(str::trim).collect();
    assert!(reason.join(" ").ends_with(&found.conclusion), "{screen}");
    // A longer one has three lines.
    found.conclusion = ranks.repeat(4);
    report.diagnosis = Some(found);
    let longer = text(&report);
    assert_eq!(longer.lines().count(), screen.lines().count(), "{longer}");
}

#[test]
fn text_report_fits_one_screen() {
    for report in [hostile(), spread(10_000, 500), spread(1, 1)] {
        let screen = text(&report);
        let lines: Vec<_> = screen.lines().collect();
        assert!(lines.len() <= 42, "{} lines: {screen}", lines.len());
        for line in lines {
            assert!(line.chars().count() <= 100, "{line}");
            assert!(!line.contains(|c: char| c.is_control()), "{line:?}");
        }
    }
    let screen = text(&hostile());
    assert!(
        screen.contains("first: rank 3, after 1.5 s: received signal SIGSEGV"),
        "{screen}"
    );
    assert!(screen.contains("exit code 139, 8 tasks"), "{screen}");
}

#[test]
fn stack_picture_stays_in_its_frame_for_any_size() {
    for (count, places) in [(1, 1), (10_000, 3), (10_000, 500), (8, 8)] {
        let page = html(&spread(count, places));
        let document = parsed(&page);
        let number = |node: &roxmltree::Node<'_, '_>, name| -> f64 {
            node.attribute(name).unwrap().parse().unwrap()
        };
        let mut rectangles = 0;
        for group in document.descendants().filter(|node| node.has_tag_name("g")) {
            let rect = group
                .children()
                .find(|node| node.has_tag_name("rect"))
                .unwrap();
            let (left, width) = (number(&rect, "x"), number(&rect, "width"));
            assert!(
                left >= 0.0 && width > 0.0 && left + width <= 1000.01,
                "{left} {width}"
            );
            rectangles += 1;
            if let Some(text) = group.children().find(|node| node.has_tag_name("text")) {
                let characters = text.text().unwrap().chars().count();
                let end = number(&text, "x") + 6.7 * f64::from(u32::try_from(characters).unwrap());
                assert!(end <= left + width + 0.1, "{end} > {left} + {width}");
            }
        }
        assert_eq!(rectangles, places + 1);
        assert!(
            page.len() < 400_000,
            "{places} places: {} bytes",
            page.len()
        );
    }
}

#[test]
fn json_report_has_version_and_main_fields() {
    let value: Value = serde_json::from_str(&json(&hostile())).unwrap();
    assert_eq!(
        (&value["schema"], &value["v"]),
        (&"sdm-report".into(), &1.into())
    );
    assert_eq!(value["end"]["code"], 139);
    assert_eq!(value["began"], "2023-11-14T22:13:20.000Z");
    assert_eq!(value["first"]["tasks"], "3");
    assert_eq!(
        value["crashed"][0]["frames"][0]["locals"][0]["name"],
        HOSTILE
    );
    assert_eq!(value["stacks"]["stacks"].as_array().unwrap().len(), 2);
    assert_eq!(value["lost"][0]["tasks"], "7");
    assert!(value["output"][0]["lines"][0]["bytes_hex"].is_string());
}

#[test]
fn running_session_is_reported_as_not_ended() {
    let report = spread(4, 2);
    assert_eq!(
        report.outcome(),
        "still running when this report was written"
    );
    assert!(html(&report).contains("class=\"open\""));
    let none = Report::of_no_session(Vec::new(), 124, "no mpirun on PATH".to_owned());
    assert!(text(&none).starts_with("sdm report: no mpirun on PATH\n"));
    parsed(&html(&none));
}

#[test]
fn running_ranks_are_shown_with_their_places() {
    let mut recorder = Recorder::new(Vec::new(), Names::ranks());
    let classes = vec![
        (set("0-2"), frames(&[("main", 1), ("MPI_Recv", 44)])),
        (set("3,5"), frames(&[("main", 1), ("compute", 7)])),
        (set("0"), frames(&[("helper", 9)])),
    ];
    recorder.record(Duration::ZERO, &stacks(classes));
    let running = RankRow {
        program: String::new(),
        tasks: set("0-5"),
        state: TaskState::Running,
        last: None,
        health: None,
        place: None,
    };
    let states = recorder.placed(vec![running], &set("0-3"));
    let report = recorder.report(&IdSet::all_below(6), states, Duration::ZERO);
    let screen = text(&report);
    let states = "\n  ranks 0-2 (3): waiting in MPI_Recv () at halo.c:44\n  ranks 4-5 (2): running\n  \
                  rank 3: running in compute () at halo.c:7\n";
    assert!(screen.contains(states), "{screen}");
    let cells = "<td>waiting</td><td>in MPI_Recv () at halo.c:44</td>";
    assert!(html(&report).contains(cells), "{}", html(&report));
    let value: Value = serde_json::from_str(&json(&report)).unwrap();
    let rows = &value["states"];
    assert_eq!(rows[0]["state"], "running");
    assert_eq!(rows[0]["place"], "MPI_Recv () at halo.c:44");
    assert!(rows[1]["place"].is_null());
}

#[test]
fn restarted_job_has_its_own_report() {
    let mut recorder = Recorder::new(Vec::new(), Names::ranks());
    let at = Duration::from_secs(1);
    let start = Item::Start {
        session: "one".to_owned(),
        tasks: IdSet::all_below(4),
        programs: vec![(IdSet::all_below(4), vec!["./halo".to_owned()])],
        pids: Vec::new(),
    };
    let crashed = Item::Happened {
        tasks: set("3"),
        what: crash("misbehave"),
    };
    let output = Item::Output {
        tasks: set("0"),
        stream: Stream::Stdout,
        line: b"old".to_vec(),
        complete: true,
    };
    for item in [&start, &crashed, &output, &start] {
        recorder.record(at, item);
    }
    let report = recorder.report(&IdSet::all_below(4), Vec::new(), at);
    assert!(report.first.is_none() && report.output.is_empty());
    let told: Vec<_> = report
        .timeline
        .iter()
        .map(|moment| moment.what.as_str())
        .collect();
    assert_eq!(told.last(), Some(&"started anew"), "{told:?}");
    assert_eq!(told.len(), 2);
}

#[test]
fn report_keeps_earlier_stacks_that_a_later_query_lacks() {
    let look = |task: u32, frames: usize| Look {
        task: TaskId(task),
        tasks: IdSet::single(TaskId(task)),
        frames: vec![
            LookFrame {
                level: 0,
                place: "spread (n=3) at halo.c:97".to_owned(),
                source: String::new(),
                locals: None,
            };
            frames
        ],
        more: false,
    };
    let mut recorder = Recorder::new(Vec::new(), Names::ranks());
    let everybody = set("0-7");
    let seen = |tasks: &str| {
        let Item::Answer(answer) = stacks(vec![(set(tasks), frames(&[("main", 97)]))]) else {
            panic!("no answer");
        };
        answer.stacks()
    };
    let seen_first = vec![look(3, 2), look(5, 1)];
    recorder.look(&everybody, seen("0-7"), seen_first, vec![look(7, 1)]);
    // The stack of the crashed rank came too late, and so did those of all.
    recorder.look(&everybody, seen("0-2,4-7"), vec![look(3, 0)], Vec::new());
    recorder.look(&everybody, None, Vec::new(), Vec::new());
    let report = recorder.report(&set("0-7"), Vec::new(), Duration::ZERO);
    assert_eq!(report.crashed, [look(3, 2), look(5, 1)]);
    assert_eq!(report.outliers, [look(7, 1)]);
    assert_eq!(report.stacks, seen("0-7"));
    recorder.look(&set("5"), seen("5"), vec![look(5, 3)], Vec::new());
    let report = recorder.report(&set("0-7"), Vec::new(), Duration::ZERO);
    assert_eq!(report.crashed, [look(5, 3), look(3, 2)]);
    assert_eq!(report.stacks, seen("5"), "those who stand have answered");
}
