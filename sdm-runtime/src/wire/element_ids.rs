//! Ids of the agent's elements on the wire ("PTP rm proxy, Element IDs"): numbers above the base id, or texts that begin
//! with it. The agent itself numbers its elements in both cases.

use super::command::Command;
use super::event::Event;
use super::groups::Group;
use super::{Attribute, MessageError, bad};
use crate::attribute;
use crate::ids::{Ids, parse_number};

/// The highest numeric base id: the numbers of all elements of a session follow it.
const BASE_MAX: u32 = 4_000_000_000;
/// Maximum length of a base id that is text, in bytes.
const BASE_BYTES_MAX: usize = 200;
/// Separator of the base id and an element's own text. No base id has it, so that no element of another manager has
/// the same id.
const SEPARATOR: char = ':';

/// Form of the ids that an agent gives its elements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IdForm {
    /// Numbers. Many of them form one range set.
    #[default]
    Numbers,
    /// Texts.
    Texts,
}

/// Ids of one session.
#[derive(Clone, Debug, Default)]
pub(super) struct ElementIds {
    form: IdForm,
    base: String,
}

impl ElementIds {
    /// The ids of an agent before INIT; `form` is the form of its elements' ids.
    pub(super) fn new(form: IdForm) -> Self {
        let base = String::new();
        Self { form, base }
    }

    /// Takes the base id of INIT.
    pub(super) fn begin(&mut self, base: String) -> Result<(), MessageError> {
        let (is_valid, what) = match self.form {
            IdForm::Numbers => {
                let is_base = parse_number(&base).is_some_and(|base| base <= BASE_MAX);
                (is_base, "base id (a number up to 4000000000)")
            }
            IdForm::Texts => {
                let is_plain = |c: char| c.is_ascii_graphic() && c != SEPARATOR;
                let fits = (1..=BASE_BYTES_MAX).contains(&base.len()) && base.chars().all(is_plain);
                (fits, "base id (1 to 200 visible characters without `:`)")
            }
        };
        match is_valid {
            true => self.base = base,
            false => return Err(bad(what, &base)),
        }
        Ok(())
    }

    /// The form of the ids.
    pub(super) fn form(&self) -> IdForm {
        self.form
    }

    /// The manager's own number, which those of its elements follow.
    pub(super) fn base(&self) -> u32 {
        match self.form {
            IdForm::Numbers => parse_number(&self.base).unwrap_or(0),
            IdForm::Texts => 0,
        }
    }

    fn text(&self, number: u32) -> String {
        match number {
            0 => self.base.clone(),
            number => format!("{}{SEPARATOR}{number}", self.base),
        }
    }

    /// An element's number as text, for its id on the wire. Other texts stay as they are.
    fn number(&self, id: String) -> String {
        let own = id.strip_prefix(&*self.base);
        let number = own.and_then(|own| own.strip_prefix(SEPARATOR));
        match number.filter(|it| parse_number(it).is_some()) {
            Some(number) => number.to_owned(),
            None => id,
        }
    }

    /// The ids of a command of the client as the agent's numbers.
    pub(super) fn read(&self, mut command: Command) -> Command {
        if self.form == IdForm::Numbers {
            return command;
        }
        let read = |id: &mut String| *id = self.number(std::mem::take(id));
        match &mut command {
            Command::TerminateJob(job) | Command::ChangeJob { job, .. } => read(job),
            Command::MoveJob { job, queue } => [job, queue].into_iter().for_each(read),
            Command::SubmitJob(attributes) | Command::FilterEvents(attributes) => {
                let ids = [attribute::QUEUE_ID, attribute::ID];
                let named = attributes.iter_mut();
                let named = named.filter(|(key, _)| ids.contains(&&**key));
                named.for_each(|(_, value)| read(value));
            }
            _ => {}
        }
        command
    }

    /// An event of the agent with the ids of the wire. Texts have no range sets: each element is a group, or an event,
    /// of its own.
    pub(super) fn write(&self, event: Event) -> Vec<Event> {
        if self.form == IdForm::Numbers {
            return vec![event];
        }
        let name = |id: String| parse_number(&id).map_or(id, |number| self.text(number));
        match event {
            Event::New(kind, parent, groups) => {
                vec![Event::New(kind, name(parent), self.groups(groups))]
            }
            Event::Change(kind, parent, groups) => {
                vec![Event::Change(kind, name(parent), self.groups(groups))]
            }
            Event::Remove(kind, parent, Ids::Numbers(numbers)) => {
                let parent = name(parent);
                let one = |it| Event::Remove(kind, parent.clone(), Ids::Text(self.text(it)));
                numbers.into_iter().map(one).collect()
            }
            other => vec![other],
        }
    }

    fn groups(&self, groups: Vec<Group>) -> Vec<Group> {
        let refers = [attribute::QUEUE_ID, attribute::PROCESS_NODE_ID];
        let named = |(key, value): &Attribute| {
            let number = parse_number(value).filter(|_| refers.contains(&&**key));
            let value = number.map_or_else(|| value.clone(), |number| self.text(number));
            (key.clone(), value)
        };
        let each = groups.into_iter().flat_map(|group| {
            let attributes: Vec<Attribute> = group.attributes.iter().map(named).collect();
            let ids = match group.ids {
                Ids::Numbers(numbers) => numbers.iter().map(|it| self.text(it)).collect(),
                Ids::Text(text) => vec![text],
            };
            ids.into_iter().map(move |id| Group {
                ids: Ids::Text(id),
                attributes: attributes.clone(),
            })
        });
        each.collect()
    }
}
