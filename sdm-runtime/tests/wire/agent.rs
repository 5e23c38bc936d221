//! Tests of the agent's end: its answers to valid and invalid commands, and events that it sends or holds back.

use sdm_runtime::states::States;
use sdm_runtime::wire::Dialect;
use sdm_runtime::wire::MessageError;
use sdm_runtime::wire::agent::{Agent, Phase, SendError};
use sdm_runtime::wire::client::{Client, ClientError, Report};
use sdm_runtime::wire::command::Command;
use sdm_runtime::wire::definition::Definition;
use sdm_runtime::wire::event::{Event, Failure, Kind};
use sdm_runtime::wire::groups::Group;

/// An agent in a dialect, after START_EVENTS; its output until then is taken.
#[allow(clippy::unwrap_used)]
pub(super) fn agent(dialect: Dialect) -> (Agent, Client) {
    let definition = |id: &str, kind: &str| Definition {
        id: id.to_owned(),
        kind: kind.to_owned(),
        name: id.to_owned(),
        description: String::new(),
        display: true,
        default: String::new(),
        extra: Vec::new(),
    };
    let all = vec![
        definition("jobState", "STRING"),
        definition("endTime", "BIGINTEGER"),
    ];
    let mut agent = Agent::new(vec![Event::AttrDef(all.clone()), Event::FilterDef(all)]);
    let mut client = Client::new(dialect, "1000").unwrap();
    while agent.phase() != Phase::Normal {
        let _events = talk(&mut agent, &mut client);
    }
    (agent, client)
}

/// Exchanges all bytes; returns the client's reports, and the commands for the agent's owner.
#[allow(clippy::unwrap_used)]
fn talk(agent: &mut Agent, client: &mut Client) -> (Vec<Report>, Vec<u32>) {
    agent.receive(&client.take_output());
    let mut asked = Vec::new();
    while let Some((tid, _)) = agent.poll().unwrap() {
        asked.push(tid);
    }
    client.receive(&agent.take_output());
    let mut reports = Vec::new();
    while let Some(report) = client.poll().unwrap() {
        reports.push(report);
    }
    (reports, asked)
}

/// The answers to one command.
#[allow(clippy::unwrap_used)]
pub(super) fn ask(agent: &mut Agent, client: &mut Client, command: Command) -> Vec<Report> {
    client.send(command).unwrap();
    talk(agent, client).0
}

/// The events that have reached the client.
pub(super) fn events(agent: &mut Agent, client: &mut Client) -> Vec<Event> {
    let (reports, _) = talk(agent, client);
    let event = |report| match report {
        Report::Event(_, event) => Some(event),
        _ => None,
    };
    reports.into_iter().filter_map(event).collect()
}

pub(super) fn done(report: Option<&Report>) -> Result<(), &str> {
    match report {
        Some(Report::Done(_, _, Ok(()))) => Ok(()),
        Some(Report::Done(_, _, Err(failure))) => Err(&failure.text),
        other => panic!("{other:?}"),
    }
}

#[test]
fn invalid_base_id_or_version_is_refused() {
    for (version, base, why) in [
        ("2.0", "host_a", "`host_a` is not a valid base id"),
        ("2.0", "", "`` is not a valid base id"),
        ("2.0", "-1", "`-1` is not a valid base id"),
        ("2.0", "12345678901234567890", "is not a valid base id"),
        (
            "2.0",
            "4294967295",
            "is not a valid base id (a number up to 4000000000)",
        ),
        (
            "3.0",
            "1000",
            "`3.0` is not a valid version of this protocol (expected 2.0)",
        ),
        ("", "1000", "`` is not a valid version"),
    ] {
        for dialect in [Dialect::Document, Dialect::Ptp] {
            let mut agent = Agent::new(vec![]);
            let command = Command::Init {
                version: version.to_owned(),
                base_id: base.to_owned(),
            };
            let mut bytes = Vec::new();
            let message = command.encode(dialect, 7).unwrap();
            message.encode(&mut bytes).unwrap();
            agent.receive(&bytes);
            assert_eq!(agent.poll(), Ok(None));
            let said = String::from_utf8(agent.take_output()).unwrap();
            assert!(
                said.contains("0005:00000007:") && said.contains(why),
                "{said}"
            );
            assert_eq!(agent.phase(), Phase::Initialize);
        }
    }
}

#[test]
fn binary_client_is_refused_with_a_message() {
    let mut agent = Agent::new(vec![]);
    agent.receive(&[0, 0, 0, 42, 0, 1]);
    let error = agent.poll().unwrap_err().to_string();
    assert!(error.contains("PTP's later binary protocol"), "{error}");
}

#[test]
fn refused_submission_or_end_has_the_dialects_error_event() {
    let submission = || Command::SubmitJob(vec![("jobSubId".into(), "JOB_1".into())]);
    let why = Failure {
        code: "1".into(),
        text: "no room".into(),
    };
    for (dialect, ids) in [
        (Dialect::Ptp, ["00d3:", "00d4:"]),
        (Dialect::Document, ["0005:", "0005:"]),
    ] {
        for (command, id) in [submission(), Command::TerminateJob("7".into())]
            .into_iter()
            .zip(ids)
        {
            let (mut agent, mut client) = agent(dialect);
            client.send(command).unwrap();
            let (_, asked) = talk(&mut agent, &mut client);
            agent.complete(asked[0], Err(why.clone()));
            let output = agent.take_output();
            let said = String::from_utf8(output.clone()).unwrap();
            assert_eq!(&said[9..14], id, "{said}");
            client.receive(&output);
            let report = client.poll().unwrap();
            assert_eq!(done(report.as_ref()), Err("no room"));
        }
    }
}

#[test]
fn illegal_command_is_an_error_event() {
    let ok = "00000017 0000:00000002:00000000";
    let mut agent = Agent::new(vec![]);
    let mut said = |bytes: &str| {
        agent.receive(bytes.as_bytes());
        assert_eq!(agent.poll(), Ok(None));
        String::from_utf8(agent.take_output()).unwrap()
    };
    let refused = |text: &str, tid: u32, why: &str| {
        let begin = format!(" 0005:{tid:08x}:00000002 ");
        assert!(
            text[8..].starts_with(&begin) && text.contains(why),
            "{text}"
        );
    };
    let early = said("00000017 0003:00000001:00000000");
    refused(&early, 1, "START_EVENTS is not allowed in phase Initialize");
    let begun = said("00000032 0001:00000002:00000002 00000003:2.0 00000004:1000");
    assert_eq!(begun, ok);
    let early = said("00000017 0004:00000001:00000000");
    refused(&early, 1, "STOP_EVENTS is not allowed in phase Discovery");
    // The same transaction number again.
    assert_eq!(said("00000017 0002:00000002:00000000"), ok);
    let again = said("00000017 0002:00000009:00000000");
    refused(&again, 9, "MODEL_DEF is not allowed in phase Suspended");
    let unnamed = said("0000002d 0005:0000000a:00000001 0000000c:execName=app");
    refused(&unnamed, 10, "jobSubId");
}

#[test]
fn agent_sends_no_event_after_stop_events() {
    let (mut agent, mut client) = agent(Dialect::Document);
    client.send(Command::StopEvents).unwrap();
    talk(&mut agent, &mut client);
    assert_eq!(agent.phase(), Phase::Suspended);
    let event = || Event::Remove(Kind::Node, String::new(), "7".parse().unwrap());
    assert_eq!(agent.send(event()), Err(SendError::Suspended));
    assert_eq!(agent.take_output(), b"");
    client.send(Command::StartEvents).unwrap();
    talk(&mut agent, &mut client);
    assert_eq!(agent.send(event()), Ok(()));
    let (reports, _) = talk(&mut agent, &mut client);
    assert!(matches!(&reports[..], [Report::Event(_, told)] if *told == event()));
}

#[test]
fn event_of_unknown_transaction_is_discarded() {
    let mut client = Client::new(Dialect::Document, "1000").unwrap();
    // INIT has transaction 1.
    client.receive(b"00000017 0000:00000007:0000000000000023 00f3:00000063:00000001 00000002:17");
    assert_eq!(client.poll(), Ok(None));
    client.receive(b"00000017 0000:00000001:00000000");
    assert!(matches!(client.poll(), Ok(Some(Report::Done(1, ..)))));
    assert_eq!(client.poll(), Ok(None));
}

#[test]
fn filters_are_defined_set_and_listed() {
    let (mut agent, mut client) = agent(Dialect::Document);
    let filters = ["jobState=RUNNING", "endTime"].map(str::to_owned).to_vec();
    let set = ask(&mut agent, &mut client, Command::SetFilters(filters));
    assert_eq!(done(set.first()), Ok(()));
    let listed = ask(&mut agent, &mut client, Command::ListFilters);
    let [Report::Event(_, Event::FilterDef(listed)), end] = &listed[..] else {
        panic!("{listed:?}");
    };
    assert_eq!(done(Some(end)), Ok(()));
    let listed: Vec<_> = listed.iter().map(|it| (&*it.id, &*it.default)).collect();
    assert_eq!(listed, [("jobState", "RUNNING"), ("endTime", "")]);
}

#[test]
fn ptp_document_dialect_has_no_big_integers() {
    for (dialect, kind) in [(Dialect::Document, "INTEGER"), (Dialect::Ptp, "BIGINTEGER")] {
        let all = ["endTime"].map(|id| Definition {
            id: id.to_owned(),
            kind: "BIGINTEGER".to_owned(),
            name: String::new(),
            description: String::new(),
            display: true,
            default: "0".to_owned(),
            extra: vec![],
        });
        let message = Event::AttrDef(all.to_vec()).encode(dialect, 1).unwrap();
        assert_eq!(message.args[3], kind);
    }
}

#[test]
fn ptp_dialect_has_only_the_states_of_its_client() {
    let states: [(Kind, &str, &str, &[&str]); 3] = [
        (
            Kind::Job,
            "jobState",
            "jobStatus",
            &[
                "STARTING",
                "STARTING",
                "RUNNING",
                "COMPLETED",
                "SUSPENDED",
                "COMPLETED",
                "",
            ],
        ),
        (
            Kind::Process,
            "processState",
            "processStatus",
            &[
                "STARTING",
                "RUNNING",
                "COMPLETED",
                "COMPLETED",
                "SUSPENDED",
                "COMPLETED",
                "",
            ],
        ),
        (
            Kind::Queue,
            "queueState",
            "queueStatus",
            &["NORMAL", "NORMAL", "STOPPED", "STOPPED"],
        ),
    ];
    for (kind, key, status, of_ptp) in states {
        for (word, &of_ptp) in States::of(kind).words.iter().zip(of_ptp) {
            let sent = |dialect, attributes: &[(&str, &str)]| {
                let (mut agent, mut client) = agent(dialect);
                let pair = |(k, v): &(&str, &str)| ((*k).to_owned(), (*v).to_owned());
                let group = Group {
                    ids: "7".parse().unwrap(),
                    attributes: attributes.iter().map(pair).collect(),
                };
                let event = Event::New(kind, "5".to_owned(), vec![group]);
                agent.send(event).unwrap();
                match &events(&mut agent, &mut client)[..] {
                    [Event::New(_, _, groups)] => groups[0].attributes.clone(),
                    other => panic!("{other:?}"),
                }
            };
            let state = [(key, of_ptp)].into_iter().filter(|it| !it.1.is_empty());
            let expected = |text| {
                let all = state.clone().chain([(status, text)]);
                all.map(|(k, v)| (k.to_owned(), v.to_owned()))
                    .collect::<Vec<_>>()
            };
            let pair = (key, *word);
            assert_eq!(sent(Dialect::Ptp, &[pair]), expected(word));
            // The manager's own words stay.
            let told = sent(Dialect::Ptp, &[pair, (status, "held")]);
            assert_eq!(told, expected("held"));
            let told = sent(Dialect::Ptp, &[pair, (status, "")]);
            assert_eq!(told, expected(word));
            let document = sent(Dialect::Document, &[pair]);
            assert_eq!(document, [(key.to_owned(), (*word).to_owned())]);
        }
    }
}

#[test]
fn attribute_definitions_are_sent_on_request() {
    let (mut agent, mut client) = agent(Dialect::Ptp);
    let mut defined = |command| {
        let reports = ask(&mut agent, &mut client, command);
        match &reports[..] {
            [Report::Event(_, Event::AttrDef(all)), end] => {
                assert_eq!(done(Some(end)), Ok(()));
                Ok(all.iter().map(|it| it.id.clone()).collect::<Vec<_>>())
            }
            other => Err(done(other.first()).unwrap_err().to_owned()),
        }
    };
    let all = defined(Command::QueryAttributes).unwrap();
    assert_eq!(all, ["jobState", "endTime"]);
    let one = defined(Command::GetAttributes(vec!["endTime".into()]));
    assert_eq!(one.unwrap(), ["endTime"]);
    let unknown = defined(Command::GetAttributes(vec!["nosuch".into()]));
    assert!(
        unknown
            .unwrap_err()
            .contains("`nosuch` is not a valid attribute")
    );
}

#[test]
fn filtered_elements_are_omitted_with_their_children() {
    let (mut agent, mut client) = agent(Dialect::Ptp);
    let group = |ids: &str| Group {
        ids: ids.parse().unwrap(),
        attributes: vec![("state".into(), "UP".into()), ("load".into(), "3".into())],
    };
    let mut told = |agent: &mut Agent, event: Event| {
        agent.send(event).unwrap();
        let (reports, _) = talk(agent, &mut client);
        let groups = reports.into_iter().find_map(|report| match report {
            Report::Event(_, Event::New(_, _, groups) | Event::Change(_, _, groups)) => {
                Some(groups)
            }
            _ => None,
        });
        let told = groups.unwrap_or_default().into_iter();
        told.map(|group| {
            let keys: Vec<_> = group.attributes.iter().map(|it| &*it.0).collect();
            format!("{} {}", group.ids, keys.join(" "))
        })
        .collect::<Vec<_>>()
    };
    let new = |kind, parent: &str, ids| Event::New(kind, parent.into(), vec![group(ids)]);
    let change = |kind, ids| Event::Change(kind, "5".into(), vec![group(ids)]);
    assert_eq!(
        told(&mut agent, new(Kind::Node, "5", "10-12")),
        ["10-12 state load"]
    );
    let silence = |words: &[(&str, &str)]| {
        let pair = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
        Command::FilterEvents(words.iter().map(pair).collect())
    };
    let command = |agent: &mut Agent, command: Command| {
        let mut bytes = Vec::new();
        let message = command.encode(Dialect::Ptp, 99).unwrap();
        message.encode(&mut bytes).unwrap();
        agent.receive(&bytes);
        assert_eq!(agent.poll(), Ok(None));
        String::from_utf8(agent.take_output()).unwrap()
    };
    let said = command(&mut agent, silence(&[("id", "11"), ("load", "")]));
    assert!(said.contains(" 0000:00000063:"), "{said}");
    let seen = told(&mut agent, change(Kind::Node, "10-12"));
    assert_eq!(seen, ["10,12 state load", "11 state"]);
    let said = command(
        &mut agent,
        silence(&[("id", "5"), ("filterChildren", "true")]),
    );
    assert!(said.contains(" 0000:00000063:"), "{said}");
    assert!(told(&mut agent, change(Kind::Node, "10-12")).is_empty());
    // Elements that are added later are hidden, too.
    assert!(told(&mut agent, new(Kind::Node, "5", "20")).is_empty());
    assert!(told(&mut agent, change(Kind::Node, "20")).is_empty());
    assert_eq!(
        told(&mut agent, new(Kind::Node, "6", "30")),
        ["30 state load"]
    );
    let said = command(&mut agent, Command::ClearFilters(vec![]));
    assert!(said.contains(" 0000:00000063:"), "{said}");
    assert_eq!(
        told(&mut agent, change(Kind::Node, "10")),
        ["10 state load"]
    );
    let said = command(&mut agent, silence(&[("filterChildren", "true")]));
    assert!(said.contains("FILTER_EVENTS: id is missing"), "{said}");
}

#[test]
fn commands_defined_by_a_program_pass_if_the_agent_agrees() {
    const DRAIN: u16 = 100;
    const PROGRESS: u16 = 0x100;
    let drain = || Command::Own {
        id: DRAIN,
        args: vec!["rack=7".to_owned(), String::new()],
    };
    let progress = |done: &str| Event::Own {
        id: PROGRESS,
        args: vec![done.to_owned()],
    };
    for dialect in [Dialect::Document, Dialect::Ptp] {
        let (agent, mut client) = agent(dialect);
        let mut agent = agent.with_own_commands();
        let tid = client.send(drain()).unwrap();
        agent.receive(&client.take_output());
        assert_eq!(agent.poll(), Ok(Some((tid, drain()))));
        agent.answer(tid, &progress("50 %")).unwrap();
        agent.complete(tid, Ok(()));
        agent.send(progress("of all")).unwrap();
        // It is complete: its number may be that of another command.
        assert_eq!(
            agent.answer(tid, &progress("late")),
            Err(SendError::NoMessage)
        );
        let (reports, _) = talk(&mut agent, &mut client);
        let [Report::Event(of, first), done, Report::Event(_, last)] = &*reports else {
            panic!("{reports:?}");
        };
        assert_eq!((*of, first), (tid, &progress("50 %")));
        assert_eq!(*done, Report::Done(tid, drain(), Ok(())));
        assert_eq!(*last, progress("of all"));
    }
    // Without the agent's consent they are unknown, and their ids are none of the dialects'.
    let (mut agent, mut client) = agent(Dialect::Document);
    let reports = ask(&mut agent, &mut client, drain());
    let why = "this protocol has no command with the id 0x0064";
    assert_eq!(done(reports.first()), Err(why));
    let taken = Command::Own {
        id: 5,
        args: Vec::new(),
    };
    let refused = client.send(taken).unwrap_err();
    let unknown = MessageError::Unknown(5, "command of a program's own");
    assert_eq!(refused, ClientError::Message(unknown));
}
