//! A scripted task's answers to a probe: its state, its stacks and what it waits for.

use sdm_debug::calls::{is_lock, roles};
use sdm_debug::command::ProbeSpec;
use sdm_debug::probe::{
    Call, CallArgument, Known, ProcessState, TaskProbe, TaskWaits, ThreadWait, WaitFor,
};
use sdm_debug::reply::StackFrame;
use sdm_debug::{Failure, Reply, TaskState};
use sdm_idset::TaskId;

use super::scenario::Scenario;
use super::task::{Task, value};

impl Task {
    /// The answer to a probe; for a running task only the kernel's data.
    pub(super) fn probe(
        &mut self,
        scenario: &Scenario,
        id: TaskId,
        spec: ProbeSpec,
    ) -> Result<Reply, Failure> {
        self.state.need_live()?;
        let stopped = self.state == TaskState::Stopped;
        let process = ProcessState {
            letter: if stopped { 't' } else { 'S' },
            wait_channel: String::new(),
        };
        let mut probe = TaskProbe {
            process: Some(process),
            ..TaskProbe::default()
        };
        if stopped {
            let mut seen = self.locals(scenario, id);
            seen.extend(self.frames(scenario, id).remove(0).args);
            let before = self.life.probed.replace(seen.clone());
            let before = before.filter(|_| spec.compare);
            probe.inner_changed = before.as_ref().map(|before| *before != seen);
            probe.outer_changed = before.map(|_| false);
            probe.stacks = Some(self.stacks(scenario, id, false));
            probe.waits = spec.waits.then(|| self.waits(scenario, id));
        }
        Ok(Reply::Probe(Box::new(probe)))
    }

    /// The waits in the innermost functions of the stacks. A call's arguments are the script's values `count`,
    /// `source`, `destination`, `tag` and `communicator`, as far as it has them.
    fn waits(&self, scenario: &Scenario, id: TaskId) -> TaskWaits {
        let stacks = self.stacks(scenario, id, false).threads;
        let locks = stacks.iter().zip(1..).filter_map(|(stack, thread)| {
            let last = stack.frames.last()?;
            is_lock(&last.function).then(|| ThreadWait {
                thread,
                what: WaitFor::SystemCall("futex".to_owned()),
            })
        });
        TaskWaits {
            call: stacks
                .first()
                .and_then(|stack| self.call(scenario, id, &stack.frames)),
            threads: locks.collect(),
            window_locks: Vec::new(),
        }
    }

    fn call(&self, scenario: &Scenario, id: TaskId, frames: &[StackFrame]) -> Option<Call> {
        let [.., caller, last] = frames else {
            return None;
        };
        let roles = roles(&last.function);
        let argument = |(_, role): &(usize, _)| {
            let name = format!("{role:?}").to_lowercase();
            let text = self.evaluate(scenario, id, &name).ok()?;
            let number = text.parse().ok();
            Some(CallArgument {
                role: *role,
                expression: name,
                value: Some(value(&text)).filter(|_| number.is_none()),
                number,
                known: Known::Source,
            })
        };
        (!roles.is_empty()).then(|| Call {
            function: last.function.clone(),
            place: caller.clone(),
            source: String::new(),
            arguments: roles.iter().filter_map(argument).collect(),
        })
    }
}
