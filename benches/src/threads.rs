//! The tree as threads of one process over real sockets: for counting the system calls of each member,
//! the same on every machine.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use sdm_core::aggregate::Merge;
use sdm_core::driver::{DriverEvent, MemberDriver};
use sdm_core::link::LinkConfig;
use sdm_core::member::{Member, Output};
use sdm_core::message::{EndPolicy, Lane, PlanEntry, Slice, Status, SyncPolicy};
use sdm_core::node::{Delivery, LocalTasks, Node, Submission};
use sdm_core::secure::{SessionKey, draw_session_id};
use sdm_core::topology::Topology;
use sdm_core::transport::Transport;
use sdm_core::transport::tcp::{Calls, TcpTransport};
use sdm_core::{CommandId, Config, ServerId};
use sdm_idset::{IdSet, TaskId};

/// Time limit of each wait: longer than any operation here takes.
const WAIT: Duration = Duration::from_secs(120);

/// Master and servers as threads, the front-end in the calling thread.
pub struct Threads {
    driver: MemberDriver<TcpTransport>,
    members: Vec<JoinHandle<std::io::Result<Calls>>>,
    all: IdSet,
}

fn no_rules(_number: u16, _params: &[u8]) -> Option<Box<dyn Merge>> {
    None
}

impl Threads {
    /// Starts `servers` servers with one task each; each task answers a command with its payload.
    ///
    /// # Errors
    /// A socket or a thread could not be created, or the tree was not established.
    pub fn start(servers: u32) -> Result<Self> {
        let link = Arc::new(LinkConfig::new(SessionKey::draw()?, draw_session_id()?));
        let mut entries = Vec::new();
        let mut drivers = Vec::new();
        for server in std::iter::once(ServerId::MASTER).chain((0..servers).map(ServerId)) {
            let mut transport = TcpTransport::new()?;
            let address = transport.listen(&"tcp://127.0.0.1:0".parse()?, 1)?;
            let tasks = match server {
                ServerId::MASTER => IdSet::new(),
                server => IdSet::single(TaskId(server.0)),
            };
            entries.push(PlanEntry {
                server,
                subtree_count: 0,
                tasks,
                host: "here".into(),
                addresses: [address.to_string()].iter().collect(),
            });
            let node = Node::new(server, no_rules, Instant::now() + WAIT);
            drivers.push(MemberDriver::new(
                Member::new(node, Arc::clone(&link)),
                transport,
            ));
        }
        let mut transport = TcpTransport::new()?;
        let front_end = transport.listen(&"tcp://127.0.0.1:0".parse()?, 1)?;
        drivers[0].connect_front_end(&front_end);
        let members = drivers
            .into_iter()
            .map(|driver| std::thread::spawn(move || serve(driver)))
            .collect();
        let root = Member::new(Node::root(Instant::now(), no_rules), link);
        let mut threads = Self {
            driver: MemberDriver::new(root, transport),
            members,
            all: IdSet::all_below(servers),
        };
        let plan = Slice::new(Topology::Binomial.plan(entries.remove(0), entries));
        // Pings would change the counts, so no link is silent long enough to need one.
        let config = Config {
            ping_after: WAIT,
            ..Config::default()
        };
        let started = threads
            .driver
            .with_member(|m, now| m.start(now, config, plan));
        started.context("the plan")?;
        threads.wait_for(CommandId::INIT)?;
        Ok(threads)
    }

    /// Sends one command with `payload` to all, and waits for its merged answer of the same length.
    ///
    /// # Errors
    /// A member did not answer.
    pub fn round(&mut self, payload: &Bytes) -> Result<()> {
        let submission = Submission {
            destination: self.all.clone(),
            lane: Lane::Control,
            sync: SyncPolicy::WaitForAll,
            rule: 0,
            rule_params: Bytes::new(),
            payload: payload.clone(),
        };
        let id = self.driver.with_member(|m, now| m.submit(now, submission));
        self.wait_for(id)
    }

    fn wait_for(&mut self, wanted: CommandId) -> Result<()> {
        let until = Instant::now() + WAIT;
        while let Some(event) = self.driver.next(Some(until))? {
            match event {
                DriverEvent::Output(Output::Deliver(Delivery::Complete(id))) if id == wanted => {
                    return Ok(());
                }
                DriverEvent::Output(Output::Ended) => bail!("the tree has ended"),
                _ => {}
            }
        }
        bail!("no answer within {WAIT:?}")
    }

    /// Ends the tree. Returns the sum of the system calls of all members, the front-end included.
    ///
    /// # Errors
    /// A member could not wait for events.
    ///
    /// # Panics
    /// If a member has panicked.
    pub fn close(mut self) -> Result<Calls> {
        self.driver
            .with_member(|m, now| m.finish(now, EndPolicy::KillStarted));
        let until = Instant::now() + WAIT;
        while let Some(event) = self.driver.next(Some(until))? {
            match event {
                DriverEvent::Output(Output::End(_)) => {
                    self.driver.with_member(|m, now| m.handle_local_down(now));
                }
                DriverEvent::Output(Output::Ended) => break,
                _ => {}
            }
        }
        let mut sum = self.driver.transport().calls();
        for member in self.members {
            let calls = member.join().expect("no member panics")?;
            sum.polls += calls.polls;
            sum.sends += calls.sends;
            sum.recvs += calls.recvs;
            sum.sent_bytes += calls.sent_bytes;
        }
        Ok(sum)
    }
}

/// Tasks that answer each command with its payload.
pub(crate) struct Repeating;

impl LocalTasks for Repeating {
    fn execute(
        &mut self,
        _now: Instant,
        _id: CommandId,
        _tasks: &IdSet,
        payload: &[u8],
    ) -> Option<(Status, Bytes)> {
        Some((Status::Ok, Bytes::copy_from_slice(payload)))
    }
}

/// The life of one member.
fn serve(mut driver: MemberDriver<TcpTransport>) -> std::io::Result<Calls> {
    while let Some(event) = driver.next_with(None, Some(&mut Repeating))? {
        match event {
            DriverEvent::Output(Output::Execute { id, tasks, payload }) => {
                driver.with_member(|m, now| m.handle_local(now, id, &tasks, Status::Ok, payload));
            }
            DriverEvent::Output(Output::End(_)) => {
                driver.with_member(|m, now| m.handle_local_down(now));
            }
            DriverEvent::Output(Output::Ended) => break,
            _ => {}
        }
    }
    driver.flush();
    Ok(driver.transport().calls())
}
