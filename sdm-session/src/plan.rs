//! Who is whose child and where: the plan of a session on its way, and whether it can be.

use std::net::{IpAddr, SocketAddr};

use sdm_bootstrap::announce::Announcement;
use sdm_core::dialer::Place;
use sdm_core::ids::ServerId;
use sdm_core::message::{PlanEntry, Slice};
use sdm_core::topology::Topology;
use sdm_core::transport::{ConnectionString, PortRange};
use sdm_debug::BackendSettings;
use sdm_hosts::job;
use sdm_idset::{IdSet, TaskId};

use super::api;
use super::config::SessionConfig;
use super::error::SessionError;
use super::start::Starting;

impl Starting<'_> {
    /// The tasks of a server.
    fn tasks_of(&self, heard: &Announcement) -> IdSet {
        let config = self.config;
        if config.by_host.is_empty() {
            let own = config.tasks.get(heard.server as usize).cloned();
            return own.unwrap_or_else(|| IdSet::single(TaskId(heard.server)));
        }
        let is_it = |name: &str| job::is_host(name, &heard.host, &heard.addresses);
        let own = config.by_host.iter().filter(|(host, _)| is_it(host));
        IdSet::union_all(own.map(|(_, tasks)| tasks))
    }

    /// Whether every task has a server.
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
            .map(|(host, tasks)| format!("no server came up on {host}, where ranks {tasks} are"))
            .collect();
        if lacking.is_empty() || self.config.config.partial {
            return Ok(());
        }
        Err(SessionError::Unreachable(lacking.join("; ")))
    }

    /// Where others reach a server.
    fn addresses_of(&self, heard: &Announcement) -> Vec<String> {
        if self.config.network.reverse {
            return vec![ConnectionString::called(ServerId(heard.server)).to_string()];
        }
        if self.config.network.tunnel
            && let Ok(through) = ConnectionString::ssh(&heard.host, heard.port)
        {
            return vec![self.place(heard, through)];
        }
        let direct = |ip: &IpAddr| ConnectionString::from(SocketAddr::new(*ip, heard.port));
        let places = heard.addresses.iter().map(direct);
        places.map(|at| self.place(heard, at)).collect()
    }

    /// A place of a server, in the words of the plan: with all its ports where it has not said which one it has.
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
            host: host.to_owned(),
            addresses,
        };
        let servers = self.heard.values().map(|heard| {
            let tasks = self.tasks_of(heard);
            let addresses = self.addresses_of(heard);
            entry(ServerId(heard.server), tasks, &heard.host, addresses)
        });
        let root = entry(ServerId::MASTER, IdSet::new(), "", Vec::new());
        Slice::new(self.config.arranged().plan(root, servers.collect()))
    }
}

/// The members of a plan, which is a tree in preorder, with their parents.
pub(super) fn members(plan: &Slice) -> Vec<api::SessionMember> {
    let mut members = Vec::new();
    // The entries whose subtrees are open, each with where its own ends.
    let mut open: Vec<(usize, usize)> = Vec::new();
    for (index, entry) in plan.iter().enumerate() {
        while open.last().is_some_and(|(_, end)| *end <= index) {
            open.pop();
        }
        members.push(api::SessionMember {
            server: (entry.server != ServerId::MASTER).then_some(entry.server.0),
            host: entry.host.clone(),
            addresses: entry.addresses.clone(),
            parent: open.last().map(|(parent, _)| *parent),
            tasks: entry.tasks.clone(),
        });
        open.push((index, index + entry.subtree_count as usize));
    }
    members
}

/// Checks that the member with the most children can have them, where it will be on this machine.
pub(super) fn check_widest(config: &SessionConfig) -> Result<(), SessionError> {
    let servers = u64::from(config.servers);
    // The master raises its limit, and so do servers without a program that would find it changed.
    let fake = matches!(config.backend, BackendSettings::Fake { .. });
    let checked = match config.arranged() {
        // Who is called there holds the next call as well.
        Topology::Flat if config.network.reverse => {
            sdm_launch::check_descriptors_of("the master", 2 * servers, true)
        }
        Topology::Flat => sdm_launch::check_descriptors_of("the master", servers, true),
        Topology::Kary(arity) => {
            let children = servers.min(arity.into());
            sdm_launch::check_descriptors_of("each server", children, fake)
        }
        Topology::ByHost if config.launcher == "local" => {
            sdm_launch::check_descriptors_of("the first server", servers, fake)
        }
        Topology::Binomial | Topology::ByHost => Ok(()),
    };
    Ok(checked?)
}
