//! Letting tasks run and stopping them.

use sdm_debug::Command;
use sdm_debug::command::{FrameSelect, StepKind};
use sdm_debug::reply::Stop;
use sdm_idset::IdSet;
use serde_json::{Value, json};

use super::Adapter;
use super::jobs::Purpose;
use super::requests::Handled;
use crate::answers::Answers;
use crate::arguments::ThreadArguments;
use crate::error::RequestError;
use crate::launch::Scope;
use crate::message::Request;
use crate::tasks::Condition;

impl Adapter {
    /// The tasks that a request about a thread moves, and whether they are all that stand.
    fn moved(&mut self, arguments: &ThreadArguments) -> Result<(IdSet, bool), RequestError> {
        let id = arguments.thread_id;
        let row = self.rows.find(id).ok_or(RequestError::Thread(id))?;
        let standing = self.tasks.standing();
        let class = row.group.tasks.intersection(&standing);
        let alone = arguments.single_thread || self.manner.scope == Scope::Class;
        let moved = if alone { class } else { standing.clone() };
        if moved.is_empty() {
            return Err(RequestError::Runs(format!("thread {id}")));
        }
        self.rows.focused = id;
        let all = moved == standing;
        Ok((moved, all))
    }

    pub(super) fn go_on(&mut self, request: &Request) -> Handled {
        let arguments: ThreadArguments = request.read()?;
        let (tasks, all) = self.moved(&arguments)?;
        self.write(request.response(json!({"allThreadsContinued": all})));
        self.run("continue", &tasks, &Command::Continue);
        Ok(None)
    }

    pub(super) fn step(&mut self, request: &Request) -> Handled {
        let arguments: ThreadArguments = request.read()?;
        let (tasks, _) = self.moved(&arguments)?;
        let instruction = arguments.granularity.as_deref() == Some("instruction");
        let step = |kind| Command::Step { kind, count: 1 };
        let (said, command) = match (request.command.as_str(), instruction) {
            ("next", false) => ("next", step(StepKind::Over)),
            ("next", true) => ("nexti", step(StepKind::InstructionOver)),
            ("stepIn", false) => ("step", step(StepKind::Into)),
            ("stepIn", true) => ("stepi", step(StepKind::Instruction)),
            _ => ("finish", Command::Finish),
        };
        self.write(request.response(Value::Null));
        self.run(said, &tasks, &command);
        self.settling.watch_step(self.now, said);
        Ok(None)
    }

    /// Lets these tasks run.
    pub(super) fn run(&mut self, said: &'static str, tasks: &IdSet, command: &Command) {
        if tasks.is_empty() {
            return;
        }
        let before = self.tasks.stops().map(|(stop, standing)| {
            let concerned = standing.intersection(tasks);
            (stop.clone(), concerned)
        });
        let before: Vec<(Stop, IdSet)> = before.filter(|(_, set)| !set.is_empty()).collect();
        let mut commands = Vec::new();
        if *command == Command::Finish {
            commands = self.select_innermost(tasks);
        }
        commands.push((tasks.clone(), command.clone()));
        self.forget(tasks);
        self.tasks.set(tasks, Condition::Running);
        self.settling.begin();
        self.begin_job(Purpose::Run { said, before }, commands);
    }

    /// `finish` leaves the frame that is selected, and the client may have looked at others.
    fn select_innermost(&self, tasks: &IdSet) -> Vec<(IdSet, Command)> {
        let standing = self
            .rows
            .iter()
            .filter_map(|row| row.group.standing.as_ref());
        let bases = standing.flat_map(|standing| &standing.bases);
        let select = bases.map(|(set, level)| {
            let command = Command::SelectFrame(FrameSelect::Level(*level));
            (set.intersection(tasks), command)
        });
        select.collect()
    }

    /// What was known of these tasks' frames and variables is of no use any more.
    pub(super) fn forget(&mut self, tasks: &IdSet) {
        for (set, _) in &mut self.stacks {
            set.subtract(tasks);
        }
        self.stacks.retain(|(set, _)| !set.is_empty());
        let standing = self.tasks.standing();
        let objects = self.references.forget(tasks);
        let deletes = objects.into_iter().map(|(set, name)| {
            let command = Command::VarDelete { name };
            (set.intersection(&standing), command)
        });
        let deletes: Vec<_> = deletes.collect();
        if !deletes.is_empty() {
            self.begin_job(Purpose::Nothing, deletes);
        }
    }

    /// All of a run have answered. Those who could not run stand as before.
    pub(super) fn finish_run(
        &mut self,
        said: &'static str,
        before: &[(Stop, IdSet)],
        answers: &[Answers],
    ) {
        let Some(answers) = answers.last() else {
            return;
        };
        let failed = answers.0.failed.iter().map(|(tasks, _)| tasks);
        let failed = IdSet::union_all(failed).intersection(&self.tasks.running());
        if let Some(complaint) = answers.complaint() {
            self.say("important", &format!("{said}: {complaint}\n"));
        }
        for (stop, tasks) in before {
            let back = tasks.intersection(&failed);
            self.tasks.set(&back, Condition::Standing(stop.clone()));
        }
        self.note_stops(&failed);
    }

    pub(super) fn pause(&mut self, request: &Request) -> Handled {
        let arguments: ThreadArguments = request.read()?;
        let running = self.tasks.running();
        let row = self.rows.find(arguments.thread_id);
        let tasks = match (row, self.manner.scope) {
            (Some(row), Scope::Class) => row.group.tasks.intersection(&running),
            _ => running,
        };
        if tasks.is_empty() {
            return Err(RequestError::Stands);
        }
        self.write(request.response(Value::Null));
        self.begin_job(Purpose::Interrupt, vec![(tasks, Command::Interrupt)]);
        Ok(None)
    }

    pub(super) fn finish_interrupt(&mut self, answers: &[Answers]) {
        if let Some(complaint) = answers.first().and_then(Answers::complaint) {
            self.say("important", &format!("pause: {complaint}\n"));
        }
    }
}
