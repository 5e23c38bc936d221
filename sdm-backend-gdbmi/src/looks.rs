//! Looks at processes that no gdb has: by a process of their own ([`Looker`]), which is there from the first look on.

use std::collections::{BTreeMap, VecDeque};
use std::os::fd::RawFd;
use std::path::PathBuf;
use std::time::Instant;

use sdm_core::CommandId;
use sdm_debug::command::LookSpec;
use sdm_debug::fold::FoldRules;
use sdm_debug::{BackendOutput, Failure, FailureCode, InterestChange, Reply};
use sdm_idset::{IdSet, TaskId};
use sdm_inspect::looker::{Answer, Looker};
use sdm_inspect::snapshot::Refusal;
use sdm_system::proc;

use sdm_gdb::{fold_looked, has_python};

/// Those who are looked at, and who looks.
pub(crate) struct Looks {
    /// What becomes the looker.
    program: PathBuf,
    /// It looks for debug information also where systems keep it.
    of_system: bool,
    fold: FoldRules,
    looker: Option<Looker>,
    /// One that is to go once its owner watches it no more.
    over: Option<Looker>,
    /// What its owner watches of it.
    watched: Option<(RawFd, bool)>,
    next: u64,
    open: BTreeMap<u64, OpenLook>,
    outputs: VecDeque<BackendOutput>,
}

/// A command that is not answered on all of its tasks.
struct OpenLook {
    id: CommandId,
    full: bool,
    /// The tasks that are not, and their processes.
    tasks: Vec<(TaskId, i32)>,
}

impl Looks {
    /// None yet. `program` becomes the looker: this process's own executable where absent. `of_system`: with the debug information that
    /// the system has apart.
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
            outputs: VecDeque::new(),
        }
    }

    /// The next answer.
    pub(crate) fn poll_output(&mut self) -> Option<BackendOutput> {
        self.outputs.pop_front()
    }

    fn answer(&mut self, id: CommandId, task: TaskId, result: Result<Reply, Failure>) {
        self.outputs
            .push_back(BackendOutput::Answer { id, task, result });
    }

    /// Begins a look.
    pub(crate) fn ask(&mut self, now: Instant, id: CommandId, tasks: &IdSet, spec: &LookSpec) {
        let pid_of = |task: TaskId| {
            let mut pids = spec.pids.iter();
            let found = pids.find(|(known, _)| *known == task.0);
            found.map(|(_, pid)| *pid).filter(|pid| *pid > 0)
        };
        let mut wanted = Vec::new();
        for task in tasks {
            match pid_of(task) {
                Some(pid) => wanted.push((task, pid)),
                None => self.answer(id, task, Err(no_process())),
            }
        }
        if wanted.is_empty() {
            return;
        }
        let looker = match &mut self.looker {
            Some(looker) => looker,
            none => match Looker::start(&self.program, self.of_system) {
                Ok(looker) => none.insert(looker),
                Err(error) => {
                    let failure = unsupported(&format!("what looks could not be started: {error}"));
                    for (task, _) in wanted {
                        self.answer(id, task, Err(failure.clone()));
                    }
                    return;
                }
            },
        };
        let number = self.next;
        self.next += 1;
        looker.ask(now, number, wanted.iter().map(|(_, pid)| *pid).collect());
        let asked = OpenLook {
            id,
            full: spec.full,
            tasks: wanted,
        };
        self.open.insert(number, asked);
    }

    /// A descriptor is ready: takes what the looker has said, where it is the looker's.
    pub(crate) fn handle_ready(&mut self, now: Instant, fd: RawFd) {
        if self.watched.is_none_or(|(watched, _)| watched != fd) {
            return;
        }
        let mut answers = Vec::new();
        if let Some(looker) = &mut self.looker
            && looker.take(now, &mut answers)
        {
            self.over = self.looker.take();
        }
        self.answered(answers);
    }

    /// When [`Looks::handle_timeout`] is to be called.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        self.looker.as_ref().and_then(Looker::until)
    }

    /// Gives up a looker that says nothing.
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

    /// Gives a command up: those of its tasks that are not answered.
    pub(crate) fn cancel(&mut self, id: CommandId) {
        self.give_up(|asked| asked.id == id, "cancelled");
    }

    /// Ends the looker; what is not answered is given up.
    pub(crate) fn end(&mut self) {
        self.over = self.looker.take();
        self.give_up(|_| true, "the session ends");
    }

    fn give_up(&mut self, which: impl Fn(&OpenLook) -> bool, why: &str) {
        let open = std::mem::take(&mut self.open).into_iter();
        let (given_up, open) = open.partition::<BTreeMap<_, _>, _>(|(_, asked)| which(asked));
        self.open = open;
        for OpenLook { id, tasks, .. } in given_up.into_values() {
            for (task, _) in tasks {
                let failure = Failure::new(FailureCode::Cancelled, why);
                self.answer(id, task, Err(failure));
            }
        }
    }

    /// What its owner is to watch from now on, where that is something else.
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
        for Answer {
            number,
            pid,
            stacks,
        } in answers
        {
            let Some(asked) = self.open.get_mut(&number) else {
                continue;
            };
            let Some(at) = asked.tasks.iter().position(|(_, known)| *known == pid) else {
                continue;
            };
            let (task, _) = asked.tasks.remove(at);
            let result = match stacks {
                Ok(stacks) if !asked.full && has_python(&stacks) => {
                    Err(unsupported("its functions are Python's"))
                }
                Ok(stacks) => Ok(Reply::Stacks(fold_looked(stacks, &self.fold, asked.full))),
                Err(refusal) => Err(failure(&refusal)),
            };
            let id = asked.id;
            if asked.tasks.is_empty() {
                self.open.remove(&number);
            }
            self.answer(id, task, result);
        }
    }
}

fn no_process() -> Failure {
    Failure::new(FailureCode::AttachFailed, "no process was named for it")
}

fn unsupported(text: &str) -> Failure {
    Failure::new(FailureCode::Unsupported, text)
}

fn failure(refusal: &Refusal) -> Failure {
    let text = refusal.to_string();
    match refusal {
        Refusal::Ended => Failure::new(FailureCode::NotRunning, format!("no such process: {text}")),
        Refusal::Traced { .. } | Refusal::NotAllowed { .. } => {
            let text = format!("cannot be looked at: {text}");
            Failure::new(FailureCode::AttachFailed, text).with_hint(
                "it must be yours, not traced already, and /proc/sys/kernel/yama/ptrace_scope must allow it; \
                 or run sdm as root; `sdm doctor PID` looks into it: target, attach",
            )
        }
        _ => unsupported(&text),
    }
}
