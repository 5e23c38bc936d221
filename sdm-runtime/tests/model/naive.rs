//! A model that keeps a map for each element, and random events by which it is compared with the real model.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use sdm_runtime::ids::Ids;
use sdm_runtime::model::Model;
use sdm_runtime::model::events::{ManagerId, Notice, What};
use sdm_runtime::model::states::{NODE_EXTRA, States};
use sdm_runtime::wire::event::{Event, Kind};
use sdm_runtime::wire::groups::Group;

pub(crate) const BASE: u32 = 1;

const KINDS: [Kind; 5] = [
    Kind::Machine,
    Kind::Queue,
    Kind::Node,
    Kind::Job,
    Kind::Process,
];

type Attributes = BTreeMap<String, String>;

#[derive(Clone, Debug, Default)]
pub(crate) struct Naive {
    elements: BTreeMap<u32, Element>,
}

#[derive(Clone, Debug)]
struct Element {
    kind: Kind,
    parent: u32,
    attributes: Attributes,
}

fn attribute() -> impl Strategy<Value = (String, String)> {
    let of = |key: &'static str, values: &'static [&'static str]| {
        prop::sample::select(values).prop_map(move |value| (key.to_owned(), value.to_owned()))
    };
    prop_oneof![
        4 => of("processState", &["STARTING", "RUNNING", "EXITED", "EXITED_SIGNALLED", "ERROR", "UNKNOWN", "NONE"]),
        2 => of("processNodeId", &["2", "3", "4", "5", "6", "7", ""]),
        2 => of("jobState", &["PENDING", "RUNNING", "TERMINATED", "SUSPENDED", "STARTED"]),
        2 => of("nodeExtraState", &["USER_ALLOC_EXCL", "NONE", "RUNNING_PROCESS"]),
        1 => of("nodeProcessState", &["RUNNING_PROCESS", "NONE", "USER_ALLOC_EXCL"]),
        1 => of("nodeState", &["UP", "DOWN", "ALERT"]),
        2 => of("processPID", &["1", "2", "3", "77", "99999999999", "-1", "x", ""]),
        1 => of("note", &["", "a", "b"]),
        1 => of("id", &["3"]),
    ]
}

fn ids() -> impl Strategy<Value = Ids> {
    let some = prop::collection::btree_set(2_u32..30, 0..6);
    let range = (2_u32..30, 0_u32..12).prop_map(|(first, more)| (first..=first + more).collect());
    prop_oneof![some, range].prop_map(|ids: BTreeSet<u32>| Ids::Numbers(ids.into_iter().collect()))
}

pub(crate) fn event() -> impl Strategy<Value = Event> {
    let kind = prop::sample::select(&KINDS[..]);
    let attributes = prop::collection::btree_map("[a-z]", attribute(), 0..4);
    let group = (ids(), attributes).prop_map(|(ids, attributes)| {
        let attributes: Attributes = attributes.into_values().collect();
        let attributes = attributes.into_iter().collect();
        Group { ids, attributes }
    });
    let groups = prop::collection::vec(group, 0..5);
    let parent = prop_oneof![4 => prop::sample::select(&[1, 2, 3, 8, 9][..]), 1 => 1_u32..12];
    (0..8, kind, parent, groups, ids()).prop_map(|(what, kind, parent, groups, ids)| {
        let parent = match (kind, what) {
            (Kind::Machine | Kind::Queue, 0..=2) => BASE.to_string(),
            (Kind::Process, _) | (_, 0..=3) => parent.to_string(),
            _ => String::new(),
        };
        match what {
            0..=3 => Event::New(kind, parent, groups),
            4..=6 => Event::Change(kind, parent, groups),
            _ => Event::Remove(kind, parent, ids),
        }
    })
}

/// A machine, a queue, four nodes, two jobs and the processes of one.
pub(crate) fn prelude() -> Vec<Event> {
    let event = |kind, parent: &str, ids: &str, attributes: &[(&str, &str)]| {
        let ids = ids.parse().expect("a range set");
        let attributes = attributes.iter();
        let attributes = attributes.map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        let attributes = attributes.collect();
        Event::New(kind, parent.to_owned(), vec![Group { ids, attributes }])
    };
    vec![
        event(Kind::Machine, "1", "2", &[]),
        event(Kind::Queue, "1", "3", &[]),
        event(Kind::Node, "2", "4-7", &[("nodeState", "UP")]),
        event(Kind::Job, "3", "8-9", &[("jobState", "RUNNING")]),
        event(
            Kind::Process,
            "8",
            "10-20",
            &[("processState", "STARTING"), ("processNodeId", "5")],
        ),
    ]
}

fn numbers(ids: &Ids) -> BTreeSet<u32> {
    match ids {
        Ids::Numbers(numbers) => numbers.iter().collect(),
        Ids::Text(_) => BTreeSet::new(),
    }
}

fn is_below(kind: Kind, parent: Option<Kind>) -> bool {
    match kind {
        Kind::Machine | Kind::Queue => parent.is_none(),
        Kind::Job => matches!(parent, None | Some(Kind::Queue)),
        Kind::Node => parent == Some(Kind::Machine),
        Kind::Process => parent == Some(Kind::Job),
        Kind::ResourceManager => false,
    }
}

/// The valid attributes, and the number of invalid ones; an empty value removes the attribute.
fn sound(kind: Kind, attributes: &[(String, String)]) -> (Vec<(String, Option<String>)>, usize) {
    let mut all = Vec::new();
    let mut errors = 0;
    for (key, value) in attributes {
        let states = [Kind::Process, Kind::Job, Kind::Node].map(States::of);
        let states = states.into_iter().find(|states| states.attribute == key);
        let is_sound = match key.as_str() {
            "id" => false,
            "nodeExtraState" => value != "RUNNING_PROCESS",
            "nodeProcessState" => kind != Kind::Node && value != "USER_ALLOC_EXCL",
            "processPID" => value.is_empty() || value.parse().is_ok_and(|pid: i64| pid >= 0),
            _ => states.is_none_or(|states| states.words.contains(&value.as_str())),
        };
        let is_gone = value.is_empty() && matches!(key.as_str(), "processPID" | "processNodeId");
        if is_sound {
            all.push((key.clone(), (!is_gone).then(|| value.clone())));
        } else {
            errors += 1;
        }
    }
    (all, errors)
}

impl Naive {
    /// Applies an event; returns the number of errors.
    pub(crate) fn apply(&mut self, event: &Event) -> usize {
        let mut errors = 0;
        match event {
            Event::New(kind, parent, groups) => errors = self.add(*kind, parent, groups),
            Event::Change(kind, parent, groups) => {
                for group in groups {
                    errors += self.change(*kind, parent, group);
                }
            }
            Event::Remove(kind, parent, ids) => {
                let wanted = numbers(ids);
                let known = self.known(*kind, parent, &wanted);
                errors = usize::from(known.len() < wanted.len());
                known.into_iter().for_each(|id| self.remove(id));
            }
            other => panic!("{other:?}"),
        }
        self.settle();
        errors
    }

    fn known(&self, kind: Kind, parent: &str, ids: &BTreeSet<u32>) -> BTreeSet<u32> {
        let is_known = |id: &&u32| {
            self.elements.get(id).is_some_and(|element| {
                let is_child = kind != Kind::Process || element.parent.to_string() == parent;
                element.kind == kind && is_child
            })
        };
        ids.iter().filter(is_known).copied().collect()
    }

    fn add(&mut self, kind: Kind, parent: &str, groups: &[Group]) -> usize {
        let id: u32 = parent.parse().unwrap_or(0);
        let above = self.elements.get(&id).map(|element| element.kind);
        if !(id == BASE || above.is_some()) || !is_below(kind, above) {
            return 1;
        }
        let mut errors = 0;
        for group in groups {
            let wanted = numbers(&group.ids);
            let free = wanted.iter().filter(|id| !self.elements.contains_key(id));
            let free: Vec<u32> = free.copied().collect();
            errors += usize::from(free.len() < wanted.len());
            if free.is_empty() {
                continue;
            }
            let (attributes, wrong) = sound(kind, &group.attributes);
            errors += wrong;
            let set = attributes
                .into_iter()
                .filter_map(|(key, value)| Some((key, value?)));
            let attributes: Attributes = set.collect();
            for new in free {
                let attributes = attributes.clone();
                let parent = id;
                self.elements.insert(
                    new,
                    Element {
                        kind,
                        parent,
                        attributes,
                    },
                );
            }
        }
        errors
    }

    fn change(&mut self, kind: Kind, parent: &str, group: &Group) -> usize {
        let wanted = numbers(&group.ids);
        let mut known = self.known(kind, parent, &wanted);
        let mut errors = usize::from(known.len() < wanted.len());
        if known.is_empty() {
            return errors;
        }
        let (attributes, wrong) = sound(kind, &group.attributes);
        errors += wrong;
        let states = States::of(kind);
        for (_, to) in attributes.iter().filter(|(key, _)| key == states.attribute) {
            let to = to
                .as_ref()
                .and_then(|to| states.index(to))
                .expect("it is sound");
            let mut wrong = BTreeSet::new();
            known.retain(|id| {
                let held = self.elements[id].attributes.get(states.attribute);
                let from = held.map_or(states.default, String::as_str);
                let may = states.may_follow(states.index(from).expect("a state"), to);
                // An element without a reported state and one that was reported as UNKNOWN are different to the
                // model.
                wrong.extend((!may).then(|| held.cloned()));
                may
            });
            errors += wrong.len();
        }
        for id in known {
            let element = self.elements.get_mut(&id).expect("it is known");
            for (key, value) in &attributes {
                match value {
                    Some(value) => {
                        element.attributes.insert(key.clone(), value.clone());
                    }
                    None => {
                        element.attributes.remove(key);
                    }
                }
            }
        }
        errors
    }

    fn remove(&mut self, id: u32) {
        self.elements.remove(&id);
        let below = self
            .elements
            .iter()
            .filter(|(_, element)| element.parent == id);
        let below: Vec<u32> = below.map(|(id, _)| *id).collect();
        below.into_iter().for_each(|id| self.remove(id));
    }

    fn settle(&mut self) {
        let processes = self.elements.values().filter(|it| it.kind == Kind::Process);
        let on = processes.filter_map(|it| {
            let node: u32 = it.attributes.get("processNodeId")?.parse().ok()?;
            Some((
                node,
                it.attributes
                    .get("processState")
                    .cloned()
                    .unwrap_or_default(),
            ))
        });
        let on: Vec<(u32, String)> = on.collect();
        for (id, node) in self
            .elements
            .iter_mut()
            .filter(|(_, it)| it.kind == Kind::Node)
        {
            let own = || {
                on.iter()
                    .filter(|(node, _)| node == id)
                    .map(|(_, state)| state.as_str())
            };
            let key = "nodeProcessState".to_owned();
            let state = if own().any(|state| matches!(state, "STARTING" | "RUNNING" | "SUSPENDED"))
            {
                "RUNNING_PROCESS"
            } else if own().any(|state| matches!(state, "EXITED" | "EXITED_SIGNALLED" | "ERROR")) {
                "EXITED_PROCESS"
            } else {
                "NONE"
            };
            node.attributes.insert(key, state.to_owned());
        }
    }

    /// The model has the same elements below the same parents with the same attributes.
    pub(crate) fn check(&self, model: &Model, manager: ManagerId) {
        for kind in KINDS {
            let ids = model.elements(manager, kind).expect("there is the manager");
            let own = self.elements.iter().filter(|(_, it)| it.kind == kind);
            let own: Vec<u32> = own.map(|(id, _)| *id).collect();
            assert_eq!(ids.iter().collect::<Vec<_>>(), own, "{kind:?}");
            for id in own {
                let element = &self.elements[&id];
                assert_eq!(model.parent(manager, kind, id), Some(element.parent));
                let family = model.children(manager, element.parent, kind);
                assert!(family.is_some_and(|family| family.contains(id)));
                let held = model.attributes(manager, kind, id);
                let held: Attributes = held
                    .iter()
                    .map(|(it, value)| (it.id.clone(), value.to_string()))
                    .collect();
                let mut expected = element.attributes.clone();
                expected.insert("id".to_owned(), id.to_string());
                expected.insert("name".to_owned(), id.to_string());
                let of_node = [&NODE_EXTRA].into_iter().filter(|_| kind == Kind::Node);
                for states in of_node.chain([States::of(kind)]) {
                    let state = expected.entry(states.attribute.to_owned());
                    state.or_insert(states.default.to_owned());
                }
                assert_eq!(held, expected, "{kind:?} {id}");
            }
        }
    }

    /// Asserts that the notices are exactly the changes since `before`.
    pub(crate) fn check_told(&self, before: &Self, told: impl Iterator<Item = Notice>) {
        let mut new = BTreeSet::new();
        let mut gone = BTreeSet::new();
        let mut changed = BTreeSet::new();
        for notice in told {
            match &notice.what {
                What::New(ids) => new.extend(ids),
                What::Removed(ids) => gone.extend(ids),
                What::Changed(attributes) => {
                    let each = attributes.iter();
                    let each =
                        each.flat_map(|(key, ids)| ids.iter().map(move |id| (id, key.clone())));
                    changed.extend(each);
                }
                _ => {}
            }
        }
        let (was, is) = (&before.elements, &self.elements);
        assert!(new.iter().eq(is.keys().filter(|id| !was.contains_key(id))));
        assert!(gone.iter().eq(was.keys().filter(|id| !is.contains_key(id))));
        for (id, element) in is {
            let Some(old) = was.get(id) else { continue };
            let keys: BTreeSet<_> = old
                .attributes
                .keys()
                .chain(element.attributes.keys())
                .collect();
            for key in keys {
                let differs = old.attributes.get(key) != element.attributes.get(key);
                let is_told = changed.contains(&(*id, key.clone()));
                // An event can change something back and forth.
                assert!(is_told || !differs, "{id} {key} was not told");
            }
        }
    }
}
