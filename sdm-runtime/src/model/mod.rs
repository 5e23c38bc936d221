//! The runtime model ("PTP runtime platform"), without I/O: a universe of resource managers, each with its machines,
//! nodes, queues, jobs and processes, as their agents report them.
//!
//! The owner of a session [adds a manager](Model::add_manager), gives the agent its base id, and hands in each event
//! ([`Model::apply`]). Elements have the numbers that the agent gave them; a string id has a number that stands for it
//! ([`Model::number`], [`Model::id`]). Numbers are unique within one manager only.
//!
//! An error in an event becomes an error event of the manager. The erroneous part changes nothing; the rest of the
//! event takes effect. Examples of errors are unknown or taken ids, missing parents, values that a definition does not
//! allow, and exceeded limits. If the state of elements may not follow their present one ([`states`]), all attributes
//! that come with it are ignored for these elements.
//!
//! A listener has a queue, which is emptied by [`Model::poll`]. Between polls listeners can be added
//! and dropped, and the model can be read and changed.
//!
//! Values are stored by range (the module `column`): a job of a million equal processes takes as much memory as one
//! of ten.

use std::collections::BTreeMap;
use std::sync::Arc;

use roaring::RoaringBitmap;

use crate::wire::event::{Event, Kind};

mod apply;
mod column;
pub mod definitions;
pub mod error;
pub mod events;
#[doc(hidden)]
pub mod fuzz;
pub mod listeners;
mod nodes;
mod predefined;
pub mod states;
mod store;
mod table;
mod texts;
pub mod value;

use definitions::Definitions;
use events::{Alike, ManagerId, What};
use listeners::{Interest, ListenerId, Listeners};
use states::States;
use store::{Out, Store};
use value::{AttributeDefinition, Value};

/// Maximum number of resource managers.
pub const MANAGERS_MAX: usize = 4096;

/// The universe of PTP's model: all resource managers with their elements, and the listeners.
#[derive(Debug, Default)]
pub struct Model {
    managers: BTreeMap<ManagerId, Store>,
    listeners: Listeners,
    last: u32,
}

/// Error of an operation on a resource manager.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ManagerError {
    /// No resource manager has this number.
    #[error("this resource manager does not exist")]
    Unknown,
    /// There are [`MANAGERS_MAX`] already.
    #[error("at most {MANAGERS_MAX} resource managers can exist")]
    TooMany,
    /// The base id is in the range of numbers that represent string ids.
    #[error("a resource manager cannot have the id {0}: it is reserved for string ids")]
    BadBase(u32),
    /// The manager's state has no transition to this state.
    #[error("the resource manager's state cannot change to {1} from {0}")]
    Transition(String, String),
}

/// Methods that change the model.
impl Model {
    /// Adds a resource manager, which is STOPPED. The base id is its element's id; its agent's numbers lie above it.
    ///
    /// # Errors
    /// There are too many managers, or the base id is in the range of numbers that represent string ids.
    pub fn add_manager(&mut self, base: u32, name: &str) -> Result<ManagerId, ManagerError> {
        if self.managers.len() >= MANAGERS_MAX || self.last == u32::MAX {
            return Err(ManagerError::TooMany);
        }
        if base >= texts::NAMES_FROM {
            return Err(ManagerError::BadBase(base));
        }
        self.last += 1;
        let id = ManagerId(self.last);
        let mut store = Store::new(base);
        store.rename(name);
        let mut out = Out::new(id, &mut self.listeners);
        let ids = std::iter::once(base).collect();
        out.publish(&store, Kind::ResourceManager, base, What::New(ids));
        self.managers.insert(id, store);
        Ok(id)
    }

    /// Removes a resource manager, with all its elements.
    pub fn remove_manager(&mut self, manager: ManagerId) {
        self.forget_elements(manager);
        if let Some(store) = self.managers.remove(&manager) {
            let ids = std::iter::once(store.base).collect();
            let mut out = Out::new(manager, &mut self.listeners);
            out.publish(
                &store,
                Kind::ResourceManager,
                store.base,
                What::Removed(ids),
            );
        }
    }

    /// Sets the state of a resource manager, one of [`states::MANAGER`].
    ///
    /// # Errors
    /// There is no such manager or state, or the present state has no transition to it.
    pub fn set_manager_state(&mut self, manager: ManagerId, to: &str) -> Result<(), ManagerError> {
        let store = self.managers.get_mut(&manager);
        let store = store.ok_or(ManagerError::Unknown)?;
        let mut out = Out::new(manager, &mut self.listeners);
        let place = states::MANAGER.index(to);
        if place.is_some_and(|place| store.set_state(&mut out, place)) {
            return Ok(());
        }
        let from = self.state(manager, Kind::ResourceManager, None);
        let from = from.map(|state| state.to_string()).unwrap_or_default();
        Err(ManagerError::Transition(from, value::cut(to)))
    }

    /// Marks a manager's elements as out of date: they stay, as they were. Events of the agent do not end this state;
    /// [`forget_elements`](Self::forget_elements) does.
    pub fn mark_stale(&mut self, manager: ManagerId, why: &str) {
        if let Some(store) = self.managers.get_mut(&manager) {
            let why = Some(why.to_owned());
            store.stale.clone_from(&why);
            Out::new(manager, &mut self.listeners).tell(What::Stale(why));
        }
    }

    /// Removes all elements of a manager except the one for the manager itself, and its agent's definitions, before a
    /// new agent reports its own.
    pub fn forget_elements(&mut self, manager: ManagerId) {
        let Some(store) = self.managers.get_mut(&manager) else {
            return;
        };
        store.apply(&mut self.listeners, manager, &Event::RemoveAll);
        if store.stale.is_some() {
            Out::new(manager, &mut self.listeners).tell(What::Stale(None));
        }
        store.begin_anew();
    }

    /// Applies an event of a manager's agent. Returns the number of errors in it. Listeners are notified of each of the
    /// first 16, and then of the number of further ones. Events that answer commands, except attribute definitions,
    /// change nothing.
    pub fn apply(&mut self, manager: ManagerId, event: &Event) -> usize {
        let store = self.managers.get_mut(&manager);
        store.map_or(0, |store| store.apply(&mut self.listeners, manager, event))
    }

    /// Adds a listener, which gets notices from now on; `None` if there are [`listeners::LISTENERS_MAX`].
    pub fn listen(&mut self, interest: Interest) -> Option<ListenerId> {
        self.listeners.add(interest)
    }

    /// Drops a listener, with its waiting notices.
    pub fn drop_listener(&mut self, listener: ListenerId) {
        self.listeners.drop(listener);
    }

    /// Removes and returns the listener's next notice; `None` if its queue is empty.
    pub fn poll(&mut self, listener: ListenerId) -> Option<Arc<events::Notice>> {
        self.listeners.poll(listener)
    }
}

/// Queries. The result for an unknown manager or element is empty.
impl Model {
    /// The resource managers.
    pub fn managers(&self) -> impl Iterator<Item = ManagerId> {
        self.managers.keys().copied()
    }

    /// The number of a manager's own element, its base id; `None` for an unknown manager.
    #[must_use]
    pub fn base(&self, manager: ManagerId) -> Option<u32> {
        self.managers.get(&manager).map(|store| store.base)
    }

    /// The reason for which a manager's elements may be out of date; `None` if they are not.
    #[must_use]
    pub fn stale(&self, manager: ManagerId) -> Option<&str> {
        self.managers.get(&manager)?.stale.as_deref()
    }

    /// The definitions of a manager's attributes; `None` for an unknown manager.
    #[must_use]
    pub fn definitions(&self, manager: ManagerId) -> Option<&Definitions> {
        self.managers.get(&manager).map(|store| &store.definitions)
    }

    /// The number that stands for this id; `None` for a string id that is not known, and for a number that is reserved
    /// for string ids. An element with it need not exist.
    #[must_use]
    pub fn number(&self, manager: ManagerId, id: &str) -> Option<u32> {
        self.managers.get(&manager)?.find(id)
    }

    /// The id for which this number stands.
    #[must_use]
    pub fn id(&self, manager: ManagerId, number: u32) -> String {
        let store = self.managers.get(&manager);
        store.map(|store| store.id(number)).unwrap_or_default()
    }

    /// All elements of a kind; `None` for an unknown manager.
    #[must_use]
    pub fn elements(&self, manager: ManagerId, kind: Kind) -> Option<&RoaringBitmap> {
        self.managers
            .get(&manager)
            .map(|store| &store.table(kind).ids)
    }

    /// The children of a kind that an element has; `None` if there are none.
    #[must_use]
    pub fn children(&self, manager: ManagerId, parent: u32, kind: Kind) -> Option<&RoaringBitmap> {
        self.managers
            .get(&manager)?
            .table(kind)
            .families
            .get(&parent)
    }

    /// The processes on a node.
    #[must_use]
    pub fn processes_on(&self, manager: ManagerId, node: u32) -> RoaringBitmap {
        let Some(store) = self.managers.get(&manager) else {
            return RoaringBitmap::new();
        };
        let table = store.table(Kind::Process);
        let others = table.others(store.places.node, &table.ids, Some(i64::from(node)));
        &table.ids - others
    }

    /// The parent of an element; `None` for an unknown element.
    #[must_use]
    pub fn parent(&self, manager: ManagerId, kind: Kind, element: u32) -> Option<u32> {
        let table = self.managers.get(&manager)?.table(kind);
        let parent = table
            .ids
            .contains(element)
            .then(|| table.parents.at(element));
        u32::try_from(parent??).ok()
    }

    /// The value of an element's attribute; `None` if the element does not have it.
    #[must_use]
    pub fn value(
        &self,
        manager: ManagerId,
        kind: Kind,
        element: u32,
        attribute: &str,
    ) -> Option<Value> {
        let store = self.managers.get(&manager)?;
        let is_there = store.table(kind).ids.contains(element);
        let place = store.definitions.position(attribute)?;
        is_there
            .then(|| store.value(kind, element, place))
            .flatten()
    }

    /// The state of an element, or of the manager if `element` is `None` and `kind` is that of managers. Returns `None`
    /// for an unknown one.
    #[must_use]
    pub fn state(&self, manager: ManagerId, kind: Kind, element: Option<u32>) -> Option<Value> {
        let element = element.or_else(|| self.base(manager))?;
        self.value(manager, kind, element, States::of(kind).attribute)
    }

    /// All attributes of one element with their definitions, in the definitions' order.
    #[must_use]
    pub fn attributes(
        &self,
        manager: ManagerId,
        kind: Kind,
        element: u32,
    ) -> Vec<(&AttributeDefinition, Value)> {
        let store = self.managers.get(&manager);
        let Some(store) = store.filter(|store| store.table(kind).ids.contains(element)) else {
            return Vec::new();
        };
        let all = store.definitions.iter().zip(0..);
        let set = all.filter_map(|(it, at)| Some((it, store.value(kind, element, at)?)));
        set.collect()
    }

    /// Groups elements of a kind by the values of some attributes: one group for each combination, ordered by the
    /// groups' first elements. Ids that are no elements of the kind are ignored.
    #[must_use]
    pub fn alike(
        &self,
        manager: ManagerId,
        kind: Kind,
        ids: &RoaringBitmap,
        attributes: &[&str],
    ) -> Vec<Alike> {
        let Some(store) = self.managers.get(&manager) else {
            return Vec::new();
        };
        store.alike(kind, ids, attributes)
    }
}
