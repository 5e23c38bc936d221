//! Snapshots of every view, and tests of its keys.

mod forms;
mod linear;
mod mouse;

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use sdm_runtime::model::states::{JOB, MANAGER, NODE, NODE_EXTRA, NODE_PROCESSES, PROCESS};
use sdm_runtime::wire::event::Kind;

use crate::snapshot;
use crate::{Cluster, Facts, Item, Output, Request, Style, Top};

const NOW: u64 = 1_800_000_000;

fn item(kind: Kind, parent: &str, ids: &str, attributes: &[(&str, &str)]) -> Item {
    let attributes = attributes.iter();
    Item {
        cluster: "here".to_owned(),
        kind,
        parent: parent.to_owned(),
        ids: ids.to_owned(),
        attributes: attributes
            .map(|(id, value)| ((*id).to_owned(), (*value).to_owned()))
            .collect(),
        sets: Vec::new(),
    }
}

/// Managers, nodes, jobs and processes in every possible state.
fn facts() -> Facts {
    let mut facts = Facts::default();
    for (at, state) in MANAGER.words.iter().enumerate() {
        facts.clusters.push(Cluster {
            name: ["c0", "here", "c2", "c3", "c4", "c5", "c6"][at].to_owned(),
            rm_type: "slurm".to_owned(),
            agent_args: vec!["--clusters=a b".to_owned()],
            host: "me@login".to_owned(),
            state: (*state).to_owned(),
            since: NOW - 3_723,
            reason: if *state == "ERROR" {
                "no license\x1b[2J".to_owned()
            } else {
                String::new()
            },
            stale: *state == "ERROR",
            user: "ann".to_owned(),
            ..Cluster::default()
        });
    }
    let items = &mut facts.items;
    items.push(item(
        Kind::Machine,
        "1",
        "2",
        &[("name", "blue"), ("machineState", "UP")],
    ));
    items.push(item(
        Kind::Machine,
        "1",
        "3",
        &[("name", "grey"), ("machineState", "DOWN")],
    ));
    items.push(item(Kind::Queue, "1", "4", &[("name", "batch")]));
    let mut id = 100;
    for state in NODE.words {
        for (used, processes) in uses() {
            let (name, ids) = (format!("n{id}"), id.to_string());
            let known = [
                ("name", &*name),
                ("nodeState", state),
                ("nodeExtraState", used),
                ("nodeProcessState", processes),
            ];
            items.push(item(Kind::Node, "2", &ids, &known));
            id += 1;
        }
    }
    for (number, state) in (1..).zip(JOB.words) {
        let (ids, number) = ((200 + number).to_string(), number.to_string());
        let known = [
            ("systemJobId", &*number),
            ("name", "halo 世界"),
            ("userId", if *state == "PENDING" { "bob" } else { "ann" }),
            ("jobState", state),
            ("queueId", "4"),
            ("jobNumProcs", "1000000"),
            ("startTime", "1799999000"),
            ("endTime", "1799999100"),
        ];
        items.push(item(Kind::Job, "1", &ids, &known));
    }
    items.extend(processes());
    facts.output = Some(Output {
        path: "/home/ann/out".to_owned(),
        lines: vec!["step 1".to_owned(), "step 2\x07".to_owned()],
        error: String::new(),
    });
    facts
}

/// The processes of job 3: a hundred in each state, and the first of them individually.
fn processes() -> Vec<Item> {
    let mut items = Vec::new();
    let mut first = 1000;
    for state in PROCESS.words {
        let ids = format!("{first}-{}", first + 99);
        let known = [("processState", *state), ("processNodeId", "100")];
        let mut process = item(Kind::Process, "203", &ids, &known);
        let ranks = format!("{}-{}", first - 1000, first - 901);
        process.sets = vec![
            ("processIndex".to_owned(), ranks),
            ("processPID".to_owned(), ids),
        ];
        items.push(process);
        first += 100;
    }
    let known = [("processState", "STARTING"), ("processPID", "1000")];
    items.push(item(Kind::Process, "203", "1000", &known));
    items
}

fn top(style: Style) -> Top {
    let mut top = Top::new(style, NOW);
    top.handle_facts(facts());
    top
}

const PLAIN: Style = Style {
    color: false,
    ascii: false,
    palette: crate::Palette::Terminal,
    linear: false,
};

fn keys(top: &mut Top, keys: &str) {
    for c in keys.chars() {
        let code = match c {
            '\n' => KeyCode::Enter,
            '\t' => KeyCode::Tab,
            '\x1b' => KeyCode::Esc,
            '↓' => KeyCode::Down,
            '↑' => KeyCode::Up,
            '→' => KeyCode::Right,
            c => KeyCode::Char(c),
        };
        top.handle_key(KeyEvent::new(code, KeyModifiers::NONE));
    }
}

fn frame(top: &mut Top, width: u16, height: u16) -> String {
    snapshot::drawn(|frame| top.draw(frame), width, height)
}

fn check(name: &str, top: &mut Top) {
    snapshot::check(name, |frame| top.draw(frame));
}

#[test]
fn every_view_matches_its_snapshot() {
    for (name, typed) in [
        ("managers", "1"),
        ("machines", "2"),
        ("nodes", "2\n→→"),
        ("jobs", "3"),
        ("jobs_filtered", "/running\n"),
        ("processes", "3↓↓\t↓"),
        ("process", "3↓↓\t\n"),
        ("help", "?"),
        ("menu", "↓↓\n"),
        ("confirm", "c"),
        ("command", ":submit -n 2 -- ./a"),
        ("refused", "↓h"),
        ("submit", "n./app -x\t\t\t8"),
        ("add", "1aphys"),
        ("edit", "1↓e"),
        ("process_output", "3↓↓\t\n\t↑"),
    ] {
        let mut top = top(PLAIN);
        keys(&mut top, typed);
        check(name, &mut top);
    }
    let mut empty = Top::new(PLAIN, NOW);
    check("nothing", &mut empty);
}

#[test]
fn ascii_style_draws_only_ascii() {
    let style = Style {
        color: false,
        ascii: true,
        palette: crate::Palette::Terminal,
        linear: false,
    };
    let mut facts = facts();
    facts.items.retain(|it| it.kind != Kind::Job);
    for typed in ["1", "2", "3", "4", "?", "n", "1a", "1e", "c"] {
        let mut top = Top::new(style, NOW);
        top.handle_facts(facts.clone());
        keys(&mut top, typed);
        let text = frame(&mut top, 80, 24);
        assert!(text.is_ascii(), "{text}");
    }
}

/// All uses of a node, and the states of the processes on a node that no job uses.
fn uses() -> Vec<(&'static str, &'static str)> {
    let given = NODE_EXTRA
        .words
        .iter()
        .filter(|it| **it != NODE_EXTRA.default);
    let given = given.map(|it| (*it, NODE_PROCESSES.default));
    let free = NODE_PROCESSES.words.iter();
    given
        .chain(free.map(|it| (NODE_EXTRA.default, *it)))
        .collect()
}

/// Without colour, every combination of a node's state and use has a distinct pair of signs. So has every
/// state of one kind of element.
#[test]
fn signs_distinguish_all_states() {
    let mut seen = std::collections::BTreeSet::new();
    for state in NODE.words {
        for (used, processes) in uses() {
            let node = |processes| {
                let known = [
                    ("nodeState", *state),
                    ("nodeExtraState", used),
                    ("nodeProcessState", processes),
                ];
                crate::map::signs(&item(Kind::Node, "", "1", &known)).0
            };
            assert!(seen.insert(node(processes)), "{state} {used} {processes}");
            // Processes do not hide who has a node.
            if used != NODE_EXTRA.default {
                assert_eq!(node("RUNNING_PROCESS"), node("NONE"));
            }
        }
    }
    for states in sdm_runtime::model::states::ALL {
        let signs: std::collections::BTreeSet<char> = match states.attribute {
            "nodeExtraState" | "nodeProcessState" => {
                let signs = states.words.iter().map(|it| crate::style::used(it, it).0);
                signs.collect()
            }
            _ => states
                .words
                .iter()
                .map(|it| crate::style::state(it).0)
                .collect(),
        };
        assert_eq!(signs.len(), states.words.len(), "{}", states.attribute);
    }
}

#[test]
fn plain_style_draws_no_colour() {
    let mut top = top(PLAIN);
    for view in ["1", "2", "3", "4"] {
        keys(&mut top, view);
        let mut terminal = Terminal::new(TestBackend::new(80, 24)).unwrap();
        terminal.draw(|frame| top.draw(frame)).unwrap();
        let cells = terminal.backend().buffer().content().iter();
        let reset = ratatui::style::Color::Reset;
        assert!(cells.into_iter().all(|it| it.fg == reset && it.bg == reset));
    }
}

#[test]
fn cancel_is_confirmed_and_its_result_is_logged() {
    let words = ["cancel", "here:1"].map(str::to_owned).to_vec();
    let mut top = top(PLAIN);
    keys(&mut top, "cn");
    assert_eq!(top.poll_request(), None);
    keys(&mut top, "cy");
    assert_eq!(top.poll_request(), Some(Request::Run(words.clone())));
    assert!(frame(&mut top, 80, 24).contains("$ sdm cancel here:1 ..."));
    top.handle_end(&words, false, "sdm: here: no\x1b[2J\n");
    let text = frame(&mut top, 80, 24);
    assert!(
        text.contains("$ sdm cancel here:1: failed: sdm: here: no\\x1b[2J"),
        "{text}"
    );
    // A running job cannot be held, and the screen shows the reason.
    keys(&mut top, "↓↓h");
    assert_eq!(top.poll_request(), None);
    assert!(frame(&mut top, 80, 24).contains("only a PENDING job can be held"));
}

#[test]
fn typed_commands_menus_and_view_names_are_carried_out() {
    let mut top = top(PLAIN);
    keys(&mut top, ":submit -- sh -c 'echo a b'\n");
    let words = ["submit", "--", "sh", "-c", "echo a b"].map(str::to_owned);
    assert_eq!(top.poll_request(), Some(Request::Run(words.to_vec())));
    keys(&mut top, ":stacks 'open\n");
    assert_eq!(top.poll_request(), None);
    keys(&mut top, "↓\n↓↓\n");
    let words = ["attach", "here:2"].map(str::to_owned);
    assert_eq!(top.poll_request(), Some(Request::Show(words.to_vec())));
    keys(&mut top, ":machines\n");
    assert!(frame(&mut top, 80, 24).contains("sdm top > machines"));
    keys(&mut top, "q");
    assert_eq!(top.poll_request(), Some(Request::Quit));
}

#[test]
fn selection_follows_its_job_and_equal_state_is_not_drawn() {
    let mut top = top(PLAIN);
    keys(&mut top, "↓↓");
    let chosen = top.wants().job;
    assert_eq!(chosen, Some(("here".to_owned(), "203".to_owned())));
    assert!(top.take_changed());
    top.handle_facts(facts());
    top.handle_time(NOW);
    assert!(!top.take_changed());
    // Two of the jobs are at work, and get older; machines do not.
    top.handle_time(NOW + 1);
    assert!(top.take_changed());
    keys(&mut top, "2");
    assert!(top.take_changed());
    top.handle_time(NOW + 2);
    assert!(!top.take_changed());
    keys(&mut top, "3");
    let mut fewer = facts();
    fewer
        .items
        .retain(|it| it.kind != Kind::Job || it.ids.as_str() > "202");
    top.handle_facts(fewer);
    assert!(top.take_changed());
    assert_eq!(top.wants().job, chosen);
}

/// Process data can arrive after the selection has moved.
#[test]
fn processes_are_shown_only_below_their_job() {
    let mut top = top(PLAIN);
    keys(&mut top, "↓↓");
    assert!(frame(&mut top, 80, 24).contains("EXITED_SIGNALLED"));
    keys(&mut top, "↓");
    let text = frame(&mut top, 80, 24);
    assert!(text.contains("processes of here:4"), "{text}");
    assert!(
        text.contains("the resource manager reports no processes of this job"),
        "{text}"
    );
}

#[test]
fn any_terminal_size_shows_a_million_processes() {
    let mut facts = facts();
    facts
        .items
        .retain(|it| it.kind == Kind::Machine || it.kind == Kind::Job);
    let known = [("nodeState", "UP"), ("nodeExtraState", "NONE")];
    facts
        .items
        .push(item(Kind::Node, "2", "1000-100999", &known));
    let mut all = item(
        Kind::Process,
        "203",
        "200000-1199999",
        &[("processState", "RUNNING")],
    );
    all.sets
        .push(("processIndex".to_owned(), "0-999999".to_owned()));
    facts.items.push(all);
    let mut top = Top::new(PLAIN, NOW);
    top.handle_facts(facts);
    for typed in [
        "1",
        "2",
        "\n→",
        "++",
        "----------------",
        "3",
        "↓↓",
        "\t",
        "4",
        "?",
    ] {
        keys(&mut top, typed);
        for (width, height) in [(1, 1), (40, 10), (41, 11), (80, 24), (300, 100)] {
            let _ = frame(&mut top, width, height);
        }
    }
    keys(&mut top, "\x1b3");
    let text = frame(&mut top, 80, 24);
    assert!(text.contains("0-999999"), "{text}");
    // The map was zoomed out until one cell shows many nodes.
    keys(&mut top, "2");
    assert!(frame(&mut top, 80, 24).contains("each cell shows the worst state of 131072 nodes"));
}
