//! The connection to the PMIx server of this node: `sdm-pmix host`, a process that all servers of the node share. The
//! first of these servers starts the PMIx server, which outlives it.

use std::ffi::OsString;
use std::io::{self, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use sdm_core::link::LinkConfig;
use sdm_core::transport::shared_name;
use sdm_foreign::wire::{Frames, VERSION, WireError, frame};
use sdm_foreign::{FromHost, HostJob, HostProgram, PeerMessage, ToHost, is_outer};
use sdm_idset::IdSet;
use sdm_system::peer::check_this_user;
use sdm_system::programs;
use sdm_system::stream::Stream;

use crate::shim::surroundings;

/// The name of the PMIx server's program.
const PROGRAM: &str = "sdm-pmix";
/// Time limit for the PMIx server to be ready: it loads a library, perhaps over a network.
const READY_WAIT: Duration = Duration::from_secs(60);
/// Time limit for the process that has bound the socket name to listen on it.
const LISTEN_WAIT: Duration = Duration::from_secs(5);
/// Interval between two checks whether the PMIx server listens.
const LOOK_AGAIN: Duration = Duration::from_millis(2);
/// Maximum number of reads in a row, so that other descriptors are served.
const READS_MAX: usize = 64;
/// Number of last lines of the PMIx server's output that are kept.
const LAST_LINES: usize = 4;

/// The reason for which there is no PMIx server.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PmixError {
    /// The program was not found.
    #[error(
        "{PROGRAM} was found neither in the folder of sdm-server nor on PATH: install it there"
    )]
    NoProgram,
    /// A system call has failed; `what` names the step.
    #[error("{what}: {source}")]
    System {
        what: &'static str,
        source: io::Error,
    },
    /// The user and namespaces could not be read, by which the servers of this node find their common PMIx server.
    #[error("{0:#}")]
    Surroundings(anyhow::Error),
    /// No node of the job has the server's tasks.
    #[error("the ranks of this server belong to no node of the job")]
    NoNode,
    /// The description of the job cannot be encoded.
    #[error(transparent)]
    Wire(#[from] WireError),
}

/// An event of the PMIx server.
#[derive(Debug)]
pub(crate) enum PmixEvent {
    /// The PMIx server is ready, with the environment variables for programs.
    Ready(Vec<(OsString, OsString)>),
    /// The PMIx server failed to start, with the reason.
    Failed(String),
    /// A message for the user.
    Notice(String),
    /// A process aborts its job. The fields are its rank, its exit status, and its message.
    Aborted(u32, i32, String),
    /// A process or tool prints a message.
    Log {
        /// The rank of the process; `None` for a tool.
        rank: Option<u32>,
        is_error: bool,
        bytes: Vec<u8>,
    },
    /// A part of this node's data for a fence, with the number of the fence.
    FenceData(u64, Vec<u8>),
    /// All of this node's ranks have entered a fence.
    Fence(Fence),
    /// A message to the PMIx server of another node.
    Datagram(PeerMessage),
    /// A tool requests the process table.
    WantProcesses,
    /// A process or tool spawns programs.
    Spawn(SpawnRequest),
    /// A tool subscribes to the output of processes.
    WantOutput,
    /// A tool sends a signal to these processes.
    Signal(IdSet, i32),
    /// A tool sends standard input to these processes. Empty input means end of file.
    Input(IdSet, Vec<u8>),
    /// The PMIx server has ended, with its exit status.
    Gone(String),
}

/// A request to spawn programs.
#[derive(Debug)]
pub(crate) struct SpawnRequest {
    /// The number of the request, for the answer.
    pub(crate) number: u64,
    /// The task that requests the spawn; `None` for a tool.
    pub(crate) by: Option<u32>,
    /// The task numbers of the new processes.
    pub(crate) tasks: IdSet,
    /// The ranks of the new processes in their job, in the same order.
    pub(crate) ranks: IdSet,
    /// Number of processes of the job on all hosts.
    pub(crate) size: u32,
    /// The program of each new process, in the same order.
    pub(crate) programs: Vec<HostProgram>,
    /// Environment variables for all of the new processes.
    pub(crate) environment: Vec<(String, String)>,
}

/// A fence over several nodes, as this node's PMIx server reports it.
#[derive(Debug)]
pub(crate) struct Fence {
    /// The number of the fence at the PMIx server.
    pub(crate) number: u64,
    /// The ranks that take part.
    pub(crate) ranks: IdSet,
    /// Number of earlier barriers of exactly these ranks for the same purpose; the two highest bits are the purpose.
    pub(crate) count: u32,
    /// True if this server takes part in the fence for its node.
    pub(crate) is_speaker: bool,
}

/// The connection to the PMIx server of this node, and its process if it was started here.
pub(crate) struct PmixServer {
    stream: UnixStream,
    frames: Frames,
    unsent: Vec<u8>,
    /// Number of bytes of `unsent` that were sent.
    sent: usize,
    child: Option<Started>,
    /// The PMIx server's directory.
    folder: PathBuf,
    /// Time limit for the PMIx server to be ready; `None` once it is, or has failed.
    pub(crate) deadline: Option<Instant>,
    is_gone: bool,
}

/// A process that was started here.
struct Started {
    child: Child,
    /// A pidfd, which is readable at the end of the process.
    end: OwnedFd,
    errors: Stream,
    last_lines: Vec<String>,
}

impl PmixServer {
    /// Connects to the PMIx server of this node for `own` tasks of the job, and starts it if needed. The
    /// `spare` numbers are for spawned processes.
    ///
    /// # Errors
    /// [`PmixError`] gives the step that failed.
    pub(crate) fn begin(
        config: &LinkConfig,
        job: &HostJob,
        own: &IdSet,
        spare: &IdSet,
    ) -> Result<Self, PmixError> {
        let system = |what| move |source| PmixError::System { what, source };
        let what = format!("pmix {}", job.own_node().name);
        let detail = surroundings(&what).map_err(PmixError::Surroundings)?;
        let name = shared_name(config, &detail);
        let address = SocketAddr::from_abstract_name(name.as_bytes());
        let address = address.map_err(system("cannot choose a socket name"))?;
        let child = match UnixListener::bind_addr(&address) {
            Ok(listener) => Some(Started::spawn(listener.into())?),
            Err(error) if error.kind() == ErrorKind::AddrInUse => None,
            Err(source) => {
                return Err(system("cannot create the socket of the PMIx server")(
                    source,
                ));
            }
        };
        let deadline = Instant::now() + LISTEN_WAIT;
        let mut stream = loop {
            match UnixStream::connect_addr(&address) {
                Ok(stream) => break stream,
                Err(error)
                    if error.kind() == ErrorKind::ConnectionRefused
                        && Instant::now() < deadline =>
                {
                    std::thread::sleep(LOOK_AGAIN);
                }
                Err(source) => return Err(system("cannot connect to the PMIx server")(source)),
            }
        };
        check_this_user(&stream).map_err(system("the connection to the PMIx server is refused"))?;
        let hello = ToHost::Hello {
            version: VERSION,
            job: job.clone(),
            ranks: own.clone(),
            spare: spare.clone(),
        };
        // The PMIx server reads as soon as it runs. Even for a million ranks the message has only some
        // hundred bytes.
        stream
            .write_all(&frame(&hello)?)
            .and_then(|()| stream.set_nonblocking(true))
            .map_err(system("cannot send to the PMIx server"))?;
        Ok(Self {
            stream,
            frames: Frames::default(),
            unsent: Vec::new(),
            sent: 0,
            child,
            folder: job.folder(),
            deadline: Some(Instant::now() + READY_WAIT),
            is_gone: false,
        })
    }

    /// The descriptors to watch.
    pub(crate) fn fds(&self) -> Vec<RawFd> {
        let child = self.child.iter().flat_map(|child| {
            let errors = child.errors.fd().map(|fd| fd.as_raw_fd());
            errors.into_iter().chain([child.end.as_raw_fd()])
        });
        std::iter::once(self.stream.as_raw_fd())
            .chain(child)
            .collect()
    }

    /// Sends a message, or queues the part that the socket does not accept: see
    /// [`PmixServer::wants_to_write`].
    pub(crate) fn send(&mut self, message: &ToHost) {
        match frame(message) {
            Ok(bytes) => self.unsent.extend_from_slice(&bytes),
            Err(error) => tracing::error!("a message to the PMIx server was not sent: {error}"),
        }
        self.write();
    }

    /// The connection's descriptor, and true while data is queued for it.
    pub(crate) fn wants_to_write(&self) -> (RawFd, bool) {
        (self.stream.as_raw_fd(), self.sent < self.unsent.len())
    }

    /// Sends queued data without blocking. The loss of the PMIx server is detected by [`PmixServer::receive`].
    fn write(&mut self) {
        while self.sent < self.unsent.len() {
            match self.stream.write(&self.unsent[self.sent..]) {
                Ok(count) => self.sent += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(_) => break,
            }
        }
        self.unsent = Vec::new();
        self.sent = 0;
    }

    /// Reads pending events. After [`PmixEvent::Gone`] there are no more.
    pub(crate) fn receive(&mut self) -> Vec<PmixEvent> {
        let mut heard = Vec::new();
        if self.is_gone {
            return heard;
        }
        self.write();
        let is_open = self.read(&mut heard);
        let status = self.child.as_mut().and_then(Started::poll_exit);
        if is_open && status.is_none() {
            return heard;
        }
        // Where it was started here its end tells how.
        if self.child.is_some() && status.is_none() {
            return heard;
        }
        self.is_gone = true;
        let how = status.map_or_else(|| "the exit status is unknown".to_owned(), how);
        let said = self.child.as_ref().and_then(|it| it.last_lines.last());
        heard.push(PmixEvent::Gone(match said {
            Some(said) => format!("{how}: {said}"),
            None => how,
        }));
        self.remove_folder();
        heard
    }

    /// Removes the PMIx server's directory, if it did not do so itself. Another server may have removed it
    /// already, and a directory of another user is left alone.
    fn remove_folder(&self) {
        let is_own = |found: std::fs::Metadata| found.is_dir() && sdm_system::files::is_own(&found);
        if std::fs::symlink_metadata(&self.folder).is_ok_and(is_own) {
            let _ = std::fs::remove_dir_all(&self.folder);
        }
    }

    /// Kills the PMIx server if this process has started it, because it hangs. Its exit status is not waited for.
    pub(crate) fn give_up(mut self) {
        if let Some(started) = &mut self.child {
            // The process may have ended already.
            let _ = started.child.kill();
            self.remove_folder();
        }
    }

    /// Reads events of the PMIx server. Returns false at end of file, after a read error, or after an invalid message.
    fn read(&mut self, heard: &mut Vec<PmixEvent>) -> bool {
        let mut bytes = [0; 16 << 10];
        let mut turns = 0..READS_MAX;
        let is_open = loop {
            match self.stream.read(&mut bytes) {
                Ok(0) => break false,
                Ok(count) => {
                    self.frames.push(&bytes[..count]);
                    if turns.next().is_none() {
                        break true;
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break true,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => break false,
            }
        };
        loop {
            match self.frames.take() {
                Ok(None) => return is_open,
                Ok(Some(message)) => heard.extend(self.take(message)),
                Err(error) => {
                    tracing::error!("the PMIx server sent an invalid message: {error}");
                    // The PMIx server ends once no process is connected.
                    let _ = self.stream.shutdown(Shutdown::Both);
                    return false;
                }
            }
        }
    }

    fn take(&mut self, message: FromHost) -> Option<PmixEvent> {
        Some(match message {
            FromHost::Ready {
                library,
                environment,
                ..
            } => {
                tracing::info!("PMIx server: {library}");
                self.deadline = None;
                let pairs = environment.into_iter();
                PmixEvent::Ready(
                    pairs
                        .map(|(name, value)| (name.into(), value.into()))
                        .collect(),
                )
            }
            FromHost::Failed { text } => {
                self.deadline = None;
                PmixEvent::Failed(text)
            }
            FromHost::Notice { text } => PmixEvent::Notice(text),
            FromHost::Aborted { rank, status, text } => PmixEvent::Aborted(rank, status, text),
            FromHost::Log {
                rank,
                is_error,
                bytes,
            } => PmixEvent::Log {
                rank,
                is_error,
                bytes,
            },
            FromHost::FenceData { number, bytes } => PmixEvent::FenceData(number, bytes),
            FromHost::Fence {
                number,
                ranks,
                count,
                is_speaker,
            } => PmixEvent::Fence(Fence {
                number,
                ranks,
                count,
                is_speaker,
            }),
            FromHost::Letter(letter) => PmixEvent::Datagram(letter),
            FromHost::WantProcesses => PmixEvent::WantProcesses,
            FromHost::WantOutput => PmixEvent::WantOutput,
            FromHost::Signal { tasks, signal } => PmixEvent::Signal(tasks, signal),
            FromHost::Input { tasks, bytes } => PmixEvent::Input(tasks, bytes),
            FromHost::Spawn {
                number,
                by,
                tasks,
                ranks,
                size,
                programs,
                environment,
            } => PmixEvent::Spawn(SpawnRequest {
                number,
                by,
                tasks,
                ranks,
                size,
                programs,
                environment,
            }),
        })
    }
}

impl Started {
    fn spawn(listener: OwnedFd) -> Result<Self, PmixError> {
        let system = |what| move |source| PmixError::System { what, source };
        let program = sdm_system::own_program(PROGRAM, None).ok_or(PmixError::NoProgram)?;
        let (errors, writer) = Stream::open(true).map_err(system("cannot create a pipe"))?;
        let mut command = programs::at(program);
        command
            .arg("host")
            .stdin(listener)
            .stdout(Stdio::null())
            .stderr(writer)
            // A signal that ends this process's group must not reach the PMIx server, which serves the
            // whole node.
            .process_group(0);
        // `PMIX_SYSTEM_TMPDIR` is a property of the node, and not of an outer job.
        let is_other = |name: &OsString| is_outer(name) && name != "PMIX_SYSTEM_TMPDIR";
        for (name, _) in std::env::vars_os().filter(|(name, _)| is_other(name)) {
            command.env_remove(name);
        }
        let child = command.spawn().map_err(system("cannot start sdm-pmix"))?;
        let end = sdm_system::watch_child(child.id()).map_err(system("cannot watch sdm-pmix"))?;
        Ok(Self {
            child,
            end,
            errors,
            last_lines: Vec::new(),
        })
    }

    /// Reads the lines that the PMIx server prints. Returns its exit status once it has ended, and `None` before.
    fn poll_exit(&mut self) -> Option<ExitStatus> {
        let mut lines = Vec::new();
        let mut keep =
            |line: sdm_system::stream::Line| lines.extend(line.text().map(str::to_owned));
        while self.errors.read(&mut keep) > 0 {}
        let status = self.child.try_wait().unwrap_or(None);
        if status.is_some() {
            self.errors.read_rest(&mut keep);
            self.errors.close(&mut keep);
        }
        for line in lines {
            tracing::warn!("the PMIx server reports: {line}");
            self.last_lines.push(line);
            let excess = self.last_lines.len().saturating_sub(LAST_LINES);
            self.last_lines.drain(..excess);
        }
        status
    }
}

fn how(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exited with code {code}"),
        (_, Some(signal)) => {
            let name = Signal::try_from(signal).map_or("a signal", Signal::as_str);
            format!("killed by {name}")
        }
        _ => "ended".to_owned(),
    }
}
