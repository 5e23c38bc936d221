//! A running session: commands down, events up, and its end.

use std::collections::VecDeque;
use std::process::Child;
use std::time::{Duration, Instant};

use bytes::Bytes;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use sdm_bootstrap::log::LogWriter;
use sdm_core::driver::{DriverEvent, MemberDriver};
use sdm_core::ids::{CommandId, SessionId};
use sdm_core::member::Output;
use sdm_core::message::{EndPolicy, Health, Lane, SyncPolicy};
use sdm_core::node::{Delivery, Submission};
use sdm_core::transport::{Waker, tcp::TcpTransport};
use sdm_debug::{Command, wire};
use sdm_idset::IdSet;
use sdm_launch::{Launch, LaunchEvent};
use tracing::Span;

use super::api::{DebugSession, SendOptions, SessionEvent, SessionMember};
use super::end_launch::end_launch;
use super::error::EndError;
use super::events;
use super::spawn_ids::Spare;

/// Time limit for all members of the tree to end.
const END_WAIT: Duration = Duration::from_secs(12);
/// Time limit for the launcher to end and print its last lines, after no member can be reached any more.
const LAUNCHER_WAIT: Duration = Duration::from_secs(5);
/// Time limit for the output of lost tasks: members above gather it for a moment, and report a loss at once.
const OUTPUT_WAIT: Duration = Duration::from_millis(300);
/// Time from the beginning of the end until started processes get a signal to end.
const ASK_AFTER: Duration = Duration::from_secs(7);
/// Minimum part of [`ASK_AFTER`] that is kept for the launcher's last lines after the servers have ended.
const LAST_WORDS_WAIT: Duration = Duration::from_secs(1);
/// Time limit for signalled processes to end before they are killed.
const KILL_AFTER: Duration = Duration::from_millis(1500);
/// Additional time per server: the kernel takes long to end thousands of processes on a loaded host.
const LAUNCHER_WAIT_EACH: Duration = Duration::from_millis(2);
/// Maximum number of queued events before the tree is asked to pause.
const WAITING_MAX: usize = 1024;

/// A session: the launcher, the master, and the root of the tree.
pub struct Session {
    pub(super) driver: MemberDriver<TcpTransport>,
    launch: Launch,
    /// The launcher of the tasks, where it was started here and the tasks are attached to. None otherwise.
    pub(super) starter: Option<Launch>,
    /// Set where the launcher carries the programs' output. True: all of it goes to standard error. None: the tree
    /// carries the output.
    pub(super) passing: Option<bool>,
    /// Receives output that the launcher carries while the session ends; true for standard error.
    pass_late: fn(bool, &[u8]),
    /// The master process. None if the user has started it by hand.
    master: Option<Child>,
    id: SessionId,
    tasks: IdSet,
    members: Vec<SessionMember>,
    /// Task numbers that are reserved for spawned processes.
    spare: Spare,
    /// Tasks whose server is lost.
    lost: IdSet,
    /// The tracing span of this session's log lines.
    span: Span,
    pub(super) waiting: VecDeque<SessionEvent>,
    held_back: bool,
    /// Set once no member can be reached: the reason, the time until which delayed output is awaited, and the time until
    /// which the launcher's end is awaited.
    deserted: Option<(String, Instant, Instant)>,
    pub(super) ending: bool,
    ended: bool,
}

impl Session {
    pub(super) fn new(
        driver: MemberDriver<TcpTransport>,
        launch: Launch,
        master: Option<Child>,
        (id, members, spare): (SessionId, Vec<SessionMember>, Spare),
    ) -> Self {
        let tasks = IdSet::union_all(members.iter().map(|member| &member.tasks));
        let span = tracing::info_span!(parent: None, "session", %id);
        span.in_scope(|| tracing::info!(%tasks, servers = members.len() - 1, "stands"));
        Self {
            span,
            driver,
            launch,
            starter: None,
            passing: None,
            pass_late: |_, _| {},
            master,
            id,
            tasks,
            members,
            spare,
            lost: IdSet::new(),
            waiting: VecDeque::new(),
            held_back: false,
            deserted: None,
            ending: false,
            ended: false,
        }
    }

    /// Has the launcher carry the programs' output and input. With `records`, none of it goes to standard
    /// output.
    pub(super) fn pass_on(&mut self, records: bool) {
        self.launch.pass_on();
        self.passing = Some(records);
    }

    /// Queues output of the programs as an event. Once the session ends, no caller takes events and no
    /// prompt has to be kept intact, so the output is passed on directly.
    pub(super) fn pass(&mut self, stderr: bool, bytes: Vec<u8>) {
        let stderr = stderr || self.passing == Some(true);
        if !self.ending {
            self.waiting
                .push_back(SessionEvent::Passed { stderr, bytes });
            return;
        }
        (self.pass_late)(stderr, &bytes);
    }

    /// Passes output that the launcher carries to `to` once the session ends and no caller takes events.
    /// The flag is true for standard error. Without this call such output is dropped.
    pub fn pass_late_to(&mut self, to: fn(stderr: bool, bytes: &[u8])) {
        self.pass_late = to;
    }

    /// Wakes [`DebugSession::next_event`] from any thread.
    #[must_use]
    pub fn waker(&self) -> Waker {
        self.driver.waker()
    }

    /// The tasks whose server is lost. After the end, those whose server was lost before it confirmed its
    /// end.
    #[must_use]
    pub fn lost(&self) -> &IdSet {
        &self.lost
    }

    /// Ends the session. Started programs are killed, or all are left running, as `policy` says. No process
    /// of SDM remains.
    ///
    /// # Errors
    /// As for [`Session::end`].
    pub fn close(mut self, policy: EndPolicy) -> Result<(), EndError> {
        self.end(policy)
    }

    /// Ends the session without dropping it. Afterwards it delivers no event and carries out no command.
    ///
    /// # Errors
    /// [`EndError`] names the parts that could not be ended, or not in time.
    pub fn end(&mut self, policy: EndPolicy) -> Result<(), EndError> {
        if self.ending {
            return Ok(());
        }
        self.ending = true;
        let _session = self.span.clone().entered();
        tracing::info!(?policy, "ends");
        let began = Instant::now();
        // A stopped launcher or master would neither end nor notify the servers below.
        self.go_on();
        if let Some(starter) = self
            .starter
            .as_mut()
            .filter(|_| policy == EndPolicy::KillStarted)
        {
            // The request comes before the tasks are let go, so that they hardly run any further. The
            // starter cannot end earlier, because the tasks that it kills stay with their gdb.
            starter.terminate();
        }
        self.driver
            .with_member(|member, now| member.finish(now, policy));
        let deadline = Instant::now() + END_WAIT;
        let mut said = Ok(());
        while !self.ended {
            match self.driver.next(Some(deadline)) {
                Ok(Some(event)) => self.handle(event),
                Ok(None) => {
                    said = Err(EndError::TooSlow { wait: END_WAIT });
                    break;
                }
                Err(error) => {
                    said = Err(EndError::Wait(error));
                    break;
                }
            }
        }
        self.driver.flush();
        self.end_launcher(began + ASK_AFTER);
        self.end_starter();
        self.end_master();
        said
    }

    /// Continues the launcher and the master, if a signal has stopped them.
    fn go_on(&self) {
        self.launch.go_on();
        let master = self.master.as_ref().map(Child::id);
        if let Some(pid) = master.and_then(|pid| i32::try_from(pid).ok()) {
            // The master is reaped only at the session's end, so the pid is still its own.
            let _ = kill(Pid::from_raw(pid), Signal::SIGCONT);
        }
    }

    fn end_master(&mut self) {
        if let Some(mut master) = self.master.take()
            && !matches!(master.try_wait(), Ok(Some(_)))
        {
            let _ = master.kill();
            let _ = master.wait();
        }
    }

    /// Ends the remaining processes after no member can be reached any more.
    fn end_deserted(&mut self) {
        if !self.launch.is_over() {
            end_launch(&mut self.driver, &mut self.launch, KILL_AFTER);
        }
        self.end_master();
    }

    /// Waits for the launcher's end after the servers have ended, and ends it if it does not.
    fn end_launcher(&mut self, ask_at: Instant) {
        let servers = u32::try_from(self.members.len()).unwrap_or(u32::MAX);
        // Processes of ranks whose server is lost end only when the launcher is asked to end, so that is
        // done now.
        let ask_at = if self.lost.is_empty() {
            ask_at
        } else {
            Instant::now()
        };
        let ask_at = ask_at.max(Instant::now() + LAST_WORDS_WAIT);
        let slack = LAUNCHER_WAIT_EACH * servers;
        let deadline = ask_at + slack;
        while !self.launch.is_over() {
            match self.driver.next(Some(deadline)) {
                Ok(Some(event)) => self.handle(event),
                Ok(None) | Err(_) => break,
            }
        }
        if !self.launch.is_over() {
            end_launch(&mut self.driver, &mut self.launch, KILL_AFTER + slack);
        }
    }

    pub(super) fn handle(&mut self, event: DriverEvent) {
        match event {
            DriverEvent::Output(output) => self.handle_output(output),
            DriverEvent::Ready(fd) => self.handle_launch(fd),
            DriverEvent::Woken => self.waiting.push_back(SessionEvent::Woken),
        }
    }

    fn handle_output(&mut self, output: Output) {
        match output {
            Output::Deliver(delivery) => {
                let Some(delivery) = self.spare.leave_out(delivery) else {
                    return;
                };
                events::log(&delivery);
                if let Some(why) = self.all_are_lost(&delivery) {
                    // A stopped launcher or master notices the loss only when it runs, and then ends.
                    self.go_on();
                    let now = Instant::now();
                    self.deserted = Some((why, now + OUTPUT_WAIT, now + LAUNCHER_WAIT));
                }
                let event = events::translate(delivery);
                let joined = event.iter().map(|event| self.spare.joined(event));
                joined.for_each(|joined| self.tasks.union_with(&joined));
                self.waiting.extend(event);
            }
            Output::End(_) => self
                .driver
                .with_member(|member, now| member.handle_local_down(now)),
            Output::Ended => self.ended = true,
            Output::Refused { why } => tracing::warn!("{why}"),
            _ => {}
        }
    }

    /// The reason of the session's end, if this delivery means that no task can be reached any more. None
    /// otherwise.
    fn all_are_lost(&mut self, delivery: &Delivery) -> Option<String> {
        let Delivery::Reach(change) = delivery else {
            return None;
        };
        match change.health {
            Health::Lost => self.lost.union_with(&change.tasks),
            Health::Reachable => {
                self.lost.subtract(&change.tasks);
                self.deserted = None;
            }
            Health::Silent => {}
        }
        let over = change.health == Health::Lost && self.tasks.is_subset(&self.lost);
        over.then(|| format!("all sdm-servers have become unreachable: {}", change.why))
    }

    fn handle_launch(&mut self, fd: std::os::fd::RawFd) {
        if self.handle_starter(fd) {
            return;
        }
        loop {
            let more = self.launch.handle_ready(fd);
            while let Some(event) = self.launch.poll_event() {
                let event = match event {
                    LaunchEvent::Text { line, .. } | LaunchEvent::Note(line) => {
                        SessionEvent::Launcher { line }
                    }
                    LaunchEvent::Log(line) => {
                        LogWriter::pass_on(&line);
                        continue;
                    }
                    LaunchEvent::Bytes { stderr, bytes } => {
                        self.pass(stderr, bytes);
                        continue;
                    }
                    LaunchEvent::Refused { refusal, .. } => {
                        SessionEvent::Launcher { line: refusal.why }
                    }
                    LaunchEvent::Ended {
                        server: None,
                        status,
                        code,
                        last_words,
                        ..
                    } if self.launch.is_over() => SessionEvent::LauncherEnded {
                        status,
                        code,
                        last_words,
                    },
                    LaunchEvent::Ended {
                        server: None,
                        who,
                        status,
                        ..
                    } => SessionEvent::Launcher {
                        line: format!("{who} {status}"),
                    },
                    LaunchEvent::Ended {
                        server: Some(_), ..
                    }
                    | LaunchEvent::Joined(_)
                    | LaunchEvent::Announced(_) => {
                        continue;
                    }
                };
                if !self.ending {
                    self.waiting.push_back(event);
                }
            }
            if !more {
                break;
            }
        }
        if !self.launch.holds(fd) {
            self.driver.transport().forget(fd);
        }
    }

    fn hold_back(&mut self) {
        let hold = self.waiting.len() > WAITING_MAX;
        if hold != self.held_back {
            self.held_back = hold;
            self.driver
                .with_member(|member, now| member.pause_delivery(now, hold));
        }
    }
}

impl DebugSession for Session {
    fn id(&self) -> SessionId {
        self.id
    }

    fn tasks(&self) -> &IdSet {
        &self.tasks
    }

    fn members(&self) -> &[SessionMember] {
        &self.members
    }

    fn send(&mut self, to: &IdSet, command: &Command, options: &SendOptions) -> CommandId {
        let sync = match options.timeout {
            _ if command.is_run_control() => SyncPolicy::DontWait,
            None => SyncPolicy::WaitForAll,
            Some(wait) => SyncPolicy::TimeOut {
                ms: u32::try_from(wait.as_millis()).unwrap_or(u32::MAX),
            },
        };
        let bulk = matches!(command, Command::Stdin { .. });
        let submission = Submission {
            destination: to.clone(),
            lane: if bulk { Lane::Bulk } else { Lane::Control },
            sync,
            rule: options.rule,
            rule_params: Bytes::copy_from_slice(&options.rule_params),
            payload: wire::encode(command).into(),
        };
        let _session = self.span.clone().entered();
        let id = self
            .driver
            .with_member(|member, now| member.submit(now, submission));
        tracing::info!(command = id.0, tasks = %to, "asked: {}", command.name());
        id
    }

    fn feed(&mut self, bytes: &[u8], eof: bool) -> Option<std::io::Result<()>> {
        self.passing?;
        let fed = self.starter.as_mut().unwrap_or(&mut self.launch);
        Some(fed.feed(bytes, eof))
    }

    fn cancel(&mut self, id: CommandId) {
        self.span
            .in_scope(|| tracing::info!(command = id.0, "the command was cancelled"));
        self.driver
            .with_member(|member, now| member.cancel(now, id));
    }

    fn next_event(&mut self, wait: Option<Duration>) -> Option<SessionEvent> {
        let deadline = wait.map(|wait| Instant::now() + wait);
        let _session = self.span.clone().entered();
        loop {
            self.look_at_starter();
            if let Some(event) = self.waiting.pop_front() {
                self.hold_back();
                return Some(event);
            }
            let is_over = self.launch.is_over();
            let until = |(_, output, end): &(String, Instant, Instant)| match is_over {
                true => *output,
                false => *end,
            };
            let over = |it: &mut _| Instant::now() >= until(it);
            if let Some((why, ..)) = self.deserted.take_if(over) {
                self.end_deserted();
                return Some(SessionEvent::Ended(why));
            }
            let own = self.deserted.iter().map(until);
            let own = own.chain(self.next_look()).min();
            match self.driver.next(own.into_iter().chain(deadline).min()) {
                Ok(Some(event)) => self.handle(event),
                Ok(None) if own.is_some() => {
                    if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                        return None;
                    }
                }
                Ok(None) => return None,
                Err(error) => {
                    return Some(SessionEvent::Ended(format!(
                        "cannot wait for events: {error}"
                    )));
                }
            }
            self.hold_back();
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if !self.ending {
            let _ = self.end(EndPolicy::KillStarted);
        }
    }
}
