//! A cluster: its definition, the process that follows its agent, and what that agent says.

use std::time::Duration;

use sdm_doctor::{Check, Finding};
use sdm_rm::{Clusters, ManagerState, Question};

use super::section::Section;

/// How long a cluster's process may take to answer.
const ANSWER_WAIT: Duration = Duration::from_secs(20);

/// How it is with a cluster.
pub(super) fn look(name: &str) -> Section {
    let place = format!("cluster {name}");
    let check = Check::Cluster;
    let known = Clusters::load().and_then(|clusters| clusters.get(name).cloned());
    let definition = match known {
        Ok(definition) => definition,
        Err(error) => {
            let remedy =
                "`sdm cluster list` shows those that are defined, `sdm cluster add` defines one";
            return Section::new(place, vec![Finding::bad(check, error.to_string(), remedy)]);
        }
    };
    let host = definition.host.as_deref();
    let host = host.map_or_else(String::new, |host| format!(" on {host}"));
    let what = format!("{}{host}", definition.rm_type);
    let start = format!("`sdm cluster start {name}` starts it");
    if !sdm_rm::is_running(name) {
        let finding = Finding::unknown(check, format!("{what}: it is not started"), start);
        return Section::new(place, vec![finding]);
    }
    let finding = match sdm_rm::ask(name, &Question::State, ANSWER_WAIT) {
        Err(error) => Finding::bad(
            check,
            format!("{what}: {error}"),
            format!("`sdm cluster stop {name}`, then {start}"),
        ),
        Ok(answer) => {
            let reason = answer.manager.reason;
            let reason = reason.map_or_else(String::new, |reason| format!(": {reason}"));
            match answer.manager.state {
                ManagerState::Started => Finding::good(check, format!("{what} answers{reason}")),
                ManagerState::Starting => {
                    let text = format!("{what} has not told yet what it has{reason}");
                    Finding::unknown(check, text, "ask again in a moment")
                }
                _ => Finding::bad(
                    check,
                    format!("{what} does not answer{reason}"),
                    format!("mend what it says, then {start}; --host tries the way there"),
                ),
            }
        }
    };
    Section::new(place, vec![finding])
}
