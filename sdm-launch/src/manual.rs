//! Launcher of servers that the user starts by hand or by a script: it prints the commands.

use std::fmt::Write;
use std::io;
use std::net::{IpAddr, Ipv4Addr, ToSocketAddrs};

use sdm_bootstrap::announce::Announcement;
use sdm_core::transport::PortRange;
use sdm_text::shell_word;

use crate::hosts::spread;
use crate::{HostShare, Launch, LaunchError, LaunchSpec, Launcher, SharedServers};

/// The first port on which servers listen, unless the user sets one. It is below the range from which Linux takes ports
/// for outgoing connections.
pub const MANUAL_PORT: u16 = 23_000;

/// Address of members that the user starts on this machine.
pub const MANUAL_HOST: &str = "127.0.0.1";

/// Prints the commands that start the master and the servers, and starts nothing.
///
/// There are no announcements. Addresses follow from the hosts, or are on this machine if no host is given. The port of
/// server i is the i-th of [`LaunchSpec::ports`], counted from 0.
#[derive(Clone, Copy, Debug, Default)]
pub struct Manual;

impl Launcher for Manual {
    fn name(&self) -> &str {
        "manual"
    }

    fn describe(&self) -> String {
        "manual: you start the master and the servers".to_owned()
    }

    fn may_span_hosts(&self, spec: &LaunchSpec) -> bool {
        !spec.hosts.is_empty()
    }

    fn is_by_hand(&self) -> bool {
        true
    }

    fn share(
        &self,
        spec: &LaunchSpec,
        count: u32,
        each: u32,
    ) -> Result<Option<SharedServers>, LaunchError> {
        if spec.hosts.is_empty() {
            return Ok(Some(SharedServers::here(count, each)));
        }
        SharedServers::over(self.name(), &spec.hosts, count, each).map(Some)
    }

    fn launch(&self, spec: &LaunchSpec) -> Result<Launch, LaunchError> {
        spec.check(self.name())?;
        spec.check_no_part_options(self.name())?;
        let refuse = |what: String| LaunchError::Hosts {
            launcher: self.name().to_owned(),
            what,
        };
        let here = [HostShare {
            host: MANUAL_HOST.to_owned(),
            slots: None,
        }];
        let hosts = if spec.hosts.is_empty() {
            &here[..]
        } else {
            &spec.hosts
        };
        let shares = spread(self.name(), hosts, spec.count)?;
        let handover = spec.handover.as_ref();
        let handover = handover.ok_or_else(|| refuse("the session has no key".to_owned()))?;
        let ports = match spec.ports.is_any() {
            true => PortRange::from(MANUAL_PORT),
            false => spec.ports,
        };
        let mut launch = Launch::new();
        let beside = spec.server.with_file_name("sdm-master");
        let mut text = format!(
            "start these programs (the session key is in {0}; where that file cannot be read, use --handover - and \
             pass the key on standard input):\n",
            handover.display()
        );
        let handover = format!("--handover {}", shell_word(&handover.display().to_string()));
        let _ = writeln!(
            text,
            "{} {handover} {}",
            shell_word(&beside.display().to_string()),
            spec.front_end
        );
        let mut server = 0;
        for (share, count) in hosts.iter().zip(shares) {
            let addresses = resolve(&share.host)
                .map_err(|error| refuse(format!("host {}: {error}", bare(&share.host))))?;
            for _ in 0..count {
                let port = ports.at(server).ok_or_else(|| {
                    refuse(format!("--port {ports}: {} ports are needed", spec.count))
                })?;
                let program = shell_word(&spec.server.display().to_string());
                let mut line = format!(
                    "{program} {handover} --id {server} --port {}",
                    ports.begun_at(port)
                );
                for argument in &spec.server_args {
                    let _ = write!(line, " {}", shell_word(&argument.to_string_lossy()));
                }
                if !spec.hosts.is_empty() {
                    let _ = write!(line, "    # on {}", share.host);
                }
                let _ = writeln!(text, "{line}");
                launch.announce(Announcement {
                    server,
                    host: share.host.clone(),
                    port,
                    // The pid is unknown until the server connects.
                    pid: 1,
                    addresses: addresses.clone(),
                });
                server += 1;
            }
        }
        launch.note(text.trim_end().to_owned());
        Ok(launch)
    }
}

/// The host without the user name in front of it.
fn bare(host: &str) -> &str {
    host.rsplit('@').next().unwrap_or(host)
}

fn resolve(host: &str) -> io::Result<Vec<IpAddr>> {
    let name = bare(host);
    if name == "localhost" {
        return Ok(vec![Ipv4Addr::LOCALHOST.into()]);
    }
    let found = (name, 0).to_socket_addrs()?;
    let mut addresses: Vec<IpAddr> = found.map(|address| address.ip()).collect();
    addresses.dedup();
    addresses.truncate(sdm_core::limits::ADDRESSES_MAX);
    Ok(addresses)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LaunchEvent;

    #[test]
    fn manual_launch_prints_commands_and_knows_addresses() {
        let mut spec = LaunchSpec::new(3, "/opt/s d/sdm-server");
        spec.handover = Some("/run/key".into());
        spec.front_end = "tcp://10.0.0.1:4000".to_owned();
        spec.hosts = HostShare::list("10.0.0.1:1,10.0.0.2").unwrap();
        spec.ports = PortRange::from(7000);
        let mut launch = Manual.launch(&spec).unwrap();
        let events: Vec<_> = std::iter::from_fn(|| launch.poll_event()).collect();
        let places: Vec<_> = events
            .iter()
            .filter_map(|event| match event {
                LaunchEvent::Announced(it) => Some(format!("{}:{}", it.addresses[0], it.port)),
                _ => None,
            })
            .collect();
        assert_eq!(places, ["10.0.0.1:7000", "10.0.0.2:7001", "10.0.0.2:7002"]);
        let Some(LaunchEvent::Note(text)) = events.last() else {
            panic!("{events:?}");
        };
        let lines: Vec<&str> = text.lines().skip(1).collect();
        assert_eq!(
            lines[0],
            "'/opt/s d/sdm-master' --handover /run/key tcp://10.0.0.1:4000"
        );
        assert_eq!(
            lines[2],
            "'/opt/s d/sdm-server' --handover /run/key --id 1 --port 7001    # on 10.0.0.2"
        );
        assert!(launch.is_over());
        spec.ports = PortRange::from(65_534);
        assert!(Manual.launch(&spec).is_err());
    }
}
