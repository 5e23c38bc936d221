//! Members that the user starts, one command after the other, at the speed of typing.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Instant;

use nix::sys::signal::Signal;
use sdm_core::ids::{Epoch, ServerId, SessionId};
use sdm_core::link::{Link, LinkConfig};
use sdm_core::secure::{Hello, Role, SessionKey};
use sdm_tests::binaries;
use sdm_tests::late::Beside;
use sdm_tests::ordinary;
use sdm_tests::place::{Compiler, MARK_VARIABLE, Place};
use sdm_tests::processes;
use sdm_tests::sdm::{Running, Sdm};

/// Log text of a member after several failed attempts to connect to another one, which is then started. The first
/// attempt was a hundredth of a second after the member's start.
const TRIES: &str = "attempt 6 ";

/// A member of a session, started by one of the commands that `sdm` shows.
struct Typed(Beside);

impl Typed {
    fn new(place: &Place, line: &str) -> Self {
        let mut command = Command::new("/bin/sh");
        let command = ordinary::lower(&mut command)
            .args(["-c", &format!("exec {line}")])
            .env(MARK_VARIABLE, place.mark())
            .env("SDM_LOG", "sdm_core=debug")
            .stdin(Stdio::null());
        Self(Beside::start(command))
    }

    /// Waits until this member has failed several times to connect to a server.
    fn misses(&self, server: u32) {
        let wanted = format!("server {server} on 127.0.0.1: {TRIES}");
        self.0.err.wait(0, &wanted);
    }

    /// Waits until this member listens.
    fn listens(&self) {
        self.0.out.wait(0, "\n");
    }
}

/// The first of ten free ports for test number `test`. Servers try it first.
fn ports(test: u16) -> u16 {
    let free = |port: &u16| {
        let mut all = *port..*port + 10;
        all.all(|port| TcpListener::bind(("127.0.0.1", port)).is_ok())
    };
    let bases = (0..50).map(|step| 23_000 + test * 500 + step * 10);
    bases.into_iter().find(free).expect("free ports")
}

/// Starts `sdm` with three servers. Also returns the commands that it shows for the master and the servers.
fn shown(place: &Place, port: u16) -> (Running<'_>, Vec<String>) {
    shown_with(place, port, &[])
}

/// As [`shown`], with further options of `sdm`.
fn shown_with<'a>(place: &'a Place, port: u16, options: &[&str]) -> (Running<'a>, Vec<String>) {
    let work = place.compile("work", Compiler::C);
    let sdm = Sdm::run(place, 3)
        .args(["--launcher", "manual", "--port", &port.to_string()])
        .args(options)
        .env("XDG_RUNTIME_DIR", place.runtime())
        .lines(&["break twice", "continue", "print number"])
        .program(&work, &[])
        .spawn();
    let said = sdm.err.wait(0, &format!("--id 2 --port {}", port + 2));
    let commands = said.lines().filter(|line| line.contains("--handover /"));
    let commands: Vec<String> = commands.map(str::to_owned).collect();
    assert_eq!(commands.len(), 4, "{said}");
    (sdm, commands)
}

fn ends_well(sdm: Running, typed: Vec<Typed>) {
    let done = sdm.finish().code(0);
    done.expect("print number", "ranks 0-2 (3): 0\n");
    for mut it in typed {
        assert!(it.0.child.wait().expect("it ends").success());
    }
}

#[test]
fn parent_servers_may_start_long_before_children() {
    let place = Place::new();
    let (sdm, commands) = shown_with(&place, ports(0), &["--topology", "binomial"]);
    // The way to the front-end may be a name.
    let master = commands[0].replace("127.0.0.1", "LOCALHOST");
    let master = Typed::new(&place, &master);
    master.misses(0);
    let first = Typed::new(&place, &commands[1]);
    master.misses(1);
    // Server 2 is below server 1.
    let second = Typed::new(&place, &commands[2]);
    second.misses(2);
    let third = Typed::new(&place, &commands[3]);
    ends_well(sdm, vec![master, first, second, third]);
}

#[test]
fn child_servers_may_start_long_before_parents() {
    let place = Place::new();
    let (sdm, commands) = shown(&place, ports(1));
    let mut typed = Vec::new();
    for command in commands.iter().rev() {
        typed.push(Typed::new(&place, command));
        if typed.len() < commands.len() {
            typed.last().expect("it was just added").listens();
        }
    }
    ends_well(sdm, typed);
}

#[test]
fn partial_start_continues_without_missing_servers() {
    let place = Place::new();
    let options = ["--start-wait", "15", "--partial"];
    let (sdm, commands) = shown_with(&place, ports(5), &options);
    // Server 2 would be below server 1, and server 0 next to it.
    let typed = [&commands[0], &commands[2]].map(|line| Typed::new(&place, line));
    let done = sdm.finish().code(0);
    let named = "ranks 0,2 (2): no answer: sdm-server was lost\n";
    assert!(done.beginning().contains(named), "{done}");
    done.expect_part("print number", "rank 1: 0\n");
    for mut it in typed {
        assert!(it.0.child.wait().expect("it ends").success());
    }
}

#[test]
fn ports_in_use_by_other_programs_are_skipped() {
    let place = Place::new();
    let port = ports(2);
    let (sdm, commands) = shown(&place, port);
    // A listener that sends nothing, and one that sends other data.
    let _silent = TcpListener::bind(("127.0.0.1", port)).expect("a free port");
    let loud = TcpListener::bind(("127.0.0.1", port + 1)).expect("a free port");
    thread::spawn(move || {
        for mut stream in loud.incoming().flatten() {
            let _ = stream.write_all(b"220 ready\r\n");
            let _ = stream.read(&mut [0; 64]);
        }
    });
    let master = Typed::new(&place, &commands[0]);
    master.misses(0);
    let mut typed = vec![master];
    typed.extend(commands[1..].iter().map(|line| Typed::new(&place, line)));
    ends_well(sdm, typed);
}

/// The key file that the commands name.
fn shown_key(commands: &[String]) -> PathBuf {
    let key = commands[0].split("--handover ").nth(1);
    let key = key.and_then(|rest| rest.split(' ').next()).expect("a file");
    let key = PathBuf::from(key.trim_matches('\''));
    assert!(key.is_file(), "{}", key.display());
    key
}

/// A kill of `sdm` leaves neither the key nor the members started by hand; half of the members had been started.
#[test]
fn killed_sdm_leaves_no_key_file() {
    let place = Place::new();
    let (sdm, commands) = shown(&place, ports(4));
    let key = shown_key(&commands);
    let master = Typed::new(&place, &commands[0]);
    let first = Typed::new(&place, &commands[1]);
    master.misses(1);
    processes::signal(sdm.pid(), Signal::SIGKILL);
    for mut it in [master, first] {
        it.0.child.wait().expect("it ends");
    }
    // All processes that `sdm` has left have ended, too.
    assert_eq!(sdm.finish().code, None);
    assert!(!key.exists(), "{}", key.display());
}

#[test]
fn start_ended_by_a_signal_leaves_no_key_file() {
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
        let place = Place::new();
        let (sdm, commands) = shown(&place, ports(3));
        let key = shown_key(&commands);
        processes::signal(sdm.pid(), signal);
        let _ = sdm.finish().code(128 + signal as i32);
        assert!(!key.exists(), "{signal}: {}", key.display());
    }
}

/// A file with a session's name and key.
fn key_file(place: &Place) -> PathBuf {
    let key = place.path().join("key");
    let mut options = fs::OpenOptions::new();
    let mut file = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&key)
        .expect("a file");
    let zeros = "00".repeat(32);
    write!(file, "SDM_SESSION={}\nSDM_KEY={zeros}\n", &zeros[..16]).expect("room");
    key
}

#[test]
fn master_without_a_front_end_reports_it() {
    let place = Place::new();
    let key = key_file(&place);
    // A port without a listener for certain: a port that was just freed could be given to another test.
    let at = "tcp://127.0.0.1:1";
    let master = binaries::folder().join("sdm-master");
    let run = |at: &str| {
        let mut command = Command::new(&master);
        command.arg("--handover").arg(&key).arg(at);
        command.output().expect("a master")
    };
    let done = run(at);
    assert_eq!(done.status.code(), Some(1));
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    let wanted = format!("sdm-master: could not connect to the front-end at {at} in 10 tries: ");
    assert!(said.contains(&wanted), "{said}");
    assert!(said.contains("refused"), "{said}");
    let done = run("tcp://no-such-host.invalid:1");
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert_eq!(done.status.code(), Some(1), "{said}");
    assert!(said.contains("tcp://no-such-host.invalid:1"), "{said}");
}

/// A front-end that hangs up before it has sent a plan, and that lives: this process.
#[test]
fn master_says_that_its_front_end_has_hung_up() {
    let place = Place::new();
    let key = key_file(&place);
    let front_end = TcpListener::bind("127.0.0.1:0").expect("a port");
    let at = format!("tcp://{}", front_end.local_addr().expect("it is bound"));
    let mut master = Command::new(binaries::folder().join("sdm-master"));
    master.arg("--handover").arg(&key).arg(at);
    let master = master.stderr(Stdio::piped()).spawn().expect("a master");
    let (mut stream, _) = front_end.accept().expect("it tries");
    let config = LinkConfig::new(SessionKey::from_bytes([0; 32]), SessionId([0; 8]));
    let hello = Hello {
        role: Role::Parent,
        id: ServerId::FRONT_END,
        expect: None,
        epoch: Epoch(1),
        incarnation: 0,
        build: "a front-end".to_owned(),
        features: 0,
    };
    let mut link = Link::respond(Instant::now(), &config, hello);
    let mut buffer = [0; 4096];
    while !link.is_up() {
        let count = stream.read(&mut buffer).expect("it talks");
        assert!(count > 0, "it has hung up");
        link.handle_bytes(Instant::now(), &mut buffer[..count])
            .expect("it has the key");
        let mut bytes = Vec::new();
        while link.poll_transmit(&mut bytes) {}
        stream.write_all(&bytes).expect("it listens");
    }
    drop(stream);
    let done = master.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert_eq!(done.status.code(), Some(1), "{said}");
    let wanted = "Error: sdm-master: the connection to sdm has ended: closed by the peer";
    assert!(said.starts_with(wanted), "{said}");
}

/// A master whose parent process is gone ends without a message.
#[test]
fn master_whose_parent_is_gone_ends_silently() {
    let place = Place::new();
    let key = key_file(&place);
    let front_end = TcpListener::bind("127.0.0.1:0").expect("a port");
    let at = format!("tcp://{}", front_end.local_addr().expect("it is bound"));
    let mut starter = Command::new("/bin/sh")
        .args(["-c", "\"$@\" & read line", "sh"])
        .arg(binaries::folder().join("sdm-master"))
        .arg("--handover")
        .args([key.as_os_str(), at.as_ref()])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("a shell");
    let begun = front_end.accept().expect("it tries");
    drop(starter.stdin.take());
    assert!(!starter.wait().expect("it ends").success());
    let mut said = String::new();
    let mut errors = starter.stderr.take().expect("it is a pipe");
    errors.read_to_string(&mut said).expect("text");
    assert_eq!(said, "");
    drop(begun);
}
