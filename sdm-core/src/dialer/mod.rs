//! Connects to one child, at start-up or again later, without I/O. It decides the next address, the time of each
//! attempt, and when to give up.
//!
//! An announced port is the child's own, so a refusal there means that the child is gone. Where no port was
//! announced, the child takes the first free port of a range, and may not have been started yet by hand.
//! A refusal then means nothing. The dialer searches the ports upwards, past those where another process
//! answers and past a few where none does. The number of empty ports that it passes doubles each round, up
//! to a bound. So a child that is merely late is found at once, and one at a high port is found too.
//!
//! The answer of a peer without the key (another protocol, version, session or key, a plain refusal) may be
//! forged and is used as information only. It rules an announced address out after a while, so that a start
//! fails with the reason before its whole time is over. An attacker on the network cannot shorten that.

mod candidates;
#[cfg(test)]
mod tests;

use std::fmt::Write;
use std::time::{Duration, Instant};

use crate::ids::ServerId;
use crate::limits::HANDSHAKE_WAIT;
use crate::link::LinkError;
use crate::transport::ConnectionString;
pub use candidates::Place;

/// Pause after the first round without success; it doubles from round to round.
pub const PAUSE_MIN: Duration = Duration::from_millis(1);
/// The longest pause between two rounds.
pub const PAUSE_MAX: Duration = Duration::from_millis(250);
/// Time limit for one connection before its handshake begins. A host that drops packets must
/// not use up the time of its other addresses.
pub const ATTEMPT_WAIT: Duration = Duration::from_secs(3);
/// Number of handshakes in a row with another member of this session after which an announced address is given
/// up. The seven pauses between eight attempts add up to 127 ms.
pub const STRANGER_HANDSHAKES_MAX: u8 = 8;
/// Minimum time for which an announced address must have given only handshakes without the session's key
/// before it is given up. [`STRANGER_HANDSHAKES_MAX`] such handshakes are needed as well.
pub const STRANGER_WAIT: Duration = Duration::from_secs(10);
/// Maximum number of ports in a row without a listener that a search passes: they were taken when the child tried
/// them, and are free now.
pub const EMPTY_RUN_MAX: u16 = 16;
/// Beginning of the error text for an address from which no reply arrives; the time limit follows it.
pub const UNANSWERED: &str = "the host did not answer within";
/// Error text for an established connection over which no byte arrived.
const NO_ANSWER: &str = "the connection was made, but the peer did not answer";

/// The member to connect to, and its possible addresses.
#[derive(Clone, Debug)]
pub struct Target {
    /// The member to reach.
    pub server: ServerId,
    /// Name of the member's host, for messages.
    pub host: String,
    /// Places where the member may be, best first, with numeric addresses.
    pub places: Vec<Place>,
    /// Time at which the dialer gives up.
    pub deadline: Instant,
    /// The pause before the first try; zero for none.
    pub pause: Duration,
}

/// The dialer's next step, for its owner.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DialStep {
    /// Connect to this address, and drop an earlier connection of this dialer.
    Connect(ConnectionString),
    /// Do nothing before this instant, unless an event happens.
    WaitUntil(Instant),
    /// The member was not reached; the text has its name, its address, the reason, and the number of attempts.
    GiveUp(String),
}

/// Cause of a failed attempt.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DialFailure {
    /// The connection was refused: no process listens there. The error of the system.
    Refused(String),
    /// The connection was not made for another reason, which is the error of the system.
    NotReached(String),
    /// The connection was made, but its handshake failed.
    Link(LinkError),
    /// The other end closed the connection, or it broke, before the link was up.
    Closed,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum DialState {
    /// The next attempt can be made.
    Idle,
    /// The next attempt is made at this time, not before.
    Pause(Instant),
    /// An attempt is under way. If no connection exists by this time, it counts as failed.
    Connecting(Instant),
    /// A connection exists. `None`: the handshake's own time limit applies. Otherwise the handshake fails at this
    /// time, as other ports are to be tried.
    Greeting(Option<Instant>),
}

/// Counts of the wrong peers that answered at one place.
#[derive(Clone, Copy, Default, Debug)]
struct WrongPeers {
    /// Number of handshakes in a row with other members of this session, at most `STRANGER_HANDSHAKES_MAX`.
    others: u8,
    /// Number of handshakes in a row with any process other than the wanted member, at most `STRANGER_HANDSHAKES_MAX`.
    strangers: u8,
    /// Time of the first of the handshakes that `strangers` counts; `None` if it counts none.
    since: Option<Instant>,
}

/// Connects to one child. Call [`Dialer::poll`] after every input and at the time that it returns. Drop the dialer when
/// the link is up.
#[derive(Debug)]
pub struct Dialer {
    target: Target,
    state: DialState,
    /// Index of the next place, < `places.len()`.
    place_index: usize,
    /// Distance of the next port to try from the place's first port.
    offset: u16,
    /// Number of ports in a row without a listener, in this round and place.
    empty_run: u16,
    /// Number of empty ports in a row that ends the search of a place, 1 to `EMPTY_RUN_MAX`.
    empty_run_max: u16,
    /// Time limit for a handshake of this round if other ports are still to be tried.
    greeting_wait: Duration,
    pause: Duration,
    started: Instant,
    tries: u32,
    /// The address and the error of the last failed attempt; `None` before the first failure.
    last: Option<(ConnectionString, String)>,
    /// The address and the error of the last wrong peer, a better hint than `last`; `None` if there was none.
    stranger: Option<(ConnectionString, String)>,
    /// Counts of the wrong peers at each place, by place index.
    met: Vec<WrongPeers>,
    /// True if the last connection was established, but the peer did not answer.
    unanswered: bool,
    /// Number of attempts in a row that were refused.
    refusals: usize,
}

impl Dialer {
    /// A dialer for this target. It makes the first attempt at once, or after the target's pause.
    #[must_use]
    pub fn new(now: Instant, target: Target) -> Self {
        let state = if target.pause.is_zero() {
            DialState::Idle
        } else {
            DialState::Pause(now + target.pause)
        };
        let met = vec![WrongPeers::default(); target.places.len()];
        Self {
            target,
            state,
            place_index: 0,
            offset: 0,
            empty_run: 0,
            empty_run_max: 1,
            greeting_wait: ATTEMPT_WAIT,
            pause: PAUSE_MIN,
            started: now,
            tries: 0,
            last: None,
            stranger: None,
            met,
            unanswered: false,
            refusals: 0,
        }
    }

    /// The member to connect to.
    #[must_use]
    pub fn server(&self) -> ServerId {
        self.target.server
    }

    /// The address of the established link. The port is known once the link is up.
    #[must_use]
    pub fn reached(&self) -> ConnectionString {
        self.next_address()
    }

    /// True if the established link's port was found by a search in a range, because the child did not announce it.
    #[must_use]
    pub fn has_searched(&self) -> bool {
        !self.target.places[self.place_index].is_known()
    }

    /// Returns the next step, after attempts that ran out of time have been counted as failed.
    pub fn poll(&mut self, now: Instant) -> DialStep {
        match self.state {
            DialState::Connecting(until) if now >= until => {
                let text = format!("{UNANSWERED} {} s", ATTEMPT_WAIT.as_secs());
                self.failed(now, text, false);
            }
            DialState::Greeting(Some(until)) if now >= until => {
                self.failed(now, NO_ANSWER.to_owned(), true);
                self.unanswered = true;
            }
            _ => {}
        }
        if now >= self.target.deadline || self.first_left(now, 0).is_none() {
            if matches!(self.state, DialState::Greeting(_)) {
                self.failed(now, NO_ANSWER.to_owned(), true);
                self.unanswered = true;
            }
            return DialStep::GiveUp(self.report(now));
        }
        let deadline = self.target.deadline;
        match self.state {
            DialState::Pause(until) if now < until => DialStep::WaitUntil(until.min(deadline)),
            DialState::Idle | DialState::Pause(_) => {
                self.state = DialState::Connecting(now + ATTEMPT_WAIT);
                self.tries += 1;
                DialStep::Connect(self.next_address())
            }
            DialState::Connecting(until) | DialState::Greeting(Some(until)) => {
                DialStep::WaitUntil(until.min(deadline))
            }
            DialState::Greeting(None) => DialStep::WaitUntil(deadline),
        }
    }

    /// True if a process that may be the wanted member accepts connections but does not answer, for example because a
    /// signal has stopped it.
    #[must_use]
    pub fn is_unanswered(&self) -> bool {
        self.unanswered
    }

    /// True if every announced address that is not ruled out refused in a row: the member that announced them has
    /// ended.
    #[must_use]
    pub fn is_refused(&self, now: Instant) -> bool {
        let all = 0..self.met.len();
        let left = all.filter(|at| self.may_be(now, *at)).count();
        let is_known = self.target.places.iter().all(Place::is_known);
        is_known && left > 0 && self.refusals >= left
    }

    /// Records that the connection is established; its handshake begins.
    pub fn handle_connected(&mut self, now: Instant) {
        if let DialState::Connecting(_) = self.state {
            let is_range = !self.target.places[self.place_index].is_known();
            self.state = DialState::Greeting(is_range.then_some(now + self.greeting_wait));
        }
    }

    /// Records that the attempt has failed, for the reason `failure`. An attempt that [`Dialer::poll`] has replaced
    /// must not be reported.
    pub fn handle_failure(&mut self, now: Instant, failure: DialFailure) {
        if !matches!(
            self.state,
            DialState::Connecting(_) | DialState::Greeting(_)
        ) {
            return;
        }
        self.note_met(now, &failure);
        match failure {
            DialFailure::Refused(error) => {
                let count = self.refusals + 1;
                self.failed(now, error, false);
                self.refusals = count;
            }
            DialFailure::NotReached(error) => self.failed(now, error, false),
            DialFailure::Closed => {
                self.failed(now, "the connection was closed".to_owned(), true);
            }
            DialFailure::Link(error) => {
                let text = error.to_string();
                let unanswered = matches!(error, LinkError::HandshakeTimeout(_));
                self.stranger = Some((self.next_address(), text.clone()));
                self.failed(now, text, true);
                self.unanswered = unanswered;
            }
        }
    }

    /// Counts the wrong peers that answered in a row at the current place. Any other failure resets the count.
    fn note_met(&mut self, now: Instant, failure: &DialFailure) {
        let met = &mut self.met[self.place_index];
        let (other, stranger) = match failure {
            DialFailure::Link(error) => (
                matches!(error, LinkError::WrongPeer { .. }),
                error.is_someone_else(),
            ),
            _ => (false, false),
        };
        let next = |count: u8, another: bool| match another {
            true => (count + 1).min(STRANGER_HANDSHAKES_MAX),
            false => 0,
        };
        *met = WrongPeers {
            others: next(met.others, other),
            strangers: next(met.strangers, stranger),
            since: stranger.then(|| met.since.unwrap_or(now)),
        };
    }

    fn next_address(&self) -> ConnectionString {
        let place = &self.target.places[self.place_index];
        place.at(self.offset).unwrap_or(place.first().clone())
    }

    /// Ends an attempt and chooses the next address. `occupied` is true if a process accepted the connection.
    fn failed(&mut self, now: Instant, text: String, occupied: bool) {
        let (address, Target { server, host, .. }) = (self.next_address(), &self.target);
        tracing::debug!(
            "{server} on {host}: attempt {} to connect to {address} failed: {text}",
            self.tries
        );
        self.last = Some((address, text));
        self.unanswered = false;
        self.refusals = 0;
        self.state = DialState::Idle;
        self.empty_run = if occupied { 0 } else { self.empty_run + 1 };
        let place = &self.target.places[self.place_index];
        let is_last = self.offset == u16::MAX || place.at(self.offset + 1).is_none();
        if !is_last && self.empty_run < self.empty_run_max {
            self.offset += 1;
            return;
        }
        self.offset = 0;
        self.empty_run = 0;
        if let Some(index) = self.first_left(now, self.place_index + 1) {
            self.place_index = index;
            return;
        }
        self.end_round(now);
    }

    /// Index of the first place from `from` on where the child may still be; `None` if there is none.
    fn first_left(&self, now: Instant, from: usize) -> Option<usize> {
        (from..self.met.len()).find(|at| self.may_be(now, *at))
    }

    /// True if the child may still be at this place, in view of the wrong peers that answered there.
    fn may_be(&self, now: Instant, at: usize) -> bool {
        let met = &self.met[at];
        let lasted = met.since.is_some_and(|since| now >= since + STRANGER_WAIT);
        let others = met.others >= STRANGER_HANDSHAKES_MAX;
        let strangers = met.strangers >= STRANGER_HANDSHAKES_MAX && lasted;
        !self.target.places[at].is_known() || !(others || strangers)
    }

    fn end_round(&mut self, now: Instant) {
        self.place_index = self.first_left(now, 0).unwrap_or(0);
        self.state = DialState::Pause(now + self.pause);
        self.pause = (self.pause * 2).min(PAUSE_MAX);
        self.empty_run_max = (self.empty_run_max * 2).min(EMPTY_RUN_MAX);
        self.greeting_wait = (self.greeting_wait * 2).min(HANDSHAKE_WAIT);
    }

    /// The text of [`DialStep::GiveUp`]: the member, its host, its addresses, the number of attempts and their time.
    /// Then come the last error and the last wrong peer.
    fn report(&self, now: Instant) -> String {
        let Target { server, host, .. } = &self.target;
        let places = self.target.places.iter().map(Place::to_string);
        let places: Vec<String> = places.collect();
        let seconds = (now - self.started).as_secs_f32();
        let mut text = format!("{server} on {host}: ");
        if places.is_empty() {
            text.push_str("its address is unknown");
            return text;
        }
        if let [only] = &self.target.places[..]
            && only.first().caller().is_some()
        {
            let _ = write!(text, "did not connect to this host within {seconds:.1} s");
            return text;
        }
        let tries = if self.tries == 1 { "try" } else { "tries" };
        let places = places.join(", ");
        let _ = write!(
            text,
            "no connection to {places} after {} {tries} in {seconds:.1} s",
            self.tries
        );
        if let Some((at, why)) = &self.last {
            let _ = write!(text, ": {why} at {at}");
        }
        if let Some((at, why)) = self
            .stranger
            .as_ref()
            .filter(|s| Some(*s) != self.last.as_ref())
        {
            let _ = write!(text, "; {why} at {at}");
        }
        text
    }
}
