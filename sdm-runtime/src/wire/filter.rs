//! Filters of outgoing events. PTP and the description of its proxy protocol leave their meaning to the
//! agent; this meaning is SDM's.

use std::collections::BTreeMap;

use roaring::RoaringBitmap;

use super::definition::Definition;
use super::event::{Event, Kind};
use super::groups::Group;
use super::{Attribute, Dialect, MessageError};
use crate::attribute;
use crate::ids::Ids;

/// The filters of a session.
#[derive(Debug, Default)]
pub(super) struct Filters {
    /// Filters of SET_FILTERS: a name hides that attribute, `key=value` hides elements that have it.
    words: Vec<String>,
    silences: Vec<Silence>,
    /// The child elements of each element, as NEW events have reported them.
    below: BTreeMap<u32, RoaringBitmap>,
}

/// Elements for which no events, or no events about some attributes, are sent: FILTER_EVENTS.
#[derive(Debug)]
struct Silence {
    numbers: RoaringBitmap,
    text: Option<String>,
    /// True if the descendants of the elements are hidden as well.
    with_children: bool,
    /// The hidden attributes; an empty list hides all. An attribute given without a value is hidden with any value.
    attributes: Vec<Attribute>,
}

impl Filters {
    /// Replaces the filters of SET_FILTERS.
    pub(super) fn set(&mut self, words: Vec<String>) {
        self.words = words;
    }

    /// Removes these filters; an empty list removes all of them, including those of FILTER_EVENTS.
    pub(super) fn clear(&mut self, gone: &[String]) {
        self.words
            .retain(|word| !gone.is_empty() && !gone.contains(word));
        if gone.is_empty() {
            self.silences.clear();
        }
    }

    /// The filters of SET_FILTERS as definitions: the id is the filtered attribute, the default is the value.
    pub(super) fn list(&self) -> Vec<Definition> {
        let definition = |word: &String| {
            let (id, value) = word.split_once('=').unwrap_or((word, ""));
            Definition {
                id: id.to_owned(),
                kind: "STRING".to_owned(),
                name: id.to_owned(),
                description: "A filter that the client has set".to_owned(),
                display: true,
                default: value.to_owned(),
                extra: Vec::new(),
            }
        };
        self.words.iter().map(definition).collect()
    }

    /// Adds a filter of FILTER_EVENTS. `id` names elements, `filterChildren` includes their descendants; the other
    /// attributes are the ones to hide.
    pub(super) fn silence(&mut self, mut attributes: Vec<Attribute>) -> Result<(), MessageError> {
        let mut take = |key: &str| {
            let at = attributes.iter().position(|it| it.0 == key)?;
            Some(attributes.remove(at).1)
        };
        let ids = take("id").ok_or(MessageError::Missing("FILTER_EVENTS", "id"))?;
        let with_children = match take("filterChildren").as_deref() {
            None | Some("false") => false,
            Some("true") => true,
            Some(other) => return Err(super::bad("filterChildren", other)),
        };
        let (mut numbers, text) = match ids.parse()? {
            Ids::Numbers(numbers) => (numbers, None),
            Ids::Text(text) => (RoaringBitmap::new(), Some(text)),
        };
        let mut last = numbers.clone();
        while with_children && !last.is_empty() {
            let below = last.iter().filter_map(|id| self.below.get(&id));
            last = below.fold(RoaringBitmap::new(), |all, some| all | some) - &numbers;
            numbers |= &last;
        }
        self.silences.push(Silence {
            numbers,
            text,
            with_children,
            attributes,
        });
        Ok(())
    }

    /// Removes from an event the parts that filters hide. Returns `None` if no part is left.
    pub(super) fn apply(&mut self, dialect: Dialect, mut event: Event) -> Option<Event> {
        // The document's dialect has no FILTER_EVENTS, so parents and children are not needed.
        if dialect == Dialect::Ptp {
            self.note(&event);
        }
        let is_change = matches!(event, Event::Change(..));
        if let Event::Remove(_, _, ids) = &mut event {
            let mut whole = self.silences.iter().filter(|it| it.attributes.is_empty());
            return whole.all(|silence| silence.spares(ids)).then_some(event);
        }
        let (Event::New(_, _, groups) | Event::Change(_, _, groups)) = &mut event else {
            return Some(event);
        };
        if self.words.is_empty() && self.silences.is_empty() {
            return Some(event);
        }
        for silence in &self.silences {
            silence.apply(groups);
        }
        groups
            .retain_mut(|group| self.filter(group) && !(is_change && group.attributes.is_empty()));
        (!groups.is_empty()).then_some(event)
    }

    /// Updates the known parents and children of elements from an event. New children of hidden elements are hidden
    /// too, if the filter includes descendants.
    fn note(&mut self, event: &Event) {
        match event {
            Event::New(_, parent, groups) => {
                let Ok(Ids::Numbers(parents)) = parent.parse() else {
                    return;
                };
                for group in groups {
                    let Ids::Numbers(ids) = &group.ids else {
                        continue;
                    };
                    for silence in self.silences.iter_mut().filter(|it| it.with_children) {
                        if !silence.numbers.is_disjoint(&parents) {
                            silence.numbers |= ids;
                        }
                    }
                    for parent in &parents {
                        *self.below.entry(parent).or_default() |= ids;
                    }
                }
            }
            Event::Remove(kind, _, Ids::Numbers(ids)) if *kind != Kind::Process => {
                self.below.retain(|parent, _| !ids.contains(*parent));
            }
            Event::RemoveAll => self.below.clear(),
            _ => {}
        }
    }

    /// Applies the filters of SET_FILTERS to a group: removes the hidden attributes. Returns false if the elements
    /// of the group are hidden. PTP's `stdout` and `stderr` stand for the output attributes of a process.
    fn filter(&self, group: &mut Group) -> bool {
        let has = |word: &String| {
            let pair = word.split_once('=');
            pair.is_some_and(|(k, v)| {
                let mut attributes = group.attributes.iter();
                attributes.any(|(key, value)| k == key && v == value)
            })
        };
        if self.words.iter().any(has) {
            return false;
        }
        group.attributes.retain(|(key, _)| {
            !self.words.iter().any(|word| match word.as_str() {
                "stdout" => key == attribute::PROCESS_STDOUT,
                "stderr" => key == attribute::PROCESS_STDERR,
                name => name == key,
            })
        });
        true
    }
}

impl Silence {
    /// Removes the filtered elements from a set; false if no element is left.
    fn spares(&self, ids: &mut Ids) -> bool {
        match ids {
            Ids::Numbers(numbers) => {
                *numbers -= &self.numbers;
                !numbers.is_empty()
            }
            Ids::Text(text) => self.text.as_ref() != Some(text),
        }
    }

    fn apply(&self, groups: &mut Vec<Group>) {
        let mut meant = Vec::new();
        groups.retain_mut(|group| {
            let before = group.clone();
            let is_left = self.spares(&mut group.ids);
            if !self.attributes.is_empty() && before.ids != group.ids || !is_left {
                meant.push(before);
            }
            is_left
        });
        if self.attributes.is_empty() {
            return;
        }
        for mut group in meant {
            if let Ids::Numbers(numbers) = &mut group.ids {
                *numbers &= &self.numbers;
            }
            group.attributes.retain(|(key, value)| {
                let mut all = self.attributes.iter();
                !all.any(|(k, v)| k == key && (v.is_empty() || v == value))
            });
            groups.push(group);
        }
    }
}
