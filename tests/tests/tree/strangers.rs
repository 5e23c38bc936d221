//! Foreign connections of every kind to a server's port, while the session continues.

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::Signal;
use sdm_core::ids::{Epoch, ServerId, SessionId};
use sdm_core::link::{Link, LinkConfig, LinkEvent};
use sdm_core::message::Health;
use sdm_core::secure::{Hello, Role, SessionKey};
use sdm_core::topology::Topology;
use sdm_idset::IdSet;
use sdm_session::{DebugSession, SessionConfig};
use sdm_tests::disturbed::Disturbed;
use sdm_tests::processes;
use sdm_tests::run::{BOUND, Run, evaluate, until};

const _: () = sdm_tests::run::test_group("crowded", "servers under a crowd of strangers");

const SERVERS: u32 = 12;
/// The server that is disturbed most: position 8 of the tree, a child of the master, with three servers below.
const VICTIM: u32 = 7;
/// Maximum memory that strangers may cost a server, in bytes.
const COST_MAX: u64 = 8 << 20;

/// Warnings of a server on a busy machine that do not concern strangers.
const NO_REFUSALS: [&str; 5] = [
    "no data arrives over the connection",
    "the time limit has passed: the answer is counted as missing",
    "lost: ",
    "not reached: ",
    "no parent: ",
];

/// Number of silent connections in total, and maximum number of them at a time.
const CROWD: usize = 10_000;
const HELD_MAX: usize = 2000;

/// A session whose servers log, and whose key the test has.
struct Town {
    disturbed: Disturbed,
    run: Run,
    key: SessionKey,
}

impl Town {
    fn new() -> Self {
        let disturbed = Disturbed::new(
            "umask 077; echo $SDM_KEY > $0.$id.key; export SDM_LOG=warn; exec 2>$0.$id.log",
        );
        let config = SessionConfig {
            topology: Topology::Binomial,
            ..disturbed.config(SERVERS, BOUND)
        };
        let mut run = Run::start(&config);
        let file = disturbed.folder().join("sdm-server.0.key");
        let text = fs::read_to_string(file).expect("the key was written");
        run.start_tasks();
        Self {
            disturbed,
            run,
            key: text.parse().expect("a key"),
        }
    }

    fn port(&self) -> u16 {
        self.run.port(VICTIM)
    }

    fn config(&self, key: &SessionKey) -> LinkConfig {
        LinkConfig::new(key.clone(), self.run.session.id())
    }

    /// Checks that every living task answers.
    fn check(&mut self, living: &IdSet) {
        let all = self.run.all();
        let ledger = self.run.ask(&all, &evaluate("rank"));
        assert_eq!(
            ledger.answered,
            *living,
            "{:?}",
            (&ledger.reasons, self.run.to_string())
        );
    }

    /// Checks that each cause of a refusal was logged once, and again only after a minute, which this test may take
    /// on a busy machine.
    fn check_log(&self) {
        let log = self.log(VICTIM);
        let anew = |line: &&String| !line.contains(" times since the last report)");
        let first: Vec<_> = log.iter().filter(anew).collect();
        for cause in [
            "the peer is not a program of sdm",
            "the peer does not hold the same session key",
            "the peer belongs to another session",
            "too many connections without a handshake",
        ] {
            let lines = first.iter().filter(|line| line.contains(cause)).count();
            assert_eq!(lines, 1, "{cause}: {log:#?}");
        }
        let is_refusal = |line: &&&String| !NO_REFUSALS.iter().any(|it| line.contains(it));
        let causes = first.iter().filter(is_refusal).count();
        assert!(causes < 12, "a line per cause: {log:#?}");
    }

    fn log(&self, server: u32) -> Vec<String> {
        let file = self
            .disturbed
            .folder()
            .join(format!("sdm-server.{server}.log"));
        let text = fs::read_to_string(file).expect("a log");
        text.lines().map(str::to_owned).collect()
    }
}

fn connect(port: u16) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", port)).expect("the server listens");
    stream.set_read_timeout(Some(BOUND)).expect("a socket");
    stream
}

fn front_end(epoch: u32) -> Hello {
    Hello {
        role: Role::Parent,
        id: ServerId::FRONT_END,
        expect: None,
        epoch: Epoch(epoch),
        incarnation: 0,
        build: "a stranger".to_owned(),
        features: 0,
    }
}

/// The first bytes of a connecting member.
fn first_words(config: &LinkConfig) -> Vec<u8> {
    let mut link = Link::initiate(Instant::now(), config, front_end(1 << 20));
    let mut bytes = Vec::new();
    while link.poll_transmit(&mut bytes) {}
    bytes
}

/// Reads until the server hangs up.
fn is_sent_away(mut stream: TcpStream) {
    let mut buffer = [0; 1024];
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => return,
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::ConnectionReset => return,
            Err(error) => panic!("the server does not hang up: {error}"),
        }
    }
}

/// Connects as a front-end with the right key, in an epoch that is over.
fn second_front_end(config: &LinkConfig, port: u16) {
    let mut stream = connect(port);
    let mut link = Link::initiate(Instant::now(), config, front_end(1));
    let mut buffer = [0; 4096];
    let mut was_up = false;
    loop {
        let mut out = Vec::new();
        while link.poll_transmit(&mut out) {}
        if stream.write_all(&out).is_err() {
            break;
        }
        let Ok(count @ 1..) = stream.read(&mut buffer) else {
            break;
        };
        let _ = link.handle_bytes(Instant::now(), &mut buffer[..count]);
        while let Some(event) = link.poll_event() {
            was_up |= matches!(event, LinkEvent::Up(_));
        }
    }
    assert!(was_up, "it holds the key");
}

#[test]
fn foreign_connections_of_every_kind_change_nothing() {
    let mut town = Town::new();
    // A user's initial limit may be 1024 descriptors, fewer than there are strangers; the servers keep their limit.
    let (_, most) = getrlimit(Resource::RLIMIT_NOFILE).expect("a limit");
    setrlimit(Resource::RLIMIT_NOFILE, most, most).expect("up to the hard limit");
    let (all, port) = (town.run.all(), town.port());
    let before = processes::resident_bytes(town.run.server(VICTIM));
    let right = town.config(&town.key);
    let other = LinkConfig::new(SessionKey::draw().expect("random"), right.session);
    let elsewhere = LinkConfig::new(town.key.clone(), SessionId([7; 8]));
    for _ in 0..20 {
        let mut garbage = connect(port);
        // The server may close the connection before all bytes are sent.
        let _ = garbage.write_all(&[0xa5; 4000]);
        is_sent_away(garbage);
        for config in [&other, &elsewhere] {
            let mut wrong = connect(port);
            wrong.write_all(&first_words(config)).expect("written");
            is_sent_away(wrong);
        }
    }
    town.check(&all);
    // Silent ones, slow ones, and handshakes that are repeated and never go on.
    let replayed = first_words(&right);
    let mut held: Vec<TcpStream> = (0..50).map(|_| connect(port)).collect();
    for count in 1..40 {
        let mut slow = connect(port);
        slow.write_all(&replayed[..count.min(replayed.len() - 1)])
            .expect("written");
        held.push(slow);
        let mut replay = connect(port);
        replay.write_all(&replayed).expect("written");
        held.push(replay);
    }
    town.check(&all);
    second_front_end(&right, port);
    town.check(&all);
    // Very many.
    for _ in 0..CROWD {
        held.push(connect(port));
        // A process may not have so many descriptors; the server closes most connections at once anyway.
        if held.len() == HELD_MAX {
            town.check(&all);
            held.clear();
        }
    }
    town.check(&all);
    let cost = processes::peak_bytes(town.run.server(VICTIM)).saturating_sub(before);
    println!("strangers cost at most {} KiB", cost >> 10);
    assert!(cost < COST_MAX, "{cost} bytes");
    drop(held);
    town.check(&all);
    town.check_log();
    let key = town.key.to_hex();
    for server in 0..SERVERS {
        assert!(!town.log(server).iter().any(|line| line.contains(&**key)));
    }
    town.run.close();
}

struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn parent_connects_despite_many_foreign_connections() {
    let mut town = Town::new();
    let all = town.run.all();
    // Its parent is to die: position 12 is a child of position 8.
    let port = town.run.port(11);
    let replayed = first_words(&town.config(&town.key));
    let (stop, calls) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        // A repeated handshake costs the server milliseconds in a build without optimisation: a
        // crowd, not a flood that leaves it no time at all.
        for (part, pause) in [(0, 10), (3, 10), (replayed.len(), 100)] {
            let (stop, calls, replayed) = (&stop, &calls, &replayed);
            scope.spawn(move || {
                let mut held = std::collections::VecDeque::new();
                while !stop.load(Ordering::Relaxed) {
                    // The server may have its hands full for a moment.
                    if let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)) {
                        let _ = stream.write_all(&replayed[..part]);
                        held.push_back(stream);
                        calls.fetch_add(1, Ordering::Relaxed);
                    }
                    if held.len() > 200 {
                        held.pop_front();
                    }
                    std::thread::sleep(Duration::from_millis(pause));
                }
            });
        }
        // The crowd goes home even where the test fails.
        let _stop = StopOnDrop(&stop);
        until("the crowd is there", || {
            calls.load(Ordering::Relaxed) >= 300
        });
        processes::signal(town.run.server(VICTIM), Signal::SIGKILL);
        let dead = IdSet::single(sdm_idset::TaskId(VICTIM));
        town.run.wait_health(&dead, Health::Lost);
        let took = Instant::now();
        town.check(&all.difference(&dead));
        println!(
            "adopted in a crowd of {} calls, {:?}",
            calls.load(Ordering::Relaxed),
            took.elapsed()
        );
    });
    town.run.close();
}
