//! The PMIx server of a session's programs listens at a port of the loopback, to which anybody on the machine can connect.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

use nix::unistd::geteuid;
use sdm_tests::neighbour::NEIGHBOUR;
use sdm_tests::ordinary;
use sdm_tests::place::{Compiler, Place};
use sdm_tests::processes;

/// The port of the PMIx server that a rank of the place has.
fn port(place: &Place) -> u16 {
    let uri = |pid: u32| {
        let variables = processes::of(pid).environment().unwrap_or_default();
        let mut uris = variables.into_iter();
        let found = uris.find(|(name, _)| name == "PMIX_SERVER_URI2");
        found.map(|(_, uri)| uri.to_string_lossy().into_owned())
    };
    let uri = place.pids("mpi_sum").into_iter().find_map(uri);
    let uri = uri.expect("a rank has it");
    let port = uri.rsplit(':').next().and_then(|port| port.parse().ok());
    port.unwrap_or_else(|| panic!("no port in {uri}"))
}

#[test]
fn who_is_another_user_is_not_heard_and_garbage_costs_nothing() {
    if !geteuid().is_root() {
        println!("SKIP: only root can be a user and a neighbour of that user: this is not root");
        return;
    }
    let place = Place::new();
    let sum = place.compile("mpi_sum", Compiler::OpenMpi);
    let mut sdm = ordinary::run(&place, 2)
        .args(["--launcher", "local"])
        .env("SDM_LOG", "warn")
        .talk()
        .program(&sum, &[])
        .spawn();
    sdm.ask("break add_up", "breakpoint 1 at");
    sdm.ask(
        "continue",
        "ranks 0-1 (2): stopped at breakpoint 1, add_up ()",
    );
    let port = port(&place);
    let script = format!("exec 3<>/dev/tcp/127.0.0.1/{port}; read -r -u 3 line; echo over");
    let mut neighbour = Command::new("bash");
    neighbour
        .args(["-c", &script])
        .uid(NEIGHBOUR)
        .gid(NEIGHBOUR);
    let heard = neighbour.current_dir("/").output().expect("bash");
    assert_eq!(heard.stdout, b"over\n", "{heard:?}");
    // Root may do anything anyhow, and is let in with whatever it says.
    let connect = |_| TcpStream::connect(("127.0.0.1", port)).expect("it listens");
    let mut streams: Vec<_> = (0..256).map(connect).collect();
    for stream in &mut streams {
        // It may have hung up.
        let _ = stream.write_all(&[0xff; 4096]);
    }
    for mut stream in streams {
        let _ = stream.set_read_timeout(Some(Duration::from_secs(1)));
        let _ = stream.read(&mut [0; 16]);
    }
    sdm.ask("delete", "");
    sdm.ask("continue &", "ranks 0-1 (2): exited normally\n");
    let done = sdm.finish().code(0);
    let refused = format!("a connection is refused: it is user {NEIGHBOUR}'s");
    assert!(done.err.contains(&refused), "{done}");
}
