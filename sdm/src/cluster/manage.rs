//! `sdm cluster`: definitions of clusters, and their start and stop.

use std::time::Duration;

use sdm_rm::{Answer, Clusters, Definition, Kind, Look, Question};
use sdm_runtime::JobAttributes;
use sdm_runtime::{attribute as id, states};
use serde_json::{Value, json};

use super::choose::{ANSWER_WAIT, ask, defined};
use super::element::Element;
use super::error::ClusterError;
use super::for_each::each;
use super::table::{Stand, Table};
use super::times;
use crate::cli::{AddArgs, ClusterVerb, EditArgs, ListArgs, ThereArgs};
use crate::sink::{Sink, complain};

/// Time limit for a manager to deliver its elements: ssh can ask for a password.
const START_WAIT: Duration = Duration::from_secs(120);
/// Interval between two updates of a watched list.
const WATCH_PERIOD: Duration = Duration::from_secs(1);

/// Carries out `sdm cluster ...`.
pub(super) fn manage(verb: &ClusterVerb) -> Result<u8, ClusterError> {
    match verb {
        ClusterVerb::Add(args) => add(args),
        ClusterVerb::Edit(args) => edit(args),
        ClusterVerb::Remove(args) => each(&args.names, |name| {
            let mut clusters = Clusters::load()?;
            clusters.get(name)?;
            stop(name)?;
            Ok(clusters.remove(name)?)
        }),
        ClusterVerb::Start(args) => each(&args.names, |name| {
            let definition = Clusters::load()?.get(name)?.clone();
            start(&definition)
        }),
        ClusterVerb::Stop(args) => each(&args.names, |name| {
            Clusters::load()?.get(name)?;
            stop(name)
        }),
        ClusterVerb::List(args) => list(args),
    }
}

fn add(args: &AddArgs) -> Result<u8, ClusterError> {
    let mut clusters = Clusters::load()?;
    let mut definition = Definition::new(&args.name, &args.kind);
    change(&mut definition, &args.there);
    clusters.add(definition)?;
    if args.no_start {
        return Ok(0);
    }
    let started = start(clusters.get(&args.name)?);
    if started.is_err() {
        // A second try would find the name taken.
        stop(&args.name)?;
        Clusters::load()?.remove(&args.name)?;
        complain(format_args!(
            "sdm: cluster {} is not saved; --no-start defines a cluster that cannot be started yet",
            args.name
        ));
    }
    started.map(|()| 0)
}

fn edit(args: &EditArgs) -> Result<u8, ClusterError> {
    let mut clusters = Clusters::load()?;
    clusters.edit(&args.name, |definition| {
        if let Some(kind) = &args.kind {
            definition.rm_type.clone_from(kind);
        }
        change(definition, &args.there);
    })?;
    if sdm_rm::is_running(&args.name) {
        complain(format_args!(
            "sdm: cluster {} is running: the change takes effect after `sdm cluster stop` and `start`",
            args.name
        ));
    }
    Ok(0)
}

/// Changes the given fields of a definition. An empty word removes a value.
fn change(definition: &mut Definition, there: &ThereArgs) {
    let given = |text: &Option<String>, known: &mut Option<String>| {
        if let Some(text) = text {
            *known = Some(text.clone()).filter(|it| !it.is_empty());
        }
    };
    given(&there.host, &mut definition.host);
    given(&there.agent, &mut definition.agent);
    let several = |words: &[String], known: &mut Vec<String>| {
        if !words.is_empty() {
            *known = words.iter().filter(|it| !it.is_empty()).cloned().collect();
        }
    };
    several(&there.ssh_option, &mut definition.ssh_options);
    several(&there.agent_arg, &mut definition.agent_args);
    if let Some(text) = &there.description {
        definition.description.clone_from(text);
    }
}

fn start(definition: &Definition) -> Result<(), ClusterError> {
    let answer = sdm_rm::start(definition, START_WAIT)?;
    if answer.manager.state == states::Manager::Error {
        let said = answer.manager.reason;
        return Err(ClusterError::Refused {
            cluster: definition.name.clone(),
            said: said.unwrap_or_else(|| "the resource manager cannot be started".to_owned()),
        });
    }
    Ok(())
}

/// Stops a cluster. Does nothing if it is not started.
fn stop(name: &str) -> Result<(), ClusterError> {
    if sdm_rm::is_running(name) {
        ask(name, &Question::Stop, ANSWER_WAIT)?;
    }
    Ok(())
}

/// A cluster with its manager's answer, if it is started.
struct Listed {
    definition: Definition,
    answer: Option<Result<Answer, ClusterError>>,
}

fn list(args: &ListArgs) -> Result<u8, ClusterError> {
    let mut last = None;
    let clears = args.watch && !args.json && Sink::Output.is_terminal();
    loop {
        let mut rows: Vec<Listed> = defined(args.of.manager.as_deref())?
            .into_iter()
            .map(row)
            .collect();
        let text = listed(&rows, args.json);
        // A watched list is shown again for a change only.
        rows.iter_mut().for_each(Listed::forget_age);
        let ageless = listed(&rows, args.json);
        if last.as_ref() != Some(&ageless) {
            if clears {
                let cleared = Sink::Output.pass(super::watch::CLEARED);
                cleared.map_err(ClusterError::Output)?;
            }
            Sink::Output.show(&text).map_err(ClusterError::Output)?;
            last = Some(ageless);
        }
        if !args.watch {
            return Ok(0);
        }
        std::thread::sleep(WATCH_PERIOD);
    }
}

fn listed(rows: &[Listed], is_json: bool) -> String {
    match is_json {
        true => format!(
            "{}\n",
            json!({ "clusters": rows.iter().map(json_of).collect::<Value>() })
        ),
        false => table(rows).render(Sink::Output.size().map(|(columns, _)| columns)),
    }
}

fn row(definition: Definition) -> Listed {
    let question = Question::Elements {
        looks: vec![Look::at(&[Kind::Machine])],
        is_fresh: true,
    };
    let is_running = sdm_rm::is_running(&definition.name);
    let answer = is_running.then(|| ask(&definition.name, &question, ANSWER_WAIT));
    Listed { definition, answer }
}

impl Listed {
    /// The state of the cluster, the time at which the state began, and its reason.
    fn state(&self) -> (&'static str, Option<u64>, String) {
        match &self.answer {
            None => (states::Manager::Stopped.word(), None, String::new()),
            Some(Ok(answer)) => {
                let it = &answer.manager;
                let why = it.reason.clone().unwrap_or_default();
                (it.state.word(), Some(it.since), why)
            }
            Some(Err(error)) => (states::Manager::Error.word(), None, error.to_string()),
        }
    }

    /// Age of the manager's answer, in milliseconds. None without an answer, or if the age is not known.
    fn age(&self) -> Option<u64> {
        let answer = self.answer.as_ref()?.as_ref().ok()?;
        answer.manager.age_ms
    }

    fn forget_age(&mut self) {
        if let Some(Ok(answer)) = &mut self.answer {
            answer.manager.age_ms = None;
        }
    }

    fn machines(&self) -> Vec<Element<'_>> {
        match &self.answer {
            Some(Ok(answer)) => Element::all(std::slice::from_ref(answer), Kind::Machine).collect(),
            _ => Vec::new(),
        }
    }
}

fn json_of(row: &Listed) -> Value {
    let (state, since, reason) = row.state();
    let it = &row.definition;
    json!({
        "name": it.name,
        "id": it.rm_id,
        "type": it.rm_type,
        "host": it.host,
        "description": it.description,
        "state": state,
        "since": since,
        "age_ms": row.age(),
        "reason": Some(reason).filter(|reason| !reason.is_empty()),
        "machines": row.machines().iter().map(Element::json).collect::<Value>(),
    })
}

fn table(rows: &[Listed]) -> Table {
    let mut table = Table::new(&[
        ("CLUSTER", Stand::Left),
        ("TYPE", Stand::Left),
        ("HOST", Stand::Cut),
        ("STATE", Stand::Left),
        ("SINCE", Stand::Left),
        ("AGE", Stand::Right),
        ("MACHINES", Stand::Cut),
        ("NODES", Stand::Right),
        ("DESCRIPTION", Stand::Cut),
        ("REASON", Stand::Cut),
    ]);
    for row in rows {
        let (state, since, reason) = row.state();
        let it = &row.definition;
        let machines = row.machines();
        let names = machines.iter().map(|machine| {
            let state = machine.get(id::MACHINE_STATE);
            let state = state.filter(|_| machine.state() != Some(states::Machine::Up));
            let state = state.map(|state| format!(" ({state})"));
            format!("{}{}", machine.name(), state.unwrap_or_default())
        });
        let nodes: Vec<u64> = machines
            .iter()
            .filter_map(|machine| machine.number(id::NUM_NODES))
            .collect();
        table.push(vec![
            it.name.clone(),
            it.rm_type.clone(),
            it.host.clone().unwrap_or_default(),
            state.to_owned(),
            since.map(times::moment).unwrap_or_default(),
            row.age().map(times::age).unwrap_or_default(),
            names.collect::<Vec<_>>().join(","),
            match nodes.is_empty() {
                true => String::new(),
                false => nodes.iter().sum::<u64>().to_string(),
            },
            it.description.clone(),
            reason,
        ]);
    }
    table
}
