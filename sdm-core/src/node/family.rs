//! Parent and children: attaching, losing, adopting. Adoption, rejoin and leave are one operation:
//! a link with a reach comes or goes, and the change travels up.

use std::time::Instant;

use sdm_idset::IdSet;

use super::{Action, ConnectRequest, LinkId, Node, ProtocolError};
use crate::ids::{CommandId, Epoch, ServerId};
use crate::message::{Health, Init, Message, PlanEntry, ReachChange, Slice};
use crate::topology;

/// The member above.
pub(super) struct Parent {
    pub(super) link: LinkId,
}

/// A member below.
pub(super) struct Child {
    pub(super) server: ServerId,
    /// Its subtree as planned, itself first: for adoption.
    slice: Slice,
    /// The tasks behind it.
    reach: IdSet,
    state: ChildState,
    epoch: Epoch,
    /// True where those above were told that it is silent, and not that it is back.
    told_silent: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ChildState {
    /// No link yet, or not any more; being reached.
    Connecting,
    Up(LinkId),
    /// There is a link, but nothing has been heard over it for a while.
    Silent(LinkId),
}

impl Child {
    pub(super) fn server(&self) -> ServerId {
        self.server
    }

    pub(super) fn reach(&self) -> &IdSet {
        &self.reach
    }

    /// The link that commands can take now.
    pub(super) fn link_up(&self) -> Option<LinkId> {
        match self.state {
            ChildState::Up(link) => Some(link),
            _ => None,
        }
    }

    pub(super) fn link(&self) -> Option<LinkId> {
        match self.state {
            ChildState::Up(link) | ChildState::Silent(link) => Some(link),
            ChildState::Connecting => None,
        }
    }

    /// Why no answer comes from it, for a person.
    pub(super) fn why_no_answer(&self) -> String {
        let name = name(&self.slice[0]);
        match self.state {
            ChildState::Connecting => format!("{name} is being reached"),
            ChildState::Up(_) => format!("no answer from {name} in time"),
            ChildState::Silent(_) => format!("{name} is silent"),
        }
    }
}

fn name(entry: &PlanEntry) -> String {
    if entry.host.is_empty() {
        entry.server.to_string()
    } else {
        format!("{} on {}", entry.server, entry.host)
    }
}

fn tasks_of(slice: &[PlanEntry]) -> IdSet {
    IdSet::union_all(slice.iter().map(|entry| &entry.tasks))
}

impl Node {
    pub(super) fn child_of(&self, link: LinkId) -> Option<usize> {
        self.children
            .iter()
            .position(|child| child.link() == Some(link))
    }

    /// A link to a member that says it is the parent of this one has come up, in `epoch`.
    ///
    /// A parent of a higher epoch replaces an older one; anybody else is refused.
    pub fn handle_parent_up(&mut self, link: LinkId, epoch: Epoch) {
        if epoch <= self.epoch || self.ending.is_some() || self.root.is_some() {
            self.actions.push_back(Action::Close(link));
            return;
        }
        self.epoch = epoch;
        self.orphan_deadline = None;
        if let Some(old) = self.parent.replace(Parent { link }) {
            self.actions.push_back(Action::Send {
                link: old.link,
                message: Message::Leave,
            });
            self.actions.push_back(Action::Close(old.link));
        }
    }

    /// The front-end has accepted this member as its child over `link`, which this member opened.
    pub fn handle_front_end_up(&mut self, link: LinkId, epoch: Epoch) {
        self.handle_parent_up(link, Epoch(epoch.0.max(self.epoch.0 + 1)));
    }

    /// A link to a child is up; `peer_epoch` is the highest epoch that the child has seen.
    pub fn handle_child_up(
        &mut self,
        now: Instant,
        link: LinkId,
        server: ServerId,
        peer_epoch: Epoch,
    ) {
        let Some(at) = self
            .children
            .iter()
            .position(|child| child.server == server)
        else {
            if self.root.is_some() && self.config.is_none() && self.early.is_empty() {
                self.early.push((server, link));
            } else {
                self.actions.push_back(Action::Close(link));
            }
            return;
        };
        let (is_root, child) = (self.root.is_some(), &mut self.children[at]);
        if child.link().is_some() {
            self.actions.push_back(Action::Close(link));
            return;
        }
        if peer_epoch >= child.epoch && !is_root {
            child.epoch = Epoch(peer_epoch.0 + 1);
            let request = self.connect_request(at, true);
            self.actions.push_back(Action::Close(link));
            self.actions.push_back(Action::Connect(request));
            return;
        }
        child.state = ChildState::Up(link);
        let (slice, tasks) = (child.slice.clone(), child.reach.clone());
        let init = Init {
            config: self.config().clone(),
            slice,
        };
        self.actions.push_back(Action::Send {
            link,
            message: Message::Init(Box::new(init)),
        });
        self.tell_reachable(now, &tasks);
        self.tell_back(now, at);
        self.ask_child_again(at, false);
    }

    /// A [`Action::Connect`] has failed for good; `why` names who, where and how often.
    pub fn handle_unreachable(&mut self, now: Instant, server: ServerId, why: &str) {
        let found = self
            .children
            .iter()
            .position(|child| child.server == server && child.state == ChildState::Connecting);
        let Some(at) = found else { return };
        self.adopt_children_of(at);
        let child = self.children.remove(at);
        self.fail_init(now, &child.reach, why);
        self.lose(now, &child.reach, why);
        self.check_ended();
    }

    /// A [`Action::Connect`] to a member that was there before has reached its place, but nobody
    /// answers: it stands still. It is not given up.
    pub fn handle_unanswered(&mut self, now: Instant, server: ServerId) {
        let found = self
            .children
            .iter()
            .position(|child| child.server == server && child.state == ChildState::Connecting);
        let Some(at) = found else { return };
        self.adopt_children_of(at);
        let why = format!("{} does not answer", name(&self.children[at].slice[0]));
        self.tell_silent(now, at, &why);
        let request = self.connect_request(at, true);
        self.actions.push_back(Action::Connect(request));
    }

    /// A link is gone; `why` says how.
    pub fn handle_link_down(&mut self, now: Instant, link: LinkId, why: &str) {
        self.early.retain(|(_, early)| *early != link);
        if self.parent_link() == Some(link) {
            self.parent = None;
            self.orphaned(now);
            return;
        }
        let Some(at) = self.child_of(link) else {
            return;
        };
        if self.ending.is_some() {
            self.children.remove(at);
            self.check_ended();
            return;
        }
        let why = format!("{}: {why}", name(&self.children[at].slice[0]));
        if self.root.is_some() {
            let child = self.children.remove(at);
            self.lose(now, &child.reach, &why);
            return;
        }
        self.children[at].state = ChildState::Connecting;
        self.adopt_children_of(at);
        self.children[at].epoch.0 += 1;
        let request = self.connect_request(at, true);
        self.actions.push_back(Action::Connect(request));
        self.tell_silent(now, at, &why);
    }

    /// Nothing has been heard over a link for a while.
    pub fn handle_link_silent(&mut self, now: Instant, link: LinkId) {
        // A silent parent is left to find itself a way: it, or whoever adopts us, comes.
        let Some(at) = self.child_of(link) else {
            return;
        };
        if self.children[at].state != ChildState::Up(link) || self.ending.is_some() {
            return;
        }
        self.children[at].state = ChildState::Silent(link);
        if self.root.is_none() {
            self.adopt_children_of(at);
        }
        let why = self.children[at].why_no_answer();
        self.tell_silent(now, at, &why);
    }

    /// A silent link has been heard again.
    pub fn handle_link_alive(&mut self, now: Instant, link: LinkId) {
        let Some(at) = self.child_of(link) else {
            return;
        };
        if self.children[at].state != ChildState::Silent(link) {
            return;
        }
        self.children[at].state = ChildState::Up(link);
        if self.root.is_none() {
            // Its children were adopted: it comes back as a leaf.
            let init = Init {
                config: self.config().clone(),
                slice: self.children[at].slice.clone(),
            };
            self.actions.push_back(Action::Send {
                link,
                message: Message::Init(Box::new(init)),
            });
        }
        self.tell_back(now, at);
        self.ask_child_again(at, true);
    }

    pub(super) fn handle_init(&mut self, now: Instant, init: Init) -> Result<(), ProtocolError> {
        let runs = topology::child_runs(&init.slice);
        let (Some(runs), Some(first)) = (runs, init.slice.first()) else {
            return Err(ProtocolError(format!("{}: the plan is no tree", self.me)));
        };
        if first.server != self.me {
            let (me, wanted) = (self.me, first.server);
            return Err(ProtocolError(format!("{me}: the plan is for {wanted}")));
        }
        let all = tasks_of(&init.slice);
        self.known_above = all.clone();
        self.height = topology::height(&init.slice);
        if self.config.is_none() {
            self.local = first.tasks.clone();
            self.actions
                .push_back(Action::Configure(init.config.clone()));
            self.config = Some(init.config);
            // The largest subtree first: it takes longest.
            for run in runs.into_iter().rev() {
                self.add_child(init.slice.run(run), None, Epoch(1));
            }
        } else {
            self.keep_only(&all);
            self.narrow_commands(&all);
        }
        self.ask_init(now, &all);
        self.restate_reach(now, &all);
        Ok(())
    }

    /// After a new plan: children outside it are left alone, those within it stay.
    fn keep_only(&mut self, all: &IdSet) {
        let mut at = 0;
        while at < self.children.len() {
            self.children[at].reach.intersect_with(all);
            if self.children[at].reach.is_empty() {
                let child = self.children.remove(at);
                self.actions.push_back(match child.link() {
                    Some(link) => Action::Close(link),
                    None => Action::StopConnecting(child.server),
                });
            } else {
                at += 1;
            }
        }
    }

    /// Tells a new parent how the reach differs from its plan.
    fn restate_reach(&mut self, now: Instant, planned: &IdSet) {
        let reach = self.reach();
        let gone = planned.difference(&reach);
        if !gone.is_empty() {
            self.lose(now, &gone, "lost before");
        }
        self.tell_reachable(now, &reach);
    }

    pub(super) fn add_child(&mut self, slice: Slice, reach: Option<IdSet>, epoch: Epoch) {
        let reach = reach.unwrap_or_else(|| tasks_of(&slice));
        let server = slice[0].server;
        let state = ChildState::Connecting;
        self.children.push(Child {
            server,
            slice,
            reach,
            state,
            epoch,
            told_silent: false,
        });
        if self.root.is_none() {
            let request = self.connect_request(self.children.len() - 1, epoch.0 > 1);
            self.actions.push_back(Action::Connect(request));
        }
    }

    fn connect_request(&self, at: usize, again: bool) -> ConnectRequest {
        let (child, config) = (&self.children[at], self.config());
        ConnectRequest {
            server: child.server,
            epoch: child.epoch,
            host: child.slice[0].host.clone(),
            addresses: child.slice[0].addresses.clone(),
            wait: if again {
                config.rejoin_wait
            } else {
                config.start_wait
            },
            refusal_is_final: again,
        }
    }

    /// Takes over the children of a child that does not answer; what is left of it is itself.
    fn adopt_children_of(&mut self, at: usize) {
        let child = &mut self.children[at];
        let slice = child.slice.clone();
        let runs = topology::child_runs(&slice).expect("checked when the plan came");
        let epoch = Epoch(child.epoch.0 + 1);
        child.slice = leaf_slice(&slice[0]);
        let reach = child.reach.clone();
        child.reach.intersect_with(&slice[0].tasks);
        for run in runs.into_iter().rev() {
            let below = slice.run(run);
            let mut behind = tasks_of(&below);
            behind.intersect_with(&reach);
            if !behind.is_empty() {
                self.add_child(below, Some(behind), epoch);
            }
        }
    }

    /// A child was taken over by somebody else.
    pub(super) fn handle_leave(&mut self, now: Instant, at: usize) -> Result<(), ProtocolError> {
        let child = self.children.remove(at);
        if let Some(link) = child.link() {
            self.actions.push_back(Action::Close(link));
        }
        self.lose(
            now,
            &child.reach,
            &format!("{} has another parent", child.server),
        );
        self.check_ended();
        Ok(())
    }

    /// A child tells of tasks behind it that came or went.
    pub(super) fn handle_reach(
        &mut self,
        now: Instant,
        at: usize,
        change: ReachChange,
    ) -> Result<(), ProtocolError> {
        match change.health {
            Health::Reachable => {
                for (other, child) in self.children.iter_mut().enumerate() {
                    if other != at {
                        child.reach.subtract(&change.tasks);
                    }
                }
                let fresh = change.tasks.difference(&self.children[at].reach);
                self.children[at].reach.union_with(&change.tasks);
                self.tell_reachable(now, &fresh);
                self.tell_up(now, change);
                if !fresh.is_empty() {
                    self.ask_child_again(at, true);
                }
            }
            Health::Silent => self.tell_up(now, change),
            Health::Lost => {
                let gone = change.tasks.intersection(&self.children[at].reach);
                self.children[at].reach.subtract(&gone);
                self.lose(now, &gone, &change.why);
            }
        }
        Ok(())
    }

    /// Tasks that nobody below can reach any more.
    pub(super) fn lose(&mut self, now: Instant, tasks: &IdSet, why: &str) {
        let reach = self.reach();
        let gone = tasks.difference(&reach);
        if gone.is_empty() {
            return;
        }
        self.lose_in_commands(now, &gone);
        let told = gone.intersection(&self.known_above);
        self.known_above.subtract(&told);
        if !told.is_empty() {
            self.tell_up(
                now,
                ReachChange {
                    tasks: told,
                    health: Health::Lost,
                    why: why.to_owned(),
                },
            );
        }
    }

    /// Tells the parent of tasks that it does not know to be here.
    fn tell_reachable(&mut self, now: Instant, tasks: &IdSet) {
        let fresh = tasks.difference(&self.known_above);
        if !fresh.is_empty() {
            self.known_above.union_with(&fresh);
            let change = ReachChange {
                tasks: fresh,
                health: Health::Reachable,
                why: String::new(),
            };
            self.tell_up(now, change);
        }
    }

    fn tell_silent(&mut self, now: Instant, at: usize, why: &str) {
        if !std::mem::replace(&mut self.children[at].told_silent, true) {
            self.tell_health(now, at, Health::Silent, why);
        }
    }

    fn tell_back(&mut self, now: Instant, at: usize) {
        if std::mem::take(&mut self.children[at].told_silent) {
            self.tell_health(now, at, Health::Reachable, "");
        }
    }

    fn tell_health(&mut self, now: Instant, at: usize, health: Health, why: &str) {
        let tasks = self.children[at].reach.clone();
        if !tasks.is_empty() {
            self.tell_up(
                now,
                ReachChange {
                    tasks,
                    health,
                    why: why.to_owned(),
                },
            );
        }
    }

    fn tell_up(&mut self, now: Instant, change: ReachChange) {
        if self.root.is_some() {
            self.deliver_reach(change);
            return;
        }
        self.flush_for(now, &change.tasks);
        self.send_up(Message::Reach(change));
    }

    /// Asks a child for everything that is still open behind it.
    ///
    /// Over a link that is not new the attempt rises, so that answers under way do not count.
    fn ask_child_again(&mut self, at: usize, same_link: bool) {
        for open in 0..self.open.len() {
            let id = self.open[open].id();
            if id != CommandId::INIT || same_link {
                self.send_open_to(open, at, same_link);
            }
        }
    }

    fn orphaned(&mut self, now: Instant) {
        if self.ending.is_none() {
            let wait = self
                .config
                .as_ref()
                .map_or(std::time::Duration::ZERO, |c| c.orphan_wait);
            self.orphan_deadline = Some(now + wait);
        }
    }

    /// Forgets every child; gives their links and who is being reached.
    pub(super) fn child_links(&self) -> Vec<(ServerId, Option<LinkId>)> {
        self.children
            .iter()
            .map(|child| (child.server, child.link()))
            .collect()
    }

    /// At the end: who is being reached is not waited for.
    pub(super) fn forget_unlinked(&mut self) {
        self.children.retain(|child| child.link().is_some());
    }
}

fn leaf_slice(entry: &PlanEntry) -> Slice {
    Slice::new(vec![PlanEntry {
        subtree_count: 1,
        ..entry.clone()
    }])
}
