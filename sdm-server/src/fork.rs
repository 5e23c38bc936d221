//! Several servers of one machine from one process. It parses the arguments and detects the processor once,
//! then forks. That costs a fraction of executing the program again.
#![allow(unsafe_code)]

use std::os::fd::AsFd;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, fork, getpid, getppid, setsid};
use sdm_bootstrap::announce::Refusal;
use sdm_bootstrap::starter::Starter;
use sdm_core::ids::{Epoch, ServerId, SessionId};
use sdm_core::link::{Link, LinkConfig};
use sdm_core::secure::{Hello, Role, SessionKey};

/// The role of a process after the fork.
pub(crate) enum Part {
    /// The server with this index.
    Server(u32),
    /// The parent of the servers, with its exit code. All servers have ended, or the launcher has.
    Forker(u8),
}

/// Forks `count` servers with numbers from `first` on, and waits until all have ended. This process must
/// have one thread. The key in `config` is for the servers; this process wipes its copy.
///
/// # Errors
/// A process cannot be forked. Servers that were forked before end with this one.
pub(crate) fn fork_all(first: u32, count: u32, config: &mut LinkConfig) -> Result<Part> {
    nix::sys::prctl::set_pdeathsig(Signal::SIGTERM)
        .context("sdm-server: cannot watch the launcher")?;
    warm_up(config.session);
    let starter = Starter::now();
    let own = getpid();
    let mut servers = Vec::with_capacity(count as usize);
    for index in 0..count {
        // SAFETY: this process has one thread, so that the child finds every lock free and may do
        // whatever its parent may.
        let forked = unsafe { fork() };
        let server = first + index;
        match forked.with_context(|| format!("cannot fork server {server}"))? {
            ForkResult::Child => {
                be_a_server(own)?;
                return Ok(Part::Server(index));
            }
            ForkResult::Parent { child } => servers.push(child),
        }
    }
    config.key = nobodys_key();
    wait_for(first, &servers, starter)
}

/// A key of zeros. It replaces the session's key in this process once the servers have it.
fn nobodys_key() -> SessionKey {
    SessionKey::from_bytes([0; 32])
}

/// Puts this process in a session of its own, and requests a signal at its parent's end. A launcher does the same for
/// each process that it starts.
fn be_a_server(forker: Pid) -> Result<()> {
    setsid().context("sdm-server: cannot open a new session (setsid)")?;
    nix::sys::prctl::set_pdeathsig(Signal::SIGTERM)
        .context("sdm-server: cannot request a signal at the end of its parent process (prctl)")?;
    if getppid() != forker {
        bail!("sdm-server: the parent process has ended");
    }
    Ok(())
}

/// Waits for the end of all servers, and reports killed ones. If the launcher ends first, so does this
/// process.
fn wait_for(first: u32, servers: &[Pid], starter: Starter) -> Result<Part> {
    // A server may end before SIGCHLD is followed, so `waitpid` is tried before each wait.
    let told = starter.follow(&[Signal::SIGCHLD]);
    let told = told.context("sdm-server: cannot watch the launcher")?;
    let mut worst = 0;
    let mut left = servers.len();
    while left > 0 {
        match waitpid(None, Some(WaitPidFlag::WNOHANG))
            .context("sdm-server: cannot wait for child servers")?
        {
            WaitStatus::StillAlive => {
                let mut fds = [PollFd::new(told.as_fd(), PollFlags::POLLIN)];
                poll(&mut fds, PollTimeout::NONE)
                    .context("sdm-server: cannot wait for child servers")?;
                while let Ok(Some(_)) = told.read_signal() {}
                if starter.is_gone() {
                    return Ok(Part::Forker(1));
                }
                continue;
            }
            WaitStatus::Exited(_, 0) => {}
            WaitStatus::Exited(_, code) => worst = u8::try_from(code).unwrap_or(u8::MAX),
            WaitStatus::Signaled(pid, signal, _) => {
                let index = servers.iter().position(|server| *server == pid);
                let index = index.and_then(|index| u32::try_from(index).ok());
                let server = first + index.unwrap_or(0);
                let why = format!("server {server}: killed by {signal}");
                let refusal = Refusal::new(server, &why);
                crate::announce::say(&refusal.to_string())?;
            }
            _ => continue,
        }
        left -= 1;
    }
    Ok(Part::Forker(worst))
}

/// Runs a handshake with itself, so that all forked servers inherit what libraries detect about the processor at their
/// first use. It does not use the session's key: the ciphers would leave copies of the key in this process.
fn warm_up(session: SessionId) {
    let config = &LinkConfig::new(nobodys_key(), session);
    let now = Instant::now();
    let hello = |role| Hello {
        role,
        id: ServerId(0),
        expect: None,
        epoch: Epoch(0),
        incarnation: 0,
        build: String::new(),
        features: 0,
    };
    let mut parent = Link::initiate(now, config, hello(Role::Parent));
    let mut child = Link::respond(now, config, hello(Role::Child));
    let mut bytes = Vec::new();
    let mut goes_on = true;
    while goes_on {
        goes_on = false;
        for [from, to] in [[0, 1], [1, 0]] {
            let ends = [&mut parent, &mut child];
            bytes.clear();
            while ends[from].poll_transmit(&mut bytes) {}
            // The exchange only warms up the libraries. The servers would meet a failure themselves, so it
            // is ignored here.
            goes_on |= !bytes.is_empty() && ends[to].handle_bytes(now, &mut bytes).is_ok();
        }
    }
}
