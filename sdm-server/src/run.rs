//! The start of a server, and its event loop.

mod pmix_relay;
mod pmix_state;
mod shims;
mod spawned_programs;

use std::collections::HashMap;
use std::ffi::{CString, OsString};
use std::net::IpAddr;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use nix::sys::signal::Signal;
use nix::sys::signalfd::SignalFd;
use sdm_bootstrap::announce::{Announcement, Refusal};
use sdm_bootstrap::handover::{HandoverError, LOCAL_INDEX_VARIABLE, XSTATE_VARIABLE};
use sdm_bootstrap::starter::Starter;
use sdm_core::CommandId;
use sdm_core::driver::{DriverEvent, MemberDriver};
use sdm_core::ids::ServerId;
use sdm_core::link::LinkConfig;
use sdm_core::member::{Member, Output};
use sdm_core::message::Block;
use sdm_core::node::{LocalTasks, Node};
use sdm_core::transport::reversed::Reversed;
use sdm_core::transport::{
    ConnectionString, HostTransport, Transport as _, own_addresses, shaped_socket::Shaped,
    tcp::TcpTransport,
};
use sdm_debug::{BackendOutput, EndPolicy, Failure, GdbOptions, InterestChange, LauncherDuties};
use sdm_idset::IdSet;
use sdm_system::launcher_env::Identity;

use crate::announce::say;
use crate::arguments::Arguments;
use crate::backend::{Inherited, start_config};
use crate::fork::{Part, fork_all};
use crate::network;
use crate::outbox::{Outbox, ParentMessage};
use crate::pmix_state::PmixState;
use crate::shim::{self, Role, ShimListener};
use crate::staged_binary::Copy;

/// Runs the server until the session and the detached programs have ended. Returns the exit code of the
/// programs, so that the launcher sees the same as without a debugger.
///
/// # Errors
/// The identity, the key or a port is missing. The error names the server and the reason.
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
    // Checked before forking, so that a failure is reported once.
    let inherited =
        Inherited::take(arguments.own_streams).context("cannot use the standard streams");
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
    // Recorded before any slow step. A forked server has another parent.
    let starter = Starter::now();
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
        let inherited = inherited?.with_completion(lookup(XSTATE_VARIABLE))?;
        begin(&arguments, identity, config, inherited, copy, starter)
    });
    match came_up {
        Ok(StartRole::Server(server)) => server.run(),
        Ok(StartRole::Shim(code)) => Ok(code),
        Err(error) => {
            // Where the launcher ends only when all servers have ended, the failure would not be noticed
            // otherwise.
            let why = format!("{error:#}");
            say(&Refusal::new(identity.server, &why).to_string())?;
            Err(error)
        }
    }
}

/// The role that this process has taken at its start.
enum StartRole {
    Server(Box<Server>),
    /// This process was a shim, which has ended with this exit code.
    Shim(u8),
}

/// Takes the role of this process: a server, or a shim. A shim runs in this function until its end.
fn begin(
    arguments: &Arguments,
    identity: Identity,
    config: LinkConfig,
    inherited: Inherited,
    copy: Copy,
    starter: Starter,
) -> Result<StartRole> {
    let Some(each) = arguments.share else {
        let starter = Some(starter);
        let server = come_up(arguments, identity, config, inherited, copy, starter)?;
        return Ok(StartRole::Server(Box::new(server)));
    };
    let wait = Duration::from_secs(arguments.start_wait);
    match shim::meet(each, &identity, &host_name(arguments)?, &config, wait)? {
        Role::Shim(channel) => {
            // A shim sends nothing that needs the key.
            drop(config);
            let gdb = start_config(GdbOptions::default(), &IdSet::new(), &inherited);
            let code = shim::be_a_shim(channel, identity.server, gdb, copy, starter, wait)?;
            Ok(StartRole::Shim(code))
        }
        Role::Server(listener) => {
            let inherited = inherited.without_streams();
            let mut server = come_up(arguments, identity, config, inherited, copy, None)?;
            let logs = tracing::dispatcher::has_been_set();
            shim::leave_streams(logs).context("cannot close the standard streams")?;
            server.listen_for_shims(listener)?;
            Ok(StartRole::Server(Box::new(server)))
        }
    }
}

/// Listens, and announces the address of this server. The server ends with its `starter`, if it has one.
fn come_up(
    arguments: &Arguments,
    identity: Identity,
    config: LinkConfig,
    inherited: Inherited,
    copy: Copy,
    starter: Option<Starter>,
) -> Result<Server> {
    let me = ServerId(identity.server);
    // Many servers have the same command line, and only root can read the environment of a process that
    // allows no core file. The name tells them apart.
    let name = CString::new(format!("sdm-srv-{}", identity.server)).context("a name")?;
    nix::sys::prctl::set_name(&name)
        .with_context(|| format!("{me}: cannot set the process name"))?;
    // The signals are read from a descriptor. SIGCONT on the launcher's death also wakes a stopped server,
    // which then ends.
    let ends = [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP];
    let signals = match starter {
        Some(starter) => starter.follow(&ends),
        None => Starter::nobody(&ends),
    };
    let signals = signals.with_context(|| format!("{me}: cannot watch the launcher"))?;
    let mut sockets =
        TcpTransport::new().with_context(|| format!("{me}: cannot open an event loop"))?;
    if let Some(ssh) = &inherited.ssh {
        sockets.set_ssh(ssh.clone());
    }
    sockets.set_session(&config);
    let mut transport = Shaped::new(sockets);
    if let Some(shape) = arguments.shape {
        transport
            .set_shape(shape)
            .with_context(|| format!("{me}: cannot set a timer"))?;
    }
    let ports = arguments.port.search(identity.local_index.unwrap_or(0));
    let interface = arguments.interface.as_ref();
    let (port, addresses) = match arguments.call[..] {
        [] => network::listen(&mut transport, arguments.bind, interface, ports)
            .with_context(|| me.to_string())?,
        _ => (0, own_addresses(None)?),
    };
    if arguments.transport == HostTransport::Unix && arguments.call.is_empty() {
        // Where this cannot be, there is TCP.
        let beside = transport.listen(&ConnectionString::local(me), 1);
        if let Err(error) = beside {
            tracing::warn!("{error}");
        }
    }
    let mut transport = Reversed::new(transport);
    if !arguments.call.is_empty() {
        transport.call(config.clone(), me, arguments.call.clone());
    }
    let host = host_name(arguments)?;
    tracing::info!(pid = std::process::id(), %host, port, "started");
    announce(identity.server, host, port, addresses)
        .with_context(|| format!("{me}: cannot print the announcement"))?;
    let deadline = Instant::now() + Duration::from_secs(arguments.start_wait);
    let node = Node::new(me, sdm_debug::rules::rule, deadline);
    transport
        .inner()
        .sockets()
        .watch(signals.as_raw_fd(), true, false)
        .with_context(|| format!("{me}: cannot watch signals"))?;
    let link = Arc::new(config);
    Ok(Server {
        driver: MemberDriver::new(Member::new(node, link.clone()), transport),
        link,
        backend: None,
        signals,
        inherited,
        stopped: None,
        starter,
        copy,
        alone: false,
        shims: None,
        hosted: PmixState::default(),
        paused: false,
    })
}

/// The name of this host for other members.
fn host_name(arguments: &Arguments) -> Result<String> {
    if let Some(name) = &arguments.host_name {
        return Ok(name.clone());
    }
    // Slurm may call a node otherwise than the node itself does.
    let host = match std::env::var_os("SLURMD_NODENAME") {
        Some(node) => node,
        None => nix::unistd::gethostname().context("cannot get the host name")?,
    };
    Ok(host.to_string_lossy().into_owned())
}

/// Announces this server's address, in one line on standard output.
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

/// A running server.
struct Server {
    driver: MemberDriver<Reversed<Shaped>>,
    /// The configuration of this server's links, with the session's name and key.
    link: Arc<LinkConfig>,
    backend: Option<Box<dyn LauncherDuties>>,
    signals: SignalFd,
    /// The state inherited from the launcher that is meant for the programs.
    inherited: Inherited,
    /// The reason for which there is no backend although one was requested; otherwise `None`.
    stopped: Option<Failure>,
    /// The process that started this one; `None` if this process does not end with it.
    starter: Option<Starter>,
    /// The copied program file of this process, if there is one that must be removed.
    copy: Copy,
    /// True if the session is over and detached programs still run.
    alone: bool,
    /// The listener for shims; `None` once the server has its tasks.
    shims: Option<ShimListener>,
    /// The PMIx server of this node, if there is one, and work that waits for it.
    hosted: PmixState,
    /// True while output of the programs is held back.
    paused: bool,
}

impl Server {
    /// Ends this server alone: its programs are killed if they were started here, else detached. Its children find
    /// another parent.
    fn leave(&mut self) {
        let policy = EndPolicy::KillStarted;
        self.driver
            .with_member(|member, now| member.leave(now, policy));
    }

    fn run(mut self) -> Result<u8> {
        loop {
            let is_leaving = self.backend.as_ref().is_some_and(|it| it.is_leaving());
            if self.alone && !is_leaving {
                if let Some(backend) = &mut self.backend {
                    backend.dismiss();
                }
                let code = self.backend.as_ref().and_then(|b| b.left_code());
                return Ok(code.map_or(0, |code| u8::try_from(code).unwrap_or(u8::MAX)));
            }
            let timeout = self
                .backend
                .as_ref()
                .and_then(|backend| backend.poll_timeout());
            let timeout = timeout.into_iter().chain(self.hosted.deadline()).min();
            let mut tasks = self.hosted.tasks(&mut self.backend, &self.stopped);
            let event = self.driver.next_with(timeout, Some(&mut tasks));
            let event = event.context("cannot wait for events")?;
            let now = Instant::now();
            match event {
                Some(DriverEvent::Output(Output::Ended)) => {
                    tracing::info!("the session has ended for this server");
                    self.driver.flush();
                    self.driver.transport().stop_calling();
                    self.alone = true;
                    self.give_up_meeting();
                    if let Some(backend) = &mut self.backend {
                        // The tasks' output has no reader any more, so it is read without waiting for credit.
                        backend.set_output_paused(now, false);
                    }
                }
                Some(DriverEvent::Output(output)) => self.handle_output(now, output),
                Some(DriverEvent::Ready(fd)) => {
                    self.handle_ready(now, fd);
                    // Answers that several tasks give at once are sent up together.
                    while let Some(fd) = self.driver.next_ready() {
                        self.handle_ready(now, fd);
                    }
                }
                Some(DriverEvent::Woken) | None => {}
            }
            if let Some(backend) = &mut self.backend
                && backend.poll_timeout().is_some_and(|at| at <= now)
            {
                backend.handle_timeout(now);
            }
            self.handle_pmix_timeout(now);
            self.drain_backend();
        }
    }

    fn handle_output(&mut self, now: Instant, output: Output) {
        match output {
            Output::Configure(config) => {
                // All started servers have arrived by now.
                self.copy.remove();
                self.configure(&config.backend);
            }
            Output::Execute { id, tasks, payload } => self.execute(now, id, &tasks, &payload),
            Output::CancelLocal(id) => {
                tracing::info!(command = %id, "given up");
                if let Some(backend) = &mut self.backend {
                    backend.cancel(now, id);
                }
                self.cancel_waiting(id);
            }
            Output::PauseOutput(paused) => {
                self.paused = paused;
                if let Some(backend) = &mut self.backend {
                    backend.set_output_paused(now, paused);
                }
            }
            Output::End(policy) => {
                tracing::info!(?policy, "ends");
                self.shut_down(now, policy);
            }
            Output::Exchanged { id, outcome } => self.end_meeting(&id, outcome),
            Output::Datagram(letter) => self.take_letter(letter),
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
        let mut own = self.hosted.tasks(&mut self.backend, &self.stopped);
        if let Some((status, payload)) = own.execute(now, id, tasks, payload) {
            self.driver.with_member(|member, now| {
                member.handle_local(now, id, tasks, status, payload);
            });
        }
    }

    fn handle_ready(&mut self, now: Instant, fd: RawFd) {
        if fd != self.signals.as_raw_fd() {
            if self.shims.as_ref().is_some_and(|shims| shims.holds(fd)) {
                return self.meet_shims();
            }
            if self.hosted.holds(fd) {
                return self.hear_pmix();
            }
            if let Some(backend) = &mut self.backend {
                backend.handle_ready(now, fd);
            }
            return;
        }
        let mut asked_to_end = false;
        while let Ok(Some(signal)) = self.signals.read_signal() {
            let orphaned = self.starter.is_some_and(Starter::is_gone);
            let is_told = i32::try_from(signal.ssi_signo) == Ok(Signal::SIGCONT as i32);
            if is_told && !orphaned {
                continue;
            }
            tracing::info!(
                signal = signal.ssi_signo,
                orphaned,
                "the server was asked to end"
            );
            asked_to_end = true;
            // A living launcher ends its whole job. If the launcher is gone, the remaining tasks continue
            // without this server.
            if let (false, Some(backend), Ok(number)) =
                (orphaned, &mut self.backend, i32::try_from(signal.ssi_signo))
            {
                backend.signal_left(number);
            }
        }
        if asked_to_end {
            self.leave();
        }
    }

    /// Drains the outputs of the backend, and its changes of watched descriptors.
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
                tracing::error!("cannot watch a file descriptor of the backend: {error}");
            }
        }
        let outputs: Vec<_> = std::iter::from_fn(|| backend.poll_output()).collect();
        self.take_outputs(outputs);
        let Some(backend) = &self.backend else {
            return;
        };
        let is_deserted = backend.is_deserted();
        let is_down = backend.is_down();
        if is_deserted && !self.driver.member().node().is_ending() {
            return self.leave();
        }
        if self.driver.member().node().is_ending() && is_down {
            self.driver
                .with_member(|member, now| member.handle_local_down(now));
        }
    }

    /// Sends the outputs of the backend to the parent, all in one write.
    fn take_outputs(&mut self, outputs: Vec<BackendOutput>) {
        let outputs = self.sort_out(outputs);
        let mut said = Outbox::default();
        if !self.alone {
            outputs.into_iter().for_each(|it| said.add(it));
        }
        if !said.is_empty() {
            self.driver.with_member(|member, now| {
                for upward in said {
                    match upward {
                        ParentMessage::Answer(id, Block { status, sources, payload }) => {
                            tracing::info!(command = id.0, tasks = %sources, "answered: {status:?}");
                            member.handle_local(now, id, &sources, status, payload);
                        }
                        ParentMessage::Event(tasks, lane, payload) => {
                            member.handle_local_event(now, lane, &tasks, payload);
                        }
                    }
                }
            });
        }
    }
}
