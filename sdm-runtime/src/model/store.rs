//! The elements of one resource manager: queries, and events that concern more than one kind.

use std::sync::Arc;

use roaring::RoaringBitmap;

use super::column::Column;
use super::definitions::Definitions;
use super::error::{ModelError, word};
use super::events::{Alike, ManagerId, Notice, What};
use super::listeners::{Listeners, Source};
use super::states::{self, States};
use super::table::Table;
use super::texts::{NAMES_FROM, Names, Texts};
use super::value::{AttributeType, Value};
use crate::attribute;
use crate::ids::Ids;
use crate::wire::event::{Event, Kind};

/// Maximum number of errors of one event that are reported one by one.
const ERRORS_MAX: usize = 16;

/// Indices of the definitions that the model itself reads.
#[derive(Clone, Debug, Default)]
pub(super) struct Places {
    pub(super) id: usize,
    pub(super) name: usize,
    pub(super) extra: usize,
    pub(super) processes: usize,
    pub(super) process: usize,
    pub(super) node: usize,
    pub(super) queue: usize,
}

/// State of one resource manager.
#[derive(Debug)]
pub(super) struct Store {
    pub(super) base: u32,
    pub(super) definitions: Definitions,
    pub(super) stale: Option<String>,
    pub(super) texts: Texts,
    pub(super) names: Names,
    pub(super) places: Places,
    tables: [Table; 6],
    /// Number of living processes of each node; the next column has the number of ended ones.
    pub(super) live: Column,
    pub(super) ended: Column,
}

/// Destination of notices while an event is applied.
pub(super) struct Out<'a> {
    pub(super) manager: ManagerId,
    pub(super) listeners: &'a mut Listeners,
    errors: usize,
}

impl<'a> Out<'a> {
    pub(super) fn new(manager: ManagerId, listeners: &'a mut Listeners) -> Self {
        Self {
            manager,
            listeners,
            errors: 0,
        }
    }

    pub(super) fn error(&mut self, error: ModelError) {
        self.errors += 1;
        if self.errors <= ERRORS_MAX {
            self.tell(What::Error(error));
        }
    }

    /// Sends a notice about the manager as a whole.
    pub(super) fn tell(&mut self, what: What) {
        self.listeners.push(Arc::new(Notice {
            manager: self.manager,
            kind: Kind::ResourceManager,
            parent: None,
            what,
        }));
    }

    /// Sends a notice about elements below a parent.
    pub(super) fn publish(&mut self, store: &Store, kind: Kind, parent: u32, what: What) {
        let parent = (kind != Kind::ResourceManager).then_some(parent);
        let manager = self.manager;
        self.listeners.publish(
            store,
            Notice {
                manager,
                kind,
                parent,
                what,
            },
        );
    }

    fn finish(mut self) -> usize {
        if let Some(more) = self.errors.checked_sub(ERRORS_MAX).filter(|more| *more > 0) {
            self.tell(What::Error(ModelError::More(more)));
        }
        self.errors
    }
}

impl Source for Store {
    fn value_of(&self, kind: Kind, id: u32, attribute: &str) -> Option<Value> {
        self.value(kind, id, self.definitions.position(attribute)?)
    }

    fn on_node(&self, ids: &RoaringBitmap, node: u32) -> RoaringBitmap {
        let table = self.table(Kind::Process);
        ids - table.others(self.places.node, ids, Some(i64::from(node)))
    }
}

impl Store {
    pub(super) fn new(base: u32) -> Self {
        let definitions = Definitions::default();
        let place = |id: &str| definitions.position(id).unwrap_or_default();
        let places = Places {
            id: place("id"),
            name: place("name"),
            extra: place(attribute::NODE_EXTRA_STATE),
            processes: place(attribute::NODE_PROCESS_STATE),
            process: place(attribute::PROCESS_STATE),
            node: place(attribute::PROCESS_NODE_ID),
            queue: place(attribute::QUEUE_ID),
        };
        let mut tables: [Table; 6] = Default::default();
        tables[Kind::ResourceManager as usize].add(base, &std::iter::once(base).collect());
        Self {
            base,
            definitions,
            stale: None,
            texts: Texts::default(),
            names: Names::default(),
            places,
            tables,
            live: Column::default(),
            ended: Column::default(),
        }
    }

    pub(super) fn table(&self, kind: Kind) -> &Table {
        &self.tables[kind as usize]
    }

    pub(super) fn table_mut(&mut self, kind: Kind) -> &mut Table {
        &mut self.tables[kind as usize]
    }

    pub(super) fn tables(&self) -> impl Iterator<Item = &Table> {
        self.tables.iter()
    }

    /// Applies an event of the agent; returns the number of its errors.
    pub(super) fn apply(
        &mut self,
        listeners: &mut Listeners,
        manager: ManagerId,
        event: &Event,
    ) -> usize {
        let mut out = Out::new(manager, listeners);
        match event {
            Event::New(kind, parent, groups) => self.add(&mut out, *kind, parent, groups),
            Event::Change(kind, parent, groups) => self.change(&mut out, *kind, parent, groups),
            Event::Remove(kind, parent, ids) => {
                let ids = self.known(&mut out, *kind, parent, ids);
                self.remove(&mut out, *kind, &ids);
            }
            Event::RemoveAll => {
                for kind in [Kind::Machine, Kind::Queue, Kind::Job] {
                    let ids = self.table(kind).ids.clone();
                    self.remove(&mut out, kind, &ids);
                }
            }
            Event::AttrDef(all) => {
                for definition in all {
                    if let Err(error) = self.definitions.announce(definition) {
                        out.error(error.into());
                    }
                }
            }
            Event::Message(level, failure) => {
                out.tell(What::Message(level.clone(), failure.clone()));
            }
            // These events answer commands; the owner of the session handles them.
            Event::Ok
            | Event::Error(_)
            | Event::Shutdown
            | Event::SubmitJobError(..)
            | Event::TerminateJobError(..)
            | Event::FilterDef(_)
            | Event::Own { .. } => {}
        }
        let errors = out.finish();
        if self.texts.is_to_sweep() {
            self.sweep();
        }
        errors
    }

    /// The existing elements among those that an event names. Unknown elements are reported as an error.
    pub(super) fn known(
        &mut self,
        out: &mut Out,
        kind: Kind,
        parent: &str,
        ids: &Ids,
    ) -> RoaringBitmap {
        let unknown = |ids: String| ModelError::Unknown(word(kind), ids);
        let mut numbers = match ids {
            Ids::Numbers(numbers) => numbers.clone(),
            Ids::Text(name) => match self.names.find(name) {
                Some(number) => std::iter::once(number).collect(),
                None => {
                    out.error(unknown(super::value::cut(name)));
                    return RoaringBitmap::new();
                }
            },
        };
        let here = match (kind, self.find(parent)) {
            // A process is named with its job.
            (Kind::Process, Some(job)) => self.table(kind).families.get(&job),
            (Kind::Process, None) => None,
            _ => Some(&self.table(kind).ids),
        };
        let is_number = matches!(ids, Ids::Numbers(_));
        let mut strange = match here {
            Some(here) => &numbers - here,
            None => numbers.clone(),
        };
        // Numbers that represent string ids are not valid ids of an agent.
        if is_number {
            let mut reserved = numbers.clone();
            reserved.remove_range(..NAMES_FROM);
            strange |= reserved;
        }
        if !strange.is_empty() {
            out.error(unknown(super::error::brief(&strange)));
            numbers -= strange;
        }
        numbers
    }

    /// The number that stands for an element's id; `None` for an unknown string id, and for a number that is reserved
    /// for string ids.
    pub(super) fn find(&self, id: &str) -> Option<u32> {
        match Ids::one(id) {
            Ids::Numbers(number) => number.min().filter(|number| *number < NAMES_FROM),
            Ids::Text(name) => self.names.find(&name),
        }
    }

    /// The id for which a number stands, as text; empty if it stands for none.
    pub(super) fn id(&self, number: u32) -> String {
        match number < NAMES_FROM {
            true => number.to_string(),
            false => self.names.name(number).unwrap_or_default().to_owned(),
        }
    }

    /// Value of an element's attribute; `None` if it has none. The id is an attribute of every element. A missing
    /// name is replaced by the id, and a missing state by the default state.
    pub(super) fn value(&self, kind: Kind, id: u32, attribute: usize) -> Option<Value> {
        if attribute == self.places.id {
            return Some(Value::String(self.id(id)));
        }
        let cell = self.table(kind).cell(attribute, id);
        match cell {
            Some(cell) => Some(self.read(attribute, cell)),
            None if attribute == self.places.name => Some(Value::String(self.id(id))),
            None => self
                .state(kind, attribute)
                .map(|states| Value::Enumerated(states.default.to_owned())),
        }
    }

    /// The states of an attribute that is a state of elements of this kind; `None` for another attribute.
    pub(super) fn state(&self, kind: Kind, attribute: usize) -> Option<&'static States> {
        let own = States::of(kind);
        let id = self.definitions.at(attribute).id.as_str();
        if id == own.attribute {
            return Some(own);
        }
        match kind {
            Kind::Node if attribute == self.places.extra => Some(&states::NODE_EXTRA),
            Kind::Node if attribute == self.places.processes => Some(&states::NODE_PROCESSES),
            _ => None,
        }
    }

    /// True if an attribute's values are ids of elements.
    pub(super) fn is_reference(&self, attribute: usize) -> bool {
        attribute == self.places.node || attribute == self.places.queue
    }

    /// The attribute's value that a column's number represents.
    pub(super) fn read(&self, attribute: usize, cell: i64) -> Value {
        if self.is_reference(attribute) {
            return Value::String(
                u32::try_from(cell)
                    .map(|id| self.id(id))
                    .unwrap_or_default(),
            );
        }
        match &self.definitions.at(attribute).kind {
            AttributeType::Array => {
                let items = self.texts.text(cell).split('\0');
                Value::Array(items.map(str::to_owned).collect())
            }
            AttributeType::Boolean => Value::Boolean(cell != 0),
            AttributeType::Date(_) => Value::Date(cell),
            AttributeType::Double(..) => Value::Double(f64::from_bits(cell.cast_unsigned())),
            AttributeType::Enumerated(words) => {
                let word = usize::try_from(cell).ok().and_then(|at| words.get(at));
                Value::Enumerated(word.cloned().unwrap_or_default())
            }
            AttributeType::Integer(..) => Value::Integer(cell),
            AttributeType::String => Value::String(self.texts.text(cell).to_owned()),
        }
    }

    /// Sets the name of the manager.
    pub(super) fn rename(&mut self, name: &str) {
        // A name of some hundred bytes always finds room.
        let name: String = name.chars().take(256).collect();
        let cell = self.texts.number(&name).ok();
        let ids = std::iter::once(self.base).collect();
        let place = self.places.name;
        self.table_mut(Kind::ResourceManager).set(place, &ids, cell);
    }

    /// Resets to the state before the agent's first event; the manager's own name and state stay.
    pub(super) fn begin_anew(&mut self) {
        let own = Kind::ResourceManager;
        let state = self
            .definitions
            .position(States::of(own).attribute)
            .unwrap_or_default();
        let cell = self.table(own).cell(state, self.base);
        let name = self.value(own, self.base, self.places.name);
        *self = Self::new(self.base);
        self.rename(&name.map(|name| name.to_string()).unwrap_or_default());
        let ids = std::iter::once(self.base).collect();
        self.table_mut(own).set(state, &ids, cell);
    }

    /// Groups elements by the values of some attributes.
    pub(super) fn alike(&self, kind: Kind, ids: &RoaringBitmap, attributes: &[&str]) -> Vec<Alike> {
        let mut groups = vec![(Vec::new(), ids & &self.table(kind).ids)];
        for attribute in attributes {
            let Some(place) = self.definitions.position(attribute) else {
                groups.iter_mut().for_each(|(values, _)| values.push(None));
                continue;
            };
            let mut finer = Vec::new();
            for (values, ids) in groups {
                for (_, ids) in self.table(kind).groups(place, &ids) {
                    let first = ids.min();
                    let mut values = values.clone();
                    values.push(first.and_then(|id| self.value(kind, id, place)));
                    finer.push((values, ids));
                }
            }
            groups = finer;
        }
        groups.retain(|(_, ids)| !ids.is_empty());
        groups.sort_by_key(|(_, ids)| ids.min());
        groups
    }

    /// Removes unused texts.
    fn sweep(&mut self) {
        let mut texts = std::mem::take(&mut self.texts);
        let is_text = |attribute: usize| {
            let kind = &self.definitions.at(attribute).kind;
            matches!(kind, AttributeType::Array | AttributeType::String)
                && !self.is_reference(attribute)
        };
        let columns = self.tables.iter().flat_map(|table| &table.columns);
        let columns = columns.filter(|(attribute, _)| is_text(**attribute));
        texts.sweep(columns.flat_map(|(_, column)| column.cells()));
        self.texts = texts;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::groups::Group;

    #[test]
    fn unused_attribute_texts_are_dropped() {
        let (mut store, mut listeners) = (Store::new(1), Listeners::default());
        let manager = ManagerId(1);
        let event = |new: bool, at: u32| {
            let attributes = vec![("note".to_owned(), format!("note {at}"))];
            let ids = Ids::one("2");
            let groups = vec![Group { ids, attributes }];
            match new {
                true => Event::New(Kind::Machine, "1".to_owned(), groups),
                false => Event::Change(Kind::Machine, String::new(), groups),
            }
        };
        for at in 0..50_000 {
            assert_eq!(store.apply(&mut listeners, manager, &event(at == 0, at)), 0);
        }
        assert!(store.texts.len() <= 4097, "{}", store.texts.len());
        let note = store.definitions.position("note").expect("it was said");
        let value = store
            .value(Kind::Machine, 2, note)
            .map(|value| value.to_string());
        assert_eq!(value.as_deref(), Some("note 49999"));
    }
}
