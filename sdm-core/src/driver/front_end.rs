//! Connects the master to its front-end, in a limited number of attempts.

use std::io;
use std::time::{Duration, Instant};

use super::{DriverEvent, MemberDriver};
use crate::dialer::{ATTEMPT_WAIT, UNANSWERED};
use crate::limits::FRONT_END_TRIES;
use crate::member::Output;
use crate::node::LinkId;
use crate::transport::{ConnId, ConnectionString, Transport};

/// The pause between two tries.
const PAUSE: Duration = Duration::from_millis(500);

/// Reason for which the front-end was not reached.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreached {
    /// The front-end was not reached at any of its addresses.
    #[error(
        "could not connect to the front-end at {} in {FRONT_END_TRIES} tries: {last}",
        listed(places)
    )]
    Nowhere {
        /// The addresses that were tried.
        places: Vec<ConnectionString>,
        /// Reason of the last attempt's failure.
        last: String,
    },
    /// The caller's `is_wanted` returned false.
    #[error("the attempt to connect to the front-end was cancelled")]
    NotWanted,
}

fn listed(places: &[ConnectionString]) -> String {
    let places: Vec<String> = places.iter().map(ToString::to_string).collect();
    places.join(", ")
}

/// Outcome of one connection attempt.
enum Tried {
    /// The link is up.
    Up,
    /// The link did not come up, with the reason.
    Failed(String),
    /// The caller's `is_wanted` returned false.
    NotWanted,
}

impl<T: Transport> MemberDriver<T> {
    /// Connects to the front-end and waits until the link is up. The front-end may be at any of `places`. All places
    /// are tried, up to [`FRONT_END_TRIES`] times, as long as `is_wanted` returns true. This function calls `is_wanted`
    /// again and again while it waits.
    ///
    /// # Errors
    /// [`io::Error`] if the transport cannot wait for events; the inner [`Unreached`] if the front-end was not reached.
    pub fn reach_front_end(
        &mut self,
        places: &[ConnectionString],
        is_wanted: impl Fn() -> bool,
    ) -> io::Result<Result<(), Unreached>> {
        let mut last = "its address is unknown".to_owned();
        for attempt in 0..FRONT_END_TRIES {
            if attempt > 0 {
                self.idle_until(Instant::now() + PAUSE, &is_wanted)?;
            }
            for place in places {
                match self.try_front_end(place, &is_wanted)? {
                    _ if !is_wanted() => return Ok(Err(Unreached::NotWanted)),
                    Tried::Up => return Ok(Ok(())),
                    Tried::Failed(why) => last = format!("{why} at {place}"),
                    Tried::NotWanted => return Ok(Err(Unreached::NotWanted)),
                }
                tracing::debug!("try {} of {FRONT_END_TRIES}: {last}", attempt + 1);
            }
        }
        let places = places.to_vec();
        Ok(Err(Unreached::Nowhere { places, last }))
    }

    pub(super) fn begin_front_end(&mut self, place: &ConnectionString) -> (ConnId, LinkId) {
        let conn = self.transport.connect(place);
        let now = self.tick();
        let link = self.member.connect_front_end(now);
        self.add(conn, link, false);
        self.drain();
        (conn, link)
    }

    /// Makes one attempt to connect to the front-end.
    fn try_front_end(
        &mut self,
        place: &ConnectionString,
        is_wanted: &impl Fn() -> bool,
    ) -> io::Result<Tried> {
        let (conn, link) = self.begin_front_end(place);
        let late = Instant::now() + ATTEMPT_WAIT;
        while self.member.node().parent_link() != Some(link) {
            if let Some(why) = self.take_refusal() {
                return Ok(Tried::Failed(why));
            }
            if !is_wanted() {
                return Ok(Tried::NotWanted);
            }
            let connecting = self.connections.get(&conn).is_some_and(|it| !it.connected);
            if connecting && Instant::now() >= late {
                self.transport.close(conn);
                self.remove(conn);
                let why = format!("{UNANSWERED} {} s", ATTEMPT_WAIT.as_secs());
                let now = self.tick();
                self.member.handle_closed(now, link, &why);
                self.drain();
                continue;
            }
            // The handshake has a time-out of its own.
            self.step(connecting.then_some(late))?;
        }
        Ok(Tried::Up)
    }

    /// Removes the event [`Output::Ended`], and the refusal before it. Returns the text of the refusal, empty if there
    /// is none; `None` if the member has not ended.
    fn take_refusal(&mut self) -> Option<String> {
        let is_end = |it: &DriverEvent| matches!(it, DriverEvent::Output(Output::Ended));
        let at = self.events.iter().position(is_end)?;
        self.events.remove(at);
        let why = match at.checked_sub(1).and_then(|at| self.events.remove(at)) {
            Some(DriverEvent::Output(Output::Refused { why })) => why,
            _ => String::new(),
        };
        Some(why.trim_start_matches("front-end: ").to_owned())
    }

    fn idle_until(&mut self, deadline: Instant, is_wanted: &impl Fn() -> bool) -> io::Result<()> {
        while is_wanted() && Instant::now() < deadline {
            self.step(Some(deadline))?;
        }
        Ok(())
    }

    /// Waits once, for the transport, the member's next time-out or the deadline.
    fn step(&mut self, deadline: Option<Instant>) -> io::Result<()> {
        let now = self.tick();
        let due = self.member.poll_timeout();
        if self.is_due(due, now) {
            self.member.handle_timeout(now);
            self.drain();
            return Ok(());
        }
        let until = deadline.into_iter().chain(due).min();
        self.turn(
            until.map(|until| until.saturating_duration_since(now)),
            None,
        )
    }
}
