//! Mapping of Slurm's states of jobs, nodes and partitions to states of the runtime model.

use sdm_runtime::states::{Job, Node, Queue};

/// Maps Slurm's words to the state of a job ("PTP runtime platform, Job"). The first word that gives a state counts.
pub(super) fn job(words: &[String]) -> Job {
    let known = words.iter().find_map(|word| {
        Some(match word.as_str() {
            "PENDING" | "REQUEUED" | "REQUEUE_FED" | "REQUEUE_HOLD" | "SPECIAL_EXIT"
            | "RESV_DEL_HOLD" => Job::Pending,
            "CONFIGURING" | "POWER_UP_NODE" => Job::Started,
            "RUNNING" | "COMPLETING" | "STAGE_OUT" | "SIGNALING" | "RESIZING" => Job::Running,
            "SUSPENDED" | "STOPPED" => Job::Suspended,
            "COMPLETED" | "CANCELLED" | "FAILED" | "TIMEOUT" | "NODE_FAIL" | "PREEMPTED"
            | "OUT_OF_MEMORY" | "DEADLINE" | "REVOKED" => Job::Terminated,
            "BOOT_FAIL" | "LAUNCH_FAILED" | "RECONFIG_FAIL" => Job::Error,
            _ => return None,
        })
    });
    known.unwrap_or(Job::Unknown)
}

/// The signal that has ended a job, from its state and exit status; 0 for none. If Slurm ended a job while `srun` ran,
/// the exit status is 128 and the signal, as in a shell.
pub(super) fn signal(words: &[String], status: i64, signal: i64) -> i64 {
    let ends = [
        "CANCELLED",
        "TIMEOUT",
        "PREEMPTED",
        "DEADLINE",
        "OUT_OF_MEMORY",
    ];
    let is_killed = words.iter().any(|word| ends.contains(&word.as_str()));
    match signal {
        0 if is_killed && status > 128 => status - 128,
        signal => signal,
    }
}

/// Maps Slurm's base state and flags to the state of a node ("PTP runtime platform, Node"). A drained node is down. A
/// draining node still runs jobs and is up.
pub(super) fn node(words: &[String]) -> Node {
    let has = |names: &[&str]| words.iter().any(|word| names.contains(&word.as_str()));
    if has(&[
        "DOWN",
        "POWERED_DOWN",
        "POWERING_DOWN",
        "POWERING_UP",
        "PLANNED_DOWN",
        "NOT_RESPONDING",
    ]) {
        Node::Down
    } else if has(&["FAIL", "FAILING", "ERROR", "INVALID", "INVALID_REG"]) {
        Node::Error
    } else if has(&["UNKNOWN", "FUTURE"]) {
        Node::Unknown
    } else if has(&["DRAIN", "DRAINED"]) && !has(&["ALLOCATED", "MIXED", "COMPLETING"]) {
        Node::Down
    } else if has(&["IDLE", "ALLOCATED", "MIXED", "COMPLETING", "DRAINING"]) {
        Node::Up
    } else {
        Node::Unknown
    }
}

/// Maps Slurm's word for a partition's state to the state of a queue ("PTP runtime platform, Queue"). A partition that
/// is down accepts jobs and starts none.
pub(super) fn queue(word: &str) -> Queue {
    match word.to_lowercase().as_str() {
        "up" => Queue::Normal,
        "down" => Queue::Collecting,
        "drain" => Queue::Draining,
        _ => Queue::Stopped,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn slurm_states_map_to_model_states() {
        for (said, state) in [
            ("PENDING", "PENDING"),
            ("RUNNING COMPLETING", "RUNNING"),
            ("SUSPENDED", "SUSPENDED"),
            ("CANCELLED", "TERMINATED"),
            ("BOOT_FAIL", "ERROR"),
            ("NEW_IN_99", "UNKNOWN"),
        ] {
            assert_eq!(job(&words(said)).word(), state, "{said}");
        }
        for (said, status, told, expected) in [
            ("CANCELLED", 143, 0, 15),
            ("CANCELLED", 0, 9, 9),
            ("CANCELLED", 0, 0, 0),
            ("FAILED", 143, 0, 0),
        ] {
            assert_eq!(signal(&words(said), status, told), expected, "{said}");
        }
        for (said, state) in [
            ("IDLE", "UP"),
            ("MIXED DRAIN", "UP"),
            ("IDLE DRAIN", "DOWN"),
            ("DOWN NOT_RESPONDING", "DOWN"),
            ("IDLE NOT_RESPONDING", "DOWN"),
            ("FAIL", "ERROR"),
            ("UNKNOWN", "UNKNOWN"),
        ] {
            assert_eq!(node(&words(said)).word(), state, "{said}");
        }
        for (said, state) in [
            ("UP", "NORMAL"),
            ("down", "COLLECTING"),
            ("DRAIN", "DRAINING"),
            ("INACTIVE", "STOPPED"),
        ] {
            assert_eq!(queue(said).word(), state, "{said}");
        }
    }
}
