//! Description of a job to be started, and the placement of its processes on nodes.

use sdm_foreign::HostProgram;

/// A job to be started, as a process or a tool requests it.
#[derive(Clone, Debug, Default)]
pub(crate) struct SpawnSpec {
    pub(crate) programs: Vec<(HostProgram, Placement)>,
    /// True if the processes are to wait in `PMIx_Init` for a debugger.
    pub(crate) is_held: bool,
    /// The processes that the new ones debug: a namespace and a rank; `None` if the new job is no debugger.
    pub(crate) target: Option<(String, u32)>,
}

/// Requested placement of a program's processes, as the caller gives it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Placement {
    /// The allowed hosts: `HOST`, or `HOST:COUNT` for more than one process there. Empty for any host.
    pub(crate) hosts: Vec<String>,
    /// Number of processes on each node; replaces the program's total count. `None` if only the total is given.
    pub(crate) per_node: Option<u32>,
}

/// Processes of a program on a node; those of a job are in the order of its ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Placed {
    /// Index of the program in the request.
    pub(crate) program: usize,
    /// Index of the node in the job.
    pub(crate) node: u32,
    pub(crate) count: u32,
}

/// Reason for which the processes cannot be placed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PlacingError {
    #[error("{host:?} is not among the hosts of the job: {known}")]
    NoHost { host: String, known: String },
    #[error("{0:?} is not a host with a number of slots (expected HOST or HOST:COUNT)")]
    NoCount(String),
}

/// Places programs, each with its number of processes, on the nodes of these names. Without a placement all processes
/// are on the node `own`. With a number per node and no hosts, that many are on each node of `all`.
pub(crate) fn place(
    nodes: &[&str],
    own: u32,
    all: &[u32],
    programs: &[(u32, Placement)],
) -> Result<Vec<Placed>, PlacingError> {
    let mut placed: Vec<Placed> = Vec::new();
    for (program, (count, wanted)) in programs.iter().enumerate() {
        let slots = slots(nodes, &wanted.hosts)?;
        let mut add = |node, count| {
            let last = placed.last_mut();
            match last.filter(|it| it.program == program && it.node == node) {
                Some(last) => last.count = last.count.saturating_add(count),
                None => placed.push(Placed {
                    program,
                    node,
                    count,
                }),
            }
        };
        match (wanted.per_node, slots.is_empty()) {
            (Some(each), true) => all.iter().for_each(|node| add(*node, each)),
            (Some(each), false) => {
                let mut named: Vec<u32> = slots.iter().map(|(node, _)| *node).collect();
                named.sort_unstable();
                named.dedup();
                named.into_iter().for_each(|node| add(node, each));
            }
            (None, true) => add(own, *count),
            (None, false) => fill(&slots, *count, &mut add),
        }
    }
    placed.retain(|it| it.count > 0);
    Ok(placed)
}

/// The node of each named host, with the host's number of slots.
fn slots(nodes: &[&str], hosts: &[String]) -> Result<Vec<(u32, u32)>, PlacingError> {
    let find = |host: &str| {
        let exact = nodes.iter().position(|node| *node == host);
        // A host's name may have a domain in one place and none in another.
        let first = |name: &str| name.split('.').next().unwrap_or(name).to_owned();
        let is_short = |node: &&str| first(node) == host || **node == first(host);
        let found = exact.or_else(|| nodes.iter().position(is_short));
        found.and_then(|at| u32::try_from(at).ok())
    };
    let read = |word: &String| {
        let (host, count) = match word.split_once(':') {
            Some((host, count)) => (host, count.parse().ok()),
            None => (word.as_str(), Some(1)),
        };
        let count = count.ok_or_else(|| PlacingError::NoCount(word.clone()))?;
        let node = find(host).ok_or_else(|| PlacingError::NoHost {
            host: host.to_owned(),
            known: nodes.join(", "),
        })?;
        Ok((node, count))
    };
    hosts.iter().map(read).collect()
}

/// Fills the slots in order. If there are too few, the excess is spread evenly over the hosts.
fn fill(slots: &[(u32, u32)], count: u32, add: &mut impl FnMut(u32, u32)) {
    let mut left = count;
    let all = slots.iter().map(|(_, count)| *count);
    let all = all.fold(0, u32::saturating_add);
    let hosts = u32::try_from(slots.len()).unwrap_or(u32::MAX).max(1);
    let over = count.saturating_sub(all);
    let (more, rest) = (over / hosts, over % hosts);
    for (at, (node, own)) in (0..).zip(slots) {
        let its = own
            .saturating_add(more)
            .saturating_add(u32::from(at < rest));
        let its = its.min(left);
        left -= its;
        add(*node, its);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODES: [&str; 3] = ["a", "b.site", "c"];

    fn on(count: u32, hosts: &[&str], per_node: Option<u32>) -> String {
        let hosts = hosts.iter().map(|it| (*it).to_owned()).collect();
        let wanted = Placement { hosts, per_node };
        match place(&NODES, 2, &[0, 1], &[(count, wanted)]) {
            Ok(placed) => {
                let words = placed.iter().map(|it| format!("{}x{}", it.node, it.count));
                words.collect::<Vec<_>>().join(" ")
            }
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn processes_default_to_the_starting_node() {
        assert_eq!(on(4, &[], None), "2x4");
        assert_eq!(on(0, &[], None), "");
    }

    #[test]
    fn hosts_fill_in_order_and_oversubscribe_evenly() {
        assert_eq!(on(2, &["a", "b"], None), "0x1 1x1");
        assert_eq!(on(3, &["b.site:2", "a:2"], None), "1x2 0x1");
        assert_eq!(on(7, &["a", "c:2"], None), "0x3 2x4");
        assert_eq!(on(1, &["a", "c"], None), "0x1");
        assert_eq!(on(2, &["a", "a"], None), "0x2");
        assert_eq!(on(2, &["c.site:2"], None), "2x2");
    }

    #[test]
    fn count_per_host_is_placed_on_each_host() {
        assert_eq!(on(0, &[], Some(1)), "0x1 1x1");
        assert_eq!(on(9, &["c", "c", "a"], Some(2)), "0x2 2x2");
    }

    #[test]
    fn unknown_host_is_refused() {
        let nobody = "\"d\" is not among the hosts of the job: a, b.site, c";
        assert_eq!(on(1, &["a", "d"], None), nobody);
        let none = "\"a:many\" is not a host with a number of slots (expected HOST or HOST:COUNT)";
        assert_eq!(on(1, &["a:many"], None), none);
    }
}
