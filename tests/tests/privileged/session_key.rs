//! The session's key is in no place where another user could read it.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process;

use nix::sys::signal::Signal;
use sdm_core::message::Health;
use sdm_debug::command::StartSpec;
use sdm_debug::{BackendSettings, Command};
use sdm_idset::{IdSet, TaskId};
use sdm_session::{KeyHandover, SessionConfig};
use sdm_tests::disturbed::Disturbed;
use sdm_tests::run::{BOUND, Run, fake};
use sdm_tests::secret::{holds, memory, who_shows};
use sdm_tests::{leftovers, processes};

/// Servers that log everything, and store their key in a file for the test.
fn town() -> Disturbed {
    Disturbed::new("umask 077; echo $SDM_KEY > $0.key; export SDM_LOG=trace; exec 2>$0.$$.log")
}

fn key(town: &Disturbed) -> String {
    let text = fs::read_to_string(town.folder().join("sdm-server.key")).expect("a key");
    let key = text.trim().to_owned();
    assert_eq!(key.len(), 64, "32 bytes in hexadecimal");
    key
}

fn check_logs(town: &Disturbed, key: &str) {
    let entries = fs::read_dir(town.folder()).expect("the folder");
    let files = entries.map(|entry| entry.expect("an entry").path());
    let logs: Vec<_> = files
        .filter(|path| path.extension().is_some_and(|it| it == "log"))
        .collect();
    assert!(!logs.is_empty());
    for log in logs {
        let bytes = fs::read(&log).expect("a log");
        assert!(!holds(&bytes, key.as_bytes()), "{}", log.display());
    }
}

fn start(run: &mut Run) {
    let spec = StartSpec {
        program: b"/bin/sleep".to_vec(),
        args: vec![b"1000".to_vec()],
        ..StartSpec::default()
    };
    let all = run.all();
    let ledger = run.ask(&all, &Command::Start(spec));
    assert_eq!(ledger.answered, all, "{:?}", ledger.classes);
}

#[test]
fn no_process_shows_the_session_key() {
    let town = town();
    let config = SessionConfig {
        backend: BackendSettings::Gdb,
        ..town.config(2, BOUND)
    };
    let mut run = Run::start(&config);
    start(&mut run);
    let key = key(&town);
    assert_eq!(who_shows(&key, "cmdline"), [""; 0]);
    // Not even processes that were started with the key show it: the servers, the master, gdb and the program.
    assert_eq!(who_shows(&key, "environ"), [""; 0]);
    // The search itself works.
    let mut shows = process::Command::new("sleep")
        .arg("1000")
        .env("SDM_KEY", &key)
        .spawn()
        .expect("sleep");
    let found = who_shows(&key, "environ");
    shows.kill().expect("it lives");
    shows.wait().expect("it is a child");
    assert!(!found.is_empty());
    run.close();
    check_logs(&town, &key);
}

#[test]
fn environment_handover_shows_the_key_only_in_the_launcher() {
    let town = town();
    let config = SessionConfig {
        launcher: "mpirun".to_owned(),
        key_handover: KeyHandover::Environment,
        ..town.config(2, BOUND)
    };
    let mut run = Run::start(&config);
    run.start_tasks();
    let key = key(&town);
    assert_eq!(who_shows(&key, "cmdline"), [""; 0]);
    for name in who_shows(&key, "environ") {
        assert!(name.starts_with("mpirun"), "{name}");
    }
    run.close();
    check_logs(&town, &key);
}

#[test]
fn crashing_server_leaves_no_core_file() {
    const CORES: &str = "cd ${0%/*}; ulimit -c unlimited";
    let town = Disturbed::new(CORES);
    let mut run = Run::start(&town.config(3, BOUND));
    run.start_tasks();
    processes::signal(run.server(2), Signal::SIGABRT);
    run.wait_health(&IdSet::single(TaskId(2)), Health::Lost);
    run.close();
    let entries = fs::read_dir(town.folder()).expect("the folder");
    let names = entries.map(|entry| entry.expect("an entry").file_name());
    let cores: Vec<_> = names
        .filter(|name| name.as_encoded_bytes().starts_with(b"core"))
        .collect();
    assert!(cores.is_empty(), "{cores:?}");
    // Other processes would have left a core file.
    let crash = process::Command::new("sh")
        .args(["-c", &format!("{CORES}; kill -ABRT $$")])
        .arg(town.folder().join("sh"))
        .status();
    assert!(crash.expect("sh").core_dumped());
}

#[test]
fn forking_server_has_no_session_key() {
    let town = Disturbed::new("umask 077; echo $SDM_KEY >$0.key");
    let config = SessionConfig {
        forks: true,
        binaries: Some(PathBuf::from(town.folder())),
        ..fake(3, "")
    };
    let mut run = Run::start(&config);
    run.start_tasks();
    let text = key(&town);
    let digits = (0..32).map(|at| u8::from_str_radix(&text[2 * at..2 * at + 2], 16));
    let key: Vec<u8> = digits.collect::<Result<_, _>>().expect("a key");
    let children = leftovers::children();
    let forkers = children.iter().filter(|(_, name)| name == "sdm-server");
    let forkers: Vec<u32> = forkers.map(|(pid, _)| *pid).collect();
    assert_eq!(forkers.len(), 1, "{children:?}");
    for part in memory(forkers[0]).expect("root may read it") {
        assert!(!holds(&part, &key), "the key");
        assert!(!holds(&part, text.as_bytes()), "the key's text");
    }
    run.close();
}
