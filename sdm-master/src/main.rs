//! The master: the root of the tree of servers. It connects to the front-end, reaches its
//! children, and passes commands down and merged answers up until the session ends.

use std::io::Write;
use std::os::fd::{AsFd, AsRawFd};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use clap::Parser;
use nix::sys::signalfd::SignalFd;
use sdm_bootstrap::log::LogWriter;
use sdm_bootstrap::starter::Starter;
use sdm_bootstrap::{Complaints, arguments, escape_panics};
use sdm_core::driver::{DriverEvent, MemberDriver};
use sdm_core::ids::ServerId;
use sdm_core::member::{Member, Output};
use sdm_core::node::Node;
use sdm_core::transport::{
    ConnectionString, Shape, reversed::Reversed, shaped_socket::Shaped, tcp, tcp::TcpTransport,
};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt;
use tracing_subscriber::prelude::*;

/// Time limit for the front-end to accept the master and send it the plan.
const START_WAIT: Duration = Duration::from_secs(600);

/// The master process of an SDM session. It is started by `sdm`; the session's name and key come
/// in the environment.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    /// The address of the front-end, for example tcp://127.0.0.1:40311 or tcp://login1:40311
    front_end: ConnectionString,
    /// The file with the session's name and key, which only you may read; `-` for standard
    /// input; the environment where absent
    #[arg(long, value_name = "FILE")]
    handover: Option<PathBuf>,
    /// Standard input is a socket that listens, at which the servers call: nobody connects to them
    #[arg(long, conflicts_with = "handover")]
    reverse_listener: bool,
    /// Latency and bandwidth of connections to servers, to emulate a network
    #[arg(long, value_name = "SHAPE")]
    shape: Option<Shape>,
}

fn main() -> ExitCode {
    escape_panics();
    let starter = Starter::now();
    let served = serve(starter);
    if let Err(error) = &served
        && !starter.is_gone()
    {
        // A failed write is ignored: standard error is not read any more.
        let _ = writeln!(Complaints, "Error: {error:?}");
    }
    served.map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS)
}

fn serve(starter: Starter) -> Result<()> {
    let filter = std::env::var(sdm_bootstrap::handover::LOG_VARIABLE);
    let arguments: Arguments = arguments();
    // Before the key is in memory: no core file of this process, and no other process of the user looks in.
    nix::sys::prctl::set_dumpable(false)
        .context("sdm-master: cannot exclude the memory of this process from core files")?;
    let handed_over = sdm_bootstrap::handover::take(arguments.handover.as_deref());
    if let Ok(filter) = filter {
        let filter: Targets = filter.parse().context("sdm-master: SDM_LOG is invalid")?;
        let log = fmt::layer().with_writer(LogWriter::direct).with_ansi(false);
        tracing_subscriber::registry().with(log).with(filter).init();
    }
    let config = handed_over.context("sdm-master")?;
    let _session = tracing::info_span!("master", session = %config.session).entered();
    let told = starter.follow(&[]);
    let told = told.context("sdm-master: cannot watch its parent process")?;
    // A flat tree has a connection per server here. No program that is started here inherits the limit.
    if let Err(error) = sdm_system::resource_limits::raise_open_files() {
        tracing::warn!("cannot raise the limit of open files: {error}");
    }
    let rules = sdm_debug::rules::rule;
    let node = Node::new(ServerId::MASTER, rules, Instant::now() + START_WAIT);
    let mut sockets = TcpTransport::new().context("sdm-master: cannot open an event loop")?;
    if let Some(ssh) = sdm_system::files::search("ssh") {
        sockets.set_ssh(ssh);
    }
    sockets.set_session(&config);
    let mut transport = Reversed::new(Shaped::new(sockets));
    if arguments.reverse_listener {
        let socket = std::io::stdin().as_fd().try_clone_to_owned();
        let sockets = transport.inner().sockets();
        let listening = socket.and_then(|socket| sockets.listen_on(socket.into()));
        listening.context("sdm-master: cannot listen on standard input")?;
        transport.listen_for_callers(config.clone());
    }
    let mut driver = MemberDriver::new(Member::new(node, Arc::new(config)), transport);
    let sockets = driver.transport().inner().sockets();
    let watched = sockets.watch(told.as_raw_fd(), true, false);
    watched.context("sdm-master: cannot receive signals")?;
    let places = tcp::resolve(&arguments.front_end)
        .context("sdm-master: cannot resolve the address of sdm")?;
    let reached = driver.reach_front_end(&places, || !starter.is_gone());
    let reached = reached.context("sdm-master: cannot wait for events")?;
    reached.map_err(|error| anyhow!("sdm-master: {error}"))?;
    if let Some(shape) = arguments.shape {
        let shaped = driver.transport().inner().set_shape(shape);
        shaped.context("sdm-master: cannot set a timer")?;
    }
    let pid = std::process::id();
    tracing::info!(pid, front_end = %arguments.front_end, "started");
    run(&mut driver, starter, &told)
}

fn run(
    driver: &mut MemberDriver<Reversed<Shaped>>,
    starter: Starter,
    told: &SignalFd,
) -> Result<()> {
    loop {
        let event = driver
            .next(None)
            .context("sdm-master: cannot wait for events")?;
        match event {
            Some(DriverEvent::Output(Output::End(_))) => {
                driver.with_member(|member, now| member.handle_local_down(now));
            }
            Some(DriverEvent::Output(Output::Ended)) => {
                driver.flush();
                let parent_loss = driver.member().node().parent_loss();
                return match parent_loss.filter(|_| !starter.is_gone()) {
                    Some(why) => Err(anyhow!(
                        "sdm-master: the connection to sdm has ended: {why}"
                    )),
                    None => Ok(()),
                };
            }
            Some(DriverEvent::Output(Output::Refused { why })) => tracing::warn!("{why}"),
            Some(DriverEvent::Ready(_)) => {
                while let Ok(Some(_)) = told.read_signal() {}
                // Servers learn of the launcher's death by themselves, or by the end of their parent.
                if starter.is_gone() {
                    return Ok(());
                }
            }
            _ => {}
        }
    }
}
