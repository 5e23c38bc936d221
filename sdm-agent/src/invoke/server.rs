//! Replies, notifications and actions of an invoke server, and their order ("Ninf-G Invoke Server", Protocol): no I/O.
//!
//! The clients require this order. The number of a job is sent before anything else about it. Each job gets exactly one
//! DONE or FAILED. It is sent no sooner than a moment after the number, as a client takes an early one for an older
//! state. JOB_DESTROY is answered after the job has ended. After the answer to EXIT nothing is sent, and jobs are ended
//! a moment later.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use super::attributes::JobRequest;
use super::protocol::{ClientRequest, Decoder};

/// Maximum number of jobs at a time.
pub const JOBS_MAX: usize = 65_536;
/// Minimum time between the reply with a job's number and the report of the job's end.
const EARLY: Duration = Duration::from_millis(100);
/// Pause between the answer to EXIT and the end of the jobs.
const SILENCE: Duration = Duration::from_secs(1);
/// Time that a server waits for EXIT after all jobs of its maximum have been destroyed.
const FULL_WAIT: Duration = Duration::from_secs(2);
/// Time limit of the wait for a job's end in JOB_DESTROY.
const END_WAIT: Duration = Duration::from_secs(30);

/// The number of a job of this server.
pub type JobNumber = u64;

/// State of a job in the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobState {
    /// The job waits.
    Pending,
    /// The job runs.
    Active,
    /// The job has ended well, was cancelled, or is no longer reported by its manager.
    Done,
    /// The job could not be started, or has ended by a signal or with another code than 0.
    Failed,
}

impl JobState {
    /// The name of the job state in the protocol.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Pending => "PENDING",
            Self::Active => "ACTIVE",
            Self::Done => "DONE",
            Self::Failed => "FAILED",
        }
    }

    fn is_end(self) -> bool {
        matches!(self, Self::Done | Self::Failed)
    }
}

/// An action for the server's owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Start a job.
    Start(JobNumber, Box<JobRequest>),
    /// End a job, whether or not its manager has started it yet.
    Cancel(JobNumber),
    /// Forget a job: the client has destroyed it and cannot name it any more.
    Forget(JobNumber),
    /// Write a line into the log.
    Log(String),
}

/// Destination of output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pipe {
    /// Standard output, for the replies to requests.
    Replies,
    /// Standard error, for notifications.
    Notifies,
}

#[derive(Debug)]
struct ClientJob {
    /// The state that was last reported to the client.
    told: JobState,
    /// The latest state and its message; `None` if it was reported to the client.
    comes: Option<(JobState, String)>,
    /// Time at which the job was created. Its end is reported [`EARLY`] after that at the earliest.
    since: Instant,
    is_cancelled: bool,
}

/// Progress of the server's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ServerEnd {
    /// EXIT was answered; at this time the jobs are ended.
    At(Instant),
    /// Jobs are being ended.
    Begun,
}

/// An invoke server.
#[derive(Debug)]
pub struct Server {
    /// Prefix of the names of the server's jobs.
    prefix: String,
    decoder: Decoder,
    jobs: BTreeMap<JobNumber, ClientJob>,
    last: JobNumber,
    /// Maximum number of jobs that the client gives to this server; `None` if the client has not set it.
    jobs_max: Option<u64>,
    /// Time at which the server ends by itself, because its maximum of jobs were all destroyed; `None` otherwise.
    full_until: Option<Instant>,
    output: VecDeque<(Pipe, Vec<u8>)>,
    actions: VecDeque<Action>,
    /// The job whose end must precede the answer to JOB_DESTROY, and the time limit of that wait; `None` if no
    /// JOB_DESTROY waits.
    destroying: Option<(JobNumber, Instant)>,
    ending: Option<ServerEnd>,
}

impl Server {
    /// An invoke server whose job names begin with `prefix`.
    #[must_use]
    pub fn new(prefix: impl Into<String>) -> Self {
        Self {
            prefix: prefix.into(),
            decoder: Decoder::default(),
            jobs: BTreeMap::new(),
            last: 0,
            jobs_max: None,
            full_until: None,
            output: VecDeque::new(),
            actions: VecDeque::new(),
            destroying: None,
            ending: None,
        }
    }

    /// Handles bytes of the client.
    pub fn receive(&mut self, now: Instant, bytes: &[u8]) {
        self.decoder.push(bytes);
        self.go_on(now);
    }

    /// Handles the end of the client's input.
    pub fn closed(&mut self, now: Instant) {
        if self.ending.is_none() {
            self.ending = Some(ServerEnd::At(now));
            self.destroying = None;
            self.output.retain(|(pipe, _)| *pipe == Pipe::Replies);
            self.end_jobs();
        }
    }

    /// Returns the next output and its pipe; `None` if there is none. The order holds across both pipes.
    pub fn poll_output(&mut self) -> Option<(Pipe, Vec<u8>)> {
        self.output.pop_front()
    }

    /// Removes and returns the next action; `None` if there is none.
    pub fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// Records a job's new state, with a message for the log. States after the job's end are ignored.
    pub fn job_is(&mut self, now: Instant, number: JobNumber, state: JobState, words: &str) {
        let Some(job) = self.jobs.get_mut(&number) else {
            return;
        };
        let was = job.comes.as_ref().map_or(job.told, |(state, _)| *state);
        if was.is_end() || was == state {
            return;
        }
        // For a cancelled job the client expects DONE.
        let state = match state {
            JobState::Failed if job.is_cancelled => JobState::Done,
            state => state,
        };
        job.comes = Some((state, words.to_owned()));
        self.tell(now);
        self.go_on(now);
    }

    /// Time at which [`Server::handle_timeout`] must be called; `None` if no call is due.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let is_silent = self.ending.is_some();
        let kept_back = self
            .jobs
            .values()
            .filter(|job| job.comes.is_some() && !is_silent);
        let ending = match self.ending {
            Some(ServerEnd::At(at)) => Some(at),
            _ => None,
        };
        let destroying = self.destroying.map(|(_, until)| until);
        let destroying = destroying.into_iter().chain(self.full_until);
        let kept_back = kept_back.map(|job| job.since + EARLY);
        kept_back.chain(ending).chain(destroying).min()
    }

    /// Carries out what is due at the time of [`Server::poll_timeout`].
    pub fn handle_timeout(&mut self, now: Instant) {
        self.tell(now);
        if self.destroying.is_some_and(|(_, until)| until <= now) {
            // The job's end is reported when it happens.
            self.destroying = None;
            self.reply("S");
        }
        if self.full_until.is_some_and(|until| until <= now) {
            self.log("this server ends, because it has run its maximum number of jobs".to_owned());
            self.full_until = None;
            self.ending.get_or_insert(ServerEnd::At(now));
        }
        if let Some(ServerEnd::At(at)) = self.ending
            && at <= now
        {
            self.end_jobs();
        }
        self.go_on(now);
    }

    /// True once all jobs of a server that ends have ended.
    #[must_use]
    pub fn is_over(&self) -> bool {
        let ended = |job: &ClientJob| {
            let state = job.comes.as_ref().map_or(job.told, |(state, _)| *state);
            state.is_end()
        };
        self.ending == Some(ServerEnd::Begun) && self.jobs.values().all(ended)
    }

    fn end_jobs(&mut self) {
        self.ending = Some(ServerEnd::Begun);
        let all: Vec<JobNumber> = self.jobs.keys().copied().collect();
        for number in all {
            self.cancel(number);
        }
    }

    fn cancel(&mut self, number: JobNumber) {
        let Some(job) = self.jobs.get_mut(&number) else {
            return;
        };
        let ended = job.comes.as_ref().map_or(job.told, |(state, _)| *state);
        if !ended.is_end() && !std::mem::replace(&mut job.is_cancelled, true) {
            self.actions.push_back(Action::Cancel(number));
        }
    }

    /// Handles waiting requests, each after the previous one was answered.
    fn go_on(&mut self, now: Instant) {
        while self.destroying.is_none() && self.ending.is_none() {
            let Some(request) = self.decoder.poll() else {
                return;
            };
            self.handle(now, request);
        }
    }

    fn handle(&mut self, now: Instant, request: ClientRequest) {
        match request {
            ClientRequest::QueryFeatures => {
                self.reply("SM");
                self.reply("protocol_version 2.0");
                for name in ["JOB_CREATE", "JOB_STATUS", "JOB_DESTROY", "EXIT"] {
                    self.reply(&format!("request {name}"));
                }
                self.reply("REPLY_END");
            }
            ClientRequest::Create { id, attributes } => self.create(now, &id, &attributes),
            ClientRequest::Status(name) => match self.find(&name) {
                Some((_, job)) => {
                    let word = job.told.word();
                    self.reply(&format!("S {word}"));
                }
                None => self.reply("F no such job"),
            },
            ClientRequest::Destroy(name) => self.destroy(now, &name),
            ClientRequest::Exit => {
                self.reply("S");
                self.ending = Some(ServerEnd::At(now + SILENCE));
            }
            ClientRequest::Wrong(why) => {
                self.log(format!("refused: {why}"));
                self.reply(&format!("F {why}"));
            }
        }
    }

    fn create(&mut self, now: Instant, id: &str, attributes: &[(String, String)]) {
        let read = JobRequest::read(attributes);
        let request = match read {
            _ if self.jobs.len() >= JOBS_MAX => {
                return self.reply(&format!("F more than {JOBS_MAX} jobs"));
            }
            Ok(_) if self.jobs_max.is_some_and(|max| self.last >= max) => {
                return self.reply("F this server has run its maximum number of jobs");
            }
            // Both clients take this one; a CREATE_NOTIFY with F hangs that of Java.
            Err(why) => {
                self.log(format!("request {id} refused: {why}"));
                return self.reply(&format!("F {why}"));
            }
            Ok(request) => request,
        };
        self.jobs_max = Some(request.jobs_max)
            .filter(|max| *max > 0)
            .or(self.jobs_max);
        self.last += 1;
        let number = self.last;
        let name = self.name(number);
        self.reply("S");
        self.notify(&format!("CREATE_NOTIFY {id} S {name}"));
        self.log(format!(
            "request {id} creates job {name} with the program {}",
            request.job.program
        ));
        for name in &request.unknown {
            self.log(format!("attribute {name}: ignored, because it is unknown"));
        }
        let job = ClientJob {
            told: JobState::Pending,
            comes: None,
            since: now,
            is_cancelled: false,
        };
        self.jobs.insert(number, job);
        self.actions
            .push_back(Action::Start(number, Box::new(request)));
    }

    fn destroy(&mut self, now: Instant, name: &str) {
        let Some((number, job)) = self.find(name) else {
            return self.reply("F no such job");
        };
        if job.told.is_end() {
            return self.forget(now, number);
        }
        self.cancel(number);
        self.destroying = Some((number, now + END_WAIT));
    }

    /// Sends the notifications that are due by now.
    fn tell(&mut self, now: Instant) {
        if self.ending.is_some() {
            return;
        }
        let mut told = Vec::new();
        for (number, job) in &mut self.jobs {
            let is_early = |state: JobState| state.is_end() && now < job.since + EARLY;
            if let Some((state, words)) = job.comes.take_if(|(state, _)| !is_early(*state)) {
                job.told = state;
                told.push((*number, state, words));
            }
        }
        for (number, state, words) in told {
            let name = self.name(number);
            self.notify(&format!("STATUS_NOTIFY {name} {}", state.word()));
            self.log(format!("job {name} is {}: {words}", state.word()));
            if state.is_end() && self.destroying.is_some_and(|(of, _)| of == number) {
                self.destroying = None;
                self.forget(now, number);
            }
        }
    }

    /// Answers JOB_DESTROY of a job that has ended. After the last of its jobs a server waits for EXIT.
    fn forget(&mut self, now: Instant, number: JobNumber) {
        self.jobs.remove(&number);
        self.actions.push_back(Action::Forget(number));
        self.reply("S");
        if self.jobs.is_empty() && self.jobs_max.is_some_and(|max| self.last >= max) {
            self.full_until = Some(now + FULL_WAIT);
        }
    }

    fn name(&self, number: JobNumber) -> String {
        format!("{}-{number}", self.prefix)
    }

    fn find(&self, name: &str) -> Option<(JobNumber, &ClientJob)> {
        let number = name.strip_prefix(&*self.prefix)?.strip_prefix('-')?;
        let number: JobNumber = number.parse().ok()?;
        let job = self.jobs.get(&number)?;
        Some((number, job))
    }

    fn log(&mut self, line: String) {
        self.actions.push_back(Action::Log(line));
    }

    fn reply(&mut self, line: &str) {
        self.output.push_back((Pipe::Replies, with_end(line)));
    }

    fn notify(&mut self, line: &str) {
        self.output.push_back((Pipe::Notifies, with_end(line)));
    }
}

/// The bytes of a line without line ends inside it, followed by `\r\n`.
fn with_end(line: &str) -> Vec<u8> {
    let text = line.bytes().filter(|byte| !matches!(byte, b'\r' | b'\n'));
    text.chain(*b"\r\n").collect()
}
