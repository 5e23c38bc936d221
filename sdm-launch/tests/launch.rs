//! Tests in which real launchers start a small script instead of `sdm-server`.
#![allow(clippy::unwrap_used)]

use std::ffi::OsString;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use sdm_launch::{Announcement, Launch, LaunchEvent, LaunchSpec, find};
use sdm_system::proc;

/// Time limit of each wait: far more than it takes.
const BOUND: Duration = Duration::from_secs(60);
/// Time for which processes left over from a killed session may live.
const LEFT_BOUND: Duration = Duration::from_secs(60);

/// Script of a server that announces itself, prints the key that it was given, and stays.
const STAYS: &str = r#"rank=${SDM_SERVER_ID:-${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-$PMI_ID}}}
echo "server $rank: key $SDM_TEST_KEY in $PWD with $*" >&2
echo "SDM1 server=$rank host=fake-host port=$((40000 + rank)) pid=$$ addresses=127.0.0.1"
exec sleep 600
"#;

/// Script like [`STAYS`] for servers below a launcher, but it ends once its parent is gone, as a server does.
const STAYS_BELOW: &str = r#"rank=${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-$PMI_ID}}
echo "SDM1 server=$rank host=fake-host port=$((40000 + rank)) pid=$$ addresses=127.0.0.1"
while kill -0 $PPID; do sleep 0.1; done
"#;

/// Script that prints a few words and fails.
const FAILS: &str = "echo first words\necho last words >&2\nexit 3\n";

/// A script in place of a server, which is removed at the end. A shell reads it, and it is not executed itself: a
/// fork of another test may still hold it open for writing.
struct Script(PathBuf);

impl Script {
    fn new(name: &str, text: &str) -> Self {
        let directory =
            std::env::temp_dir().join(format!("sdm-launch-{name}-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let path = directory.join("server");
        fs::write(&path, text).unwrap();
        Self(path)
    }

    fn directory(&self) -> &Path {
        self.0.parent().unwrap()
    }
}

impl Drop for Script {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(self.directory());
    }
}

/// Collects events until `enough` returns true.
fn watch(launch: &mut Launch, mut enough: impl FnMut(&[LaunchEvent]) -> bool) -> Vec<LaunchEvent> {
    let end = Instant::now() + BOUND;
    let mut events = Vec::new();
    loop {
        events.extend(std::iter::from_fn(|| launch.poll_event()));
        if enough(&events) {
            return events;
        }
        assert!(
            Instant::now() < end,
            "not enough after {BOUND:?}: {events:?}"
        );
        let fds = launch.fds();
        let borrowed = launch.borrowed_fds().into_iter();
        let mut polled: Vec<_> = borrowed
            .map(|fd| PollFd::new(fd, PollFlags::POLLIN))
            .collect();
        poll(&mut polled, PollTimeout::from(1000u16)).unwrap();
        let ready: Vec<bool> = polled.iter().map(|it| it.any() == Some(true)).collect();
        for (fd, _) in fds.into_iter().zip(ready).filter(|(_, ready)| *ready) {
            while launch.handle_ready(fd) {
                events.extend(std::iter::from_fn(|| launch.poll_event()));
            }
        }
    }
}

fn announced<'a>(events: &'a [LaunchEvent]) -> Vec<&'a Announcement> {
    let only = |event: &'a LaunchEvent| match event {
        LaunchEvent::Announced(it) => Some(it),
        _ => None,
    };
    let mut all: Vec<_> = events.iter().filter_map(only).collect();
    all.sort_by_key(|it| it.server);
    all
}

fn texts<'a>(events: &'a [LaunchEvent]) -> Vec<&'a str> {
    let only = |event: &'a LaunchEvent| match event {
        LaunchEvent::Text { line, .. } => Some(line.as_str()),
        _ => None,
    };
    events.iter().filter_map(only).collect()
}

fn is_alive(pid: u32) -> bool {
    let state = proc::of(pid.cast_signed()).state();
    state.is_some_and(|state| !state.has_ended())
}

fn await_gone(pids: &[u32]) {
    let end = Instant::now() + LEFT_BOUND;
    while pids.iter().any(|&pid| is_alive(pid)) {
        assert!(
            Instant::now() < end,
            "still there after {LEFT_BOUND:?}: {pids:?}"
        );
        std::thread::yield_now();
    }
}

/// True if this machine has the launcher. A missing one is printed, and scripts/test counts it.
fn is_here(launcher: &str) -> bool {
    match find(launcher) {
        Ok(_) => true,
        Err(error) => {
            println!("SKIP: {error}");
            false
        }
    }
}

/// A value that no other process on this machine has on its command line.
fn secret() -> String {
    format!("the-secret-of-{}", std::process::id())
}

fn spec(script: &Script, count: u32) -> LaunchSpec {
    let mut spec = LaunchSpec::new(count, "/bin/sh");
    spec.environment = vec![("SDM_TEST_KEY".into(), secret().into())];
    spec.server_args = vec![script.0.clone().into(), "one".into(), "two words".into()];
    spec.directory = Some(script.directory().to_owned());
    spec
}

/// True if any process shows the secret on its command line.
fn secret_is_shown() -> bool {
    let words = proc::pids().unwrap().map(|pid| proc::of(pid).words());
    let mut words = words.flatten().flatten();
    words.any(|word| word.contains(&secret()))
}

fn servers_announce_themselves(launcher: &str, count: u32, options: &[&str]) {
    if !is_here(launcher) {
        return;
    }
    let script = Script::new(&format!("announce-{launcher}-{count}"), STAYS);
    let mut spec = spec(&script, count);
    spec.launcher_options = options.iter().map(OsString::from).collect();
    let all = usize::try_from(count).unwrap();
    let mut launch = find(launcher).unwrap().launch(&spec).unwrap();
    let directory = script.directory().to_str().unwrap();
    let said = |events: &[LaunchEvent], server| {
        let line = format!(
            "server {server}: key {} in {directory} with one two words",
            secret()
        );
        texts(events).iter().any(|text| text.ends_with(&line))
    };
    let events = watch(&mut launch, |events| {
        announced(events).len() == all && (0..count).all(|server| said(events, server))
    });
    for (server, it) in (0..count).zip(announced(&events)) {
        assert_eq!(it.server, server);
        assert_eq!(u32::from(it.port), 40000 + server);
        assert!(is_alive(it.pid), "{it:?}");
    }
    assert!(!secret_is_shown());
    assert!(!launch.is_over());

    let pids: Vec<u32> = announced(&events).iter().map(|it| it.pid).collect();
    launch.terminate();
    let events = watch(
        &mut launch,
        ended_count_is(if launcher == "local" { all } else { 1 }),
    );
    assert!(announced(&events).is_empty());
    assert!(launch.is_over() && launch.fds().is_empty());
    await_gone(&pids);
}

fn ended_count_is(count: usize) -> impl Fn(&[LaunchEvent]) -> bool {
    let is_end = |event: &&LaunchEvent| matches!(event, LaunchEvent::Ended { .. });
    move |events| events.iter().filter(is_end).count() == count
}

#[test]
fn local_servers_announce_themselves() {
    servers_announce_themselves("local", 1, &[]);
    servers_announce_themselves("local", 4, &[]);
    servers_announce_themselves("local", 64, &[]);
}

#[test]
fn open_mpi_servers_announce_themselves() {
    servers_announce_themselves("mpirun", 1, &[]);
    servers_announce_themselves("mpirun", 4, &["--tag-output"]);
}

#[test]
fn hydra_servers_announce_themselves() {
    servers_announce_themselves("mpiexec", 1, &[]);
    servers_announce_themselves("mpiexec", 4, &["-prepend-rank", "-pmi-port"]);
}

#[test]
fn failed_local_server_is_named_with_its_stderr() {
    let script = Script::new("fails", FAILS);
    let mut launch = find("local").unwrap().launch(&spec(&script, 2)).unwrap();
    let events = watch(&mut launch, ended_count_is(2));
    for server in 0..2 {
        let end = events.iter().find_map(|event| match event {
            LaunchEvent::Ended {
                server: Some(it),
                status,
                code,
                last_words,
                ..
            } if *it == server => Some((status.as_str(), *code, last_words.clone())),
            _ => None,
        });
        let (status, code, mut words) = end.unwrap();
        words.sort();
        assert_eq!((status, code), ("exited with code 3", Some(3)));
        assert_eq!(words, ["first words", "last words"]);
    }
}

fn a_bad_option_is_said_by_the_launcher(launcher: &str) {
    if !is_here(launcher) {
        return;
    }
    let script = Script::new(&format!("option-{launcher}"), STAYS);
    let mut spec = spec(&script, 2);
    spec.launcher_options = vec![OsString::from("--no-such-option-at-all")];
    let mut launch = find(launcher).unwrap().launch(&spec).unwrap();
    let events = watch(&mut launch, ended_count_is(1));
    let Some(LaunchEvent::Ended {
        server: None,
        code: Some(code),
        last_words,
        ..
    }) = events.last()
    else {
        panic!("no end: {events:?}");
    };
    assert_ne!(*code, 0);
    assert!(
        last_words
            .iter()
            .any(|line| line.contains("no-such-option-at-all")),
        "{last_words:?}"
    );
}

#[test]
fn bad_option_is_reported_by_open_mpi() {
    a_bad_option_is_said_by_the_launcher("mpirun");
}

#[test]
fn hydra_reports_a_bad_option() {
    a_bad_option_is_said_by_the_launcher("mpiexec");
}

#[test]
fn failed_launch_names_its_cause() {
    let local = find("local").unwrap();
    let check = |spec: &LaunchSpec, expect: &str| {
        let error = local.launch(spec).err().unwrap().to_string();
        assert!(error.contains(expect), "{error}");
    };
    check(
        &LaunchSpec::new(0, "/bin/true"),
        "0 servers were requested: expected 1 to",
    );
    check(
        &LaunchSpec::new(1, "/no/such/server"),
        "start server 0: /no/such/server: No such file",
    );
    let mut spec = LaunchSpec::new(1, "/bin/true");
    spec.directory = Some("/no/such/directory".into());
    check(&spec, "directory /no/such/directory: no such directory");
    spec.directory = None;
    spec.launcher_options = vec!["--tag-output".into()];
    check(&spec, "option --tag-output: this launcher takes no options");
}

/// Many lines arrive whole and in order, and the remaining output of an ended process still arrives.
#[test]
fn no_line_of_launcher_output_is_lost() {
    let text = "i=0; while [ $i -lt 20000 ]; do echo \"line $i\"; i=$((i + 1)); done\n";
    let script = Script::new("lines", text);
    let mut launch = find("local").unwrap().launch(&spec(&script, 1)).unwrap();
    let events = watch(&mut launch, ended_count_is(1));
    let expect: Vec<String> = (0..20000).map(|index| format!("line {index}")).collect();
    assert_eq!(texts(&events), expect);
}

/// Environment variable with the launch that the helper below is to make.
const HELPER_VARIABLE: &str = "SDM_LAUNCH_TEST_HELPER";

/// The process that the tests below kill; does nothing as a test.
#[test]
fn helper_launches_servers_and_waits_to_be_killed() {
    let Ok(launcher) = std::env::var(HELPER_VARIABLE) else {
        return;
    };
    // An `mpirun` that gets its signal twice, as below a parent of several threads, ends at once and
    // leaves its processes to themselves.
    let text = if launcher == "local" {
        STAYS
    } else {
        STAYS_BELOW
    };
    let script = Script::new(&format!("helper-{launcher}"), text);
    let mut launch = find(&launcher).unwrap().launch(&spec(&script, 4)).unwrap();
    let events = watch(&mut launch, |events| announced(events).len() == 4);
    for it in announced(&events) {
        println!("\nPID {}", it.pid);
    }
    watch(&mut launch, ended_count_is(usize::MAX));
}

fn a_killed_front_end_leaves_nothing(launcher: &str) {
    if !is_here(launcher) {
        return;
    }
    let mut helper = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "helper_launches_servers_and_waits_to_be_killed",
            "--nocapture",
        ])
        .env(HELPER_VARIABLE, launcher)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(helper.stdout.take().unwrap()).lines();
    let pids = lines.filter_map(|line| line.unwrap().strip_prefix("PID ")?.parse().ok());
    let pids: Vec<u32> = pids.take(4).collect();
    assert_eq!(pids.len(), 4);
    helper.kill().unwrap();
    helper.wait().unwrap();
    await_gone(&pids);
    let id = helper.id();
    let left = std::env::temp_dir().join(format!("sdm-launch-helper-{launcher}-{id}"));
    fs::remove_dir_all(left).unwrap();
}

#[test]
fn a_killed_front_end_leaves_no_local_servers() {
    a_killed_front_end_leaves_nothing("local");
}

#[test]
fn a_killed_front_end_leaves_nothing_of_open_mpi() {
    a_killed_front_end_leaves_nothing("mpirun");
}

#[test]
fn a_killed_front_end_leaves_nothing_of_hydra() {
    a_killed_front_end_leaves_nothing("mpiexec");
}
