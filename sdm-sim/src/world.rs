//! The whole tree in one process: members, their tasks, the network, one clock, one event queue.

mod begin;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use sdm_core::link::LinkConfig;
use sdm_core::member::{Member, Output};
use sdm_core::message::Lane;
use sdm_core::node::LinkId;
use sdm_core::{Epoch, ServerId};
use sdm_idset::{IdSet, TaskId};

use crate::exec::{Executor, TaskOutput};
use crate::ledger::{Checked, Ledger, Violation, violated};
use crate::log::{DeliveryLine, Log};
use crate::net::{Conn, ConnId, Who};
use crate::rng::Rng;
use crate::swarm::Swarm;
use crate::terminals::Terminals;

/// One process: a member, and its tasks.
pub(crate) struct Proc {
    pub(crate) member: Member,
    pub(crate) exec: Executor,
    /// Connection and side of each link.
    pub(crate) links: BTreeMap<LinkId, (ConnId, usize)>,
    /// Time until which the process is stopped.
    pub(crate) stopped_until: u64,
    /// Connections that arrived while the process was stopped.
    pub(crate) waiting: Vec<ConnId>,
    /// Time of the pending timer of the process; `None` if none is set.
    armed: Option<u64>,
    timer_count: u64,
    /// The time since which the process has no parent; `None` while it has one.
    pub(crate) orphan_since: Option<u64>,
    pub(crate) parent: Option<LinkId>,
    pub(crate) epoch: Epoch,
    pub(crate) was_told_to_end: bool,
}

/// A scheduled event.
pub(crate) enum WorldEvent {
    /// A timer of a process.
    Timer(ServerId, u64),
    /// Items may have arrived at the far end of a pipe.
    Arrival(ConnId, usize),
    /// A connection request reaches its host.
    Call(ServerId, LinkId, ServerId),
    /// The caller is notified that its connection is established.
    Connected(ConnId),
    /// The caller learns that its connection attempt has failed; true if it was refused.
    NotConnected(ServerId, LinkId, bool),
    /// A connection breaks.
    Reset(ConnId),
    /// A stopped process resumes.
    Continue(ServerId),
    /// A process stops this number of times, with pauses.
    Stumble(ServerId, u32),
    /// A process is killed.
    Crash(ServerId),
    /// The next fault happens.
    Fault,
    /// The user acts.
    User,
    /// A task emits a spontaneous event.
    Chatter,
    /// The user of the tree accepts output again.
    TakeOutput,
    /// A process outside the session closes its connection.
    StrangerLeaves(ConnId),
    /// The top of the session fails: the master, the front-end or their link.
    StrikeTop,
}

/// Maximum number of steps without a move of the clock.
const STEPS_AT_ONCE_MAX: u32 = 50_000;
/// Maximum number of lines of a log: a run with more is a message storm. Two thousand commands to forty servers, with a
/// line for each write of a few bytes, give two million.
const LINES_MAX: u64 = 6_000_000;

/// The simulated world. Times are in microseconds since its beginning.
///
/// Large because any event can affect any part of it. Separate types would hide how faults affect each other.
pub(crate) struct World {
    pub(crate) now: u64,
    base: Instant,
    /// Time at which a member ends if no parent has reached it.
    pub(crate) start_deadline: u64,
    pub(crate) rng: Rng,
    pub(crate) swarm: Swarm,
    queue: BTreeMap<(u64, u64), WorldEvent>,
    sequence: u64,
    steps_at_once: u32,
    pub(crate) procs: BTreeMap<ServerId, Proc>,
    pub(crate) conns: BTreeMap<ConnId, Conn>,
    pub(crate) next_conn: ConnId,
    /// Servers whose host has failed: connections to them are not even refused.
    pub(crate) dead_hosts: Vec<ServerId>,
    /// Isolated sets of servers, each with the end of its isolation.
    pub(crate) islands: Vec<(u64, Vec<ServerId>)>,
    /// Start and end times of faults that delay an adoption.
    pub(crate) hindered: Vec<(u64, u64)>,
    /// First bytes of earlier callers, by the called server.
    pub(crate) recordings: VecDeque<(ServerId, Vec<u8>)>,
    pub(crate) has_faults: bool,
    pub(crate) link_config: Arc<LinkConfig>,
    pub(crate) ledger: Ledger,
    /// The terminals of the root's user.
    pub(crate) terminals: Terminals,
    pub(crate) log: Log,
    pub(crate) violation: Option<Violation>,
    pub(crate) stdin_count: u32,
    pub(crate) top_is_struck: bool,
    pub(crate) height: u32,
    pub(crate) peak_queue_bytes: usize,
}

impl World {
    pub(crate) fn proc_mut(&mut self, id: ServerId) -> Option<&mut Proc> {
        self.procs.get_mut(&id)
    }

    /// Converts a simulated time to the members' clock.
    pub(crate) fn instant(&self, at: u64) -> Instant {
        self.base + Duration::from_micros(at)
    }

    fn micros(&self, at: Instant) -> u64 {
        let since = at.saturating_duration_since(self.base);
        u64::try_from(since.as_nanos().div_ceil(1000)).unwrap_or(u64::MAX)
    }

    pub(crate) fn at(&mut self, when: u64, what: WorldEvent) {
        self.sequence += 1;
        self.queue.insert((when.max(self.now), self.sequence), what);
    }

    /// Records the first violation, which ends the run.
    pub(crate) fn check(&mut self, result: Checked) {
        if let Err(violation) = result
            && self.violation.is_none()
        {
            self.log.note(
                self.now,
                format_args!("violated: {} ({})", violation.check, violation.text),
            );
            self.violation = Some(violation);
        }
    }

    /// Runs until the time `until`, or until a law is violated.
    pub(crate) fn run_until(&mut self, until: u64) {
        while self.violation.is_none() {
            let Some((&(when, _), _)) = self.queue.first_key_value() else {
                break;
            };
            if when > until {
                break;
            }
            self.step();
        }
        self.now = self.now.max(until);
    }

    /// Performs the next scheduled event; false if there is none.
    pub(crate) fn step(&mut self) -> bool {
        let Some(((when, _), what)) = self.queue.pop_first() else {
            return false;
        };
        self.steps_at_once = if when > self.now {
            0
        } else {
            self.steps_at_once + 1
        };
        self.now = when;
        if self.steps_at_once > STEPS_AT_ONCE_MAX {
            self.check(violated("spins", "the clock stands still"));
            return false;
        }
        if self.log.count() > LINES_MAX {
            self.check(violated(
                "storm",
                format!("{LINES_MAX} lines are in the log"),
            ));
            return false;
        }
        self.happen(what);
        true
    }

    fn happen(&mut self, what: WorldEvent) {
        match what {
            WorldEvent::Timer(id, count) => self.timer(id, count),
            WorldEvent::Arrival(conn, side) => self.arrival(conn, side),
            WorldEvent::Call(caller, link, called) => self.call(caller, link, called),
            WorldEvent::Connected(conn) => self.connected(conn),
            WorldEvent::NotConnected(caller, link, refused) => {
                self.not_connected(caller, link, refused);
            }
            WorldEvent::Reset(conn) => self.reset(conn),
            WorldEvent::Continue(id) => self.go_on(id),
            WorldEvent::Stumble(id, times) => self.stop_and_continue(id, times),
            WorldEvent::Crash(id) => self.crash(id, true),
            WorldEvent::Fault => self.next_fault(),
            WorldEvent::User => self.next_act(),
            WorldEvent::Chatter => self.schedule_event(),
            WorldEvent::TakeOutput => self.pause_delivery(false),
            WorldEvent::StrangerLeaves(conn) => self.hang_up(conn, 0),
            WorldEvent::StrikeTop => self.strike_top(),
        }
    }

    fn timer(&mut self, id: ServerId, count: u64) {
        let (now, instant) = (self.now, self.instant(self.now));
        let Some(proc) = self.procs.get_mut(&id) else {
            return;
        };
        if proc.timer_count != count || proc.stopped_until > now {
            return;
        }
        proc.armed = None;
        if proc.member.poll_timeout().is_some_and(|at| at <= instant) {
            proc.member.handle_timeout(instant);
        }
        self.say(id);
        self.drain(id);
    }

    /// Passes on the answers and events that are due at a process's tasks.
    fn say(&mut self, id: ServerId) {
        let now = self.now;
        while let Some(said) = self.procs.get_mut(&id).and_then(|proc| proc.exec.say(now)) {
            self.pass_on(id, said);
        }
    }

    /// Passes a task's output to its member.
    pub(crate) fn pass_on(&mut self, id: ServerId, said: TaskOutput) {
        let instant = self.instant(self.now);
        let Some(proc) = self.procs.get_mut(&id) else {
            return;
        };
        match said {
            TaskOutput::Answer {
                id: command,
                task,
                status,
                payload,
            } => {
                self.ledger.has_answered(command, task);
                let tasks = IdSet::single(task);
                proc.member
                    .handle_local(instant, command, &tasks, status, payload);
            }
            TaskOutput::Event {
                lane,
                task,
                sequence,
                payload,
            } => {
                self.ledger.has_said(lane, task, sequence);
                let tasks = IdSet::single(task);
                proc.member
                    .handle_local_event(instant, lane, &tasks, payload);
            }
            TaskOutput::Down => proc.member.handle_local_down(instant),
        }
        self.drain(id);
    }

    /// Performs the outputs of a member. Writes come last, one flush per link.
    pub(crate) fn drain(&mut self, id: ServerId) {
        let mut writes: Vec<LinkId> = Vec::new();
        while let Some(proc) = self.procs.get_mut(&id) {
            match proc.member.poll_output() {
                Some(Output::Write(link)) => {
                    if !writes.contains(&link) {
                        writes.push(link);
                    }
                }
                Some(output) => self.carry_out(id, output),
                None => match writes.pop() {
                    Some(link) => self.write(id, link),
                    None => break,
                },
            }
        }
        self.inspect(id);
        self.arm(id);
    }

    fn carry_out(&mut self, id: ServerId, output: Output) {
        let now = self.now;
        let Some(proc) = self.procs.get_mut(&id) else {
            return;
        };
        match output {
            Output::Write(_) | Output::Begun(_) => {}
            Output::Dial { link, address } => self.dial(id, link, &address.to_string()),
            Output::Close { link, last_bytes } => self.close(id, link, last_bytes),
            Output::Refused { why } => self.log.note(now, format_args!("{id}: refused: {why}")),
            Output::Configure(_) => self.log.note(now, format_args!("{id}: configured")),
            Output::Execute {
                id: command,
                tasks,
                payload,
            } => {
                self.log
                    .note(now, format_args!("{id}: execute {command} on {tasks}"));
                let result = self.ledger.executed(command, &tasks, &payload);
                proc.exec.execute(now, command, &tasks, &payload);
                self.check(result);
            }
            Output::CancelLocal(command) => {
                self.log.note(now, format_args!("{id}: cancel {command}"));
                for said in proc.exec.cancel(command) {
                    self.pass_on(id, said);
                }
            }
            Output::Deliver(delivery) => {
                let line = DeliveryLine(&delivery).to_string();
                self.log.note(now, format_args!("{line}"));
                let result = self.ledger.deliver(now, &delivery);
                let shown = self.terminals.print(now, &line, &mut self.log);
                self.check(result.and(shown));
            }
            Output::Exchanged { id: exchange, .. } => {
                let tasks = exchange.tasks;
                self.log
                    .note(now, format_args!("{id}: exchanged with {tasks}"));
            }
            Output::Datagram(_) => self.log.note(now, format_args!("{id}: a letter")),
            Output::PauseOutput(paused) => proc.exec.pause(now, paused),
            Output::End(policy) => {
                self.log.note(now, format_args!("{id}: ends, {policy:?}"));
                proc.exec.shut_down(now);
                self.check_end(id);
            }
            Output::Ended => self.leave(id),
        }
    }

    /// Schedules the next timer of a process.
    pub(crate) fn arm(&mut self, id: ServerId) {
        let Some(proc) = self.procs.get(&id) else {
            return;
        };
        let member = proc.member.poll_timeout().map(|at| self.micros(at));
        let next = [member, proc.exec.next()].into_iter().flatten().min();
        let next = next.map(|at| at.max(self.now).max(proc.stopped_until));
        let proc = self.procs.get_mut(&id).expect("it was there a moment ago");
        if next != proc.armed {
            proc.armed = next;
            proc.timer_count += 1;
            let count = proc.timer_count;
            if let Some(at) = next {
                self.at(at, WorldEvent::Timer(id, count));
            }
        }
    }

    /// True once the user has ended the session, or the front-end is gone.
    pub(crate) fn is_over(&self) -> bool {
        let root = self.procs.get(&ServerId::FRONT_END);
        root.is_none_or(|root| root.was_told_to_end)
    }

    /// Records a fault that can delay an adoption, from now until `until`.
    pub(crate) fn delay_adoption(&mut self, until: u64) {
        self.hindered.push((self.now, until));
    }

    /// The running servers.
    pub(crate) fn servers(&self) -> Vec<ServerId> {
        let ids = self.procs.keys().copied();
        ids.filter(|id| *id <= ServerId::SERVER_MAX).collect()
    }

    /// The tasks of a server.
    pub(crate) fn tasks_of(&self, server: ServerId) -> IdSet {
        self.swarm.tasks_of(server)
    }

    /// The tasks of the running servers.
    pub(crate) fn living_tasks(&self) -> IdSet {
        let sets: Vec<IdSet> = self
            .servers()
            .into_iter()
            .map(|id| self.tasks_of(id))
            .collect();
        IdSet::union_all(&sets)
    }

    /// Lets a task emit an event, if its server runs.
    pub(crate) fn emit_event(&mut self, lane: Lane, task: TaskId, bytes: usize) {
        let (id, now) = (self.swarm.server_of(task), self.now);
        if let Some(proc) = self.procs.get_mut(&id)
            && !proc.exec.is_down()
            && proc.member.node().local().contains(task)
        {
            proc.exec.begin_event(now, lane, task, bytes);
            self.arm(id);
        }
    }

    /// The connection of a link, and the owner of its other end; `None` if the link has no connection.
    pub(crate) fn peer_of(&self, id: ServerId, link: LinkId) -> Option<(ConnId, Who)> {
        let (conn, side) = *self.procs.get(&id)?.links.get(&link)?;
        Some((conn, self.conns.get(&conn)?.ends[1 - side].who))
    }
}
