//! Inspects processes that no gdb holds, in a separate process ([`Looker`]) that is started for the first inspection.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::os::fd::RawFd;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use sdm_core::CommandId;
use sdm_debug::command::{LookSpec, SampleSpec};
use sdm_debug::fold::{FoldRules, mark_halted};
use sdm_debug::reply::{TaskStacks, Usage};
use sdm_debug::{BackendOutput, Command, Event, Failure, FailureCode, InterestChange, Reply};
use sdm_idset::{IdSet, TaskId};
use sdm_inspect::looker::{Answer, LookedProbe, Looker, Question, View};
use sdm_inspect::snapshot::Refusal;
use sdm_inspect::stack::StoppedThread;
use sdm_system::proc::{self, State};

use sdm_gdb::fold_looked;

use crate::host::memory_of;
use crate::samples::{SampleHistory, Sampling};

/// A task with its process and a stopped thread of it.
pub(crate) type LookedThread = (TaskId, i32, i32);

/// The looker and its open requests.
pub(crate) struct Looks {
    /// Executable of the looker.
    program: PathBuf,
    /// True if the looker uses the system's debug information too.
    of_system: bool,
    fold: FoldRules,
    looker: Option<Looker>,
    /// A replaced looker, which is dropped once the owner has stopped watching its descriptor.
    over: Option<Looker>,
    /// The descriptor that the owner watches, and true if it is watched for writing too; `None` if there is none.
    watched: Option<(RawFd, bool)>,
    next: u64,
    open: BTreeMap<u64, OpenLook>,
    /// The last samples of commands that continue each other.
    seen: SampleHistory,
    /// Pids of processes for which it was reported that their rank in `MPI_COMM_WORLD` is not the one that the launcher
    /// assigned.
    stray: BTreeSet<i32>,
    outputs: VecDeque<BackendOutput>,
    /// The results of looks for the report of a stop.
    stops: VecDeque<SeenStop>,
}

/// A task, and what was read of its stopped thread; `None` if it could not be read.
pub(crate) type SeenStop = (TaskId, Option<Box<StoppedThread>>);

/// A request to the looker that is not yet answered for all of its tasks.
struct OpenLook {
    /// The command; `None` for a look at a stopped thread, which answers no command.
    id: Option<CommandId>,
    full: bool,
    /// The unanswered tasks, and their pids.
    tasks: Vec<(TaskId, i32)>,
    /// Pids of the processes that a signal had stopped before the inspection. Empty for probes and samples.
    halted: Vec<i32>,
    /// The samples so far; `None` for a single inspection.
    sampling: Option<Sampling>,
}

impl Looks {
    /// The state without a looker. `program` is the looker's executable; by default it is this process's own. With
    /// `of_system` the looker uses the system's debug information too.
    pub(crate) fn new(program: Option<PathBuf>, of_system: bool, fold: FoldRules) -> Self {
        let own = || proc::own().path("exe");
        Self {
            program: program.unwrap_or_else(own),
            of_system,
            fold,
            looker: None,
            over: None,
            watched: None,
            next: 0,
            open: BTreeMap::new(),
            seen: SampleHistory::default(),
            stray: BTreeSet::new(),
            outputs: VecDeque::new(),
            stops: VecDeque::new(),
        }
    }

    /// The next answer; `None` if there is none.
    pub(crate) fn poll_output(&mut self) -> Option<BackendOutput> {
        self.outputs.pop_front()
    }

    fn answer(&mut self, id: CommandId, task: TaskId, result: Result<Reply, Failure>) {
        self.outputs
            .push_back(BackendOutput::Answer { id, task, result });
    }

    /// Begins a command that inspects processes; false for any other command.
    pub(crate) fn execute(
        &mut self,
        now: Instant,
        id: CommandId,
        tasks: &IdSet,
        command: &Command,
    ) -> bool {
        match command {
            Command::Look(spec) => self.begin(now, id, tasks, spec, None),
            Command::Sample(spec) => self.sample(now, id, tasks, spec),
            _ => return false,
        }
        true
    }

    fn sample(&mut self, now: Instant, id: CommandId, tasks: &IdSet, spec: &SampleSpec) {
        if !spec.goes_on {
            self.seen.forget(tasks);
        }
        let milliseconds = |count: u32| Duration::from_millis(count.into());
        let times = (
            milliseconds(spec.span_ms),
            milliseconds(spec.period_ms.max(1)),
        );
        self.begin(now, id, tasks, &spec.look, Some(times));
    }

    fn begin(
        &mut self,
        now: Instant,
        id: CommandId,
        tasks: &IdSet,
        spec: &LookSpec,
        times: Option<(Duration, Duration)>,
    ) {
        let mut wanted = Vec::new();
        for task in tasks {
            match process_of(task, &spec.pids) {
                Ok(pid) => wanted.push((task, pid)),
                Err(failure) => self.answer(id, task, Err(failure)),
            }
        }
        if wanted.is_empty() {
            return;
        }
        let question = match (spec.probe, times) {
            (Some(probe), _) => Question::Probe(probe, self.fold.clone()),
            (None, Some((span, period))) => Question::Samples {
                span,
                period,
                woven: (!spec.full).then(|| self.fold.clone()),
            },
            (None, None) if spec.full => Question::Stacks,
            (None, None) => Question::Woven(self.fold.clone()),
        };
        // Where the looker has just let go of a process, this is not its state yet.
        let is_halted = |pid: &i32| proc::of(*pid).state().is_some_and(State::is_stopped);
        let shown = wanted
            .iter()
            .map(|(_, pid)| *pid)
            .filter(|_| spec.probe.is_none() && times.is_none());
        let asked = OpenLook {
            id: Some(id),
            full: spec.full,
            halted: shown.filter(is_halted).collect(),
            tasks: wanted,
            sampling: times.map(|_| Sampling::default()),
        };
        self.ask(now, asked, question);
    }

    /// Reads the stopped thread of a task for [`Looks::take_stop`].
    pub(crate) fn look_at_stop(&mut self, now: Instant, (task, pid, thread): LookedThread) {
        let asked = OpenLook {
            id: None,
            full: false,
            tasks: vec![(task, pid)],
            halted: Vec::new(),
            sampling: None,
        };
        self.ask(now, asked, Question::Thread(vec![thread]));
    }

    /// The next result of [`Looks::look_at_stop`]; `None` if there is none.
    pub(crate) fn take_stop(&mut self) -> Option<SeenStop> {
        self.stops.pop_front()
    }

    fn ask(&mut self, now: Instant, asked: OpenLook, question: Question) {
        let looker = match &mut self.looker {
            Some(looker) => looker,
            none => match Looker::start(&self.program, self.of_system) {
                Ok(looker) => none.insert(looker),
                Err(error) => {
                    let failure =
                        unsupported(&format!("cannot start the sampling process: {error}"));
                    for (task, _) in &asked.tasks {
                        self.conclude(asked.id, *task, Err(failure.clone()));
                    }
                    return;
                }
            },
        };
        let number = self.next;
        self.next += 1;
        let pids: Vec<i32> = asked.tasks.iter().map(|(_, pid)| *pid).collect();
        looker.ask(now, number, pids, question);
        self.open.insert(number, asked);
    }

    /// Answers a command, or reports that a stopped thread could not be read.
    fn conclude(&mut self, id: Option<CommandId>, task: TaskId, result: Result<Reply, Failure>) {
        match id {
            None => self.stops.push_back((task, None)),
            Some(id) => self.answer(id, task, result),
        }
    }

    /// Handles a ready descriptor. If it is the looker's, the looker's answers are received.
    pub(crate) fn handle_ready(&mut self, now: Instant, fd: RawFd) {
        if self.watched.is_none_or(|(watched, _)| watched != fd) {
            return;
        }
        self.take(now);
    }

    fn take(&mut self, now: Instant) {
        let mut answers = Vec::new();
        if let Some(looker) = &mut self.looker
            && looker.take(now, &mut answers)
        {
            self.over = self.looker.take();
        }
        self.answered(answers);
    }

    /// The time at which [`Looks::handle_timeout`] must be called; `None` if no call is due.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        self.looker.as_ref().and_then(Looker::until)
    }

    /// Ends a looker that has not answered in time.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        let mut answers = Vec::new();
        if self.poll_timeout().is_some_and(|until| until <= now)
            && let Some(mut looker) = self.looker.take()
        {
            looker.give_up(&mut answers);
            self.over = Some(looker);
        }
        self.answered(answers);
    }

    /// Cancels a command: its unanswered tasks are answered with their samples so far, or else `cancelled`.
    pub(crate) fn cancel(&mut self, now: Instant, id: CommandId) {
        // Answers that the looker has already sent count.
        self.take(now);
        self.give_up(|asked| asked.id == Some(id), "cancelled");
    }

    /// Ends the looker; unanswered tasks are answered with their samples so far, or else `cancelled`.
    pub(crate) fn end(&mut self) {
        self.over = self.looker.take();
        self.give_up(|_| true, "the session ends");
    }

    fn give_up(&mut self, which: impl Fn(&OpenLook) -> bool, why: &str) {
        let open = std::mem::take(&mut self.open).into_iter();
        let (given_up, open) = open.partition::<BTreeMap<_, _>, _>(|(_, asked)| which(asked));
        self.open = open;
        for mut asked in given_up.into_values() {
            for (task, _) in std::mem::take(&mut asked.tasks) {
                let failure = Failure::new(FailureCode::Cancelled, why);
                let result = asked.last(task, Err(failure));
                self.conclude(asked.id, task, result);
            }
        }
    }

    /// The change of the watched descriptor; `None` if there is no change.
    pub(crate) fn poll_interest(&mut self) -> Option<InterestChange> {
        let wanted = self.looker.as_ref().map(Looker::interest);
        if wanted == self.watched {
            self.over = None;
            return None;
        }
        if let Some((fd, _)) = self
            .watched
            .take_if(|(fd, _)| wanted.is_none_or(|(it, _)| it != *fd))
        {
            return Some(InterestChange::Forget { fd });
        }
        self.watched = wanted;
        wanted.map(|(fd, writable)| InterestChange::Watch {
            fd,
            readable: true,
            writable,
        })
    }

    fn answered(&mut self, answers: Vec<Answer>) {
        for answer in answers {
            let number = answer.number;
            let Some(asked) = self.open.get_mut(&number) else {
                continue;
            };
            let Some(at) = asked.tasks.iter().position(|(_, pid)| *pid == answer.pid) else {
                continue;
            };
            let (task, _) = asked.tasks[at];
            let result = match answer.seen {
                Ok(View::Probe(LookedProbe { probe, stray_world })) => {
                    if let Some((rank, size)) = stray_world
                        && self.stray.insert(answer.pid)
                    {
                        let event = Event::World { rank, size };
                        self.outputs.push_back(BackendOutput::Event { task, event });
                    }
                    Ok(Reply::Probe(probe))
                }
                Ok(View::Woven { stacks, stood }) => {
                    Ok(asked.add(task, stacks, stood, &mut self.seen))
                }
                Ok(View::Stacks(stacks)) => {
                    let stood = stacks.stood;
                    let folded = fold_looked(stacks, &self.fold, asked.full);
                    Ok(asked.add(task, folded, stood, &mut self.seen))
                }
                Ok(View::Thread(thread)) => {
                    self.stops.push_back((task, Some(thread)));
                    self.open.remove(&number);
                    continue;
                }
                Err(refusal) => Err(failure(&refusal)),
            };
            if asked.sampling.is_some() && !answer.is_last {
                continue;
            }
            let result = match asked.halted.contains(&answer.pid) {
                true => halted_apart(result),
                false => result,
            };
            asked.tasks.remove(at);
            if asked.tasks.is_empty()
                && let Some(sampling) = &mut asked.sampling
            {
                sampling.spend(task, self.seen.spent(answer.processor));
            }
            let result = asked.last(task, result);
            let id = asked.id;
            if asked.tasks.is_empty() {
                self.open.remove(&number);
            }
            self.conclude(id, task, result);
        }
    }
}

impl OpenLook {
    /// The reply with these stacks. They are added to the samples, if the command takes samples.
    fn add(
        &mut self,
        task: TaskId,
        stacks: TaskStacks,
        stood: Duration,
        seen: &mut SampleHistory,
    ) -> Reply {
        if let Some(sampling) = &mut self.sampling {
            sampling.add(task, stacks.clone(), stood, seen);
        }
        Reply::Stacks(stacks)
    }

    /// The final answer of a task: its samples, even if a later sample failed. Without a sample it is `result`.
    fn last(&mut self, task: TaskId, result: Result<Reply, Failure>) -> Result<Reply, Failure> {
        let samples = self.sampling.as_mut().and_then(|it| it.take(task));
        samples.map_or(result, |it| Ok(Reply::Samples(Box::new(it))))
    }
}

/// Marks stacks as those of a process that a signal has stopped.
fn halted_apart(mut result: Result<Reply, Failure>) -> Result<Reply, Failure> {
    if let Ok(Reply::Stacks(stacks)) = &mut result {
        mark_halted(stacks);
    }
    result
}

/// The pid that a request names for a task.
///
/// # Errors
/// It names none.
pub(crate) fn process_of(task: TaskId, pids: &[(u32, i32)]) -> Result<i32, Failure> {
    let named = pids.iter().find(|(known, _)| *known == task.0);
    let pid = named.map(|(_, pid)| *pid).filter(|pid| *pid > 0);
    pid.ok_or_else(|| {
        Failure::new(
            FailureCode::AttachFailed,
            "no process was given for this rank",
        )
    })
}

/// The memory of a task's process to which no gdb was attached so far.
pub(crate) fn process_usage(task: TaskId, pids: &[(u32, i32)]) -> Result<Usage, Failure> {
    let found = memory_of(process_of(task, pids)?);
    let (resident_bytes, peak_bytes) =
        found.ok_or_else(|| Failure::new(FailureCode::NotRunning, "the process has ended"))?;
    Ok(Usage {
        resident_bytes,
        peak_bytes,
    })
}

fn unsupported(text: &str) -> Failure {
    Failure::new(FailureCode::Unsupported, text)
}

/// The failure of an inspection that was refused.
pub(crate) fn failure(refusal: &Refusal) -> Failure {
    let text = refusal.to_string();
    match refusal {
        Refusal::Ended => Failure::new(FailureCode::NotRunning, text),
        Refusal::Traced { .. } | Refusal::NotAllowed { .. } => {
            let text = format!("the process cannot be sampled: {text}");
            Failure::new(FailureCode::AttachFailed, text).with_hint(
                "the process must be yours, not traced already, and allowed by /proc/sys/kernel/yama/ptrace_scope; or run sdm as root; `sdm doctor PID` checks this (target, attach)",
            )
        }
        // gdb could not stop it either.
        Refusal::Uninterruptible { .. } => Failure::new(FailureCode::AttachFailed, text),
        // gdb takes half a minute for so many, and holds the process meanwhile.
        Refusal::TooManyThreads { .. } => Failure::new(FailureCode::AttachFailed, text)
            .with_hint("`sdm stacks --by gdb` reads all of these threads, and stops the process for half a minute"),
        _ => unsupported(&text),
    }
}
