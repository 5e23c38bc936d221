//! What a manager has, as its agent has told it.

use std::collections::BTreeMap;

use roaring::RoaringBitmap;
use sdm_runtime::ids::Ids;
use sdm_runtime::wire::event::{Event, Kind as WireKind};
use sdm_runtime::wire::groups::Group as WireGroup;

use crate::answer::{AttributeDefinition, Group, Kind};

/// The most elements that are kept: processes of a few jobs of a million.
const ELEMENTS_MAX: usize = 1 << 23;

/// The id of an element.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Id {
    Number(u32),
    Text(String),
}

#[derive(Clone, Debug)]
struct Element {
    kind: Kind,
    parent: String,
    attributes: BTreeMap<String, String>,
}

/// All elements of one manager.
#[derive(Debug, Default)]
pub struct Store {
    elements: BTreeMap<Id, Element>,
    definitions: BTreeMap<String, AttributeDefinition>,
}

/// Why an event changed nothing, or not all that it was to change.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// There would be too many elements.
    #[error("more than {ELEMENTS_MAX} elements")]
    TooMany,
}

impl Store {
    /// Takes an event; true where something is different now. What it says of elements that nobody has told of is ignored.
    ///
    /// # Errors
    /// There would be too many elements.
    pub fn apply(&mut self, event: Event) -> Result<bool, Refused> {
        match event {
            Event::New(kind, parent, groups) => match kind_of(kind) {
                Some(kind) => self.add(kind, &parent, groups),
                None => Ok(false),
            },
            Event::Change(_, _, groups) => Ok(self.change(groups)),
            Event::Remove(_, _, ids) => {
                let before = self.elements.len();
                for id in each(&ids) {
                    self.elements.remove(&id);
                }
                Ok(before != self.elements.len())
            }
            Event::RemoveAll => {
                let had = !self.elements.is_empty();
                self.elements.clear();
                Ok(had)
            }
            Event::AttrDef(definitions) => {
                for it in definitions {
                    let definition = AttributeDefinition {
                        id: it.id.clone(),
                        kind: it.kind,
                        name: it.name,
                        description: it.description,
                        default: it.default,
                        display: it.display,
                    };
                    self.definitions.insert(it.id, definition);
                }
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    fn add(&mut self, kind: Kind, parent: &str, groups: Vec<WireGroup>) -> Result<bool, Refused> {
        let mut added = false;
        for group in groups {
            let room = (ELEMENTS_MAX - self.elements.len()) as u64;
            if group.ids.len() > room {
                return Err(Refused::TooMany);
            }
            let attributes: BTreeMap<_, _> = group.attributes.into_iter().collect();
            for id in each(&group.ids) {
                let element = Element {
                    kind,
                    parent: parent.to_owned(),
                    attributes: attributes.clone(),
                };
                self.elements.insert(id, element);
                added = true;
            }
        }
        Ok(added)
    }

    fn change(&mut self, groups: Vec<WireGroup>) -> bool {
        let mut changed = false;
        for group in groups {
            for id in each(&group.ids) {
                if let Some(element) = self.elements.get_mut(&id) {
                    element.attributes.extend(group.attributes.iter().cloned());
                    changed = true;
                }
            }
        }
        changed
    }

    /// True where nothing is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.elements.is_empty()
    }

    /// What is known of attributes.
    #[must_use]
    pub fn definitions(&self) -> Vec<AttributeDefinition> {
        self.definitions.values().cloned().collect()
    }

    /// Elements of these kinds below `parent`, or all; those alike together.
    #[must_use]
    pub fn groups(
        &self,
        kinds: &[Kind],
        parent: Option<&str>,
        ids: Option<&[String]>,
    ) -> Vec<Group> {
        type Like<'a> = (Kind, &'a str, &'a BTreeMap<String, String>);
        let mut alike: BTreeMap<Like<'_>, RoaringBitmap> = BTreeMap::new();
        let mut groups = Vec::new();
        let group = |(kind, parent, attributes): Like<'_>, ids: String| Group {
            kind,
            parent: parent.to_owned(),
            ids,
            attributes: attributes
                .iter()
                .map(|(id, value)| (id.clone(), value.clone()))
                .collect(),
        };
        let is_wanted = |id: &Id, element: &Element| {
            let wanted = |ids: &[String]| match id {
                Id::Number(number) => ids.contains(&number.to_string()),
                Id::Text(text) => ids.contains(text),
            };
            kinds.contains(&element.kind)
                && parent.is_none_or(|parent| parent == element.parent)
                && ids.is_none_or(wanted)
        };
        for (id, element) in self.elements.iter().filter(|(id, it)| is_wanted(id, it)) {
            let like = (element.kind, &*element.parent, &element.attributes);
            match id {
                Id::Number(number) => drop(alike.entry(like).or_default().insert(*number)),
                Id::Text(text) => groups.push(group(like, text.clone())),
            }
        }
        let numbers = alike.into_iter();
        let mut numbers: Vec<_> = numbers.collect();
        numbers.sort_by_key(|(_, ids)| ids.min());
        let all = numbers.into_iter();
        groups.extend(all.map(|(like, ids)| group(like, Ids::Numbers(ids).to_string())));
        groups
    }

    /// The id of the element of a kind that has this value of one of these attributes, or this id.
    #[must_use]
    pub fn find(&self, kind: Kind, attributes: &[&str], value: &str) -> Option<String> {
        let mut of_kind = self.elements.iter().filter(|(_, it)| it.kind == kind);
        let has = |element: &Element| {
            let mut ids = attributes.iter();
            ids.any(|id| element.attributes.get(*id).is_some_and(|it| it == value))
        };
        let found = of_kind.find(|(_, element)| has(element));
        if let Some((id, _)) = found {
            return Some(text(id));
        }
        let id = match Ids::one(value) {
            Ids::Numbers(numbers) => Id::Number(numbers.min()?),
            Ids::Text(text) => Id::Text(text),
        };
        let known = self.elements.get(&id).filter(|it| it.kind == kind);
        known.map(|_| value.to_owned())
    }

    /// A value of the element of this id.
    #[must_use]
    pub fn value(&self, id: &str, attribute: &str) -> Option<&str> {
        let id = match Ids::one(id) {
            Ids::Numbers(numbers) => Id::Number(numbers.min()?),
            Ids::Text(text) => Id::Text(text),
        };
        let element = self.elements.get(&id)?;
        element.attributes.get(attribute).map(String::as_str)
    }
}

fn text(id: &Id) -> String {
    match id {
        Id::Number(number) => number.to_string(),
        Id::Text(text) => text.clone(),
    }
}

fn each(ids: &Ids) -> Vec<Id> {
    match ids {
        Ids::Numbers(numbers) => numbers.iter().map(Id::Number).collect(),
        Ids::Text(text) => vec![Id::Text(text.clone())],
    }
}

fn kind_of(kind: WireKind) -> Option<Kind> {
    Some(match kind {
        WireKind::Job => Kind::Job,
        WireKind::Machine => Kind::Machine,
        WireKind::Node => Kind::Node,
        WireKind::Process => Kind::Process,
        WireKind::Queue => Kind::Queue,
        WireKind::ResourceManager => return None,
    })
}
