//! The PMIx server of a session's programs listens at a loopback port, to which any user of the machine can connect.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use nix::unistd::geteuid;
use sdm_tests::neighbour::NEIGHBOUR;
use sdm_tests::ordinary;
use sdm_tests::place::{Compiler, Place};
use sdm_tests::processes;

/// The address of the PMIx server that a rank of the place has.
fn address(place: &Place) -> String {
    let uri = |pid: u32| {
        let variables = processes::of(pid).environment().unwrap_or_default();
        let mut uris = variables.into_iter();
        let found = uris.find(|(name, _)| name == "PMIX_SERVER_URI2");
        found.map(|(_, uri)| uri.to_string_lossy().into_owned())
    };
    let uri = place.pids("mpi_sum").into_iter().find_map(uri);
    uri.expect("a rank has it")
}

/// A foreign tool of another user that has obtained the address cannot connect. As the user's own it can.
fn tools_of_others_are_not_heard(place: &Place) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/pmix_ask.py");
    let uri = address(place);
    let ask = |uid: u32| {
        let mut tool = Command::new("timeout");
        tool.args(["60", "/usr/bin/python3", "-W", "ignore"])
            .arg(&script)
            .arg(&uri)
            .uid(uid)
            .gid(uid)
            .current_dir("/");
        let told = tool.output().expect("python3");
        (
            told.status.success(),
            String::from_utf8_lossy(&told.stdout).into_owned(),
        )
    };
    let server = processes::of(place.pids("sdm-pmix host")[0]).status();
    let own = server.expect("it runs").ids("Uid").expect("users");
    let (is_heard, told) = ask(own[0]);
    assert!(is_heard && told.starts_with("2 ranks\n"), "{told}");
    let (is_heard, told) = ask(NEIGHBOUR);
    assert!(!is_heard && told.is_empty(), "{told}");
}

#[test]
fn pmix_server_refuses_other_users_and_garbage() {
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
    sdm.ask_each("continue", "0-1", "stopped at breakpoint 1, add_up ()");
    let uri = address(&place);
    let port = uri.rsplit(':').next().and_then(|port| port.parse().ok());
    let port: u16 = port.unwrap_or_else(|| panic!("no port in {uri}"));
    let script = format!("exec 3<>/dev/tcp/127.0.0.1/{port}; read -r -u 3 line; echo over");
    let mut neighbour = Command::new("bash");
    neighbour
        .args(["-c", &script])
        .uid(NEIGHBOUR)
        .gid(NEIGHBOUR);
    let heard = neighbour.current_dir("/").output().expect("bash");
    assert_eq!(heard.stdout, b"over\n", "{heard:?}");
    tools_of_others_are_not_heard(&place);
    // Root may do anything anyway, and is accepted whatever it sends.
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
    sdm.ask_each("continue", "0-1", "exited normally");
    sdm.ask("ranks", "ranks 0-1 (2)  exited");
    let done = sdm.finish().code(0);
    let refused = format!(
        "the PMIx server of this node did not accept a connection: the connection belongs to user {NEIGHBOUR}"
    );
    assert!(done.err.contains(&refused), "{done}");
}

/// A text for the log of the system is in the log: a socket at `/dev/log`, in a mount namespace with a `/dev` of its own.
#[test]
fn pmix_text_reaches_the_system_log() {
    if !geteuid().is_root() {
        println!("SKIP: system log: this is not root");
        return;
    }
    let place = Place::new();
    let sdm = sdm_tests::binaries::folder().join("sdm");
    let log = "\"$0\" pmix --uri \"$PMIX_SERVER_URI2\" log syslog 'kept for ever'; echo status $?";
    let fixtures = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures");
    let user = ordinary::USER.to_string();
    let tmp = place.path().join("tmp");
    std::fs::create_dir(&tmp).expect("a folder");
    ordinary::give(&tmp);
    let mut command = sdm_tests::sdm::command(&place, "unshare");
    command.uid(0).gid(0).env("HOME", &tmp).env("TMPDIR", &tmp);
    command
        .args(["--mount", "--propagation", "private", "bash"])
        .arg(format!("{fixtures}/own_dev.sh"))
        .arg(place.path().join("dev"))
        .args(["python3", &format!("{fixtures}/system_log.py")])
        .args(["setpriv", "--reuid", &user, "--regid", &user])
        .arg("--clear-groups")
        .arg(&sdm)
        .args(["run", "-n", "1", "--launcher", "local", "--batch"])
        .args(["--no-report", "--no-stop", "--pmix", "on", "--"])
        .args(["/bin/sh", "-c", log])
        .arg(&sdm);
    let done = command.output().expect("unshare");
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(text.contains("status 0\n"), "{done:?}");
    let is_logged = |line: &str| line.starts_with('<') && line.ends_with("REPORTS: kept for ever");
    assert!(text.lines().any(is_logged), "{done:?}");
}
