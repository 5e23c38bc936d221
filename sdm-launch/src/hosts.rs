//! Distribution of servers over the hosts that the user names, and of processes over servers that control several each.

use std::ffi::{OsStr, OsString};
use std::ops::Range;

use crate::{HostShare, LaunchError, LaunchSpec};

/// Options of launchers that give the hosts, or the number of processes on each host.
const HOST_OPTIONS: &[&str] = &[
    "H",
    "default-hostfile",
    "f",
    "host",
    "hostfile",
    "hosts",
    "machine",
    "machinefile",
    "ppn",
    "rankfile",
];
/// Environment variables that exist if a resource manager has granted hosts.
const ALLOCATIONS: &[&str] = &["SLURM_JOB_ID", "PBS_NODEFILE", "LSB_HOSTS"];

/// True if servers could start on other hosts: the options give hosts, or there is an allocation.
pub(crate) fn names_hosts(spec: &LaunchSpec) -> bool {
    let names = |option: &OsString| {
        let option = option.to_string_lossy();
        let name = option.trim_start_matches('-');
        let name = name.split_once('=').map_or(name, |(name, _)| name);
        option.starts_with('-') && HOST_OPTIONS.contains(&name)
    };
    let allocated = |name: &&str| std::env::var_os(OsStr::new(name)).is_some();
    !spec.hosts.is_empty()
        || spec.all_options().iter().any(names)
        || ALLOCATIONS.iter().any(allocated)
}

/// Number of servers on each host, in the order of the hosts. Hosts with a share are filled one after the other. Hosts
/// without a share get an even part of the rest.
pub(crate) fn spread(
    launcher: &str,
    hosts: &[HostShare],
    count: u32,
) -> Result<Vec<u32>, LaunchError> {
    let refuse = |what: String| LaunchError::Hosts {
        launcher: launcher.to_owned(),
        what,
    };
    if hosts.is_empty() {
        return Err(refuse(
            "no hosts given: use --host a,b:4 or --hostfile FILE".to_owned(),
        ));
    }
    let mut left = count;
    let mut shares = vec![0; hosts.len()];
    for (share, host) in shares.iter_mut().zip(hosts) {
        *share = host.slots.unwrap_or(0).min(left);
        left -= *share;
    }
    let even: Vec<usize> = (0..hosts.len())
        .filter(|index| hosts[*index].slots.is_none())
        .collect();
    for (place, index) in even.iter().enumerate() {
        let rest = u32::try_from(even.len() - place).unwrap_or(u32::MAX);
        shares[*index] = left.div_ceil(rest);
        left -= shares[*index];
    }
    if left > 0 {
        let room = count - left;
        return Err(refuse(format!(
            "{count} processes requested, but the given hosts have only {room} slots: raise the slot numbers in --host"
        )));
    }
    Ok(shares)
}

/// The hosts with their shares in the form of `mpirun` and `mpiexec`: `a:2,b:2`. `None` if no host is given.
pub(crate) fn with_shares(
    launcher: &str,
    spec: &LaunchSpec,
) -> Result<Option<OsString>, LaunchError> {
    if spec.hosts.is_empty() {
        return Ok(None);
    }
    let shares = spread(launcher, &spec.hosts, spec.count)?;
    let words: Vec<String> = spec
        .hosts
        .iter()
        .zip(shares)
        .filter(|(_, share)| *share > 0)
        .map(|(host, share)| format!("{}:{share}", host.host))
        .collect();
    Ok(Some(words.join(",").into()))
}

/// Distribution of processes over servers that control several of them each.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SharedServers {
    /// The hosts of the servers, each with its number of servers; empty if all servers are on this machine.
    pub hosts: Vec<HostShare>,
    /// The processes of each server, in the order of the servers: one or more consecutive ranks.
    pub processes: Vec<Range<u32>>,
}

impl SharedServers {
    /// Distributes `count` processes of this machine, at most `each` (1 or more) to a server.
    pub(crate) fn here(count: u32, each: u32) -> Self {
        Self {
            hosts: Vec::new(),
            processes: groups(0..count, each).collect(),
        }
    }

    /// Distributes `count` processes over `hosts` as if each process had a server of its own. Then up to `each`
    /// processes of a host share one server.
    pub(crate) fn over(
        launcher: &str,
        hosts: &[HostShare],
        count: u32,
        each: u32,
    ) -> Result<Self, LaunchError> {
        let mut shared = Self {
            hosts: Vec::new(),
            processes: Vec::new(),
        };
        let mut first = 0;
        for (host, share) in hosts.iter().zip(spread(launcher, hosts, count)?) {
            let before = shared.processes.len();
            shared.processes.extend(groups(first..first + share, each));
            first += share;
            let servers = u32::try_from(shared.processes.len() - before).unwrap_or(u32::MAX);
            if servers > 0 {
                shared.hosts.push(HostShare {
                    host: host.host.clone(),
                    slots: Some(servers),
                });
            }
        }
        Ok(shared)
    }
}

/// Groups of `each` consecutive ranks; the last group may have fewer.
fn groups(all: Range<u32>, each: u32) -> impl Iterator<Item = Range<u32>> {
    let end = all.end;
    let each = each.max(1);
    all.step_by(each as usize)
        .map(move |first| first..end.min(first.saturating_add(each)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_of_one_host_share_servers() {
        let hosts = HostShare::list("a:5,b,c:1").unwrap();
        let shared = SharedServers::over("ssh", &hosts, 9, 4).unwrap();
        assert_eq!(shared.processes, [0..4, 4..5, 5..8, 8..9]);
        let names: Vec<_> = shared
            .hosts
            .iter()
            .map(|it| (&*it.host, it.slots))
            .collect();
        assert_eq!(names, [("a", Some(2)), ("b", Some(1)), ("c", Some(1))]);
        assert_eq!(spread("ssh", &shared.hosts, 4).unwrap(), [2, 1, 1]);
        let fewer = SharedServers::over("ssh", &hosts, 3, 4).unwrap();
        assert_eq!(fewer.processes.first(), Some(&(0..3)));
        assert_eq!((fewer.processes.len(), fewer.hosts.len()), (1, 1));
        assert!(SharedServers::over("ssh", &[], 3, 4).is_err());
        assert_eq!(SharedServers::here(5, 4).processes, [0..4, 4..5]);
        let all = SharedServers::here(u32::MAX, u32::MAX);
        assert_eq!(all.processes.first(), Some(&(0..u32::MAX)));
    }

    #[test]
    fn servers_are_spread_over_hosts() {
        let check = |hosts: &str, count, expect: &[u32]| {
            let hosts = HostShare::list(hosts).unwrap();
            assert_eq!(spread("ssh", &hosts, count).unwrap(), expect);
        };
        check("a,b", 4, &[2, 2]);
        check("a,b,c", 4, &[2, 1, 1]);
        check("a:1,b:4", 3, &[1, 2]);
        check("a:1,b,c", 4, &[1, 2, 1]);
        check("a,b", 1, &[1, 0]);
        let error = |hosts: &[HostShare]| spread("ssh", hosts, 9).unwrap_err().to_string();
        assert!(error(&[]).contains("--host"));
        assert!(error(&HostShare::list("a:2,b:3").unwrap()).contains("only 5 slots"));
    }

    #[test]
    fn host_naming_options_are_recognized() {
        let names = |option: &str| {
            let mut spec = LaunchSpec::new(1, "/bin/true");
            spec.launcher_options = vec![option.into()];
            names_hosts(&spec)
        };
        assert!(names("--host") && names("-H") && names("--hostfile=x"));
        let allocated = ALLOCATIONS.iter().any(|it| std::env::var_os(it).is_some());
        assert!(allocated || !(names("host") || names("--map-by")));
    }
}
