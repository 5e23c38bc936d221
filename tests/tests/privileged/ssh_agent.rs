//! The agent of hosts that are reached by ssh, and one that waits for a client of its own user's.

use std::fs::{self, Permissions};
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command as Process, Stdio};
use std::time::Instant;

use sdm_agent::local::record;
use sdm_runtime::wire::Dialect;
use sdm_runtime::wire::command::Command;
use sdm_tests::agent::Talk;
use sdm_tests::parts::Part;
use sdm_tests::place::Place;
use sdm_tests::run::BOUND;
use sdm_tests::{binaries, ordinary, processes};

use crate::ssh::{CONFIG, hosts_script};

const _: () = sdm_tests::run::test_group("hosts", "hosts in namespaces, with one sshd each");

/// An agent's program that keeps its records in the place.
fn program(place: &Place) -> PathBuf {
    let path = place.path().join("agent");
    let agent = binaries::folder().join("sdm-agent");
    let text = format!(
        "#!/bin/sh\nXDG_STATE_HOME='{}' exec '{}' \"$@\"\n",
        place.path().display(),
        agent.display()
    );
    fs::write(&path, text).expect("a file");
    fs::set_permissions(&path, Permissions::from_mode(0o755)).expect("it is ours");
    path
}

fn start(place: &Place, program: &Path) -> Talk {
    Talk::start("ssh", Dialect::Document, |command| {
        ordinary::lower(command);
        command.args(["--hosts", "h1,h2,no-such-host", "--agent-path"]);
        command.arg(program).args(["--ssh-option", "-F"]);
        command.args(["--ssh-option", CONFIG]);
        command.current_dir(place.path());
    })
}

fn wait_gone(pids: &[i32]) {
    let deadline = Instant::now() + BOUND;
    while pids.iter().any(|pid| record::began(*pid).is_some()) {
        assert!(Instant::now() < deadline, "{pids:?} are left");
        std::thread::yield_now();
    }
}

#[test]
fn remote_jobs_survive_their_agent() {
    let Some(_hosts) = Part::hosts() else { return };
    let place = Place::new();
    ordinary::give(place.path());
    let program = program(&place);
    let mut talk = start(&place, &program);
    talk.wait("machineState", "UP");
    talk.wait("name", "h1");
    let node = talk.wait("name", "h2");
    assert_eq!(talk.elements[&node]["nodeState"], "UP");
    let gone = talk.wait("name", "no-such-host");
    assert_eq!(talk.elements[&gone]["nodeState"], "DOWN");
    let why = &talk.elements[&gone]["nodeReason"];
    assert!(why.contains("no-such-host"), "{why}");
    let folder = place.path().display().to_string();
    let on = |host: &'static str| [("submitOptions", host), ("workingDir", &*folder)];
    let refused = talk.submit("JOB_0", "true", &on("h7")).unwrap_err();
    assert!(
        refused.contains("the host `h7`, which is not one"),
        "{refused}"
    );
    talk.submit("JOB_1", "hostname; exec sleep 1000", &on("h2"))
        .expect("it is taken");
    let job = talk.wait("jobSubId", "JOB_1");
    let process = talk.wait("processState", "RUNNING");
    let on_node = &talk.elements[&process]["processNodeId"];
    assert_eq!(*on_node, node.to_string());
    assert_eq!(talk.elements[&job]["systemJobId"], "h2/1");
    let record = place.path().join("sdm/ssh/1");
    // Its number is that of the record, which names its host.
    assert_eq!(record::order(&record).expect("a record").host, "h2");
    let state = record::state(&record).expect("a record");
    let pids: Vec<i32> = state.started.iter().map(|it| it.pid).collect();
    assert_eq!(pids.len(), 2);
    talk.child.kill().expect("a child");
    talk.child.wait().expect("a child");
    assert!(pids.iter().all(|pid| record::began(*pid).is_some()));
    let mut talk = start(&place, &program);
    let job = talk.wait("systemJobId", "h2/1");
    // Though the folder of records is h1's, too.
    let same = talk
        .elements
        .values()
        .filter(|it| it.contains_key("systemJobId"));
    assert_eq!(same.count(), 1);
    talk.ask(Command::TerminateJob(job.to_string()))
        .expect("it is ended");
    talk.until(|talk, _| talk.elements[&job]["jobState"] == "TERMINATED");
    wait_gone(&pids);
    let said = fs::read_to_string(record.join("out")).expect("its output");
    assert_eq!(said, "h2\nh2\n");
    // No host is named: the one with the fewest jobs is taken.
    let anywhere = [("workingDir", &*folder)];
    talk.submit("JOB_2", "true", &anywhere)
        .expect("it is taken");
    talk.wait("jobSubId", "JOB_2");
    talk.quit();
}

#[test]
fn client_of_another_user_is_refused() {
    if !nix::unistd::geteuid().is_root() {
        println!("SKIP: somebody else's client: this is not root");
        return;
    }
    let place = Place::new();
    ordinary::give(place.path());
    let path = place.path().join("own/agent");
    let mut command = Process::new(binaries::folder().join("sdm-agent"));
    ordinary::lower(&mut command).args(["--rm", "local", "--proxy=unix", "--path"]);
    command.arg(&path).env("XDG_STATE_HOME", place.path());
    let mut child = command.stderr(Stdio::piped()).spawn().expect("an agent");
    let deadline = Instant::now() + BOUND;
    // Root comes through the folder's rights, and is not the agent's user all the same.
    let mut stream = loop {
        match UnixStream::connect(&path) {
            Ok(stream) => break stream,
            Err(error) => assert!(Instant::now() < deadline, "{error}"),
        }
        std::thread::yield_now();
    };
    let init = b"00000032 0001:00000000:00000002 00000003:2.0 00000004:1000";
    // The connection may be closed already.
    let _ = stream.write_all(init);
    let mut said = Vec::new();
    // Unread bytes reset the connection.
    let _ = stream.read_to_end(&mut said);
    assert_eq!(said, b"", "nothing is said to it");
    assert!(path.exists(), "it is still waited for its own");
    child.kill().expect("a child");
    let output = child.wait_with_output().expect("a child");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        said.contains("a client was disconnected") && said.contains("of user 0"),
        "{said}"
    );
}

/// After a test the hosts have neither a firewall nor a process of their own.
#[test]
fn leftovers_of_a_test_on_a_host_are_named() {
    let Some(hosts) = Part::hosts() else { return };
    assert!(hosts.left().is_empty(), "{:?}", hosts.left());
    hosts_script(&["only-ssh", "3"]);
    let mut login = Process::new("ssh");
    login.args(["-F", CONFIG, "h3", "echo there; exec sleep 1000"]);
    let mut login = ordinary::lower(&mut login)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("ssh runs");
    let mut there = [0; 6];
    let said = login.stdout.as_mut().expect("a pipe");
    said.read_exact(&mut there)
        .expect("it says that it is there");
    let left = hosts.left().join("\n");
    assert!(left.contains("h3 has a table inet sdmcut"), "{left}");
    assert!(left.contains("sleep 1000"), "{left}");
    hosts_script(&["mend", "3"]);
    let pid = left.lines().find(|line| line.ends_with("sleep 1000 "));
    let pid = pid.and_then(|line| line.split(' ').next()?.parse().ok());
    processes::kill_if_there(pid.expect("a pid"));
    login.wait().expect("a child");
}
