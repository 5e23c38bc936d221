//! Probes processes that no gdb holds, with the same operations as for a task with a gdb. The questions to gdb are
//! answered from a snapshot ([`stand_in`]).

mod stand_in;

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::{Duration, Instant};

use sdm_core::CommandId;
use sdm_debug::command::ProbeSpec;
use sdm_debug::fold::{FoldRules, innermost_user_frame};
use sdm_debug::probe::TaskWaits;
use sdm_debug::reply::TaskStacks;
use sdm_debug::{Command, Event, Failure, FailureCode, Reply};
use sdm_inspect::looker::{self, LookedProbe, ProbeResult};
use sdm_inspect::python::is_evaluation;
use sdm_inspect::stack::{Inspection, ThreadStack};
use sdm_system::proc;

use crate::host::{LastThreads, LocalHost, StoppedThreads};
use crate::sources::Sources;
use sdm_gdb::{Action, Driver, DriverConfig, SavedProbe, raw_frame};
use stand_in::StandIn;

/// Time limit for the answer to a question; the answer is immediate.
const NO_WAIT: Duration = Duration::from_secs(60);

/// The processes probed so far, by pid.
#[derive(Default)]
pub(crate) struct Prober {
    known: BTreeMap<i32, (String, Driver)>,
    sources: Rc<Sources>,
    /// The threads of the probed process, as the snapshot found them.
    standing: LastThreads,
    /// For each process the probe before its last probe. It is restored if the last probe is discarded.
    before: BTreeMap<i32, SavedProbe>,
    /// By pid, the rank in `MPI_COMM_WORLD` and the number of ranks, for processes where the launcher assigned another
    /// rank.
    stray_worlds: BTreeMap<i32, (u32, u32)>,
}

impl looker::Prober for Prober {
    fn probe(
        &mut self,
        inspection: &Inspection,
        spec: ProbeSpec,
        rules: &FoldRules,
    ) -> Result<ProbeResult, Failure> {
        let pid = inspection.pid();
        let driver = self.driver(inspection, rules);
        if spec.waits {
            let before = driver.kept_probe();
            self.before.insert(pid, before);
        }
        let Reply::Probe(probe) = self.ask(inspection, rules, Command::Probe(spec))? else {
            return Err(unanswered());
        };
        // What a process waits for, and calls, is read after it was resumed. One that computes has nothing of that kind,
        // and moves between any two moments.
        let reads_later = probe
            .waits
            .as_ref()
            .is_some_and(|waits| *waits != TaskWaits::default());
        let stray_world = self.stray_worlds.get(&pid).copied();
        let seen = LookedProbe { probe, stray_world };
        // They belong to these stacks only if the process has not moved since.
        let first = inspection.stacks().next().filter(|_| reads_later);
        let level = first.and_then(|it| innermost_own(it, inspection.program(), rules));
        Ok(ProbeResult {
            seen,
            certain_from: level.map(|level| (0, level)).into_iter().collect(),
        })
    }

    fn take_back(&mut self, pid: i32) {
        let before = self.before.remove(&pid);
        if let Some(((_, driver), before)) = self.known.get_mut(&pid).zip(before) {
            driver.restore_probe(before);
        }
    }

    fn woven(
        &mut self,
        inspection: &Inspection,
        rules: &FoldRules,
    ) -> Option<Result<TaskStacks, Failure>> {
        inspection.stacks().find_map(evaluation)?;
        let told = self.ask(inspection, rules, Command::Stacks { full: false });
        Some(told.and_then(|reply| match reply {
            Reply::Stacks(seen) => Ok(seen),
            _ => Err(unanswered()),
        }))
    }
}

impl Prober {
    /// The driver of a process. As with a gdb, the driver keeps its state between diagnoses.
    fn driver(&mut self, inspection: &Inspection, rules: &FoldRules) -> &mut Driver {
        let (pid, program) = (inspection.pid(), inspection.program());
        if self.known.get(&pid).is_none_or(|(name, _)| name != program) {
            self.forget_ended();
            self.known.remove(&pid);
        }
        let (_, driver) = self.known.entry(pid).or_insert_with(|| {
            let config = Rc::new(config(rules));
            let host = Box::new(LocalHost::of_moment(&self.standing, &self.sources));
            let driver = Driver::of_process(Instant::now(), config, host, (pid, program));
            (program.to_owned(), driver)
        });
        driver
    }

    /// Answers a command by the driver of a process.
    fn ask(
        &mut self,
        inspection: &Inspection,
        rules: &FoldRules,
        command: Command,
    ) -> Result<Reply, Failure> {
        let threads = inspection.threads().iter();
        *self.standing.borrow_mut() = StoppedThreads {
            waits: threads
                .map(|it| (it.id, (it.system_call, it.lock)))
                .collect(),
            python: inspection.python().clone(),
        };
        let (told, stray) = asked(self.driver(inspection, rules), inspection, command);
        self.stray_worlds
            .extend(stray.map(|world| (inspection.pid(), world)));
        told
    }

    fn forget_ended(&mut self) {
        self.known.retain(|pid, _| proc::of(*pid).stat().is_ok());
        let known = &self.known;
        self.before.retain(|pid, _| known.contains_key(pid));
        self.stray_worlds.retain(|pid, _| known.contains_key(pid));
    }
}

/// The level of a thread's innermost frame that is the user's, or the Python interpreter's evaluation function. `None`
/// if there is no such frame.
fn innermost_own(thread: &ThreadStack, program: &str, rules: &FoldRules) -> Option<usize> {
    let frames = thread.frames.iter();
    let raw: Vec<_> = frames.map(|it| raw_frame(it.clone(), program)).collect();
    let user = innermost_user_frame(&raw, rules).map(|user| user.index);
    user.into_iter().chain(evaluation(thread)).min()
}

/// The level of a thread's innermost frame of the Python interpreter's evaluation function; `None` if there is none.
fn evaluation(thread: &ThreadStack) -> Option<usize> {
    let mut frames = thread.frames.iter();
    frames.position(|it| it.function.as_deref().is_some_and(is_evaluation))
}

/// Answers a command by a driver. The second value is the rank in `MPI_COMM_WORLD` and the number of ranks, if the
/// driver reports that the launcher assigned another rank.
fn asked(
    driver: &mut Driver,
    inspection: &Inspection,
    command: Command,
) -> (Result<Reply, Failure>, Option<(u32, u32)>) {
    let now = Instant::now();
    let gdb = StandIn::of(inspection);
    let mut told = Err(unanswered());
    let mut stray = None;
    driver.handle_command(now, CommandId(1), command);
    while let Some(action) = driver.poll_action() {
        match action {
            Action::Send(line) => {
                for record in gdb.answer(&line) {
                    driver.handle_record(now, record);
                }
            }
            Action::Answer { result, .. } => told = result,
            Action::Event(Event::World { rank, size }) => stray = Some((rank, size)),
            _ => {}
        }
    }
    (told, stray)
}

fn unanswered() -> Failure {
    Failure::new(
        FailureCode::Unsupported,
        "the sampling process did not complete the sample",
    )
}

fn config(rules: &FoldRules) -> DriverConfig {
    DriverConfig {
        command_wait: NO_WAIT,
        symbols_wait: NO_WAIT,
        interrupt_wait: NO_WAIT,
        internal_breakpoints: false,
        registers_unknown: false,
        handles: Vec::new(),
        fold: rules.clone(),
    }
}
