//! A PMIx server for the processes that a session starts on this node.
//!
//! Its standard input is a socket to which the session's servers of this node connect. It serves the first job
//! of the session, and the jobs that its processes and tools spawn. It ends when all these servers have disconnected,
//! including the one that started it. The messages are in [`sdm_foreign::wire`].

mod answers;
mod app;
mod barrier;
mod control;
mod ended_processes;
mod folder;
mod guard;
mod peer;
mod peer_requests;
mod placement;
mod publications;
mod query;
mod queues;
mod remote_data;
mod request;
mod server;
mod spawn;
mod spawned_jobs;
mod system;
mod tool_proxy;
mod tool_requests;
mod tools;
mod upcalls;
mod value;
mod watchdog;

use std::collections::BTreeSet;
use std::fs;
use std::os::fd::{AsFd, FromRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use barrier::{BarrierWaiter, Barriers, Purpose};
use folder::Folder;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::signal::SigSet;
use nix::sys::stat::{Mode, umask};
use peer::Peer;
use peer_requests::{Post, Requester};
use publications::Publications;
use queues::Queues;
use request::{Participants, Request, Requests};
use sdm_foreign::peer_messages::Question;
use sdm_foreign::wire::{PART_BYTES_MAX, VERSION};
use sdm_foreign::{FromHost, HostJob, SpawnedJob, ToHost};
use sdm_idset::TaskId;
use sdm_system::peer::check_this_user;
use server::Server;
use spawn::Spawns;
use system::SystemFile;
use tool_requests::Steering;
use tools::PartialTable;
use watchdog::LoopCounter;

use crate::ffi::Proc;

/// Time limit for the first server's connection.
const FIRST_WAIT: Duration = Duration::from_secs(120);
/// Maximum number of servers of one node.
const PEERS_MAX: usize = 4096;
/// The PMIx statuses.
const SUCCESS: i32 = 0;
const UNREACHABLE: i32 = -25;
const OUT_OF_RESOURCE: i32 = -29;
const NOT_FOUND: i32 = -46;
const NOT_SUPPORTED: i32 = -47;
const PARTIAL_SUCCESS: i32 = -52;
const DUPLICATE_KEY: i32 = -53;

/// A server for one job.
///
/// Large because a request of libpmix is answered from several tables: the job, the servers of the session, and the
/// pending requests to other nodes. Each table has a type of its own, and each file of this module has the methods for
/// one concern.
struct Host {
    listener: UnixListener,
    requests: Requests,
    peers: Vec<Peer>,
    next_peer: u64,
    /// The job, with the answer to each server of the session; `None` before the first server has described it.
    serving: Option<Serving>,
    board: Publications,
    barriers: Barriers,
    post: Post,
    /// Task numbers of the processes of this node that have connected to libpmix.
    connected: BTreeSet<u32>,
    next_tool: u64,
    gatherings: Vec<PartialTable>,
    next_gathering: u64,
    queues: Queues,
    spawns: Spawns,
    steering: Steering,
    /// Number of groups that processes of this node have made.
    groups: u32,
    turns: LoopCounter,
}

struct Serving {
    job: HostJob,
    answer: FromHost,
    /// A notice for the user, until the first server of the session has received it. `None` afterwards, or without a
    /// notice.
    notice: Option<String>,
    library: Server,
    /// The file `pmix.sys.HOST`; dropping this value removes the file. `None` if the file was not requested.
    _system: Option<SystemFile>,
    /// The folder of the server's files; dropping this value removes it.
    folder: Folder,
    /// The jobs that processes or tools have spawned, on any node.
    offspring: Vec<SpawnedJob>,
}

/// Serves until all servers of the session have disconnected.
pub(crate) fn run() -> Result<()> {
    setrlimit(Resource::RLIMIT_CORE, 0, 0).context("cannot disable core files")?;
    // The library's files must not be readable for other users.
    umask(Mode::S_IRWXG | Mode::S_IRWXO);
    // The parent process may have blocked some signals.
    SigSet::empty()
        .thread_set_mask()
        .context("cannot set the signal mask")?;
    let listener = listener()?;
    let mut host = Host {
        listener,
        requests: Requests::open().context("cannot create a pipe")?,
        peers: Vec::new(),
        next_peer: 0,
        serving: None,
        board: Publications::default(),
        barriers: Barriers::default(),
        post: Post::default(),
        connected: BTreeSet::new(),
        next_tool: 0,
        gatherings: Vec::new(),
        next_gathering: 0,
        queues: Queues::default(),
        spawns: Spawns::default(),
        steering: Steering::default(),
        groups: 0,
        turns: LoopCounter::default(),
    };
    host.turns
        .watch()
        .context("cannot start the watchdog thread")?;
    let mut came = false;
    while !(came && host.peers.is_empty()) {
        if !host.turn(came)? {
            bail!("no sdm-server connected within {FIRST_WAIT:?}");
        }
        came |= !host.peers.is_empty();
    }
    // The library is not finalised: no process would notice, its files are in the folder, and it can hang.
    drop(host.serving.take());
    crate::sys::exit(0)
}

/// The socket on standard input.
#[allow(unsafe_code)]
fn listener() -> Result<UnixListener> {
    let own = std::io::stdin().as_fd().try_clone_to_owned()?;
    // SAFETY: nobody else in this process reads from it.
    drop(unsafe { OwnedFd::from_raw_fd(0) });
    // The next opened descriptor must not become standard input.
    let nothing = fs::File::open("/dev/null").context("cannot open /dev/null")?;
    std::mem::forget(nothing);
    let listener = UnixListener::from(own);
    listener.set_nonblocking(true)?;
    listener
        .local_addr()
        .context("standard input is not a socket: sdm-pmix host must be started by sdm-server")?;
    Ok(listener)
}

impl Host {
    /// Waits for input and handles it; false if no server connected in time.
    fn turn(&mut self, came: bool) -> Result<bool> {
        let mut fds = vec![PollFd::new(self.listener.as_fd(), PollFlags::POLLIN)];
        fds.push(PollFd::new(self.requests.as_fd(), PollFlags::POLLIN));
        for peer in &self.peers {
            let mut flags = PollFlags::POLLIN;
            flags.set(PollFlags::POLLOUT, peer.has_unsent());
            fds.push(PollFd::new(peer.as_fd(), flags));
        }
        let due = [
            self.post.deadline(),
            self.gathering_deadline(),
            self.queues.deadline(),
        ];
        let due = due.into_iter().flatten().min();
        let due = due.map(|at| at.saturating_duration_since(Instant::now()));
        let first = (!came).then_some(FIRST_WAIT);
        let wait = due.or(first).map_or(PollTimeout::NONE, |wait| {
            // Rounded up, so that the wait does not end just before the deadline.
            PollTimeout::try_from(wait + Duration::from_millis(1)).unwrap_or(PollTimeout::MAX)
        });
        self.turns.go_on();
        let polled = poll(&mut fds, wait);
        self.turns.go_on();
        match polled {
            Ok(0) if due.is_none() => return Ok(false),
            Ok(_) | Err(nix::errno::Errno::EINTR) => {}
            Err(error) => return Err(error).context("cannot wait for events"),
        }
        let ready: Vec<bool> = fds.iter().map(|fd| fd.any().unwrap_or(false)).collect();
        drop(fds);
        if ready[1] {
            let request = self
                .requests
                .take()
                .context("cannot receive a request of sdm-server")?;
            self.answer(request);
        }
        let peers = self.peers.iter().zip(&ready[2..]);
        let spoken: Vec<u64> = peers.filter(|(_, it)| **it).map(|(it, _)| it.id).collect();
        for peer in spoken {
            self.hear(peer);
        }
        if ready[0] {
            self.take_in();
        }
        self.end_gatherings(Instant::now());
        self.give_queues_up(Instant::now());
        for letter in self.post.due(Instant::now()) {
            self.send_letter(letter);
        }
        Ok(true)
    }

    fn take_in(&mut self) {
        while let Ok((stream, _)) = self.listener.accept() {
            let is_own = check_this_user(&stream).is_ok();
            if !is_own || self.peers.len() >= PEERS_MAX || stream.set_nonblocking(true).is_err() {
                continue;
            }
            self.peers.push(Peer::new(self.next_peer, stream));
            self.next_peer += 1;
        }
    }

    /// Handles the messages of a server, or the end of its connection.
    fn hear(&mut self, id: u64) {
        let peer = self.peers.iter_mut().find(|it| it.id == id);
        let heard = peer.and_then(Peer::hear);
        let Some(heard) = heard else {
            return self.forget(id);
        };
        for message in heard {
            match message {
                ToHost::Hello {
                    version,
                    job,
                    ranks,
                    spare,
                } => {
                    let answer = self.hello(version, job);
                    let wanted = self.wanted_of_new();
                    let serving = self.serving.as_mut();
                    let notice = serving.and_then(|it| it.notice.take());
                    let notice = notice.map(|text| FromHost::Notice { text });
                    let is_known = matches!(answer, FromHost::Ready { .. });
                    if let Some(peer) = self.peers.iter_mut().find(|it| it.id == id) {
                        peer.ranks = is_known.then_some(ranks);
                        peer.spare = spare;
                        // A peer that has disconnected is noticed when its socket is read.
                        let _ = peer.send(&answer);
                        for more in notice.iter().chain(&wanted) {
                            let _ = peer.send(more);
                        }
                    }
                }
                ToHost::FenceData { number, bytes } => self.barriers.add(number, &bytes),
                ToHost::Fenced { number, is_met } => self.barriers.end(number, is_met),
                ToHost::Letter(letter) => self.read_letter(&letter),
                ToHost::Processes(table) => self.add_processes(id, &table),
                ToHost::Ended {
                    tasks,
                    status,
                    ends_job,
                } => self.hear_of_end(&tasks, status, ends_job),
                ToHost::Output {
                    task,
                    is_error,
                    bytes,
                } => self.print(task, is_error, &bytes),
                ToHost::Spawned { number, is_started } => self.end_spawn(number, is_started),
            }
        }
    }

    fn forget(&mut self, id: u64) {
        self.peers.retain(|it| it.id != id);
        self.barriers.forget(id);
        self.forget_teller(id);
        self.forget_starter(id);
    }

    /// The task number of a process among all tasks of the session; its rank, if its job is not known.
    fn task_of(&self, process: &Proc) -> u32 {
        let known = self.serving.as_ref().and_then(|it| it.task_of(process));
        known.unwrap_or(process.rank)
    }

    /// Handles a new server's hello; the first one starts to serve the job. Returns the job's environment, or
    /// [`FromHost::Failed`] for another version, another or an invalid job, or a failed start.
    fn hello(&mut self, version: u16, job: HostJob) -> FromHost {
        let failed = |text: String| FromHost::Failed { text };
        if version != VERSION {
            return failed(format!(
                "sdm-server has message version {version}, sdm-pmix has {VERSION}"
            ));
        }
        if let Err(error) = job.check() {
            return failed(error.to_string());
        }
        if let Some(serving) = &self.serving {
            return match serving.job == job {
                true => serving.answer.clone(),
                false => failed("this PMIx server already serves another job".to_owned()),
            };
        }
        match serve(job) {
            Ok(serving) => self.serving.insert(serving).answer.clone(),
            Err(error) => failed(format!("{error:#}")),
        }
    }

    fn answer(&mut self, request: Request) {
        match request {
            Request::Queues(queues) => self.have_queues(queues),
            request
            @ (Request::Come { .. } | Request::Finalized { .. } | Request::Abort { .. }) => {
                self.follow(request)
            }
            Request::Tool { name, done } => self.welcome(name, done),
            Request::Query { wanted, done } => self.query(wanted, done),
            Request::Fence { among, bytes, done } => {
                self.meet(&among, Purpose::Fence, bytes, BarrierWaiter::Fence(done));
            }
            Request::Meet {
                among,
                purpose,
                done,
            } => self.meet(&among, purpose, Vec::new(), BarrierWaiter::Connect(done)),
            Request::Modex { process, done } => {
                let (rank, offset) = (self.task_of(&process), 0);
                self.ask(
                    rank,
                    Question::Modex { rank, offset },
                    Requester::Modex(done),
                );
            }
            Request::Put {
                to,
                number,
                status,
                bytes,
            } => self.put(to, number, status, bytes),
            Request::Spawn { by, wish, done } => self.spawn(&by, wish, done),
            request @ (Request::Pull
            | Request::Push { .. }
            | Request::Control { .. }
            | Request::Notify(_)
            | Request::Group(_)) => self.steer(request),
            request @ (Request::Publish { .. }
            | Request::Lookup { .. }
            | Request::Unpublish { .. }) => self.answer_board(request),
            Request::Log {
                process,
                texts,
                done,
            } => done.answer(self.log(&process, texts)),
        }
    }

    pub(super) fn tell_all(&mut self, message: &FromHost) {
        let gone = self.peers.iter_mut().filter_map(|peer| {
            let is_there = peer.ranks.is_none() || peer.send(message);
            (!is_there).then_some(peer.id)
        });
        let gone: Vec<u64> = gone.collect();
        gone.into_iter().for_each(|id| self.forget(id));
    }

    /// Enters this node's processes of `among` into a barrier with the other nodes. Answers at once if all processes of
    /// `among` are on this node.
    fn meet(
        &mut self,
        among: &Participants,
        purpose: Purpose,
        bytes: Vec<u8>,
        comer: BarrierWaiter,
    ) {
        let Some(serving) = &self.serving else {
            return comer.answer(UNREACHABLE, Vec::new());
        };
        let Some(ranks) = serving.tasks_among(among) else {
            return comer.answer(UNREACHABLE, Vec::new());
        };
        if ranks.is_subset(&serving.own_tasks()) {
            return comer.answer(SUCCESS, bytes);
        }
        let speaker = self.peers.iter().find(|it| it.has_any(&ranks));
        let Some(speaker) = speaker.map(|it| it.id) else {
            return comer.answer(UNREACHABLE, Vec::new());
        };
        let of_all = (ranks.clone(), purpose);
        let (number, count) = self.barriers.begin(of_all, comer, speaker);
        let part = |part: &[u8]| FromHost::FenceData {
            number,
            bytes: part.to_vec(),
        };
        let mut gone = Vec::new();
        for peer in self.peers.iter_mut().filter(|it| it.has_any(&ranks)) {
            let is_speaker = peer.id == speaker;
            let bytes = if is_speaker { bytes.as_slice() } else { &[] };
            let parts: Vec<_> = bytes.chunks(PART_BYTES_MAX).map(part).collect();
            let fence = FromHost::Fence {
                number,
                ranks: ranks.clone(),
                count,
                is_speaker,
            };
            let told = peer.send_all(&parts) && peer.send_all(&[fence]);
            if !told {
                gone.push(peer.id);
            }
        }
        gone.into_iter().for_each(|id| self.forget(id));
    }
}

impl Serving {
    fn is_own(&self, task: u32) -> bool {
        self.own_tasks().contains(TaskId(task))
    }
}

/// Begins to serve a job.
fn serve(job: HostJob) -> Result<Serving> {
    guard::begin()?;
    let folder = Folder::make(&job)?;
    // SAFETY: this process has had one thread until now.
    #[allow(unsafe_code)]
    let library = unsafe { Server::load() }?;
    let environment = library.serve(&job, &folder.path)?;
    // The library has let everybody look into it.
    let closed = fs::Permissions::from_mode(0o700);
    fs::set_permissions(&folder.path, closed)
        .context("cannot restrict the folder of the PMIx server to this user")?;
    let system = job.is_system.then(|| SystemFile::publish(&folder.path));
    let (system, notice) = match system.transpose() {
        Ok(system) => (system, None),
        Err(error) => (
            None,
            Some(format!(
                "PMIx tools cannot find this server as the system server of node {}: {error:#}",
                job.own_node().name
            )),
        ),
    };
    let answer = FromHost::Ready {
        version: VERSION,
        library: library.version.clone(),
        environment,
    };
    Ok(Serving {
        job,
        answer,
        notice,
        library,
        _system: system,
        folder,
        offspring: Vec::new(),
    })
}
