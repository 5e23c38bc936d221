//! Entry point for fuzzers of the model: it accepts any bytes, and panics if an invariant is violated.

use roaring::RoaringBitmap;

use super::Model;
use super::events::{ManagerId, children};
use super::listeners::Interest;
use crate::ids::Ids;
use crate::wire::definition::Definition;
use crate::wire::event::{Event, Kind};
use crate::wire::groups::Group;

const KINDS: [Kind; 6] = [
    Kind::ResourceManager,
    Kind::Machine,
    Kind::Queue,
    Kind::Node,
    Kind::Job,
    Kind::Process,
];
/// Attributes of all types that predefined attributes have. `made` has no definition at first; an event can give it any
/// type.
const KEYS: [&str; 13] = [
    "processState",
    "processNodeId",
    "jobState",
    "nodeState",
    "nodeExtraState",
    "nodeProcessState",
    "processPID",
    "name",
    "progArgs",
    "debug",
    "rmState",
    "made",
    "id",
];
const VALUES: [&str; 16] = [
    "RUNNING",
    "STARTING",
    "EXITED",
    "TERMINATED",
    "UP",
    "NONE",
    "USER_ALLOC_EXCL",
    "1",
    "5",
    "-3",
    "4294967295",
    "true",
    "2010-09-03",
    "0.5",
    "",
    "RUNNING_PROCESS",
];
const TYPES: [&str; 8] = [
    "ARRAY",
    "BOOLEAN",
    "DATE",
    "DOUBLE",
    "ENUMERATED",
    "INTEGER",
    "STRING",
    "BLOB",
];

/// Applies events that the bytes choose. Asserts that the model stays a tree with one parent for each element, that
/// an id has one kind, and that the notices are the new and removed elements.
pub fn fuzz_model(bytes: &[u8]) {
    let mut model = Model::default();
    let manager = model.add_manager(1, "it").expect("there is room");
    let listener = model.listen(Interest::All).expect("there is room");
    let mut choices = Choices(bytes);
    while !choices.0.is_empty() {
        let event = choices.event();
        let before = all(&model, manager);
        model.apply(manager, &event);
        check(&model, manager);
        let (mut new, mut gone) = (RoaringBitmap::new(), RoaringBitmap::new());
        while let Some(notice) = model.poll(listener) {
            match &notice.what {
                super::events::What::New(ids) => new |= ids,
                super::events::What::Removed(ids) => gone |= ids,
                _ => {}
            }
        }
        let after = all(&model, manager);
        assert_eq!(((&before - &gone) | new), after);
        assert!(gone.is_subset(&before));
    }
}

fn all(model: &Model, manager: ManagerId) -> RoaringBitmap {
    let kinds = KINDS
        .iter()
        .filter_map(|kind| model.elements(manager, *kind));
    kinds.fold(RoaringBitmap::new(), |all, ids| all | ids)
}

fn check(model: &Model, manager: ManagerId) {
    let mut seen = RoaringBitmap::new();
    for parent_kind in KINDS {
        let parents = model.elements(manager, parent_kind).expect("it is there");
        assert!(seen.is_disjoint(parents), "an id has two kinds");
        seen |= parents;
    }
    for kind in KINDS.into_iter().skip(1) {
        let ids = model.elements(manager, kind).expect("it is there");
        let above = KINDS
            .into_iter()
            .filter(|above| children(*above).contains(&kind));
        let mut left = ids.clone();
        for above in above {
            for parent in model.elements(manager, above).into_iter().flatten() {
                let Some(family) = model.children(manager, parent, kind) else {
                    continue;
                };
                assert!(family.is_subset(&left), "a child of two or none");
                left -= family;
                let first = family.min().expect("a family has a member");
                assert_eq!(model.parent(manager, kind, first), Some(parent));
            }
        }
        assert!(left.is_empty(), "elements without a parent");
        for id in ids.iter().take(3).chain(ids.max()) {
            let attributes = model.attributes(manager, kind, id);
            // The manager's definition accepts each value, also in its text form.
            for (definition, value) in attributes {
                let text = value.to_string();
                let is_array = definition.kind.word() == "ARRAY";
                assert!(is_array || definition.kind.read(&text).as_ref() == Ok(&value));
            }
        }
    }
}

/// Source of decisions: the input bytes, and zeros after them.
struct Choices<'a>(&'a [u8]);

impl Choices<'_> {
    fn byte(&mut self) -> u8 {
        match self.0.split_first() {
            Some((first, rest)) => {
                self.0 = rest;
                *first
            }
            None => 0,
        }
    }

    fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[usize::from(self.byte()) % of.len()]
    }

    fn ids(&mut self) -> Ids {
        let first = u32::from(self.byte() % 32);
        let more = u32::from(self.byte());
        match more {
            0..=249 => Ids::Numbers((first..=first + more % 8).collect()),
            250..=252 => Ids::Text(format!("1_{first}")),
            253 => Ids::Numbers((0..32).filter(|id| id % 2 == first % 2).collect()),
            254 => {
                let mut many = RoaringBitmap::new();
                many.insert_range(first..1 << 14);
                Ids::Numbers(many)
            }
            _ => Ids::Numbers(std::iter::once(u32::MAX - first).collect()),
        }
    }

    fn groups(&mut self) -> Vec<Group> {
        let mut groups = Vec::new();
        for _ in 0..self.byte() % 4 {
            let ids = self.ids();
            let count = self.byte() % 4;
            let attributes = (0..count).map(|_| {
                let (key, value) = (self.one(&KEYS), self.one(&VALUES));
                (key.to_owned(), value.to_owned())
            });
            let attributes = attributes.collect();
            groups.push(Group { ids, attributes });
        }
        groups
    }

    fn event(&mut self) -> Event {
        let kind = self.one(&KINDS);
        let parent = match kind {
            Kind::Machine | Kind::Queue => "1".to_owned(),
            _ => self.ids().to_string(),
        };
        match self.byte() % 16 {
            0..=6 => Event::New(kind, parent, self.groups()),
            7..=11 => Event::Change(kind, parent, self.groups()),
            12..=13 => Event::Remove(kind, parent, self.ids()),
            14 => Event::RemoveAll,
            _ => Event::AttrDef(vec![Definition {
                id: self.one(&KEYS).to_owned(),
                kind: self.one(&TYPES).to_owned(),
                name: String::new(),
                description: String::new(),
                display: true,
                default: self.one(&VALUES).to_owned(),
                extra: vec!["1".to_owned(), "9".to_owned()],
            }]),
        }
    }
}
