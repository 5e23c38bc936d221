//! Members of two neighbouring versions: each refuses the other at its first bytes, and the error has both numbers.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use sdm_core::frame::WIRE_VERSION;
use sdm_session::SessionError;
use sdm_tests::disturbed::Disturbed;
use sdm_tests::leftovers;
use sdm_tests::run::{BOUND, Run, evaluate, fake};

/// Time limit for servers; those of this version connect in a fraction of it.
const WAIT: Duration = Duration::from_secs(10);
/// Length of the bytes that each end sends before the handshake.
const PREFACE_BYTES: usize = 8;
/// Offset of the version in these bytes.
const VERSION_AT: usize = 4;

/// A server of another version: it listens, and answers a caller by its own preface, as each version does.
fn server_of(version: u8) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("it is bound").port();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut preface = [0; PREFACE_BYTES];
            if stream.read_exact(&mut preface).is_err() {
                continue;
            }
            preface[VERSION_AT] = version;
            // The caller may have gone.
            let _ = stream.write_all(&preface);
        }
    });
    port
}

#[test]
fn server_of_another_version_is_refused_with_both_versions() {
    for theirs in [WIRE_VERSION - 1, WIRE_VERSION + 1] {
        let port = server_of(theirs);
        let lines = format!(
            "[ $id = 4 ] && {{ echo SDM1 server=4 host=here port={port} pid=$$ addresses=127.0.0.1; \
             exec sleep 1000; }}"
        );
        let disturbed = Disturbed::new(&lines);
        let error: SessionError = match Run::try_start(&disturbed.config(6, WAIT)) {
            Ok(_) => panic!("it started with version {theirs}"),
            Err(error) => error,
        };
        leftovers::assert_childless();
        let text = error.to_string();
        let both = format!(
            "the peer has wire version {theirs}, this program has {WIRE_VERSION}: install one version of sdm on all hosts"
        );
        for part in ["server 4 on here", &both] {
            assert!(text.contains(part), "{part:?} is not in: {text}");
        }
    }
}

#[test]
fn caller_of_another_version_is_refused_by_a_server() {
    let mut run = Run::start(&fake(2, ""));
    for theirs in [WIRE_VERSION - 1, WIRE_VERSION + 1] {
        let mut stream = TcpStream::connect(("127.0.0.1", run.port(0))).expect("it listens");
        stream.set_read_timeout(Some(BOUND)).expect("a time-out");
        let preface = [b'S', b'D', b'M', 0, theirs, 0, 0, 0];
        stream.write_all(&preface).expect("it takes them");
        let mut answer = Vec::new();
        // The server sends its own version, so that the caller can report it, and closes the connection.
        stream.read_to_end(&mut answer).expect("its answer");
        assert_eq!(answer.len(), PREFACE_BYTES, "{answer:?}");
        assert_eq!(answer[..4], preface[..4]);
        assert_eq!(answer[VERSION_AT], WIRE_VERSION);
    }
    let all = run.all();
    run.start_tasks();
    assert_eq!(run.ask(&all, &evaluate("rank")).answered, all);
    run.close();
}
