//! Tests of Unix sockets alone: the file, its mode and its removal, and no superfluous wake-up of the sender.

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::time::Duration;

use sdm_core::ids::ServerId;
use sdm_core::link::LinkConfig;
use sdm_core::secure::{SessionKey, draw_session_id};
use sdm_core::transport::tcp::TcpTransport;
use sdm_core::transport::{ConnectionString, Transport, TransportEvent};

fn fresh(name: &str) -> (PathBuf, ConnectionString) {
    let path = std::env::temp_dir().join(format!("sdm-unix-{}-{name}", std::process::id()));
    let address = ConnectionString::try_from(path.clone()).expect("a path");
    (path, address)
}

#[test]
fn socket_file_is_private_and_removed_with_its_listener() {
    let (path, address) = fresh("mode");
    let mut transport = TcpTransport::new().expect("an event loop");
    assert_eq!(transport.listen(&address, 1).expect("listen"), address);
    let mode = std::fs::metadata(&path).expect("the socket").permissions();
    assert_eq!(mode.mode() & 0o777, 0o600);
    transport.stop_listening();
    assert!(!path.exists());
}

#[test]
fn only_a_stale_socket_file_is_replaced() {
    let (path, address) = fresh("dead");
    drop(UnixListener::bind(&path).expect("bind"));
    assert!(path.exists(), "nobody has tidied up");
    let mut transport = TcpTransport::new().expect("an event loop");
    transport.listen(&address, 1).expect("replaced");
    drop(transport);

    std::fs::write(&path, "precious").expect("write");
    let mut transport = TcpTransport::new().expect("an event loop");
    let error = transport.listen(&address, 1).expect_err("not ours");
    assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
    assert_eq!(std::fs::read_to_string(&path).expect("there"), "precious");
    std::fs::remove_file(&path).expect("remove");
}

/// A member that only reads causes no wake-up of the sender.
#[test]
fn reading_peer_does_not_wake_the_sender() {
    let key = SessionKey::draw().expect("random bytes");
    let config = LinkConfig::new(key, draw_session_id().expect("random bytes"));
    let transport = || {
        let mut transport = TcpTransport::new().expect("an event loop");
        transport.set_session(&config);
        transport
    };
    let (mut sender, mut reader) = (transport(), transport());
    let at = ConnectionString::local(ServerId(3));
    reader.listen(&at, 1).expect("a name that nobody has");
    let conn = sender.connect(&at);
    let mut events = Vec::new();
    sender
        .poll(Some(Duration::ZERO), &mut events)
        .expect("a poll");
    assert!(matches!(events[..], [TransportEvent::Connected(c)] if c == conn));
    assert_eq!(sender.send(conn, b"hello").expect("room"), 5);
    events.clear();
    while !matches!(events[..], [TransportEvent::Accepted { .. }, ..]) {
        reader.poll(None, &mut events).expect("a poll");
    }
    let accepted = events[0].conn().expect("a connection");
    let mut buffer = [0; 16];
    while reader.recv(accepted, &mut buffer).is_err() {
        reader.poll(None, &mut events).expect("a poll");
    }
    events.clear();
    sender
        .poll(Some(Duration::ZERO), &mut events)
        .expect("a poll");
    assert!(events.is_empty(), "{events:?}");
    // A sender that waits for room gets an event.
    while sender.send(conn, &[7; 4096]).is_ok() {}
    while !matches!(events[..], [TransportEvent::Writable(c), ..] if c == conn) {
        let _ = reader.recv(accepted, &mut [0; 65536]);
        let wait = Some(Duration::from_millis(10));
        sender.poll(wait, &mut events).expect("a poll");
        reader
            .poll(Some(Duration::ZERO), &mut Vec::new())
            .expect("a poll");
    }
}
