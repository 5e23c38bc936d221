//! A shim: the process that a launcher starts for one rank if several ranks of a host share a server. It connects to
//! the server, or forks it, and stays until the end of the session.
//!
//! All ranks of one server belong to the same session, user and set of namespaces. The abstract socket name is derived
//! from these and from the session key, so other processes cannot guess it. Processes of other users are refused.
#![allow(unsafe_code)]

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::Signal;
use nix::sys::signalfd::SignalFd;
use nix::sys::socket::{
    AddressFamily, Backlog, SockFlag, SockType, UnixAddr, accept4, bind, connect, listen, socket,
};
use nix::unistd::{ForkResult, dup2_stderr, dup2_stdin, dup2_stdout, fork, getuid, setsid};
use sdm_bootstrap::joined::Joined;
use sdm_bootstrap::starter::Starter;
use sdm_child::{Channel, Shim, ShimEvent, StartConfig};
use sdm_core::link::LinkConfig;
use sdm_core::transport::shared_name;
use sdm_idset::{IdSet, TaskId};
use sdm_system::launcher_env::Identity;
use sdm_system::proc;

use crate::announce::say;
use crate::staged_binary::Copy;

/// Interval between checks while a server begins to listen, or while this process has no free descriptor.
const LOOK_AGAIN: Duration = Duration::from_millis(2);
/// Time limit for a gdb to end by itself after its server is lost.
const GDB_WAIT: Duration = Duration::from_secs(12);
/// Time limit for a server to confirm a signal that was passed to it. A stopped server does not confirm.
const HEARD_WAIT: Duration = Duration::from_secs(3);
/// Maximum number of shims of one server, including connections that have not sent their rank.
const SHIMS_MAX: usize = 1024;

/// The role of this process.
pub(crate) enum Role {
    /// A shim, which is connected to its server.
    Shim(Channel),
    /// The server, which listens for shims here.
    Server(ShimListener),
}

/// Finds or forks the server of up to `each` ranks of this `host`, including this rank. A shim does not need the key in
/// `config` after this call.
///
/// # Errors
/// A system call failed, or no server listens there within `wait`.
pub(crate) fn meet(
    each: u32,
    identity: &Identity,
    host: &str,
    config: &LinkConfig,
    wait: Duration,
) -> Result<Role> {
    let index = identity.local_index.unwrap_or(identity.server) / each.max(1);
    let name = shared_name(config, &surroundings(&format!("ranks {host} {index}"))?);
    let address = UnixAddr::new_abstract(name.as_bytes())
        .context("the name of the socket at which the ranks of this host meet is invalid")?;
    let deadline = Instant::now() + wait;
    loop {
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let socket = socket(AddressFamily::Unix, SockType::SeqPacket, flags, None)
            .context("cannot create a socket")?;
        match bind(socket.as_raw_fd(), &address) {
            Ok(()) => {
                let backlog = Backlog::new(4096).unwrap_or(Backlog::MAXCONN);
                listen(&socket, backlog).context("cannot listen for ranks of this host")?;
                if let Some(listener) = fork_server(socket)? {
                    return Ok(Role::Server(listener));
                }
                continue;
            }
            Err(Errno::EADDRINUSE) => {}
            Err(error) => {
                return Err(error).context("cannot accept connections of ranks of this host");
            }
        }
        match connect(socket.as_raw_fd(), &address) {
            Ok(()) => {
                let channel = Channel::new(socket).context(
                    "sdm-shim: cannot use its connection to the sdm-server of this host's ranks",
                )?;
                return Ok(Role::Shim(channel));
            }
            // The server's socket is bound but not listening yet, or its backlog is full.
            Err(Errno::ECONNREFUSED | Errno::EAGAIN) if Instant::now() < deadline => {
                std::thread::sleep(LOOK_AGAIN);
            }
            Err(error) => {
                return Err(error).context("cannot connect to the sdm-server of this host's ranks");
            }
        }
    }
}

/// Identifies the processes that may share the resource `what`: those of this user in the same namespaces. It does not
/// include the host's name: a runtime can have several nodes on one host. A caller for which the node matters puts the
/// node's name into `what`.
pub(crate) fn surroundings(what: &str) -> Result<Vec<u8>> {
    let mut detail = format!("{what} {}", getuid());
    for namespace in ["pid", "mnt", "user", "net"] {
        // Read by this process and not by the server, because other processes may not inspect this one.
        let path = proc::own().path(&format!("ns/{namespace}"));
        let found = fs::metadata(&path)
            .with_context(|| format!("cannot read the {namespace} namespace"))?;
        detail.push_str(&format!(" {}:{}", found.dev(), found.ino()));
    }
    Ok(detail.into_bytes())
}

/// Forks the server, which belongs to no rank. Of the launcher's descriptors it keeps only the standard streams. It has
/// a session of its own, so that signals to the launcher's process group do not reach it. Returns the listener in the
/// server process, and `None` in this one.
fn fork_server(socket: OwnedFd) -> Result<Option<ShimListener>> {
    // SAFETY: this process has one thread, so that the child finds every lock free and may do whatever its parent may.
    match unsafe { fork() }.context("cannot fork the sdm-server of this host's ranks")? {
        ForkResult::Parent { .. } => Ok(None),
        ForkResult::Child => {
            setsid().context("sdm-server: cannot open a new session (setsid)")?;
            // SAFETY: nothing in this process refers to what the launcher gave the rank.
            unsafe { sdm_system::close_all_but(socket.as_fd(), 3) };
            Ok(Some(ShimListener::new(socket)))
        }
    }
}

/// Closes the standard streams, because the launcher waits for their end. With `logs`, standard error is
/// kept.
pub(crate) fn leave_streams(logs: bool) -> io::Result<()> {
    let nothing = fs::File::options()
        .read(true)
        .write(true)
        .open("/dev/null")?;
    dup2_stdin(&nothing)?;
    dup2_stdout(&nothing)?;
    if !logs {
        dup2_stderr(&nothing)?;
    }
    Ok(())
}

/// The listener for shims, until the server gets its tasks.
pub(crate) struct ShimListener {
    socket: OwnedFd,
    /// Connections of shims that have not sent their rank.
    unknown: Vec<Channel>,
    known: BTreeMap<u32, Channel>,
}

impl ShimListener {
    fn new(socket: OwnedFd) -> Self {
        Self {
            socket,
            unknown: Vec::new(),
            known: BTreeMap::new(),
        }
    }

    pub(crate) fn fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    /// True for a descriptor of the listener or of a shim.
    pub(crate) fn holds(&self, fd: RawFd) -> bool {
        let mut channels = self.unknown.iter().chain(self.known.values());
        fd == self.fd() || channels.any(|it| it.fd() == fd)
    }

    /// Handles new and closed connections. Returns the descriptors to watch from now on, and those to stop
    /// watching.
    pub(crate) fn handle_ready(&mut self, server: u32) -> (Vec<RawFd>, Vec<RawFd>) {
        let (mut new, mut gone) = (Vec::new(), Vec::new());
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        while let Ok(fd) = accept4(self.socket.as_raw_fd(), flags) {
            // SAFETY: the kernel has just given it to this process.
            let socket: OwnedFd = unsafe { std::os::fd::FromRawFd::from_raw_fd(fd) };
            if self.unknown.len() + self.known.len() >= SHIMS_MAX {
                continue;
            }
            match Channel::new(socket) {
                Ok(channel) => {
                    new.push(channel.fd());
                    self.unknown.push(channel);
                }
                Err(error) => tracing::warn!("the connection of a rank was refused: {error}"),
            }
        }
        for mut channel in std::mem::take(&mut self.unknown) {
            match channel.hello() {
                Ok(None) => self.unknown.push(channel),
                Ok(Some(rank)) if !self.known.contains_key(&rank) => {
                    match channel.welcome(server) {
                        Ok(()) => drop(self.known.insert(rank, channel)),
                        Err(_) => gone.push(channel.fd()),
                    }
                }
                Ok(Some(rank)) => {
                    tracing::warn!(rank, "came twice");
                    gone.push(channel.fd());
                }
                Err(_) => gone.push(channel.fd()),
            }
        }
        // A process that sends data before it is asked, or hangs up, is not waited for.
        self.known.retain(|_, channel| {
            let stays = matches!(channel.hello(), Ok(None));
            if !stays {
                gone.push(channel.fd());
            }
            stays
        });
        (new, gone)
    }

    /// True if no shim is connected.
    pub(crate) fn is_empty(&self) -> bool {
        self.unknown.is_empty() && self.known.is_empty()
    }

    /// All descriptors of the listener and of shims, which need not be watched any more.
    pub(crate) fn fds(&self) -> Vec<RawFd> {
        let channels = self.unknown.iter().chain(self.known.values());
        std::iter::once(self.fd())
            .chain(channels.map(Channel::fd))
            .collect()
    }

    /// Returns the connections to the shims of these tasks, each with its task, and closes all other connections.
    pub(crate) fn into_shims(mut self, tasks: &IdSet) -> Vec<(TaskId, Channel)> {
        let own = tasks
            .iter()
            .filter_map(|task| Some((task, self.known.remove(&task.0)?)));
        own.collect()
    }
}

/// Runs as the shim of a rank until the end of the session. Returns the exit code.
///
/// # Errors
/// No server accepts this process, or the server ends before the job begins, or the name or signals of this process
/// cannot be set.
pub(crate) fn be_a_shim(
    channel: Channel,
    rank: u32,
    config: StartConfig,
    copy: Copy,
    starter: Starter,
    wait: Duration,
) -> Result<u8> {
    let name = std::ffi::CString::new(format!("sdm-shim-{rank}")).context("a name")?;
    nix::sys::prctl::set_name(&name).context("cannot set the process name")?;
    let signals = starter.follow(&[Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP]);
    let signals = signals.context("cannot watch the launcher")?;
    let shim = Shim::new(channel, rank, config)
        .context("sdm-shim: cannot use its connection to the sdm-server of this host's ranks")?;
    let process = ShimProcess {
        shim,
        rank,
        copy,
        signals,
        starter,
        is_served: true,
        last_moment: Some(Instant::now() + wait),
        is_taken_in: false,
        has_begun: false,
        asked_by: None,
    };
    process.run()
}

/// A running shim.
struct ShimProcess {
    shim: Shim,
    rank: u32,
    /// The copied program file of this process, if there is one that must be removed.
    copy: Copy,
    signals: SignalFd,
    starter: Starter,
    /// True while the server is connected.
    is_served: bool,
    /// Time limit of the current wait; `None` if there is none.
    last_moment: Option<Instant>,
    /// True once the server has accepted this shim's rank.
    is_taken_in: bool,
    /// True once the server has requested the start of the program.
    has_begun: bool,
    /// The signal by which the launcher has asked this shim to end; `None` before.
    asked_by: Option<i32>,
}

impl ShimProcess {
    fn run(mut self) -> Result<u8> {
        loop {
            let told = self.wait()?;
            if told && let Some(code) = self.take_signals() {
                return Ok(code);
            }
            for event in self.shim.handle_ready() {
                match event {
                    ShimEvent::Welcome(server) => {
                        self.is_taken_in = true;
                        self.last_moment = None;
                        let (rank, pid) = (self.rank, std::process::id());
                        say(&Joined { rank, server, pid }.to_string())?;
                    }
                    // All started processes have arrived by now.
                    ShimEvent::Begins => {
                        self.has_begun = true;
                        self.copy.remove();
                    }
                    ShimEvent::Sleeps => give_back_memory(),
                    ShimEvent::Heard => self.last_moment = None,
                    ShimEvent::End(code) => return Ok(code),
                    ShimEvent::ServerGone if self.is_served => self.lose_server()?,
                    ShimEvent::ServerGone => {}
                }
            }
            if let Some(code) = self.is_over()? {
                return Ok(code);
            }
        }
    }

    /// Waits for an event of the server, the program or a signal. Returns true if signals are pending.
    fn wait(&self) -> Result<bool> {
        let soon = self.shim.looks_again().then(|| Instant::now() + LOOK_AGAIN);
        let until = soon.into_iter().chain(self.last_moment).min();
        let timeout = match until.map(|it| it.saturating_duration_since(Instant::now())) {
            // Rounded up, so that the deadline has passed when `poll` returns.
            Some(left) => PollTimeout::try_from(left + Duration::from_millis(1)),
            None => Ok(PollTimeout::NONE),
        };
        let fds = self.shim.fds();
        let mut polled = vec![PollFd::new(self.signals.as_fd(), PollFlags::POLLIN)];
        for (index, fd) in fds.iter().enumerate() {
            let mut flags = PollFlags::POLLIN;
            match index {
                // The server is gone: this descriptor delivers nothing more.
                0 if !self.is_served => continue,
                0 if self.shim.wants_write() => flags |= PollFlags::POLLOUT,
                _ => {}
            }
            polled.push(PollFd::new(*fd, flags));
        }
        match poll(&mut polled, timeout.unwrap_or(PollTimeout::MAX)) {
            Ok(_) | Err(Errno::EINTR) => Ok(polled[0].any().unwrap_or(false)),
            Err(error) => Err(anyhow!("cannot wait for events: {error}")),
        }
    }

    /// Forwards the launcher's request to end to the server. Returns the exit code if there is nothing to wait for,
    /// otherwise `None`.
    fn take_signals(&mut self) -> Option<u8> {
        while let Ok(Some(signal)) = self.signals.read_signal() {
            let orphaned = self.starter.is_gone();
            let number = i32::try_from(signal.ssi_signo).unwrap_or(0);
            // A signal that continues this process is meant for the server, too.
            self.shim.resume_server();
            if number == Signal::SIGCONT as i32 && !orphaned {
                continue;
            }
            let number = if orphaned { 0 } else { number };
            self.asked_by = Some(number);
            if !self.is_served && !self.shim.has_children() {
                return Some(end_code(number));
            }
            self.shim.leave(number);
            self.last_moment.get_or_insert(Instant::now() + HEARD_WAIT);
        }
        None
    }

    /// Handles the loss of the server. That is an error before the start of the program. Afterwards this process stays,
    /// because a launcher ends the whole job if one of its processes ends early.
    fn lose_server(&mut self) -> Result<()> {
        self.is_served = false;
        if !self.has_begun {
            // The job has not begun, and the message that this process waits for went only to the server.
            bail!("the sdm-server of this host's ranks has ended");
        }
        self.last_moment = Some(Instant::now() + GDB_WAIT);
        Ok(())
    }

    /// Carries out actions that are due. Returns the exit code if this process has to end, otherwise `None`.
    fn is_over(&mut self) -> Result<Option<u8>> {
        if !self.is_served && !self.shim.has_children() {
            self.last_moment = None;
            return Ok(self.asked_by.map(end_code));
        }
        if self.last_moment.is_none_or(|at| Instant::now() < at) {
            return Ok(None);
        }
        self.last_moment = None;
        match self.asked_by {
            // gdb, and by that its program, ends with this process.
            Some(signal) => Ok(Some(end_code(signal))),
            None if !self.is_served => {
                self.shim.kill_gdb();
                Ok(None)
            }
            None => bail!("the sdm-server of this host's ranks did not accept this process"),
        }
    }
}

/// Releases memory that this process does not need while it waits: pages of code, which the kernel reads
/// again on demand, and free memory of the heap.
fn give_back_memory() {
    let (Ok(maps), Ok(program)) = (proc::own().maps(), proc::own().program()) else {
        return;
    };
    let is_code = |it: &&proc::Mapping| it.rights == "r-xp" && it.file() == Some(&*program);
    for map in maps.iter().filter(is_code) {
        let length = usize::try_from(map.end - map.start).unwrap_or(0);
        // SAFETY: what is mapped to be run and not to be written is as it is in its file, from where the kernel maps it
        // again when it is next run.
        unsafe {
            nix::libc::madvise(map.start as *mut _, length, nix::libc::MADV_DONTNEED);
        }
    }
    drop(maps);
    #[cfg(target_env = "gnu")]
    // SAFETY: gives free memory of the allocator back to the kernel, which it may do at any time.
    unsafe {
        nix::libc::malloc_trim(0);
    }
}

/// The exit code by which a shell reports a process that this signal ended. Signal 0 stands for a lost
/// launcher.
fn end_code(signal: i32) -> u8 {
    u8::try_from(128 + signal).unwrap_or(1)
}
