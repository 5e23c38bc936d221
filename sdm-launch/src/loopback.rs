//! Hosts that are only names: servers on this machine, each host at a loopback address of its own.

use std::net::Ipv4Addr;

use crate::hosts::spread;
use crate::local::start_each;
use crate::spec::LOCAL_INDEX_VARIABLE;
use crate::{Launch, LaunchError, LaunchSpec, Launcher};

/// Starts servers as [`crate::Local`] does; those of the n-th host listen at `127.0.0.n + 1` and say
/// that they are on it. For trying out what a cluster would do.
#[derive(Clone, Copy, Debug, Default)]
pub struct Loopback;

impl Launcher for Loopback {
    fn name(&self) -> &str {
        "loopback"
    }

    fn describe(&self) -> String {
        "loopback: servers on this machine, under the names of hosts".to_owned()
    }

    fn launch(&self, spec: &LaunchSpec) -> Result<Launch, LaunchError> {
        let shares = spread(self.name(), &spec.hosts, spec.count)?;
        let mut places = shares.iter().enumerate().flat_map(|(host, share)| {
            let address = Ipv4Addr::LOCALHOST.to_bits() + u32::try_from(host).unwrap_or(u32::MAX);
            let address = Ipv4Addr::from_bits(address).to_string();
            (0..*share).map(move |index| (host, address.clone(), index))
        });
        start_each(self, spec, |command, _| {
            // `spread` has a place for each.
            if let Some((host, address, index)) = places.next() {
                command
                    .args(["--bind", &address, "--host-name", &spec.hosts[host].host])
                    .env(LOCAL_INDEX_VARIABLE, index.to_string());
            }
        })
    }
}
