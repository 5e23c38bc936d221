//! Filters of outgoing events. PTP and the description of its proxy protocol leave their meaning to the
//! agent; this meaning is SDM's.

use std::collections::BTreeMap;

use roaring::RoaringBitmap;

use super::definition::Definition;
use super::event::{Event, Kind};
use super::groups::Group;
use super::{Attribute, MessageError};
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
    missed: Missed,
}

/// Elements of which the client does not have the present attributes, because filters have hidden events. Elements whose
/// ids are text are not followed.
#[derive(Clone, Debug, Default)]
pub(super) struct Missed {
    /// Elements that the client does not know: their NEW event was hidden.
    unknown: RoaringBitmap,
    /// Elements that the client knows, with attributes that it was not sent.
    stale: RoaringBitmap,
    /// Elements that may be visible now.
    due: RoaringBitmap,
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

impl Missed {
    fn is_empty(&self) -> bool {
        self.unknown.is_empty() && self.stale.is_empty()
    }
}

impl Filters {
    /// Replaces the filters of SET_FILTERS.
    pub(super) fn set(&mut self, words: Vec<String>) {
        self.words = words;
        self.all_are_due();
    }

    fn all_are_due(&mut self) {
        self.missed.due = &self.missed.unknown | &self.missed.stale;
    }

    /// Takes the elements that may be visible since the last call; [`again`](Self::again) announces them.
    pub(super) fn take_due(&mut self) -> RoaringBitmap {
        let due = std::mem::take(&mut self.missed.due);
        due & (&self.missed.unknown | &self.missed.stale)
    }

    /// The elements that the client has missed, for [`restore`](Self::restore) if an event cannot be sent.
    pub(super) fn missed(&self) -> Missed {
        self.missed.clone()
    }

    pub(super) fn restore(&mut self, missed: Missed) {
        self.missed = missed;
    }

    /// Removes these filters; an empty list removes all of them, including those of FILTER_EVENTS.
    pub(super) fn clear(&mut self, gone: &[String]) {
        self.words
            .retain(|word| !gone.is_empty() && !gone.contains(word));
        if gone.is_empty() {
            self.silences.clear();
        }
        self.all_are_due();
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
        if with_children {
            numbers = self.with_descendants(numbers);
        }
        self.silences.push(Silence {
            numbers,
            text,
            with_children,
            attributes,
        });
        Ok(())
    }

    /// These elements and all elements below them.
    fn with_descendants(&self, mut numbers: RoaringBitmap) -> RoaringBitmap {
        let mut last = numbers.clone();
        while !last.is_empty() {
            let below = last.iter().filter_map(|id| self.below.get(&id));
            last = below.fold(RoaringBitmap::new(), |all, some| all | some) - &numbers;
            numbers |= &last;
        }
        numbers
    }

    /// Removes from an event the parts that filters hide, and those about elements that the client does not know: their
    /// changes, their removal, and their children. Returns `None` if no part is left. The removal of an element that
    /// the client knows is never hidden.
    pub(super) fn apply(&mut self, mut event: Event) -> Option<Event> {
        self.note(&event);
        if self.words.is_empty() && self.silences.is_empty() && self.missed.is_empty() {
            return Some(event);
        }
        let is_left = match &mut event {
            Event::New(_, parent, groups) => {
                let before = numbers_of(groups);
                let parent = parent.parse().ok();
                let is_unknown = |id: &Ids| matches!(id, Ids::Numbers(it) if it.intersection_len(&self.missed.unknown) > 0);
                if parent.as_ref().is_some_and(is_unknown) {
                    groups.retain(|group| matches!(group.ids, Ids::Text(_)));
                }
                self.reduce(groups);
                self.missed.unknown |= before - numbers_of(groups);
                !groups.is_empty()
            }
            Event::Change(_, _, groups) => {
                let before = numbers_of(groups);
                let unknown = &before & &self.missed.unknown;
                groups.retain_mut(|group| subtract(&mut group.ids, &unknown));
                self.reduce(groups);
                groups.retain(|group| !group.attributes.is_empty());
                self.missed.stale |= before - numbers_of(groups) - &unknown;
                // A changed value may be one that no filter hides.
                if !self.words.is_empty() {
                    self.missed.due |= self.with_descendants(unknown);
                }
                !groups.is_empty()
            }
            Event::Remove(_, _, ids) => {
                let gone = match &*ids {
                    Ids::Numbers(numbers) => numbers.clone(),
                    Ids::Text(_) => RoaringBitmap::new(),
                };
                let is_left = subtract(ids, &self.missed.unknown);
                self.missed.unknown -= &gone;
                self.missed.stale -= gone;
                is_left
            }
            Event::RemoveAll => {
                self.missed = Missed::default();
                true
            }
            _ => true,
        };
        is_left.then_some(event)
    }

    /// The events that bring the client up to date with these elements, given with all their attributes: NEW for those
    /// that it does not know, CHANGE for those of which it has missed attributes.
    pub(super) fn again(&mut self, kind: Kind, parent: String, groups: &[Group]) -> Vec<Event> {
        let of = |some: &RoaringBitmap| -> Vec<Group> {
            let part = |group: &Group| match &group.ids {
                Ids::Numbers(ids) => Some(Group {
                    ids: Ids::Numbers(ids & some),
                    attributes: group.attributes.clone(),
                })
                .filter(|part| !part.ids.is_empty()),
                Ids::Text(_) => None,
            };
            groups.iter().filter_map(part).collect()
        };
        let (new, changed) = (of(&self.missed.unknown), of(&self.missed.stale));
        self.missed.unknown -= numbers_of(&new);
        self.missed.stale -= numbers_of(&changed);
        let job = match kind {
            Kind::Process => parent.clone(),
            _ => String::new(),
        };
        let events = [
            Event::New(kind, parent, new),
            Event::Change(kind, job, changed),
        ];
        events
            .into_iter()
            .filter_map(|event| self.apply(event))
            .collect()
    }

    /// Applies all filters to groups.
    fn reduce(&mut self, groups: &mut Vec<Group>) {
        for silence in &self.silences {
            silence.apply(groups, &mut self.missed.stale);
        }
        let mut stale = std::mem::take(&mut self.missed.stale);
        groups.retain_mut(|group| self.filter(group, &mut stale));
        self.missed.stale = stale;
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
    fn filter(&self, group: &mut Group, stale: &mut RoaringBitmap) -> bool {
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
        let count = group.attributes.len();
        group.attributes.retain(|(key, _)| {
            !self.words.iter().any(|word| match word.as_str() {
                "stdout" => key == attribute::PROCESS_STDOUT,
                "stderr" => key == attribute::PROCESS_STDERR,
                name => name == key,
            })
        });
        if let Ids::Numbers(ids) = &group.ids
            && group.attributes.len() < count
        {
            *stale |= ids;
        }
        true
    }
}

impl Silence {
    /// Removes the filtered elements from a set; false if no element is left.
    fn spares(&self, ids: &mut Ids) -> bool {
        match ids {
            Ids::Numbers(_) => subtract(ids, &self.numbers),
            Ids::Text(text) => self.text.as_ref() != Some(text),
        }
    }

    fn apply(&self, groups: &mut Vec<Group>, stale: &mut RoaringBitmap) {
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
            let count = group.attributes.len();
            group.attributes.retain(|(key, value)| {
                let mut all = self.attributes.iter();
                !all.any(|(k, v)| k == key && (v.is_empty() || v == value))
            });
            if let Ids::Numbers(numbers) = &mut group.ids {
                *numbers &= &self.numbers;
                if group.attributes.len() < count {
                    *stale |= &*numbers;
                }
            }
            groups.push(group);
        }
    }
}

/// All ids of groups that are numbers.
fn numbers_of(groups: &[Group]) -> RoaringBitmap {
    let mut all = RoaringBitmap::new();
    for group in groups {
        if let Ids::Numbers(ids) = &group.ids {
            all |= ids;
        }
    }
    all
}

/// Removes elements from a set; false if no element is left.
fn subtract(ids: &mut Ids, gone: &RoaringBitmap) -> bool {
    match ids {
        Ids::Numbers(numbers) => {
            *numbers -= gone;
            !numbers.is_empty()
        }
        Ids::Text(_) => true,
    }
}
