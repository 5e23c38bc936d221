//! Tests of filters that go: what they have kept from the client is announced then.

use roaring::RoaringBitmap;
use sdm_runtime::wire::Dialect;
use sdm_runtime::wire::agent::{Agent, SendError};
use sdm_runtime::wire::client::Client;
use sdm_runtime::wire::command::Command;
use sdm_runtime::wire::event::{Event, Kind};
use sdm_runtime::wire::groups::Group;

use crate::agent::{agent, ask, done, events};

/// Both ends of a session; `tell` returns one line for each group that reaches the client.
struct Ends {
    agent: Agent,
    client: Client,
}

impl Ends {
    fn new(dialect: Dialect) -> Self {
        let (agent, client) = agent(dialect);
        Self { agent, client }
    }

    fn command(&mut self, command: Command) {
        let reports = ask(&mut self.agent, &mut self.client, command);
        assert_eq!(done(reports.last()), Ok(()));
    }

    fn set(&mut self, filters: &[&str]) {
        let filters = filters.iter().map(|it| (*it).to_owned());
        self.command(Command::SetFilters(filters.collect()));
    }

    #[allow(clippy::unwrap_used)]
    fn tell(&mut self, event: Event) -> Vec<String> {
        self.agent.send(event).unwrap();
        self.told()
    }

    #[allow(clippy::unwrap_used)]
    fn tell_again(&mut self, event: Event) -> Vec<String> {
        self.agent.send_again(event).unwrap();
        self.told()
    }

    fn told(&mut self) -> Vec<String> {
        let line = |kind: &str, parent: &str, group: &Group| {
            let pairs = group.attributes.iter().map(|(k, v)| format!(" {k}={v}"));
            format!("{kind} {parent}/{}{}", group.ids, pairs.collect::<String>())
        };
        let told = events(&mut self.agent, &mut self.client);
        let lines = told.iter().flat_map(|event| match event {
            Event::New(_, parent, groups) => {
                let line = |group| line("new", parent, group);
                groups.iter().map(line).collect()
            }
            Event::Change(_, parent, groups) => {
                let line = |group| line("change", parent, group);
                groups.iter().map(line).collect()
            }
            Event::Remove(_, _, ids) => vec![format!("remove {ids}")],
            other => panic!("{other:?}"),
        });
        lines.collect()
    }

    fn due(&mut self) -> Vec<u32> {
        RoaringBitmap::into_iter(self.agent.take_due()).collect()
    }
}

#[allow(clippy::unwrap_used)]
fn group(ids: &str, text: &str) -> Vec<Group> {
    let pair = |it: &str| {
        it.split_once('=')
            .map(|(k, v)| (k.to_owned(), v.to_owned()))
    };
    vec![Group {
        ids: ids.parse().unwrap(),
        attributes: text.split(' ').filter_map(pair).collect(),
    }]
}

fn new(kind: Kind, parent: &str, ids: &str, text: &str) -> Event {
    Event::New(kind, parent.to_owned(), group(ids, text))
}

fn change(kind: Kind, parent: &str, ids: &str, text: &str) -> Event {
    Event::Change(kind, parent.to_owned(), group(ids, text))
}

#[allow(clippy::unwrap_used)]
fn remove(kind: Kind, parent: &str, ids: &str) -> Event {
    Event::Remove(kind, parent.to_owned(), ids.parse().unwrap())
}

const NOTHING: [&str; 0] = [];

#[test]
fn hidden_element_is_announced_when_its_filter_goes() {
    let mut ends = Ends::new(Dialect::Document);
    ends.set(&["name=sh"]);
    assert_eq!(
        ends.tell(new(Kind::Job, "5", "20", "name=other jobState=RUNNING")),
        ["new 5/20 name=other jobState=RUNNING"]
    );
    for (event, text) in [
        (
            new(Kind::Job, "5", "21", "name=sh jobState=STARTED"),
            "new job",
        ),
        (
            change(Kind::Job, "", "21", "jobState=RUNNING"),
            "its change",
        ),
        (new(Kind::Process, "21", "22-23", "a=b"), "its processes"),
        (change(Kind::Process, "21", "22", "a=c"), "their change"),
        (remove(Kind::Process, "21", "23"), "a process's end"),
    ] {
        assert_eq!(ends.tell(event), NOTHING, "{text}");
    }
    // The value may have changed to one that no filter hides.
    assert_eq!(ends.due(), [21, 22]);
    let job = || new(Kind::Job, "5", "21", "name=sh jobState=RUNNING jobSubId=J");
    assert_eq!(ends.tell_again(job()), NOTHING);
    ends.set(&[]);
    assert_eq!(ends.due(), [21, 22]);
    let announced = "new 5/21 name=sh jobState=RUNNING jobSubId=J";
    assert_eq!(ends.tell_again(job()), [announced]);
    let process = || new(Kind::Process, "21", "20-22", "a=c");
    assert_eq!(ends.tell_again(process()), ["new 21/22 a=c"]);
    // Nothing is announced twice.
    assert_eq!(ends.tell_again(process()), NOTHING);
    assert_eq!(
        ends.tell(change(Kind::Process, "21", "22", "a=d")),
        ["change 21/22 a=d"]
    );
    assert!(ends.due().is_empty());
}

#[test]
fn element_whose_value_changes_appears() {
    let mut ends = Ends::new(Dialect::Document);
    ends.set(&["jobState=PENDING"]);
    let pending = new(Kind::Job, "5", "20-21", "jobState=PENDING");
    assert_eq!(ends.tell(pending), NOTHING);
    assert_eq!(
        ends.tell(change(Kind::Job, "", "20", "jobState=RUNNING")),
        NOTHING
    );
    assert_eq!(ends.due(), [20]);
    let running = new(Kind::Job, "5", "20", "jobState=RUNNING");
    assert_eq!(ends.tell_again(running), ["new 5/20 jobState=RUNNING"]);
    let pending = new(Kind::Job, "5", "21", "jobState=PENDING");
    assert_eq!(ends.tell_again(pending), NOTHING);
}

#[test]
fn missed_changes_are_sent_when_a_filter_goes() {
    let mut ends = Ends::new(Dialect::Ptp);
    let _told = ends.tell(new(Kind::Queue, "1", "3", "name=q"));
    let _told = ends.tell(new(Kind::Job, "3", "10-11", "note=a"));
    let pairs = [("id", "3"), ("filterChildren", "true")];
    let pairs = pairs.map(|(k, v)| (k.to_owned(), v.to_owned()));
    ends.command(Command::FilterEvents(pairs.to_vec()));
    for event in [
        change(Kind::Job, "", "10", "note=b"),
        new(Kind::Job, "3", "12", "note=c"),
        new(Kind::Process, "12", "13", "note=d"),
    ] {
        assert_eq!(ends.tell(event), NOTHING);
    }
    // No element stays at the client that has gone.
    assert_eq!(ends.tell(remove(Kind::Job, "", "11")), ["remove 11"]);
    ends.command(Command::ClearFilters(vec![]));
    assert_eq!(ends.due(), [10, 12, 13]);
    assert_eq!(
        ends.tell_again(new(Kind::Queue, "1", "3", "name=q")),
        NOTHING
    );
    let jobs = Event::New(
        Kind::Job,
        "3".to_owned(),
        [group("10", "note=b"), group("12", "note=c")].concat(),
    );
    assert_eq!(
        ends.tell_again(jobs),
        ["new 3/12 note=c", "change /10 note=b"]
    );
    assert_eq!(
        ends.tell_again(new(Kind::Process, "12", "13", "note=d")),
        ["new 12/13 note=d"]
    );
}

#[test]
fn ptp_output_filters_hide_the_output_of_processes() {
    let mut ends = Ends::new(Dialect::Ptp);
    let text = "processStdout=one processStderr=two a=b";
    ends.set(&["stdout"]);
    assert_eq!(
        ends.tell(new(Kind::Process, "9", "20", text)),
        ["new 9/20 processStderr=two a=b"]
    );
    ends.set(&["stdout", "stderr"]);
    assert_eq!(ends.due(), [20]);
    assert_eq!(
        ends.tell(change(Kind::Process, "9", "20", "processStderr=three")),
        NOTHING
    );
    ends.set(&[]);
    assert_eq!(ends.due(), [20]);
    assert_eq!(
        ends.tell_again(new(Kind::Process, "9", "20", text)),
        ["change 9/20 processStdout=one processStderr=two a=b"]
    );
}

#[test]
fn suspended_events_are_refused_until_they_are_resumed() {
    let mut ends = Ends::new(Dialect::Ptp);
    let event = || new(Kind::Job, "5", "20", "a=b");
    ends.command(Command::SuspendEvents);
    assert_eq!(ends.agent.send(event()), Err(SendError::Suspended));
    assert_eq!(ends.told(), NOTHING);
    ends.command(Command::ResumeEvents);
    assert_eq!(ends.tell(event()), ["new 5/20 a=b"]);
}

/// An announcement that does not fit into the output is made later.
#[test]
fn announcement_that_finds_no_room_is_made_later() {
    let mut ends = Ends::new(Dialect::Document);
    ends.set(&["name=sh"]);
    assert_eq!(ends.tell(new(Kind::Job, "5", "21", "name=sh")), NOTHING);
    ends.set(&[]);
    let filler = format!("a={}", "x".repeat(1 << 20));
    let fill = || new(Kind::Job, "5", "30", &filler);
    while ends.agent.send(fill()).is_ok() {}
    let job = || new(Kind::Job, "5", "21", &format!("name=sh {filler}"));
    assert_eq!(ends.agent.send_again(job()), Err(SendError::Full));
    let _filled = ends.agent.take_output();
    ends.agent.send_again(job()).expect("there is room");
    assert!(!ends.agent.take_output().is_empty());
}
