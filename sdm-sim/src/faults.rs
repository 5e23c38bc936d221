//! Faults: the simulation damages links, processes and hosts, and later repairs all but dead processes.

use sdm_core::ServerId;
use sdm_core::link::Link;
use sdm_core::link::LinkConfig;
use sdm_core::secure::{Hello, Role, SessionKey};
use sdm_core::{Epoch, SessionId};

use crate::fault_kinds::Fault;
use crate::net::{Conn, ConnId, Item, Who};
use crate::world::{World, WorldEvent};

const SECOND: u64 = 1_000_000;

impl World {
    /// Performs the next fault, and schedules the one after it.
    pub(crate) fn next_fault(&mut self) {
        if !self.has_faults {
            return;
        }
        if let Some(kind) = self.rng.weighted(&self.swarm.fault_weights) {
            self.do_fault(Fault::ALL[kind]);
            let gap = self.rng.between(0, 2 * self.swarm.fault_gap_us);
            self.at(self.now + gap, WorldEvent::Fault);
        }
    }

    fn do_fault(&mut self, fault: Fault) {
        self.log.note(self.now, format_args!("fault: {fault:?}"));
        match fault {
            Fault::Reset => self.reset_some(),
            Fault::Tamper => self.tamper(),
            Fault::SlowLink => self.slow_link(),
            Fault::Crash => self.crash_some(1),
            Fault::CrashMany => self.crash_some(self.procs.len() / 3 + 1),
            Fault::CrashPair => self.crash_with_parent(0),
            Fault::CrashAdopter => {
                let after = self.rng.skewed(1, 200_000);
                self.crash_with_parent(after);
            }
            Fault::Stranger => self.strangers_call(),
            Fault::PauseDelivery => {
                self.pause_delivery(true);
                let wait = self.rng.skewed(SECOND / 100, 10 * SECOND);
                self.at(self.now + wait, WorldEvent::TakeOutput);
            }
            Fault::Stop => self.stop_some(1, SECOND),
            Fault::StopLong => self.stop_some(2 * SECOND, 30 * SECOND),
            Fault::Slow => self.slow_some(),
            Fault::BlockOneWay => self.block(false),
            Fault::BlockBothWays => self.block(true),
            Fault::CrashHost => self.crash_host(),
            Fault::Island => self.make_island(),
        }
    }

    /// A random connection, except the one between the front-end and the master; `None` if there is none.
    fn some_conn(&mut self) -> Option<ConnId> {
        let (top, below) = (ServerId::FRONT_END, ServerId::MASTER);
        let conns: Vec<ConnId> = self
            .conns
            .iter()
            .filter(|(_, conn)| conn.is_open() && !conn.is_between(top, below))
            .map(|(id, _)| *id)
            .collect();
        self.rng.pick(&conns)
    }

    fn some_server(&mut self) -> Option<ServerId> {
        let servers = self.servers();
        self.rng.pick(&servers)
    }

    fn reset_some(&mut self) {
        if let Some(conn) = self.some_conn() {
            self.reset(conn);
        }
    }

    fn tamper(&mut self) {
        let Some(conn) = self.some_conn() else { return };
        let side = usize::from(self.rng.one_in(2));
        let dice = self.rng.word();
        let Some(connection) = self.conns.get_mut(&conn) else {
            return;
        };
        let items = connection.pipes[side].items.iter_mut();
        let mut under_way = items.filter_map(|(_, item)| match item {
            Item::Bytes(bytes) if !bytes.is_empty() => Some(bytes),
            _ => None,
        });
        if let Some(bytes) = under_way.next_back() {
            let at = usize::try_from(dice % bytes.len() as u64).expect("below a length");
            bytes[at] ^= 1 << (dice >> 32 & 7);
        }
    }

    fn slow_link(&mut self) {
        let slower = self.rng.skewed(1_000, 300_000);
        if let Some(conn) = self.some_conn()
            && let Some(connection) = self.conns.get_mut(&conn)
        {
            connection
                .pipes
                .iter_mut()
                .for_each(|pipe| pipe.slower_us = slower);
            self.delay_adoption(self.now);
        }
    }

    /// Number of servers that may still crash. More than a third must survive, so that the end of the run can check the
    /// survivors.
    fn crashes_left(&self) -> usize {
        let left = self.servers().len();
        left.saturating_sub(self.swarm.servers as usize / 3 + 1)
    }

    fn crash_some(&mut self, count: usize) {
        for _ in 0..count.min(self.crashes_left()) {
            if let Some(server) = self.some_server() {
                self.crash(server, true);
            }
        }
    }

    fn crash_host(&mut self) {
        if self.crashes_left() > 0
            && let Some(server) = self.some_server()
        {
            self.crash(server, false);
            self.delay_adoption(u64::MAX);
        }
    }

    fn parent_of(&self, id: ServerId) -> Option<ServerId> {
        let link = self.procs.get(&id)?.member.node().parent_link()?;
        match self.peer_of(id, link)?.1 {
            Who::Server(parent) => Some(parent),
            Who::Stranger => None,
        }
    }

    fn crash_with_parent(&mut self, after: u64) {
        if self.crashes_left() < 2 {
            return;
        }
        if let Some(server) = self.some_server() {
            let parent = self.parent_of(server);
            self.crash(server, true);
            if let Some(parent) = parent.filter(|id| *id <= ServerId::SERVER_MAX) {
                self.at(self.now + after, WorldEvent::Crash(parent));
            }
        }
    }

    fn stop(&mut self, id: ServerId, wait: u64) {
        let until = self.now + wait;
        let Some(proc) = self.procs.get_mut(&id) else {
            return;
        };
        if proc.stopped_until <= self.now {
            proc.stopped_until = until;
            self.log
                .note(self.now, format_args!("{id}: stopped for {wait} us"));
            self.at(until, WorldEvent::Continue(id));
            self.delay_adoption(until);
        }
    }

    fn stop_some(&mut self, low: u64, high: u64) {
        let wait = self.rng.skewed(low, high);
        let id = if self.rng.one_in(10) {
            Some(ServerId::MASTER)
        } else {
            self.some_server()
        };
        if let Some(id) = id {
            self.stop(id, wait);
        }
    }

    fn slow_some(&mut self) {
        if let Some(id) = self.some_server() {
            let times = u32::try_from(self.rng.between(3, 30)).unwrap_or(3);
            self.stop_and_continue(id, times);
        }
    }

    /// Stops a process now, resumes it, and repeats that until it was stopped `times` times.
    pub(crate) fn stop_and_continue(&mut self, id: ServerId, times: u32) {
        if self.has_faults && times > 0 {
            let wait = self.rng.skewed(1_000, 400_000);
            self.stop(id, wait);
            let next = self.now + 2 * wait;
            self.at(next, WorldEvent::Stumble(id, times - 1));
        }
    }

    /// Resumes a stopped process, which then receives its pending input.
    pub(crate) fn go_on(&mut self, id: ServerId) {
        let Some(proc) = self.procs.get_mut(&id) else {
            return;
        };
        if proc.stopped_until > self.now {
            return;
        }
        for conn in std::mem::take(&mut proc.waiting) {
            self.accept(conn);
        }
        let links = self
            .procs
            .get(&id)
            .map_or_else(Vec::new, |proc| proc.links.keys().copied().collect());
        for link in links {
            self.write(id, link);
        }
        self.drain(id);
    }

    fn block(&mut self, both: bool) {
        let wait = self.rng.skewed(SECOND / 100, 30 * SECOND);
        let side = usize::from(self.rng.one_in(2));
        let breaks = self.rng.one_in(3);
        // The top connection may be blocked, but never breaks, as that would end the session.
        let conns: Vec<ConnId> = self.conns.keys().copied().collect();
        let Some(conn) = self.rng.pick(&conns) else {
            return;
        };
        let Some(connection) = self.conns.get_mut(&conn) else {
            return;
        };
        let until = self.now + wait;
        for pipe in [side, 1 - side].into_iter().take(1 + usize::from(both)) {
            let pipe = &mut connection.pipes[pipe];
            pipe.blocked_until = pipe.blocked_until.max(until);
        }
        if breaks && !connection.is_between(ServerId::FRONT_END, ServerId::MASTER) {
            self.at(until, WorldEvent::Reset(conn));
        }
        self.delay_adoption(until);
    }

    fn make_island(&mut self) {
        let mut servers = self.servers();
        self.rng.shuffle(&mut servers);
        let count = self.rng.between(1, servers.len() as u64);
        servers.truncate(usize::try_from(count).unwrap_or(1));
        let until = self.now + self.rng.skewed(SECOND / 10, 30 * SECOND);
        self.log.note(
            self.now,
            format_args!("island of {servers:?} until {until}"),
        );
        let mut broken = Vec::new();
        for (id, conn) in &mut self.conns {
            let [one, other] = [&conn.ends[0], &conn.ends[1]].map(|end| match end.who {
                Who::Server(id) => servers.contains(&id),
                Who::Stranger => false,
            });
            if one != other {
                conn.pipes.iter_mut().for_each(|pipe| {
                    pipe.blocked_until = pipe.blocked_until.max(until);
                });
                broken.push(*id);
            }
        }
        for conn in broken {
            if self.rng.one_in(3) {
                self.at(until, WorldEvent::Reset(conn));
            }
        }
        self.islands.push((until, servers));
        self.delay_adoption(until);
    }

    /// Kills the master or the front-end, or breaks their link. The remaining members must then end by themselves.
    pub(crate) fn strike_top(&mut self) {
        if self.is_over() {
            return;
        }
        self.top_is_struck = true;
        let host_lives = !self.rng.one_in(4);
        match self.rng.below(3) {
            0 => self.crash(ServerId::MASTER, host_lives),
            1 => self.crash(ServerId::FRONT_END, host_lives),
            _ => {
                let top = self
                    .conns
                    .iter()
                    .find(|(_, conn)| conn.is_between(ServerId::FRONT_END, ServerId::MASTER))
                    .map(|(id, _)| *id);
                if let Some(conn) = top {
                    self.reset(conn);
                }
            }
        }
    }

    fn strangers_call(&mut self) {
        let count = if self.rng.one_in(8) { 80 } else { 1 };
        for _ in 0..count {
            self.stranger_calls();
        }
        if count > 1 {
            self.delay_adoption(self.now + 12 * SECOND);
        }
    }

    /// A process outside the session connects to a listening port, and sends some bytes or none.
    fn stranger_calls(&mut self) {
        let servers: Vec<ServerId> = self.procs.keys().copied().collect();
        let Some(called) = self.rng.pick(&servers) else {
            return;
        };
        let conn = self.add_conn(Conn::new(Who::Stranger, Who::Server(called)));
        let bytes = match self.rng.below(6) {
            0 => Vec::new(),
            1 => (0..self.rng.below(600))
                .map(|_| self.rng.word().to_le_bytes()[0])
                .collect(),
            2 => self.call_of(called, self.link_config.session),
            3 => self.call_of(called, SessionId([9; 8])),
            _ => self.recorded(called),
        };
        self.accept(conn);
        if !bytes.is_empty() {
            self.send(conn, 0, bytes);
        }
        let wait = self.rng.skewed(1_000, 20 * SECOND);
        self.at(self.now + wait, WorldEvent::StrangerLeaves(conn));
    }

    /// The first bytes that a caller with another session key sends.
    fn call_of(&mut self, called: ServerId, session: SessionId) -> Vec<u8> {
        let config = LinkConfig::new(SessionKey::from_bytes([8; 32]), session);
        let hello = Hello {
            role: Role::Parent,
            id: ServerId::MASTER,
            expect: Some(called),
            epoch: Epoch(1000),
            incarnation: 0,
            build: "stranger".to_owned(),
            features: 0,
        };
        let mut bytes = Vec::new();
        Link::initiate(self.instant(self.now), &config, hello).poll_transmit(&mut bytes);
        bytes
    }

    /// Bytes that an earlier caller has sent to this member, to be replayed.
    fn recorded(&mut self, called: ServerId) -> Vec<u8> {
        let running: Vec<Vec<u8>> = self
            .conns
            .values()
            .filter(|conn| conn.ends[1].who == Who::Server(called))
            .map(|conn| conn.recorded.clone())
            .collect();
        let past = self.recordings.iter().filter(|(who, _)| *who == called);
        let all: Vec<Vec<u8>> = running
            .into_iter()
            .chain(past.map(|(_, b)| b.clone()))
            .collect();
        let at = usize::try_from(self.rng.below(all.len() as u64)).unwrap_or(0);
        all.get(at).cloned().unwrap_or_default()
    }

    /// Ends all faults. Dead processes stay dead, and all members can learn of their deaths.
    pub(crate) fn heal(&mut self) {
        self.log.note(self.now, format_args!("healed"));
        self.has_faults = false;
        self.islands.clear();
        self.dead_hosts.clear();
        let now = self.now;
        let mut arrivals = Vec::new();
        let mut resets = Vec::new();
        for (id, conn) in &mut self.conns {
            for (side, pipe) in conn.pipes.iter_mut().enumerate() {
                pipe.blocked_until = 0;
                pipe.slower_us = 0;
                arrivals.extend(std::iter::repeat_n((*id, side), pipe.items.len()));
            }
            // An end that is open while the other one was closed without a notice is told.
            let untold = (0..2).any(|side| !conn.ends[side].open && !conn.pipes[side].will_end());
            let half_dead = conn.ends.iter().any(|end| match end.who {
                Who::Server(server) => end.open && !self.procs.contains_key(&server),
                Who::Stranger => false,
            });
            if half_dead || untold {
                resets.push(*id);
            }
        }
        for (conn, side) in arrivals {
            self.at(now, WorldEvent::Arrival(conn, side));
        }
        for conn in resets {
            self.at(now, WorldEvent::Reset(conn));
        }
        let ids: Vec<ServerId> = self.procs.keys().copied().collect();
        for id in ids {
            let Some(proc) = self.procs.get_mut(&id) else {
                continue;
            };
            if proc.stopped_until > now {
                proc.stopped_until = now;
                self.at(now, WorldEvent::Continue(id));
            }
            if let Some(proc) = self.procs.get_mut(&id) {
                proc.exec.let_nothing_hang(now);
            }
            self.arm(id);
        }
        self.pause_delivery(false);
        for (begin, end) in &mut self.hindered {
            *end = (*end).min(now).max(*begin);
        }
    }
}
