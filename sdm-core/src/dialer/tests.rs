//! Tests of dialers in simulated networks, which define the peer at each port.

use super::*;

const SECOND: Duration = Duration::from_secs(1);

fn dialer(now: Instant, places: &[&str]) -> Dialer {
    let places = places.iter().map(|a| a.parse().unwrap()).collect();
    let target = Target {
        server: ServerId(3),
        host: "n1".to_owned(),
        places,
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

/// Runs a dialer in a simulated network and returns the ports tried; `-` is a pause.
fn ports(
    places: &[&str],
    steps: usize,
    world: impl Fn(&ConnectionString) -> DialFailure,
) -> String {
    let mut now = Instant::now();
    let mut dialer = dialer(now, places);
    let mut tried = String::new();
    for _ in 0..steps {
        match dialer.poll(now) {
            DialStep::Connect(at) => {
                let _ = write!(tried, "{} ", at.port());
                dialer.handle_connected(now);
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
fn dialer_retries_the_first_port_for_a_late_child() {
    let tried = ports(&["tcp://10.0.0.1:7000-7255"], 11, |_| refused());
    assert_eq!(tried, "7000 - 7000 7001 - 7000 7001 7002 7003 - 7000");
    let tried = ports(&["tcp://10.0.0.1:7000"], 5, |_| refused());
    assert_eq!(tried, "7000 - 7000 - 7000");
}

#[test]
fn ports_of_other_sessions_are_skipped() {
    let world = |at: &ConnectionString| {
        if at.port() < 7003 {
            wrong_peer()
        } else {
            refused()
        }
    };
    let tried = ports(&["tcp://10.0.0.1:7000-7255"], 7, world);
    assert_eq!(tried, "7000 7001 7002 7003 - 7000 7001");
    let closed = |_: &ConnectionString| DialFailure::Closed;
    let tried = ports(&["tcp://10.0.0.1:65533-65535"], 5, closed);
    assert_eq!(tried, "65533 65534 65535 - 65533");
}

#[test]
fn port_search_passes_at_most_16_ports_without_listener() {
    let tried = ports(&["tcp://10.0.0.1:7000-7255"], 200, |_| refused());
    assert!(
        tried.contains("7015 - 7000") && !tried.contains("7016"),
        "{tried}"
    );
}

#[test]
fn strangers_without_the_key_do_not_end_dialing() {
    let start = Instant::now();
    for forged in [
        LinkError::Refused("the peer gave no reason"),
        LinkError::WrongKey,
        LinkError::NotSdm,
        LinkError::WrongSession,
        LinkError::WireVersion { ours: 2, theirs: 1 },
    ] {
        let mut now = start;
        let mut dialer = dialer(start, &["tcp://10.0.0.1:7000"]);
        let why = loop {
            match dialer.poll(now) {
                DialStep::Connect(_) => {
                    dialer.handle_connected(now);
                    dialer.handle_failure(now, DialFailure::Link(forged.clone()));
                }
                DialStep::WaitUntil(until) => now = until,
                DialStep::GiveUp(why) => break why,
            }
        };
        assert!(now >= start + STRANGER_WAIT, "{forged}");
        assert!(now < start + 2 * STRANGER_WAIT, "a start fails with it");
        assert!(why.contains(&forged.to_string()), "{why}");
    }
}

#[test]
fn dialer_leaves_a_silent_port_after_3_and_then_6_seconds() {
    let mut now = Instant::now();
    let mut dialer = dialer(now, &["tcp://10.0.0.1:7000-7255"]);
    let (mut tried, mut pauses) = (Vec::new(), Vec::new());
    while tried.len() < 6 {
        match dialer.poll(now) {
            DialStep::Connect(at) if at.port() == 7000 => {
                tried.push(at.port());
                dialer.handle_connected(now);
            }
            DialStep::Connect(at) => {
                tried.push(at.port());
                dialer.handle_failure(now, refused());
            }
            DialStep::WaitUntil(until) => {
                pauses.push((until - now).as_secs());
                now = until;
            }
            DialStep::GiveUp(why) => panic!("{why}"),
        }
    }
    assert_eq!(tried, [7000, 7001, 7000, 7001, 7002, 7000]);
    pauses.retain(|pause| *pause > 0);
    assert_eq!(pauses, [3, 6], "who is only slow has more time each round");
}

#[test]
fn dialer_searches_only_the_given_port_range() {
    let tried = ports(&["tcp://10.0.0.1:7000-7255"], 300, |_| wrong_peer());
    assert!(
        tried.contains("7255 - 7000") && !tried.contains("7256"),
        "{tried}"
    );
}

#[test]
fn dialer_retries_all_addresses_but_drops_wrong_peers() {
    let addresses = ["tcp://10.0.0.1:1", "tcp://10.0.0.2:2", "tcp://10.0.0.3:3"];
    let tried = ports(&addresses, 8, |_| refused());
    assert_eq!(tried, "1 2 3 - 1 2 3 -");
    let world = |at: &ConnectionString| {
        if at.port() == 2 {
            wrong_peer()
        } else {
            refused()
        }
    };
    let rounds = "1 2 3 - ".repeat(usize::from(STRANGER_HANDSHAKES_MAX));
    let tried = ports(&addresses, 4 * 8 + 5, world);
    assert_eq!(tried, format!("{rounds}1 3 - 1 3"), "no use to come back");
    let tried = ports(&addresses, 99, |_| wrong_peer());
    assert_eq!(
        tried,
        format!("{}!", rounds.trim_end_matches("- ")),
        "someone else is at every announced address"
    );
}

#[test]
fn peer_that_refuses_at_all_addresses_counts_as_gone() {
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
        assert_eq!(dialer.is_refused(now), expect);
    }
    let two = || dialer(now, &addresses);
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
    let base = dialer(now, &["tcp://10.0.0.1:1-9"]);
    check(base, now, &[refused(), refused(), refused()], false);
}

#[test]
fn dialer_retry_pause_doubles_up_to_250_milliseconds() {
    let mut now = Instant::now();
    let mut dialer = dialer(now, &["tcp://10.0.0.1:7000"]);
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
fn unreachable_address_does_not_delay_other_addresses() {
    let start = Instant::now();
    let addresses = ["tcp://10.0.0.1:7000", "tcp://10.0.0.2:7000"];
    let mut dialer = dialer(start, &addresses);
    let at = |n: usize| DialStep::Connect(addresses[n].parse().unwrap());
    assert_eq!(dialer.poll(start), at(0));
    assert_eq!(
        dialer.poll(start),
        DialStep::WaitUntil(start + ATTEMPT_WAIT)
    );
    assert_eq!(dialer.poll(start + ATTEMPT_WAIT), at(1));
    // A handshake that has begun is not cut short by it.
    dialer.handle_connected(start);
    let deadline = start + 60 * SECOND;
    assert_eq!(
        dialer.poll(start + 20 * SECOND),
        DialStep::WaitUntil(deadline)
    );
}

#[test]
fn stopped_peer_is_distinguished_from_absent_peer() {
    let start = Instant::now();
    let mut still = dialer(start, &["tcp://10.0.0.1:7000"]);
    let mut gone = dialer(start, &["tcp://10.0.0.1:7000"]);
    for dialer in [&mut still, &mut gone] {
        assert!(matches!(dialer.poll(start), DialStep::Connect(_)));
    }
    still.handle_connected(start);
    gone.handle_failure(start, refused());
    let end = start + 60 * SECOND;
    let DialStep::GiveUp(why) = still.poll(end) else {
        panic!("it had its time")
    };
    assert!(
        why.ends_with(
            "the connection was made, but the peer did not answer at tcp://10.0.0.1:7000"
        ),
        "{why}"
    );
    assert!(matches!(gone.poll(end), DialStep::GiveUp(_)));
    assert_eq!((still.is_unanswered(), gone.is_unanswered()), (true, false));
}

#[test]
fn failed_dialing_names_its_reason() {
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
        dialer(start, &["tcp://10.0.0.1:7000"]),
        start,
        &[refused(), refused()],
        "server 3 on n1: no connection to tcp://10.0.0.1:7000 after 2 tries in 60.0 s: \
         connection refused at tcp://10.0.0.1:7000",
    );
    check(
        dialer(start, &["tcp://10.0.0.1:7000-7255"]),
        start,
        &[wrong_peer(), refused()],
        "server 3 on n1: no connection to tcp://10.0.0.1:7000-7255 after 2 tries in 60.0 s: \
         connection refused at tcp://10.0.0.1:7001; \
         the connection to server 3 reached server 5 at tcp://10.0.0.1:7000",
    );
    let caller = dialer(start, &["called://3"]);
    check(
        caller,
        start,
        &[],
        "server 3 on n1: did not connect to this host within 60.0 s",
    );
    let none = dialer(start, &[]);
    check(none, start, &[], "server 3 on n1: its address is unknown");
}
