//! The plan of the tree: parents, children and tasks, and checks of its feasibility.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use sdm_bootstrap::announce::Announcement;
use sdm_core::dialer::Place;
use sdm_core::ids::ServerId;
use sdm_core::limits::ADDRESSES_MAX;
use sdm_core::message::{Addresses, PlanEntry, Slice};
use sdm_core::topology::Topology;
use sdm_core::transport::{ConnectionString, HostTransport, PortRange};
use sdm_debug::BackendSettings;
use sdm_hosts::job;
use sdm_idset::{IdSet, TaskId};

use super::api;
use super::config::SessionConfig;
use super::error::SessionError;
use super::spawn_ids;
use super::start::Starting;

impl Starting<'_> {
    /// The tasks of a server.
    pub(super) fn tasks_of(&self, heard: &Announcement) -> IdSet {
        let config = self.config;
        if let Some(joined) = &self.joined {
            return joined.of(heard.server);
        }
        if config.by_host.is_empty() {
            let own = config.tasks.get(heard.server as usize).cloned();
            return own.unwrap_or_else(|| IdSet::single(TaskId(heard.server)));
        }
        let is_it = |name: &str| job::is_host(name, &heard.host, &heard.addresses);
        let own = config.by_host.iter().filter(|(host, _)| is_it(host));
        IdSet::union_all(own.map(|(_, tasks)| tasks))
    }

    /// Checks that every host with tasks has a server.
    pub(super) fn check_hosts(&self) -> Result<(), SessionError> {
        let is_there = |name: &str| {
            let mut heard = self.heard.values();
            heard.any(|heard| job::is_host(name, &heard.host, &heard.addresses))
        };
        let lacking = self
            .config
            .by_host
            .iter()
            .filter(|(host, _)| !is_there(host));
        let lacking: Vec<_> = lacking
            .map(|(host, tasks)| format!("no server started on {host}, which runs ranks {tasks}"))
            .collect();
        if lacking.is_empty() || self.config.config.partial {
            return Ok(());
        }
        Err(SessionError::Unreachable(lacking.join("; ")))
    }

    /// The addresses at which other members reach a server.
    fn addresses_of(&self, heard: &Announcement) -> Addresses {
        if self.config.network.reverse {
            return [ConnectionString::called(ServerId(heard.server)).to_string()]
                .iter()
                .collect();
        }
        if self.config.network.tunnel
            && let Ok(through) = ConnectionString::ssh(&heard.host, heard.port)
        {
            return [self.place(heard, through)].iter().collect();
        }
        let direct = |ip: &IpAddr| ConnectionString::from(SocketAddr::new(*ip, heard.port));
        let places = heard.addresses.iter().map(direct);
        places.map(|at| self.place(heard, at)).collect()
    }

    /// An address of a server in the plan's syntax. For servers started by hand it covers the whole port
    /// range, because their port is unknown.
    fn place(&self, heard: &Announcement, first: ConnectionString) -> String {
        if !self.by_hand {
            return first.to_string();
        }
        let ports = match self.config.network.ports.is_any() {
            true => PortRange::from(heard.port),
            false => self.config.network.ports.begun_at(heard.port),
        };
        let (begin, count) = ports.search(0);
        Place::upwards(first, begin.saturating_add(count - 1)).to_string()
    }

    pub(super) fn plan(&self) -> Slice {
        let entry = |server, tasks, host: &str, addresses| PlanEntry {
            server,
            subtree_count: 1,
            tasks,
            host: host.into(),
            addresses,
        };
        let servers = self.heard.values().filter_map(|heard| {
            let tasks = self.tasks_of(heard);
            if self.joined.is_some() && tasks.is_empty() {
                // Its ranks' processes ended before they came to it.
                return None;
            }
            let addresses = self.addresses_of(heard);
            Some(entry(ServerId(heard.server), tasks, &heard.host, addresses))
        });
        let root = entry(ServerId::MASTER, IdSet::new(), "", Addresses::default());
        let (topology, home) = (self.config.arranged(), self.home());
        let mut servers: Vec<_> = servers.collect();
        if matches!(self.config.backend, BackendSettings::GdbHosted { .. }) {
            spawn_ids::make_room(&mut servers);
        }
        let mut plan = topology.plan_at(&home, root, servers);
        if self.config.transport == HostTransport::Unix
            && !self.config.network.reverse
            && !self.by_hand
        {
            add_local_places(&mut plan, &home);
        }
        Slice::new(plan)
    }

    /// The host of the master: this one, unless it is started by hand. Empty if unknown.
    fn home(&self) -> String {
        if self.by_hand && self.config.hosts.is_empty() {
            // All members are started here, and no host is asked for.
            return sdm_launch::MANUAL_HOST.to_owned();
        }
        let own = nix::unistd::gethostname().ok().filter(|_| !self.by_hand);
        own.map_or_else(String::new, |name| name.to_string_lossy().into_owned())
    }
}

/// Adds a local address for servers whose parent has the same host name. If it does not answer, for example
/// because another host has that name, the next address is tried.
fn add_local_places(plan: &mut [PlanEntry], home: &str) {
    // The entries with open subtrees, each with the index at which its subtree ends.
    let mut open: Vec<(usize, usize)> = Vec::new();
    for index in 0..plan.len() {
        while open.last().is_some_and(|(_, end)| *end <= index) {
            open.pop();
        }
        let above = open.last().map(|(parent, _)| match plan[*parent].server {
            ServerId::MASTER => home,
            _ => &*plan[*parent].host,
        });
        let is_near = above.is_some_and(|host| host == &*plan[index].host);
        let entry = &mut plan[index];
        open.push((index, index + entry.subtree_count as usize));
        if is_near {
            let local = ConnectionString::local(entry.server).to_string();
            let all = std::iter::once(&*local).chain(entry.addresses.iter());
            entry.addresses = all.take(ADDRESSES_MAX).collect();
        }
    }
}

/// The members of a plan, which is a tree in preorder, with their parents.
pub(super) fn members(plan: &Slice) -> Vec<api::SessionMember> {
    let mut members = Vec::new();
    // The entries with open subtrees, each with the index at which its subtree ends.
    let mut open: Vec<(usize, usize)> = Vec::new();
    for (index, entry) in plan.iter().enumerate() {
        while open.last().is_some_and(|(_, end)| *end <= index) {
            open.pop();
        }
        members.push(api::SessionMember {
            server: (entry.server != ServerId::MASTER).then_some(entry.server.0),
            host: entry.host.to_string(),
            addresses: entry.addresses.iter().map(str::to_owned).collect(),
            parent: open.last().map(|(parent, _)| *parent),
            tasks: entry.tasks.clone(),
        });
        open.push((index, index + entry.subtree_count as usize));
    }
    members
}

/// Adds the nodes of `all` tasks in the plan to settings with PMIx servers. Other numbers are reserved for spawned
/// processes.
pub(super) fn hosted_on(backend: &BackendSettings, plan: &Slice, all: &IdSet) -> BackendSettings {
    let mut settings = backend.clone();
    if let BackendSettings::GdbHosted { pmix, .. } = &mut settings {
        let mut nodes: BTreeMap<&str, IdSet> = BTreeMap::new();
        for entry in plan.iter().filter(|entry| !entry.tasks.is_empty()) {
            let tasks = entry.tasks.intersection(all);
            pmix.spare.union_with(&entry.tasks.difference(all));
            nodes.entry(&entry.host).or_default().union_with(&tasks);
        }
        let nodes = nodes.into_iter();
        pmix.nodes = nodes
            .map(|(name, tasks)| (name.to_owned(), tasks))
            .collect();
        // In the order of a launcher: by the first rank of each node.
        pmix.nodes.sort_by_key(|(_, tasks)| tasks.first());
    }
    settings
}

/// Checks that the descriptor limit suffices for the member with the most children, if it will be on this machine.
/// Binomial trees and those of a routing policy are not checked.
pub(super) fn check_widest(config: &SessionConfig) -> Result<(), SessionError> {
    let servers = u64::from(config.servers);
    // The master raises its limit, and so do servers without a program that would find it changed.
    let fake = matches!(config.backend, BackendSettings::Fake { .. });
    let checked = match config.arranged() {
        // With reversed connections the master also holds the next connection of each server.
        Topology::Flat if config.network.reverse => {
            sdm_launch::check_descriptors_of("the master", 2 * servers, true)
        }
        Topology::Flat => sdm_launch::check_descriptors_of("the master", servers, true),
        Topology::Kary(arity) => {
            let children = servers.min(arity.into());
            sdm_launch::check_descriptors_of("each server", children, fake)
        }
        Topology::ByHost(fanout) => {
            let children = servers.min(fanout.into());
            sdm_launch::check_descriptors_of("each server", children, fake)
        }
        Topology::Binomial | Topology::Own(_) => Ok(()),
    };
    Ok(checked?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_with_parent_on_its_host_has_a_local_address() {
        let entry = |server, host: &str| PlanEntry {
            server,
            subtree_count: 1,
            tasks: IdSet::new(),
            host: host.into(),
            addresses: ["tcp://10.0.0.1:7000"].iter().collect(),
        };
        let check = |home: &str, expect: &[u32]| {
            let servers = ["a", "a", "b", "b", "b"];
            let servers = (0..)
                .zip(servers)
                .map(|(id, host)| entry(ServerId(id), host));
            let root = entry(ServerId::MASTER, "");
            let mut plan = Topology::ByHost(2).plan_at(home, root, servers.collect());
            add_local_places(&mut plan, home);
            let is_near = |entry: &&PlanEntry| {
                let first = entry.addresses.iter().next();
                first == Some(&*ConnectionString::local(entry.server).to_string())
            };
            let near: Vec<u32> = plan.iter().filter(is_near).map(|it| it.server.0).collect();
            assert_eq!(near, expect, "{home}");
            assert!(
                plan.iter()
                    .all(|it| it.addresses.iter().last() == Some("tcp://10.0.0.1:7000"))
            );
        };
        check("", &[1, 3, 4]);
        check("a", &[0, 1, 3, 4]);
        check("b", &[2, 3, 4, 1]);
    }
}
