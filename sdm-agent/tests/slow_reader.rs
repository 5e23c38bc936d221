//! Tests with a client that does not read its output: the output that waits stays bounded, and the client's commands
//! are answered.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

use sdm_agent::error::ManagerError;
use sdm_agent::manager::{JobChange, Manager, Submission, machine};
use sdm_agent::serve::{Client as Bytes, serve};
use sdm_agent::service::Service;
use sdm_agent::snapshot::{Attributes, Job, Process, Snapshot};
use sdm_agent::worker::{Reply, Request, Worker};
use sdm_runtime::ids::Ids;
use sdm_runtime::wire::client::{Client, Report};
use sdm_runtime::wire::command::{self, Command};
use sdm_runtime::wire::event::Event;
use sdm_runtime::wire::{Dialect, IdForm};

const PATIENCE: Duration = Duration::from_secs(60);
/// Id of the job. Ids are given out in this order: machine, node, queue, job, processes.
const JOB: u32 = 1004;
const PROCESSES: usize = 50_000;

/// A job of `processes` processes, each with a pid that differs from the others and from those of other queries.
fn snapshot(processes: usize, look: usize) -> Snapshot {
    let pairs = |pairs: &[(&str, &str)]| -> Attributes {
        let pair = |(id, value): &(&str, &str)| ((*id).to_owned(), (*value).to_owned());
        pairs.iter().map(pair).collect()
    };
    let process = |index: usize| Process {
        node: Some("n1".to_owned()),
        attributes: pairs(&[("processPID", &(look * processes + index).to_string())]),
    };
    let job = Job {
        queue: "q".to_owned(),
        attributes: pairs(&[("jobState", "RUNNING")]),
        processes: (0..processes).map(process).collect(),
    };
    Snapshot {
        machine: machine("m", sdm_runtime::states::Machine::Up),
        nodes: [("n1".to_owned(), pairs(&[("name", "n1")]))].into(),
        queues: [("q".to_owned(), pairs(&[("name", "q")]))].into(),
        jobs: [("7".to_owned(), job)].into(),
        ..Snapshot::default()
    }
}

fn hold() -> Command {
    Command::ChangeJob {
        job: JOB.to_string(),
        attributes: vec![command::JobChange::Hold.attribute()],
    }
}

/// Reads all events so far and records the attributes of each element.
fn learn(client: &mut Client, known: &mut BTreeMap<u32, BTreeMap<String, String>>) {
    while let Some(report) = client.poll().unwrap() {
        let Report::Event(_, Event::New(_, _, groups) | Event::Change(_, _, groups)) = report
        else {
            continue;
        };
        for group in groups {
            let Ids::Numbers(ids) = group.ids else {
                panic!("numbers");
            };
            for id in ids {
                let known = known.entry(id).or_default();
                known.extend(group.attributes.iter().cloned());
            }
        }
    }
}

/// Exchanges all pending messages of the client and the service, without waiting.
fn talk(
    service: &mut Service,
    client: &mut Client,
    known: &mut BTreeMap<u32, BTreeMap<String, String>>,
    now: Instant,
) {
    loop {
        let (to, from) = (client.take_output(), service.take_output(now).unwrap());
        if to.is_empty() && from.is_empty() {
            return;
        }
        service.receive(now, &to).unwrap();
        client.receive(&from);
        learn(client, known);
    }
}

/// Answers the service's query, if there is one: with one process the first time, with [`PROCESSES`] later.
fn look(service: &mut Service, looks: &mut usize, now: Instant) {
    service.handle_timeout(now);
    if let Some(request) = service.poll_request() {
        assert!(matches!(request, Request::Look), "{request:?}");
        *looks += 1;
        let processes = if *looks == 1 { 1 } else { PROCESSES };
        let found = Box::new(snapshot(processes, *looks));
        service.handle_reply(now, Reply::Looked(Ok(found))).unwrap();
    }
}

#[test]
fn output_for_unread_client_stays_below_2_mebibytes() {
    let mut now = Instant::now();
    let mut service = Service::default();
    let mut client = Client::new(Dialect::Document, "1000").unwrap();
    let mut known = BTreeMap::new();
    talk(&mut service, &mut client, &mut known, now);
    let mut looks = 0;
    look(&mut service, &mut looks, now);
    talk(&mut service, &mut client, &mut known, now);
    assert_eq!(known.len(), 5, "{known:?}");
    // From here on the client does not read, and sends a command after each query.
    let mut most = 0;
    for _ in 0..1_000_000 / PROCESSES {
        now += Duration::from_secs(3600);
        look(&mut service, &mut looks, now);
        client.send(hold()).unwrap();
        service.receive(now, &client.take_output()).unwrap();
        match service.poll_request() {
            Some(Request::Change(number, ..)) => {
                let done = Reply::Done(number, Ok(()));
                service.handle_reply(now, done).unwrap();
            }
            other => panic!("{other:?}"),
        }
        most = most.max(service.output_bytes());
    }
    assert_eq!(looks, 2, "nothing is looked at that nobody hears of");
    // The first part of the snapshot, and the answers to the commands; the whole snapshot is over four times as much.
    assert!(most > 1 << 16 && most < 2 << 20, "{most}");
    // The client reads again. It gets the rest of that snapshot, and a later snapshot with newer values.
    talk(&mut service, &mut client, &mut known, now);
    now += Duration::from_secs(3600);
    look(&mut service, &mut looks, now);
    talk(&mut service, &mut client, &mut known, now);
    assert_eq!(looks, 3);
    let last = looks * PROCESSES;
    let pids = known.values().filter_map(|it| it.get("processPID"));
    let pids: Vec<usize> = pids.map(|pid| pid.parse().unwrap()).collect();
    assert_eq!(pids.len(), PROCESSES);
    assert!(
        pids.iter()
            .all(|pid| (last..last + PROCESSES).contains(pid))
    );
}

/// A manager that reports each termination of a job through a channel.
struct Scripted {
    looks: usize,
    ended: Sender<String>,
}

impl Manager for Scripted {
    fn look(&mut self) -> Result<Snapshot, ManagerError> {
        self.looks += 1;
        Ok(snapshot(PROCESSES, self.looks))
    }

    fn submit(&mut self, _: &Submission) -> Result<String, ManagerError> {
        unreachable!("nothing is submitted")
    }

    fn terminate(&mut self, job: &str) -> Result<(), ManagerError> {
        self.ended.send(job.to_owned()).unwrap();
        Ok(())
    }

    fn change(&mut self, _: &str, _: &JobChange) -> Result<(), ManagerError> {
        unreachable!("nothing is changed")
    }
}

#[test]
fn commands_of_a_slow_reader_are_executed() {
    let (mut ours, theirs) = UnixStream::pair().unwrap();
    theirs.set_nonblocking(true).unwrap();
    let (ended, is_ended) = channel();
    let agent = std::thread::spawn(move || {
        let bytes = Bytes {
            input: Box::new(theirs.try_clone().unwrap()),
            output: Box::new(theirs),
        };
        let manager = Box::new(Scripted { looks: 0, ended });
        serve(bytes, Worker::start(manager).unwrap(), IdForm::Numbers)
    });
    let mut client = Client::new(Dialect::Document, "1000").unwrap();
    let mut known = BTreeMap::new();
    let mut buffer = [0; 4096];
    // Until the client knows the job. Far more data follows than a socket holds.
    while !known.contains_key(&JOB) {
        ours.write_all(&client.take_output()).unwrap();
        let count = ours.read(&mut buffer).unwrap();
        client.receive(&buffer[..count]);
        learn(&mut client, &mut known);
    }
    client.send(Command::TerminateJob(JOB.to_string())).unwrap();
    client.send(Command::StopEvents).unwrap();
    ours.write_all(&client.take_output()).unwrap();
    assert_eq!(is_ended.recv_timeout(PATIENCE).unwrap(), "7");
    client.send(Command::Quit).unwrap();
    ours.write_all(&client.take_output()).unwrap();
    // Now the client reads the data that was already sent, which is only a part of the fifty thousand processes.
    let mut rest = Vec::new();
    ours.read_to_end(&mut rest).unwrap();
    client.receive(&rest);
    learn(&mut client, &mut known);
    agent.join().unwrap().unwrap();
    assert!(known.len() < PROCESSES / 2, "{}", known.len());
}
