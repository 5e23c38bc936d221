//! Ids of elements that are texts: the base id, with a text of the agent appended.

use sdm_runtime::wire::agent::{Agent, Phase};
use sdm_runtime::wire::command::Command;
use sdm_runtime::wire::event::{Event, Kind};
use sdm_runtime::wire::groups::Group;
use sdm_runtime::wire::{Dialect, IdForm};

/// A message as a client writes it.
fn bytes(dialect: Dialect, command: &Command) -> Vec<u8> {
    let message = command.encode(dialect, 7).expect("a command");
    let mut bytes = Vec::new();
    message.encode(&mut bytes).expect("it is short");
    bytes
}

fn init(base_id: &str) -> Command {
    let (version, base_id) = ("2.0".to_owned(), base_id.to_owned());
    Command::Init { version, base_id }
}

/// The agent's answer to a command.
fn said(agent: &mut Agent, dialect: Dialect, command: &Command) -> String {
    agent.receive(&bytes(dialect, command));
    assert_eq!(agent.poll(), Ok(None));
    String::from_utf8(agent.take_output()).expect("text")
}

/// An agent with text ids, after START_EVENTS.
fn begun(base: &str) -> Agent {
    let mut agent = Agent::new(vec![]).with_ids(IdForm::Texts);
    for command in [init(base), Command::ModelDef, Command::StartEvents] {
        let _answer = said(&mut agent, Dialect::Document, &command);
    }
    assert_eq!(agent.phase(), Phase::Normal);
    agent
}

#[test]
fn invalid_text_base_id_is_refused() {
    for (base, is_valid) in [
        ("host_a", true),
        ("1000", true),
        ("-1", true),
        ("", false),
        ("a b", false),
        ("a:1", false),
        ("\u{e4}", false),
        (&*"x".repeat(201), false),
    ] {
        for dialect in [Dialect::Document, Dialect::Ptp] {
            let mut agent = Agent::new(vec![]).with_ids(IdForm::Texts);
            let said = said(&mut agent, dialect, &init(base));
            let expected = if is_valid { " 0000:" } else { " 0005:" };
            assert!(said.contains(expected), "{base}: {said}");
            let why = "is not a valid base id (1 to 200 visible characters without `:`)";
            assert_eq!(said.contains(why), !is_valid, "{said}");
        }
    }
}

#[test]
fn text_ids_are_appended_to_the_base_id() {
    let mut agent = begun("host_a");
    assert_eq!(agent.base(), 0);
    let group = |ids: &str, key: &str, value: &str| Group {
        ids: ids.parse().expect("ids"),
        attributes: vec![(key.to_owned(), value.to_owned())],
    };
    let nodes = vec![
        group("2-3", "nodeNumber", "0"),
        group("9", "nodeNumber", "5"),
    ];
    let processes = vec![group("12", "processNodeId", "3")];
    let gone = "2-3".parse().expect("ids");
    for event in [
        Event::New(Kind::Queue, "0".to_owned(), vec![group("1", "name", "q")]),
        Event::New(Kind::Node, "1".to_owned(), nodes),
        Event::Change(Kind::Process, "11".to_owned(), processes),
        Event::Remove(Kind::Node, String::new(), gone),
    ] {
        agent.send(event).expect("it is sent");
    }
    let mut decoder = sdm_runtime::wire::frame::Decoder::default();
    decoder.push(&agent.take_output());
    let mut told = Vec::new();
    while let Some(message) = decoder.poll().expect("messages") {
        told.push(message.args.join(" "));
    }
    let expected = [
        "host_a 1 host_a:1 1 name=q",
        "host_a:1 3 host_a:2 1 nodeNumber=0 host_a:3 1 nodeNumber=0 host_a:9 1 nodeNumber=5",
        "host_a:11 1 host_a:12 1 processNodeId=host_a:3",
        "host_a:2",
        "host_a:3",
    ];
    assert_eq!(told, expected);
}

#[test]
fn text_ids_in_commands_name_the_agents_elements() {
    let mut agent = begun("1000");
    let change = |job: &str| Command::ChangeJob {
        job: job.to_owned(),
        attributes: Vec::new(),
    };
    // Another manager's element is not one of this agent's.
    for (id, number) in [("1000:7", "7"), ("100:7", "100:7"), ("1000:x", "1000:x")] {
        agent.receive(&bytes(Dialect::Document, &change(id)));
        let asked = agent.poll().expect("a command");
        assert_eq!(asked, Some((7, change(number))), "{id}");
        agent.complete(7, Ok(()));
    }
    let into = Command::MoveJob {
        job: "1000:7".to_owned(),
        queue: "1000:3".to_owned(),
    };
    agent.receive(&bytes(Dialect::Document, &into));
    let Ok(Some((_, Command::MoveJob { job, queue }))) = agent.poll() else {
        panic!("no command");
    };
    assert_eq!((&*job, &*queue), ("7", "3"));
}
