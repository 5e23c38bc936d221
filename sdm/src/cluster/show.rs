//! `sdm show`: all attributes of an element.

use std::collections::BTreeMap;

use sdm_rm::{Answer, AttributeDefinition, Kind, Look};
use sdm_runtime::attribute as id;
use serde_json::{Value, json};

use super::choose::{look, split};
use super::element::{self, Element, names};
use super::error::ClusterError;
use super::table::{Stand, Table, cut};
use super::times;
use super::watch::{Shown, list};
use crate::cli::ShowArgs;

/// The kinds of elements that can be shown. Processes are excluded, because a job can have a million.
const KINDS: [Kind; 4] = [Kind::Job, Kind::Node, Kind::Queue, Kind::Machine];

/// Attributes in seconds of Unix time; 0 if unknown.
const TIMES: [&str; 3] = [id::SUBMIT_TIME, id::START_TIME, id::END_TIME];
/// Maximum width of an environment in a table, in terminal columns. `--json` has all of it.
const ENVIRONMENT_COLUMNS_MAX: usize = 60;

/// Shows all attributes of the named element.
pub(super) fn show(args: &ShowArgs) -> Result<u8, ClusterError> {
    let (named, name) = split(&args.element, args.list.of.manager.as_deref())?;
    let answers = look(named, &[Look::at(&KINDS)])?;
    if found(&answers, name).is_empty() {
        let names = answers.iter().map(|it| it.manager.name.clone());
        return Err(ClusterError::NoElement(name.to_owned(), names.collect()));
    }
    let mut of = args.list.clone();
    of.of.manager = named.map(str::to_owned);
    list(&of, &[Look::at(&KINDS)], |answers| {
        let found = found(answers, name);
        match args.list.json {
            true => Shown::Json(found.iter().map(Found::json).collect()),
            false => Shown::Table(
                table(&found, answers),
                "the job, node, queue or machine no longer exists".to_owned(),
            ),
        }
    })
}

/// The object that a name stands for.
enum Found<'a> {
    /// A cluster itself.
    Manager(&'a Answer),
    /// An element of a cluster.
    Element(Kind, Element<'a>),
}

fn found<'a>(answers: &'a [Answer], name: &str) -> Vec<Found<'a>> {
    let managers = answers.iter().filter(|it| it.manager.name == name);
    let managers = managers.map(Found::Manager);
    let of_kind = |kind| {
        let meant = move |element: &Element<'_>| match kind {
            Kind::Job => element.job() == name,
            _ => element.name() == name,
        };
        let elements = Element::all(answers, kind).filter(meant);
        elements.map(move |element| Found::Element(kind, element))
    };
    managers
        .chain(KINDS.into_iter().flat_map(of_kind))
        .collect()
}

impl Found<'_> {
    fn json(&self) -> Value {
        match self {
            Self::Manager(answer) => {
                json!({ "kind": "cluster", "cluster": element::manager(answer) })
            }
            Self::Element(kind, element) => {
                let mut document = element.json();
                document["kind"] = Value::from(word(*kind));
                document
            }
        }
    }
}

fn table(found: &[Found<'_>], answers: &[Answer]) -> Table {
    let queues = names(answers, Kind::Queue);
    let mut table = Table::new(&[
        ("CLUSTER", Stand::Left),
        ("ELEMENT", Stand::Left),
        ("ATTRIBUTE", Stand::Left),
        ("ID", Stand::Left),
        // Last, as a long value would move what follows it in all rows.
        ("VALUE", Stand::Cut),
    ]);
    for found in found {
        match found {
            Found::Manager(answer) => {
                let it = &answer.manager;
                let rows = [
                    ("Name", &*it.name, id::NAME),
                    ("Description", &it.description, id::RM_DESCRIPTION),
                    ("State", it.state.word(), id::RM_STATE),
                    ("Reason", it.reason.as_deref().unwrap_or_default(), ""),
                    ("Type", &it.rm_type, id::RM_TYPE),
                    ("Host", it.host.as_deref().unwrap_or_default(), ""),
                    ("Identifier", &it.rm_id, id::RM_ID),
                ];
                for (name, value, id) in rows.into_iter().filter(|(_, value, _)| !value.is_empty())
                {
                    let cells = [&it.name, "cluster", name, id, value];
                    table.push(cells.map(str::to_owned).to_vec());
                }
            }
            Found::Element(kind, element) => {
                let definitions = definitions(element.of);
                for (id, value) in &element.group.attributes {
                    let name = definitions.get(&**id).map_or(&**id, |it| &it.name);
                    let queue = queues.get(&(element.cluster(), &**value)).copied();
                    let value = match id.as_str() {
                        id if TIMES.contains(&id) => {
                            value.parse().map(times::moment).unwrap_or_default()
                        }
                        id::QUEUE_ID => queue.unwrap_or(value).to_owned(),
                        id::ENV => cut(value, ENVIRONMENT_COLUMNS_MAX),
                        _ => value.clone(),
                    };
                    let cells = [element.cluster(), word(*kind), name, id, &value];
                    table.push(cells.map(str::to_owned).to_vec());
                }
            }
        }
    }
    table
}

fn definitions(answer: &Answer) -> BTreeMap<&str, &AttributeDefinition> {
    let all = answer.definitions.iter();
    all.map(|definition| (&*definition.id, definition))
        .collect()
}

fn word(kind: Kind) -> &'static str {
    match kind {
        Kind::Machine => "machine",
        Kind::Queue => "queue",
        Kind::Node => "node",
        Kind::Job => "job",
        Kind::Process => "process",
        Kind::ResourceManager => "cluster",
    }
}
