//! Sending a command to tasks, waiting for the answers and showing them.
use std::time::Duration;

use sdm_core::CommandId;
use sdm_debug::rules::{RULE_HASH, rule_of};
use sdm_debug::{Command, Reply};
use sdm_idset::IdSet;
use sdm_view::item::{Gathered, Item};

use super::invocation::Invocation;
use super::model::Model;
use super::model::dialogue::{Confirm, Question};
use super::model::goal::{Goal, WaitOutcome};
use super::model::job::take_open;
use super::model::notices::Patience;
use super::model::open_commands::OpenCommand;
use super::{SessionHandle, Verdict};

impl SessionHandle {
    /// Sends a query, waits for the answers and shows them. Returns the tasks that answered.
    pub(super) async fn ask(&self, said: &str, to: &IdSet, command: &Command) -> (Verdict, IdSet) {
        let (verdict, open) = self.ask_quietly(said, to, command).await;
        let Some(open) = open else {
            return (verdict, IdSet::new());
        };
        self.show(&Item::Answer(open.gathered.clone()));
        (verdict, open.done())
    }

    /// Sends a query and waits for the answers without showing them.
    pub(super) async fn ask_quietly(
        &self,
        said: &str,
        to: &IdSet,
        command: &Command,
    ) -> (Verdict, Option<OpenCommand>) {
        let rule = (rule_of(command), Vec::new());
        self.ask_merged(said, to, command, rule).await
    }

    /// Sends a command whose answers are merged by a rule with these parameters, and waits for it. Nothing
    /// is shown.
    pub(super) async fn ask_merged(
        &self,
        said: &str,
        to: &IdSet,
        command: &Command,
        rule: (u16, Vec<u8>),
    ) -> (Verdict, Option<OpenCommand>) {
        let id = self.send_merged(said, to, command, rule);
        let goal = match command {
            Command::Detach => Goal::Left(id),
            _ => Goal::Answered(id),
        };
        let waited = self.wait_for(&goal, said, None).await;
        let Some(open) = self.take_answered(id, waited) else {
            return (Verdict::Failed, None);
        };
        let verdict = match (waited, open.has_failed()) {
            (WaitOutcome::GivenUp, _) => Verdict::GivenUp,
            (WaitOutcome::Over, _) | (_, true) => Verdict::Failed,
            (_, false) => Verdict::Done,
        };
        (verdict, Some(open))
    }

    /// Removes a command from those in progress after a wait for it. Tasks without an answer become missing, except
    /// after a signal, which has left them no time. None if the command is not in progress.
    pub(super) fn take_answered(&self, id: CommandId, waited: WaitOutcome) -> Option<OpenCommand> {
        let mut open = self.edit(|model| take_open(model, id))?;
        match waited {
            WaitOutcome::Reached => {}
            WaitOutcome::TimedOut => open.give_up("no answer from the sdm-servers"),
            WaitOutcome::GivenUp => open.give_up("given up"),
            WaitOutcome::Over if self.read(Model::is_cut_off) => {}
            WaitOutcome::Over => open.give_up("the session has ended"),
        }
        Some(open)
    }

    /// The successful answers to a command, merged by equality.
    pub(super) async fn answers(
        &self,
        said: &str,
        tasks: &IdSet,
        command: &Command,
    ) -> Vec<(IdSet, Reply)> {
        if tasks.is_empty() {
            return Vec::new();
        }
        let rule = (RULE_HASH, Vec::new());
        let (_, open) = self.ask_merged(said, tasks, command, rule).await;
        open.map(|open| open.gathered.ok).unwrap_or_default()
    }
}

/// The text that gdb prints for a line in a task. None if gdb does not answer with text.
pub(super) async fn printed(
    session: &SessionHandle,
    said: &str,
    task: &IdSet,
    line: String,
) -> Option<String> {
    let command = Command::Console { line };
    let answers = session.answers(said, task, &command).await;
    answers.into_iter().find_map(|(_, reply)| match reply {
        Reply::Text(text) => Some(text),
        _ => None,
    })
}

/// Waits for the output that the program printed before its run ended: it travels on a different lane than
/// the stop. `ended` are the tasks that have ended; the others have stopped.
pub(super) async fn settle(session: &SessionHandle, ended: &IdSet) {
    /// Waiting ends after this time without new output. Generous, because a loaded host can take long over
    /// much output.
    const OUTPUT_END_WAIT: Duration = Duration::from_secs(2);
    /// Waiting ends after this time where nothing marks the end of the output: for output carried by a launcher, and
    /// for tasks that have ended or lost their gdb. A launcher sends no mark, so no condition can be waited for. Later
    /// output is shown when it arrives.
    const QUIET: Duration = Duration::from_millis(20);
    // All that happened is shown together at the end.
    let (ended, attached) = session.edit(|model| {
        model.news.notices.patience = Patience::START;
        let ended = ended.difference(model.tasks.cut_off());
        (ended, model.options.attached)
    });
    let pieces = || session.read(|model| model.news.output.pieces());
    let (mut heard, mut until) = (pieces(), session.now() + OUTPUT_END_WAIT);
    let has_come = |model: &Model| {
        let output = &model.news.output;
        output.has_ended(&ended) && output.is_complete(model.tasks.cut_off())
    };
    while !attached && !session.read(has_come) && session.now() < until && !session.is_over() {
        session.turn(Some(until)).await;
        if heard != pieces() {
            (heard, until) = (pieces(), session.now() + OUTPUT_END_WAIT);
        }
    }
    let is_told = |model: &Model| has_come(model) && ended.is_empty() && model.all_live();
    if attached || !session.read(is_told) {
        let until = session.now() + QUIET;
        while session.now() < until && !session.is_over() {
            session.turn(Some(until)).await;
        }
    }
    session.edit(|model| {
        model.news.output.give_up_stops();
        model.news.notices.patience = Patience::IDLE;
    });
}

/// Shows the result of a completed command, and removes it from the commands in progress. None if it is not in
/// progress.
pub(super) fn conclude(session: &SessionHandle, id: CommandId) -> Option<OpenCommand> {
    let open = session.edit(|model| take_open(model, id))?;
    session.show(&Item::Answer(open.gathered.clone()));
    Some(open)
}

/// Shows the result of a command if it has failed on some task. Tasks that a signal has cut off did not
/// fail.
pub(super) fn show_unless_all_well(session: &SessionHandle, open: OpenCommand) {
    if open.has_failed() && !session.read(Model::is_cut_off) {
        session.show(&Item::Answer(open.gathered));
    }
}

/// Shows the answers that the output of a command has left out: failures, other replies, and tasks without an answer.
/// Shows nothing if there are none.
pub(super) fn show_rest(session: &SessionHandle, rest: Gathered) {
    let empty = rest.ok.is_empty()
        && rest.failed.is_empty()
        && rest.missing.is_empty()
        && rest.lost.is_empty()
        && rest.others.is_empty();
    if !empty {
        session.show_quietly(&Item::Answer(rest));
    }
}

/// Asks the user to confirm a line that loses something. False if the line needs no confirmation and is to be executed.
pub(super) fn confirm(
    session: &SessionHandle,
    said: &Invocation<'_>,
    text: impl Into<String>,
    refused: &'static str,
) -> bool {
    session.edit(|model| {
        let asks = model.asks(said.depth);
        if asks {
            model.dialogue.question = Some(Question::Confirm(Confirm {
                line: said.line.to_owned(),
                text: text.into(),
                refused,
            }));
        }
        asks
    })
}
