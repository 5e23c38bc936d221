//! The simulated network's operation: connection attempts, writes, arrivals, and broken connections.

use std::io;

use sdm_core::ServerId;
use sdm_core::node::LinkId;

use crate::exec::TasksAtOnce;
use crate::net::{Conn, ConnId, Item, RECORDED_BYTES, Who, server_at};
use crate::world::{World, WorldEvent};

/// Maximum time of a connection attempt to a host that does not answer, in microseconds.
const CALL_US_MAX: u64 = 5_000_000;
/// Number of recordings that are kept for replay.
const RECORDINGS_MAX: usize = 16;

impl World {
    fn delay(&mut self) -> u64 {
        let (low, high) = self.swarm.delay_us;
        let low_half = (low + high) / 2;
        // Most delays are about equal, and some are much longer.
        if self.rng.one_in(8) {
            self.rng.between(low, high)
        } else {
            self.rng.between(low, low_half)
        }
    }

    /// Connects the master to the front-end.
    pub(crate) fn connect_top(&mut self) {
        let now = self.instant(self.now);
        let master = self.proc_mut(ServerId::MASTER).expect("it was just made");
        let link = master.member.connect_front_end(now);
        let called = Who::Server(ServerId::FRONT_END);
        let conn = self.add_conn(Conn::new(Who::Server(ServerId::MASTER), called));
        self.attach(conn, 0, link);
        self.accept(conn);
        self.drain(ServerId::MASTER);
    }

    pub(crate) fn add_conn(&mut self, conn: Conn) -> ConnId {
        let id = self.next_conn;
        self.next_conn += 1;
        self.conns.insert(id, conn);
        id
    }

    fn attach(&mut self, conn: ConnId, side: usize, link: LinkId) {
        let Some(connection) = self.conns.get_mut(&conn) else {
            return;
        };
        connection.ends[side].link = Some(link);
        if let Who::Server(id) = connection.ends[side].who
            && let Some(proc) = self.procs.get_mut(&id)
        {
            proc.links.insert(link, (conn, side));
        }
    }

    pub(crate) fn dial(&mut self, caller: ServerId, link: LinkId, address: &str) {
        let delay = self.delay();
        match server_at(address) {
            Some(called) => {
                self.log
                    .note(self.now, format_args!("{caller}: calls {called}"));
                self.at(self.now + delay, WorldEvent::Call(caller, link, called));
            }
            None => self.at(
                self.now + delay,
                WorldEvent::NotConnected(caller, link, true),
            ),
        }
    }

    /// The time until which two servers cannot reach each other; 0 if they can.
    pub(crate) fn cut_until(&self, one: ServerId, other: ServerId) -> u64 {
        let cut = |island: &&(u64, Vec<ServerId>)| {
            island.0 > self.now && island.1.contains(&one) != island.1.contains(&other)
        };
        let until = self.islands.iter().filter(cut).map(|island| island.0);
        until.max().unwrap_or(0)
    }

    pub(crate) fn call(&mut self, caller: ServerId, link: LinkId, called: ServerId) {
        let delay = self.delay();
        let until = self.cut_until(caller, called);
        if until > self.now || self.dead_hosts.contains(&called) {
            let wait = self.rng.between(1, CALL_US_MAX);
            self.at(
                self.now + wait,
                WorldEvent::NotConnected(caller, link, false),
            );
            return;
        }
        if !self.procs.contains_key(&called) || !self.procs.contains_key(&caller) {
            self.at(
                self.now + delay,
                WorldEvent::NotConnected(caller, link, true),
            );
            return;
        }
        let conn = self.add_conn(Conn::new(Who::Server(caller), Who::Server(called)));
        if let Some(connection) = self.conns.get_mut(&conn) {
            connection.ends[0].link = Some(link);
        }
        self.accept(conn);
        self.at(self.now + delay, WorldEvent::Connected(conn));
    }

    /// Accepts a connection; a stopped process accepts it when it resumes.
    pub(crate) fn accept(&mut self, conn: ConnId) {
        let (now, instant) = (self.now, self.instant(self.now));
        let Some(Who::Server(called)) = self.conns.get(&conn).map(|conn| conn.ends[1].who) else {
            return;
        };
        let Some(proc) = self.procs.get_mut(&called) else {
            self.hang_up(conn, 1);
            return;
        };
        if proc.stopped_until > now {
            proc.waiting.push(conn);
            return;
        }
        match proc.member.accept(instant) {
            Some(link) => self.attach(conn, 1, link),
            None => self.hang_up(conn, 1),
        }
        self.drain(called);
    }

    pub(crate) fn connected(&mut self, conn: ConnId) {
        let instant = self.instant(self.now);
        let Some(connection) = self.conns.get(&conn) else {
            return;
        };
        let (Who::Server(caller), Some(link)) = (connection.ends[0].who, connection.ends[0].link)
        else {
            return;
        };
        let Some(proc) = self.procs.get_mut(&caller) else {
            return;
        };
        if proc.stopped_until > self.now {
            let until = proc.stopped_until;
            self.at(until, WorldEvent::Connected(conn));
            return;
        }
        if connection.ends[0].open {
            proc.links.insert(link, (conn, 0));
            proc.member.handle_connected(instant, link);
            self.drain(caller);
        }
    }

    pub(crate) fn not_connected(&mut self, caller: ServerId, link: LinkId, refused: bool) {
        let instant = self.instant(self.now);
        let Some(proc) = self.procs.get_mut(&caller) else {
            return;
        };
        if proc.stopped_until > self.now {
            let until = proc.stopped_until;
            self.at(until, WorldEvent::NotConnected(caller, link, refused));
            return;
        }
        let kind = if refused {
            io::ErrorKind::ConnectionRefused
        } else {
            io::ErrorKind::TimedOut
        };
        proc.member
            .handle_connect_failed(instant, link, &io::Error::from(kind));
        self.drain(caller);
    }

    /// Moves a link's pending bytes into the pipe, as long as the pipe has room.
    pub(crate) fn write(&mut self, id: ServerId, link: LinkId) {
        let instant = self.instant(self.now);
        loop {
            let Some(proc) = self.procs.get_mut(&id) else {
                return;
            };
            let Some(&(conn, side)) = proc.links.get(&link) else {
                return;
            };
            let Some(connection) = self.conns.get(&conn) else {
                return;
            };
            let room = connection.pipes[side].bytes < self.swarm.pipe_bytes;
            let mut bytes = Vec::new();
            if !connection.ends[side].open
                || !room
                || !proc.member.poll_transmit(instant, link, &mut bytes)
            {
                return;
            }
            self.send(conn, side, bytes);
        }
    }

    /// Puts bytes into a pipe, possibly in pieces.
    pub(crate) fn send(&mut self, conn: ConnId, side: usize, bytes: Vec<u8>) {
        if let Some(connection) = self.conns.get_mut(&conn)
            && side == 0
            && connection.recorded.len() < RECORDED_BYTES
        {
            connection.recorded.extend_from_slice(&bytes);
        }
        let cuts = self.swarm.cut_one_in;
        let mut rest = bytes;
        while cuts > 0 && rest.len() > 1 && self.rng.one_in(cuts) {
            let cut = 1 + self.rng.below(rest.len() as u64 - 1);
            let tail = rest.split_off(usize::try_from(cut).expect("below a length"));
            self.put(conn, side, Item::Bytes(std::mem::replace(&mut rest, tail)));
        }
        self.put(conn, side, Item::Bytes(rest));
    }

    /// Puts an item into a pipe. It arrives after the items that were put there before.
    pub(crate) fn put(&mut self, conn: ConnId, side: usize, item: Item) {
        let delay = self.delay();
        let now = self.now;
        let Some(connection) = self.conns.get_mut(&conn) else {
            return;
        };
        let pipe = &mut connection.pipes[side];
        let at = (now + delay + pipe.slower_us).max(pipe.last_at);
        pipe.last_at = at;
        if let Item::Bytes(bytes) = &item {
            pipe.bytes += bytes.len();
        }
        pipe.items.push_back((at, item));
        self.at(at, WorldEvent::Arrival(conn, side));
    }

    /// Delivers one due item of a pipe, if the reader runs.
    pub(crate) fn arrival(&mut self, conn: ConnId, side: usize) {
        let now = self.now;
        let Some(connection) = self.conns.get_mut(&conn) else {
            return;
        };
        let reader = &connection.ends[1 - side];
        let (who, link, open) = (reader.who, reader.link, reader.open);
        let pipe = &mut connection.pipes[side];
        let Some((due, _)) = pipe.items.front() else {
            return;
        };
        let mut due = (*due).max(pipe.blocked_until);
        if let Who::Server(id) = who
            && let Some(proc) = self.procs.get(&id)
        {
            due = due.max(proc.stopped_until);
            if proc.waiting.contains(&conn) {
                // The process is resumed first, and accepts the connection.
                due = due.max(now + 1);
            }
        }
        if due > now {
            self.at(due, WorldEvent::Arrival(conn, side));
            return;
        }
        let Some((_, item)) = pipe.items.pop_front() else {
            return;
        };
        if let Item::Bytes(bytes) = &item {
            pipe.bytes -= bytes.len();
        }
        match (item, who, link) {
            (Item::Bytes(mut bytes), Who::Server(id), Some(link)) if open => {
                self.log.note(
                    now,
                    format_args!("{id}: {} bytes over {link:?}", bytes.len()),
                );
                let instant = self.instant(now);
                if let Some(proc) = self.procs.get_mut(&id) {
                    let mut tasks = TasksAtOnce {
                        server: id,
                        now,
                        exec: &mut proc.exec,
                        ledger: &mut self.ledger,
                        log: &mut self.log,
                        found: Ok(()),
                    };
                    let member = &mut proc.member;
                    member.handle_bytes(instant, link, &mut bytes, Some(&mut tasks));
                    let found = tasks.found;
                    self.check(found);
                    self.drain(id);
                }
            }
            (Item::Bytes(_), ..) => {}
            (Item::End, ..) => self.closed(conn, 1 - side, "closed by the peer"),
            (Item::Reset, ..) => self.closed(conn, 1 - side, "connection reset"),
        }
        self.make_room(conn, side);
    }

    /// Resumes the writer of a pipe that has room again.
    fn make_room(&mut self, conn: ConnId, side: usize) {
        let Some(connection) = self.conns.get(&conn) else {
            return;
        };
        let writer = &connection.ends[side];
        if let (Who::Server(id), Some(link), true) = (writer.who, writer.link, writer.open)
            && self
                .procs
                .get(&id)
                .is_some_and(|proc| proc.stopped_until <= self.now)
        {
            self.write(id, link);
            self.drain(id);
        }
    }

    /// Closes a member's end. The bytes that it sent still arrive, followed by the end of the stream.
    pub(crate) fn close(&mut self, id: ServerId, link: LinkId, last_bytes: Vec<u8>) {
        let Some(proc) = self.procs.get_mut(&id) else {
            return;
        };
        let Some((conn, side)) = proc.links.remove(&link) else {
            return;
        };
        if !last_bytes.is_empty() && self.conns.get(&conn).is_some_and(|c| c.ends[side].open) {
            self.send(conn, side, last_bytes);
        }
        self.hang_up(conn, side);
    }

    /// Closes one end of a connection. The other end learns of it after the pending bytes.
    pub(crate) fn hang_up(&mut self, conn: ConnId, side: usize) {
        let Some(connection) = self.conns.get_mut(&conn) else {
            return;
        };
        if connection.ends[side].open {
            connection.ends[side].open = false;
            self.put(conn, side, Item::End);
            self.forget_if_over(conn);
        }
    }

    /// Notifies one end that the connection is over.
    fn closed(&mut self, conn: ConnId, side: usize, why: &str) {
        let instant = self.instant(self.now);
        let Some(connection) = self.conns.get_mut(&conn) else {
            return;
        };
        if !std::mem::replace(&mut connection.ends[side].open, false) {
            self.forget_if_over(conn);
            return;
        }
        let (who, link) = (connection.ends[side].who, connection.ends[side].link);
        self.put(conn, side, Item::End);
        if let (Who::Server(id), Some(link)) = (who, link)
            && let Some(proc) = self.procs.get_mut(&id)
            && proc.links.remove(&link).is_some()
        {
            self.log
                .note(self.now, format_args!("{id}: {link:?} {why}"));
            proc.member.handle_closed(instant, link, why);
            self.drain(id);
        }
        self.forget_if_over(conn);
    }

    fn forget_if_over(&mut self, conn: ConnId) {
        let Some(connection) = self.conns.get(&conn) else {
            return;
        };
        let both = connection.ends.iter().all(|end| !end.open);
        if both && let Some(connection) = self.conns.remove(&conn) {
            self.keep_recording(&connection);
        }
    }

    pub(crate) fn keep_recording(&mut self, connection: &Conn) {
        if let Who::Server(called) = connection.ends[1].who
            && !connection.recorded.is_empty()
        {
            if self.recordings.len() == RECORDINGS_MAX {
                self.recordings.pop_front();
            }
            self.recordings
                .push_back((called, connection.recorded.clone()));
        }
    }

    /// Breaks a connection. The data in transit is usually lost, and both ends learn of the break after some time.
    pub(crate) fn reset(&mut self, conn: ConnId) {
        for side in [0, 1] {
            let kept = self.rng.below(4);
            let Some(connection) = self.conns.get_mut(&conn) else {
                return;
            };
            let pipe = &mut connection.pipes[side];
            if kept > 0 {
                pipe.items.clear();
                pipe.bytes = 0;
            }
            pipe.blocked_until = 0;
            self.put(conn, side, Item::Reset);
        }
    }

    /// Ends a process at once. With `host_lives` its connections break, and its port refuses connections. Otherwise no
    /// peer is notified.
    pub(crate) fn crash(&mut self, id: ServerId, host_lives: bool) {
        let Some(proc) = self.procs.remove(&id) else {
            return;
        };
        self.log.note(
            self.now,
            format_args!("{id}: crashes, host lives: {host_lives}"),
        );
        let waiting = proc.waiting.iter().map(|conn| (*conn, 1));
        for (conn, side) in proc.links.values().copied().chain(waiting) {
            let Some(connection) = self.conns.get_mut(&conn) else {
                continue;
            };
            connection.ends[side].open = false;
            let kept = self.rng.one_in(4);
            let pipe = &mut connection.pipes[side];
            if !kept {
                pipe.items.clear();
                pipe.bytes = 0;
            }
            if host_lives {
                self.put(conn, side, Item::Reset);
            }
        }
        if !host_lives {
            self.dead_hosts.push(id);
        }
    }

    /// Lets a process exit in an orderly way: it sends its pending data and closes its links.
    pub(crate) fn leave(&mut self, id: ServerId) {
        let links: Vec<LinkId> = self
            .procs
            .get(&id)
            .map_or_else(Vec::new, |proc| proc.links.keys().copied().collect());
        for link in links {
            self.write(id, link);
            self.close(id, link, Vec::new());
        }
        self.log.note(self.now, format_args!("{id}: left"));
        if id == ServerId::MASTER && !self.has_begun() {
            // The starter sees the process end, and no other one will be started.
            self.top_is_struck = true;
        }
        self.procs.remove(&id);
    }
}
