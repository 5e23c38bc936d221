//! Access to the elements in a manager's answer.

use std::collections::BTreeMap;

use sdm_rm::{Answer, Group, Kind};
use sdm_runtime::attribute as id;
use sdm_runtime::states::State;
use sdm_runtime::{JOB_NUMBERS, JobAttributes};
use serde_json::{Map, Value, json};

/// A group of elements with equal attributes, or a single element.
#[derive(Clone, Copy)]
pub(super) struct Element<'a> {
    pub(super) of: &'a Answer,
    pub(super) group: &'a Group,
}

impl JobAttributes for Element<'_> {
    fn attribute(&self, id: &str) -> Option<&str> {
        self.get(id)
    }
}

impl<'a> Element<'a> {
    /// All elements of a kind in the answers.
    pub(super) fn all(answers: &'a [Answer], kind: Kind) -> impl Iterator<Item = Self> {
        let of = move |of: &'a Answer| {
            let groups = of.groups.iter().filter(move |group| group.kind == kind);
            groups.map(move |group| Self { of, group })
        };
        answers.iter().flat_map(of)
    }

    pub(super) fn cluster(&self) -> &'a str {
        &self.of.manager.name
    }

    /// An attribute's value. None if it is empty.
    pub(super) fn get(&self, id: &str) -> Option<&'a str> {
        let mut attributes = self.group.attributes.iter();
        let found = attributes.find(|(known, _)| known == id);
        found.map(|(_, value)| &**value).filter(|it| !it.is_empty())
    }

    /// The state of the element; None if it is missing or not a known word.
    pub(super) fn state<S: State>(&self) -> Option<S> {
        S::read(self.get(S::STATES.attribute)?)
    }

    /// The requested range set of an attribute, ascending. Empty if there is none.
    pub(super) fn set(&self, id: &str) -> &'a str {
        let mut sets = self.group.sets.iter();
        let found = sets.find(|set| set.attribute == id);
        found.map_or("", |set| &set.numbers)
    }

    pub(super) fn text(&self, id: &str) -> String {
        self.get(id).unwrap_or_default().to_owned()
    }

    /// A job's number, as its manager's own commands take it.
    pub(super) fn job(&self) -> &'a str {
        let known = JOB_NUMBERS.into_iter().find_map(|id| self.get(id));
        known.unwrap_or(&self.group.ids)
    }

    pub(super) fn name(&self) -> &'a str {
        self.get(id::NAME).unwrap_or(&self.group.ids)
    }

    /// The element as JSON, with all its attributes.
    pub(super) fn json(&self) -> Value {
        let attributes = self.group.attributes.iter();
        let attributes: Map<String, Value> = attributes
            .map(|(id, value)| (id.clone(), Value::from(&**value)))
            .collect();
        json!({
            "cluster": self.cluster(),
            "id": self.group.ids,
            "parent": self.group.parent,
            "attributes": attributes,
        })
    }
}

/// The managers themselves as JSON.
pub(super) fn managers(answers: &[Answer]) -> Value {
    answers.iter().map(manager).collect()
}

pub(super) fn manager(answer: &Answer) -> Value {
    let it = &answer.manager;
    json!({
        "name": it.name,
        "id": it.rm_id,
        "type": it.rm_type,
        "host": it.host,
        "description": it.description,
        "state": it.state.word(),
        "reason": it.reason,
        "stale": it.stale,
        "since": it.since,
        "age_ms": it.age_ms,
    })
}

/// The names of elements by their ids.
pub(super) fn names(answers: &[Answer], kind: Kind) -> BTreeMap<(&str, &str), &str> {
    Element::all(answers, kind)
        .map(|element| ((element.cluster(), &*element.group.ids), element.name()))
        .collect()
}
