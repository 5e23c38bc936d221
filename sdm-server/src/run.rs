//! The server's start and its event loop.

use std::collections::HashMap;
use std::ffi::OsString;
use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::{AsRawFd, RawFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use sdm_backend_gdbmi::SignalState;
use sdm_core::announce::Announcement;
use sdm_core::driver::{Driver, DriverEvent};
use sdm_core::handover::HandoverError;
use sdm_core::ids::ServerId;
use sdm_core::limits;
use sdm_core::link::LinkConfig;
use sdm_core::member::{Member, Output};
use sdm_core::message;
use sdm_core::node::Node;
use sdm_core::transport::{ConnectionString, Transport, tcp::TcpTransport};
use sdm_core::{CommandId, Failure};
use sdm_debug::{Backend, EndPolicy, FailureCode, InterestChange, wire};
use sdm_idset::IdSet;

use crate::backend::{self, Upward};
use crate::starter::Starter;
use sdm_core::identity::Identity;

/// A server process of an SDM session. It is started by a launcher that `sdm` starts; the
/// session's name and key come in the environment.
#[derive(clap::Parser, Debug)]
#[command(version)]
pub struct Arguments {
    /// The server's number; taken from the launcher's variables where absent
    #[arg(long)]
    pub id: Option<u32>,
    /// The address to listen on; where it is 0.0.0.0, the host's own addresses are announced
    #[arg(long, default_value = "127.0.0.1")]
    pub bind: IpAddr,
    /// The first port to try; the local index is added, and taken ports are passed by. 0 lets the
    /// system choose
    #[arg(long, default_value_t = 0)]
    pub port: u16,
    /// Where the session's name and key are: a file that only you may read, `-` for standard
    /// input; the environment where absent
    #[arg(long, value_name = "FILE")]
    pub handover: Option<PathBuf>,
    /// How many seconds to wait for the parent's connection
    #[arg(long, default_value_t = 120)]
    pub start_wait: u64,
    /// Do nothing and exit: for measuring what starting a process costs
    #[arg(long)]
    pub exit: bool,
}

/// The environment as the launcher gave it, before what is ours is taken out.
#[must_use]
pub fn snapshot() -> HashMap<OsString, OsString> {
    let wanted = ["SDM_SERVER_ID", "SDM_SERVER_COUNT", "SDM_LOCAL_INDEX"];
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
    arguments: &Arguments,
    ours: HashMap<OsString, OsString>,
    handed_over: Result<LinkConfig, HandoverError>,
) -> Result<u8> {
    if arguments.exit {
        return Ok(0);
    }
    let config = handed_over.context("sdm-server")?;
    let lookup = |name: &str| {
        ours.get(&OsString::from(name))
            .cloned()
            .or_else(|| std::env::var_os(name))
    };
    let identity =
        Identity::from_env(lookup, arguments.id).map_err(|error| anyhow!("sdm-server: {error}"))?;
    let me = ServerId(identity.server);
    nix::sys::prctl::set_pdeathsig(Signal::SIGTERM)
        .with_context(|| format!("{me}: ask to be told of the launcher's death"))?;
    let inherited = SignalState::capture();
    let signals = catch_signals().with_context(|| format!("{me}: catch signals"))?;
    let mut transport = TcpTransport::new().with_context(|| format!("{me}: open an event loop"))?;
    let base = match arguments.port {
        0 => 0,
        port => port.saturating_add(u16::try_from(identity.local_index.unwrap_or(0)).unwrap_or(0)),
    };
    let wanted = ConnectionString::from(SocketAddr::new(arguments.bind, base));
    let bound = transport
        .listen(&wanted, limits::PORT_TRIES_MAX)
        .with_context(|| format!("{me}: listen at {wanted} or above"))?;
    let bound = bound.socket_addr().context("the address that was bound")?;
    announce(identity.server, bound).with_context(|| format!("{me}: announce"))?;
    let deadline = Instant::now() + Duration::from_secs(arguments.start_wait);
    let node = Node::new(me, sdm_debug::rules::rule, deadline);
    transport
        .watch(signals.as_raw_fd(), true, false)
        .with_context(|| format!("{me}: watch signals"))?;
    let driver = Driver::new(Member::new(node, Arc::new(config)), transport);
    Server {
        driver,
        backend: None,
        signals,
        inherited,
        stopped: None,
        starter: Starter::now(),
        alone: false,
    }
    .run()
}

/// Blocks the signals that end a server; they are read from a descriptor instead.
fn catch_signals() -> nix::Result<SignalFd> {
    let mut mask = SigSet::empty();
    for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP] {
        mask.add(signal);
    }
    mask.thread_block()?;
    SignalFd::with_flags(&mask, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)
}

/// Says where this server is, in one line on stdout.
fn announce(server: u32, bound: SocketAddr) -> Result<()> {
    // Slurm may call a node otherwise than the node itself does.
    let host = match std::env::var_os("SLURMD_NODENAME") {
        Some(node) => node,
        None => nix::unistd::gethostname().context("the host's name")?,
    };
    let addresses = if bound.ip().is_unspecified() {
        own_addresses()
    } else {
        vec![bound.ip()]
    };
    let announcement = Announcement {
        server,
        host: host.to_string_lossy().into_owned(),
        port: bound.port(),
        pid: std::process::id(),
        addresses,
    };
    let line = announcement.to_line().map_err(|error| anyhow!("{error}"))?;
    let mut stdout = std::io::stdout().lock();
    stdout
        .write_all(format!("{line}\n").as_bytes())
        .and_then(|()| stdout.flush())?;
    Ok(())
}

/// The addresses at which others may reach this host, best first.
fn own_addresses() -> Vec<IpAddr> {
    let mut found = Vec::new();
    // Interfaces that are up, loopback last: it serves those on the same host.
    if let Ok(interfaces) = nix::ifaddrs::getifaddrs() {
        for interface in interfaces {
            let Some(storage) = interface.address else {
                continue;
            };
            if let Some(v4) = storage.as_sockaddr_in() {
                found.push(IpAddr::V4(v4.ip()));
            }
        }
    }
    found.sort_by_key(IpAddr::is_loopback);
    found.dedup();
    found.truncate(sdm_core::limits::ADDRESSES_MAX);
    if found.is_empty() {
        found.push(IpAddr::V4(Ipv4Addr::LOCALHOST));
    }
    found
}

/// A server at work.
struct Server {
    driver: Driver<TcpTransport>,
    backend: Option<Box<dyn Backend>>,
    signals: SignalFd,
    /// The signals as the launcher left them, for the programs.
    inherited: SignalState,
    /// Why there is no backend although one was asked for.
    stopped: Option<Failure>,
    /// Who started this process.
    starter: Starter,
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
                    self.driver.flush();
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
                let tasks = self.driver.member().node().local().clone();
                match backend::make(&config.backend, &tasks, self.inherited.clone()) {
                    Ok(backend) => self.backend = Some(backend),
                    Err(failure) => self.stopped = Some(failure),
                }
            }
            Output::Execute { id, tasks, payload } => self.execute(now, id, &tasks, &payload),
            Output::CancelLocal(id) => {
                if let Some(backend) = &mut self.backend {
                    backend.cancel(now, id);
                }
            }
            Output::PauseOutput(paused) => {
                if let Some(backend) = &mut self.backend {
                    backend.set_output_paused(now, paused);
                }
            }
            Output::End(policy) => match &mut self.backend {
                Some(backend) => backend.shut_down(
                    now,
                    match policy {
                        message::EndPolicy::KillStarted => EndPolicy::KillStarted,
                        message::EndPolicy::Detach => EndPolicy::Detach,
                    },
                ),
                None => self
                    .driver
                    .with_member(|member, now| member.handle_local_down(now)),
            },
            Output::Refused { why } => tracing::warn!("{why}"),
            _ => {}
        }
    }

    fn execute(&mut self, now: Instant, id: CommandId, tasks: &IdSet, payload: &[u8]) {
        let failure = match (&mut self.backend, wire::decode(payload)) {
            (Some(backend), Ok(command)) => return backend.execute(now, id, tasks, command),
            (None, _) => self.stopped.clone().unwrap_or_else(|| {
                Failure::new(FailureCode::BadCommand, "the server has not been set up")
            }),
            (_, Err(error)) => Failure::new(FailureCode::BadCommand, error.to_string()),
        };
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
        let orphaned = self.starter.is_gone();
        while let Ok(Some(signal)) = self.signals.read_signal() {
            asked_to_end = true;
            // A launcher that lives ends its job; one that is gone leaves what runs without us.
            if let (false, Some(backend), Ok(number)) =
                (orphaned, &mut self.backend, i32::try_from(signal.ssi_signo))
            {
                backend.signal_left(number);
            }
        }
        if asked_to_end {
            let policy = message::EndPolicy::KillStarted;
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
            let transport = self.driver.transport();
            let result = match change {
                InterestChange::Watch {
                    fd,
                    readable,
                    writable,
                } => transport.watch(fd, readable, writable),
                InterestChange::Forget { fd } => {
                    transport.forget(fd);
                    Ok(())
                }
            };
            if let Err(error) = result {
                tracing::error!("watch a descriptor of the backend: {error}");
            }
        }
        while let Some(output) = backend.poll_output() {
            if self.alone {
                continue;
            }
            self.driver
                .with_member(|member, now| match backend::upward(output) {
                    Upward::Answer(id, tasks, status, payload) => {
                        member.handle_local(now, id, &tasks, status, payload);
                    }
                    Upward::Event(tasks, lane, payload) => {
                        member.handle_local_event(now, lane, &tasks, payload);
                    }
                });
        }
        if self.driver.member().node().is_ending() && backend.is_down() {
            self.driver
                .with_member(|member, now| member.handle_local_down(now));
        }
    }
}
