//! SDM's own tools connected to the `prterun` of an Open MPI 5 job: many tools, and killed ones, do not keep it from
//! ending.

use std::fs::Permissions;
use std::io::BufRead;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use sdm_tests::late::Beside;
use sdm_tests::parts;
use sdm_tests::place::Place;
use sdm_tests::processes;
use sdm_tests::run::{is_full, until};
use sdm_tests::tool_moments::{ToolMoment, kill_at};

/// A job of two ranks that ends with code 3 once a file exists.
struct Job {
    prterun: Child,
    end: PathBuf,
}

impl Job {
    fn start(mpi: &Path, place: &Place) -> Self {
        let mut job = Self::begin(mpi, place, &[]);
        job.wait_until_up();
        job
    }

    /// Starts a job with further options of `prterun`; the job may not be up yet.
    fn begin(mpi: &Path, place: &Place, options: &[&str]) -> Self {
        let mut prterun = Command::new(mpi.join("bin/prterun"));
        prterun.args(["--allow-run-as-root", "--map-by", ":oversubscribe"]);
        let end = place.path().join("end");
        let script = format!(
            "echo up >&2; until [ -e {} ]; do sleep 0.1; done; exit 3",
            end.display()
        );
        prterun.args(options).args(["-n", "2", "sh", "-c", &script]);
        prterun.env("TMPDIR", place.path());
        prterun
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let prterun = prterun.spawn().expect("prterun runs");
        Self { prterun, end }
    }

    fn wait_until_up(&mut self) {
        let mut said = std::io::BufReader::new(self.prterun.stderr.take().expect("a pipe"));
        let mut up = 0;
        while up < 2 {
            let mut line = String::new();
            let count = said.read_line(&mut line).expect("text");
            assert!(count > 0, "the job ended before it was up");
            up += usize::from(line.contains("up"));
        }
        // Output at the end has no reader, and must not block the process.
        std::thread::spawn(move || std::io::copy(&mut said, &mut std::io::sink()));
    }

    fn pid(&self) -> u32 {
        self.prterun.id()
    }

    /// Ends the job, and gives the code of its starter.
    fn end(mut self) -> Option<i32> {
        std::fs::write(&self.end, "").expect("a file");
        let mut status = None;
        until("prterun has ended with its job", || {
            status = self.prterun.try_wait().expect("it is ours");
            status.is_some()
        });
        status.and_then(|status| status.code())
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.prterun.kill();
        let _ = self.prterun.wait();
    }
}

/// The helper as `sdm` starts it, with the server's own folder for its files.
fn tool(mpi: &Path, place: &Place, server: u32) -> Command {
    let mut tool = Command::new(sdm_tests::binaries::folder().join("sdm-pmix"));
    tool.arg(mpi.join("lib/openmpi/libpmix.so.2"))
        .arg(server.to_string());
    tool.env("PMIX_MCA_psec", "native")
        .env("TMPDIR", place.path())
        .stdin(Stdio::null());
    tool.stdout(Stdio::piped()).stderr(Stdio::piped());
    tool
}

fn assert_answers(tool: Child) {
    assert_answer(&tool.wait_with_output().expect("it ends"));
}

fn assert_answer(said: &Output) {
    let text = String::from_utf8_lossy(&said.stdout);
    let ranks = text.lines().filter(|line| line.starts_with("process\t"));
    assert_eq!(ranks.count(), 2, "{said:?}");
    assert!(text.ends_with("\nend\n"), "{said:?}");
}

/// The next tool waits more than a second, as `prterun` knows the one before for so long: the default run has fewer.
#[test]
fn job_outlives_many_tools_and_keeps_its_exit_code() {
    let (in_a_row, together) = if is_full() { (50, 10) } else { (5, 5) };
    let Some(mpi) = parts::openmpi5() else {
        return;
    };
    let place = Place::new();
    let job = Job::start(&mpi, &place);
    for _ in 0..in_a_row {
        assert_answers(tool(&mpi, &place, job.pid()).spawn().expect("it runs"));
    }
    let at_once = || tool(&mpi, &place, job.pid()).spawn().expect("it runs");
    let all: Vec<Child> = (0..together).map(|_| at_once()).collect();
    for tool in all {
        assert_answers(tool);
    }
    assert_eq!(job.end(), Some(3));
}

/// Kills each keeper process of a connection until `is_over`, and returns how many.
fn kill_keepers(is_over: &AtomicBool) -> usize {
    let mut killed = 0;
    while !is_over.load(Ordering::Relaxed) {
        let all = std::fs::read_dir("/proc").expect("a folder").flatten();
        let pids = all.filter_map(|it| it.file_name().to_str()?.parse().ok());
        for pid in pids.filter(|pid| processes::name(*pid) == "sdm-pmix-hold") {
            processes::kill_if_there(pid);
            killed += 1;
        }
    }
    killed
}

/// Without the keepers' locks the server still knows a tool that has left when the next one connects. A slow server
/// that was asked again at once refused all tools from then on.
#[test]
fn tools_refused_by_a_slow_server_get_through_later() {
    let Some(mpi) = parts::openmpi5() else {
        return;
    };
    let place = Place::new();
    let job = Job::start(&mpi, &place);
    let busy = || Beside::start(Command::new("sh").args(["-c", "while :; do :; done"]));
    let _busy: Vec<Beside> = (0..4).map(|_| busy()).collect();
    let mut renice = Command::new("renice");
    renice.args(["-n", "19", "-p", &job.pid().to_string()]);
    assert!(renice.output().expect("renice runs").status.success());
    let is_over = AtomicBool::new(false);
    let said = std::thread::scope(|scope| {
        let killer = scope.spawn(|| kill_keepers(&is_over));
        let at_once = || tool(&mpi, &place, job.pid()).spawn().expect("it runs");
        let all: Vec<Child> = (0..10).map(|_| at_once()).collect();
        let said = all.into_iter().map(|it| it.wait_with_output());
        let said: Vec<_> = said.map(|it| it.expect("it ends")).collect();
        is_over.store(true, Ordering::Relaxed);
        assert!(killer.join().expect("no panic") > 0, "no keeper was killed");
        said
    });
    said.iter().for_each(assert_answer);
    assert_eq!(job.end(), Some(3));
}

/// A PMIx server may refuse all later tools if it is tried again and again while it removes the previous tool.
#[test]
fn pmix_server_accepts_the_next_tool_without_retry() {
    let Some(mpi) = parts::openmpi5() else {
        return;
    };
    let place = Place::new();
    let job = Job::start(&mpi, &place);
    for _ in 0..3 {
        let mut tool = tool(&mpi, &place, job.pid());
        // Its last one.
        tool.env("SDM_PMIX_TRIES", "24");
        assert_answers(tool.spawn().expect("it runs"));
    }
    assert_eq!(job.end(), Some(3));
}

#[test]
fn job_outlives_killed_tools() {
    let Some(mpi) = parts::openmpi5() else {
        return;
    };
    let place = Place::new();
    let job = Job::start(&mpi, &place);
    let at_once = || tool(&mpi, &place, job.pid()).spawn().expect("it runs");
    for _ in 0..if is_full() { 6 } else { 1 } {
        for moment in ToolMoment::ALL {
            kill_at(moment, at_once);
        }
    }
    assert_answers(at_once());
    assert_eq!(job.end(), Some(3));
}

/// Script in the place of ssh: starts a daemon on this host once the file `GO` exists.
const AGENT: &str = r#"#!/bin/sh
shift
: > GO.waited-for
until [ -e GO ]; do sleep 0.1; done
exec sh -c "$*"
"#;

/// A `prterun` that has no job yet, since it waits for its daemons, ends a second after a tool has left it.
#[test]
fn tool_connecting_before_the_job_waits_for_it() {
    let Some(mpi) = parts::openmpi5() else {
        return;
    };
    let place = Place::new();
    let (agent, go) = (place.path().join("agent"), place.path().join("go"));
    let text = AGENT.replace("GO", &go.display().to_string());
    std::fs::write(&agent, text).expect("a file");
    std::fs::set_permissions(&agent, Permissions::from_mode(0o755)).expect("it is ours");
    let (agent, prefix) = (agent.to_string_lossy(), mpi.to_string_lossy());
    let options = ["--prtemca", "plm_ssh_agent", &agent, "--prefix", &prefix];
    // The hosts' addresses do not exist; they are never contacted.
    let options = [&options[..], &["--host", "10.255.255.1:1,10.255.255.2:1"]].concat();
    let mut job = Job::begin(&mpi, &place, &options);
    // The server accepts tools before it starts daemons.
    until("a daemon is started", || {
        go.with_extension("waited-for").exists()
    });
    let real = tool(&mpi, &place, job.pid());
    // The first one's starter dies.
    let mut starter = Command::new("sh");
    // The pid is printed before the program's own output.
    starter.args(["-c", r#"sh -c 'echo $$; exec "$@"' sh "$@" & wait"#, "sh"]);
    starter.arg(real.get_program()).args(real.get_args());
    starter.envs(
        real.get_envs()
            .filter_map(|(name, value)| Some((name, value?))),
    );
    let mut starter = starter.stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
    let starter = starter.as_mut().expect("it runs");
    let mut said = std::io::BufReader::new(starter.stdout.take().expect("a pipe")).lines();
    let mut line = || said.next().expect("a line").expect("text");
    let pid: u32 = line().parse().expect("a pid");
    assert_eq!(line(), "starting");
    starter.kill().expect("it is ours");
    starter.wait().expect("it ends");
    // The second one waits for the first.
    let second = tool(&mpi, &place, job.pid()).spawn().expect("it runs");
    std::fs::write(&go, "").expect("a file");
    job.wait_until_up();
    assert_answers(second);
    until("the first one is gone", || {
        processes::of(pid).state().is_none()
    });
    assert_eq!(job.end(), Some(3));
}
