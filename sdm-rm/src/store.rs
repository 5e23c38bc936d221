//! The elements of one manager, as its agent has reported them, and the answers to queries about them.

use std::collections::BTreeMap;
use std::sync::Arc;

use roaring::RoaringBitmap;
use sdm_runtime::attribute;
use sdm_runtime::ids::Ids;
use sdm_runtime::model::Model;
use sdm_runtime::model::events::{ManagerId, Notice, What};
use sdm_runtime::model::listeners::{Interest, ListenerId};
use sdm_runtime::wire::event::{Event, Kind};

use crate::answer::{AttributeDefinition, Group, Look, Set};

/// A model with one manager.
pub struct Store {
    model: Model,
    manager: ManagerId,
    listener: Option<ListenerId>,
}

impl Store {
    /// A store without elements. The base id is the manager's own; its agent's ids lie above it.
    ///
    /// # Errors
    /// The base id is in the range of numbers that represent string ids.
    pub fn new(base: u32, name: &str) -> Result<Self, sdm_runtime::model::ManagerError> {
        let mut model = Model::default();
        let manager = model.add_manager(base, name)?;
        let listener = model.listen(Interest::Element(manager, Kind::ResourceManager, base));
        Ok(Self {
            model,
            manager,
            listener,
        })
    }

    /// Applies an event of the agent. Returns true if it concerns elements or definitions of attributes. Errors in it
    /// change nothing, and are returned by [`Store::poll_error`].
    pub fn apply(&mut self, event: &Event) -> bool {
        self.model.apply(self.manager, event);
        matches!(
            event,
            Event::New(..)
                | Event::Change(..)
                | Event::Remove(..)
                | Event::RemoveAll
                | Event::AttrDef(_)
        )
    }

    /// Returns the next error in the agent's events; `None` if there is none.
    pub fn poll_error(&mut self) -> Option<String> {
        let listener = self.listener?;
        loop {
            let notice: Arc<Notice> = self.model.poll(listener)?;
            if let What::Error(error) = &notice.what {
                return Some(error.to_string());
            }
        }
    }

    /// True if the agent has reported no machine, queue or job.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let none = |kind| self.elements(kind).is_empty();
        [Kind::Machine, Kind::Queue, Kind::Job]
            .into_iter()
            .all(none)
    }

    /// Definitions of the attributes.
    #[must_use]
    pub fn definitions(&self) -> Vec<AttributeDefinition> {
        let known = self.model.definitions(self.manager).into_iter();
        let each = known.flat_map(|known| known.iter());
        each.map(|it| AttributeDefinition {
            id: it.id.clone(),
            kind: it.kind.word().to_owned(),
            name: it.name.clone(),
            description: it.description.clone(),
            default: it.default.as_ref().map(ToString::to_string),
            display: it.display,
        })
        .collect()
    }

    /// The elements that a query asks for, grouped by kind, by parent, and by the values of its attributes.
    #[must_use]
    pub fn groups(&self, look: &Look) -> Vec<Group> {
        let kinds = look.kinds.iter();
        kinds.flat_map(|kind| self.of_kind(*kind, look)).collect()
    }

    fn of_kind(&self, kind: Kind, look: &Look) -> Vec<Group> {
        let number = |id: &str| self.model.number(self.manager, id);
        let mut wanted = match &look.parent {
            None => self.elements(kind),
            Some(parent) => number(parent)
                .and_then(|parent| self.model.children(self.manager, parent, kind))
                .cloned()
                .unwrap_or_default(),
        };
        if let Some(ids) = &look.ids {
            wanted &= ids
                .iter()
                .filter_map(|id| number(id))
                .collect::<RoaringBitmap>();
        }
        let mut groups = Vec::new();
        while let Some(first) = wanted.min() {
            let parent = self.model.parent(self.manager, kind, first);
            let siblings = parent.and_then(|it| self.model.children(self.manager, it, kind));
            let family = siblings.map_or_else(|| [first].into_iter().collect(), |it| it & &wanted);
            wanted -= &family;
            let parent = parent.map(|it| self.model.id(self.manager, it));
            let parent = parent.unwrap_or_default();
            for (attributes, ids) in self.alike(kind, &family, look.by.as_deref()) {
                for ids in self.ids(ids) {
                    let sets = look.sets.iter().map(|id| self.set(kind, &ids.1, id));
                    groups.push(Group {
                        kind,
                        parent: parent.clone(),
                        ids: ids.0,
                        attributes: attributes.clone(),
                        sets: sets.collect(),
                    });
                }
            }
        }
        groups
    }

    /// Groups elements by the values of the attributes `by`, or of all attributes except the id and a name equal to
    /// the id.
    fn alike(
        &self,
        kind: Kind,
        ids: &RoaringBitmap,
        by: Option<&[String]>,
    ) -> Vec<(Vec<(String, String)>, RoaringBitmap)> {
        if let Some(by) = by {
            let by: Vec<&str> = by.iter().map(String::as_str).collect();
            let alike = self.model.alike(self.manager, kind, ids, &by);
            let named = alike.into_iter().map(|(values, ids)| {
                let set = by.iter().zip(values);
                let set = set.filter_map(|(id, value)| Some((*id, value?)));
                let texts = set.map(|(id, value)| (id.to_owned(), value.to_string()));
                (texts.collect(), ids)
            });
            return named.collect();
        }
        let mut alike: BTreeMap<Vec<(String, String)>, RoaringBitmap> = BTreeMap::new();
        for id in ids {
            let all = self.model.attributes(self.manager, kind, id);
            // Each has an id, and one without a name has that for one.
            let own = self.model.id(self.manager, id);
            let texts = all
                .into_iter()
                .map(|(it, value)| (&it.id, value.to_string()));
            let said = texts.filter(|(it, value)| {
                *it != attribute::ID && (*it != attribute::NAME || *value != own)
            });
            let said = said.map(|(it, value)| (it.clone(), value)).collect();
            alike.entry(said).or_default().insert(id);
        }
        let mut alike: Vec<_> = alike.into_iter().collect();
        alike.sort_by_key(|(_, ids)| ids.min());
        alike
    }

    /// The ids of elements as texts, each with its elements: one range set if all ids are numeric, otherwise one text
    /// for each element.
    fn ids(&self, numbers: RoaringBitmap) -> Vec<(String, RoaringBitmap)> {
        let is_number = |number: u32| self.model.id(self.manager, number).parse() == Ok(number);
        // Numbers of string ids are above all others, so the highest one decides.
        if numbers.max().is_none_or(is_number) {
            return vec![(Ids::Numbers(numbers.clone()).to_string(), numbers)];
        }
        let each = numbers.iter();
        each.map(|it| (self.model.id(self.manager, it), [it].into_iter().collect()))
            .collect()
    }

    /// The numbers that these elements have for an attribute, as one set.
    fn set(&self, kind: Kind, ids: &RoaringBitmap, attribute: &str) -> Set {
        let value = |id| self.model.value(self.manager, kind, id, attribute);
        let numbers = ids.iter().filter_map(value);
        let numbers = numbers.filter_map(|value| value.to_string().parse::<u32>().ok());
        Set {
            attribute: attribute.to_owned(),
            numbers: Ids::Numbers(numbers.collect()).to_string(),
        }
    }

    /// Id of the element of a kind that has `value` as one of these attributes or as its id; `None` if no element has
    /// it.
    #[must_use]
    pub fn find(&self, kind: Kind, attributes: &[&str], value: &str) -> Option<String> {
        let elements = self.elements(kind);
        let has = |id: &u32| {
            let mut each = attributes.iter();
            each.any(|it| self.text(kind, *id, it).is_some_and(|it| it == value))
        };
        let found = elements.iter().find(has);
        let found = found.or_else(|| {
            let number = self.model.number(self.manager, value)?;
            elements.contains(number).then_some(number)
        });
        found.map(|id| self.model.id(self.manager, id))
    }

    /// The value of an attribute of the element of this kind and id; `None` if there is none.
    #[must_use]
    pub fn value(&self, kind: Kind, id: &str, attribute: &str) -> Option<String> {
        let number = self.model.number(self.manager, id)?;
        self.text(kind, number, attribute)
    }

    fn text(&self, kind: Kind, element: u32, attribute: &str) -> Option<String> {
        let value = self.model.value(self.manager, kind, element, attribute)?;
        Some(value.to_string())
    }

    fn elements(&self, kind: Kind) -> RoaringBitmap {
        let all = self.model.elements(self.manager, kind);
        all.cloned().unwrap_or_default()
    }
}
