//! Clusters, from their definition to the end of their jobs, as a user controls them from a shell.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::time::Instant;

use nix::sys::signal::Signal;
use sdm_tests::clusters::Shell;
use sdm_tests::job::wait_held;
use sdm_tests::parts;
use sdm_tests::place::{Compiler, script};
use sdm_tests::processes;
use serde_json::Value;

/// Runs `sdm doctor` on a job of a cluster and on one that does not exist, and checks the findings.
fn looked_into(shell: &Shell, runs: &str) {
    let looked = shell.sdm(&format!("doctor here:{runs}")).out;
    for line in [
        "  good    cluster        local answers",
        "  good    job            2 processes on this host",
        "  good    target         gdb can attach to 2 processes on this host",
    ] {
        assert!(looked.contains(line), "{line}: {looked}");
    }
    let looked = shell.sdm(&format!("doctor here:99{runs}")).out;
    let line = format!("  bad     job            99{runs}: no such job in here");
    assert!(looked.contains(&line), "{line}: {looked}");
    assert!(looked.contains("`sdm jobs -M here`"), "{looked}");
}

/// Checks the errors for a job that has ended, and for a cluster that does not exist.
fn cannot_be_looked_at(shell: &Shell, ended: &str, runs: &str) {
    let code_of = |verb: &str| if verb == "attach" { 124 } else { 2 };
    for verb in ["stacks", "diagnose", "profile", "attach"] {
        let said = format!(
            "sdm: here:{ended}: the job has ended (TERMINATED); `sdm logs` shows its output\n"
        );
        let done = shell.sdm(&format!("{verb} here:{ended}"));
        assert_eq!(
            (done.code, &*done.err),
            (Some(code_of(verb)), &*said),
            "{verb}"
        );
        let done = shell.sdm(&format!("{verb} nowhere:{runs}"));
        let said = format!("sdm: nowhere:{runs}: no cluster is called nowhere; defined: here\n");
        assert_eq!(
            (done.code, &*done.err),
            (Some(code_of(verb)), &*said),
            "{verb}"
        );
    }
}

/// Checks two options that `submit` refuses, and a script that is given without a path.
fn is_submitted_from_its_folder(shell: &Shell, work: &str) {
    shell
        .words(&["submit", "--time", "10", "--", work])
        .refused(
            1,
            "--time: here is of type local, which does not support this limit; --option passes options",
        );
    let clap = shell.words(&["submit", "-x", "A=b", "--", work]);
    clap.refused(2, "unexpected argument '-x'");
    // A script of this folder, without a path.
    script(shell.place.path(), "job.sh", "echo ran as \"$0\"");
    let job = shell
        .words(&["submit", "job.sh"])
        .done()
        .out
        .trim_end()
        .to_owned();
    shell.wait_job(&job, "jobState", "TERMINATED");
    let said = shell.sdm(&format!("logs {job}")).done().out;
    assert_eq!(said, "ran as ./job.sh\n");
}

/// A job that is held in a session takes commands at its prompt only, which is said.
fn is_held_in_its_session(shell: &Shell, work: &str) {
    let job = shell.submit(&["--debug", "--", work]);
    shell.watch_jobs(|it| it["debugSession"].is_string());
    let said = format!("sdm: here:{job}: a session debugs this job; `sdm attach");
    for (words, code) in [
        (&["stacks"][..], 2),
        (&["diagnose"], 2),
        (&["attach", "-c", "bt"], 124),
        (&["attach", "-x", "file"], 124),
    ] {
        let target = format!("here:{job}");
        let words = [&words[..1], &[&*target], &words[1..]].concat();
        shell.words(&words).refused(code, &said);
    }
    let _done = shell.sdm(&format!("cancel {job}")).done();
    shell.wait_job(&job, "jobState", "TERMINATED");
}

/// The reason of a job that cannot be started is the system's words, without its numbers.
fn is_refused_by_the_system(shell: &Shell) {
    let path = shell.place.path().join("no-program");
    fs::write(&path, "#!/bin/sh\n").expect("a file");
    let job = shell.submit(&["--", "./no-program"]);
    shell.wait_job(&job, "jobState", "ERROR");
    for line in ["jobs", "jobs --json", &format!("show {job}")] {
        let said = shell.sdm(line).done().out;
        assert!(said.contains("no-program: Permission denied"), "{said}");
        assert!(!said.contains("(os error"), "{said}");
    }
}

/// The queue of a job is shown by its name, and a long environment widens no other row.
fn is_shown_with_its_attributes(shell: &Shell, job: &str) {
    let queues = shell.sdm("queues --json").done().out;
    let queues: Value = serde_json::from_str(&queues).expect("JSON");
    let queue = queues["queues"][0]["attributes"]["name"].as_str();
    let shown = shell.sdm(&format!("show {job}")).done().out;
    let value = |name: &str| {
        let line = shown.lines().find(|line| line.contains(name));
        line.and_then(|line| line.split_whitespace().last())
    };
    assert_eq!(value(" Queue "), queue, "{shown}");
    assert_eq!(value(" Name "), Some("turns"), "{shown}");
    let folder = shell.place.path().display().to_string();
    let wide = |line: &&str| line.chars().count() > 120 && !line.contains(&folder);
    assert_eq!(shown.lines().find(wide), None);
}

#[test]
fn job_is_submitted_watched_inspected_and_ended() {
    let shell = Shell::new();
    shell
        .sdm("jobs")
        .refused(1, "no cluster is defined; `sdm cluster add NAME TYPE`");
    let _done = shell.sdm("cluster add here local").done();
    shell.sdm("cluster add here local").refused(1, "here");
    assert_eq!(shell.state("here")["state"], "STARTED");
    for verb in ["nodes", "queues", "partitions", "jobs", "cluster list"] {
        let said = shell.sdm(verb).done();
        let wide = said.out.lines().find(|line| line.chars().count() > 80);
        assert_eq!(wide, None, "{verb}");
    }
    let ended = shell.words(&[
        "submit",
        "--",
        "/bin/sh",
        "-c",
        "grep SigBlk /proc/self/status; echo cried >&2; exit 3",
    ]);
    let ended = ended.done().out.trim_end().to_owned();
    shell.wait_job(&ended, "jobState", "TERMINATED");
    shell.wait_job(&ended, "exitCode", "3");
    // No signal is kept from it.
    let said = shell.sdm(&format!("logs {ended}")).done().out;
    assert_eq!(said, "SigBlk:\t0000000000000000\n");
    assert_eq!(
        shell.sdm(&format!("logs --err {ended}")).done().out,
        "cried\n"
    );
    assert!(shell.sdm("jobs").done().out.contains("exit code 3"));

    let work = shell.place.compile("loop", Compiler::C);
    let work = work.to_str().expect("text");
    let runs = shell.words(&["submit", "-n", "2", "--name", "turns", "--", work]);
    let runs = runs.done().out.trim_end().to_owned();
    shell.wait_job(&runs, "jobState", "RUNNING");
    let shown = shell.sdm(&format!("ps {runs}")).done();
    assert!(shown.out.contains("RUNNING"), "{}", shown.out);
    is_shown_with_its_attributes(&shell, &runs);
    let stacks = shell.sdm(&format!("stacks here:{runs}"));
    assert_eq!(stacks.code, Some(0), "{} {}", stacks.out, stacks.err);
    assert!(stacks.out.contains("main ()"), "{}", stacks.out);
    looked_into(&shell, &runs);
    shell
        .sdm(&format!("stacks here:99{runs}"))
        .refused(2, &format!("sdm: 99{runs}: no such job in here"));
    cannot_be_looked_at(&shell, &ended, &runs);
    is_submitted_from_its_folder(&shell, work);
    is_held_in_its_session(&shell, work);
    is_refused_by_the_system(&shell);
    shell
        .sdm(&format!("hold {runs}"))
        .refused(1, "start at once");

    // The job does not depend on the manager: it runs on without it, and another manager ends it.
    let _done = shell.sdm("cluster stop here").done();
    assert_eq!(shell.state("here")["state"], "STOPPED");
    assert_eq!(shell.place.pids("sdm-rm here"), Vec::<u32>::new());
    assert_eq!(shell.place.pids("sdm-agent --rm"), Vec::<u32>::new());
    assert_ne!(shell.place.pids("loop"), Vec::<u32>::new());
    shell.sdm("jobs").refused(1, "`sdm cluster start here`");
    let _done = shell.sdm("cluster start here").done();
    let _done = shell.sdm(&format!("cancel {runs}")).done();
    shell.wait_job(&runs, "jobState", "TERMINATED");
    shell
        .sdm("cancel 999")
        .refused(1, "999: no such job in here");
    let _done = shell.sdm("cluster remove here").done();
    shell.place.assert_gone();
}

#[test]
fn failing_agent_is_an_error_with_its_reason() {
    let shell = Shell::new();
    let _done = shell.sdm("cluster add here local").done();
    let job = shell
        .sdm("submit -- sleep 1000")
        .done()
        .out
        .trim_end()
        .to_owned();
    shell.wait_job(&job, "jobState", "RUNNING");
    processes::signal(shell.pid("sdm-agent --rm local"), Signal::SIGKILL);
    shell.watch("jobs", |list| list["clusters"][0]["state"] == "ERROR");
    let reason = shell.state("here")["reason"].to_string();
    assert!(reason.contains("the cluster's agent has ended"), "{reason}");
    // The earlier data is shown, marked as stale.
    let jobs = shell.sdm("jobs --json");
    let shown: Value = serde_json::from_str(&jobs.out).expect("JSON");
    assert_eq!(shown["clusters"][0]["stale"], true, "{shown}");
    assert_eq!(shown["jobs"].as_array().map(Vec::len), Some(1), "{shown}");
    shell
        .sdm(&format!("cancel {job}"))
        .refused(1, "the cluster's agent has ended");
    // After a restart the manager has its job.
    let _done = shell.sdm("cluster start here").done();
    let _done = shell.sdm(&format!("cancel {job}")).done();
    shell.wait_job(&job, "jobState", "TERMINATED");

    let _path = shell.agent(
        "babble",
        "#!/bin/sh\necho this is no message at all\nexec sleep 1000\n",
    );
    shell
        .sdm("cluster add odd babble")
        .refused(1, "the cluster's agent sent an invalid message");
    let _path = shell.agent("gone", "#!/bin/sh\necho no license >&2\nexit 4\n");
    shell.sdm("cluster add left gone").refused(1, "no license");
    // A cluster that could not be started is not kept; a kept cluster in ERROR is not shown as empty.
    let listed = shell.sdm("cluster list").done().out;
    assert!(
        !listed.contains("odd") && !listed.contains("left"),
        "{listed}"
    );
    let _done = shell.sdm("cluster add left gone --no-start").done();
    shell.sdm("cluster start left").refused(1, "no license");
    for list in ["jobs -M left", "nodes -M left", "queues -M left"] {
        let said = shell.sdm(list);
        assert_eq!(said.out, "");
        said.refused(1, "left: ERROR since ");
    }
    let _path = shell.agent("still", "#!/bin/sh\nexec sleep 1000\n");
    let _done = shell.sdm("cluster add late still --no-start").done();
    let file = shell.place.path().join("config/sdm/clusters.toml");
    let text = fs::read_to_string(&file).expect("it is defined");
    let hasty = |line: &str| match line.starts_with("patience") {
        true => "patience = 2\n".to_owned(),
        false => format!("{line}\n"),
    };
    let text: String = text.lines().map(hasty).collect();
    fs::write(&file, text).expect("it is ours");
    shell
        .sdm("cluster start late")
        .refused(1, "has not answered");
    // Faults of other clusters do not affect this one.
    assert_eq!(shell.state("here")["state"], "STARTED");
    // A stopped agent is not waited for for long.
    processes::signal(shell.pid("sdm-agent --rm local"), Signal::SIGSTOP);
    let _done = shell.sdm("cluster stop here left late").done();
    shell.place.assert_gone();
}

#[test]
fn cluster_definitions_persist_and_broken_ones_are_named() {
    let shell = Shell::new();
    let _done = shell
        .sdm("cluster add far slurm --host me@login --ssh-option=-p2222 --no-start")
        .done();
    let _done = shell
        .words(&["cluster", "edit", "far", "--description", "the big one"])
        .done();
    let listed = shell.sdm("cluster list").done().out;
    assert!(
        listed.contains("me@login") && listed.contains("the big one"),
        "{listed}"
    );
    shell.sdm("cluster add a/b local").refused(1, "a/b");
    shell.sdm("cluster remove nobody").refused(1, "nobody");
    shell
        .sdm("cluster add site nothere")
        .refused(1, "sdm-rm-nothere");
    let path = shell.agent("theirs", "#!/bin/sh\nexit 0\n");
    fs::set_permissions(&path, Permissions::from_mode(0o777)).expect("it is ours");
    shell
        .sdm("cluster add open theirs")
        .refused(1, "other users may write to it");
    let file = shell.place.path().join("config/sdm/clusters.toml");
    let text = fs::read_to_string(&file).expect("it is defined");
    fs::write(&file, format!("{text}\n[[cluster\n")).expect("it is ours");
    shell.sdm("cluster list").refused(1, "clusters.toml");
    fs::write(&file, text).expect("it is ours");
    let _done = shell.sdm("cluster remove far").done();
    shell
        .sdm("cluster list")
        .refused(1, "no cluster is defined");
    shell.place.assert_gone();
}

/// An MPI job whose launcher is a process of the job's runner: its ranks are found by their pids, and can be inspected.
fn an_mpi_job_is_known_by_its_ranks(
    shell: &Shell,
    kind: &str,
    compiler: Compiler,
    options: &[&str],
) {
    let _done = shell.sdm(&format!("cluster add m {kind}")).done();
    let program = shell.place.compile("mpi_held", compiler);
    let go = shell.place.path().join("go");
    let [program, go_word] = [&program, &go].map(|path| path.to_str().expect("text"));
    let job = shell.submit(&[&["-n", "3"], options, &["--", program, go_word]].concat());
    let pids = |list: &Value| -> Vec<u32> {
        let of = |it: &Value| it["attributes"]["processPID"].as_str()?.parse().ok();
        let processes = list["processes"].as_array().expect("processes");
        processes.iter().filter_map(of).collect()
    };
    let listed = shell.watch(&format!("ps {job}"), |list| pids(list).len() == 3);
    let mut told = pids(&listed);
    let mut there = shell.place.pids(go_word);
    there.retain(|pid| {
        let name = fs::read_to_string(format!("/proc/{pid}/comm"));
        name.is_ok_and(|name| name == "mpi_held\n")
    });
    told.sort_unstable();
    there.sort_unstable();
    assert_eq!(told, there, "{kind}");
    wait_held(&go, 3);
    let seen = shell.sdm(&format!("stacks m:{job}"));
    for part in ["ranks 0,2 (2): main ()", "rank 1: main ()"] {
        assert!(seen.out.contains(part), "{kind}: {} {}", seen.out, seen.err);
    }
    fs::write(&go, "").expect("a file");
    shell.wait_job(&job, "jobState", "TERMINATED");
    shell.wait_job(&job, "exitCode", "7");
    let said = shell.sdm(&format!("logs {job}")).done().out;
    assert!(said.contains("rank 2: sum 3"), "{said}");
    let _done = shell.sdm("cluster remove m").done();
    shell.place.assert_gone();
}

#[test]
fn jobs_of_open_mpi_and_hydra_list_their_ranks() {
    let root = |shell: Shell| {
        let shell = shell.with("OMPI_ALLOW_RUN_AS_ROOT", "1");
        shell.with("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
    };
    an_mpi_job_is_known_by_its_ranks(
        &root(Shell::new()),
        "openmpi",
        Compiler::OpenMpi,
        &["--option=--oversubscribe"],
    );
    an_mpi_job_is_known_by_its_ranks(&Shell::new(), "hydra", Compiler::Mpich, &[]);
    if let Some(mpi) = parts::openmpi5() {
        let path = std::env::var("PATH").unwrap_or_default();
        let path = format!("{}:{path}", mpi.join("bin").display());
        let shell = root(Shell::new()).with("PATH", &path);
        an_mpi_job_is_known_by_its_ranks(
            &shell,
            "openmpi",
            Compiler::OpenMpi5,
            &["--option=--map-by", "--option=:OVERSUBSCRIBE"],
        );
    }
}

/// A list lacks a job that another agent has submitted only if its age says that it is older. A query has the manager
/// read again.
#[test]
fn query_reads_the_manager_again_and_shows_the_age() {
    let shell = Shell::new();
    for name in ["one", "other"] {
        let _done = shell.sdm(&format!("cluster add {name} local")).done();
    }
    let job = shell.submit(&["-M", "one", "--", "/bin/sleep", "1000"]);
    let submitted = Instant::now();
    // A list may be a second old: it is asked for until the job is in it, and must admit its age until then.
    loop {
        let passed = submitted.elapsed().as_millis();
        let mut jobs = shell.command(&["jobs", "-M", "other", "--json"]);
        let said = jobs.output().expect("sdm").stdout;
        let listed: Value = serde_json::from_slice(&said).expect("JSON");
        let mut jobs = listed["jobs"].as_array().expect("jobs").iter();
        if jobs.any(|it| it["attributes"]["systemJobId"] == *job) {
            break;
        }
        let age = listed["clusters"][0]["age_ms"].as_u64();
        assert!(age.is_some_and(|age| u128::from(age) >= passed), "{listed}");
    }
    let _done = shell.sdm(&format!("cancel one:{job}")).done();
    let jobs = shell.sdm("jobs").done().out;
    let last = jobs.lines().last().unwrap_or_default();
    assert!(last.starts_with("age: one "), "{jobs}");
    assert!(last.contains(" s, other "), "{jobs}");
    let clusters = shell.sdm("cluster list").done().out;
    assert!(clusters.contains("  AGE  "), "{clusters}");
    for name in ["one", "other"] {
        let _done = shell.sdm(&format!("cluster remove {name}")).done();
    }
}

/// Three clusters have the same jobs under ids of their own, one of them under texts.
#[test]
fn elements_of_each_cluster_have_ids_from_a_range_of_their_own() {
    let shell = Shell::new();
    for words in [
        "a local",
        "b local",
        "c local --agent-arg=--ids --agent-arg=text",
    ] {
        let _done = shell.sdm(&format!("cluster add {words}")).done();
    }
    let job = shell.submit(&["-M", "c", "--", "sleep", "1000"]);
    let list = shell.watch("jobs", |list| {
        let jobs = list["jobs"].as_array().expect("jobs");
        let runs = jobs
            .iter()
            .filter(|it| it["attributes"]["jobState"] == "RUNNING");
        runs.count() == 3
    });
    let id_of = |cluster: &str| {
        let mut jobs = list["jobs"].as_array().expect("jobs").iter();
        let job = jobs.find(|it| it["cluster"] == cluster).expect("its job");
        let queue = job["attributes"]["queueId"].as_str().expect("an id");
        let id = job["id"].as_str().expect("an id");
        [id, queue].map(str::to_owned)
    };
    for (cluster, base) in [("a", 1), ("b", 16_777_217)] {
        for id in id_of(cluster) {
            let id: u32 = id.parse().expect("a number");
            assert!((base + 1..base + 100).contains(&id), "{cluster}: {id}");
        }
    }
    for id in id_of("c") {
        assert!(id.starts_with("33554433:"), "{id}");
    }
    let _done = shell.sdm(&format!("cancel c:{job}")).done();
    shell.watch("jobs", |list| {
        let jobs = list["jobs"].as_array().expect("jobs");
        jobs.iter()
            .all(|it| it["attributes"]["jobState"] == "TERMINATED")
    });
    for name in ["a", "b", "c"] {
        let _done = shell.sdm(&format!("cluster remove {name}")).done();
    }
    shell.place.assert_gone();
}
