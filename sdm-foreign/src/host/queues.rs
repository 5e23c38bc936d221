//! Batch queues for PMIx tools, from the runtime model: the output of `sdm queues` about this user's clusters.
//!
//! This server runs that program and does not ask resource managers itself, so that only one place knows them and
//! their time limits.

use std::ffi::CStr;
use std::process::Stdio;
use std::time::{Duration, Instant};

use sdm_runtime::attribute;
use sdm_system::programs;
use sdm_system::{goes_with_its_parent, own_program};
use serde_json::Value;

use super::Host;
use super::request::{Done, InfoCallback, Known, QueryItem, Request, hand_over};

pub(super) const QUEUE_LIST: &CStr = c"pmix.qry.qlst";
pub(super) const QUEUE_STATUS: &CStr = c"pmix.qry.qst";
/// Time limit of a tool's wait for the answer.
const WAIT: Duration = Duration::from_secs(30);

/// A queue of a cluster.
#[derive(Debug, PartialEq)]
pub(crate) struct Queue {
    /// The name of the queue; `CLUSTER:NAME` where there are several clusters.
    name: String,
    /// The state of the queue: a value of [`attribute::QUEUE_STATE`].
    state: String,
}

/// A tool's query that waits until the queues are known.
struct HeldQuery {
    due: Instant,
    wanted: Vec<QueryItem>,
    done: Done<InfoCallback>,
}

/// The last answer about the queues, and the tools' queries that wait for a new one.
#[derive(Default)]
pub(super) struct Queues {
    /// The answer to the queries that waited last; `None` if none has come.
    known: Option<Vec<Queue>>,
    is_asked: bool,
    waiting: Vec<HeldQuery>,
}

impl Queues {
    /// Keeps a query about queues until the clusters have answered. Returns the query if it is not about queues. An
    /// earlier answer is not used again: a cluster may have been added since.
    pub(super) fn hold(
        &mut self,
        wanted: Vec<QueryItem>,
        done: Done<InfoCallback>,
    ) -> Option<(Vec<QueryItem>, Done<InfoCallback>)> {
        if !wanted.iter().any(|it| is_about_queues(&it.key)) {
            return Some((wanted, done));
        }
        self.waiting.push(HeldQuery {
            due: Instant::now() + WAIT,
            wanted,
            done,
        });
        if !self.is_asked {
            self.is_asked = true;
            let asking = std::thread::Builder::new().spawn(|| {
                // The main loop waits for a bounded time.
                let _ = hand_over(Request::Queues(ask()));
            });
            if asking.is_err() {
                let _ = hand_over(Request::Queues(Vec::new()));
            }
        }
        None
    }

    /// Time at which the next query is answered without a new answer about the queues; `None` while none waits.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.waiting.iter().map(|it| it.due).min()
    }

    /// Adds the value that a tool asks for; false if it is unknown.
    pub(super) fn answer_query(&self, wanted: &QueryItem, known: &mut Known) -> bool {
        let (Some(queues), true) = (&self.known, is_about_queues(&wanted.key)) else {
            return false;
        };
        let is_meant = |it: &&Queue| {
            wanted
                .about
                .queue
                .as_ref()
                .is_none_or(|name| *name == it.name)
        };
        let meant: Vec<&Queue> = queues.iter().filter(is_meant).collect();
        let text = |it: &&Queue| match (wanted.key.as_c_str() == QUEUE_LIST, &wanted.about.queue) {
            (true, _) => it.name.clone(),
            (false, Some(_)) => it.state.clone(),
            (false, None) => format!("{}={}", it.name, it.state),
        };
        let texts: Vec<String> = meant.iter().map(text).collect();
        if !meant.is_empty() {
            known.add_string(&wanted.key, &texts.join(","));
        }
        !meant.is_empty()
    }
}

impl Host {
    /// Sets the known queues (an empty list where the clusters have none), and answers the waiting queries.
    pub(super) fn have_queues(&mut self, queues: Vec<Queue>) {
        self.queues.is_asked = false;
        self.queues.known = Some(queues);
        for held in std::mem::take(&mut self.queues.waiting) {
            self.query_processes(held.wanted, held.done);
        }
    }

    /// Answers the queries whose time limit is over. They get the queues of an earlier answer, if there was one.
    pub(super) fn give_queues_up(&mut self, now: Instant) {
        let is_due = |it: &mut HeldQuery| it.due <= now;
        let due: Vec<_> = self.queues.waiting.extract_if(.., is_due).collect();
        for held in due {
            self.query_processes(held.wanted, held.done);
        }
    }
}

fn is_about_queues(key: &CStr) -> bool {
    [QUEUE_LIST, QUEUE_STATUS].contains(&key)
}

/// Asks the user's clusters for their queues by `sdm queues`. It blocks, so that it runs in a thread of its own. `sdm`
/// waits some seconds at most for each cluster.
fn ask() -> Vec<Queue> {
    let Some(program) = own_program("sdm", None) else {
        return Vec::new();
    };
    let mut command = programs::at(program);
    command.args(["queues", "--json"]).stdin(Stdio::null());
    goes_with_its_parent(&mut command);
    let said = command.stderr(Stdio::null()).output();
    let said = said.ok().filter(|it| it.status.success());
    said.map(|it| queues_of(&it.stdout)).unwrap_or_default()
}

/// The queues of a document of `sdm queues --json`.
fn queues_of(document: &[u8]) -> Vec<Queue> {
    let document: Value = serde_json::from_slice(document).unwrap_or_default();
    let is_one = document["clusters"].as_array().map_or(0, Vec::len) < 2;
    let queues = document["queues"].as_array().into_iter().flatten();
    let queue = |it: &Value| {
        let name = it["attributes"][attribute::NAME].as_str()?;
        let cluster = it["cluster"].as_str()?;
        Some(Queue {
            name: match is_one {
                true => name.to_owned(),
                false => format!("{cluster}:{name}"),
            },
            state: it["attributes"][attribute::QUEUE_STATE]
                .as_str()?
                .to_owned(),
        })
    };
    queues.filter_map(queue).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_of_several_clusters_have_distinct_names() {
        let queue = |cluster: &str, name: &str| {
            serde_json::json!({
                "cluster": cluster, "id": "1", "attributes": {"name": name, "queueState": "NORMAL"}
            })
        };
        let names = |clusters: &[&str], queues: &[Value]| {
            let document = serde_json::json!({"clusters": clusters, "queues": queues});
            let found = queues_of(document.to_string().as_bytes());
            let names = found
                .into_iter()
                .map(|it| format!("{} {}", it.name, it.state));
            names.collect::<Vec<_>>().join(",")
        };
        assert_eq!(names(&["a"], &[queue("a", "q")]), "q NORMAL");
        let both = [queue("a", "q"), queue("b", "q")];
        assert_eq!(names(&["a", "b"], &both), "a:q NORMAL,b:q NORMAL");
        assert_eq!(queues_of(b"no document"), []);
    }
}
