//! The command LOOK: the manager is queried at once, and one query answers all LOOK commands that came before it.
#![allow(clippy::unwrap_used)]

use std::time::Instant;

use sdm_agent::error::ManagerError;
use sdm_agent::manager::machine;
use sdm_agent::service::Service;
use sdm_agent::snapshot::{Attributes, Snapshot};
use sdm_agent::worker::{Reply, Request};
use sdm_runtime::states::Machine;
use sdm_runtime::wire::Dialect;
use sdm_runtime::wire::client::{Client, Report};
use sdm_runtime::wire::command::Command;
use sdm_runtime::wire::event::{Event, Kind};

/// A client and its agent, at one moment.
struct Story {
    service: Service,
    client: Client,
    now: Instant,
}

impl Story {
    /// A story whose agent has reported its manager's first answer.
    fn new() -> Self {
        let mut story = Self {
            service: Service::default(),
            client: Client::new(Dialect::Document, "1").unwrap(),
            now: Instant::now(),
        };
        let _reports = story.talk();
        assert!(story.begins_query());
        let _reports = story.answer(Ok("a"));
        story
    }

    /// Exchanges all bytes; returns what the client has been told.
    fn talk(&mut self) -> Vec<Report> {
        let mut reports = Vec::new();
        loop {
            let to = self.client.take_output();
            let from = self.service.take_output(self.now).unwrap();
            if to.is_empty() && from.is_empty() {
                return reports;
            }
            self.service.receive(self.now, &to).unwrap();
            self.client.receive(&from);
            while let Some(report) = self.client.poll().unwrap() {
                reports.push(report);
            }
        }
    }

    fn ask(&mut self) -> u32 {
        let tid = self.client.send(Command::Look).unwrap();
        assert_eq!(self.talk(), []);
        tid
    }

    /// True if the manager is to be queried now.
    fn begins_query(&mut self) -> bool {
        self.service.handle_timeout(self.now);
        let request = self.service.poll_request();
        assert!(self.service.poll_request().is_none());
        matches!(request, Some(Request::Look))
    }

    /// The manager's answer: a queue of this name, or an error.
    fn answer(&mut self, found: Result<&str, ManagerError>) -> Vec<Report> {
        let found = found.map(|queue| {
            let mut snapshot = Snapshot {
                machine: machine("m", Machine::Up),
                ..Snapshot::default()
            };
            snapshot.queues.insert(queue.to_owned(), Attributes::new());
            Box::new(snapshot)
        });
        let looked = Reply::Looked(found);
        self.service.handle_reply(self.now, looked).unwrap();
        self.talk()
    }
}

fn done(reports: &[Report]) -> Vec<(u32, bool)> {
    let done = reports.iter().filter_map(|report| match report {
        Report::Done(tid, Command::Look, result) => Some((*tid, result.is_ok())),
        _ => None,
    });
    done.collect()
}

#[test]
fn look_request_is_answered_after_the_events_of_its_query() {
    let mut story = Story::new();
    assert!(!story.begins_query(), "the manager has just answered");
    let first = story.ask();
    assert!(story.begins_query());
    // Its answer may be from a moment before these two.
    let others = [story.ask(), story.ask()];
    assert!(!story.begins_query());
    let reports = story.answer(Ok("b"));
    let is_new = |it: &Report| matches!(it, Report::Event(_, Event::New(Kind::Queue, ..)));
    assert!(reports.iter().any(is_new), "{reports:?}");
    assert_eq!(done(&reports), [(first, true)]);
    assert!(matches!(reports.last(), Some(Report::Done(..))));
    assert!(story.begins_query());
    let reports = story.answer(Ok("b"));
    assert_eq!(done(&reports), others.map(|tid| (tid, true)));
    assert!(!story.begins_query());
}

#[test]
fn failed_query_refuses_its_look_request() {
    let mut story = Story::new();
    let asked = story.ask();
    assert!(story.begins_query());
    let error = ManagerError::NoProgram("squeue".to_owned());
    let reports = story.answer(Err(error));
    assert_eq!(done(&reports), [(asked, false)]);
}
