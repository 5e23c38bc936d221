//! Locations of a job's ranks, from `scontrol show step` for its steps and `sstat` for their processes.
//!
//! Slurm reports a step's processes to its user and root only, and queries each of its nodes for that. So `sstat` is run
//! for the user's own jobs only, each once it has a step.

use std::collections::BTreeMap;

use sdm_hosts::hostlist::names;

/// End of the id of a step that is a batch script.
const SCRIPT: &str = ".batch";
/// Maximum number of processes of one step that are reported.
const PROCESSES_MAX: usize = 1 << 20;

/// A running step of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Step {
    /// The step's id, such as `17.0`.
    pub(super) id: String,
    nodes: Vec<String>,
    tasks: usize,
    /// True if consecutive ranks fill one node before the next (Slurm's `block` distribution).
    is_block: bool,
}

/// A rank: its node, and the pid if it is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Rank {
    /// The node's name.
    pub(super) node: String,
    /// Pid of the process on the node; `None` if unknown.
    pub(super) pid: Option<u32>,
}

impl Step {
    /// True for the batch script, which is a step of one process.
    pub(super) fn is_script(&self) -> bool {
        self.id.ends_with(SCRIPT)
    }
}

/// The first step of each job that `srun` has started, or else its batch script, from the output of
/// `scontrol --oneliner show step`.
pub(super) fn steps(lines: &[String]) -> BTreeMap<String, Step> {
    let mut all: BTreeMap<String, (u32, Step)> = BTreeMap::new();
    for line in lines {
        let value = |key: &str| {
            let mut words = line.split_whitespace();
            words.find_map(|word| word.strip_prefix(key)?.strip_prefix('='))
        };
        let Some((job, number)) = value("StepId").and_then(|id| id.split_once('.')) else {
            continue;
        };
        // Not `extern` and the like, nor a part of a heterogeneous step, which has a `+`.
        let place = match (number, number.parse::<u32>()) {
            ("batch", _) => u32::MAX,
            (_, Ok(number)) => number,
            _ => continue,
        };
        let nodes = value("NodeList").and_then(names).unwrap_or_default();
        let tasks = value("Tasks").and_then(|it| it.parse().ok()).unwrap_or(0);
        if nodes.is_empty() || !(nodes.len()..=PROCESSES_MAX).contains(&tasks) {
            continue;
        }
        let distribution = value("Dist").unwrap_or_default().to_lowercase();
        let is_one_each = nodes.len() == 1 || nodes.len() == tasks;
        let is_block = is_one_each || distribution.split(',').next() == Some("block");
        let step = Step {
            id: format!("{job}.{number}"),
            nodes,
            tasks,
            is_block,
        };
        match all.get(job) {
            Some((first, _)) if *first <= place => {}
            _ => drop(all.insert(job.to_owned(), (place, step))),
        }
    }
    all.into_iter()
        .map(|(job, (_, step))| (job, step))
        .collect()
}

/// The pids of each step by node, from lines such as `17.0|n1|22426,22427`.
pub(super) fn pids(lines: &[String]) -> BTreeMap<String, BTreeMap<String, Vec<u32>>> {
    let mut all: BTreeMap<String, BTreeMap<String, Vec<u32>>> = BTreeMap::new();
    for line in lines {
        let fields: Vec<&str> = line.split('|').collect();
        let [step, node, list, ..] = fields[..] else {
            continue;
        };
        let mut pids: Vec<u32> = list.split(',').filter_map(|it| it.parse().ok()).collect();
        // A node starts its ranks in their order.
        pids.sort_unstable();
        let of_step = all.entry(step.to_owned()).or_default();
        of_step.insert(node.to_owned(), pids);
    }
    all
}

/// The ranks of a step in their order; `None` if their placement is unknown. Pids are set only if consecutive ranks
/// fill one node before the next, and all processes of the step are ranks.
pub(super) fn ranks(step: &Step, pids: Option<&BTreeMap<String, Vec<u32>>>) -> Option<Vec<Rank>> {
    if let (true, Some(pids)) = (step.is_block, pids) {
        let of = |node: &String| pids.get(node).cloned().unwrap_or_default();
        let rank = |node: &String, pid| Rank {
            node: node.clone(),
            pid: Some(pid),
        };
        let of_node = |node| of(node).into_iter().map(move |pid| rank(node, pid));
        let all: Vec<Rank> = step.nodes.iter().flat_map(of_node).collect();
        if all.len() == step.tasks {
            return Some(all);
        }
    }
    let each = step.tasks / step.nodes.len();
    let is_one_each = step.nodes.len() == 1 || each == 1 && step.tasks == step.nodes.len();
    is_one_each.then(|| {
        let nodes = step.nodes.iter();
        let rank = |node: &String| Rank {
            node: node.clone(),
            pid: None,
        };
        nodes.flat_map(|node| vec![rank(node); each]).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<String> {
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn ranks_are_placed_by_step_distribution() {
        let said = "StepId=1.batch UserId=0 NodeList=n1 Nodes=1 CPUs=0 Tasks=1 Name=batch\n\
            StepId=1.1 NodeList=n1 Tasks=1 Dist=Block\n\
            StepId=1.0 UserId=0 State=RUNNING NodeList=n[1-2] Nodes=2 CPUs=5 Tasks=5 Name=my app Dist=Block,Pack\n\
            StepId=2.0 NodeList=n[1-2] Tasks=4 Dist=Cyclic\n\
            StepId=3.0 NodeList=n[1-2] Tasks=2 Dist=Cyclic\n\
            StepId=4.0 NodeList=n[1-\n\
            StepId=5.batch NodeList=n2 Nodes=1 CPUs=0 Tasks=1 Name=batch\n\
            StepId=5.extern NodeList=n2 Nodes=1 CPUs=0 Tasks=1 Name=extern";
        let steps = steps(&lines(said));
        assert_eq!(steps.keys().collect::<Vec<_>>(), ["1", "2", "3", "5"]);
        assert!(steps["5"].is_script() && !steps["1"].is_script());
        assert_eq!(steps["1"].id, "1.0");
        let pids = pids(&lines(
            "1.batch|n1|3\n1.0|n2|7\n1.0|n1|23,22,25,24\n2.0|n1|5,6\n2.0|n2|7,8",
        ));
        let shown = |job: &str| {
            let step = &steps[job];
            let shown = |rank: &Rank| format!("{} {:?}", rank.node, rank.pid.unwrap_or(0));
            ranks(step, pids.get(&step.id)).map(|all| all.iter().map(shown).collect::<Vec<_>>())
        };
        let expected = ["n1 22", "n1 23", "n1 24", "n1 25", "n2 7"].map(str::to_owned);
        assert_eq!(shown("1"), Some(expected.to_vec()));
        assert_eq!(shown("2"), None);
        assert_eq!(shown("3"), Some(vec!["n1 0".to_owned(), "n2 0".to_owned()]));
        assert_eq!(shown("5"), Some(vec!["n2 0".to_owned()]));
    }
}
