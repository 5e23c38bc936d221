//! Byte-exact golden files of each message of both dialects. `UPDATE_GOLDEN=1` rewrites them.

use std::fmt::Write as _;
use std::path::Path;

use sdm_runtime::ids::Ids;
use sdm_runtime::wire::Dialect;
use sdm_runtime::wire::command::{Command, JobChange};
use sdm_runtime::wire::definition::Definition;
use sdm_runtime::wire::event::{Event, Failure, Kind};
use sdm_runtime::wire::frame::Decoder;
use sdm_runtime::wire::groups::Group;

fn pairs(all: &[(&str, &str)]) -> Vec<(String, String)> {
    let owned = |(id, value): &(&str, &str)| ((*id).to_owned(), (*value).to_owned());
    all.iter().map(owned).collect()
}

/// All commands of a client in a session, from the first to the last.
fn commands(dialect: Dialect) -> Vec<Command> {
    let mut all = vec![
        Command::Init {
            version: "2.0".to_owned(),
            base_id: "1000".to_owned(),
        },
        Command::ModelDef,
        Command::StartEvents,
        Command::SubmitJob(pairs(&[
            ("jobSubId", "JOB_1"),
            ("execName", "a.out"),
            ("execPath", "/home/ann/bin"),
            ("jobNumProcs", "8"),
            ("progArgs", "--title"),
            ("progArgs", "two words"),
            ("env", "A=b=c"),
            ("queueId", "1002"),
        ])),
        Command::TerminateJob("1003".to_owned()),
        Command::SetFilters(vec!["processStdout".to_owned()]),
        Command::StopEvents,
        Command::Quit,
    ];
    all.extend(match dialect {
        Dialect::Document => vec![
            Command::MoveJob {
                job: "1003".to_owned(),
                queue: "1004".to_owned(),
            },
            Command::ChangeJob {
                job: "1003".to_owned(),
                attributes: vec![
                    JobChange::Hold.attribute(),
                    JobChange::Priority(7).attribute(),
                ],
            },
            Command::ListFilters,
            Command::Look,
        ],
        Dialect::Ptp => vec![
            Command::FilterEvents(pairs(&[("id", "1003"), ("filterChildren", "true")])),
            Command::SuspendEvents,
            Command::ResumeEvents,
            Command::ClearFilters(Vec::new()),
            Command::GetAttributes(vec!["1003".to_owned()]),
            Command::QueryAttributes,
        ],
    });
    all
}

/// Events of an agent about all kinds of elements.
fn events() -> Vec<Event> {
    let group = |ids: &str, attributes: &[(&str, &str)]| Group {
        ids: ids.parse().unwrap_or_else(|_| Ids::one(ids)),
        attributes: pairs(attributes),
    };
    let failure = |text: &str| Failure {
        code: "7".to_owned(),
        text: text.to_owned(),
    };
    let definition = |id: &str, kind: &str, extra: &[&str]| Definition {
        id: id.to_owned(),
        kind: kind.to_owned(),
        name: id.to_uppercase(),
        description: format!("what {id} is"),
        display: true,
        default: String::new(),
        extra: extra.iter().map(|it| (*it).to_owned()).collect(),
    };
    let mut all = vec![
        Event::Ok,
        Event::Error(failure("no such job")),
        Event::AttrDef(vec![
            definition("mood", "ENUMERATED", &["GOOD", "BAD"]),
            definition("heat", "INTEGER", &["0", "100"]),
        ]),
        Event::Message("WARNING".to_owned(), failure("the manager is slow")),
        Event::SubmitJobError("JOB_1".to_owned(), failure("no room")),
    ];
    for (kind, parent, ids) in [
        (Kind::Machine, "1000", "1001"),
        (Kind::Queue, "1000", "1002,1004"),
        (Kind::Node, "1001", "1010-1013,1015"),
        (Kind::Job, "1002", "1003"),
        (Kind::Process, "1003", "2000-2999"),
    ] {
        let told = group(ids, &[("name", "it"), ("note", "a=b c \u{e4}")]);
        all.push(Event::New(kind, parent.to_owned(), vec![told.clone()]));
        all.push(Event::Change(kind, parent.to_owned(), vec![told.clone()]));
        all.push(Event::Remove(kind, parent.to_owned(), told.ids));
    }
    all.push(Event::RemoveAll);
    all.push(Event::Shutdown);
    all
}

#[test]
fn encoded_ptp_messages_match_the_golden_files() {
    for (dialect, name) in [(Dialect::Document, "document"), (Dialect::Ptp, "ptp")] {
        let mut text = String::new();
        for (command, tid) in commands(dialect).into_iter().zip(1..) {
            let mut bytes = Vec::new();
            let message = command.encode(dialect, tid).expect("it fits");
            message.encode(&mut bytes).expect("it fits");
            let line = String::from_utf8(bytes.clone()).expect("text");
            writeln!(text, "{}\n  {line}", command.name()).expect("a string");
            let mut decoder = Decoder::default();
            decoder.push(&bytes);
            let back = decoder.poll().expect("a message").expect("all of it");
            assert_eq!(Command::decode(dialect, back).as_ref(), Ok(&command));
        }
        for event in events() {
            let mut bytes = Vec::new();
            let message = event.encode(dialect, 3).expect("it fits");
            message.encode(&mut bytes).expect("it fits");
            let line = String::from_utf8(bytes.clone()).expect("text");
            let debugged = format!("{event:?}");
            let word = debugged.split(['(', ' ']).next().unwrap_or_default();
            writeln!(text, "{word}\n  {line}").expect("a string");
            let mut decoder = Decoder::default();
            decoder.push(&bytes);
            let back = decoder.poll().expect("a message").expect("all of it");
            let back = Event::decode(dialect, back).expect("an event");
            let mut again = Vec::new();
            let message = back.encode(dialect, 3).expect("it fits");
            message.encode(&mut again).expect("it fits");
            assert_eq!(again, bytes, "{event:?}");
        }
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/golden/{name}.txt"));
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::write(&file, &text).expect("there is room");
        }
        let golden = std::fs::read_to_string(&file).expect("it is there");
        assert_eq!(text, golden, "{name}");
    }
}
