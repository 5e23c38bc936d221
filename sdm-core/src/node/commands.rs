//! Commands on their way down: begin, repetition, cancellation, loss of destinations, time-outs, and the end of
//! repetitions.

use std::time::{Duration, Instant};

use bytes::Bytes;
use sdm_idset::IdSet;

use super::missing::Missing;
use super::open_commands::OpenCommand;
use super::{Action, Node, ProtocolError, reserve_first};
use crate::aggregate::{Aggregate, Merge};
use crate::ids::{Attempt, CommandId};
use crate::limits;
use crate::message::{CommandMessage, Lane, Message, SyncPolicy};

impl Node {
    pub(super) fn handle_command(
        &mut self,
        now: Instant,
        command: CommandMessage,
    ) -> Result<(), ProtocolError> {
        if self.config.is_none() {
            let me = self.me;
            return Err(ProtocolError(format!(
                "{me}: received a command before the plan of the server tree"
            )));
        }
        let number = format_args!("{}.{}", command.id.0, command.attempt.0);
        let _command = tracing::info_span!("command", id = %number).entered();
        tracing::info!(tasks = %command.destination, "received");
        self.settle(command.settled_below, &command.open);
        if self.settled.has(command.id) {
            // The requester does not know yet that the command is settled. It was executed here, and its answer is not
            // needed.
            return Ok(());
        }
        let known = self.open_position(command.id);
        match known {
            Ok(at) => {
                let fresh_link = self.open[at].asked_by != self.parent_link();
                if fresh_link || command.attempt > self.open[at].command.attempt {
                    self.ask_again(now, at, command);
                }
                Ok(())
            }
            Err(at) => self.begin(now, at, command),
        }
    }

    /// Index of a command in `open`; the error is the index at which it would be inserted.
    pub(super) fn open_position(&self, id: CommandId) -> Result<usize, usize> {
        self.open.binary_search_by_key(&id, OpenCommand::id)
    }

    /// Opens a command that is not open here.
    pub(super) fn begin(
        &mut self,
        now: Instant,
        at: usize,
        command: CommandMessage,
    ) -> Result<(), ProtocolError> {
        if self.open.len() >= limits::OPEN_COMMANDS_MAX {
            let (me, max) = (self.me, limits::OPEN_COMMANDS_MAX);
            return Err(ProtocolError(format!(
                "{me}: more than {max} open commands"
            )));
        }
        let destination = command.destination.clone();
        let attempt = if command.id == CommandId::INIT {
            Attempt(0)
        } else {
            self.next_attempt()
        };
        let deadline = self.deadline_of(now, command.sync);
        reserve_first(&mut self.open);
        self.open.insert(
            at,
            OpenCommand {
                rule: self.rule_of(&command),
                asked_by: self.parent_link(),
                open: destination.clone(),
                missing: IdSet::new(),
                lost: IdSet::new(),
                gathered: Aggregate::default(),
                late: IdSet::new(),
                untold_missing: Missing::default(),
                untold_lost: IdSet::new(),
                oldest: None,
                deadline,
                flush_at: None,
                attempt,
                attempts: Vec::new(),
                completed: false,
                command,
            },
        );
        for child in 0..self.children.len() {
            if attempt == Attempt(0) && self.children[child].link().is_some() {
                // It has had its plan, so it must be asked.
                self.send_again(at, child);
            } else {
                self.send_part_to(at, child, attempt, &destination);
            }
        }
        let nowhere = destination.difference(&self.reach());
        if !nowhere.is_empty() {
            let open = &mut self.open[at];
            open.open.subtract(&nowhere);
            open.lost.union_with(&nowhere);
            open.untold_lost.union_with(&nowhere);
        }
        let id = self.open[at].id();
        let mine = destination.intersection(&self.local);
        if !mine.is_empty() {
            self.execute(now, id, &mine);
        }
        self.tell(now, id);
        Ok(())
    }

    fn rule_of(&self, command: &CommandMessage) -> Option<Box<dyn Merge>> {
        if command.rule == 0 {
            None
        } else {
            (self.rules)(command.rule, &command.rule_params)
        }
    }

    fn deadline_of(&self, now: Instant, sync: SyncPolicy) -> Option<Instant> {
        match sync {
            SyncPolicy::TimeOut { ms } => {
                let grace = self.config().grace * self.height;
                Some(now + Duration::from_millis(u64::from(ms)) + grace)
            }
            SyncPolicy::WaitForAll | SyncPolicy::DontWait => None,
        }
    }

    /// Handles a repeated request of the parent for some destinations of an open command. Results that
    /// went up before have been lost on the way and are requested again.
    pub(super) fn ask_again(&mut self, now: Instant, at: usize, command: CommandMessage) {
        let reach = self.reach();
        let parent = self.parent_link();
        let deadline = self.deadline_of(now, command.sync);
        let open = &mut self.open[at];
        let wanted = &command.destination;
        if !open.gathered.sources().is_subset(wanted) {
            // A merged payload cannot be divided: all of it is requested again.
            open.gathered = Aggregate::default();
        }
        let uncounted = wanted.difference(open.gathered.sources());
        let again = uncounted.difference(&open.uncounted());
        open.missing.intersect_with(&uncounted);
        open.open = uncounted.intersection(&reach);
        open.open.subtract(&open.missing);
        open.lost = uncounted.difference(&reach);
        open.lost.subtract(&open.missing);
        open.untold_lost = open.lost.clone();
        open.untold_missing = Missing::default();
        open.untold_missing
            .add(open.missing.clone(), "no answer in time".to_owned());
        open.asked_by = parent;
        open.deadline = open.deadline.or(deadline);
        open.late.intersect_with(wanted);
        open.command = command;
        let id = open.id();
        for child in 0..self.children.len() {
            if !self.children[child].reach().is_disjoint(&again) {
                self.send_again(at, child);
            }
        }
        let mine = again.intersection(&self.local);
        if !mine.is_empty() {
            self.execute(now, id, &mine);
        }
        self.tell(now, id);
    }

    /// Begins the initialisation, which every task answers as it gets ready.
    pub(super) fn ask_init(&mut self, now: Instant, all: &IdSet) {
        let command = CommandMessage {
            id: CommandId::INIT,
            attempt: Attempt(0),
            destination: all.clone(),
            lane: Lane::Control,
            sync: SyncPolicy::DontWait,
            rule: 0,
            rule_params: Bytes::new(),
            settled_below: CommandId::INIT,
            open: Vec::new(),
            payload: Bytes::new(),
        };
        match self.open_position(CommandId::INIT) {
            Ok(at) => self.ask_again(now, at, command),
            Err(at) => {
                self.begin(now, at, command)
                    .expect("the first command is below the bound");
            }
        }
    }

    /// The number of the next request to children. It never decreases, even if the command was over here in between. So
    /// an answer to an earlier request is not taken for an answer to a later one.
    fn next_attempt(&mut self) -> Attempt {
        self.attempt.0 += 1;
        self.attempt
    }

    /// Requests from a child again all answers that have not been counted from it. Answers in flight to the earlier
    /// request do not count any more.
    pub(super) fn send_again(&mut self, at: usize, child: usize) {
        let attempt = self.next_attempt();
        self.send_open_to(at, child, attempt);
    }

    /// Sends a child an open command for the uncounted destinations behind it.
    fn send_open_to(&mut self, at: usize, child: usize, attempt: Attempt) {
        let uncounted = self.open[at].uncounted();
        self.send_part_to(at, child, attempt, &uncounted);
    }

    /// Sends a child an open command, for those of `tasks` that are in the child's subtree.
    fn send_part_to(&mut self, at: usize, child: usize, attempt: Attempt, tasks: &IdSet) {
        let (open, child) = (&mut self.open[at], &self.children[child]);
        open.set_attempt(child.server(), attempt);
        if attempt == Attempt(0) {
            // The initialisation goes as a plan, which the child takes for the first question.
            return;
        }
        let Some(link) = child.link_up() else { return };
        let destination = tasks.intersection(child.reach());
        if destination.is_empty() {
            return;
        }
        let command = CommandMessage {
            attempt,
            destination,
            ..open.command.clone()
        };
        let message = Message::Command(command);
        self.actions.push_back(Action::Send { link, message });
    }

    /// Requests from a child all answers that have not been counted from it, for every open command. A child that has
    /// got a plan over a new link answers the initialisation in reply to the plan.
    pub(super) fn ask_child_again(&mut self, child: usize, new_link: bool) {
        for at in 0..self.open.len() {
            if new_link && self.open[at].id() == CommandId::INIT {
                self.send_open_to(at, child, Attempt(0));
            } else {
                self.send_again(at, child);
            }
        }
    }

    /// Requests the initialisation from a child again, after another plan was sent over the same link.
    pub(super) fn ask_init_again(&mut self, child: usize) {
        if let Ok(at) = self.open_position(CommandId::INIT) {
            self.send_again(at, child);
        }
    }

    pub(super) fn handle_cancel(
        &mut self,
        now: Instant,
        id: CommandId,
    ) -> Result<(), ProtocolError> {
        if let Ok(at) = self.open_position(id) {
            let mut asked = self.local.clone();
            for child in &self.children {
                if let Some(link) = child.link_up()
                    && !child.reach().is_disjoint(&self.open[at].open)
                {
                    asked.union_with(child.reach());
                    self.actions.push_back(Action::Send {
                        link,
                        message: Message::Cancel(id),
                    });
                }
            }
            // Tasks whose member cannot be told of the cancel now are not waited for.
            let unasked = self.open[at].open.difference(&asked);
            self.name_missing(now, at, &unasked);
            if !self.open[at].open.is_disjoint(&self.local) {
                self.actions.push_back(Action::CancelLocal(id));
            }
            self.tell(now, id);
        }
        Ok(())
    }

    /// Forgets the commands that will not be repeated.
    pub(super) fn settle(&mut self, below: CommandId, but: &[CommandId]) {
        if below <= self.settled.below {
            return;
        }
        self.settled.below = below;
        but.clone_into(&mut self.settled.but);
        let settled = &self.settled;
        self.executed.retain(|executed| !settled.has(executed.id()));
        self.open.retain(|open| !settled.has(open.id()));
    }

    /// Removes lost tasks from all commands, which do not wait for them any more.
    pub(super) fn lose_in_commands(&mut self, now: Instant, gone: &IdSet) {
        let ids: Vec<CommandId> = self.open.iter().map(OpenCommand::id).collect();
        for id in ids {
            let Ok(at) = self.open_position(id) else {
                continue;
            };
            if self.open[at].lose(gone, now) {
                self.tell(now, id);
            }
        }
    }

    /// Removes tasks outside a new plan from all commands. They belong to another member now, which collects their
    /// answers.
    pub(super) fn narrow_commands(&mut self, all: &IdSet) {
        for open in &mut self.open {
            if open.command.destination.is_subset(all) {
                continue;
            }
            open.command.destination.intersect_with(all);
            for set in [
                &mut open.open,
                &mut open.missing,
                &mut open.lost,
                &mut open.late,
                &mut open.untold_lost,
            ] {
                set.intersect_with(all);
            }
            open.untold_missing.keep(all);
            if !open.gathered.sources().is_subset(all) {
                // A merged payload cannot be divided; the new parent requests all of it again.
                open.gathered = Aggregate::default();
                open.late = IdSet::new();
            }
        }
    }

    /// Marks tasks as missing that have not answered in time, each with the reason if it is known.
    pub(super) fn name_missing(&mut self, now: Instant, at: usize, tasks: &IdSet) {
        let open = &mut self.open[at];
        for child in &self.children {
            let behind = tasks.intersection(child.reach());
            open.miss(&behind, child.why_no_answer(), now);
        }
        open.miss(tasks, "no answer in time".to_owned(), now);
    }

    pub(super) fn commands_timeout(&mut self, now: Instant) {
        let due: Vec<CommandId> = self
            .open
            .iter()
            .filter(|open| open.timeout().is_some_and(|at| at <= now))
            .map(OpenCommand::id)
            .collect();
        for id in due {
            let Ok(at) = self.open_position(id) else {
                continue;
            };
            if self.open[at]
                .deadline
                .is_some_and(|deadline| deadline <= now)
            {
                self.open[at].deadline = None;
                let waited_for = self.open[at].open.clone();
                if !waited_for.is_empty() {
                    tracing::warn!(me = %self.me, command = id.0, tasks = %waited_for, "the time limit has passed: the answer is counted as missing");
                }
                self.name_missing(now, at, &waited_for);
            }
            if self.open[at]
                .flush_at
                .is_some_and(|flush_at| flush_at <= now)
            {
                self.flush(now, at);
            } else {
                self.tell(now, id);
            }
        }
    }
}
