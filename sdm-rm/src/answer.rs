//! Requests to the background process of a cluster, and its answers: JSON, one line each.

use std::time::Duration;

use sdm_runtime::states::Manager;
use sdm_runtime::wire::event::Kind;
use serde::{Deserialize, Serialize};

/// Age from which the elements of a manager on this host are queried again for a request.
pub const OWN_AGE_MAX: Duration = Duration::from_secs(1);
/// Age from which the elements of a manager on another host are queried again for a request.
pub const OTHER_AGE_MAX: Duration = Duration::from_secs(10);

/// A request. A job is named by its number, as the manager's own commands take it, or by its element's id.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "ask")]
pub enum Question {
    /// The state of the manager; the answer has no elements.
    State,
    /// Elements of the manager.
    Elements {
        /// The queries, whose results follow each other in the answer.
        looks: Vec<Look>,
        /// True to have the manager's agent query the manager first if the elements are older than [`OWN_AGE_MAX`] or
        /// [`OTHER_AGE_MAX`].
        #[serde(default)]
        is_fresh: bool,
    },
    /// A request that is answered once the elements or the state differ from version `since`, or the time is over.
    Changed {
        /// The version of an earlier answer.
        since: u64,
        /// Maximum wait, in milliseconds.
        wait_ms: u64,
    },
    /// Submit a job with these attributes ("PTP rm proxy, SUBMIT_JOB"); a queue may be named by its name.
    Submit {
        /// Pairs of an attribute definition's id and its value.
        attributes: Vec<(String, String)>,
    },
    /// End a job.
    Cancel {
        /// Number of the job, or id of its element.
        job: String,
    },
    /// Keep a job from being started.
    Hold {
        /// Number of the job, or id of its element.
        job: String,
    },
    /// Let a held job be started.
    Release {
        /// Number of the job, or id of its element.
        job: String,
    },
    /// Give a job another priority.
    Priority {
        /// Number of the job, or id of its element.
        job: String,
        /// The new priority, as a number on the manager's own scale.
        value: i64,
    },
    /// Move a job to another queue.
    Move {
        /// Number of the job, or id of its element.
        job: String,
        /// The name of the queue, or the id of its element.
        queue: String,
    },
    /// End the background process; jobs continue to run.
    Stop,
}

/// A query of elements, and their grouping in the answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Look {
    /// Kinds of the elements.
    pub kinds: Vec<Kind>,
    /// Id of the elements' parent; `None` for elements of any parent.
    pub parent: Option<String>,
    /// Ids of the elements; `None` for all.
    pub ids: Option<Vec<String>>,
    /// Elements with equal values of these attributes form one group; `None` for all attributes.
    pub by: Option<Vec<String>>,
    /// Attributes whose values are numbers and are returned as a set for each group: a job can have a million pids.
    pub sets: Vec<String>,
}

impl Look {
    /// A query of all elements of these kinds, with all their attributes.
    #[must_use]
    pub fn at(kinds: &[Kind]) -> Self {
        Self {
            kinds: kinds.to_vec(),
            ..Self::default()
        }
    }
}

/// A manager's answer to a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// State of the manager.
    pub manager: ManagerView,
    /// Version of the manager's elements and state; it grows with each change.
    pub version: u64,
    /// The requested elements; empty if none were requested.
    pub groups: Vec<Group>,
    /// Definitions of the attributes; empty if no elements were requested.
    pub definitions: Vec<AttributeDefinition>,
    /// The number of the submitted job; `None` for any other request.
    pub job: Option<String>,
    /// The error of a failed request; `None` if it succeeded.
    pub error: Option<String>,
}

/// State and definition of a manager.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ManagerView {
    /// The cluster's name.
    pub name: String,
    /// The cluster's identifier, which is kept for its lifetime.
    pub rm_id: String,
    /// Type of the resource manager.
    pub rm_type: String,
    /// Host of the resource manager; `None` for this host.
    pub host: Option<String>,
    /// The user's description of the cluster; empty if there is none.
    #[serde(default)]
    pub description: String,
    /// State of the manager, a word in lower case.
    #[serde(with = "state_word")]
    pub state: Manager,
    /// Reason of the manager's state, or its last error; `None` if there is neither.
    pub reason: Option<String>,
    /// True if the elements may be out of date.
    pub stale: bool,
    /// Time at which the manager entered its state, in seconds of Unix time.
    pub since: u64,
    /// Age of the elements in milliseconds: the time since the agent began the query that they are from. `None` if the
    /// agent does not say.
    #[serde(default)]
    pub age_ms: Option<u64>,
}

mod state_word {
    use sdm_runtime::states::{Manager, State};
    use serde::de::{Deserialize, Deserializer, Error};
    use serde::ser::Serializer;

    #[allow(clippy::trivially_copy_pass_by_ref)] // As serde calls it.
    pub(super) fn serialize<S: Serializer>(state: &Manager, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&state.word().to_ascii_lowercase())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Manager, D::Error> {
        let word = String::deserialize(from)?;
        Manager::read(&word.to_ascii_uppercase()).ok_or_else(|| {
            D::Error::custom(format_args!(
                "the cluster's process reported the unknown state {word:?}"
            ))
        })
    }
}

/// Elements with the same attributes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Group {
    /// Kind of the elements.
    pub kind: Kind,
    /// Id of the elements' parent.
    pub parent: String,
    /// Ids of the elements as a range set ("PTP rm proxy, Element IDs").
    pub ids: String,
    /// Pairs of an attribute definition's id and its value.
    pub attributes: Vec<(String, String)>,
    /// The requested sets of numbers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sets: Vec<Set>,
}

/// The numbers of all elements of a group for one attribute, as a set: for example the pids of a job's processes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Set {
    /// The attribute's id.
    pub attribute: String,
    /// The values of the attribute, one number for each element of the group, as a range set: `1-7,34`.
    pub numbers: String,
}

/// Definition of an attribute ("PTP runtime platform, Attributes").
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttributeDefinition {
    /// The id of the attribute.
    pub id: String,
    /// The type of the attribute's values: ARRAY, BOOLEAN, DATE, DOUBLE, ENUMERATED, INTEGER, STRING, ...
    #[serde(rename = "type")]
    pub kind: String,
    /// A short name for the user.
    pub name: String,
    /// A description for the user, of one sentence.
    pub description: String,
    /// The value of an attribute that is set to an empty text; `None` if such an attribute has no value.
    pub default: Option<String>,
    /// True if the attribute is to be shown to users.
    pub display: bool,
}
