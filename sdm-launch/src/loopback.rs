//! Launcher of servers on this machine under the names of other hosts, each host at a loopback address of its own.

use std::net::Ipv4Addr;

use crate::hosts::spread;
use crate::local::{start_each, start_forking};
use crate::spec::LOCAL_INDEX_VARIABLE;
use crate::{Launch, LaunchError, LaunchSpec, Launcher, SharedServers};

/// Starts servers as [`crate::Local`] does. Those of the first host listen at `127.0.0.1`, those of the next one at
/// `127.0.0.2`, and so on. Each server announces the name of its host. This serves to test the behaviour on a cluster.
#[derive(Clone, Copy, Debug, Default)]
pub struct Loopback;

impl Launcher for Loopback {
    fn name(&self) -> &str {
        "loopback"
    }

    fn describe(&self) -> String {
        "loopback: servers on this machine, which stand for the hosts of --host".to_owned()
    }

    fn share(
        &self,
        spec: &LaunchSpec,
        count: u32,
        each: u32,
    ) -> Result<Option<SharedServers>, LaunchError> {
        SharedServers::over(self.name(), &spec.hosts, count, each).map(Some)
    }

    fn launch(&self, spec: &LaunchSpec) -> Result<Launch, LaunchError> {
        let shares = spread(self.name(), &spec.hosts, spec.count)?;
        let address = |host: usize| {
            let place = u32::try_from(host).unwrap_or(u32::MAX);
            let address = Ipv4Addr::LOCALHOST.to_bits().saturating_add(place);
            Ipv4Addr::from_bits(address).to_string()
        };
        let place = |host: usize| {
            let name = spec.hosts[host].host.clone();
            ["--bind".into(), address(host), "--host-name".into(), name]
        };
        if spec.forks {
            let hosts = shares.iter().enumerate();
            let hosts = hosts.map(|(host, share)| (*share, place(host).to_vec()));
            return start_forking(self, spec, &hosts.collect::<Vec<_>>());
        }
        let mut places = shares.iter().enumerate().flat_map(|(host, share)| {
            let place = place(host);
            (0..*share).map(move |index| (place.clone(), index))
        });
        start_each(self, spec, |command, _| {
            // `spread` has a place for each.
            if let Some((place, index)) = places.next() {
                command
                    .args(place)
                    .env(LOCAL_INDEX_VARIABLE, index.to_string());
            }
        })
    }
}
