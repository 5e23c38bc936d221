//! The server's start and its event loop.

use std::collections::HashMap;
use std::ffi::{CString, OsString};
use std::net::IpAddr;
use std::os::fd::{AsRawFd, RawFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use nix::sys::signal::Signal;
use nix::sys::signalfd::SignalFd;
use sdm_bootstrap::announce::{Announcement, Refusal};
use sdm_bootstrap::handover::{
    HandoverError, LOCAL_INDEX_VARIABLE, SERVER_COUNT_VARIABLE, SERVER_VARIABLE, XSTATE_VARIABLE,
};
use sdm_bootstrap::starter::Starter;
use sdm_core::CommandId;
use sdm_core::driver::{DriverEvent, MemberDriver};
use sdm_core::ids::ServerId;
use sdm_core::link::LinkConfig;
use sdm_core::member::{Member, Output};
use sdm_core::message;
use sdm_core::node::Node;
use sdm_core::transport::reversed::Reversed;
use sdm_core::transport::{
    ConnectionString, Interface, PortRange, Shape, own_addresses, shaped::Shaped, tcp::TcpTransport,
};
use sdm_debug::{Backend, Command, EndPolicy, Failure, FailureCode, InterestChange, wire};
use sdm_idset::IdSet;
use sdm_system::identity::Identity;

use crate::announce::say;
use crate::backend::{self, Inherited, Upward};
use crate::copy::Copy;
use crate::fork::{Part, fork_all};
use crate::network;

/// A server process of an SDM session. It is started by a launcher that `sdm` starts; the
/// session's name and key come in the environment.
#[derive(clap::Parser, Debug)]
#[command(version)]
pub struct Arguments {
    /// The server's number; taken from the launcher's variables where absent
    #[arg(long)]
    pub id: Option<u32>,
    /// The address to listen on; where it is 0.0.0.0 or ::, the host's own addresses are announced
    #[arg(long, default_value = "127.0.0.1")]
    pub bind: IpAddr,
    /// What others call this host; its own name, or Slurm's for it, where absent
    #[arg(long, value_name = "NAME")]
    pub host_name: Option<String>,
    /// Of the host's own addresses only these: the name of an interface, an address or a network
    #[arg(long, value_name = "NAME|NET")]
    pub interface: Option<Interface>,
    /// The first port to try, or a range; the local index is added, and taken ports are passed by. 0
    /// lets the system choose
    #[arg(long, value_name = "PORT[-LAST]", default_value_t)]
    pub port: PortRange,
    /// Where the session's name and key are: a file that only you may read, `-` for standard
    /// input; the environment where absent
    #[arg(long, value_name = "FILE")]
    pub handover: Option<PathBuf>,
    /// Listen nowhere: connect to one of these, where the parent is
    #[arg(
        long,
        value_name = "ADDRESS,...",
        value_delimiter = ',',
        conflicts_with = "port"
    )]
    pub call: Vec<ConnectionString>,
    /// How many seconds to wait for the parent's connection
    #[arg(long, default_value_t = 120)]
    pub start_wait: u64,
    /// This program was copied here for this session: it is removed when all servers are there
    #[arg(long)]
    pub staged: bool,
    /// Programs have this process's own standard streams: what they print goes to its standard output and
    /// not to the front-end, and they read its standard input
    #[arg(long)]
    pub own_streams: bool,
    /// How slow connections to servers below are made, for trying out a network
    #[arg(long, value_name = "SHAPE")]
    pub shape: Option<Shape>,
    /// Be so many servers with numbers from --id on (0 unless given), each a process of its own: for
    /// trying out many on one machine
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..))]
    pub fork: Option<u32>,
    /// Do nothing and exit: for measuring what starting a process costs
    #[arg(long)]
    pub exit: bool,
}

/// The environment as the launcher gave it, before what is ours is taken out.
#[must_use]
pub fn snapshot() -> HashMap<OsString, OsString> {
    let wanted = [
        SERVER_VARIABLE,
        SERVER_COUNT_VARIABLE,
        LOCAL_INDEX_VARIABLE,
        XSTATE_VARIABLE,
    ];
    let pairs = wanted
        .iter()
        .filter_map(|name| Some((*name, std::env::var_os(name)?)));
    pairs.map(|(name, value)| (name.into(), value)).collect()
}

/// Runs the server until the session has ended, and the programs that were left running too. Gives
/// the exit code: theirs, so that the launcher sees what it would see without a debugger.
///
/// # Errors
/// No identity, no key, no port: said with who and what.
pub fn serve(
    mut arguments: Arguments,
    mut ours: HashMap<OsString, OsString>,
    handed_over: Result<LinkConfig, HandoverError>,
) -> Result<u8> {
    if arguments.exit {
        return Ok(0);
    }
    let copy = Copy::of_this(arguments.staged);
    let mut handed_over = handed_over;
    if let (Some(count), Ok(config)) = (arguments.fork, &mut handed_over) {
        let first = arguments.id.unwrap_or(0);
        match fork_all(first, count, config)? {
            Part::Forker(code) => return Ok(code),
            Part::Server(index) => {
                arguments.id = Some(first + index);
                let own = ours.entry(LOCAL_INDEX_VARIABLE.into()).or_default();
                let before: u32 = own.to_str().and_then(|it| it.parse().ok()).unwrap_or(0);
                *own = (before + index).to_string().into();
            }
        }
    }
    let lookup = |name: &str| {
        ours.get(&OsString::from(name))
            .cloned()
            .or_else(|| std::env::var_os(name))
    };
    let identity =
        Identity::from_env(lookup, arguments.id).map_err(|error| anyhow!("sdm-server: {error}"))?;
    let session = handed_over.as_ref().ok().map(|config| config.session);
    let session = session.map_or_else(String::new, |session| session.to_string());
    let _server = tracing::info_span!("server", id = identity.server, %session).entered();
    let came_up = handed_over.map_err(anyhow::Error::from).and_then(|config| {
        let inherited = Inherited::take(arguments.own_streams).context("standard streams")?;
        let inherited = inherited.with_completion(lookup(XSTATE_VARIABLE))?;
        come_up(&arguments, identity, config, inherited, copy)
    });
    match came_up {
        Ok(server) => server.run(),
        Err(error) => {
            // Where others end only together with this one nobody would hear of it otherwise.
            let why = format!("{error:#}");
            say(&Refusal::new(identity.server, &why).to_string())?;
            Err(error)
        }
    }
}

/// Listens and says where.
fn come_up(
    arguments: &Arguments,
    identity: Identity,
    config: LinkConfig,
    inherited: Inherited,
    copy: Copy,
) -> Result<Server> {
    let me = ServerId(identity.server);
    // Many have the same command line, and nobody but root can read the environment of what keeps out of core files.
    let name = CString::new(format!("sdm-srv-{}", identity.server)).context("a name")?;
    nix::sys::prctl::set_name(&name).with_context(|| format!("{me}: take a name"))?;
    let starter = Starter::now();
    // They are read from a descriptor: whoever is stopped ends as well as others.
    let ends = [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP];
    let signals = starter.follow(&ends);
    let signals = signals.with_context(|| format!("{me}: be told of the launcher's death"))?;
    let mut sockets = TcpTransport::new().with_context(|| format!("{me}: open an event loop"))?;
    if let Some(ssh) = sdm_system::files::search("ssh") {
        sockets.set_ssh(ssh);
    }
    let mut transport = Shaped::new(sockets);
    if let Some(shape) = arguments.shape {
        transport
            .set_shape(shape)
            .with_context(|| format!("{me}: set a timer"))?;
    }
    let ports = arguments.port.search(identity.local_index.unwrap_or(0));
    let interface = arguments.interface.as_ref();
    let (port, addresses) = match arguments.call[..] {
        [] => network::listen(&mut transport, arguments.bind, interface, ports)
            .with_context(|| me.to_string())?,
        _ => (0, own_addresses(None)?),
    };
    let mut transport = Reversed::new(transport);
    if !arguments.call.is_empty() {
        transport.call(config.clone(), me, arguments.call.clone());
    }
    let host = match &arguments.host_name {
        Some(name) => name.clone(),
        None => own_host_name()?,
    };
    tracing::info!(pid = std::process::id(), %host, port, "started");
    announce(identity.server, host, port, addresses).with_context(|| format!("{me}: announce"))?;
    let deadline = Instant::now() + Duration::from_secs(arguments.start_wait);
    let node = Node::new(me, sdm_debug::rules::rule, deadline);
    transport
        .inner()
        .sockets()
        .watch(signals.as_raw_fd(), true, false)
        .with_context(|| format!("{me}: watch signals"))?;
    Ok(Server {
        driver: MemberDriver::new(Member::new(node, Arc::new(config)), transport),
        backend: None,
        signals,
        inherited,
        stopped: None,
        starter,
        copy,
        alone: false,
    })
}

/// Says where this server is, in one line on stdout.
fn own_host_name() -> Result<String> {
    // Slurm may call a node otherwise than the node itself does.
    let host = match std::env::var_os("SLURMD_NODENAME") {
        Some(node) => node,
        None => nix::unistd::gethostname().context("the host's name")?,
    };
    Ok(host.to_string_lossy().into_owned())
}

fn announce(server: u32, host: String, port: u16, addresses: Vec<IpAddr>) -> Result<()> {
    let announcement = Announcement {
        server,
        host,
        port,
        pid: std::process::id(),
        addresses,
    };
    let line = announcement.to_line().map_err(|error| anyhow!("{error}"))?;
    say(&line)
}

/// A server at work.
struct Server {
    driver: MemberDriver<Reversed<Shaped>>,
    backend: Option<Box<dyn Backend>>,
    signals: SignalFd,
    /// What the launcher left to the programs.
    inherited: Inherited,
    /// Why there is no backend although one was asked for.
    stopped: Option<Failure>,
    /// Who started this process.
    starter: Starter,
    /// The program, where it is to be removed.
    copy: Copy,
    /// The session is over; programs that were left running are not.
    alone: bool,
}

impl Server {
    fn run(mut self) -> Result<u8> {
        loop {
            if self.alone && !self.is_leaving() {
                let code = self.backend.as_ref().and_then(|b| b.left_code());
                return Ok(code.map_or(0, |code| u8::try_from(code).unwrap_or(u8::MAX)));
            }
            let timeout = self
                .backend
                .as_ref()
                .and_then(|backend| backend.poll_timeout());
            let event = self.driver.next(timeout).context("wait for events")?;
            let now = Instant::now();
            match event {
                Some(DriverEvent::Output(Output::Ended)) => {
                    tracing::info!("the session is over here");
                    self.driver.flush();
                    self.driver.transport().stop_calling();
                    self.alone = true;
                    if let Some(backend) = &mut self.backend {
                        // Nobody is left to hear what they print.
                        backend.set_output_paused(now, false);
                    }
                }
                Some(DriverEvent::Output(output)) => self.handle_output(now, output),
                Some(DriverEvent::Ready(fd)) => self.handle_ready(now, fd),
                Some(DriverEvent::Woken) | None => {}
            }
            if let Some(backend) = &mut self.backend
                && backend.poll_timeout().is_some_and(|at| at <= now)
            {
                backend.handle_timeout(now);
            }
            self.drain_backend();
        }
    }

    fn is_leaving(&self) -> bool {
        self.backend.as_ref().is_some_and(|b| b.is_leaving())
    }

    fn handle_output(&mut self, now: Instant, output: Output) {
        match output {
            Output::Configure(config) => {
                // All that were started have said where they are by now.
                self.copy.remove();
                let tasks = self.driver.member().node().local().clone();
                match backend::make(&config.backend, &tasks, &self.inherited) {
                    Ok(backend) => {
                        tracing::info!(%tasks, "set up");
                        self.backend = Some(backend);
                    }
                    Err(failure) => {
                        tracing::warn!(%tasks, "not set up: {failure}");
                        self.stopped = Some(failure);
                    }
                }
            }
            Output::Execute { id, tasks, payload } => self.execute(now, id, &tasks, &payload),
            Output::CancelLocal(id) => {
                tracing::info!(command = %id, "given up");
                if let Some(backend) = &mut self.backend {
                    backend.cancel(now, id);
                }
            }
            Output::PauseOutput(paused) => {
                if let Some(backend) = &mut self.backend {
                    backend.set_output_paused(now, paused);
                }
            }
            Output::End(policy) => {
                tracing::info!(?policy, "ends");
                self.shut_down(now, policy);
            }
            Output::Refused { why } => tracing::warn!("{why}"),
            _ => {}
        }
    }

    fn shut_down(&mut self, now: Instant, policy: EndPolicy) {
        match &mut self.backend {
            Some(backend) => backend.shut_down(now, policy),
            None => self
                .driver
                .with_member(|member, now| member.handle_local_down(now)),
        }
    }

    fn execute(&mut self, now: Instant, id: CommandId, tasks: &IdSet, payload: &[u8]) {
        let failure = match (&mut self.backend, wire::decode::<Command>(payload)) {
            (Some(backend), Ok(command)) => {
                tracing::info!(command = id.0, %tasks, "begins {}", command.name());
                return backend.execute(now, id, tasks, command);
            }
            (None, _) => self.stopped.clone().unwrap_or_else(|| {
                Failure::new(FailureCode::BadCommand, "the server has not been set up")
            }),
            (_, Err(error)) => Failure::new(FailureCode::BadCommand, error.to_string()),
        };
        tracing::warn!(command = id.0, %tasks, "refused: {failure}");
        let payload = failure.encode();
        self.driver.with_member(|member, now| {
            member.handle_local(now, id, tasks, message::Status::Failed, payload);
        });
    }

    fn handle_ready(&mut self, now: Instant, fd: RawFd) {
        if fd != self.signals.as_raw_fd() {
            if let Some(backend) = &mut self.backend {
                backend.handle_ready(now, fd);
            }
            return;
        }
        let mut asked_to_end = false;
        while let Ok(Some(signal)) = self.signals.read_signal() {
            let orphaned = self.starter.is_gone();
            let is_told = i32::try_from(signal.ssi_signo) == Ok(Signal::SIGCONT as i32);
            if is_told && !orphaned {
                continue;
            }
            tracing::info!(signal = signal.ssi_signo, orphaned, "asked to end");
            asked_to_end = true;
            // A launcher that lives ends its job; one that is gone leaves what runs without us.
            if let (false, Some(backend), Ok(number)) =
                (orphaned, &mut self.backend, i32::try_from(signal.ssi_signo))
            {
                backend.signal_left(number);
            }
        }
        if asked_to_end {
            let policy = EndPolicy::KillStarted;
            self.driver
                .with_member(|member, now| member.leave(now, policy));
        }
    }

    /// Takes what the backend has to say, and what it wants watched.
    fn drain_backend(&mut self) {
        let Some(backend) = &mut self.backend else {
            return;
        };
        while let Some(change) = backend.poll_interest() {
            let sockets = self.driver.transport().inner().sockets();
            let result = match change {
                InterestChange::Watch {
                    fd,
                    readable,
                    writable,
                } => sockets.watch(fd, readable, writable),
                InterestChange::Forget { fd } => {
                    sockets.forget(fd);
                    Ok(())
                }
            };
            if let Err(error) = result {
                tracing::error!("watch a descriptor of the backend: {error}");
            }
        }
        // All at once, so that they go up in one write.
        let mut said = Vec::new();
        while let Some(output) = backend.poll_output() {
            if !self.alone {
                said.push(backend::upward(output));
            }
        }
        if !said.is_empty() {
            self.driver.with_member(|member, now| {
                for upward in said {
                    match upward {
                        Upward::Answer(id, tasks, status, payload) => {
                            tracing::info!(command = id.0, %tasks, "answered: {status:?}");
                            member.handle_local(now, id, &tasks, status, payload);
                        }
                        Upward::Event(tasks, lane, payload) => {
                            member.handle_local_event(now, lane, &tasks, payload);
                        }
                    }
                }
            });
        }
        if self.driver.member().node().is_ending() && backend.is_down() {
            self.driver
                .with_member(|member, now| member.handle_local_down(now));
        }
    }
}
