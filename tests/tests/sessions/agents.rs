//! Agents of this host, driven by SDM's client and by bytes as PTP's own client wrote them.

use std::fs::Permissions;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::Command as Process;
use std::time::Instant;

use sdm_agent::local::record;
use sdm_runtime::wire::Dialect;
use sdm_runtime::wire::client::Report;
use sdm_runtime::wire::command::{Command, JobChange};
use sdm_runtime::wire::event::{Event, Kind};
use sdm_tests::agent::Talk;
use sdm_tests::binaries;
use sdm_tests::place::Place;
use sdm_tests::run::{BOUND, connect};

fn start(place: &Place, dialect: Dialect) -> Talk {
    Talk::start("local", dialect, |command| {
        command.env("XDG_STATE_HOME", place.path());
        command.current_dir(place.path());
    })
}

/// The pids of the processes that the runner of a job has started.
fn pids(place: &Place, number: &str) -> Vec<i32> {
    let folder: PathBuf = place.path().join("sdm/local").join(number);
    let state = record::state(&folder).expect("a record");
    state.started.iter().map(|it| it.pid).collect()
}

fn are_there(pids: &[i32]) -> bool {
    pids.iter().all(|pid| record::began(*pid).is_some())
}

fn wait_gone(pids: &[i32]) {
    let deadline = Instant::now() + BOUND;
    while pids.iter().any(|pid| record::began(*pid).is_some()) {
        assert!(Instant::now() < deadline, "{pids:?} are left");
        std::thread::yield_now();
    }
}

#[test]
fn a_job_is_submitted_watched_and_ended_in_both_dialects() {
    for dialect in [Dialect::Document, Dialect::Ptp] {
        let place = Place::new();
        let mut talk = start(&place, dialect);
        talk.until(|_, report| {
            matches!(report, Report::Event(_, Event::AttrDef(all))
                if all.iter().any(|it| it.id == "jobStatus"))
        });
        // PTP's own dialect has no definitions of filters.
        if dialect == Dialect::Document {
            talk.until(|_, report| {
                matches!(report, Report::Event(_, Event::FilterDef(all))
                    if all.iter().any(|it| it.id == "jobStatus"))
            });
        }
        talk.until(|_, report| {
            matches!(report, Report::Event(_, Event::New(Kind::Queue, parent, _)) if parent == "1000")
        });
        talk.wait("machineState", "UP");
        talk.wait("numNodes", "1");
        talk.wait("nodeState", "UP");
        talk.submit("JOB_1", "exit 3", &[]).expect("it is taken");
        let job = talk.wait("jobSubId", "JOB_1");
        // PTP's own client has other words.
        let [ended, killed, why] = match dialect {
            Dialect::Document => ["TERMINATED", "EXITED_SIGNALLED", "processState"],
            Dialect::Ptp => ["COMPLETED", "COMPLETED", "processStatus"],
        };
        talk.wait("jobState", ended);
        assert_eq!(talk.elements[&job]["exitCode"], "3");
        talk.submit("JOB_2", "sleep 1000", &[])
            .expect("it is taken");
        let job = talk.wait("jobSubId", "JOB_2");
        talk.wait("processState", "RUNNING");
        if dialect == Dialect::Document {
            let hold = Command::ChangeJob {
                job: job.to_string(),
                attributes: vec![JobChange::Hold.attribute()],
            };
            let refused = talk.ask(hold).unwrap_err();
            assert!(refused.contains("start at once"), "{refused}");
        }
        let end = Command::TerminateJob(job.to_string());
        talk.ask(end).expect("it is ended");
        talk.until(|talk, _| talk.elements[&job]["jobState"] == ended);
        talk.wait("processState", killed);
        talk.wait(why, "EXITED_SIGNALLED");
        let unknown = talk.ask(Command::TerminateJob("99".to_owned()));
        assert_eq!(
            unknown.unwrap_err(),
            "job 99 was not reported by this agent"
        );
        let refused = talk.submit("JOB_3\0", "true", &[]).unwrap_err();
        assert!(
            refused.contains("jobSubId contains a zero byte"),
            "{refused}"
        );
        talk.quit();
    }
}

#[test]
fn hidden_job_is_announced_when_its_filter_goes() {
    for dialect in [Dialect::Document, Dialect::Ptp] {
        let place = Place::new();
        let mut talk = start(&place, dialect);
        talk.wait("machineState", "UP");
        let hide = |words: &[&str]| {
            let words = words.iter().map(|it| (*it).to_owned()).collect();
            Command::SetFilters(words)
        };
        talk.ask(hide(&["execName=sh"])).expect("it is set");
        talk.submit("JOB_1", "sleep 1000", &[])
            .expect("it is taken");
        talk.submit("JOB_2", "sleep 1000", &[("execName", "dash")])
            .expect("it is taken");
        let shown = talk.wait("jobSubId", "JOB_2");
        // Both jobs have been submitted, and only one is known.
        let known = |talk: &Talk, job: &str| {
            let mut all = talk.elements.values();
            all.any(|it| it.get("jobSubId").is_some_and(|id| id == job))
        };
        assert!(!known(&talk, "JOB_1"));
        talk.ask(hide(&[])).expect("it is set");
        let hidden = talk.wait("jobSubId", "JOB_1");
        assert_ne!(shown, hidden);
        for job in [hidden, shown] {
            let end = Command::TerminateJob(job.to_string());
            talk.ask(end).expect("it is ended");
            talk.until(|talk, _| {
                let state = &talk.elements[&job]["jobState"];
                state == "TERMINATED" || state == "COMPLETED"
            });
        }
        talk.quit();
    }
}

#[test]
fn jobs_survive_their_agent_and_another_agent_ends_them() {
    let place = Place::new();
    let mut talk = start(&place, Dialect::Document);
    talk.wait("machineState", "UP");
    talk.submit("JOB_1", "sleep 1000", &[])
        .expect("it is taken");
    let job = talk.wait("jobSubId", "JOB_1");
    talk.wait("processState", "RUNNING");
    let number = talk.elements[&job]["systemJobId"].clone();
    let pids = pids(&place, &number);
    assert_eq!(pids.len(), 2);
    talk.child.kill().expect("a child");
    talk.child.wait().expect("a child");
    assert!(are_there(&pids));
    let mut talk = start(&place, Dialect::Ptp);
    let job = talk.wait("systemJobId", &number);
    let end = Command::TerminateJob(job.to_string());
    talk.ask(end).expect("it is ended");
    wait_gone(&pids);
    talk.quit();
}

fn at_socket(place: &Place, path: &Path) -> Process {
    let mut command = Process::new(binaries::folder().join("sdm-agent"));
    command.args(["--rm", "local", "--proxy=unix", "--path"]);
    command.arg(path).env("XDG_STATE_HOME", place.path());
    command
}

#[test]
fn agent_socket_is_private_and_serves_one_client() {
    let place = Place::new();
    let folder = place.path().join("private");
    let path = folder.join("agent");
    // Files of a killed agent do not block a new one.
    std::fs::create_dir(&folder).expect("a folder");
    std::fs::set_permissions(&folder, Permissions::from_mode(0o700)).expect("its owner");
    drop(UnixListener::bind(&path).expect("a socket"));
    let mut child = at_socket(&place, &path).spawn().expect("an agent");
    let mut stream = connect(&path);
    let init = b"00000032 0001:00000000:00000002 00000003:2.0 00000004:1000";
    stream.write_all(init).expect("it reads");
    let mut ok = [0; 31];
    stream.read_exact(&mut ok).expect("it answers");
    assert_eq!(&ok, b"00000017 0000:00000000:00000000");
    assert!(!path.exists(), "it has its client");
    let quit = b"00000017 0000:00000001:00000000";
    stream.write_all(quit).expect("it reads");
    let mut rest = String::new();
    stream.read_to_string(&mut rest).expect("it answers");
    assert!(rest.ends_with("00000017 0006:00000001:00000000"), "{rest}");
    assert!(child.wait().expect("a child").success());
    let refused = |path: &Path, why: &str| {
        let output = at_socket(&place, path).output().expect("an agent");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && said.contains(why), "{said}");
    };
    let listener = UnixListener::bind(&path).expect("a socket");
    refused(&path, "another process listens there already");
    drop(listener);
    std::fs::remove_file(&path).expect("it was there");
    std::fs::write(&path, "").expect("a file");
    refused(&path, "exists and is not a socket");
    std::fs::set_permissions(&folder, Permissions::from_mode(0o750)).expect("its owner");
    refused(&folder.join("other"), "is accessible to other users");
}

fn over_tcp(place: &Place, host: &str, port: u16) -> Process {
    let mut command = Process::new(binaries::folder().join("sdm-agent"));
    command.args(["--rm", "local", "--proxy=tcp", "--host", host]);
    command.args(["--port", &port.to_string()]);
    command.env("XDG_STATE_HOME", Path::new(place.path()));
    command
}

#[test]
fn agent_understands_ptp_bytes_over_tcp() {
    let place = Place::new();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("a port").port();
    let mut child = over_tcp(&place, "127.0.0.1", port)
        .spawn()
        .expect("an agent");
    let (mut stream, _) = listener.accept().expect("the agent comes");
    let init = b"00000041 0001:00000000:00000002 0000000b:version=2.0 0000000b:baseId=1000";
    stream.write_all(init).expect("it reads");
    let mut ok = [0; 31];
    stream.read_exact(&mut ok).expect("it answers");
    assert_eq!(
        String::from_utf8_lossy(&ok),
        "00000017 0000:00000000:00000000"
    );
    let quit = b"00000017 0000:00000001:00000000";
    stream.write_all(quit).expect("it reads");
    let mut rest = String::new();
    stream.read_to_string(&mut rest).expect("it answers");
    assert_eq!(rest, "00000017 0006:00000001:00000000");
    assert!(child.wait().expect("a child").success());
    let elsewhere = over_tcp(&place, "192.0.2.1", port)
        .output()
        .expect("an agent");
    let said = String::from_utf8_lossy(&elsewhere.stderr).into_owned();
    assert!(
        !elsewhere.status.success() && said.contains("is not a loopback address"),
        "{said}"
    );
}

#[test]
fn resource_manager_program_of_a_site_runs_and_ends_jobs() {
    let place = Place::new();
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/sdm-rm-example");
    let own = place.path().join("sdm-rm-example");
    std::fs::copy(example, &own).expect("a copy");
    let path = std::env::var("PATH").expect("a path");
    let path = format!("{}:{path}", place.path().display());
    for dialect in [Dialect::Document, Dialect::Ptp] {
        let mut talk = Talk::start("example", dialect, |command| {
            command.env("PATH", &path).current_dir(place.path());
        });
        talk.wait("machineState", "UP");
        talk.wait("queueState", "NORMAL");
        talk.submit("JOB_1", "exit 3", &[]).expect("it is taken");
        talk.wait("jobSubId", "JOB_1");
        talk.wait("processExitCode", "3");
        talk.wait("jobState", "TERMINATED");
        talk.submit("JOB_2", "sleep 1000", &[])
            .expect("it is taken");
        let job = talk.wait("jobSubId", "JOB_2");
        talk.ask(Command::TerminateJob(job.to_string()))
            .expect("it is ended");
        talk.wait("processSignalName", "SIGTERM");
        let unknown = talk.ask(Command::TerminateJob("99".to_owned()));
        assert_eq!(unknown.unwrap_err(), "99");
        let nothing = [("workingDir", "/no/such/folder")];
        let refused = talk.submit("JOB_3", "true", &nothing).unwrap_err();
        assert!(refused.contains("/no/such/folder"), "{refused}");
        talk.submit("JOB_4", "sleep 1000", &[])
            .expect("it is taken");
        let job = talk.wait("jobSubId", "JOB_4");
        let its = |talk: &Talk| {
            let mut all = talk.elements.values();
            let own = all.rfind(|it| it.contains_key("processPID"));
            own.map(|it| it["processPID"].parse().expect("a pid"))
        };
        talk.until(|talk, _| talk.elements.keys().any(|id| *id > job));
        let pid: i32 = its(&talk).expect("a process");
        talk.quit();
        wait_gone(&[pid]);
    }
    let mut absent = Process::new(binaries::folder().join("sdm-agent"));
    let output = absent.args(["--rm", "nobody"]).output().expect("an agent");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("sdm-rm-nobody is not on PATH"), "{said}");
}

#[test]
fn debug_job_is_held_in_a_resumable_session() {
    let place = Place::new();
    let runtime = place.runtime();
    let mut talk = Talk::start("local", Dialect::Document, |command| {
        command.env("XDG_STATE_HOME", place.path());
        command.env("XDG_RUNTIME_DIR", &runtime);
        command.current_dir(place.path());
    });
    talk.wait("machineState", "UP");
    talk.submit("JOB_1", "exit 0", &[("debug", "true")])
        .expect("it is taken");
    let job = talk.wait("jobSubId", "JOB_1");
    if !talk.elements[&job].contains_key("jobStatus") {
        talk.until(|talk, _| talk.elements[&job].contains_key("jobStatus"));
    }
    let status = talk.elements[&job]["jobStatus"].clone();
    let session = status
        .strip_prefix("debugged: sdm resume ")
        .expect("its session");
    // The session's keeper listens before the session is listed.
    drop(connect(&runtime.join("sdm").join(session)));
    let mut sessions = Process::new(binaries::folder().join("sdm"));
    sessions.arg("sessions").env("XDG_RUNTIME_DIR", &runtime);
    let listed = String::from_utf8(sessions.output().expect("sdm").stdout).expect("text");
    assert!(listed.contains(session), "no {session}: {listed}");
    talk.ask(Command::TerminateJob(job.to_string()))
        .expect("it is ended");
    talk.until(|talk, _| talk.elements[&job]["jobState"] == "TERMINATED");
    let own = [
        ("debug", "true"),
        ("debugExecPath", "/usr/bin"),
        ("debugExecName", "env"),
        ("debugArgs", "HELD=yes"),
    ];
    talk.submit("JOB_2", "test $HELD = yes && exit 7", &own)
        .expect("it is taken");
    let job = talk.wait("jobSubId", "JOB_2");
    if talk.elements[&job]["jobState"] != "TERMINATED" {
        talk.until(|talk, _| talk.elements[&job]["jobState"] == "TERMINATED");
    }
    assert_eq!(talk.elements[&job]["exitCode"], "7");
    talk.quit();
}
