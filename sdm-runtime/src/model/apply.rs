//! Application of an agent's events about elements: new, changed and removed ones.

use std::borrow::Cow;
use std::collections::BTreeMap;

use roaring::RoaringBitmap;

use super::column::ranges;
use super::error::{ModelError, brief, word};
use super::events::{What, children};
use super::states::States;
use super::store::{Out, Store};
use super::texts::NAMES_FROM;
use super::value::{AttributeType, VALUE_BYTES_MAX, Value, ValueError};
use crate::ids::{IDS_MAX, Ids, parse_number};
use crate::wire::Attribute;
use crate::wire::event::Kind;
use crate::wire::groups::Group;

/// Attributes, by index, with the numbers that represent their values; `None` removes the value.
type Cells = Vec<(usize, Option<i64>)>;
/// Changed attributes by index, each with its elements.
pub(super) type Changed = BTreeMap<usize, RoaringBitmap>;

impl Store {
    pub(super) fn add(&mut self, out: &mut Out, kind: Kind, parent: &str, groups: &[Group]) {
        let Some(parent) = self.parent(kind, parent) else {
            out.error(ModelError::NoParent(word(kind), super::value::cut(parent)));
            return;
        };
        let mut all = RoaringBitmap::new();
        let mut members = Vec::new();
        let mut attributes: BTreeMap<usize, Vec<(usize, i64)>> = BTreeMap::new();
        for group in groups {
            let Some(ids) = self.fresh(out, kind, &group.ids, &all) else {
                continue;
            };
            if self.table(kind).ids.len() + all.len() + ids.len() > IDS_MAX {
                out.error(ModelError::TooMany(word(kind)));
                continue;
            }
            for (attribute, cell) in self.cells(out, kind, &group.ids, &group.attributes) {
                let set = cell.map(|cell| (members.len(), cell));
                attributes.entry(attribute).or_default().extend(set);
            }
            unite(&mut all, &ids);
            members.push(ids);
        }
        if all.is_empty() {
            return;
        }
        // Consecutive ids are stored as runs.
        all.optimize();
        self.table_mut(kind).add(parent, &all);
        for (attribute, set) in attributes {
            let set = set
                .into_iter()
                .map(|(group, cell)| (&*members[group], cell));
            if !self.table_mut(kind).fill(attribute, &all, set) {
                out.error(ModelError::TooVaried(word(kind)));
            }
        }
        let mut touched = RoaringBitmap::new();
        if kind == Kind::Node {
            touched.clone_from(&all);
        }
        if kind == Kind::Process {
            self.count(&all, 1, &mut touched);
        }
        let mut of_nodes = Changed::new();
        self.settle(&touched, &mut of_nodes);
        out.publish(self, kind, parent, What::New(all));
        if kind != Kind::Node {
            self.publish(out, Kind::Node, of_nodes);
        }
    }

    /// The number of the element with this id, if it may be the parent of elements of this kind; else `None`.
    fn parent(&self, kind: Kind, id: &str) -> Option<u32> {
        let id = self.find(id)?;
        let kinds = [Kind::ResourceManager, Kind::Machine, Kind::Queue, Kind::Job];
        let mut fits = kinds
            .into_iter()
            .filter(|parent| children(*parent).contains(&kind));
        fits.any(|parent| self.table(parent).ids.contains(id))
            .then_some(id)
    }

    /// The ids among these that a new element can have. Ids that are in use, in `new` or reserved are reported as an
    /// error. `None` if no id is left.
    fn fresh<'a>(
        &mut self,
        out: &mut Out,
        kind: Kind,
        ids: &'a Ids,
        new: &RoaringBitmap,
    ) -> Option<Cow<'a, RoaringBitmap>> {
        let is_free = |numbers: &RoaringBitmap| {
            let used = self.tables().map(|table| &table.ids).chain([new]);
            let first = numbers.min().unwrap_or_default();
            used.into_iter().all(|used| match numbers.len() {
                1 => !used.contains(first),
                2..SMALL => {
                    ranges(numbers).all(|(first, last)| used.range_cardinality(first..=last) == 0)
                }
                _ => used.is_disjoint(numbers),
            })
        };
        if let Ids::Numbers(numbers) = ids
            && numbers.max().is_some_and(|last| last < NAMES_FROM)
            && is_free(numbers)
        {
            return Some(Cow::Borrowed(numbers));
        }
        let (mut numbers, mut taken) = match ids {
            Ids::Numbers(numbers) => {
                let mut reserved = numbers.clone();
                reserved.remove_range(..NAMES_FROM);
                (numbers.clone(), reserved)
            }
            Ids::Text(name) => match self.names.number(name) {
                Ok(number) => (std::iter::once(number).collect(), RoaringBitmap::new()),
                Err(error) => {
                    out.error(error);
                    return None;
                }
            },
        };
        for used in self.tables().map(|table| &table.ids).chain([new]) {
            if !used.is_disjoint(&numbers) {
                taken |= used & &numbers;
            }
        }
        if !taken.is_empty() {
            let text = match ids {
                Ids::Numbers(_) => brief(&taken),
                Ids::Text(name) => super::value::cut(name),
            };
            out.error(ModelError::Taken(word(kind), text));
            numbers -= taken;
        }
        let is_some = !numbers.is_empty();
        is_some.then_some(Cow::Owned(numbers))
    }

    /// Parses attributes, and returns the valid ones with the numbers that represent their values. Invalid ones are
    /// reported as errors.
    fn cells(&mut self, out: &mut Out, kind: Kind, ids: &Ids, attributes: &[Attribute]) -> Cells {
        let mut cells = Cells::new();
        let whose = || match ids {
            Ids::Numbers(numbers) => brief(numbers),
            Ids::Text(name) => super::value::cut(name),
        };
        for (key, text) in attributes {
            let attribute = match self.definitions.index_of(key) {
                Ok(attribute) if attribute == self.places.id => {
                    out.error(ModelError::Id(word(kind), whose()));
                    continue;
                }
                Ok(attribute) => attribute,
                Err(error) => {
                    out.error(error.into());
                    continue;
                }
            };
            let earlier = cells.iter().position(|(other, _)| *other == attribute);
            let before = earlier.and_then(|at| cells[at].1);
            let cell = match self.cell(kind, attribute, text, before) {
                Ok(cell) => cell,
                Err(CellError::Value(why)) => {
                    let key = super::value::cut(key);
                    out.error(ModelError::Value(word(kind), whose(), key, why));
                    continue;
                }
                Err(CellError::Internal(state)) => {
                    out.error(ModelError::Internal(whose(), state));
                    continue;
                }
                Err(CellError::Full(error)) => {
                    out.error(error);
                    continue;
                }
            };
            match earlier {
                Some(at) => cells[at].1 = cell,
                None => cells.push((attribute, cell)),
            }
        }
        cells
    }

    /// The number that represents a value; `None` for no value. `before` is an earlier value of an array in the same
    /// group, to which the text is appended as one more item.
    fn cell(
        &mut self,
        kind: Kind,
        attribute: usize,
        text: &str,
        before: Option<i64>,
    ) -> Result<Option<i64>, CellError> {
        let is_internal = kind == Kind::Node && attribute == self.places.processes;
        let state = self.state(kind, attribute);
        if let Some(states) = state.filter(|_| is_internal || !text.is_empty()) {
            let known = states.index(text);
            let at = known.ok_or_else(|| ValueError::NoWord(super::value::cut(text)))?;
            if is_internal {
                return Err(CellError::Internal(states.words[at]));
            }
            return Ok(i64::try_from(at).ok());
        }
        if self.is_reference(attribute) {
            let number = match parse_number(text) {
                _ if text.is_empty() => return Ok(None),
                Some(number) => Some(number).filter(|number| *number < NAMES_FROM),
                None => Some(self.names.number(text)?),
            };
            let none = || ValueError::OutOfBounds(super::value::cut(text));
            return Ok(Some(number.map(i64::from).ok_or_else(none)?));
        }
        let definition = self.definitions.at(attribute);
        let value = match &definition.kind {
            AttributeType::String if text.len() <= VALUE_BYTES_MAX => {
                return Ok(Some(self.texts.number(text)?));
            }
            AttributeType::Array => {
                definition.kind.read(text)?;
                let items = match before {
                    Some(before) => format!("{}\0{text}", self.texts.text(before)),
                    None => text.to_owned(),
                };
                if items.len() > VALUE_BYTES_MAX {
                    return Err(ValueError::TooLong(items.len()).into());
                }
                return Ok(Some(self.texts.number(&items)?));
            }
            AttributeType::Enumerated(words) if !text.is_empty() => {
                let at = words.iter().position(|known| known == text);
                let at = at.ok_or_else(|| ValueError::NoWord(super::value::cut(text)))?;
                return Ok(i64::try_from(at).ok());
            }
            _ if text.is_empty() => match &definition.default {
                Some(default) => default.clone(),
                None => return Ok(None),
            },
            kind => kind.read(text)?,
        };
        Ok(match value {
            Value::Boolean(it) => Some(i64::from(it)),
            Value::Date(number) | Value::Integer(number) => Some(number),
            Value::Double(number) => Some(number.to_bits().cast_signed()),
            Value::Enumerated(word) => match &self.definitions.at(attribute).kind {
                AttributeType::Enumerated(words) => {
                    let at = words.iter().position(|known| *known == word);
                    at.and_then(|at| i64::try_from(at).ok())
                }
                _ => None,
            },
            Value::Array(_) | Value::String(_) => None,
        })
    }

    pub(super) fn change(&mut self, out: &mut Out, kind: Kind, parent: &str, groups: &[Group]) {
        let mut changed = Changed::new();
        let mut touched = RoaringBitmap::new();
        for group in groups {
            let mut ids = self.known(out, kind, parent, &group.ids);
            if ids.is_empty() {
                continue;
            }
            let cells = self.cells(out, kind, &group.ids, &group.attributes);
            for (attribute, cell) in &cells {
                self.hold_back(out, kind, *attribute, *cell, &mut ids);
            }
            for (attribute, cell) in cells {
                let others = self.table(kind).others(attribute, &ids, cell);
                if others.is_empty() {
                    continue;
                }
                let is_counted = kind == Kind::Process && self.is_counted(attribute, cell, &others);
                if is_counted {
                    self.count(&others, -1, &mut touched);
                }
                let is_set = self.table_mut(kind).set(attribute, &others, cell);
                if is_counted {
                    self.count(&others, 1, &mut touched);
                }
                if !is_set {
                    out.error(ModelError::TooVaried(word(kind)));
                    continue;
                }
                unite(changed.entry(attribute).or_default(), &others);
            }
        }
        let mut of_nodes = Changed::new();
        if kind == Kind::Node {
            of_nodes = std::mem::take(&mut changed);
        }
        self.settle(&touched, &mut of_nodes);
        self.publish(out, kind, changed);
        self.publish(out, Kind::Node, of_nodes);
    }

    /// Removes from `ids` the elements whose present state has no transition to the new state, and reports them as an
    /// error.
    fn hold_back(
        &self,
        out: &mut Out,
        kind: Kind,
        attribute: usize,
        cell: Option<i64>,
        ids: &mut RoaringBitmap,
    ) {
        let Some(states) = self.state(kind, attribute) else {
            return;
        };
        let place = |cell: Option<i64>| {
            let at = cell.and_then(|cell| usize::try_from(cell).ok());
            at.unwrap_or_else(|| states.default_index())
        };
        let to = place(cell);
        for (from, held) in self.table(kind).groups(attribute, ids) {
            let from = place(from);
            if states.may_follow(from, to) {
                continue;
            }
            let words = |at: usize| states.words.get(at).copied().unwrap_or_default();
            out.error(ModelError::Transition {
                kind: word(kind),
                ids: brief(&held),
                from: words(from),
                to: words(to),
            });
            *ids -= held;
        }
    }

    /// Notifies listeners of changes, with one notice for each parent.
    pub(super) fn publish(&self, out: &mut Out, kind: Kind, changed: Changed) {
        let mut parents: BTreeMap<u32, Vec<(String, RoaringBitmap)>> = BTreeMap::new();
        for (attribute, ids) in changed {
            let id = &self.definitions.at(attribute).id;
            for (parent, ids) in self.table(kind).by_parent(&ids) {
                parents.entry(parent).or_default().push((id.clone(), ids));
            }
        }
        for (parent, attributes) in parents {
            out.publish(self, kind, parent, What::Changed(attributes));
        }
    }

    /// Removes elements, with all elements below them.
    pub(super) fn remove(&mut self, out: &mut Out, kind: Kind, ids: &RoaringBitmap) {
        if ids.is_empty() || kind == Kind::ResourceManager {
            return;
        }
        for child in children(kind) {
            let below = self.table(*child).below(ids);
            self.remove(out, *child, &below);
        }
        for (parent, gone) in self.table(kind).by_parent(ids) {
            out.publish(self, kind, parent, What::Removed(gone));
        }
        let mut touched = RoaringBitmap::new();
        if kind == Kind::Process {
            self.count(ids, -1, &mut touched);
        }
        self.table_mut(kind).remove(ids);
        // Attributes of processes and jobs may still refer to nodes and queues, so their ids stay reserved.
        if !matches!(kind, Kind::Node | Kind::Queue) {
            let mut names = ids.clone();
            names.remove_range(..NAMES_FROM);
            names.iter().for_each(|name| self.names.forget(name));
        }
        let mut of_nodes = Changed::new();
        self.settle(&touched, &mut of_nodes);
        self.publish(out, Kind::Node, of_nodes);
    }

    /// Sets the state of the manager itself. Returns false if its present state has no transition to the new one.
    pub(super) fn set_state(&mut self, out: &mut Out, to: usize) -> bool {
        let kind = Kind::ResourceManager;
        let states = States::of(kind);
        let attribute = self
            .definitions
            .position(states.attribute)
            .unwrap_or_default();
        let base = self.base;
        let from = self.table(kind).cell(attribute, base);
        let from = from.and_then(|from| usize::try_from(from).ok());
        if !states.may_follow(from.unwrap_or_else(|| states.default_index()), to) {
            return false;
        }
        let ids: RoaringBitmap = std::iter::once(base).collect();
        if from != Some(to) {
            self.table_mut(kind)
                .set(attribute, &ids, i64::try_from(to).ok());
            self.publish(out, kind, [(attribute, ids)].into());
        }
        true
    }
}

/// Sets smaller than this are added range by range. A union of whole sets would copy each part of the other set that
/// they touch.
const SMALL: u64 = 256;

/// Adds elements to a set.
fn unite(all: &mut RoaringBitmap, ids: &RoaringBitmap) {
    match (ids.len(), ids.min()) {
        (1, Some(id)) => {
            all.insert(id);
        }
        (2..SMALL, _) => {
            for (first, last) in ranges(ids) {
                all.insert_range(first..=last);
            }
        }
        _ => *all |= ids,
    }
}

/// Reason for which a value has no number.
enum CellError {
    Value(ValueError),
    Internal(&'static str),
    Full(ModelError),
}

impl From<ValueError> for CellError {
    fn from(error: ValueError) -> Self {
        Self::Value(error)
    }
}

impl From<ModelError> for CellError {
    fn from(error: ModelError) -> Self {
        Self::Full(error)
    }
}
