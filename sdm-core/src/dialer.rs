//! Reaching one child at start-up, without I/O: which address next, when, and when to give up.
//!
//! An announced port is where the child is. Otherwise the port is a base: the child took the first
//! free one from there on, so the dialer looks upwards, past ports where somebody else answers and
//! past a few where nobody does. How many of those it passes doubles each round, so that a
//! child that is merely late is found at once, and one that is far up is found too.

use std::fmt::Write;
use std::time::{Duration, Instant};

use crate::ids::ServerId;
use crate::limits::PORT_TRIES_MAX;
use crate::link::LinkError;
use crate::transport::ConnectionString;

/// The pause after the first round that found nobody; it doubles from round to round.
pub const PAUSE_MIN: Duration = Duration::from_millis(1);
/// The longest pause between two rounds.
pub const PAUSE_MAX: Duration = Duration::from_millis(250);
/// How long one connection may take before its handshake begins: a host that drops packets must
/// not use up the time of its other addresses.
pub const ATTEMPT_WAIT: Duration = Duration::from_secs(3);
/// Handshakes in a row with somebody else after which an announced address is given up. One alone
/// may be a handshake of the right peer that was changed on its way; the pauses between eight make
/// a quarter of a second.
pub const STRANGER_HANDSHAKES_MAX: u8 = 8;
/// What is said, before the time, of an address from which nothing comes back.
pub const UNANSWERED: &str = "no answer within";
/// What is said of a connection that stands and over which nothing came.
const NO_ANSWER: &str = "connected, but nobody answers";

/// Whom to reach, and where it may be.
#[derive(Clone, Debug)]
pub struct Target {
    /// Who.
    pub server: ServerId,
    /// Its host's name, for a person.
    pub host: String,
    /// Where it listens, best first; numeric.
    pub addresses: Vec<ConnectionString>,
    /// True where the ports are announced ones, false where they are the base to look from.
    pub announced: bool,
    /// When to give up.
    pub deadline: Instant,
    /// How long to wait before the first try.
    pub pause: Duration,
}

/// What to do now.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DialStep {
    /// Connect there, and drop an earlier connection of this dialer.
    Connect(ConnectionString),
    /// Nothing before this instant, unless something happens.
    WaitUntil(Instant),
    /// It was not reached: who, where, why, and after how many tries.
    GiveUp(String),
}

/// How an attempt failed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DialFailure {
    /// Nobody listens there: the error of the system.
    Refused(String),
    /// No connection for another reason: the error of the system.
    NotReached(String),
    /// A connection, but no handshake.
    Link(LinkError),
    /// A connection that ended without a word.
    Closed,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// The next attempt can be made.
    Idle,
    /// Not before then.
    Pause(Instant),
    /// Under way; it counts as failed then.
    Connecting(Instant),
    /// A connection stands: its handshake has a deadline of its own.
    Greeting,
}

/// Reaches one child. Call [`Dialer::poll`] after every input and at the instant that it gives;
/// when the link is up, drop it.
#[derive(Debug)]
pub struct Dialer {
    target: Target,
    state: State,
    /// Which of the addresses is next, < `addresses.len()`.
    address_index: usize,
    /// How far above its base the port is, < `PORT_TRIES_MAX`.
    offset: u16,
    /// Ports in a row at which nobody was, in this round and address.
    empty_run: u16,
    /// How many of those end the search of an address, 1 or more.
    empty_run_max: u16,
    pause: Duration,
    started: Instant,
    tries: u32,
    /// The last failure, and where.
    last: Option<(ConnectionString, String)>,
    /// The last one that was there instead, and where: the better hint of the two.
    stranger: Option<(ConnectionString, String)>,
    /// For each address, how many handshakes in a row were somebody else's; at `STRANGER_HANDSHAKES_MAX` an
    /// announced one is ruled out: no use to come back.
    strangers: Vec<u8>,
    /// True where the last connection stood, but nobody spoke.
    unanswered: bool,
    /// Tries in a row that were refused.
    refusals: usize,
}

impl Dialer {
    /// Begins to look.
    #[must_use]
    pub fn new(now: Instant, target: Target) -> Self {
        let state = if target.pause.is_zero() {
            State::Idle
        } else {
            State::Pause(now + target.pause)
        };
        let strangers = vec![0; target.addresses.len()];
        Self {
            target,
            state,
            address_index: 0,
            offset: 0,
            empty_run: 0,
            empty_run_max: 1,
            pause: PAUSE_MIN,
            started: now,
            tries: 0,
            last: None,
            stranger: None,
            strangers,
            unanswered: false,
            refusals: 0,
        }
    }

    /// Whom it looks for.
    #[must_use]
    pub fn server(&self) -> ServerId {
        self.target.server
    }

    /// What to do now.
    pub fn poll(&mut self, now: Instant) -> DialStep {
        if let State::Connecting(until) = self.state
            && now >= until
        {
            let text = format!("{UNANSWERED} {} s", ATTEMPT_WAIT.as_secs());
            self.failed(now, text, false);
        }
        if now >= self.target.deadline || self.first_left(0).is_none() {
            if self.state == State::Greeting {
                self.failed(now, NO_ANSWER.to_owned(), true);
                self.unanswered = true;
            }
            return DialStep::GiveUp(self.report(now));
        }
        match self.state {
            State::Pause(until) if now < until => {
                DialStep::WaitUntil(until.min(self.target.deadline))
            }
            State::Idle | State::Pause(_) => {
                self.state = State::Connecting(now + ATTEMPT_WAIT);
                self.tries += 1;
                DialStep::Connect(self.next_address())
            }
            State::Connecting(until) => DialStep::WaitUntil(until.min(self.target.deadline)),
            State::Greeting => DialStep::WaitUntil(self.target.deadline),
        }
    }

    /// True where somebody listens whom this dialer looks for, as far as can be known, but does
    /// not answer: a process that stands still.
    #[must_use]
    pub fn is_unanswered(&self) -> bool {
        self.unanswered
    }

    /// True where every announced address refused one after the other: who announced them
    /// listened there, and so is gone.
    #[must_use]
    pub fn is_refused(&self) -> bool {
        let left = self.strangers.iter().filter(|s| self.may_be(**s)).count();
        self.target.announced && left > 0 && self.refusals >= left
    }

    /// The connection stands; its handshake begins.
    pub fn handle_connected(&mut self) {
        if let State::Connecting(_) = self.state {
            self.state = State::Greeting;
        }
    }

    /// The attempt came to nothing. One that [`Dialer::poll`] has told to drop must not be
    /// reported.
    pub fn handle_failure(&mut self, now: Instant, failure: DialFailure) {
        if !matches!(self.state, State::Connecting(_) | State::Greeting) {
            return;
        }
        let at = self.address_index;
        let strangers = match &failure {
            DialFailure::Link(error) if error.is_someone_else() => self.strangers[at] + 1,
            _ => 0,
        };
        self.strangers[at] = strangers.min(STRANGER_HANDSHAKES_MAX);
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

    fn next_address(&self) -> ConnectionString {
        let base = &self.target.addresses[self.address_index];
        base.stepped(self.offset).unwrap_or_else(|| base.clone())
    }

    /// Moves on to where the next attempt goes; `occupied`: somebody was there.
    fn failed(&mut self, now: Instant, text: String, occupied: bool) {
        self.last = Some((self.next_address(), text));
        self.unanswered = false;
        self.refusals = 0;
        self.state = State::Idle;
        self.empty_run = if occupied { 0 } else { self.empty_run + 1 };
        let base = &self.target.addresses[self.address_index];
        let is_last = self.offset + 1 >= PORT_TRIES_MAX || base.stepped(self.offset + 1).is_none();
        if !self.target.announced && !is_last && self.empty_run < self.empty_run_max {
            self.offset += 1;
            return;
        }
        self.offset = 0;
        self.empty_run = 0;
        if let Some(index) = self.first_left(self.address_index + 1) {
            self.address_index = index;
            return;
        }
        self.end_round(now);
    }

    /// The first address from `from` on where the child may still be.
    fn first_left(&self, from: usize) -> Option<usize> {
        (from..self.strangers.len()).find(|index| self.may_be(self.strangers[*index]))
    }

    /// True where the child may be, after so many strangers in a row.
    fn may_be(&self, strangers: u8) -> bool {
        !self.target.announced || strangers < STRANGER_HANDSHAKES_MAX
    }

    fn end_round(&mut self, now: Instant) {
        self.address_index = self.first_left(0).unwrap_or(0);
        self.state = State::Pause(now + self.pause);
        self.pause = (self.pause * 2).min(PAUSE_MAX);
        self.empty_run_max = (self.empty_run_max * 2).min(PORT_TRIES_MAX);
    }

    /// For example `server 3 on n1: not reached at tcp://10.0.0.7:7003 and up after 12 tries in 60 s:
    /// connection refused at tcp://10.0.0.7:7004; at tcp://10.0.0.7:7003: not an SDM peer`.
    fn report(&self, now: Instant) -> String {
        let Target { server, host, .. } = &self.target;
        let places: Vec<String> = self
            .target
            .addresses
            .iter()
            .map(|a| a.to_string())
            .collect();
        let up = if self.target.announced { "" } else { " and up" };
        let seconds = (now - self.started).as_secs_f32();
        let mut text = format!("{server} on {host}: ");
        if places.is_empty() {
            text.push_str("no address is known");
            return text;
        }
        if let [only] = &self.target.addresses[..]
            && only.caller().is_some()
        {
            let _ = write!(text, "has not called here within {seconds:.1} s");
            return text;
        }
        let tries = if self.tries == 1 { "try" } else { "tries" };
        let places = places.join(", ");
        let _ = write!(
            text,
            "not reached at {places}{up} after {} {tries} in {seconds:.1} s",
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

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn dialer(now: Instant, announced: bool, addresses: &[&str]) -> Dialer {
        let addresses = addresses.iter().map(|a| a.parse().unwrap()).collect();
        let target = Target {
            server: ServerId(3),
            host: "n1".to_owned(),
            addresses,
            announced,
            deadline: now + 60 * SECOND,
            pause: Duration::ZERO,
        };
        Dialer::new(now, target)
    }

    fn refused() -> DialFailure {
        DialFailure::Refused("connection refused".to_owned())
    }

    fn wrong_peer() -> DialFailure {
        DialFailure::Link(LinkError::WrongPeer {
            expected: ServerId(3),
            reached: ServerId(5),
        })
    }

    /// Runs a dialer against a world that says what is at a port; the ports tried, `-` a pause.
    fn ports(
        announced: bool,
        addresses: &[&str],
        steps: usize,
        world: impl Fn(&ConnectionString) -> DialFailure,
    ) -> String {
        let mut now = Instant::now();
        let mut dialer = dialer(now, announced, addresses);
        let mut tried = String::new();
        for _ in 0..steps {
            match dialer.poll(now) {
                DialStep::Connect(at) => {
                    let _ = write!(tried, "{} ", at.port());
                    dialer.handle_connected();
                    dialer.handle_failure(now, world(&at));
                }
                DialStep::WaitUntil(until) => {
                    tried.push_str("- ");
                    now = until;
                }
                DialStep::GiveUp(_) => {
                    tried.push('!');
                    break;
                }
            }
        }
        tried.trim_end().to_owned()
    }

    #[test]
    fn a_late_child_is_looked_for_where_it_should_be() {
        let tried = ports(false, &["tcp://10.0.0.1:7000"], 11, |_| refused());
        assert_eq!(tried, "7000 - 7000 7001 - 7000 7001 7002 7003 - 7000");
        let tried = ports(true, &["tcp://10.0.0.1:7000"], 5, |_| refused());
        assert_eq!(tried, "7000 - 7000 - 7000");
    }

    #[test]
    fn ports_of_others_are_passed() {
        let world = |at: &ConnectionString| {
            if at.port() < 7003 {
                wrong_peer()
            } else {
                refused()
            }
        };
        let tried = ports(false, &["tcp://10.0.0.1:7000"], 7, world);
        assert_eq!(tried, "7000 7001 7002 7003 - 7000 7001");
        let closed = |_: &ConnectionString| DialFailure::Closed;
        let tried = ports(false, &["tcp://10.0.0.1:65533"], 5, closed);
        assert_eq!(tried, "65533 65534 65535 - 65533");
    }

    #[test]
    fn the_search_is_bounded() {
        let tried = ports(false, &["tcp://10.0.0.1:7000"], 300, |_| wrong_peer());
        assert!(
            tried.contains("7255 - 7000") && !tried.contains("7256"),
            "{tried}"
        );
    }

    #[test]
    fn every_address_is_tried() {
        let addresses = ["tcp://10.0.0.1:1", "tcp://10.0.0.2:2", "tcp://10.0.0.3:3"];
        let tried = ports(true, &addresses, 8, |_| refused());
        assert_eq!(tried, "1 2 3 - 1 2 3 -");
        let world = |at: &ConnectionString| {
            if at.port() == 2 {
                wrong_peer()
            } else {
                refused()
            }
        };
        let rounds = "1 2 3 - ".repeat(usize::from(STRANGER_HANDSHAKES_MAX));
        let tried = ports(true, &addresses, 4 * 8 + 5, world);
        assert_eq!(tried, format!("{rounds}1 3 - 1 3"), "no use to come back");
        let tried = ports(true, &addresses, 99, |_| wrong_peer());
        assert_eq!(
            tried,
            format!("{}!", rounds.trim_end_matches("- ")),
            "someone else is at every announced address"
        );
    }

    #[test]
    fn who_is_refused_everywhere_is_gone() {
        let now = Instant::now();
        let addresses = ["tcp://10.0.0.1:1", "tcp://10.0.0.2:2"];
        let unreachable = || DialFailure::NotReached("no route to host".to_owned());
        #[track_caller]
        fn check(mut dialer: Dialer, start: Instant, failures: &[DialFailure], expect: bool) {
            let mut now = start;
            for failure in failures {
                while let DialStep::WaitUntil(until) = dialer.poll(now) {
                    now = until;
                }
                dialer.handle_failure(now, failure.clone());
            }
            assert_eq!(dialer.is_refused(), expect);
        }
        let two = || dialer(now, true, &addresses);
        check(two(), now, &[refused()], false);
        check(two(), now, &[refused(), refused()], true);
        check(two(), now, &[refused(), unreachable(), refused()], false);
        let other = [wrong_peer(), refused()];
        check(two(), now, &other, false);
        check(
            two(),
            now,
            &vec![other.clone(); STRANGER_HANDSHAKES_MAX.into()].concat(),
            true,
        );
        let base = dialer(now, false, &addresses[..1]);
        check(base, now, &[refused(), refused(), refused()], false);
    }

    #[test]
    fn pauses_grow_and_are_bounded() {
        let mut now = Instant::now();
        let mut dialer = dialer(now, true, &["tcp://10.0.0.1:7000"]);
        let mut pauses = Vec::new();
        while pauses.len() < 12 {
            match dialer.poll(now) {
                DialStep::Connect(_) => dialer.handle_failure(now, refused()),
                DialStep::WaitUntil(until) => {
                    pauses.push((until - now).as_millis());
                    now = until;
                }
                DialStep::GiveUp(why) => panic!("{why}"),
            }
        }
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 64, 128, 250, 250, 250, 250]);
    }

    #[test]
    fn a_host_that_drops_packets_does_not_hold_up_its_other_addresses() {
        let start = Instant::now();
        let addresses = ["tcp://10.0.0.1:7000", "tcp://10.0.0.2:7000"];
        let mut dialer = dialer(start, true, &addresses);
        let at = |n: usize| DialStep::Connect(addresses[n].parse().unwrap());
        assert_eq!(dialer.poll(start), at(0));
        assert_eq!(
            dialer.poll(start),
            DialStep::WaitUntil(start + ATTEMPT_WAIT)
        );
        assert_eq!(dialer.poll(start + ATTEMPT_WAIT), at(1));
        // A handshake that has begun is not cut short by it.
        dialer.handle_connected();
        let deadline = start + 60 * SECOND;
        assert_eq!(
            dialer.poll(start + 20 * SECOND),
            DialStep::WaitUntil(deadline)
        );
    }

    #[test]
    fn somebody_who_stands_still_is_told_from_nobody() {
        let start = Instant::now();
        let mut still = dialer(start, true, &["tcp://10.0.0.1:7000"]);
        let mut gone = dialer(start, true, &["tcp://10.0.0.1:7000"]);
        for dialer in [&mut still, &mut gone] {
            assert!(matches!(dialer.poll(start), DialStep::Connect(_)));
        }
        still.handle_connected();
        gone.handle_failure(start, refused());
        let end = start + 60 * SECOND;
        let DialStep::GiveUp(why) = still.poll(end) else {
            panic!("it had its time")
        };
        assert!(
            why.ends_with("connected, but nobody answers at tcp://10.0.0.1:7000"),
            "{why}"
        );
        assert!(matches!(gone.poll(end), DialStep::GiveUp(_)));
        assert_eq!((still.is_unanswered(), gone.is_unanswered()), (true, false));
    }

    #[test]
    fn whoever_gives_up_says_why() {
        #[track_caller]
        fn check(mut dialer: Dialer, start: Instant, failures: &[DialFailure], expect: &str) {
            let mut now = start;
            for failure in failures {
                while let DialStep::WaitUntil(until) = dialer.poll(now) {
                    now = until;
                }
                dialer.handle_failure(now, failure.clone());
            }
            let step = dialer.poll(start + 60 * SECOND);
            assert_eq!(step, DialStep::GiveUp(expect.to_owned()));
        }
        let start = Instant::now();
        check(
            dialer(start, true, &["tcp://10.0.0.1:7000"]),
            start,
            &[refused(), refused()],
            "server 3 on n1: not reached at tcp://10.0.0.1:7000 after 2 tries in 60.0 s: \
             connection refused at tcp://10.0.0.1:7000",
        );
        check(
            dialer(start, false, &["tcp://10.0.0.1:7000"]),
            start,
            &[wrong_peer(), refused()],
            "server 3 on n1: not reached at tcp://10.0.0.1:7000 and up after 2 tries in 60.0 s: \
             connection refused at tcp://10.0.0.1:7001; \
             expected server 3, reached server 5 at tcp://10.0.0.1:7000",
        );
        let caller = dialer(start, true, &["called://3"]);
        check(
            caller,
            start,
            &[],
            "server 3 on n1: has not called here within 60.0 s",
        );
        let none = dialer(start, true, &[]);
        check(none, start, &[], "server 3 on n1: no address is known");
    }
}
