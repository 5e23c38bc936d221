//! Listeners and their queues of notices, which each listener empties at its own pace.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use roaring::RoaringBitmap;

use super::events::{ManagerId, Notice, What};
use super::value::Value;
use crate::wire::event::Kind;

/// Maximum number of notices in one listener's queue. Beyond it the oldest are dropped, and the listener gets
/// [`What::Missed`].
pub const NOTICES_MAX: usize = 4096;
/// Approximate maximum size of the notices in one listener's queue, in bytes; the last one is kept at any size.
pub const NOTICE_BYTES_MAX: usize = 32 << 20;
/// Maximum number of listeners.
pub const LISTENERS_MAX: usize = 4096;

/// Read access to the elements that notices are about.
pub(super) trait Source {
    /// The value of an element's attribute; `None` if it has none.
    fn value_of(&self, kind: Kind, id: u32, attribute: &str) -> Option<Value>;
    /// Those of the processes `ids` that are on a node.
    fn on_node(&self, ids: &RoaringBitmap, node: u32) -> RoaringBitmap;
}

/// The notices that a listener gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interest {
    /// All notices.
    All,
    /// One element: its attributes, its creation and its removal. For the manager's own element also the manager's
    /// errors and messages, and whether its elements are out of date.
    Element(ManagerId, Kind, u32),
    /// The children of one element: new, changed and removed ones. Children of a node are the processes on it.
    Children(ManagerId, Kind, u32),
    /// The resource managers: new, changed and removed ones, their errors and messages, and whether their elements are
    /// out of date. Notices about their elements are excluded.
    Managers,
}

/// A listener, until it is dropped. Its number is not reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ListenerId(u64);

#[derive(Debug)]
struct Listener {
    interest: Interest,
    queue: VecDeque<Arc<Notice>>,
    bytes: usize,
    missed: bool,
}

/// All listeners of a model.
#[derive(Debug, Default)]
pub(super) struct Listeners {
    all: BTreeMap<u64, Listener>,
    last: u64,
}

impl Listeners {
    pub(super) fn add(&mut self, interest: Interest) -> Option<ListenerId> {
        if self.all.len() >= LISTENERS_MAX {
            return None;
        }
        self.last += 1;
        let listener = Listener {
            interest,
            queue: VecDeque::new(),
            bytes: 0,
            missed: false,
        };
        self.all.insert(self.last, listener);
        Some(ListenerId(self.last))
    }

    pub(super) fn drop(&mut self, id: ListenerId) {
        self.all.remove(&id.0);
    }

    pub(super) fn poll(&mut self, id: ListenerId) -> Option<Arc<Notice>> {
        let listener = self.all.get_mut(&id.0)?;
        let next = listener.pop()?;
        if std::mem::take(&mut listener.missed) {
            let missed = Notice {
                what: What::Missed,
                parent: None,
                ..next.head()
            };
            listener.bytes += next.bytes();
            listener.queue.push_front(next);
            return Some(Arc::new(missed));
        }
        Some(next)
    }

    /// Queues a notice about a manager as a whole, such as an error, for the listeners that are interested.
    pub(super) fn push(&mut self, notice: Arc<Notice>) {
        for listener in self.all.values_mut() {
            let wanted = match listener.interest {
                Interest::All | Interest::Managers => true,
                Interest::Element(manager, kind, _) => {
                    manager == notice.manager && kind == Kind::ResourceManager
                }
                Interest::Children(..) => false,
            };
            if wanted {
                listener.push(Arc::clone(&notice));
            }
        }
    }

    /// Queues a notice about elements for the listeners that are interested. The store must still have the elements.
    pub(super) fn publish(&mut self, store: &dyn Source, notice: Notice) {
        let notice = Arc::new(notice);
        for listener in self.all.values_mut() {
            if let Some(own) = listener.interest.of(store, &notice) {
                listener.push(own);
            }
        }
    }
}

impl Listener {
    fn push(&mut self, notice: Arc<Notice>) {
        let bytes = notice.bytes();
        while self.queue.len() >= NOTICES_MAX || self.bytes + bytes > NOTICE_BYTES_MAX {
            if self.pop().is_none() {
                break;
            }
            self.missed = true;
        }
        self.bytes += bytes;
        self.queue.push_back(notice);
    }

    fn pop(&mut self) -> Option<Arc<Notice>> {
        let notice = self.queue.pop_front()?;
        self.bytes -= notice.bytes();
        Some(notice)
    }
}

impl Interest {
    /// The part of a notice that a listener receives; `None` if the notice has none.
    fn of(self, store: &dyn Source, notice: &Arc<Notice>) -> Option<Arc<Notice>> {
        match self {
            Self::All => Some(Arc::clone(notice)),
            Self::Managers => (notice.kind == Kind::ResourceManager).then(|| Arc::clone(notice)),
            Self::Element(manager, kind, id) => {
                let is_it = manager == notice.manager && kind == notice.kind;
                is_it.then(|| element(store, notice, id)).flatten()
            }
            Self::Children(manager, ..) if manager != notice.manager => None,
            Self::Children(_, Kind::Node, node) => {
                let is_it = notice.kind == Kind::Process;
                is_it.then(|| on_node(store, notice, node)).flatten()
            }
            Self::Children(_, kind, id) => {
                let is_child = super::events::children(kind).contains(&notice.kind);
                let is_it = is_child && notice.parent == Some(id);
                is_it.then(|| Arc::clone(notice))
            }
        }
    }
}

/// The part of a notice about one element; `None` if the notice has none.
fn element(store: &dyn Source, notice: &Arc<Notice>, id: u32) -> Option<Arc<Notice>> {
    let what = match &notice.what {
        What::Changed(attributes) => {
            let own = attributes.iter().filter(|(_, ids)| ids.contains(id));
            let values = own.map(|(attribute, _)| {
                let value = store.value_of(notice.kind, id, attribute);
                (attribute.clone(), value)
            });
            let values: Vec<_> = values.collect();
            (!values.is_empty()).then_some(What::Attributes(id, values))?
        }
        What::New(ids) if ids.contains(id) => What::New(std::iter::once(id).collect()),
        What::Removed(ids) if ids.contains(id) => What::Removed(std::iter::once(id).collect()),
        _ => return None,
    };
    Some(Arc::new(Notice {
        what,
        ..notice.head()
    }))
}

/// The part of a notice about processes of one node; `None` if the notice has none.
fn on_node(store: &dyn Source, notice: &Arc<Notice>, node: u32) -> Option<Arc<Notice>> {
    let own = |ids: &RoaringBitmap| store.on_node(ids, node);
    let what = match &notice.what {
        What::New(ids) => What::New(own(ids)),
        What::Removed(ids) => What::Removed(own(ids)),
        What::Changed(attributes) => {
            let own = attributes.iter().map(|(id, ids)| (id.clone(), own(ids)));
            What::Changed(own.filter(|(_, ids)| !ids.is_empty()).collect())
        }
        _ => return None,
    };
    let notice = Notice {
        what,
        ..notice.head()
    };
    (!notice.ids().is_empty()).then(|| Arc::new(notice))
}
