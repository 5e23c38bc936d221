//! Creates a world: its parameters are drawn from the seed, and every process of the session is started.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use sdm_core::link::LinkConfig;
use sdm_core::member::Member;
use sdm_core::message::{PlanEntry, Slice, SyncPolicy};
use sdm_core::node::Node;
use sdm_core::secure::SessionKey;
use sdm_core::{CommandId, Epoch, ServerId, SessionId};
use sdm_idset::IdSet;

use super::{Proc, World};
use crate::exec::Executor;
use crate::ledger::Ledger;
use crate::log::Log;
use crate::net::address_of;
use crate::rng::{Rng, mix};
use crate::spec::rules;
use crate::swarm::Swarm;
use crate::terminals::Terminals;

impl World {
    pub(crate) fn new(seed: u64, tasks: Option<u32>, log_lines: usize) -> Self {
        let mut rng = Rng::new(seed);
        let mut swarm = Swarm::draw(&mut rng, tasks);
        swarm.spread_tasks(mix(seed ^ 0x7461_736b));
        swarm.long_names = mix(seed ^ 0x706c_616e).is_multiple_of(3);
        let key = SessionKey::from_bytes([7; 32]);
        let link_config = Arc::new(LinkConfig::new(key, SessionId(seed.to_le_bytes())));
        let classes_max = swarm.config.classes_max;
        let mut world = Self {
            now: 0,
            base: Instant::now() + Duration::from_secs(3600),
            start_deadline: 2_000_000 * swarm.config.start_wait.as_secs(),
            rng,
            queue: BTreeMap::new(),
            sequence: 0,
            steps_at_once: 0,
            procs: BTreeMap::new(),
            conns: BTreeMap::new(),
            next_conn: 1,
            dead_hosts: Vec::new(),
            islands: Vec::new(),
            hindered: Vec::new(),
            recordings: VecDeque::new(),
            has_faults: true,
            link_config,
            ledger: Ledger::new(classes_max, swarm.answer_bytes > 100_000),
            terminals: Terminals::new(seed),
            log: Log::new(log_lines),
            violation: None,
            stdin_count: 0,
            top_is_struck: false,
            height: 0,
            peak_queue_bytes: 0,
            swarm,
        };
        world.log.note(0, format_args!("{:?}", world.swarm));
        world.begin();
        world
    }

    /// Starts every process and the session.
    fn begin(&mut self) {
        // With long names only few entries fit into a part of a plan. Links can then also break between two parts.
        let filler = if self.swarm.long_names { 480 } else { 0 };
        let entry = |server: ServerId, tasks: IdSet| PlanEntry {
            server,
            subtree_count: 0,
            tasks,
            host: format!("h{}{}", server.0 / 3 % 7, "-".repeat(filler)).into(),
            addresses: [address_of(server)].iter().collect(),
        };
        let servers: Vec<PlanEntry> = (0..self.swarm.servers)
            .map(|id| entry(ServerId(id), self.swarm.tasks_of(ServerId(id))))
            .collect();
        let deadline = self.instant(self.start_deadline);
        for server in &servers {
            self.add_proc(Node::new(server.server, rules, deadline));
        }
        self.add_proc(Node::new(ServerId::MASTER, rules, deadline));
        self.add_proc(Node::root(self.instant(self.now), rules));
        let plan = Slice::new(
            self.swarm
                .topology
                .plan(entry(ServerId::MASTER, IdSet::new()), servers),
        );
        self.height = sdm_core::topology::height(&plan).expect("a tree") + 1;
        let (now, config) = (self.instant(self.now), self.swarm.config.clone());
        let root = self.proc_mut(ServerId::FRONT_END).expect("just made");
        root.member
            .start(now, config, plan)
            .expect("a plan is a tree");
        let all = IdSet::all_below(self.swarm.tasks());
        self.ledger
            .open(CommandId::INIT, &all, SyncPolicy::DontWait, None, None);
        self.drain(ServerId::FRONT_END);
        self.connect_top();
    }

    fn add_proc(&mut self, node: Node) {
        let id = node.id();
        let proc = Proc {
            member: Member::new(node, Arc::clone(&self.link_config)),
            exec: Executor::default(),
            links: BTreeMap::new(),
            stopped_until: 0,
            waiting: Vec::new(),
            armed: None,
            timer_count: 0,
            orphan_since: Some(0),
            parent: None,
            epoch: Epoch(0),
            was_told_to_end: false,
        };
        self.procs.insert(id, proc);
        self.arm(id);
    }
}
