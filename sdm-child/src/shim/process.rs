//! A shim: the process that a launcher started for one rank.
//!
//! It keeps the rank's environment: variables, descriptors such as `PMI_FD`, binding, control group, streams. It starts
//! the rank's gdb, or the program without a gdb; they inherit all of them. The ends of gdb's pipes and of the program's
//! streams go to the server of its host, which drives several such gdbs. With a gdb the shim then only reports how they
//! end.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::process::ExitStatusExt;

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use sdm_debug::command::StartSpec;
use sdm_debug::fold::FoldRules;
use sdm_debug::wire;

use super::channel::{Channel, Received};
use super::message::{StartRequest, Started, ToServer, ToShim};
use super::outside_looks::{LookRequest, OutsideLooks};
use crate::gdb_start::begin_seized;
use crate::tracer::{Tracer, Watch, go_on_alone, leave, stopped_threads};
use crate::{Preload, ProgramEnds, ProgramNews, StartConfig, StartedGdb, begin};
use crate::{sys, variables};

/// A request of the server, or an event, for the process around a [`Shim`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShimEvent {
    /// The shim is assigned to the server with this number.
    Welcome(u32),
    /// The start of a gdb, or of the program without a gdb, was tried.
    Begins,
    /// The program runs, and there is nothing to do until a process ends.
    Sleeps,
    /// The server acknowledges the reported signal.
    Heard,
    /// Exit with this code.
    End(u8),
    /// The server has closed the connection.
    ServerGone,
}

/// The part of a shim that starts a gdb, or the program without a gdb, and reports its end. It traces a program without
/// a gdb.
pub struct Shim {
    channel: Channel,
    /// The server's pid; `None` before the server has accepted the shim.
    server: Option<i32>,
    config: StartConfig,
    preload: Option<Option<Preload>>,
    /// The program's ends of its streams, held open until the program has opened them; `None` from then on.
    ends: Option<ProgramEnds>,
    /// The pid of the gdb that was started last; `None` if there is none.
    gdb: Option<i32>,
    /// The tracer of the program; `None` unless the program runs without a gdb.
    tracer: Option<Tracer>,
    /// Inspections by other sessions; `None` if the program is not traced here, or cannot be released for them.
    outside_looks: Option<OutsideLooks>,
    /// True while the program is released for an inspection by the server.
    is_looked_at: bool,
    /// The pids of the program and of its wrapper, if a gdb of the server has attached to the program or is about to.
    handed_over: Vec<i32>,
    watched: Vec<WatchedProcess>,
}

/// A process whose end is to be reported.
struct WatchedProcess {
    pid: i32,
    /// Becomes readable when the process ends; `None` if the kernel has no pidfds.
    pidfd: Option<OwnedFd>,
    /// True if the process has ended while gdb is still its parent, so that this process cannot reap it yet.
    is_late: bool,
}

impl Shim {
    /// The shim of `rank`, connected to a server; programs and gdbs start as `config` configures.
    ///
    /// # Errors
    /// [`io::Error`] if the server is gone.
    pub fn new(mut channel: Channel, rank: u32, config: StartConfig) -> io::Result<Self> {
        // This process adopts the processes that gdb leaves behind, so that the launcher learns the program's exit
        // status.
        sys::adopt_orphans();
        channel.send(wire::encode(&ToServer::Hello { rank }), Vec::new())?;
        Ok(Self {
            channel,
            server: None,
            config,
            preload: None,
            ends: None,
            gdb: None,
            tracer: None,
            outside_looks: None,
            is_looked_at: false,
            handed_over: Vec::new(),
            watched: Vec::new(),
        })
    }

    /// The descriptors to poll for reading; [`Shim::wants_write`] tells whether the first one must be polled for
    /// writing too.
    #[must_use]
    pub fn fds(&self) -> Vec<BorrowedFd<'_>> {
        let watched = self.watched.iter().filter(|it| !it.is_late);
        let pidfds = watched.filter_map(|it| it.pidfd.as_ref());
        std::iter::once(self.channel.as_fd())
            .chain(pidfds.map(AsFd::as_fd))
            .chain(self.tracer.as_ref().map(Tracer::fd))
            .chain(self.outside_looks.iter().flat_map(OutsideLooks::fds))
            .collect()
    }

    /// True if a message waits to be sent.
    #[must_use]
    pub fn wants_write(&self) -> bool {
        self.channel.wants_write()
    }

    /// True if [`Shim::handle_ready`] must be called again soon, as the shim waits for a process whose end no
    /// descriptor reports.
    #[must_use]
    pub fn looks_again(&self) -> bool {
        self.watched
            .iter()
            .any(|it| it.is_late || it.pidfd.is_none())
    }

    /// Receives the available messages, and carries out the server's requests.
    pub fn handle_ready(&mut self) -> Vec<ShimEvent> {
        let mut events = Vec::new();
        let _ = self.channel.flush();
        while let Some(message) = self.receive() {
            match message {
                Ok(ToShim::Welcome { server, pid }) => {
                    self.server = Some(pid);
                    events.push(ShimEvent::Welcome(server));
                }
                Ok(ToShim::Start(request)) => {
                    self.start(*request);
                    events.push(ShimEvent::Begins);
                    if self.tracer.is_some() {
                        events.push(ShimEvent::Sleeps);
                    }
                }
                Ok(ToShim::LetGo) => {
                    self.outside_looks = None;
                    self.ask_tracer(Tracer::let_go);
                }
                Ok(ToShim::LetLook) => self.let_look(true),
                Ok(ToShim::Hold) => self.ask_tracer(Tracer::hold_all),
                Ok(ToShim::Release) => self.ask_tracer(Tracer::release),
                Ok(ToShim::GoOn) => self.ask_tracer(Tracer::go_on_with_rank),
                Ok(ToShim::Seize) => self.let_look(false),
                Ok(ToShim::GoOnAlone) => self.ask_tracer(go_on_alone),
                Ok(ToShim::Leave) => self.ask_tracer(leave),
                Ok(ToShim::Kill) => self.kill_program(),
                Ok(ToShim::Opened) => self.ends = None,
                Ok(ToShim::Unbind) => {
                    if let (Some(binding), Some(gdb)) = (&self.config.binding, self.gdb) {
                        binding.free(gdb);
                    }
                    events.push(ShimEvent::Sleeps);
                }
                // A program that was handed over is watched already, and may have ended.
                Ok(ToShim::Left(pid)) if self.handed_over.contains(&pid) => {}
                Ok(ToShim::Left(pid)) => self.watch(pid),
                Ok(ToShim::Heard) => events.push(ShimEvent::Heard),
                Ok(ToShim::End(code)) => {
                    self.kill_program();
                    events.push(ShimEvent::End(code));
                }
                Err(_) => {
                    events.push(ShimEvent::ServerGone);
                    break;
                }
            }
        }
        if let Some(tracer) = &mut self.tracer {
            let news = tracer.handle_changes();
            self.tell_news(news);
        }
        self.handle_outside_looks();
        self.tell_ends();
        events
    }

    fn ask_tracer(&mut self, what: fn(&mut Tracer) -> Vec<ProgramNews>) {
        if let Some(tracer) = &mut self.tracer {
            let news = what(tracer);
            self.tell_news(news);
        }
    }

    /// Releases the program for an inspection by the server, or seizes it again afterwards.
    fn let_look(&mut self, is_looked_at: bool) {
        self.is_looked_at = is_looked_at;
        let outside = self.outside_looks.as_ref();
        if is_looked_at {
            self.ask_tracer(Tracer::let_look);
        } else if !outside.is_some_and(OutsideLooks::is_looking) {
            self.ask_tracer(Tracer::seize_again);
        }
    }

    fn handle_outside_looks(&mut self) {
        let looks = self.outside_looks.as_mut();
        match looks.and_then(OutsideLooks::handle_ready) {
            Some(LookRequest::LetGo) => self.ask_tracer(Tracer::let_look),
            Some(LookRequest::Seize) => {
                if !self.is_looked_at {
                    self.ask_tracer(Tracer::seize_again);
                }
                let is_loose = self.tracer.as_ref().is_some_and(Tracer::is_loose);
                if let Some(looks) = &mut self.outside_looks {
                    looks.tell_seized(!is_loose || self.is_looked_at);
                }
            }
            None => {}
        }
        if let (Some(looks), Some(tracer)) = (&mut self.outside_looks, &self.tracer)
            && looks.is_looking()
            && let Some(threads) = stopped_threads(tracer)
        {
            looks.tell_stopped(&threads);
        }
    }

    /// Reports events of the program without a gdb.
    fn tell_news(&mut self, news: Vec<ProgramNews>) {
        for one in news {
            if let (ProgramNews::Loose, Some(looks)) = (&one, &mut self.outside_looks) {
                looks.tell_free();
            }
            // The server would take a look of another session for its own.
            if self.is_looked_at || !matches!(one, ProgramNews::Loose) {
                self.send(&ToServer::Program(one), Vec::new());
            }
        }
        let over = self.tracer.take_if(|it| it.is_over());
        if over.is_some() {
            self.outside_looks = None;
        }
        if let Some(tracer) = over.filter(|it| !it.has_ended()) {
            // From now on only its end is reported.
            self.handed_over = vec![tracer.pid(), tracer.program()];
            self.handed_over.dedup();
            for pid in self.handed_over.clone() {
                self.watch(pid);
            }
        }
    }

    fn receive(&mut self) -> Option<io::Result<ToShim>> {
        match self.channel.receive() {
            Ok(Received::Nothing) => None,
            Ok(Received::Message(bytes, _)) => Some(wire::decode(&bytes).map_err(io::Error::other)),
            Ok(Received::Closed) => Some(Err(io::ErrorKind::ConnectionReset.into())),
            Err(error) => Some(Err(error)),
        }
    }

    /// Tells the server that the launcher has asked this process to end by this signal; 0 if the launcher is gone.
    pub fn leave(&mut self, signal: i32) {
        self.send(&ToServer::Leaving { signal }, Vec::new());
    }

    /// Resumes the server, if a signal has stopped it.
    pub fn resume_server(&self) {
        if let Some(server) = self.server {
            sdm_inferior::go_on(server);
        }
    }

    /// True while a process that the shim has started has not ended.
    #[must_use]
    pub fn has_children(&self) -> bool {
        self.tracer.is_some() || !self.watched.is_empty()
    }

    /// Kills the program that was started without a gdb.
    fn kill_program(&self) {
        if let Some(tracer) = &self.tracer {
            tracer.kill();
        }
        let watched = |pid: &&i32| self.watched.iter().any(|it| it.pid == **pid);
        for pid in self.handed_over.iter().filter(watched) {
            // It has not been seen to end, so the pid has not been reused.
            let _ = kill(Pid::from_raw(*pid), Signal::SIGKILL);
        }
    }

    /// Kills the gdb, and with it its program. This is for a gdb that has not ended although the server that controlled
    /// it has.
    pub fn kill_gdb(&mut self) {
        self.kill_program();
        if let Some(gdb) = self
            .gdb
            .filter(|gdb| self.watched.iter().any(|it| it.pid == *gdb))
        {
            // Only this process reaps it, so the pid has not been reused.
            let _ = kill(Pid::from_raw(gdb), Signal::SIGKILL);
        }
    }

    fn start(&mut self, request: StartRequest) {
        let StartRequest {
            spec,
            options,
            gdb,
            is_fed,
            given,
            fold,
            signals,
        } = request;
        self.config.options = options;
        if let Some(signals) = signals {
            self.config.signals = signals;
        }
        if let Some(gdb) = gdb {
            self.config.gdb = Some(OsString::from_vec(gdb).into());
        }
        let given = variables::given(given);
        if spec.gdb_when_needed {
            return self.start_seized(&spec, is_fed, &given, fold);
        }
        let begun = begin(
            &spec,
            is_fed,
            true,
            &self.config,
            &given,
            &mut self.preload,
            true,
        );
        match begun {
            Ok(begun) => self.hand_over(begun),
            Err(failure) => self.send(&ToServer::refused(&failure), Vec::new()),
        }
    }

    fn start_seized(
        &mut self,
        spec: &StartSpec,
        is_fed: bool,
        given: &[(OsString, Option<OsString>)],
        fold: FoldRules,
    ) {
        let watch = Watch {
            no_holds: self.config.options.no_holds,
            fold,
        };
        match begin_seized(spec, is_fed, &self.config, given, self.server, watch) {
            Ok(Some(begun)) => {
                let seized = ToServer::Seized {
                    pid: begun.tracer.pid(),
                    program: begun.program.into_os_string().into_vec(),
                };
                self.tracer = Some(begun.tracer);
                self.outside_looks = OutsideLooks::listen().ok();
                // The program may open its streams at any time. The program's ends that are held here are closed when
                // the server says so.
                let (theirs, ours) = begun.streams.into_ends();
                self.ends = theirs;
                self.send(&seized, ours);
            }
            Ok(None) => self.send(&ToServer::NeedsGdb, Vec::new()),
            Err(failure) => self.send(&ToServer::refused(&failure), Vec::new()),
        }
    }

    fn hand_over(&mut self, begun: StartedGdb) {
        let StartedGdb {
            launch,
            child,
            streams,
        } = begun;
        let pid = child.pid();
        self.gdb = Some(pid);
        self.watch(pid);
        let (theirs, ours) = streams.into_ends();
        self.ends = theirs;
        let fds = child.into_pipes().into_iter().chain(ours).collect();
        let started = ToServer::Started(Box::new(Started::new(pid, launch)));
        self.send(&started, fds);
    }

    /// Sends a message to the server. If the server is gone, the end of the connection shows that later.
    fn send(&mut self, message: &ToServer, fds: Vec<OwnedFd>) {
        if let Err(error) = self.channel.send(wire::encode(message), fds) {
            tracing::warn!("cannot send a message to sdm-server: {error}");
        }
    }

    fn watch(&mut self, pid: i32) {
        // A second entry would report an unknown status after the first one.
        if self.watched.iter().any(|it| it.pid == pid) {
            return;
        }
        self.watched.push(WatchedProcess {
            pid,
            pidfd: sdm_system::pidfd_open(pid.cast_unsigned()).ok(),
            is_late: false,
        });
    }

    /// Reports the processes that have ended.
    fn tell_ends(&mut self) {
        let mut ended = Vec::new();
        self.watched.retain_mut(|it| {
            let status = match sys::reap(it.pid) {
                Ok(None) => return true,
                Ok(Some(status)) => status.into_raw(),
                // A program is gdb's child until gdb ends, and then becomes this process's child.
                Err(_) if is_there(it.pid) => {
                    it.is_late = it.pidfd.as_ref().is_some_and(has_ended);
                    return true;
                }
                // Another process has reaped it, so its exit status is unknown.
                Err(_) => 0,
            };
            ended.push((it.pid, status));
            false
        });
        for (pid, status) in ended {
            self.send(&ToServer::Ended { pid, status }, Vec::new());
        }
    }
}

/// True if a process with this pid exists, even as a zombie.
fn is_there(pid: i32) -> bool {
    kill(Pid::from_raw(pid), None) != Err(Errno::ESRCH)
}

/// True if the process of a pidfd has ended.
fn has_ended(pidfd: &OwnedFd) -> bool {
    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
    let mut fds = [PollFd::new(pidfd.as_fd(), PollFlags::POLLIN)];
    poll(&mut fds, PollTimeout::ZERO).is_ok_and(|ready| ready > 0)
}
