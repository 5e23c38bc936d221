use sdm_runtime::model::Model;
use sdm_runtime::wire::IdForm;

use super::*;
use crate::manager::machine;
use crate::notice_events::events;

fn attributes(text: &str) -> Attributes {
    let pair = |part: &str| {
        part.split_once('=')
            .map(|(id, value)| (id.to_owned(), value.to_owned()))
    };
    text.split(' ').filter_map(pair).collect()
}

fn snapshot(nodes: &[(&str, &str)], jobs: &[(&str, &str, usize)]) -> Snapshot {
    let node = |(name, text): &(&str, &str)| ((*name).to_owned(), attributes(text));
    let job = |(number, text, count): &(&str, &str, usize)| {
        let process = Process {
            node: Some("n1".to_owned()),
            attributes: attributes("processState=RUNNING"),
        };
        let job = Job {
            queue: "debug".to_owned(),
            attributes: attributes(text),
            processes: vec![process; *count],
        };
        ((*number).to_owned(), job)
    };
    Snapshot {
        machine: machine("m", Machine::Up),
        nodes: nodes.iter().map(node).collect(),
        queues: [(
            "debug".to_owned(),
            attributes("name=debug queueState=NORMAL"),
        )]
        .into(),
        jobs: jobs.iter().map(job).collect(),
        ..Snapshot::default()
    }
}

/// One line for each group.
fn told(notices: &[Notice]) -> Vec<String> {
    let set = |ids: &RoaringBitmap| {
        ids.iter()
            .map(|id| id.to_string())
            .collect::<Vec<_>>()
            .join(",")
    };
    let lines = |what: String, groups: &[EqualElements]| {
        let line = |group: &EqualElements| {
            let pair = |(id, value): &(String, String)| format!(" {id}={value}");
            let pairs: String = group.attributes.iter().map(pair).collect();
            format!("{what} {}{pairs}", set(&group.ids))
        };
        groups.iter().map(line).collect::<Vec<_>>()
    };
    let of = |notice: &Notice| match notice {
        Notice::New(kind, parent, groups) => lines(format!("new {kind:?} of {parent}"), groups),
        Notice::Changed(kind, _, groups) => lines(format!("changed {kind:?}"), groups),
        Notice::Removed(kind, _, ids) => vec![format!("removed {kind:?} {}", set(ids))],
    };
    notices.iter().flat_map(of).collect()
}

#[test]
fn ledger_reports_only_changes() {
    let mut ledger = Ledger::new(100);
    let nodes = [
        ("n1", "nodeState=UP"),
        ("n2", "nodeState=UP"),
        ("n3", "nodeState=DOWN"),
    ];
    let first = ledger.update(snapshot(&nodes, &[("7", "jobState=PENDING", 0)]));
    let expected = [
        "new Machine of 100 101 machineState=UP name=m",
        "new Node of 101 102,103 nodeState=UP",
        "new Node of 101 104 nodeState=DOWN",
        "new Queue of 100 105 name=debug queueState=NORMAL",
        "new Job of 105 106 jobState=PENDING queueId=105",
    ];
    assert_eq!(told(&first), expected);
    assert_eq!(ledger.job(106), Some("7"));
    assert_eq!(ledger.queue(105), Some("debug"));
    assert!(
        ledger
            .update(snapshot(&nodes, &[("7", "jobState=PENDING", 0)]))
            .is_empty()
    );
    let running = ledger.update(snapshot(&nodes[..2], &[("7", "jobState=RUNNING", 2)]));
    let expected = [
        "removed Node 104",
        "changed Job 106 jobState=RUNNING",
        "new Process of 106 107 name=process 0 processIndex=0 processNodeId=102 processState=RUNNING",
        "new Process of 106 108 name=process 1 processIndex=1 processNodeId=102 processState=RUNNING",
    ];
    assert_eq!(told(&running), expected);
    let ended = ledger.update(snapshot(&nodes[..2], &[("7", "jobState=TERMINATED", 0)]));
    let expected = [
        "changed Job 106 jobState=TERMINATED",
        "changed Process 107,108 processState=EXITED",
    ];
    assert_eq!(told(&ended), expected);
    let killed = snapshot(&nodes[..2], &[("8", "exitSignal=9 jobState=TERMINATED", 0)]);
    let _new = ledger.update(snapshot(&nodes[..2], &[("8", "jobState=RUNNING", 1)]));
    let signalled = "changed Process 110 processSignalName=SIGKILL processState=EXITED_SIGNALLED";
    assert_eq!(told(&ledger.update(killed))[1..], [signalled]);
    let gone = ledger.update(snapshot(&nodes[..2], &[]));
    assert_eq!(told(&gone), ["removed Process 110", "removed Job 109"]);
}

#[test]
fn submission_is_reported_once_and_vanished_attribute_reset() {
    let mut ledger = Ledger::new(0);
    ledger.update(snapshot(&[], &[]));
    ledger.submitted("9".to_owned(), "JOB_1".to_owned());
    let new = ledger.update(snapshot(&[], &[("9", "exitCode=3 jobState=PENDING", 0)]));
    let expected = "new Job of 2 3 exitCode=3 jobState=PENDING jobSubId=JOB_1 queueId=2";
    assert_eq!(told(&new), [expected]);
    let changed = ledger.update(snapshot(&[], &[("9", "jobState=PENDING", 0)]));
    assert_eq!(told(&changed), ["changed Job 3 exitCode=0"]);
    let down = ledger.machine_is(Machine::Alert);
    assert_eq!(told(&down), ["changed Machine 1 machineState=ALERT"]);
    let up = ledger.update(snapshot(&[], &[("9", "jobState=PENDING", 0)]));
    assert_eq!(told(&up), ["changed Machine 1 machineState=UP"]);
}

/// Without its queue, a job would be dropped by the client, which then would not know what changes.
#[test]
fn queue_stays_while_jobs_are_reported_in_it() {
    let mut model = Model::default();
    let manager = model.add_manager(100, "m").expect("the only manager");
    let mut ledger = Ledger::new(100);
    let mut update = |now: Snapshot| {
        let notices = ledger.update(now);
        for notice in notices.clone() {
            for event in events(notice, IdForm::Numbers) {
                assert_eq!(model.apply(manager, &event), 0, "{event:?}");
            }
        }
        told(&notices)
    };
    let without = |mut now: Snapshot| {
        now.queues = [("other".to_owned(), attributes("name=other"))].into();
        now
    };
    let running = || snapshot(&[], &[("7", "jobState=RUNNING", 2)]);
    let _new = update(running());
    // The manager lists the queue no longer; its job is there, and changes.
    let unknown = snapshot(&[], &[("7", "jobState=UNKNOWN", 2)]);
    let expected = [
        "new Queue of 100 106 name=other",
        "changed Queue 102 queueState=STOPPED queueStatus=no longer listed",
        "changed Job 103 jobState=UNKNOWN",
    ];
    assert_eq!(update(without(unknown)), expected);
    let expected = [
        "removed Queue 106",
        "changed Queue 102 queueState=NORMAL queueStatus=",
        "changed Job 103 jobState=RUNNING",
    ];
    assert_eq!(update(running()), expected);
    // The job moves to another queue: the first one stays all the same.
    let mut moved = without(running());
    moved.jobs.get_mut("7").expect("there").queue = "other".to_owned();
    let expected = [
        "new Queue of 100 107 name=other",
        "changed Queue 102 queueState=STOPPED queueStatus=no longer listed",
        "changed Job 103 queueId=107",
    ];
    assert_eq!(update(moved.clone()), expected);
    moved.jobs.clear();
    let expected = [
        "removed Process 104,105",
        "removed Job 103",
        "removed Queue 102",
    ];
    assert_eq!(update(moved), expected);
}
