//! One connection with an editor, as a state machine.
//!
//! Methods are of four kinds. `handle_*` take inputs: bytes, events of the session, time, which never goes backward.
//! `poll_output` and `poll_action` return outputs; call them until they return `None` after every `handle_*`.
//! `poll_timeout` returns the latest time at which to call [`Adapter::handle_timeout`]. `is_*` tell the state:
//! `is_over` is true once the connection has ended.

mod breakpoints;
mod command_results;
mod deferred_requests;
mod disconnect;
mod evaluation;
mod frames;
mod goto;
mod multi_client;
mod output_events;
mod pages;
mod prompt;
mod queries;
mod requests;
mod restart;
mod run_control;
mod session_events;
mod startup;
mod state;
mod stopped_events;
#[cfg(test)]
mod tests;
mod variables;

use std::time::Instant;

use sdm_core::CommandId;
use sdm_debug::Command;
use sdm_idset::IdSet;
use sdm_session::SessionEvent;
use sdm_shell::LocalMachine;

use crate::action::{Action, Opened, Ticket};
use crate::client_breakpoints::Points;
use crate::connection::{Connection, Phase, Role};
use crate::console::Machines;
use crate::error::RequestError;
use crate::frame::{Framed, Framer, framed};
use crate::message::{self, ClientMessage};
use crate::references::References;

/// The debug adapter of one DAP client, a state machine without I/O.
#[derive(Debug)]
pub struct Adapter {
    framer: Framer,
    connection: Connection,
}

impl Adapter {
    /// A new connection, without any message yet.
    #[must_use]
    pub fn new(now: Instant) -> Self {
        Self {
            framer: Framer::default(),
            connection: Connection::new(now),
        }
    }

    /// The connection of an additional client, which attaches to one task of the session by this password. Each one
    /// has a number of its own, from 1.
    #[must_use]
    pub fn beside(now: Instant, number: u32, word: String) -> Self {
        let mut adapter = Self::new(now);
        adapter.connection.company.role = Role::Beside(word);
        adapter.connection.points = Points::of_client(number);
        adapter.connection.references = References::of_client(number);
        adapter
    }

    /// Handles bytes from the client, in pieces of any size.
    pub fn handle_bytes(&mut self, now: Instant, bytes: &[u8]) {
        self.connection.now = now;
        let connection = &mut self.connection;
        self.framer.handle_bytes(bytes, &mut |body| match body {
            Framed::Body(body) if connection.company.role == Role::Relay => {
                connection.act(Action::Pass(framed(&body)));
            }
            Framed::Body(body) => match message::read(&body) {
                ClientMessage::Request(request) => requests::handle_request(connection, request),
                ClientMessage::Other => {}
                ClientMessage::Nothing(why) => {
                    connection.say("important", &format!("sdm: malformed message: {why}\n"))
                }
            },
            Framed::Bad(why) => {
                connection.say("important", &format!("sdm: malformed message: {why}\n"))
            }
        });
        self.settle();
    }

    /// Handles the passing of time.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.connection.now = now;
        self.settle();
    }

    /// The latest time for a call of [`Adapter::handle_timeout`]; `None` if no call is due.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let times = [
            self.connection.output.due(),
            self.connection.settling.due(&self.connection.tasks),
            self.connection.ending.due(),
            self.connection.console_due(),
            self.connection.beforehand_due(),
        ];
        times.into_iter().flatten().min()
    }

    /// The next bytes to send to the client; `None` if there are none.
    pub fn poll_output(&mut self) -> Option<Vec<u8>> {
        self.connection.outbox.pop()
    }

    /// The next request to the adapter's owner, about the session. `None` if there is none.
    pub fn poll_action(&mut self) -> Option<Action> {
        self.connection.outbox.actions.pop_front()
    }

    /// True once the session must be closed, or was closed. An opening in progress is then useless.
    #[must_use]
    pub fn is_ending(&self) -> bool {
        self.connection.phase >= Phase::Closing || self.connection.anew.given_up
    }

    /// True once output was dropped because [`Adapter::poll_output`] was not called for long: the client does not read.
    #[must_use]
    pub fn is_overrun(&self) -> bool {
        self.connection.outbox.overrun
    }

    /// True once the connection has ended. Output that is already queued can still be taken.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.connection.phase == Phase::Over
    }

    /// Takes the opened session, or the reason why there is none.
    pub fn handle_opened(&mut self, opened: Result<Opened, RequestError>) {
        startup::handle_opened(&mut self.connection, opened);
        self.settle();
    }

    /// Progress of the opening, in servers done and in total; `note` is a line from the launcher.
    pub fn handle_progress(&mut self, phase: &str, (done, total): (u32, u32), note: Option<&str>) {
        startup::handle_progress(&mut self.connection, phase, (done, total), note);
    }

    /// Stores the id that the session has assigned to the command of this ticket.
    pub fn handle_sent(&mut self, ticket: Ticket, id: CommandId) {
        self.connection.jobs.sent(ticket, id);
        prompt::note_sent(&mut self.connection, id);
    }

    /// Sets the factory of the machine facilities that lines of the debug console use, on the host of `sdm`.
    pub fn set_machines(&mut self, make: impl Fn() -> Box<dyn LocalMachine> + 'static) {
        self.connection.prompt.machines = Some(Machines(Box::new(make)));
    }

    /// Shows output of a local command that a line of the console has started.
    pub fn handle_printed(&mut self, bytes: &[u8]) {
        let text = String::from_utf8_lossy(bytes).into_owned();
        self.connection.say("console", &text);
    }

    /// Handles the answer to [`Action::ListJobs`]: the running jobs of this user, each as a target for `attach` and a
    /// description.
    pub fn handle_jobs(&mut self, jobs: &[(String, String)]) {
        startup::handle_jobs(&mut self.connection, jobs);
    }

    /// Handles the answer to [`Action::Invite`]: the address at which another client finds the session, or the reason
    /// why there is none.
    pub fn handle_invited(&mut self, invited: Result<String, RequestError>) {
        multi_client::handle_invited(&mut self.connection, invited);
    }

    /// Joins the client to the session of another adapter, `owner`, in answer to [`Action::Join`].
    pub fn handle_joined(&mut self, now: Instant, owner: &Self) {
        self.connection.now = now;
        multi_client::handle_joined(&mut self.connection, &owner.connection);
        self.settle();
    }

    /// Handles the failure of [`Action::Relay`]: the other process cannot be reached, for this reason.
    pub fn handle_unreached(&mut self, why: &str) {
        multi_client::handle_unreached(&mut self.connection, why);
    }

    /// Records a command that another client has sent; the session has assigned this id to it.
    pub fn handle_foreign(&mut self, now: Instant, to: &IdSet, command: &Command, id: CommandId) {
        self.connection.now = now;
        multi_client::handle_foreign(&mut self.connection, to, command, id);
        self.settle();
    }

    /// Takes an event of the session.
    pub fn handle_event(&mut self, now: Instant, event: SessionEvent) {
        self.connection.now = now;
        session_events::handle_event(&mut self.connection, event);
        self.settle();
    }

    /// Handles the end of the session. An error tells which parts could not be ended.
    pub fn handle_closed(&mut self, closed: Result<(), RequestError>) {
        let connection = &mut self.connection;
        match connection.phase {
            Phase::Beginning if connection.anew.given_up => {
                startup::handle_given_up(connection, closed);
            }
            _ if connection.is_restarting() => restart::handle_closed(connection, closed),
            _ => disconnect::handle_closed(connection, closed),
        }
    }

    /// Handles a client that is gone without a message: started programs are ended, and attached ones are detached.
    pub fn handle_gone(&mut self) {
        disconnect::handle_gone(&mut self.connection);
    }

    /// Ends the adapter after a signal, including programs that a client has left running here.
    pub fn handle_terminated(&mut self) {
        disconnect::handle_terminated(&mut self.connection);
    }

    /// Performs everything that is due after an input.
    fn settle(&mut self) {
        let connection = &mut self.connection;
        deferred_requests::settle(connection);
        pages::prepare(connection);
        loop {
            while let Some(job) = connection.jobs.next_finished() {
                command_results::finish_job(connection, job);
            }
            run_control::pass_by(connection);
            prompt::settle_console(connection);
            output_events::flush_output(connection, false);
            stopped_events::settle_stops(connection);
            disconnect::settle_end(connection);
            if !connection.jobs.has_finished() {
                break;
            }
        }
        pages::tell(connection);
    }
}
