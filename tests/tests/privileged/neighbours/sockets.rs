//! Sockets between the members of a host: other users see their names, and cannot use them.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::process::Stdio;

use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
use sdm_tests::neighbour::{Neighbour, Who};
use sdm_tests::run::BOUND;
use sdm_tests::{leftovers, processes};

/// Connections to all abstract sockets with members' names of the user's sessions in this test. Those of other tests
/// are left alone: they may end at any time, and would have to report a stranger.
fn intrude(neighbour: &Neighbour) -> Vec<UnixStream> {
    let held = leftovers::holding(neighbour.mark()).into_iter();
    let own: Vec<u64> = held.flat_map(|(pid, _)| processes::sockets(pid)).collect();
    let table = std::fs::read_to_string("/proc/net/unix").expect("the kernel's sockets");
    let names = table.lines().filter_map(|line| line.split_once("@sdm-"));
    let names = names.filter(|(before, name)| {
        let number = before.split_whitespace().next_back();
        let number = number.and_then(|number| number.parse().ok());
        name.len() == 40 && number.is_some_and(|number| own.contains(&number))
    });
    let connect = |(_, name): (&str, &str)| {
        let address = SocketAddr::from_abstract_name(format!("sdm-{name}")).expect("a name");
        let stream = UnixStream::connect_addr(&address).ok()?;
        let owner = getsockopt(&stream, PeerCredentials).ok()?;
        (owner.uid() == Who::User.uid()).then_some(stream)
    };
    names.filter_map(connect).collect()
}

#[test]
fn connections_of_another_user_end_without_a_byte() {
    let Some(neighbour) = Neighbour::new() else {
        return;
    };
    let mut command = neighbour.sdm(Who::User, ["emulate", "-n", "3"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut sdm = command.spawn().expect("it starts");
    let mut said = BufReader::new(sdm.stdout.take().expect("a pipe")).lines();
    let mut typed = sdm.stdin.take().expect("a pipe");
    let mut ask = |text: &str, expect: &str| {
        writeln!(typed, "print {text}").expect("it reads");
        let found = said.by_ref().map_while(Result::ok);
        assert!(
            found.into_iter().any(|line| line.contains(expect)),
            "{text}"
        );
    };
    ask("6 * 7", "ranks 0-2 (3): 42");
    let mut strangers = intrude(&neighbour);
    assert!(strangers.len() >= 3, "{} sockets", strangers.len());
    for stranger in &mut strangers {
        stranger.set_read_timeout(Some(BOUND)).expect("a bound");
        // The end of the stream, or a reset connection: no byte is sent.
        let received = stranger.read(&mut [0; 16]);
        let is_over = match &received {
            Ok(count) => *count == 0,
            Err(error) => error.kind() == std::io::ErrorKind::ConnectionReset,
        };
        assert!(is_over, "{received:?}");
    }
    ask("6 * 8", "ranks 0-2 (3): 48");
    drop(typed);
    assert!(sdm.wait().expect("it is a child").success());
}

/// Many connections of another user are reported once, and the owner is served as if there were none.
#[test]
fn foreign_connections_to_an_adapter_are_reported_in_few_lines() {
    let Some(neighbour) = Neighbour::new() else {
        return;
    };
    let mut command = neighbour.sdm(Who::User, ["dap", "--listen", "127.0.0.1:0"]);
    command.stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut sdm = command.spawn().expect("it starts");
    let mut line = String::new();
    let mut said = BufReader::new(sdm.stdout.take().expect("a pipe"));
    said.read_line(&mut line).expect("it says where it listens");
    let address = line.trim_end().strip_prefix("listening at ");
    let address: std::net::SocketAddr = address.expect("where").parse().expect("an address");
    let crowd = |count: u32| {
        // Each connection waits until the server closes it.
        let each = format!(
            "for n in $(seq {count}); do exec 3<>/dev/tcp/127.0.0.1/{}; read -r -u 3; done 2>&-",
            address.port()
        );
        let mut bash = neighbour.command(Who::Neighbour, "/bin/bash");
        assert!(!bash.args(["-c", &each]).status().expect("bash").success());
    };
    crowd(500);
    // Root may come as well.
    let mut owner = TcpStream::connect(address).expect("it listens");
    crowd(500);
    let request = sdm_dap::frame::framed(
        br#"{"seq":1,"type":"request","command":"initialize","arguments":{"adapterID":"sdm"}}"#,
    );
    owner.write_all(&request).expect("it reads");
    let mut said = BufReader::new(owner);
    let answer = sdm_tests::editor::read(&mut said).expect("an answer");
    assert_eq!(answer["command"], "initialize");
    drop(said);
    let output = sdm.wait_with_output().expect("a child");
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    let lines = told.lines().filter(|line| line.contains("disconnected"));
    // One a minute, and one at the end.
    assert!((2..6).contains(&lines.count()), "{told}");
    assert!(
        told.contains("the connection belongs to user 65533"),
        "{told}"
    );
    assert!(
        told.contains("disconnected since the last report: "),
        "{told}"
    );
}
