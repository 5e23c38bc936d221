//! The processes of running jobs: the ranks of the first step that `srun` has started, or the batch script. A job without
//! a step has no processes yet.

use std::collections::BTreeMap;

use sdm_runtime::attribute as id;
use sdm_runtime::states as model;

use super::programs::ask;
use super::steps::{self, Rank, Step};
use crate::snapshot::{Attributes, Job, Process, set, set_state};

/// Maximum number of queries for the pids of a job whose step is known. A step that has just begun lacks them, and so
/// does each step if `sstat` is refused. Nothing tells the two apart.
const PID_QUERIES_MAX: u32 = 5;
/// Maximum number of jobs whose pids are queried together.
const PIDS_MAX: usize = 50;

/// The known locations of a job's ranks.
#[derive(Default)]
struct Placed {
    /// The ranks of the job; empty while Slurm does not report all of them. A job may have no step of `srun` for hours.
    ranks: Vec<Rank>,
    /// Number of queries that have returned ranks.
    queries: u32,
    /// True if the job's only step is the batch script.
    is_script: bool,
}

impl Placed {
    fn add(&mut self, ranks: Vec<Rank>, is_script: bool) {
        self.queries += u32::from(!ranks.is_empty());
        (self.ranks, self.is_script) = (ranks, is_script);
    }

    /// True if the ranks are known and their pids will not be queried again.
    fn is_final(&self, is_own: bool) -> bool {
        let has_pids = self.ranks.iter().all(|rank| rank.pid.is_some());
        let is_known = !self.ranks.is_empty() && !self.is_script;
        is_known && (!is_own || has_pids || self.queries >= PID_QUERIES_MAX)
    }
}

/// The known ranks of running jobs, by job id.
#[derive(Default)]
pub(super) struct Placements(BTreeMap<String, Placed>);

impl Placements {
    /// Adds the processes to running jobs. Only processes of `user`, the agent's user, get pids. `is_started` is true
    /// for a job whose batch script only has `srun` start its program.
    pub(super) fn place(
        &mut self,
        jobs: &mut BTreeMap<String, Job>,
        user: &str,
        is_started: impl Fn(&str) -> bool,
    ) {
        let is_own = |job: &Job| job.attributes.get(id::USER_ID).is_some_and(|it| it == user);
        let is_running = |job: &Job| job.state().is_some_and(runs);
        self.0.retain(|id, _| jobs.get(id).is_some_and(is_running));
        let running = jobs.iter().filter(|(_, job)| is_running(job));
        let is_final =
            |id: &str, job: &Job| self.0.get(id).is_some_and(|it| it.is_final(is_own(job)));
        let unknown = running.filter(|(id, job)| !is_final(id, job));
        let unknown: BTreeMap<String, bool> =
            unknown.map(|(id, job)| (id.clone(), is_own(job))).collect();
        if !unknown.is_empty() {
            self.query(&unknown, is_started);
        }
        for (id, placed) in &self.0 {
            if let Some(job) = jobs.get_mut(id) {
                let state = match job.state() {
                    Some(model::Job::Suspended) => model::Process::Suspended,
                    _ => model::Process::Running,
                };
                job.processes = placed.ranks.iter().map(|it| process(it, state)).collect();
            }
        }
    }

    /// Queries the steps of these jobs, and the pids of the user's own jobs.
    fn query(&mut self, unknown: &BTreeMap<String, bool>, is_started: impl Fn(&str) -> bool) {
        let said = ask("scontrol", &["--oneliner", "show", "step"], &[]);
        let mut steps = steps::steps(&said.unwrap_or_default());
        steps.retain(|id, step| unknown.contains_key(id) && !(step.is_script() && is_started(id)));
        let has_pids = |(id, step): &(&String, &Step)| unknown[*id] && !step.is_script();
        let own = steps.iter().filter(has_pids).take(PIDS_MAX);
        let list = own.map(|(_, step)| &*step.id).collect::<Vec<_>>().join(",");
        // Without sstat, or where it is refused, at least the nodes are known.
        let said = match list.is_empty() {
            true => Vec::new(),
            false => ask("sstat", &["-n", "-P", "-i", "-j", &list], &[]).unwrap_or_default(),
        };
        let pids = steps::pids(&said);
        for id in unknown.keys() {
            let step = steps.get(id);
            let ranks = step.and_then(|step| steps::ranks(step, pids.get(&step.id)));
            let is_script = step.is_some_and(Step::is_script);
            let placed = self.0.entry(id.clone()).or_default();
            placed.add(ranks.unwrap_or_default(), is_script);
        }
    }
}

fn runs(state: model::Job) -> bool {
    matches!(state, model::Job::Running | model::Job::Suspended)
}

fn process(rank: &Rank, state: model::Process) -> Process {
    let mut attributes = Attributes::new();
    set_state(&mut attributes, state);
    let pid = rank.pid.map(|pid| pid.to_string());
    set(&mut attributes, id::PROCESS_PID, pid.unwrap_or_default());
    Process {
        node: Some(rank.node.clone()),
        attributes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slurm_rank_pids_are_queried_until_found_or_a_bound() {
        let rank = |pid| Rank {
            node: "n1".to_owned(),
            pid,
        };
        let mut placed = Placed::default();
        for _ in 0..100 {
            placed.add(Vec::new(), false);
        }
        assert!(!placed.is_final(true));
        placed.add(vec![rank(None)], false);
        assert!(!placed.is_final(true));
        assert!(placed.is_final(false));
        let mut known = Placed::default();
        known.add(vec![rank(Some(7))], false);
        assert!(known.is_final(true));
        for _ in 1..PID_QUERIES_MAX {
            placed.add(vec![rank(None)], false);
        }
        assert!(placed.is_final(true));
        // The script may still start a step.
        placed.add(vec![rank(None)], true);
        assert!(!placed.is_final(true) && !placed.is_final(false));
    }
}
