//! Estimate whether the hosts have the memory for the gdbs of a start or of an attachment.
use std::collections::BTreeMap;

use sdm_debug::command::{Arrangement, AttachSpec, StartSpec};
use sdm_debug::reply::{MemoryLimit, Room};
use sdm_debug::{Command, Reply};
use sdm_idset::{IdSet, TaskId};

use sdm_text::counted;
use sdm_view::render::amount;

use super::SessionHandle;

/// Number of gdbs that fit on any host, and of tasks that fit into one gdb. A host with no more tasks is not asked.
const FEW: u64 = 4;
/// Upper bound of the memory that a gdb of many tasks needs for each further task, in bytes. Measured as in the
/// backend's estimate: 16 tasks 19 MB, 64 tasks 33 MB, gdb 13.1.
const TASK_BYTES: u64 = 512 << 10;

/// The memory demand of a start or an attachment on one host.
#[derive(Default)]
struct Load {
    gdbs: u64,
    /// Memory that all gdbs of the host need, in bytes.
    bytes: u64,
    room: Option<Room>,
}

/// Checks whether the hosts have the memory for a start, and returns the complaint if one lacks it. One task per
/// program is asked on each host with more than [`FEW`] tasks. Hosts that do not answer count as sufficient.
pub(super) async fn lack_of_room(
    session: &SessionHandle,
    programs: &[(IdSet, StartSpec)],
) -> Option<String> {
    if !session.read(|model| model.options.check_room) {
        return None;
    }
    let hosts = crowded_hosts(session);
    let mut loads: BTreeMap<String, Load> = BTreeMap::new();
    for (tasks, spec) in programs {
        // One task of each host, with the host and the number of tasks to start there.
        let asked: BTreeMap<TaskId, (&String, u64)> = hosts
            .iter()
            .map(|(host, there)| (host, there.intersection(tasks)))
            .filter_map(|(host, there)| Some((there.first()?, (host, there.len()))))
            .collect();
        let to: IdSet = asked.keys().copied().collect();
        if to.is_empty() {
            continue;
        }
        let (_, open) = session
            .ask_quietly("start", &to, &Command::Room(spec.clone()))
            .await;
        for (answering, reply) in open?.gathered.ok {
            let Reply::Room(room) = reply else { continue };
            for (host, gdbs) in answering.iter().filter_map(|task| asked.get(&task)) {
                let load = loads.entry((*host).clone()).or_default();
                load.gdbs += gdbs;
                load.bytes = load
                    .bytes
                    .saturating_add(gdbs.saturating_mul(room.gdb_bytes));
                load.room = Some(room);
            }
        }
    }
    refusal(&loads)
}

/// Checks the memory for attaching to processes: one gdb for all processes of a host, unless each has its
/// own.
pub(super) async fn lack_of_room_to_attach(
    session: &SessionHandle,
    spec: &AttachSpec,
    to: &IdSet,
) -> Option<String> {
    if !session.read(|model| model.options.check_room) {
        return None;
    }
    let mut loads: BTreeMap<String, Load> = BTreeMap::new();
    for (host, there) in crowded_hosts(session) {
        let tasks = there.intersection(to);
        let pid = spec
            .pids
            .iter()
            .find(|(task, _)| tasks.contains(TaskId(*task)));
        let Some((task, pid)) = pid.filter(|_| tasks.len() > FEW) else {
            continue;
        };
        let program = StartSpec {
            program: format!("/proc/{pid}/exe").into_bytes(),
            ..StartSpec::default()
        };
        let one = IdSet::single(TaskId(*task));
        let (_, open) = session
            .ask_quietly("attach", &one, &Command::Room(program))
            .await;
        let Some((_, Reply::Room(room))) = open?.gathered.ok.pop() else {
            continue;
        };
        let (gdbs, bytes) = match spec.arrangement {
            Arrangement::PerTask => (tasks.len(), room.gdb_bytes.saturating_mul(tasks.len())),
            Arrangement::Auto | Arrangement::Shared => {
                (1, room.gdb_bytes.saturating_add(tasks.len() * TASK_BYTES))
            }
        };
        let room = Some(room);
        loads.insert(host, Load { gdbs, bytes, room });
    }
    refusal(&loads)
}

/// The hosts with more than a few tasks.
fn crowded_hosts(session: &SessionHandle) -> BTreeMap<String, IdSet> {
    let mut hosts: BTreeMap<String, IdSet> = BTreeMap::new();
    for member in session.members() {
        hosts
            .entry(member.host.clone())
            .or_default()
            .union_with(&member.tasks);
    }
    hosts.retain(|_, tasks| tasks.len() > FEW);
    hosts
}

fn refusal(loads: &BTreeMap<String, Load>) -> Option<String> {
    let lacks = |load: &&Load| load.room.is_some_and(|room| load.bytes > room.free_bytes);
    let mut short = loads.iter().filter(|(_, load)| lacks(load));
    let (host, load) = short.next()?;
    let (more, room) = (short.count(), load.room?);
    let others = match more {
        0 => String::new(),
        more => format!(" (and {})", counted(more, "more host")),
    };
    let bound = match room.limit {
        MemoryLimit::Host => "are free",
        MemoryLimit::Group => "are available to the host's control group (cgroup)",
    };
    let (bytes, free) = (amount(load.bytes), amount(room.free_bytes));
    let gdbs = match load.gdbs {
        1 => "one gdb".to_owned(),
        gdbs => format!("{gdbs} gdbs"),
    };
    Some(format!(
        "{host}{others}: {gdbs} would need about {bytes} of memory, but only {free} {bound}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(gdbs: u64, free_bytes: u64, limit: MemoryLimit) -> Load {
        let gdb_bytes = 60 << 20;
        Load {
            gdbs,
            bytes: gdbs * gdb_bytes,
            room: Some(Room {
                gdb_bytes,
                free_bytes,
                limit,
            }),
        }
    }

    #[test]
    fn hosts_that_lack_memory_are_named() {
        let check = |loads: Vec<(&str, Load)>, expect: Option<&str>| {
            let loads = loads
                .into_iter()
                .map(|(host, load)| (host.to_owned(), load));
            assert_eq!(refusal(&loads.collect()).as_deref(), expect);
        };
        let (host, group) = (MemoryLimit::Host, MemoryLimit::Group);
        check(vec![("n1", load(64, 4 << 30, host))], None);
        check(
            vec![("n1", load(1, 30 << 20, host))],
            Some("n1: one gdb would need about 60 MB of memory, but only 30 MB are free"),
        );
        check(
            vec![
                ("n1", load(64, 2 << 30, host)),
                ("n2", load(64, 8 << 30, host)),
            ],
            Some("n1: 64 gdbs would need about 3.7 GB of memory, but only 2.0 GB are free"),
        );
        check(
            vec![
                ("n1", load(512, 500 << 20, group)),
                ("n2", load(512, 500 << 20, group)),
                ("n3", load(512, 500 << 20, group)),
            ],
            Some(
                "n1 (and 2 more hosts): 512 gdbs would need about 30 GB of memory, but only 500 MB are available to the host's control group (cgroup)",
            ),
        );
    }
}
