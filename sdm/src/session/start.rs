//! Starting a session: master, servers, plan, initialisation ("PTP new SDM, Initialization").

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use sdm_core::announce::Announcement;
use sdm_core::config::Config;
use sdm_core::driver::{Driver, DriverEvent};
use sdm_core::handover::{KEY_VARIABLE, LOG_VARIABLE, SESSION_VARIABLE};
use sdm_core::ids::{CommandId, ServerId, SessionId};
use sdm_core::link::LinkConfig;
use sdm_core::member::{Member, Output};
use sdm_core::message::{PlanEntry, Slice, Status};
use sdm_core::node::{Delivery, Node};
use sdm_core::outcome::Failure;
use sdm_core::secure::{SessionKey, draw_session_id};
use sdm_core::topology::Topology;
use sdm_core::transport::{ConnectionString, Transport, tcp::TcpTransport};
use sdm_debug::{BackendSettings, wire};
use sdm_idset::{IdSet, TaskId};
use sdm_launch::{HostShare, Launch, LaunchSpec, Launcher, Streams, job};

use super::api;
use super::config::{SessionConfig, StartProgress};
use super::desk::Desk;
use super::error::SessionError;
use super::live::Session;
use super::master::{HandoverFile, Master};

/// A session on its way.
pub(super) struct Starting<'a> {
    pub(super) config: &'a SessionConfig,
    pub(super) tell: &'a mut dyn FnMut(StartProgress),
    pub(super) driver: Driver<TcpTransport>,
    id: SessionId,
    key: SessionKey,
    address: ConnectionString,
    pub(super) heard: BTreeMap<u32, Announcement>,
    /// All servers below this one have announced themselves.
    pub(super) heard_below: u32,
    /// Servers that ended before they had announced themselves.
    pub(super) ended: IdSet,
    pub(super) tasks: IdSet,
    members: Vec<api::Member>,
    pub(super) ready: IdSet,
    /// Where servers call, until there is a master.
    desk: Option<Desk>,
    /// What was told last of how far the start is.
    pub(super) far: (&'static str, usize),
}

impl Session {
    /// Starts a session and waits until every server is connected; the calling thread must live
    /// as long as the session.
    ///
    /// # Errors
    /// What was not there, who could not be started or reached; nothing is left behind then.
    pub fn start(
        config: &SessionConfig,
        tell: &mut dyn FnMut(StartProgress),
    ) -> Result<Self, SessionError> {
        if config.servers == 0 {
            return Err(SessionError::NoTasks);
        }
        check_widest(config)?;
        let launcher = sdm_launch::find(&config.launcher)?;
        let by_hand = launcher.is_by_hand();
        let mut starting = Starting::new(config, by_hand, tell)?;
        let handover = if by_hand {
            Some(HandoverFile::write(starting.id, &starting.key)?)
        } else {
            None
        };
        let mut launch = starting.launch(&*launcher, handover.as_ref())?;
        let master = match starting.connect_all(&mut launch, by_hand) {
            Ok(master) => master,
            Err(error) => {
                end_launch(&mut starting.driver, &mut launch);
                return Err(error);
            }
        };
        let Starting {
            mut driver,
            id,
            members,
            ..
        } = starting;
        driver.transport().forget(master.end_fd());
        let child = master.release();
        let mut session = Session::new(driver, launch, child, id, members);
        if config.streams != Streams::Private {
            session.pass_on(config.records);
        }
        Ok(session)
    }
}

/// Ends everything that was launched, and waits until it has ended.
pub(super) fn end_launch(driver: &mut Driver<TcpTransport>, launch: &mut Launch) {
    /// How long what was launched may take to end by itself once it is asked to, and once it is
    /// killed.
    const END_WAIT: Duration = Duration::from_secs(5);
    for end in [Launch::terminate, Launch::kill] {
        end(launch);
        let deadline = Instant::now() + END_WAIT;
        while !launch.is_over() {
            match driver.next(Some(deadline)) {
                Ok(Some(DriverEvent::Ready(fd))) => {
                    while launch.handle_ready(fd) {
                        while launch.poll_event().is_some() {}
                    }
                }
                Ok(Some(_)) => {}
                Ok(None) | Err(_) => break,
            }
        }
        if launch.is_over() {
            return;
        }
    }
}

/// The members of a plan, which is a tree in preorder, with their parents.
fn members(plan: &Slice) -> Vec<api::Member> {
    let mut members = Vec::new();
    // The entries whose subtrees are open, each with where its own ends.
    let mut open: Vec<(usize, usize)> = Vec::new();
    for (index, entry) in plan.iter().enumerate() {
        while open.last().is_some_and(|(_, end)| *end <= index) {
            open.pop();
        }
        members.push(api::Member {
            server: (entry.server != ServerId::MASTER).then_some(entry.server.0),
            host: entry.host.clone(),
            parent: open.last().map(|(parent, _)| *parent),
            tasks: entry.tasks.clone(),
        });
        open.push((index, index + entry.subtree_count as usize));
    }
    members
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
        let mut transport = TcpTransport::new().map_err(io("open an event loop"))?;
        // A master that is started by hand may be elsewhere.
        let ip = if by_hand {
            own_address_towards(&config.hosts)
        } else {
            Ipv4Addr::LOCALHOST.into()
        };
        let address = transport
            .listen(&ConnectionString::from(SocketAddr::new(ip, 0)), 1)
            .map_err(io("listen for the master"))?;
        let node = Node::root(Instant::now(), sdm_debug::rules::rule);
        let link = LinkConfig::new(key.clone(), id);
        let driver = Driver::new(Member::new(node, Arc::new(link)), transport);
        let (heard, tasks, ready) = (BTreeMap::new(), IdSet::new(), IdSet::new());
        let members = Vec::new();
        Ok(Self {
            members,
            config,
            tell,
            driver,
            id,
            key,
            address,
            heard,
            heard_below: 0,
            ended: IdSet::new(),
            tasks,
            ready,
            desk: None,
            far: ("launched", 0),
        })
    }

    /// Brings up the tree over what was launched; gives the master.
    fn connect_all(&mut self, launch: &mut Launch, by_hand: bool) -> Result<Master, SessionError> {
        for fd in launch.fds() {
            let watched = self.driver.transport().watch(fd, true, false);
            watched.map_err(|source| SessionError::Io {
                what: "watch the launcher".into(),
                source,
            })?;
        }
        // Only now: launching many takes longer than the master waits for our part of the handshake.
        let mut master = if by_hand {
            Master::default()
        } else {
            self.start_master()?
        };
        self.hear_all(launch, &mut master)?;
        self.initialise(launch, &mut master)?;
        Ok(master)
    }

    fn environment(&self) -> Vec<(OsString, OsString)> {
        let key = self.key.to_hex();
        let log = std::env::var_os(LOG_VARIABLE).map(|filter| (LOG_VARIABLE.into(), filter));
        let mut variables = vec![
            (SESSION_VARIABLE.into(), self.id.to_string().into()),
            (KEY_VARIABLE.into(), OsString::from(key.as_str())),
        ];
        variables.extend(log);
        variables
    }

    fn binary(&self, program: &'static str) -> Result<PathBuf, SessionError> {
        let folder = self.config.binaries.as_deref();
        sdm_launch::own_program(program, folder).ok_or_else(|| {
            let own = std::env::current_exe().ok();
            let beside = own.as_deref().and_then(Path::parent);
            SessionError::NoBinary {
                program,
                beside: beside.map_or_else(String::new, |path| path.display().to_string()),
            }
        })
    }

    fn start_master(&mut self) -> Result<Master, SessionError> {
        let program = self.binary("sdm-master")?;
        let master = Master::start(
            &program,
            &self.address,
            self.config.network.shape,
            self.environment(),
            self.desk.take(),
        )?;
        let watched = self.driver.transport().watch(master.end_fd(), true, false);
        watched.map_err(|source| SessionError::Io {
            what: "watch the master".to_owned(),
            source,
        })?;
        Ok(master)
    }

    fn launch(
        &mut self,
        launcher: &dyn Launcher,
        handover: Option<&HandoverFile>,
    ) -> Result<Launch, SessionError> {
        let config = self.config;
        let server = match &config.server_path {
            Some(path) => path.clone(),
            None => self.binary("sdm-server")?,
        };
        let mut spec = LaunchSpec::new(config.servers, server);
        spec.launcher_options.clone_from(&config.launcher_options);
        spec.parts.clone_from(&config.parts);
        spec.hosts.clone_from(&config.hosts);
        spec.directory.clone_from(&config.directory);
        spec.environment = self.environment();
        spec.handover = handover.map(|file| file.0.clone());
        spec.front_end = self.address.to_string();
        spec.ports = config.network.ports;
        spec.fanout = config.fanout;
        spec.stage = config.stage;
        spec.forks = config.forks;
        spec.streams = config.streams;
        if config.streams != Streams::Private {
            spec.server_args.push("--own-streams".into());
        }
        if config.stage && !launcher.stages() {
            return Err(SessionError::CannotStage(launcher.name().to_owned()));
        }
        spec.processes = self.processes();
        let spans_hosts = launcher.may_span_hosts(&spec);
        if config.network.reverse {
            if launcher.is_by_hand() {
                return Err(SessionError::CannotReverse);
            }
            let desk = Desk::open(&config.network, spans_hosts)?;
            let places = desk.places.clone().into();
            spec.server_args.extend(["--call".into(), places]);
            self.desk = Some(desk);
            return Ok(launcher.launch(&spec)?);
        }
        let mut say = |option: &str, value: String| {
            spec.server_args.extend([option.into(), value.into()]);
        };
        // Servers that may be on other hosts listen at all addresses; the others stay private.
        if spans_hosts && !config.network.tunnel {
            say("--bind", Ipv6Addr::UNSPECIFIED.to_string());
            if let Some(interface) = &config.network.interface {
                say("--interface", interface.to_string());
            }
        }
        if !config.network.ports.is_any() && !launcher.is_by_hand() {
            say("--port", config.network.ports.to_string());
        }
        if let Some(shape) = config.network.shape {
            say("--shape", shape.to_string());
        }
        Ok(launcher.launch(&spec)?)
    }

    /// How many processes there will be, as far as SDM starts them or has them started.
    fn processes(&self) -> u64 {
        let config = self.config;
        let servers = u64::from(config.servers);
        let tasks = match &config.tasks[..] {
            [] => servers,
            tasks => tasks.iter().map(IdSet::len).sum(),
        };
        match config.backend {
            BackendSettings::Fake { .. } => servers,
            // A gdb and its program for each task, and who sees to it that the gdbs end.
            _ => 2 * servers + 2 * tasks,
        }
    }

    pub(super) fn next(&mut self, deadline: Instant) -> Result<Option<DriverEvent>, SessionError> {
        /// How often it is told how far the start is, and whether it is given up is looked at.
        const TURN: Duration = Duration::from_millis(250);
        loop {
            let given_up = self.config.given_up.as_ref();
            if given_up.is_some_and(|given_up| given_up.load(Ordering::SeqCst)) {
                return Err(SessionError::GivenUp);
            }
            let until = deadline.min(Instant::now() + TURN);
            let event = self.driver.next(Some(until));
            let event = event.map_err(|source| SessionError::Io {
                what: "wait for events".into(),
                source,
            })?;
            if event.is_some() || Instant::now() >= deadline {
                return Ok(event);
            }
            let (phase, done) = self.far;
            self.progress(phase, done, None);
        }
    }

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
    fn check_hosts(&self) -> Result<(), SessionError> {
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
        let direct = |ip: &IpAddr| ConnectionString::from(SocketAddr::new(*ip, heard.port));
        if self.config.network.tunnel
            && let Ok(through) = ConnectionString::ssh(&heard.host, heard.port)
        {
            return vec![through.to_string()];
        }
        heard
            .addresses
            .iter()
            .map(|ip| direct(ip).to_string())
            .collect()
    }

    fn plan(&self) -> Slice {
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

    /// Sends the plan and waits until everybody has answered.
    fn initialise(&mut self, launch: &mut Launch, master: &mut Master) -> Result<(), SessionError> {
        self.check_hosts()?;
        let plan = self.plan();
        self.tasks = IdSet::union_all(plan.iter().map(|entry| &entry.tasks));
        self.members = members(&plan);
        let config = Config {
            backend: wire::encode(&self.config.backend).into(),
            ..self.config.config.clone()
        };
        // Every hop may take its time, and who is above waits for who is below.
        let wait = config.start_wait * 2;
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
                    let left = self.tasks.difference(&self.ready);
                    failures.push(format!(
                        "servers of tasks {left}: no answer within {wait:?}"
                    ));
                    break;
                }
            }
        }
        if failures.is_empty() || (self.config.config.partial && !self.ready.is_empty()) {
            return Ok(());
        }
        Err(SessionError::Unreachable(failures.join("; ")))
    }

    /// Takes in what came of the initialisation; true when everybody has answered.
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
                        self.ready.union_with(&block.sources);
                    } else {
                        failures.push(Failure::decode(&block.payload).to_string());
                    }
                }
                if !lost.is_empty() {
                    failures.push(format!("the servers of tasks {lost} are gone"));
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

/// Checks that the member with the most children can have them, where it will be on this machine.
fn check_widest(config: &SessionConfig) -> Result<(), SessionError> {
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

/// The address of this machine from which the first of these hosts is reached.
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
        socket.connect((host.host.as_str(), 9))?;
        socket.local_addr()
    });
    socket.map_or(local, |address| address.ip())
}
