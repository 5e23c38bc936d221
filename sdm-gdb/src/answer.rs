//! The future of gdb's answer to one MI command.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use sdm_debug::{Failure, FailureCode};

use super::gdb::Gdb;
use super::state::commands::AnswerState;
use super::state::console_capture::CapturedOutput;
use sdm_mi::Results;

/// Future of the answer to one MI command. Dropping it early abandons the command, see
/// [`BreakOff`](crate::Action::BreakOff).
pub(super) struct Answer {
    gdb: Gdb,
    token: u64,
}

impl Answer {
    pub(super) fn new(gdb: Gdb, token: u64) -> Self {
        Self { gdb, token }
    }

    /// The token that gdb's answer will carry.
    pub(super) fn token(&self) -> u64 {
        self.token
    }

    /// Captures gdb's console output without its warnings until the answer, for [`Answer::printed`].
    pub(super) fn capture(self) -> Self {
        if let Some(pending) = self.gdb.edit().commands.pending.get_mut(&self.token) {
            pending.printed = Some(CapturedOutput::default());
        }
        self
    }

    /// Like [`Answer::capture`], with gdb's warnings.
    pub(super) fn capture_all(self) -> Self {
        let this = self.capture();
        if let Some(pending) = this.gdb.edit().commands.pending.get_mut(&this.token) {
            pending.printed.get_or_insert_default().takes_warnings = true;
        }
        this
    }

    /// Like [`Answer::capture_all`], for a command that starts a shell: the shell's output is captured too.
    pub(super) fn capture_lines(self) -> Self {
        let this = self.capture_all();
        if let Some(pending) = this.gdb.edit().commands.pending.get_mut(&this.token) {
            let printed = pending.printed.get_or_insert_default();
            printed.takes_lines = true;
        }
        this
    }

    /// Waits for the answer, and returns gdb's console output with it.
    pub(super) async fn printed(self) -> (Result<Results, Failure>, CapturedOutput) {
        let (gdb, token) = (self.gdb.clone(), self.token);
        gdb.until(|state| {
            let pending = state.commands.pending.get(&token);
            pending.is_none_or(|it| !it.is_open()).then_some(())
        })
        .await;
        let printed = gdb
            .edit()
            .commands
            .pending
            .get_mut(&token)
            .and_then(|pending| pending.printed.take());
        let printed = printed.unwrap_or_default();
        if let Some(budget) = gdb.budget() {
            budget.spend(printed.bytes());
        }
        (self.await, printed)
    }

    fn is_open(&self) -> Option<bool> {
        let state = self.gdb.get();
        let pending = state.commands.pending.get(&self.token)?;
        Some(pending.is_open())
    }
}

impl Future for Answer {
    type Output = Result<Results, Failure>;

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Self::Output> {
        if self.is_open() == Some(true) {
            return Poll::Pending;
        }
        let pending = self.gdb.edit().commands.pending.remove(&self.token);
        let result = match pending.map(|pending| pending.answer) {
            Some(AnswerState::Here(result)) => result,
            _ => Err(Failure::new(
                FailureCode::GdbDead,
                "the gdb of this rank has ended",
            )),
        };
        if let (Some(budget), Ok(results)) = (self.gdb.budget(), &result) {
            budget.spend(results.bytes());
        }
        Poll::Ready(result)
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        match self.is_open() {
            None => {}
            Some(false) => drop(self.gdb.edit().commands.pending.remove(&self.token)),
            Some(true) => {
                let token = self.token;
                self.gdb.break_off(|number, _| number == token);
                if let Some(pending) = self.gdb.edit().commands.pending.get_mut(&token) {
                    pending.answer = AnswerState::Abandoned;
                }
            }
        }
    }
}
