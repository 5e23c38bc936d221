//! A cluster with a real Grid Engine, as an ordinary user has it at a shell.

use std::fs;
use std::process::Command;

use sdm_tests::clusters::Shell;
use sdm_tests::invoke::Client;
use sdm_tests::ordinary;
use sdm_tests::parts::Part;
use sdm_tests::processes;
use sdm_tests::run::until;
use serde_json::Value;

const _: () = sdm_tests::run::test_group("gridengine", "one master, and its four slots");

const PID: &str = "/tmp/sdm-gridengine/pid";

/// A shell of an ordinary user's on a host of Grid Engine's, with the cluster `g`.
fn shell() -> Shell {
    let pid = fs::read_to_string(PID).expect("it is up");
    let shell = Shell::new().inside(pid.trim());
    let shell = shell.with("SGE_ROOT", "/var/lib/gridengine");
    let shell = shell.with("SGE_CELL", "default");
    let _done = shell.sdm("cluster add g gridengine").done();
    shell
}

/// True once a process on the host listens at a Unix socket of this name.
fn is_listening(name: &str) -> bool {
    let pid = fs::read_to_string(PID).expect("it is up");
    let sockets = fs::read_to_string(format!("/proc/{}/net/unix", pid.trim())).expect("it is up");
    // The flag is that of `listen`.
    let listens = |line: &&str| line.contains(" 00010000 ");
    let mut listening = sockets.lines().filter(listens);
    listening.any(|line| line.ends_with(&format!("/{name}")))
}

/// The process of Grid Engine's master.
fn master() -> u32 {
    let pid = fs::read_to_string(PID).expect("it is up");
    let all = processes::below(pid.trim().parse().expect("a pid"));
    let mut masters = all.into_iter().map(|(pid, _)| pid);
    let master = masters.find(|pid| processes::name(*pid) == "sge_qmaster");
    master.expect("it is up")
}

/// Runs a command that only Grid Engine's managers may run.
fn as_manager(words: &[&str]) {
    let pid = fs::read_to_string(PID).expect("it is up");
    let mut command = Command::new("nsenter");
    command.args(["-t", pid.trim(), "-m", "-u", "-n", "-p", "env"]);
    command.args(["SGE_ROOT=/var/lib/gridengine", "SGE_CELL=default"]);
    let status = command.args(words).status();
    assert!(status.expect("nsenter").success(), "{words:?}");
}

#[test]
fn grid_engine_jobs_are_submitted_held_ended_and_accounted() {
    let Some(_gridengine) = Part::gridengine() else {
        return;
    };
    let shell = shell();
    let nodes = shell.sdm("nodes").done().out;
    assert!(nodes.contains("ge1"), "{nodes}");
    let queues = shell.sdm("queues").done().out;
    assert!(queues.contains("all.q"), "{queues}");
    // A job that ends by itself, with its output and exit code.
    let words = [
        "--env",
        "WORD=two words",
        "--",
        "/bin/sh",
        "-c",
        "echo \"$WORD\"; exit 3",
    ];
    let ended = shell.submit(&words);
    shell.wait_job(&ended, "jobState", "TERMINATED");
    shell.wait_job(&ended, "exitCode", "3");
    assert_eq!(
        shell.sdm(&format!("logs {ended}")).done().out,
        "two words\n"
    );
    // One that is held, released and cancelled.
    let held = shell.submit(&["--option=-h", "--", "sleep", "1000"]);
    shell.wait_job(&held, "jobStatus", "hqw");
    let _done = shell.sdm(&format!("release {held}")).done();
    shell.wait_job(&held, "jobState", "RUNNING");
    let shown = shell.sdm(&format!("ps {held}")).done().out;
    assert!(shown.contains("ge1"), "{shown}");
    let _done = shell.sdm(&format!("hold {held}")).done();
    shell.wait_job(&held, "jobStatus", "hr");
    let _done = shell.sdm(&format!("release {held}")).done();
    shell.wait_job(&held, "jobStatus", "r");
    let _done = shell.sdm(&format!("cancel {held}")).done();
    shell.wait_job(&held, "jobState", "TERMINATED");
    shell.wait_job(&held, "exitSignal", "9");
    // The members of an array are jobs of their own.
    let words = ["--option=-t", "--option=1-2", "--", "sleep", "1000"];
    let first = shell.submit(&words);
    let array = first.strip_suffix(".1").expect("the first member");
    for member in ["1", "2"] {
        shell.wait_job(&format!("{array}.{member}"), "jobState", "RUNNING");
    }
    let _done = shell.sdm(&format!("cancel {array}.1")).done();
    shell.wait_job(&format!("{array}.1"), "jobState", "TERMINATED");
    shell.wait_job(&format!("{array}.2"), "jobState", "RUNNING");
    let _done = shell.sdm(&format!("cancel {array}.2")).done();
    shell.wait_job(&format!("{array}.2"), "jobState", "TERMINATED");
    shell
        .words(&["submit", "--option=-no-such-option", "--", "true"])
        .refused(1, "qsub: ");
    let _done = shell.sdm("cluster remove g").done();
    shell.place.assert_gone();
}

#[test]
fn grid_engine_job_output_is_found_after_a_master_restart() {
    // It takes the master away.
    let Some(_gridengine) = Part::gridengine().map(Part::to_be_harmed) else {
        return;
    };
    let shell = shell();
    let folder = shell.place.path().display().to_string();
    // Text that looks like an option of qsub's stays an argument.
    let text = "one\n#$ -N other\n#$ -t 1-3\ntwo";
    let job = shell.submit(&["--", "/bin/sh", "-c", "echo \"$1\"", "9lives", text]);
    shell.wait_job(&job, "exitCode", "0");
    let out = shell.sdm(&format!("logs {job}")).done().out;
    assert_eq!(out, format!("{text}\n"));
    // Errors with the output, in a folder, under the name that Grid Engine gives.
    let join = [
        "--option=-j",
        "--option=y",
        "--option=-o",
        &format!("--option={folder}"),
    ];
    let print = [
        "--name",
        "both",
        "--",
        "/bin/sh",
        "-c",
        "echo out; echo err >&2; exit 7",
    ];
    let merged = shell.submit(&[&join[..], &print].concat());
    shell.wait_job(&merged, "exitCode", "7");
    let out = shell.sdm(&format!("logs {merged}")).done().out;
    assert_eq!(out, "out\nerr\n");
    // Grid Engine goes down, its cluster reports that, and has all data again once Grid Engine is back.
    let master = master();
    as_manager(&["qconf", "-km"]);
    let is_well = |list: &Value| list["clusters"][0]["reason"].is_null();
    shell.watch("jobs", |list| !is_well(list));
    // One that has not ended yet has the port and the database of the next one.
    processes::wait_state(master, "Z");
    as_manager(&["/usr/sbin/sge_qmaster"]);
    shell.watch("jobs", is_well);
    let _done = shell.sdm("cluster stop g").done();
    let _done = shell.sdm("cluster start g").done();
    for (job, code) in [(&job, "0"), (&merged, "7")] {
        shell.wait_job(job, "exitCode", code);
    }
    let _done = shell.sdm("cluster remove g").done();
    shell.place.assert_gone();
}

/// A queue that is there until this is dropped.
struct Queue(&'static str);

impl Queue {
    fn add(name: &'static str) -> Self {
        let script =
            "cd /tmp/sdm-gridengine && sed \"s/^qname .*/qname $1/\" queue >$1 && qconf -Aq $1";
        as_manager(&["sh", "-c", script, "sh", name]);
        Self(name)
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        as_manager(&["qconf", "-dq", self.0]);
    }
}

#[test]
fn grid_engine_job_is_moved_and_its_priority_changed() {
    let Some(_gridengine) = Part::gridengine() else {
        return;
    };
    let late = Queue::add("late.q");
    let shell = shell();
    let job = shell.submit(&["--option=-h", "--", "sleep", "1000"]);
    shell.wait_job(&job, "jobStatus", "hqw");
    let _done = shell.sdm(&format!("move late.q g:{job}")).done();
    let _done = shell.sdm(&format!("priority -100 {job}")).done();
    let qstat = shell
        .program("/usr/bin/qstat".as_ref(), &["-j", &job])
        .output();
    let said = String::from_utf8_lossy(&qstat.expect("qstat").stdout).into_owned();
    let values: Vec<_> = said.lines().filter_map(|it| it.split_once(':')).collect();
    for (name, value) in [("hard_queue_list", "late.q"), ("priority", "-100")] {
        let is_it = |it: &(&str, &str)| it.0 == name && it.1.trim() == value;
        assert!(values.iter().any(is_it), "no {name} {value} in {said}");
    }
    shell
        .sdm(&format!("move nowhere {job}"))
        .refused(1, "nowhere");
    let _done = shell.sdm(&format!("release {job}")).done();
    shell.wait_job(&job, "jobState", "RUNNING");
    let queues = shell.sdm("queues --json").done().out;
    let queues: Value = serde_json::from_str(&queues).expect("JSON");
    let mut queues = queues["queues"].as_array().expect("queues").iter();
    let queue = queues.find(|it| it["attributes"]["name"] == "late.q");
    let id = queue.expect("it is there")["id"].as_str().expect("an id");
    shell.wait_job(&job, "queueId", id);
    let _done = shell.sdm(&format!("cancel {job}")).done();
    shell.wait_job(&job, "jobState", "TERMINATED");
    drop(late);
    let _done = shell.sdm("cluster remove g").done();
    shell.place.assert_gone();
}

#[test]
fn grid_engine_parallel_and_held_jobs_are_listed() {
    let Some(_gridengine) = Part::gridengine() else {
        return;
    };
    let shell = shell();
    // Three slots: three processes, whatever the number of rows.
    let sleep = [
        "--option=-pe",
        "--option=mpi",
        "--option=3",
        "--",
        "sleep",
        "1000",
    ];
    let parallel = shell.submit(&sleep);
    shell.wait_job(&parallel, "jobState", "RUNNING");
    shell.wait_job(&parallel, "jobNumProcs", "3");
    let nodes = || shell.sdm("nodes --json").done().out;
    assert!(nodes().contains("RUNNING_PROCESS"));
    as_manager(&["qmod", "-sj", &parallel]);
    shell.wait_job(&parallel, "jobState", "SUSPENDED");
    as_manager(&["qmod", "-usj", &parallel]);
    shell.wait_job(&parallel, "jobState", "RUNNING");
    let _done = shell.sdm(&format!("cancel {parallel}")).done();
    shell.wait_job(&parallel, "jobState", "TERMINATED");
    let nodes = nodes();
    assert!(
        !nodes.contains("RUNNING_PROCESS") && !nodes.contains("ALLOC"),
        "{nodes}"
    );
    // One that waits under SDM.
    let runtime = format!("XDG_RUNTIME_DIR={}/run", shell.place.path().display());
    let words = ["--debug", "--env", &runtime, "--", "/bin/sleep", "1000"];
    let held = shell.submit(&words);
    let session = format!("gridengine-{held}");
    shell.wait_job(&held, "debugSession", &session);
    until("the session listens", || is_listening(&session));
    let listed = shell.sdm("sessions").done().out;
    assert!(listed.contains(&session), "{listed}");
    let _done = shell.sdm(&format!("cancel {held}")).done();
    shell.wait_job(&held, "exitSignal", "9");
    let _done = shell.sdm("cluster remove g").done();
    shell.place.assert_gone();
}

#[test]
fn grid_engine_job_that_cannot_start_is_in_state_error() {
    let Some(_gridengine) = Part::gridengine() else {
        return;
    };
    let shell = shell();
    let folder = shell.place.path().join("late");
    let words = ["--directory", &folder.display().to_string(), "--", "sleep"];
    let words = [&words[..], &["1000"]].concat();
    let is_failed = |it: &Value, job: &str| {
        let why = it["jobStatusMessage"].as_str().unwrap_or_default();
        it["systemJobId"] == job && it["jobState"] == "ERROR" && why.contains("/late")
    };
    let [lost, late] = [(); 2].map(|()| shell.submit(&words));
    for job in [&lost, &late] {
        shell.watch_jobs(|it| is_failed(it, job));
    }
    // One that is deleted has failed for good.
    let _done = shell.sdm(&format!("cancel {lost}")).done();
    shell.watch_jobs(|it| is_failed(it, &lost) && it.get("endTime").is_some());
    // One whose error is cleared begins.
    fs::create_dir(&folder).expect("a folder");
    ordinary::give(&folder);
    // It ends with 1 although it has done so.
    let clear = "qmod -cj $1 | grep cleared";
    as_manager(&["sh", "-c", clear, "sh", &late]);
    shell.wait_job(&late, "jobState", "RUNNING");
    let _done = shell.sdm(&format!("cancel {late}")).done();
    shell.wait_job(&late, "jobState", "TERMINATED");
    // One whose program does not exist.
    let none = shell.submit(&["--", "/no/such/program", "1"]);
    let why = "/no/such/program cannot be started, or has exited with code 100";
    shell.wait_job(&none, "jobStatusMessage", why);
    shell.wait_job(&none, "jobState", "ERROR");
    let _done = shell.sdm(&format!("cancel {none}")).done();
    shell.watch_jobs(|it| it["systemJobId"] == *none && it.get("endTime").is_some());
    shell.wait_job(&none, "jobState", "ERROR");
    let said = shell.sdm(&format!("logs --err {none}")).done().out;
    assert_eq!(
        said,
        "sdm: cannot start /no/such/program: no such program\n"
    );
    let _done = shell.sdm("cluster remove g").done();
    shell.place.assert_gone();
}

#[test]
fn grid_engine_jobs_are_listed_with_program_and_environment() {
    let Some(_gridengine) = Part::gridengine() else {
        return;
    };
    let shell = shell();
    let text = "it's\n-N other";
    let words = [
        "--option=-h",
        "--env",
        "WORD=a, b",
        "--",
        "/bin/echo",
        text,
        "",
    ];
    let job = shell.submit(&words);
    let program = [
        ("execPath", "/bin"),
        ("execName", "echo"),
        ("progArgs", "it's\n-N other "),
    ];
    let env = |it: &Value| it["env"].as_str().unwrap_or_default().contains("WORD=a, b");
    let is_whole = |it: &Value| program.iter().all(|(id, value)| it[id] == *value);
    shell.watch_jobs(|it| it["systemJobId"] == *job && is_whole(it) && env(it));
    // Other agents read what Grid Engine keeps: this job's environment is not in it, as all users could read it.
    let _done = shell.sdm("cluster stop g").done();
    let _done = shell.sdm("cluster start g").done();
    shell.watch_jobs(|it| it["systemJobId"] == *job && is_whole(it) && !env(it));
    let _done = shell.sdm(&format!("release {job}")).done();
    shell.wait_job(&job, "exitCode", "0");
    assert_eq!(
        shell.sdm(&format!("logs {job}")).done().out,
        format!("{text} \n")
    );
    // A job of the user's own.
    let script = shell.place.path().join("bin/run.sh");
    shell.write_program(&script, "#!/bin/sh\nexec sleep 1000\n");
    let qsub = ["-terse", "-h", "-v", "WORD=two words"];
    let path = script.display().to_string();
    let mut qsub = shell.program(
        "/usr/bin/qsub".as_ref(),
        &[&qsub[..], &[&path, "-x", "y z"]].concat(),
    );
    let number = qsub.output().expect("qsub").stdout;
    let number = String::from_utf8_lossy(&number).trim().to_owned();
    shell.watch_jobs(|it| {
        let env = it["env"].as_str().unwrap_or_default();
        it["systemJobId"] == *number
            && it["execName"] == "run.sh"
            && it["progArgs"] == "-x y z"
            && env.contains("WORD=two words")
    });
    let _done = shell.sdm(&format!("cancel {number}")).done();
    let _done = shell.sdm("cluster remove g").done();
    shell.place.assert_gone();
}

#[test]
fn grid_rpc_client_runs_its_jobs_in_grid_engine() {
    let Some(_gridengine) = Part::gridengine() else {
        return;
    };
    let shell = shell();
    let mut client = Client::start(&shell, "SDMgridengine");
    let [output, errors] = ["o", "e"].map(|name| shell.place.path().join(name));
    fs::write(&output, "of an earlier one").expect("a file");
    ordinary::give(&output);
    let attributes = [
        "redirect_enable true".to_owned(),
        format!("stdout_file {}", output.display()),
        format!("stderr_file {}", errors.display()),
        format!("work_directory {}", shell.place.path().display()),
        "queue_name all.q".to_owned(),
        "max_wall_time 5".to_owned(),
        "environment WORD=two words".to_owned(),
    ];
    let words = ["-c", "echo \"$WORD\" $QUEUE; echo cried >&2"];
    let job = client.create("/bin/sh", &words, &attributes);
    client.wait(&job, "DONE");
    let said = fs::read_to_string(&output).expect("its output");
    assert_eq!(said, "two words all.q\n");
    let said = fs::read_to_string(&errors).expect("its errors");
    assert_eq!(said, "cried\n");
    assert_eq!(client.ask("JOB_DESTROY", &job), "S");
    let place = ["work_directory /tmp".to_owned()];
    let fails = client.create("/bin/sh", &["-c", "exit 3"], &place);
    client.wait(&fails, "FAILED");
    let runs = client.create("/bin/sleep", &["1000"], &place);
    client.wait(&runs, "ACTIVE");
    assert_eq!(client.ask("JOB_DESTROY", &runs), "S");
    client.wait(&runs, "DONE");
    let refused = ["queue_name nosuch".to_owned(), place[0].clone()];
    let refused = client.create("/bin/true", &[], &refused);
    client.wait(&refused, "FAILED");
    // EXIT ends the remaining jobs.
    let _left = client.create("/bin/sleep", &["1000"], &place);
    client.exit();
    shell.watch("jobs", |list| {
        let jobs = list["jobs"].as_array().expect("jobs");
        jobs.iter()
            .all(|it| it["attributes"]["jobState"] != "RUNNING")
    });
    let _done = shell.sdm("cluster remove g").done();
    shell.place.assert_gone();
}
