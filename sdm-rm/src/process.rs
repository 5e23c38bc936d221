//! A started manager: one process of the user's that runs an agent and answers questions.
//!
//! The process ends on request (SIGTERM, SIGINT, SIGHUP, [`Question::Stop`]) or when its socket is gone. Its agent ends
//! with it; jobs run on.

use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

use crate::agent::{Agent, AgentStream};
use crate::answer::{Answer, Look, ManagerView, OTHER_AGE_MAX, OWN_AGE_MAX, Question};
use crate::connection::{Caller, CallerGoal};
use crate::controller::Controller;
use crate::definition::Definition;
use crate::error::AgentError;
use crate::json_line::{self, QUESTION_BYTES_MAX};
use crate::socket_path::Place;
use sdm_runtime::states::Manager;

/// Maximum number of callers at a time.
const CALLERS_MAX: usize = 64;
/// Maximum wait of a caller for a change.
const CHANGE_WAIT_MAX: Duration = Duration::from_secs(600);
/// Maximum wait of a caller for a query of the manager. After it the answer has the earlier elements.
const LOOK_WAIT: Duration = Duration::from_secs(5);
/// Time limit for an agent to end after it was asked to.
const END_WAIT: Duration = Duration::from_secs(5);
/// Interval between checks that the socket's file still exists.
const PLACE_PERIOD: Duration = Duration::from_secs(10);
/// Buffer size of one read from an agent, in bytes.
const PIECE_BYTES: usize = 256 << 10;
/// Line on standard output that reports that a process listens for the cluster.
pub(crate) const READY: &str = "ready";

/// Runs the process of the cluster whose definition is on standard input, as a line of JSON. It writes `ready` to
/// standard output once it, or a process that existed before, can be asked.
///
/// # Errors
/// The definition cannot be read, or the socket cannot be made.
pub fn run() -> io::Result<()> {
    let mut text = Vec::new();
    let mut input = io::stdin().lock().take(QUESTION_BYTES_MAX as u64);
    input.read_to_end(&mut text)?;
    let definition: Option<Definition> =
        json_line::decode(&text, QUESTION_BYTES_MAX).map_err(io::Error::other)?;
    let definition = definition.ok_or_else(|| io::Error::other("no definition"))?;
    definition.check().map_err(io::Error::other)?;
    // It fails only where this process leads a session already.
    let _ = nix::unistd::setsid();
    let home = std::env::var_os("HOME").filter(|home| std::env::set_current_dir(home).is_ok());
    if home.is_none() {
        std::env::set_current_dir("/")?;
    }
    let mut ending = SigSet::empty();
    for signal in [
        Signal::SIGTERM,
        Signal::SIGINT,
        Signal::SIGHUP,
        Signal::SIGCHLD,
    ] {
        ending.add(signal);
    }
    let place = Place::take(&definition.name)?;
    // This fails where the starting process was killed meanwhile: then no process waits for this one.
    writeln!(io::stdout(), "{READY}")?;
    let Some(place) = place else {
        return Ok(());
    };
    let null = std::fs::File::options()
        .read(true)
        .write(true)
        .open("/dev/null")?;
    for done in [
        nix::unistd::dup2_stdin(&null),
        nix::unistd::dup2_stdout(&null),
        nix::unistd::dup2_stderr(&null),
    ] {
        done?;
    }
    // The agent is started before the signals are blocked, as it would inherit that.
    let agent = Agent::start(&definition);
    ending.thread_block()?;
    let signals = SignalFd::with_flags(&ending, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)?;
    Process::new(definition, agent, place, signals).run()
}

struct Process {
    definition: Definition,
    place: Place,
    signals: SignalFd,
    controller: Controller,
    agent: Option<Agent>,
    callers: Vec<Caller>,
    /// The latest state of the manager, and the time at which it entered this state, in seconds of Unix time.
    seen: (Manager, u64),
    stops_until: Option<Instant>,
    next_look: Instant,
}

/// A descriptor that is ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    Signals,
    Listener,
    Agent(AgentStream),
    Caller(usize),
}

impl Process {
    fn new(
        definition: Definition,
        agent: Result<Agent, AgentError>,
        place: Place,
        signals: SignalFd,
    ) -> Self {
        let now = Instant::now();
        let patience = Duration::from_secs(definition.patience.clamp(1, 86_400));
        let mut controller = Controller::new(definition.base, patience);
        let agent = match agent {
            Ok(agent) => {
                controller.agent_started(now);
                Some(agent)
            }
            Err(error) => {
                controller.no_agent(error.to_string());
                None
            }
        };
        Self {
            seen: (controller.state(), unix_time()),
            definition,
            place,
            signals,
            controller,
            agent,
            callers: Vec::new(),
            stops_until: None,
            next_look: now + PLACE_PERIOD,
        }
    }

    fn run(mut self) -> io::Result<()> {
        let mut buffer = vec![0; PIECE_BYTES];
        loop {
            let now = Instant::now();
            self.settle(now);
            if self.is_over() {
                return Ok(());
            }
            for source in self.wait(now)? {
                self.handle(source, &mut buffer)?;
            }
            self.handle_timeout();
        }
    }

    /// True once the process was asked to end, all waiting callers have their answers and the agent has ended. True
    /// also if that takes too long.
    fn is_over(&self) -> bool {
        let told = self
            .callers
            .iter()
            .all(|it| matches!(it.wants, CallerGoal::Nothing));
        // Callers that do not read their answers are not waited for.
        let late = self
            .stops_until
            .is_some_and(|until| until + END_WAIT <= Instant::now());
        self.stops_until.is_some() && (late || told && self.agent.is_none())
    }

    /// Advances the agent and all callers as far as possible now.
    fn settle(&mut self, now: Instant) {
        if let Some(agent) = &mut self.agent {
            agent.send(&self.controller.take_output());
            agent.write();
            if self.controller.state() == Manager::Error {
                agent.kill();
            }
            if let Some(how) = agent.ended() {
                self.agent = None;
                self.controller.agent_ended(how);
            }
        }
        if self.controller.state() != self.seen.0 {
            self.seen = (self.controller.state(), unix_time());
        }
        while let Some((ticket, outcome)) = self.controller.poll_outcome() {
            let is_its =
                |caller: &Caller| matches!(caller.wants, CallerGoal::Outcome(its) if its == ticket);
            if let Some(at) = self.callers.iter().position(is_its) {
                let mut answer = self.answer();
                match outcome {
                    Ok(job) => answer.job = job,
                    Err(error) => answer.error = Some(error.to_string()),
                }
                self.callers[at].answer(now, &answer);
            }
        }
        let version = self.controller.version();
        let is_at_end = self.agent.is_none() && self.stops_until.is_some();
        let is_looking = self.controller.queries().is_running();
        for at in 0..self.callers.len() {
            let answer = match &self.callers[at].wants {
                CallerGoal::Change(since, until) if *since != version || *until <= now => {
                    self.answer()
                }
                CallerGoal::Look(looks, until) if !is_looking || *until <= now => {
                    self.elements(looks)
                }
                CallerGoal::TheEnd if is_at_end => self.answer(),
                _ => continue,
            };
            self.callers[at].answer(now, &answer);
        }
        self.callers
            .retain(|it| !matches!(it.wants, CallerGoal::Nothing));
    }

    fn wait(&self, now: Instant) -> io::Result<Vec<Source>> {
        let mut sources = vec![Source::Signals];
        let mut fds = vec![PollFd::new(self.signals.as_fd(), PollFlags::POLLIN)];
        if self.callers.len() < CALLERS_MAX {
            sources.push(Source::Listener);
            fds.push(PollFd::new(self.place.listener.as_fd(), PollFlags::POLLIN));
        }
        for (end, fd) in self.agent.iter().flat_map(Agent::ends) {
            let flags = match end {
                AgentStream::Input => PollFlags::POLLOUT,
                AgentStream::Output | AgentStream::Errors => PollFlags::POLLIN,
            };
            sources.push(Source::Agent(end));
            fds.push(PollFd::new(fd, flags));
        }
        for (at, caller) in self.callers.iter().enumerate() {
            sources.push(Source::Caller(at));
            fds.push(PollFd::new(caller.fd(), caller.interest()));
        }
        let until = self.poll_timeout().saturating_duration_since(now);
        // Up to the next millisecond, so that the time has come then.
        let until = PollTimeout::try_from(until + Duration::from_millis(1));
        match poll(&mut fds, until.unwrap_or(PollTimeout::MAX)) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
        let is_ready = |fd: &PollFd<'_>| fd.any().unwrap_or(true);
        let all = sources.into_iter().zip(&fds);
        Ok(all
            .filter(|(_, fd)| is_ready(fd))
            .map(|(it, _)| it)
            .collect())
    }

    fn poll_timeout(&self) -> Instant {
        let callers = self.callers.iter().filter_map(Caller::timeout);
        let all = callers
            .chain(self.controller.poll_timeout())
            .chain(self.stops_until.map(|until| match self.agent {
                Some(_) => until,
                None => until + END_WAIT,
            }));
        all.fold(self.next_look, Instant::min)
    }

    fn handle_timeout(&mut self) {
        let now = Instant::now();
        for caller in &mut self.callers {
            caller.handle_timeout(now);
        }
        if self.controller.poll_timeout().is_some_and(|at| at <= now) {
            self.controller.handle_timeout(now);
        }
        if self.stops_until.is_some_and(|until| until <= now) {
            // It was asked to end, and had its time.
            self.agent = None;
        }
        if self.next_look <= now {
            self.next_look = now + PLACE_PERIOD;
            if !self.place.is_there() {
                self.stop(now);
            }
        }
    }

    fn handle(&mut self, source: Source, buffer: &mut [u8]) -> io::Result<()> {
        let now = Instant::now();
        match source {
            Source::Signals => {
                while let Some(signal) = self.signals.read_signal()? {
                    // A child's end is seen to as everything is settled.
                    if signal.ssi_signo.cast_signed() != Signal::SIGCHLD as i32 {
                        self.stop(now);
                    }
                }
            }
            Source::Listener => match self.place.listener.accept() {
                // A connection of another user is dropped.
                Ok((stream, _)) => self.callers.extend(Caller::new(now, stream)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // Out of descriptors: new connections wait in the kernel meanwhile.
                Err(_) => std::thread::sleep(Duration::from_millis(50)),
            },
            Source::Agent(end) => self.handle_agent(end, now, buffer),
            Source::Caller(at) => self.handle_caller(at, now),
        }
        Ok(())
    }

    fn handle_agent(&mut self, end: AgentStream, now: Instant, buffer: &mut [u8]) {
        let Some(agent) = &mut self.agent else {
            return;
        };
        match end {
            AgentStream::Input => agent.write(),
            AgentStream::Errors => agent.read_errors(buffer),
            AgentStream::Output => {
                let count = agent.read(buffer);
                self.controller.receive(now, &buffer[..count]);
                // An agent that has closed its output is useless.
                if agent.is_silent() && self.controller.state() != Manager::Stopping {
                    agent.kill();
                }
            }
        }
    }

    fn handle_caller(&mut self, at: usize, now: Instant) {
        let caller = &mut self.callers[at];
        if matches!(caller.wants, CallerGoal::ToRead) {
            return caller.write(now);
        }
        match caller.read() {
            None => {}
            Some(Ok(question)) => self.ask(at, now, &question),
            Some(Err(why)) => {
                let mut answer = self.answer();
                answer.error = Some(format!("invalid request: {why}"));
                self.callers[at].answer(now, &answer);
            }
        }
    }

    fn ask(&mut self, at: usize, now: Instant, question: &Question) {
        match question {
            Question::State => {
                let answer = self.answer();
                self.callers[at].answer(now, &answer);
            }
            Question::Elements { looks, is_fresh } => {
                let age_max = match self.definition.host {
                    None => OWN_AGE_MAX,
                    Some(_) => OTHER_AGE_MAX,
                };
                // Callers that come while a query runs share it.
                if *is_fresh && self.controller.refresh(now, age_max) {
                    self.callers[at].wants = CallerGoal::Look(looks.clone(), now + LOOK_WAIT);
                    return;
                }
                let answer = self.elements(looks);
                self.callers[at].answer(now, &answer);
            }
            Question::Changed { since, wait_ms } => {
                let wait = Duration::from_millis(*wait_ms).min(CHANGE_WAIT_MAX);
                self.callers[at].wants = CallerGoal::Change(*since, now + wait);
            }
            Question::Stop => {
                self.callers[at].wants = CallerGoal::TheEnd;
                self.stop(now);
            }
            command => {
                let ticket = self.controller.command(now, command);
                self.callers[at].wants = CallerGoal::Outcome(ticket);
            }
        }
    }

    fn stop(&mut self, now: Instant) {
        if self.stops_until.is_none() {
            self.stops_until = Some(now + END_WAIT);
            self.controller.stop(now);
        }
    }

    /// An answer with the elements that these queries ask for.
    fn elements(&self, looks: &[Look]) -> Answer {
        let mut answer = self.answer();
        if let Some(store) = self.controller.store() {
            answer.groups = looks.iter().flat_map(|it| store.groups(it)).collect();
            answer.definitions = store.definitions();
        }
        answer
    }

    /// An answer with the manager's state and no elements.
    fn answer(&self) -> Answer {
        let definition = &self.definition;
        let age = self.controller.queries().age(Instant::now());
        Answer {
            manager: ManagerView {
                name: definition.name.clone(),
                rm_id: definition.rm_id.clone(),
                description: definition.description.clone(),
                rm_type: definition.rm_type.clone(),
                host: definition.host.clone(),
                state: self.controller.state(),
                reason: self.controller.reason(),
                stale: self.controller.is_stale(),
                since: self.seen.1,
                age_ms: age.map(|age| u64::try_from(age.as_millis()).unwrap_or(u64::MAX)),
            },
            version: self.controller.version(),
            groups: Vec::new(),
            definitions: Vec::new(),
            job: None,
            error: None,
        }
    }
}

fn unix_time() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}
