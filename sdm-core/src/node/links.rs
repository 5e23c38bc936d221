//! A member's parent and children: making, losing and renewing the links to them. Adoption, rejoin and leave are
//! one operation: a link with a reach comes or goes, and the change travels up (`health`).

use std::sync::Arc;
use std::time::{Duration, Instant};

use sdm_idset::IdSet;

use super::adoption::slice_now;
use super::plan::PartialPlan;
use super::shutdown::Orphan;
use super::{Action, ConnectRequest, LinkId, Node, ProtocolError};
use crate::ids::{Epoch, ServerId};
use crate::message::{Init, Lane, Message, PlanEntry, Slice};
use crate::topology;

/// The member above.
pub(super) struct Parent {
    pub(super) server: ServerId,
    pub(super) link: LinkId,
    /// The parts received so far of an incomplete plan; `None` if no plan is incomplete.
    pub(super) gathering: Option<Box<PartialPlan>>,
}

/// A member below.
pub(super) struct Child {
    pub(super) server: ServerId,
    /// The child's subtree as the child's plan has it, the child itself first. It is needed to adopt the child's
    /// children.
    pub(super) slice: Slice,
    /// The tasks behind the child.
    pub(super) reach: IdSet,
    /// The tasks that can become reachable through the child; `reach` is a subset of them.
    pub(super) planned: IdSet,
    /// Tasks below this child whose servers have lost their children: these were adopted while the server was
    /// silent or gone.
    pub(super) alone: IdSet,
    /// Tasks that the child has reported as silent, and has not reported as reachable since.
    pub(super) silent: IdSet,
    pub(super) state: ChildState,
    /// Epoch of the attachment, or of the one under way.
    pub(super) epoch: Epoch,
    /// True once this member has been the child's parent. False again when another parent has taken the child over.
    attached: bool,
    /// True if the child's silence was reported to the parent, and its return was not yet.
    pub(super) told_silent: bool,
    /// True once the child has ended as asked. A link that closes without this is lost, also during the end.
    pub(super) has_ended: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ChildState {
    /// Without a link; connecting.
    Connecting,
    Up(LinkId),
    /// There is a link, but no record has arrived over it for a while.
    Silent(LinkId),
}

impl Child {
    /// A member that is yet to be reached.
    pub(super) fn new(slice: Slice, reach: IdSet, epoch: Epoch) -> Self {
        Self {
            server: slice[0].server,
            slice,
            planned: reach.clone(),
            reach,
            alone: IdSet::new(),
            silent: IdSet::new(),
            state: ChildState::Connecting,
            epoch,
            attached: false,
            has_ended: false,
            told_silent: false,
        }
    }

    /// The child's subtree as it is now, after all adoptions and losses.
    pub(super) fn slice_now(&self) -> Slice {
        slice_now(&self.slice, &self.reach, &self.alone)
    }

    /// Removes the members below the child, which have another parent from now on.
    pub(super) fn become_leaf(&mut self) {
        self.slice = leaf_slice(&self.slice[0]);
        let own = &self.slice[0].tasks;
        self.reach.intersect_with(own);
        self.planned.intersect_with(own);
        self.alone = IdSet::new();
    }

    pub(super) fn server(&self) -> ServerId {
        self.server
    }

    pub(super) fn reach(&self) -> &IdSet {
        &self.reach
    }

    /// The link over which commands can be sent now; `None` if the child is connecting or silent.
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

    /// Reason for which the child does not answer, for messages to the user.
    pub(super) fn why_no_answer(&self) -> String {
        let name = name(&self.slice[0]);
        match self.state {
            ChildState::Connecting => format!("connecting to {name}"),
            ChildState::Up(_) => format!("no answer from {name} in time"),
            ChildState::Silent(_) => format!("{name} is silent"),
        }
    }
}

/// The display name of a member: `server 3 on node7`.
pub(super) fn name(entry: &PlanEntry) -> String {
    if entry.host.is_empty() {
        entry.server.to_string()
    } else {
        format!("{} on {}", entry.server, entry.host)
    }
}

/// The height and the tasks of a plan; `None` if it is not a tree in which every task has one
/// owner. All later use of a plan relies on that.
pub(super) fn measure(plan: &[PlanEntry]) -> Option<(u32, IdSet)> {
    Some((topology::height(plan)?, topology::tasks(plan)?))
}

pub(super) fn tasks_of(slice: &[PlanEntry]) -> IdSet {
    IdSet::union_all(slice.iter().map(|entry| &entry.tasks))
}

/// Maximum number of children that are searched one by one, without an index.
const FEW_CHILDREN: usize = 8;

impl Node {
    /// Index in `children` of the child behind a link; `None` if the link leads to no child.
    pub(super) fn child_of(&mut self, link: LinkId) -> Option<usize> {
        if self.parent_link() == Some(link) {
            return None;
        }
        if self.children.len() <= FEW_CHILDREN {
            let is_it = |child: &Child| child.link() == Some(link);
            return self.children.iter().position(is_it);
        }
        let found = self.noted_child(link);
        if found.is_some() {
            return found;
        }
        // Children were added or removed: the index is rebuilt.
        self.by_link.clear();
        for (at, child) in (0..).zip(&self.children) {
            self.by_link.extend(child.link().map(|link| (link, at)));
        }
        self.by_link.sort_unstable();
        self.noted_child(link)
    }

    fn noted_child(&self, link: LinkId) -> Option<usize> {
        let noted = self.by_link.binary_search_by_key(&link, |(link, _)| *link);
        let at = self.by_link[noted.ok()?].1 as usize;
        let child = self.children.get(at)?;
        (child.link() == Some(link)).then_some(at)
    }

    /// Handles a new link to `server`, which is the parent of this member in `epoch`.
    ///
    /// A parent of a higher epoch replaces an older one; any other is refused.
    pub fn handle_parent_up(&mut self, link: LinkId, server: ServerId, epoch: Epoch) {
        if epoch <= self.epoch || self.ending.is_some() || self.root.is_some() {
            self.actions.push_back(Action::Close(link));
            return;
        }
        self.epoch = epoch;
        self.orphan = None;
        let parent = Parent {
            server,
            link,
            gathering: None,
        };
        if let Some(old) = self.parent.replace(parent) {
            self.actions.push_back(Action::Send {
                link: old.link,
                message: Message::Leave,
            });
            self.actions.push_back(Action::Close(old.link));
        }
    }

    /// Handles the new link to the front-end, which has accepted this member as its child. This member opened the link.
    pub fn handle_front_end_up(&mut self, link: LinkId, epoch: Epoch) {
        let epoch = epoch.max(self.epoch.next());
        self.handle_parent_up(link, ServerId::FRONT_END, epoch);
    }

    /// Handles a new link to a child. `peer_epoch` is the highest epoch that the child has seen.
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
            match &mut self.root {
                Some(root) if self.config.is_none() && root.early.is_empty() => {
                    root.early.push((server, link));
                }
                _ => self.actions.push_back(Action::Close(link)),
            }
            return;
        };
        let (is_root, child) = (self.root.is_some(), &mut self.children[at]);
        if child.link().is_some() {
            self.actions.push_back(Action::Close(link));
            return;
        }
        if peer_epoch >= child.epoch && !is_root {
            child.epoch = peer_epoch.next();
            // A child that was attached here has got another parent meanwhile.
            let has_left = std::mem::take(&mut child.attached);
            self.actions.push_back(Action::Close(link));
            self.reconnect(at, has_left);
            return;
        }
        child.state = ChildState::Up(link);
        child.attached = true;
        let (slice, tasks) = (child.slice.clone(), child.reach.clone());
        self.send_plan(link, &slice);
        self.tell_reachable(now, &tasks);
        self.tell_back(now, at);
        self.ask_child_again(at, true);
    }

    /// Handles the final failure of an [`Action::Connect`]. `why` names the member, its addresses and the number of
    /// attempts.
    pub fn handle_unreachable(&mut self, now: Instant, server: ServerId, why: &str) {
        let found = self
            .children
            .iter()
            .position(|child| child.server == server && child.state == ChildState::Connecting);
        let Some(at) = found else { return };
        tracing::warn!(me = %self.me, "not reached: {why}");
        self.adopt_children_of(at);
        let child = self.children.remove(at);
        self.fail_init(now, &child.reach, why);
        self.lose(now, &child.reach, why);
        self.check_ended();
    }

    /// Handles a [`Action::Connect`] to an earlier child that accepts the connection but does not
    /// answer: its process is stopped. The child is not given up.
    pub fn handle_unanswered(&mut self, now: Instant, server: ServerId) {
        let found = self
            .children
            .iter()
            .position(|child| child.server == server && child.state == ChildState::Connecting);
        let Some(at) = found else { return };
        self.adopt_children_of(at);
        let child = name(&self.children[at].slice[0]);
        let why = format!("{child} does not answer");
        self.tell_silent(now, at, &why);
        self.reconnect(at, false);
    }

    /// Handles the end of a link; `why` is the reason.
    pub fn handle_link_down(&mut self, now: Instant, link: LinkId, why: &str) {
        if let Some(root) = &mut self.root {
            root.early.retain(|(_, early)| *early != link);
        }
        if self.parent_link() == Some(link) {
            let parent = self.parent.take();
            self.orphaned(now, parent.and_then(|parent| parent.gathering), why);
            return;
        }
        self.forget_taker(link);
        let Some(at) = self.child_of(link) else {
            return;
        };
        let why = format!("{}: {why}", name(&self.children[at].slice[0]));
        if self.ending.is_some() {
            let child = self.children.remove(at);
            if !child.has_ended {
                self.lose(now, &child.reach, &why);
            }
            self.check_ended();
            return;
        }
        if self.root.is_some() {
            let child = self.children.remove(at);
            self.lose(now, &child.reach, &why);
            return;
        }
        self.children[at].state = ChildState::Connecting;
        self.adopt_children_of(at);
        self.children[at].epoch = self.children[at].epoch.next();
        self.reconnect(at, false);
        self.tell_silent(now, at, &why);
    }

    /// Handles a link over which no record has come for a while.
    pub fn handle_link_silent(&mut self, now: Instant, link: LinkId) {
        // A silent parent needs no action here: the parent reconnects, or an adopter does.
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

    /// Handles a record that has come over a silent link.
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
            let slice = self.children[at].slice.clone();
            self.send_plan(link, &slice);
        }
        self.tell_back(now, at);
        self.ask_child_again(at, false);
    }

    /// Handles a complete plan of the parent.
    pub(super) fn take_plan(&mut self, now: Instant, init: Init) -> Result<(), ProtocolError> {
        let Some((height, all)) = measure(&init.slice) else {
            let me = self.me;
            return Err(ProtocolError(format!(
                "{me}: the received plan of the server tree is not a tree"
            )));
        };
        let first = &init.slice[0];
        if first.server != self.me {
            let (me, wanted) = (self.me, first.server);
            return Err(ProtocolError(format!(
                "{me}: received the plan for another server, {wanted}"
            )));
        }
        self.known_above = all.clone();
        self.height = height;
        if self.config.is_none() {
            self.local = first.tasks.clone();
            self.actions
                .push_back(Action::Configure(Arc::clone(&init.config)));
            self.config = Some(init.config);
            let runs = topology::child_runs_by_size(&init.slice).expect("a tree");
            self.children.reserve_exact(runs.len());
            for run in runs {
                let below = init.slice.run(run);
                let reach = tasks_of(&below);
                self.add_child(Child::new(below, reach, Epoch(1)));
            }
        } else {
            let narrowed = self.narrow_children(&all);
            self.narrow_commands(&all);
            for child in narrowed {
                self.ask_init_again(child);
            }
            self.hold_planned(&init.slice);
            self.restate_health(now);
        }
        self.flush_events(Lane::Control, now);
        self.flush_events(Lane::Bulk, now);
        self.ask_init(now, &all);
        Ok(())
    }

    pub(super) fn add_child(&mut self, child: Child) {
        let again = child.epoch > Epoch(1);
        self.children.push(child);
        if self.root.is_none() {
            let request = self.connect_request(self.children.len() - 1, again);
            self.actions.push_back(Action::Connect(request));
        }
    }

    /// Connects to a child again. If the child `has_left` for another parent, the attempt begins after a pause. If the
    /// other parent is right, a plan without the child arrives here in that time.
    fn reconnect(&mut self, at: usize, has_left: bool) {
        let mut request = self.connect_request(at, true);
        if has_left {
            request.pause = self.config().orphan_wait / 4;
        }
        self.actions.push_back(Action::Connect(request));
    }

    fn connect_request(&self, at: usize, again: bool) -> ConnectRequest {
        let (child, config) = (&self.children[at], self.config());
        ConnectRequest {
            server: child.server,
            epoch: child.epoch,
            host: child.slice[0].host.to_string(),
            addresses: child.slice[0].addresses.iter().map(str::to_owned).collect(),
            wait: if again {
                config.rejoin_wait
            } else {
                config.start_wait
            },
            again,
            pause: Duration::ZERO,
        }
    }

    /// Handles a child that another parent took over. If that was right, a new plan is on its way here;
    /// if not, the other parent gets a plan without the child and drops it.
    pub(super) fn handle_leave(&mut self, now: Instant, at: usize) -> Result<(), ProtocolError> {
        if let Some(link) = self.children[at].link() {
            self.actions.push_back(Action::Close(link));
        }
        if self.ending.is_some() || self.root.is_some() {
            let child = self.children.remove(at);
            let why = format!("{} is already connected to another parent", child.server);
            self.lose(now, &child.reach, &why);
            self.check_ended();
        } else {
            let child = &mut self.children[at];
            child.state = ChildState::Connecting;
            child.attached = false;
            child.epoch = child.epoch.next();
            self.reconnect(at, true);
        }
        Ok(())
    }

    fn orphaned(&mut self, now: Instant, gathering: Option<Box<PartialPlan>>, why: &str) {
        if self.ending.is_none() {
            let known = self.config.as_ref().map(|config| config.orphan_wait);
            let wait = known.or(gathering.map(|gathering| gathering.orphan_wait()));
            let wait = wait.unwrap_or(Duration::ZERO);
            tracing::warn!(me = %self.me, "this server has no parent in the tree: it waits {wait:?} for a new one");
            self.orphan = Some(Orphan::after(now + wait, why));
        }
    }

    /// The servers of all children, each with its link; `None` for a child to which this member is still connecting.
    pub(super) fn child_links(&self) -> Vec<(ServerId, Option<LinkId>)> {
        self.children
            .iter()
            .map(|child| (child.server, child.link()))
            .collect()
    }

    /// Stops waiting for members to which this member is still connecting; for the end of the session.
    pub(super) fn forget_unlinked(&mut self, now: Instant) {
        let unlinked = |child: &mut Child| child.link().is_none();
        for child in self.children.extract_if(.., unlinked).collect::<Vec<_>>() {
            let why = format!("{} was not connected at the end", name(&child.slice[0]));
            self.lose(now, &child.reach, &why);
        }
    }
}

pub(super) fn leaf_slice(entry: &PlanEntry) -> Slice {
    Slice::new(vec![PlanEntry {
        subtree_count: 1,
        ..entry.clone()
    }])
}
