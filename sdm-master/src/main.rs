//! The master: the root of the tree of servers. It connects to the front-end, reaches its
//! children, and passes commands down and merged answers up until the session ends.

use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::Parser;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use sdm_core::driver::{Driver, DriverEvent};
use sdm_core::ids::ServerId;
use sdm_core::member::{Member, Output};
use sdm_core::node::Node;
use sdm_core::transport::{
    ConnectionString, Shape, reversed::Reversed, shaped::Shaped, tcp::TcpTransport,
};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt;
use tracing_subscriber::prelude::*;

/// How long the front-end may take to accept the master and send it the plan.
const START_WAIT: Duration = Duration::from_secs(600);

/// The master process of an SDM session. It is started by `sdm`; the session's name and key come
/// in the environment.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    /// Where the front-end listens, for example tcp://127.0.0.1:40311
    front_end: ConnectionString,
    /// Where the session's name and key are: a file that only you may read, `-` for standard
    /// input; the environment where absent
    #[arg(long, value_name = "FILE")]
    handover: Option<PathBuf>,
    /// Standard input is a socket that listens, at which the servers call: nobody connects to them
    #[arg(long, conflicts_with = "handover")]
    desk: bool,
    /// How slow connections to servers are made, for trying out a network
    #[arg(long, value_name = "SHAPE")]
    shape: Option<Shape>,
}

fn main() -> Result<()> {
    let filter = std::env::var(sdm_core::handover::LOG_VARIABLE);
    let arguments = Arguments::parse();
    let handed_over = sdm_core::handover::take(arguments.handover.as_deref());
    if let Ok(filter) = filter {
        // Never on stdout: it carries the announcement.
        let filter: Targets = filter.parse().context("sdm-master: SDM_LOG")?;
        let log = fmt::layer().with_writer(std::io::stderr).with_ansi(false);
        tracing_subscriber::registry().with(log).with(filter).init();
    }
    let config = handed_over.context("sdm-master")?;
    // The key is in memory: no core file of this process, and no other process of the user looks in.
    nix::sys::prctl::set_dumpable(false).context("sdm-master: keep out of core files")?;
    nix::sys::prctl::set_pdeathsig(nix::sys::signal::Signal::SIGTERM)
        .context("sdm-master: ask to be told of the front-end's death")?;
    allow_many_children();
    let rules = sdm_debug::rules::rule;
    let node = Node::new(ServerId::MASTER, rules, Instant::now() + START_WAIT);
    let sockets = TcpTransport::new().context("sdm-master: open an event loop")?;
    let mut transport = Reversed::new(Shaped::new(sockets));
    if arguments.desk {
        let socket = std::io::stdin().as_fd().try_clone_to_owned();
        let sockets = transport.inner().sockets();
        let listening = socket.and_then(|socket| sockets.listen_on(socket.into()));
        listening.context("sdm-master: listen at standard input")?;
        transport.open_desk(config.clone());
    }
    let mut driver = Driver::new(Member::new(node, Arc::new(config)), transport);
    driver.connect_front_end(&arguments.front_end);
    if let Some(shape) = arguments.shape {
        let shaped = driver.transport().inner().set_shape(shape);
        shaped.context("sdm-master: set a timer")?;
    }
    run(&mut driver)
}

/// A flat tree has a connection for each server here. Nothing is started from this process that
/// could find the limit changed; where it cannot be raised, connections fail and say so.
fn allow_many_children() {
    if let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE)
        && soft < hard
        && let Err(error) = setrlimit(Resource::RLIMIT_NOFILE, hard, hard)
    {
        tracing::warn!("raise the limit of descriptors from {soft} to {hard}: {error}");
    }
}

fn run(driver: &mut Driver<Reversed<Shaped>>) -> Result<()> {
    loop {
        let event = driver.next(None).context("sdm-master: wait for events")?;
        match event {
            Some(DriverEvent::Output(Output::End(_))) => {
                driver.with_member(|member, now| member.handle_local_down(now));
            }
            Some(DriverEvent::Output(Output::Ended)) => {
                driver.flush();
                return Ok(());
            }
            Some(DriverEvent::Output(Output::Refused { why })) => tracing::warn!("{why}"),
            _ => {}
        }
    }
}
