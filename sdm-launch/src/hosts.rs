//! How servers are spread over the hosts that a person names.

use std::ffi::{OsStr, OsString};

use crate::{HostShare, LaunchError};

/// Options of launchers that name hosts.
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
/// Variables of a resource manager that has granted hosts.
const ALLOCATIONS: &[&str] = &["SLURM_JOB_ID", "PBS_NODEFILE", "LSB_HOSTS"];

/// Whether servers could come up on other hosts: the options name some, or there is an allocation.
pub(crate) fn names_hosts(options: &[OsString]) -> bool {
    let names = |option: &OsString| {
        let option = option.to_string_lossy();
        let name = option.trim_start_matches('-');
        let name = name.split_once('=').map_or(name, |(name, _)| name);
        option.starts_with('-') && HOST_OPTIONS.contains(&name)
    };
    let allocated = |name: &&str| std::env::var_os(OsStr::new(name)).is_some();
    options.iter().any(names) || ALLOCATIONS.iter().any(allocated)
}

/// How many servers each host gets, in the order of the hosts: shares are filled one after the
/// other; hosts without a share get an even part of what is left.
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
            "which hosts? say --host a,b:4 or --hostfile FILE".to_owned(),
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
            "{count} processes, but the hosts have room for {room}: raise their numbers"
        )));
    }
    Ok(shares)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_spread() {
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
        assert!(error(&HostShare::list("a:2,b:3").unwrap()).contains("room for 5"));
    }

    #[test]
    fn options_that_name_hosts() {
        let names = |option: &str| names_hosts(&[option.into()]);
        assert!(names("--host") && names("-H") && names("--hostfile=x"));
        let allocated = ALLOCATIONS.iter().any(|it| std::env::var_os(it).is_some());
        assert!(allocated || !(names("host") || names("--map-by")));
    }
}
