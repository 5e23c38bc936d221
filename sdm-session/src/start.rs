//! Starting a session: master, servers, plan, initialisation ("PTP new SDM, Initialization").

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use sdm_bootstrap::announce::Announcement;
use sdm_core::config::Config;
use sdm_core::driver::{DriverEvent, MemberDriver};
use sdm_core::ids::{CommandId, ServerId, SessionId};
use sdm_core::link::LinkConfig;
use sdm_core::member::{Member, Output};
use sdm_core::message::Status;
use sdm_core::node::{Delivery, Node};
use sdm_core::secure::{SessionKey, draw_session_id};
use sdm_core::transport::{ConnectionString, HostTransport, Transport, tcp::TcpTransport};
use sdm_debug::Failure;
use sdm_debug::wire;
use sdm_hosts::HostShare;
use sdm_idset::IdSet;
use sdm_launch::{Launch, Streams};

use super::api;
use super::config::{SessionConfig, StartProgress};
use super::end_launch::{END_WAIT, end_launch};
use super::error::SessionError;
use super::key::Offer;
use super::live::Session;
use super::master::{self, Master};
use super::plan::{check_widest, hosted_on, members};
use super::rank_assignment::JoinedRanks;
use super::reverse_listener::ReverseListener;
use super::spawn_ids::Spare;
use super::task_assignment::{shared, uses_shims};

/// A session during its start.
pub(super) struct Starting<'a> {
    pub(super) config: &'a SessionConfig,
    pub(super) tell: &'a mut dyn FnMut(StartProgress),
    pub(super) driver: MemberDriver<TcpTransport>,
    pub(super) id: SessionId,
    pub(super) key: SessionKey,
    pub(super) address: ConnectionString,
    pub(super) heard: BTreeMap<u32, Announcement>,
    /// The ranks that have connected to servers with several ranks. None if each launched process is a
    /// server.
    pub(super) joined: Option<JoinedRanks>,
    /// All servers with a lower number than this have announced themselves.
    pub(super) heard_below: u32,
    /// Servers that ended before they had announced themselves.
    pub(super) ended: IdSet,
    pub(super) tasks: IdSet,
    members: Vec<api::SessionMember>,
    spare: Spare,
    pub(super) ready: IdSet,
    /// True if members are started by hand and no launcher passes on their announcements.
    pub(super) by_hand: bool,
    /// The socket that servers connect to, until the master takes it. None without `reverse`.
    pub(super) reverse_listener: Option<ReverseListener>,
    /// The offer of the key for servers, until all have arrived. None if the environment carries the key.
    pub(super) offer: Option<Offer>,
    /// The progress reported last: phase and count.
    pub(super) far: (&'static str, usize),
}

impl Session {
    /// Starts a session and waits until every server is connected. The calling thread must live as long as
    /// the session.
    ///
    /// # Errors
    /// [`SessionError`] names the step that failed, with the host or program. No process of the session remains then.
    pub fn start(
        config: &SessionConfig,
        tell: &mut dyn FnMut(StartProgress),
    ) -> Result<Self, SessionError> {
        if config.servers == 0 {
            return Err(SessionError::NoTasks);
        }
        let launcher = sdm_launch::find(&config.launcher)?;
        let config = &*shared(config, &*launcher)?;
        check_widest(config)?;
        let by_hand = launcher.is_by_hand();
        let mut starting = Starting::new(config, by_hand, tell)?;
        let handover = if by_hand {
            Some(master::write_handover(starting.id, &starting.key)?)
        } else {
            None
        };
        let _session = tracing::info_span!("session", id = %starting.id).entered();
        let (who, servers) = (launcher.describe(), config.servers);
        tracing::info!(servers, "starts: {who}");
        let mut launch = starting.launch(&*launcher, handover.as_ref())?;
        let master = match starting.connect_all(&mut launch) {
            Ok(master) => master,
            Err(error) => {
                end_launch(&mut starting.driver, &mut launch, END_WAIT);
                return Err(error);
            }
        };
        let Starting {
            mut driver,
            id,
            members,
            spare,
            ..
        } = starting;
        driver.transport().forget(master.end_fd());
        let child = master.release();
        let mut session = Session::new(driver, launch, child, (id, members, spare));
        if config.streams != Streams::Private {
            session.pass_on(config.records);
        }
        Ok(session)
    }
}

impl<'a> Starting<'a> {
    fn new(
        config: &'a SessionConfig,
        by_hand: bool,
        tell: &'a mut dyn FnMut(StartProgress),
    ) -> Result<Self, SessionError> {
        let random = |error: &dyn std::fmt::Display| SessionError::Random(error.to_string());
        let key = SessionKey::draw().map_err(|error| random(&error))?;
        let id = draw_session_id().map_err(|error| random(&error))?;
        let io = |what: &str| {
            let what = what.to_owned();
            move |source| SessionError::Io { what, source }
        };
        let mut transport = TcpTransport::new().map_err(io("cannot open an event loop"))?;
        if let Some(ssh) = sdm_system::files::search("ssh") {
            transport.set_ssh(ssh);
        }
        let link = LinkConfig::new(key.clone(), id);
        transport.set_session(&link);
        // A master that is started by hand may be elsewhere.
        let ip = if by_hand {
            own_address_towards(&config.hosts)
        } else {
            Ipv4Addr::LOCALHOST.into()
        };
        let beside = config.transport == HostTransport::Unix && !by_hand;
        let own = ConnectionString::local(ServerId::FRONT_END);
        let heard_beside = beside.then(|| transport.listen(&own, 1));
        let address = match heard_beside {
            Some(Ok(address)) => address,
            _ => transport
                .listen(&ConnectionString::from(SocketAddr::new(ip, 0)), 1)
                .map_err(io("cannot listen for sdm-master"))?,
        };
        let node = Node::root(Instant::now(), sdm_debug::rules::rule);
        let driver = MemberDriver::new(Member::new(node, Arc::new(link)), transport);
        let (heard, tasks, ready) = (BTreeMap::new(), IdSet::new(), IdSet::new());
        let members = Vec::new();
        Ok(Self {
            members,
            spare: Spare::default(),
            config,
            tell,
            by_hand,
            driver,
            id,
            key,
            address,
            heard,
            joined: uses_shims(config).then(JoinedRanks::default),
            heard_below: 0,
            ended: IdSet::new(),
            tasks,
            ready,
            reverse_listener: None,
            offer: None,
            far: ("launched", 0),
        })
    }

    /// Connects the tree of the launched processes. Returns the master.
    fn connect_all(&mut self, launch: &mut Launch) -> Result<Master, SessionError> {
        let offer = self.offer.as_ref().map(Offer::fd);
        for fd in launch.fds().into_iter().chain(offer.filter(|fd| *fd >= 0)) {
            let watched = self.driver.transport().watch(fd, true, false);
            watched.map_err(|source| SessionError::Io {
                what: "cannot watch the launcher".into(),
                source,
            })?;
        }
        // Only now: launching many takes longer than the master waits for our part of the handshake.
        let mut master = if self.by_hand {
            Master::default()
        } else {
            self.start_master()?
        };
        self.hear_all(launch, &mut master)?;
        self.withdraw_offer();
        self.initialise(launch, &mut master)?;
        Ok(master)
    }

    pub(super) fn next(&mut self, deadline: Instant) -> Result<Option<DriverEvent>, SessionError> {
        /// Interval at which progress is reported and `given_up` is checked.
        const TURN: Duration = Duration::from_millis(250);
        loop {
            let given_up = self.config.given_up.as_ref();
            if given_up.is_some_and(|given_up| given_up.load(Ordering::SeqCst)) {
                return Err(SessionError::GivenUp);
            }
            let until = deadline.min(Instant::now() + TURN);
            let event = self.driver.next(Some(until));
            let event = event.map_err(|source| SessionError::Io {
                what: "cannot wait for events".into(),
                source,
            })?;
            if event.is_some() || Instant::now() >= deadline {
                return Ok(event);
            }
            let (phase, done) = self.far;
            self.progress(phase, done, None);
        }
    }

    /// Sends the plan and waits until every member has answered.
    fn initialise(&mut self, launch: &mut Launch, master: &mut Master) -> Result<(), SessionError> {
        self.check_hosts()?;
        let plan = self.plan();
        self.members = members(&plan);
        let known: Vec<_> = self.heard.values().map(|it| self.tasks_of(it)).collect();
        self.tasks = IdSet::union_all(&known);
        self.spare = Spare::take_out_of(&mut self.members, &self.tasks);
        let config = Config {
            backend: wire::encode(&hosted_on(&self.config.backend, &plan, &self.tasks)).into(),
            ..self.config.config.clone()
        };
        // Members that are started by hand have not been waited for yet. Others have arrived: their parents
        // wait for them in turn, and every level takes its time.
        let wait = match self.by_hand {
            true => config.start_wait,
            false => config.start_wait * 2,
        };
        let started = self
            .driver
            .with_member(|member, now| member.start(now, config, plan));
        started.map_err(|error| SessionError::Unreachable(error.to_string()))?;
        let deadline = Instant::now() + wait;
        let mut failures: Vec<String> = Vec::new();
        self.progress("connected", 0, None);
        loop {
            let event = self.next(deadline)?;
            match event {
                Some(DriverEvent::Ready(fd)) if fd == master.end_fd() => {
                    return Err(master.gone());
                }
                Some(DriverEvent::Ready(fd)) => self.hear(launch, fd)?,
                Some(DriverEvent::Output(Output::Deliver(delivery))) => {
                    if self.init_answer(delivery, &mut failures) {
                        break;
                    }
                }
                Some(_) => {}
                None => {
                    failures.push(self.unanswered(wait));
                    break;
                }
            }
        }
        if failures.is_empty() || (self.config.config.partial && !self.ready.is_empty()) {
            return Ok(());
        }
        Err(SessionError::Unreachable(failures.join("; ")))
    }

    /// Describes the members that did not answer in time. If the master is missing, the text names it too, because the
    /// servers connect through it.
    fn unanswered(&self, wait: Duration) -> String {
        let mut children = self.driver.member().node().children();
        let has_master = children.any(|(_, link)| link.is_some());
        let left = self.tasks.difference(&self.ready);
        match has_master {
            true => format!("the sdm-servers of ranks {left} did not answer within {wait:?}"),
            false => format!(
                "neither sdm-master nor the sdm-servers of ranks {left} answered within {wait:?}"
            ),
        }
    }

    /// Handles a delivery of the tree during initialisation. Returns true once the command INIT is complete.
    fn init_answer(&mut self, delivery: Delivery, failures: &mut Vec<String>) -> bool {
        match delivery {
            Delivery::Answer {
                id: CommandId::INIT,
                blocks,
                lost,
                ..
            } => {
                for block in blocks {
                    if block.status == Status::Ok {
                        let known = block.sources.intersection(&self.tasks);
                        self.ready.union_with(&known);
                    } else {
                        failures.push(Failure::decode(&block.payload).to_string());
                    }
                }
                let lost = lost.intersection(&self.tasks);
                if !lost.is_empty() {
                    failures.push(format!("the sdm-servers of ranks {lost} were lost"));
                }
                let done = usize::try_from(self.ready.len()).unwrap_or(usize::MAX);
                self.progress("connected", done, None);
                false
            }
            Delivery::Complete(CommandId::INIT) => true,
            _ => false,
        }
    }
}

/// The address of this machine on the route to the first of these hosts; loopback if there is none.
fn own_address_towards(hosts: &[HostShare]) -> IpAddr {
    let local = IpAddr::from(Ipv4Addr::LOCALHOST);
    let Some(host) = hosts.first() else {
        return local;
    };
    let any = if host.host.contains(':') {
        "[::]:0"
    } else {
        "0.0.0.0:0"
    };
    // Nothing is sent: the kernel only chooses the way.
    let socket = UdpSocket::bind(any).and_then(|socket| {
        socket.connect((host.host.rsplit('@').next().unwrap_or_default(), 9))?;
        socket.local_addr()
    });
    socket.map_or(local, |address| address.ip())
}
