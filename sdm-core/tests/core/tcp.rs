//! Tests of TCP sockets alone: descriptors outside the transport, inheritance, host names, address families, and a
//! shortage of descriptors.

use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use sdm_core::transport::tcp::{TcpTransport, resolve};
use sdm_core::transport::{ConnectionString, Transport, TransportEvent};

const PATIENCE: Duration = Duration::from_secs(60);

fn local(port: u16) -> ConnectionString {
    ConnectionString::tcp("127.0.0.1", port).expect("an address")
}

fn poll_until(transport: &mut TcpTransport, mut find: impl FnMut(&TransportEvent) -> bool) {
    let until = Instant::now() + PATIENCE;
    let mut events = Vec::new();
    while !events.iter().any(&mut find) {
        assert!(Instant::now() < until, "{events:?}");
        events.clear();
        transport.poll(Some(PATIENCE), &mut events).expect("poll");
    }
}

#[test]
fn transport_polls_descriptors_that_are_not_its_own() {
    let mut transport = TcpTransport::new().unwrap();
    let (mut reader, mut writer) = io::pipe().unwrap();
    let fd = reader.as_raw_fd();
    transport.watch(fd, true, false).unwrap();
    transport.watch(fd, true, false).expect("again changes it");
    writer.write_all(b"x").unwrap();
    let ready =
        |event: &TransportEvent| matches!(event, TransportEvent::Ready { fd: f } if *f == fd);
    poll_until(&mut transport, ready);
    reader.read_exact(&mut [0]).unwrap();
    drop(writer);
    poll_until(&mut transport, ready);
    transport.forget(fd);
    transport.forget(fd);
    let mut events = Vec::new();
    transport.poll(Some(Duration::ZERO), &mut events).unwrap();
    assert!(events.is_empty(), "{events:?}");
    assert!(transport.watch(fd, false, false).is_err());
    assert!(transport.watch(-1, true, false).is_err());
    let file = std::fs::File::open("/proc/self/exe").unwrap();
    assert!(transport.watch(file.as_raw_fd(), true, false).is_err());
}

/// Number of descriptors of each relevant kind that a child process finds open.
fn inherited() -> Vec<usize> {
    let output = std::process::Command::new("ls")
        .args(["-l", "/proc/self/fd"])
        .stdin(std::process::Stdio::null())
        .output()
        .expect("ls runs");
    let list = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(list.contains("pipe:"), "{list}");
    let kinds = ["socket:", "[eventpoll]", "[eventfd]"];
    kinds.map(|kind| list.matches(kind).count()).to_vec()
}

#[test]
fn no_socket_is_inherited() {
    // The caller of the tests may have left some descriptors open.
    let before = inherited();
    let mut a = TcpTransport::new().unwrap();
    let mut b = TcpTransport::new().unwrap();
    let at = a.listen(&local(0), 1).unwrap();
    b.connect(&at);
    poll_until(&mut b, |event| {
        matches!(event, TransportEvent::Connected(_))
    });
    poll_until(&mut a, |event| {
        matches!(event, TransportEvent::Accepted { .. })
    });
    assert_eq!(inherited(), before);
}

#[test]
fn host_names_must_be_resolved_before_connect() {
    let mut transport = TcpTransport::new().unwrap();
    let name = ConnectionString::tcp("no-such-host.invalid", 7000).unwrap();
    let conn = transport.connect(&name);
    let mut events = Vec::new();
    transport.poll(Some(PATIENCE), &mut events).unwrap();
    let [
        TransportEvent::ConnectFailed {
            conn: failed,
            error,
        },
    ] = &events[..]
    else {
        panic!("{events:?}");
    };
    assert_eq!((*failed, error.kind()), (conn, io::ErrorKind::InvalidInput));
    let error = transport.listen(&name, 1).unwrap_err();
    let expect = "cannot listen at tcp://no-such-host.invalid:7000: the host name was not resolved to an address";
    assert_eq!(error.to_string(), expect);
    let found = resolve(&ConnectionString::tcp("127.0.0.1", 7000).unwrap()).unwrap();
    assert_eq!(found, [local(7000)]);
}

#[test]
fn both_address_families_are_listened_on() {
    let mut transport = TcpTransport::new().unwrap();
    let any = |host| ConnectionString::tcp(host, 0).unwrap();
    let bound = transport.listen(&any("0.0.0.0"), 1).unwrap();
    transport.connect(&local(bound.port()));
    poll_until(&mut transport, |e| {
        matches!(e, TransportEvent::Connected(_))
    });
    match transport.listen(&any("::1"), 1) {
        Ok(bound) => {
            transport.connect(&bound);
            poll_until(&mut transport, |e| {
                matches!(e, TransportEvent::Connected(_))
            });
        }
        Err(error) => println!("SKIP: no IPv6 here: {error}"),
    }
}

/// Runs in a process of its own: the limit would hold for all tests of this one.
#[test]
fn accept_resumes_after_descriptor_shortage() {
    if std::env::var_os("SDM_TEST_FEW_DESCRIPTORS").is_none() {
        let exe = std::env::current_exe().unwrap();
        let run = format!(
            "ulimit -n 40 && exec '{}' --exact accept_resumes_after_descriptor_shortage",
            exe.display()
        );
        let status = std::process::Command::new("sh")
            .args(["-c", &run])
            .env("SDM_TEST_FEW_DESCRIPTORS", "1")
            .status()
            .unwrap();
        assert!(status.success());
        return;
    }
    let mut server = TcpTransport::new().unwrap();
    let at = server.listen(&local(0), 1).unwrap();
    let addr = at.socket_addr().unwrap();
    // Callers until this process has no descriptor left for accepting them.
    let mut callers = Vec::new();
    while let Ok(caller) = std::net::TcpStream::connect(addr) {
        callers.push(caller);
    }
    assert!(callers.len() > 10);
    let mut events = Vec::new();
    let mut polls = 0;
    let start = Instant::now();
    while start.elapsed() < Duration::from_millis(500) {
        server
            .poll(Some(Duration::from_millis(500)), &mut events)
            .unwrap();
        polls += 1;
    }
    assert!(polls < 50, "it spins: {polls}");
    assert!(events.is_empty(), "{events:?}");
    // As callers disconnect, the remaining ones are accepted.
    let count = callers.len();
    callers.truncate(count / 2);
    let mut accepted = 0;
    poll_until(&mut server, |event| {
        accepted += usize::from(matches!(event, TransportEvent::Accepted { .. }));
        accepted >= count / 2
    });
}
