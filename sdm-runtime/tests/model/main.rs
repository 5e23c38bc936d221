//! The runtime model: sequences of agents' events, and random events compared with a model that keeps a map for
//! each element.

mod listeners;
mod naive;

use std::fmt::Write;

use proptest::prelude::*;
use roaring::RoaringBitmap;
use sdm_runtime::ids::Ids;
use sdm_runtime::model::Model;
use sdm_runtime::model::error::ModelError;
use sdm_runtime::model::events::{ManagerId, What};
use sdm_runtime::model::listeners::Interest;
use sdm_runtime::wire::definition::Definition;
use sdm_runtime::wire::event::{Event, Kind};
use sdm_runtime::wire::groups::Group;

const BASE: u32 = 100;

/// `1-3 name=a state=UP; 4 name=b`: groups with their attributes.
fn groups(text: &str) -> Vec<Group> {
    let group = |text: &str| {
        let mut words = text.split_whitespace();
        let ids = words.next().expect("ids").parse().expect("a range set");
        let pair = |word: &str| {
            let (key, value) = word.split_once('=').expect("key=value");
            (key.to_owned(), value.to_owned())
        };
        let attributes = words.map(pair).collect();
        Group { ids, attributes }
    };
    text.split(';').map(group).collect()
}

fn new(kind: Kind, parent: &str, text: &str) -> Event {
    Event::New(kind, parent.to_owned(), groups(text))
}

fn change(kind: Kind, parent: &str, text: &str) -> Event {
    Event::Change(kind, parent.to_owned(), groups(text))
}

fn remove(kind: Kind, parent: &str, ids: &str) -> Event {
    let ids = ids.parse().expect("a range set");
    Event::Remove(kind, parent.to_owned(), ids)
}

fn set(text: &str) -> RoaringBitmap {
    match text.parse().expect("a range set") {
        Ids::Numbers(numbers) => numbers,
        Ids::Text(text) => panic!("{text}"),
    }
}

/// A machine (101) of nodes (110 to 113) and a queue (102) with a job (200) of eight processes (300 to 307), two on
/// each node.
fn cluster() -> (Model, ManagerId) {
    let mut model = Model::default();
    let manager = model.add_manager(BASE, "here").expect("there is room");
    for event in [
        new(Kind::Machine, "100", "101 name=front machineState=UP"),
        new(
            Kind::Node,
            "101",
            "110-113 nodeState=UP nodeExtraState=USER_ALLOC_EXCL",
        ),
        new(Kind::Queue, "100", "102 name=batch"),
        new(
            Kind::Job,
            "102",
            "200 name=job jobState=RUNNING progArgs=-a progArgs=b",
        ),
        new(
            Kind::Process,
            "200",
            "300,301 processState=STARTING processNodeId=110; 302,303 processState=STARTING processNodeId=111; \
             304,305 processState=STARTING processNodeId=112; 306,307 processState=STARTING processNodeId=113",
        ),
    ] {
        assert_eq!(model.apply(manager, &event), 0);
    }
    (model, manager)
}

fn value(model: &Model, manager: ManagerId, kind: Kind, id: u32, attribute: &str) -> String {
    let value = model.value(manager, kind, id, attribute);
    value.map_or("-".to_owned(), |value| value.to_string())
}

/// The values of an attribute with their elements, in the form `0=UP:1-3 1=-:4`.
fn held(model: &Model, manager: ManagerId, kind: Kind, attribute: &str) -> String {
    let ids = model.elements(manager, kind).expect("there is the manager");
    let mut text = String::new();
    for (values, ids) in model.alike(manager, kind, ids, &[attribute]) {
        let value = values[0]
            .as_ref()
            .map_or("-".to_owned(), ToString::to_string);
        write!(text, "{value}:{} ", Ids::Numbers(ids)).expect("a string");
    }
    text.trim_end().to_owned()
}

#[test]
fn model_reflects_the_events_of_an_agent() {
    let (model, manager) = cluster();
    assert_eq!(
        held(&model, manager, Kind::Process, "processState"),
        "STARTING:300-307"
    );
    assert_eq!(
        held(&model, manager, Kind::Process, "processNodeId"),
        "110:300-301 111:302-303 112:304-305 113:306-307"
    );
    assert_eq!(model.children(manager, 102, Kind::Job), Some(&set("200")));
    assert_eq!(model.parent(manager, Kind::Process, 305), Some(200));
    assert_eq!(model.processes_on(manager, 112), set("304,305"));
    let attributes = model.attributes(manager, Kind::Job, 200);
    let shown = attributes
        .iter()
        .map(|(it, value)| format!("{}={value}", it.id));
    let shown = shown.collect::<Vec<_>>().join(" ");
    assert_eq!(shown, "id=200 name=job jobState=RUNNING progArgs=-a b");
    assert_eq!(
        value(&model, manager, Kind::Queue, 102, "queueState"),
        "NORMAL"
    );
    assert_eq!(value(&model, manager, Kind::Node, 113, "name"), "113");
}

#[test]
fn each_manager_has_its_own_part_of_the_model() {
    let (mut model, first) = cluster();
    let second = model.add_manager(BASE, "there").expect("there is room");
    let machine = new(Kind::Machine, "100", "101 name=front machineState=DOWN");
    assert_eq!(model.apply(second, &machine), 0, "the same ids");
    let node = change(Kind::Node, "", "110 nodeState=DOWN");
    assert_eq!(model.apply(second, &node), 1, "it has no node");
    let machines = |model: &Model, manager| held(model, manager, Kind::Machine, "machineState");
    assert_eq!(machines(&model, first), "UP:101");
    assert_eq!(held(&model, first, Kind::Node, "nodeState"), "UP:110-113");
    model.remove_manager(first);
    assert_eq!(machines(&model, second), "DOWN:101");
}

/// The processes of a node never hide who has it, and an answer does not depend on the order of the events.
#[test]
fn node_keeps_its_use_beside_the_state_of_its_processes() {
    let (mut model, manager) = cluster();
    let is = |model: &Model, used: &str, processes: &str| {
        let held = |attribute| held(model, manager, Kind::Node, attribute);
        assert_eq!(held("nodeExtraState"), used);
        assert_eq!(held("nodeProcessState"), processes);
    };
    let all = "USER_ALLOC_EXCL:110-113";
    is(&model, all, "RUNNING_PROCESS:110-113");
    model.apply(
        manager,
        &change(Kind::Process, "200", "300-302 processState=EXITED"),
    );
    is(&model, all, "EXITED_PROCESS:110 RUNNING_PROCESS:111-113");
    model.apply(
        manager,
        &change(Kind::Node, "", "110-111 nodeExtraState=OTHER_ALLOC_EXCL"),
    );
    let some = "OTHER_ALLOC_EXCL:110-111 USER_ALLOC_EXCL:112-113";
    is(&model, some, "EXITED_PROCESS:110 RUNNING_PROCESS:111-113");
    model.apply(manager, &remove(Kind::Process, "200", "300-301,304"));
    is(&model, some, "NONE:110 RUNNING_PROCESS:111-113");
    model.apply(manager, &remove(Kind::Job, "", "200"));
    is(&model, some, "NONE:110-113");
    for said in [
        "112 nodeProcessState=RUNNING_PROCESS",
        "112 nodeProcessState=NONE",
        "112 nodeProcessState=",
        "112 nodeExtraState=RUNNING_PROCESS",
    ] {
        let said = change(Kind::Node, "", said);
        assert_eq!(model.apply(manager, &said), 1, "only the model says so");
    }
    is(&model, some, "NONE:110-113");
}

#[test]
fn forbidden_state_transition_is_an_error_without_effect() {
    let (mut model, manager) = cluster();
    model.apply(
        manager,
        &change(Kind::Process, "200", "301,303-304 processState=EXITED"),
    );
    let all = model.listen(Interest::All).expect("there is room");
    let said = change(
        Kind::Process,
        "200",
        "300-307 processState=RUNNING processPID=7",
    );
    assert_eq!(model.apply(manager, &said), 1);
    assert_eq!(
        held(&model, manager, Kind::Process, "processPID"),
        "7:300,302,305-307 -:301,303-304"
    );
    let notice = model.poll(all).expect("an error");
    let What::Error(error @ ModelError::Transition { .. }) = &notice.what else {
        panic!("{notice:?}");
    };
    assert_eq!(
        error.to_string(),
        "process 301,303-304: the state cannot change to RUNNING from EXITED"
    );
}

/// Invalid events, each with the text of its one error.
fn wrong() -> Vec<(Event, &'static str)> {
    vec![
        (
            new(Kind::Node, "999", "120"),
            "new elements of kind node: their parent `999` does not exist or cannot contain them",
        ),
        (
            new(Kind::Node, "102", "120"),
            "new elements of kind node: their parent `102` does not exist or cannot contain them",
        ),
        (
            new(Kind::Node, "101", "100,110,120,200,300"),
            "node 100,110,200,300 already exists, or its id is reserved",
        ),
        (
            new(Kind::Node, "101", "120; 120-121"),
            "node 120 already exists, or its id is reserved",
        ),
        (
            new(Kind::Node, "101", "4294967295"),
            "node 4294967295 already exists, or its id is reserved",
        ),
        (
            change(Kind::Node, "", "120 nodeState=UP"),
            "node 120 does not exist",
        ),
        (
            change(Kind::Node, "", "200 nodeState=UP"),
            "node 200 does not exist",
        ),
        (
            change(Kind::Node, "", "nowhere nodeState=UP"),
            "node nowhere does not exist",
        ),
        (
            change(Kind::Process, "201", "300 processState=RUNNING"),
            "process 300 does not exist",
        ),
        (
            change(Kind::Node, "", "110 nodeState=OVEN"),
            "node 110: attribute nodeState: `OVEN` is not one of the values of its type",
        ),
        (
            change(Kind::Node, "", "110 nodeNumber=-1"),
            "node 110: attribute nodeNumber: -1 is outside the bounds of the attribute",
        ),
        (
            change(Kind::Node, "", "110 id=7"),
            "node 110: an element's id cannot be set as an attribute",
        ),
        (
            remove(Kind::Queue, "", "102-104"),
            "queue 103-104 does not exist",
        ),
        (
            change(Kind::Node, "", "0-16777000 nodeState=UP"),
            "node 0-109,114-16777000 does not exist",
        ),
    ]
}

#[test]
fn invalid_event_part_is_reported_with_one_error() {
    for (said, what) in wrong() {
        let (mut model, manager) = cluster();
        let listener = model.listen(Interest::Managers).expect("there is room");
        assert_eq!(model.apply(manager, &said), 1, "{said:?}");
        let notice = model.poll(listener).expect("an error");
        let What::Error(error) = &notice.what else {
            panic!("{notice:?}");
        };
        assert_eq!(error.to_string(), what);
    }
}

#[test]
fn reported_errors_of_one_event_are_bounded() {
    let (mut model, manager) = cluster();
    model.apply(manager, &new(Kind::Node, "101", "110-121 nodeState=UP"));
    assert_eq!(model.elements(manager, Kind::Node), Some(&set("110-121")));
    let many = (0..1000).map(|id| format!("{id} nodeState=UP"));
    let many = many.collect::<Vec<_>>().join(";");
    let listener = model.listen(Interest::All).expect("there is room");
    assert_eq!(
        model.apply(manager, &change(Kind::Node, "", &many)),
        1000 - 12
    );
    let mut told = 0;
    while let Some(notice) = model.poll(listener) {
        told += usize::from(matches!(notice.what, What::Error(_)));
    }
    assert_eq!(told, 17, "the rest is one number");
}

#[test]
fn elements_with_string_ids_are_updated_and_removed() {
    let mut model = Model::default();
    let manager = model.add_manager(BASE, "here").expect("there is room");
    for event in [
        new(Kind::Queue, "100", "100_batch queueState=NORMAL"),
        new(
            Kind::Job,
            "100_batch",
            "100_job queueId=100_batch; 7 queueId=100_batch",
        ),
        new(Kind::Process, "100_job", "300-303 processState=RUNNING"),
        change(Kind::Job, "", "100_job jobState=RUNNING"),
    ] {
        assert_eq!(model.apply(manager, &event), 0, "{event:?}");
    }
    let job = model.number(manager, "100_job").expect("it is there");
    assert_eq!(model.id(manager, job), "100_job");
    assert_eq!(value(&model, manager, Kind::Job, job, "id"), "100_job");
    assert_eq!(value(&model, manager, Kind::Job, 7, "queueId"), "100_batch");
    assert_eq!(
        model.children(manager, job, Kind::Process),
        Some(&set("300-303"))
    );
    model.apply(manager, &remove(Kind::Job, "", "100_job"));
    assert_eq!(model.number(manager, "100_job"), None);
    assert_eq!(
        model.elements(manager, Kind::Process),
        Some(&RoaringBitmap::new())
    );
}

#[test]
fn element_values_are_checked_by_announced_definitions() {
    let (mut model, manager) = cluster();
    let definition = |id: &str, kind: &str, default: &str, extra: &[&str]| Definition {
        id: id.to_owned(),
        kind: kind.to_owned(),
        name: id.to_uppercase(),
        description: String::new(),
        display: false,
        default: default.to_owned(),
        extra: extra.iter().map(|it| (*it).to_owned()).collect(),
    };
    let announced = Event::AttrDef(vec![
        definition("load", "DOUBLE", "0.5", &["0", "64"]),
        definition("rack", "ENUMERATED", "", &["A", "B"]),
        definition("jobState", "STRING", "", &[]),
        definition("since", "DATE", "", &["SHORT", "SHORT", "US"]),
    ]);
    assert_eq!(
        model.apply(manager, &announced),
        1,
        "the job's state is the model's"
    );
    let said = change(
        Kind::Node,
        "",
        "110-111 load=1.5 rack=B since=2010-09-03; 112 load= rack=C; 113 load=65",
    );
    assert_eq!(model.apply(manager, &said), 2);
    assert_eq!(
        held(&model, manager, Kind::Node, "load"),
        "1.5:110-111 0.5:112 -:113"
    );
    assert_eq!(
        held(&model, manager, Kind::Node, "rack"),
        "B:110-111 -:112-113"
    );
    assert_eq!(
        value(&model, manager, Kind::Node, 110, "since"),
        "2010-09-03T00:00:00Z"
    );
    let load = model.definitions(manager).and_then(|all| all.find("load"));
    assert!(load.is_some_and(|load| load.name == "LOAD" && !load.display));
    model.forget_elements(manager);
    assert_eq!(
        model
            .definitions(manager)
            .map(|all| all.find("load").is_some()),
        Some(false)
    );
}

#[test]
fn a_million_processes_change_by_one_event() {
    let (mut model, manager) = cluster();
    let listener = model.listen(Interest::All).expect("there is room");
    let all = "1000000-1999999";
    for said in [
        new(
            Kind::Process,
            "200",
            &format!("{all} processState=STARTING processNodeId=110"),
        ),
        change(Kind::Process, "200", &format!("{all} processState=RUNNING")),
        change(
            Kind::Process,
            "200",
            "1000007 processState=EXITED processExitCode=3; 1000008 processPID=77",
        ),
    ] {
        assert_eq!(model.apply(manager, &said), 0);
        let told = std::iter::from_fn(|| model.poll(listener));
        assert!(
            told.count() == 1,
            "one event, and the node had a process before"
        );
    }
    let ids = set(all);
    let groups = model.alike(
        manager,
        Kind::Process,
        &ids,
        &["processState", "processPID"],
    );
    assert_eq!(
        groups.iter().map(|(_, ids)| ids.len()).collect::<Vec<_>>(),
        [999_998, 1, 1]
    );
    assert_eq!(
        value(&model, manager, Kind::Process, 1_000_007, "processExitCode"),
        "3"
    );
    assert_eq!(model.apply(manager, &remove(Kind::Process, "200", all)), 0);
    assert_eq!(model.processes_on(manager, 110), set("300-301"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    /// After any events the model is a tree, and its notices are the changes: see
    /// [`sdm_runtime::model::fuzz::fuzz_model`].
    #[test]
    fn any_events_leave_a_consistent_tree(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        sdm_runtime::model::fuzz::fuzz_model(&bytes);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    /// For any events, the model agrees with one that keeps a map for each element, and listeners get a notice of each
    /// difference.
    #[test]
    fn model_agrees_with_a_map_per_element(events in prop::collection::vec(naive::event(), 0..40)) {
        let mut model = Model::default();
        let manager = model.add_manager(naive::BASE, "it").expect("there is room");
        let mut naive = naive::Naive::default();
        let listener = model.listen(Interest::All).expect("there is room");
        for event in naive::prelude().into_iter().chain(events) {
            let before = naive.clone();
            let errors = naive.apply(&event);
            prop_assert_eq!(model.apply(manager, &event), errors, "{:?}", event);
            naive.check(&model, manager);
            let told = std::iter::from_fn(|| model.poll(listener));
            naive.check_told(&before, told.map(|notice| (*notice).clone()));
        }
    }
}
