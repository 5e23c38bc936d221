//! The checker of commands and events: compares the root's outputs with the tasks' actions.

use std::collections::BTreeMap;

use sdm_core::CommandId;
use sdm_core::message::{Block, EventBlock, Health, Lane, ReachChange, Status, SyncPolicy};
use sdm_core::node::Delivery;
use sdm_debug::{Failure, FailureCode};
use sdm_idset::{IdSet, TaskId};

use crate::spec::{Spec, event_of};

/// A violation of a law.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Violation {
    /// The invariant, in a few words that never change.
    pub check: &'static str,
    /// A description of the violation.
    pub text: String,
}

/// The result of a check: a violation, or none.
pub(crate) type Checked = Result<(), Violation>;

/// A violation of an invariant.
pub(crate) fn violated<T>(check: &'static str, text: impl Into<String>) -> Result<T, Violation> {
    Err(Violation {
        check,
        text: text.into(),
    })
}

/// The root's outputs on one command: every destination is in exactly one of `open`, `answered`, `missing` and `lost`.
pub(crate) struct Account {
    spec: Option<Spec>,
    sync: SyncPolicy,
    destination: IdSet,
    open: IdSet,
    answered: IdSet,
    missing: IdSet,
    lost: IdSet,
    /// Deadline in microseconds; `None` if the command has no deadline.
    over_by: Option<u64>,
    cancelled: bool,
    complete: bool,
}

/// The tasks' actions on one command.
#[derive(Default)]
struct Truth {
    executed: IdSet,
    answered: IdSet,
    /// For each task, the number of its last event on the control lane before its answer to the command.
    events_before: BTreeMap<TaskId, u32>,
}

/// The root's outputs, and the true events.
#[derive(Default)]
pub(crate) struct Ledger {
    accounts: BTreeMap<CommandId, Account>,
    truths: BTreeMap<CommandId, Truth>,
    /// Number of the last event of each task that the task emitted (`said`) and that the root saw (`seen`), by lane.
    said: BTreeMap<(TaskId, bool), u32>,
    seen: BTreeMap<(TaskId, bool), u32>,
    /// For each task, the number of the last control-lane event that may not arrive any more, because the answer after
    /// it has arrived.
    passed: BTreeMap<TaskId, u32>,
    /// The last command that was given to each task, by lane.
    given: BTreeMap<(TaskId, bool), CommandId>,
    lost: IdSet,
    silent: IdSet,
    classes_max: u32,
    answers_can_be_lost: bool,
    /// Number of events that were lost.
    pub(crate) gaps: u64,
}

impl Ledger {
    pub(crate) fn new(classes_max: u32, answers_can_be_lost: bool) -> Self {
        Self {
            classes_max,
            answers_can_be_lost,
            ..Self::default()
        }
    }

    /// Records a command by the root's user.
    pub(crate) fn open(
        &mut self,
        id: CommandId,
        destination: &IdSet,
        sync: SyncPolicy,
        spec: Option<Spec>,
        over_by: Option<u64>,
    ) {
        let account = Account {
            spec,
            sync,
            destination: destination.clone(),
            open: destination.clone(),
            answered: IdSet::new(),
            missing: IdSet::new(),
            lost: IdSet::new(),
            over_by,
            cancelled: false,
            complete: false,
        };
        self.accounts.insert(id, account);
    }

    pub(crate) fn cancel(&mut self, id: CommandId) {
        if let Some(account) = self.accounts.get_mut(&id) {
            account.cancelled = true;
        }
    }

    /// The ids of the commands that are not complete.
    pub(crate) fn incomplete(&self) -> Vec<CommandId> {
        let open = self
            .accounts
            .iter()
            .filter(|(_, account)| !account.complete);
        open.map(|(id, _)| *id).collect()
    }

    /// The state of an account, for display.
    pub(crate) fn describe(&self, id: CommandId) -> String {
        self.accounts.get(&id).map_or_else(String::new, |account| {
            format!(
                "command {id} ({:?}): open {}, answered {}, missing {}, lost {}",
                account.sync, account.open, account.answered, account.missing, account.lost
            )
        })
    }

    /// Tasks that answered a command, including failures.
    pub(crate) fn answered(&self, id: CommandId) -> IdSet {
        self.accounts
            .get(&id)
            .map_or_else(IdSet::new, |account| account.answered.clone())
    }

    /// Tasks that the root last reported as lost or silent.
    pub(crate) fn unreachable(&self) -> IdSet {
        self.lost.union(&self.silent)
    }

    /// Tasks that the root last reported as lost.
    pub(crate) fn lost(&self) -> &IdSet {
        &self.lost
    }

    /// Records that tasks begin a command. Each task must begin it once, and begin the commands of a lane in the order
    /// of their ids.
    pub(crate) fn executed(&mut self, id: CommandId, tasks: &IdSet, payload: &[u8]) -> Checked {
        let truth = self.truths.entry(id).or_default();
        let twice = truth.executed.intersection(tasks);
        if !twice.is_empty() {
            return violated("executed twice", format!("command {id} at task {twice}"));
        }
        truth.executed.union_with(tasks);
        let asked = self.accounts.get(&id).map(|account| &account.destination);
        if asked.is_none_or(|asked| !tasks.is_subset(asked)) {
            return violated("executed unasked", format!("command {id} at tasks {tasks}"));
        }
        let bulk = Spec::decode(payload).bulk;
        for task in tasks {
            let before = self.given.insert((task, bulk), id);
            if let Some(before) = before.filter(|before| *before > id) {
                let text = format!("task {task} got command {id} after command {before}");
                return violated("order of commands", text);
            }
        }
        Ok(())
    }

    /// Records a task's answer to a command.
    pub(crate) fn has_answered(&mut self, id: CommandId, task: TaskId) {
        let events = self.said.get(&(task, false)).copied().unwrap_or(0);
        let truth = self.truths.entry(id).or_default();
        truth.answered.insert(task);
        truth.events_before.insert(task, events);
    }

    /// Records a spontaneous event of a task.
    pub(crate) fn has_said(&mut self, lane: Lane, task: TaskId, sequence: u32) {
        self.said.insert((task, lane == Lane::Bulk), sequence);
    }

    /// Numbers of a task's last bulk event that the root saw, and that the task emitted.
    pub(crate) fn bulk_progress(&self, task: TaskId) -> (u32, u32) {
        let of = |map: &BTreeMap<(TaskId, bool), u32>| map.get(&(task, true)).copied().unwrap_or(0);
        (of(&self.seen), of(&self.said))
    }

    /// Checks an output of the root against the true events.
    pub(crate) fn deliver(&mut self, now: u64, delivery: &Delivery) -> Checked {
        match delivery {
            Delivery::Answer {
                id,
                blocks,
                missing,
                lost,
                late,
            } => {
                self.check_blocks(*id, blocks, late)?;
                self.check_unanswered(*id, missing, lost)
            }
            Delivery::Sent(_) => Ok(()),
            Delivery::Complete(id) => self.check_complete(now, *id),
            Delivery::Events(blocks) => blocks.iter().try_for_each(|block| self.check_event(block)),
            Delivery::Reach(change) => {
                self.note_reach(change);
                Ok(())
            }
        }
    }

    fn check_blocks(&mut self, id: CommandId, blocks: &[Block], late: &IdSet) -> Checked {
        for block in blocks {
            self.check_content(id, block)?;
            let Some(account) = self.accounts.get_mut(&id) else {
                return violated("unknown command", format!("an answer to command {id}"));
            };
            let sources = &block.sources;
            let twice = sources.intersection(&account.answered);
            if !twice.is_empty() {
                return violated("counted twice", format!("command {id}: tasks {twice}"));
            }
            if !sources.is_subset(&account.destination) {
                let strange = sources.difference(&account.destination);
                return violated("answered unasked", format!("command {id}: tasks {strange}"));
            }
            let told = account.missing.union(&account.lost).intersection(sources);
            if told != late.intersection(sources) {
                let text = format!("command {id}: late are {told}, marked are {late}");
                return violated("late mark", text);
            }
            account.answered.union_with(sources);
            for set in [&mut account.open, &mut account.missing, &mut account.lost] {
                set.subtract(sources);
            }
            if account.sync == SyncPolicy::DontWait {
                self.pass_events(id, sources);
            }
        }
        Ok(())
    }

    /// Records the events that preceded the answers of these tasks. One of these events that arrives later is a
    /// violation.
    fn pass_events(&mut self, id: CommandId, sources: &IdSet) {
        let Some(truth) = self.truths.get(&id) else {
            return;
        };
        for task in sources {
            let before = truth.events_before.get(&task).copied().unwrap_or(0);
            let passed = self.passed.entry(task).or_default();
            *passed = before.max(*passed);
        }
    }

    fn check_content(&self, id: CommandId, block: &Block) -> Checked {
        let account = self.accounts.get(&id);
        let Some(spec) = account.and_then(|account| account.spec) else {
            // The initialisation only reports which tasks are ready or could not be reached.
            return Ok(());
        };
        let answered = self.truths.get(&id).map(|truth| &truth.answered);
        if answered.is_none_or(|answered| !block.sources.is_subset(answered)) {
            let text = format!(
                "command {id}: not all of tasks {} answered it",
                block.sources
            );
            return violated("answer without doing", text);
        }
        let cancelled = account.is_some_and(|account| account.cancelled);
        let right = match block.status {
            Status::Others => block.payload.is_empty() && spec.classes * 2 + 2 > self.classes_max,
            Status::Ok if spec.sum => {
                let fails = block.sources.iter().any(|task| spec.fails(task));
                !fails && block.payload == spec.sum_of(&block.sources)
            }
            Status::Failed if is_code(block, FailureCode::Cancelled) => cancelled,
            Status::Failed if is_code(block, FailureCode::AnswerLost) => self.answers_can_be_lost,
            status => {
                let expect = (status, block.payload.clone());
                block.sources.iter().all(|task| spec.answer(task) == expect)
            }
        };
        if right {
            return Ok(());
        }
        let text = format!(
            "command {id}: {:?} of tasks {} with {} bytes is not what they answered",
            block.status,
            block.sources,
            block.payload.len()
        );
        violated("wrong answer", text)
    }

    fn check_unanswered(
        &mut self,
        id: CommandId,
        missing: &[(IdSet, String)],
        lost: &IdSet,
    ) -> Checked {
        let Some(account) = self.accounts.get_mut(&id) else {
            return violated("unknown command", format!("missing tasks of command {id}"));
        };
        for (tasks, why) in missing {
            if tasks.is_empty() || !tasks.is_subset(&account.open) {
                let text = format!("command {id}: {tasks} are missing ({why}) but were not open");
                return violated("law of accounting", text);
            }
            account.open.subtract(tasks);
            account.missing.union_with(tasks);
        }
        if !lost.is_subset(&account.open.union(&account.missing)) {
            let text = format!("command {id}: {lost} are lost but were not open");
            return violated("law of accounting", text);
        }
        account.open.subtract(lost);
        account.missing.subtract(lost);
        account.lost.union_with(lost);
        Ok(())
    }

    fn check_complete(&mut self, now: u64, id: CommandId) -> Checked {
        let Some(account) = self.accounts.get_mut(&id) else {
            return violated("unknown command", format!("command {id} is complete"));
        };
        if account.complete || !account.open.is_empty() {
            let text = format!("complete but not over: {}", self.describe(id));
            return violated("law of accounting", text);
        }
        account.complete = true;
        let late = account.over_by.is_some_and(|over_by| now > over_by);
        if late {
            return violated("over too late", self.describe(id));
        }
        Ok(())
    }

    /// Checks that the root waits for exactly those tasks that its outputs leave open.
    pub(crate) fn check_open<'a>(
        &self,
        waited_for: impl Fn(CommandId) -> Option<&'a IdSet>,
    ) -> Checked {
        for (id, account) in self
            .accounts
            .iter()
            .filter(|(_, account)| !account.complete)
        {
            if waited_for(*id).is_none_or(|open| *open != account.open) {
                let text = format!(
                    "the root waits for {:?}: {}",
                    waited_for(*id),
                    self.describe(*id)
                );
                return violated("law of accounting", text);
            }
        }
        Ok(())
    }

    fn check_event(&mut self, block: &EventBlock) -> Checked {
        let Some((lane, sequence)) = event_of(&block.payload) else {
            return violated(
                "events",
                format!("bytes that no task said, of {}", block.sources),
            );
        };
        let bulk = lane == Lane::Bulk;
        for task in &block.sources {
            let said = self.said.get(&(task, bulk)).copied().unwrap_or(0);
            let seen = self.seen.entry((task, bulk)).or_default();
            let passed = self.passed.get(&task).copied().unwrap_or(0);
            let text = format!("task {task}, {lane:?}: event {sequence}, seen {seen} of {said}");
            if sequence > said || sequence <= *seen {
                return violated("events", text);
            }
            if !bulk && sequence <= passed {
                return violated("events", format!("{text}, after an answer behind {passed}"));
            }
            self.gaps += u64::from(sequence - *seen - 1);
            *seen = sequence;
        }
        Ok(())
    }

    fn note_reach(&mut self, change: &ReachChange) {
        self.lost.subtract(&change.tasks);
        self.silent.subtract(&change.tasks);
        match change.health {
            Health::Reachable => {}
            Health::Silent => self.silent.union_with(&change.tasks),
            Health::Lost => self.lost.union_with(&change.tasks),
        }
    }
}

fn is_code(block: &Block, code: FailureCode) -> bool {
    Failure::decode(&block.payload).code == code
}
