//! Use of the runtime platform by its owner: a manager starts and reports elements, listeners get notices, a node
//! is queried, and the manager ends. An agent has a command of its own.

use std::io::Write;

use sdm_runtime::attribute;
use sdm_runtime::ids::Ids;
use sdm_runtime::model::Model;
use sdm_runtime::model::listeners::Interest;
use sdm_runtime::states::{Manager, Node, Process};
use sdm_runtime::wire::Dialect;
use sdm_runtime::wire::agent::{Agent, Phase};
use sdm_runtime::wire::client::Client;
use sdm_runtime::wire::command::{Command, OWN_MIN};
use sdm_runtime::wire::event::{Event, Kind};
use sdm_runtime::wire::groups::Group;

fn new(kind: Kind, parent: &str, ids: &str, attributes: &[(&str, &str)]) -> Event {
    let attributes = attributes.iter();
    let group = Group {
        ids: ids.parse().unwrap_or_else(|_| Ids::one(ids)),
        attributes: attributes
            .map(|(id, value)| ((*id).to_owned(), (*value).to_owned()))
            .collect(),
    };
    Event::New(kind, parent.to_owned(), vec![group])
}

/// Sends a command that only this program's two ends know; returns its arguments, as the agent gets them.
fn own_command(args: &[&str]) -> Result<Vec<String>, Box<dyn std::error::Error>> {
    let mut agent = Agent::new(Vec::new()).with_own_commands();
    let mut client = Client::new(Dialect::Document, "1")?;
    while agent.phase() != Phase::Normal {
        agent.receive(&client.take_output());
        agent.poll()?;
        client.receive(&agent.take_output());
        while client.poll()?.is_some() {}
    }
    let args = args.iter().map(|it| (*it).to_owned()).collect();
    client.send(Command::Own { id: OWN_MIN, args })?;
    agent.receive(&client.take_output());
    match agent.poll()? {
        Some((tid, Command::Own { args, .. })) => {
            agent.complete(tid, Ok(()));
            Ok(args)
        }
        other => Err(format!("{other:?}").into()),
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut out = std::io::stdout();
    let mut model = Model::default();
    let manager = model.add_manager(1, "blue")?;
    model.set_manager_state(manager, Manager::Starting.word())?;
    model.set_manager_state(manager, Manager::Started.word())?;
    let all = model.listen(Interest::All).ok_or("too many listeners")?;
    let on_node = Interest::Children(manager, Kind::Node, 3);
    let on_node = model.listen(on_node).ok_or("too many listeners")?;
    let up = [(attribute::NODE_STATE, Node::Up.word())];
    let runs = [
        (attribute::PROCESS_STATE, Process::Running.word()),
        (attribute::PROCESS_NODE_ID, "3"),
    ];
    for event in [
        new(Kind::Machine, "1", "2", &[]),
        new(Kind::Node, "2", "3-4", &up),
        new(Kind::Queue, "1", "5", &[]),
        new(Kind::Job, "5", "6", &[]),
        new(Kind::Process, "6", "7-9", &runs),
    ] {
        model.apply(manager, &event);
    }
    writeln!(out, "on node 3: {:?}", model.processes_on(manager, 3))?;
    while let Some(notice) = model.poll(on_node) {
        writeln!(out, "node 3: {:?}", notice.what)?;
    }
    model.drop_listener(on_node);
    writeln!(out, "own command: {:?}", own_command(&["rack=7"])?)?;
    model.mark_stale(manager, "its agent has ended");
    writeln!(out, "stale: {:?}", model.stale(manager))?;
    model.remove_manager(manager);
    while let Some(notice) = model.poll(all) {
        writeln!(out, "{:?}: {:?}", notice.kind, notice.what)?;
    }
    Ok(())
}
