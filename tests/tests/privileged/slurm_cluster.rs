//! A cluster with a real Slurm, as an ordinary user has it at a shell.

use std::fs;
use std::process::{Command, Stdio};

use nix::sys::signal::Signal;
use sdm_tests::binaries;
use sdm_tests::clusters::Shell;
use sdm_tests::guide;
use sdm_tests::invoke::Client;
use sdm_tests::job::wait_held;
use sdm_tests::ordinary;
use sdm_tests::parts::Part;
use sdm_tests::place::Compiler;
use sdm_tests::processes;
use sdm_tests::run::until;
use sdm_tests::terminal::Terminal;
use serde_json::Value;

const _: () = sdm_tests::run::test_group("slurm", "one controller, and all its nodes");

const CONFIG: &str = "/tmp/sdm-slurm/slurm.conf";

fn shell() -> Shell {
    let shell = Shell::new().with("SLURM_CONF", CONFIG);
    let _done = shell.sdm("cluster add s slurm").done();
    shell
}

/// Checks that a list contains a text, and that no line is wider than 80 characters.
fn listed(shell: &Shell, line: &str, part: &str) {
    let said = shell.sdm(line).done();
    assert!(
        said.out.contains(part),
        "{line}: no {part:?} in {}",
        said.out
    );
    let wide = said.out.lines().find(|it| it.chars().count() > 80);
    assert_eq!(wide, None, "{line}");
}

/// Runs `scontrol`, for actions that only root may do.
fn scontrol(words: &[&str]) {
    let mut command = Command::new("scontrol");
    let status = command.args(words).env("SLURM_CONF", CONFIG).status();
    assert!(status.expect("scontrol").success(), "{words:?}");
}

/// `sdm` as on a login node: in a pid namespace in which no `srun` runs.
fn elsewhere(shell: &Shell, words: &[&str]) -> String {
    let user = ordinary::USER.to_string();
    let mut command = Command::new("unshare");
    command.args(["--pid", "--fork", "--kill-child", "--mount-proc", "setpriv"]);
    command.args(["--reuid", &user, "--regid", &user, "--clear-groups"]);
    command.arg(binaries::folder().join("sdm")).args(words);
    command.envs(shell.environment());
    let output = command.output().expect("unshare runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text + &String::from_utf8_lossy(&output.stderr)
}

/// A job that no partition can start is held, although Slurm's own command says that it failed.
fn is_held_although_slurm_refuses(shell: &Shell) {
    let large = shell.submit(&["-M", "s", "-n", "200", "--", "sleep", "1000"]);
    shell.wait_job(&large, "jobState", "PENDING");
    let _done = shell.sdm(&format!("hold {large}")).done();
    let _done = shell.sdm(&format!("cancel {large}")).done();
}

#[test]
fn slurm_mpi_job_is_submitted_tracked_and_inspected() {
    let Some(_slurm) = Part::slurm() else { return };
    let shell = shell();
    listed(&shell, "nodes", "n[1-4]");
    listed(&shell, "queues", "debug*");
    listed(&shell, "cluster list", "STARTED");
    let program = shell.place.compile("mpi_held", Compiler::Mpich);
    let go = shell.place.path().join("go");
    let words = [
        "-M",
        "s",
        "-n",
        "4",
        "--option=--hold",
        "--option=-N2",
        "--env",
        "SLURM_MPI_TYPE=pmi2",
        "--",
    ];
    let [program, go_word] = [&program, &go].map(|path| path.to_str().expect("text"));
    let job = shell.submit(&[&words[..], &[program, go_word]].concat());
    shell.wait_job(&job, "jobState", "PENDING");
    listed(&shell, "jobs", "JobHeldUser");
    let _done = shell.sdm(&format!("release {job}")).done();
    shell.wait_job(&job, "jobState", "RUNNING");
    // Its processes come after it.
    shell.wait_process(&job);
    listed(&shell, &format!("ps {job}"), "RUNNING");
    let target = format!("s:{job}");
    wait_held(&go, 4);
    let seen = elsewhere(&shell, &["stacks", &target]);
    for part in ["ranks 0,2-3 (3): ", "rank 1: "] {
        assert!(seen.contains(part), "{seen}");
    }
    scontrol(&["suspend", &job]);
    shell.wait_job(&job, "jobState", "SUSPENDED");
    listed(&shell, "jobs", "SUSPENDED");
    scontrol(&["resume", &job]);
    shell.wait_job(&job, "jobState", "RUNNING");
    fs::write(&go, "").expect("a file");
    shell.wait_job(&job, "jobState", "TERMINATED");
    shell.wait_job(&job, "exitCode", "7");
    listed(&shell, "jobs", "FAILED");
    let shown = shell.sdm(&format!("show {job}")).done().out;
    assert!(shown.contains("Exit code"), "{shown}");
    let said = shell.sdm(&format!("logs {job}")).done().out;
    assert!(said.contains("rank 3: sum 6"), "{said}");

    // Another user's job is shown if all users' jobs are requested.
    let mut command = Command::new("sbatch");
    command.args(["--job-name=foreign", "--output=/dev/null", "--wrap", "true"]);
    let status = command.env("SLURM_CONF", CONFIG).current_dir("/").status();
    assert!(status.expect("sbatch runs").success());
    shell.watch("jobs --all", |list| {
        let jobs = list["jobs"].as_array().expect("jobs");
        jobs.iter().any(|it| it["attributes"]["name"] == "foreign")
    });
    assert!(!shell.sdm("jobs").done().out.contains("foreign"));

    is_held_although_slurm_refuses(&shell);
    let cancelled = shell.submit(&["-M", "s", "--", "sleep", "1000"]);
    shell.wait_job(&cancelled, "jobState", "RUNNING");
    let _done = shell.sdm(&format!("cancel s:{cancelled}")).done();
    shell.wait_job(&cancelled, "jobStatus", "CANCELLED");
    listed(&shell, "jobs", "CANCELLED");
    shell
        .sdm(&format!("hold {cancelled}"))
        .refused(1, "scontrol: ");
    shell
        .words(&["submit", "--option=--no-such-option", "--", "true"])
        .refused(1, "sbatch: ");
    let _done = shell.sdm("cluster remove s").done();
    shell.place.assert_gone();
}

#[test]
fn slurm_job_is_moved_to_another_queue() {
    let Some(_slurm) = Part::slurm() else { return };
    scontrol(&["create", "PartitionName=late", "Nodes=n2"]);
    let shell = shell();
    shell.watch("queues", |list| list.to_string().contains("\"late\""));
    let job = shell.submit(&["--option=--begin=now+1hour", "--", "sleep", "1000"]);
    shell.wait_job(&job, "jobState", "PENDING");
    let asked = |job: &str| {
        let mut squeue = Command::new("squeue");
        squeue.args(["-h", "-j", job, "-o", "%P"]);
        let said = squeue.env("SLURM_CONF", CONFIG).output().expect("squeue");
        String::from_utf8_lossy(&said.stdout).trim().to_owned()
    };
    let _done = shell.sdm(&format!("move late s:{job}")).done();
    assert_eq!(asked(&job), "late");
    shell
        .sdm(&format!("move nowhere {job}"))
        .refused(1, "nowhere");
    // Slurm's users set no priority.
    for priority in ["17", "-1"] {
        shell
            .sdm(&format!("priority {priority} {job}"))
            .refused(1, "scontrol: ");
    }
    scontrol(&["update", &format!("JobId={job}"), "StartTime=now"]);
    shell.wait_job(&job, "jobState", "RUNNING");
    assert_eq!(asked(&job), "late");
    let _done = shell.sdm(&format!("cancel {job}")).done();
    // A launch configuration names the queue.
    let config = shell.place.path().join("config/sdm/config.toml");
    let profile = "[profile.night]\ncluster = \"s\"\nqueue = \"late\"\nprogram = [\"/bin/sleep\", \"1000\"]\n";
    std::fs::write(&config, profile).expect("a file");
    ordinary::give(&config);
    let job = shell.words(&["submit", "--profile", "night"]).done().out;
    let job = job.trim_end();
    shell.wait_job(job, "jobState", "RUNNING");
    assert_eq!(asked(job), "late");
    let _done = shell.sdm(&format!("cancel {job}")).done();
    let _done = shell.sdm("cluster remove s").done();
    shell.place.assert_gone();
}

#[test]
fn examples_of_docs_clusters_are_reproduced() {
    let Some(_slurm) = Part::slurm() else { return };
    let shell = Shell::new().with("SLURM_CONF", CONFIG);
    let mut variables = shell.environment();
    // It has a path of its own.
    variables.retain(|(name, _)| name != "PATH");
    guide::check("clusters.md", &shell.place, |bash| {
        bash.envs(variables);
    });
}

#[test]
fn slurm_job_is_held_until_attach() {
    let Some(_slurm) = Part::slurm() else { return };
    let shell = shell();
    let program = shell.place.compile("work", Compiler::C);
    let program = program.to_str().expect("text");
    let job = shell.submit(&["-n", "2", "--debug", "--", program]);
    shell.watch_jobs(|it| it["debugSession"].is_string());
    let user = ordinary::USER.to_string();
    let sdm = binaries::folder().join("sdm");
    let target = format!("s:{job}");
    let mut words: Vec<String> = shell
        .environment()
        .into_iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    let rest = [
        "setpriv",
        "--reuid",
        &user,
        "--regid",
        &user,
        "--clear-groups",
        sdm.to_str().expect("text"),
        "attach",
        &target,
    ];
    words.extend(rest.map(str::to_owned));
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let mut terminal = Terminal::run(&shell.place, "/usr/bin/env".as_ref(), &words, 100);
    terminal.wait("at main ()");
    terminal.ask("print 6 * 7", "ranks 0-1 (2): 42");
    terminal.keys("quit\ny\n");
    shell.wait_job(&job, "jobState", "TERMINATED");
    drop(terminal);
    let _done = shell.sdm("cluster remove s").done();
    shell.place.assert_gone();
}

#[test]
fn job_components_are_listed_across_a_slurmctld_restart() {
    // It takes the controller away.
    let Some(_slurm) = Part::slurm().map(Part::to_be_harmed) else {
        return;
    };
    let shell = shell();
    let mut command = Command::new("sbatch");
    command.args(["--parsable", "-n1", ":", "-n2"]);
    command.args(["--wrap", "srun --het-group=0,1 sleep 1000"]);
    command.envs(shell.environment()).current_dir("/tmp");
    command.args(["-o", "/dev/null"]);
    let said = ordinary::lower(&mut command).output().expect("sbatch");
    let number = String::from_utf8_lossy(&said.stdout).trim().to_owned();
    assert!(said.status.success(), "{said:?}");
    for (part, count) in [("0", "1"), ("1", "2")] {
        let part = format!("{number}+{part}");
        shell.wait_job(&part, "jobState", "RUNNING");
        shell.wait_job(&part, "jobNumProcs", count);
    }
    let pid = fs::read_to_string("/tmp/sdm-slurm/pid/slurmctld.pid").expect("its pid");
    let pid = pid.trim().parse().expect("a pid");
    processes::signal(pid, Signal::SIGTERM);
    let is_well = |list: &Value| list["clusters"][0]["reason"].is_null();
    let known = shell.watch("jobs", |list| !is_well(list));
    // The earlier data is shown meanwhile.
    let known = known.to_string();
    assert!(known.contains(&format!("{number}+1")), "{known}");
    until("slurmctld has ended", || processes::parent(pid).is_none());
    let mut controller = Command::new("/usr/sbin/slurmctld");
    controller.arg("-i").env("SLURM_CONF", CONFIG);
    let status = controller.stdin(Stdio::null()).status();
    assert!(status.expect("slurmctld").success());
    shell.watch("jobs", is_well);
    shell.wait_job(&format!("{number}+0"), "jobState", "RUNNING");
    let _done = shell.sdm(&format!("cancel {number}+0")).done();
    shell.wait_job(&format!("{number}+0"), "jobState", "TERMINATED");
    let _done = shell.sdm("cluster remove s").done();
    shell.place.assert_gone();
}

#[test]
fn grid_rpc_client_runs_its_jobs_in_slurm() {
    let Some(_slurm) = Part::slurm() else { return };
    let shell = Shell::new().with("SLURM_CONF", CONFIG);
    let mut client = Client::start(&shell, "SDMslurm");
    let [output, errors] = ["o", "e"].map(|name| shell.place.path().join(name));
    let attributes = [
        "redirect_enable true".to_owned(),
        format!("stdout_file {}", output.display()),
        format!("stderr_file {}", errors.display()),
        format!("work_directory {}", shell.place.path().display()),
        "queue_name debug".to_owned(),
        "max_wall_time 5".to_owned(),
        "host_count 2".to_owned(),
        "count 2".to_owned(),
    ];
    let words = ["-c", "echo at $SLURM_JOB_NUM_NODES; echo cried >&2"];
    let job = client.create("/bin/sh", &words, &attributes);
    client.wait(&job, "DONE");
    let said = fs::read_to_string(&output).expect("its output");
    assert_eq!(said, "at 2\nat 2\n");
    let said = fs::read_to_string(&errors).expect("its errors");
    assert_eq!(said, "cried\ncried\n");
    assert_eq!(client.ask("JOB_DESTROY", &job), "S");
    // An MPI program, which `srun` starts: it ends with 7.
    let program = shell.place.compile("mpi_held", Compiler::Mpich);
    let of_mpi = ["backend MPI", "environment SLURM_MPI_TYPE=pmi2"].map(str::to_owned);
    let words = ["/dev/null", "0"];
    let attributes = [&of_mpi[..], &attributes].concat();
    let job = client.create(program.to_str().expect("text"), &words, &attributes);
    client.wait(&job, "FAILED");
    let said = fs::read_to_string(&output).expect("its output");
    assert!(
        said.contains("held 2\n") && said.contains("rank 1: sum 1\n"),
        "{said}"
    );
    let place = ["work_directory /tmp".to_owned()];
    let runs = client.create("/bin/sleep", &["1000"], &place);
    client.wait(&runs, "ACTIVE");
    assert_eq!(client.ask("JOB_DESTROY", &runs), "S");
    client.wait(&runs, "DONE");
    let refused = ["queue_name nosuch".to_owned(), place[0].clone()];
    let refused = client.create("/bin/true", &[], &refused);
    client.wait(&refused, "FAILED");
    // A killed server leaves no job in Slurm.
    let left = client.create("/bin/sleep", &["1000"], &place);
    client.wait(&left, "ACTIVE");
    client.child.kill().expect("it runs");
    client.child.wait().expect("a child");
    let listed = || {
        let mut command = Command::new("squeue");
        command
            .args(["-h", "-t", "PD,R,CG"])
            .env("SLURM_CONF", CONFIG);
        command.output().expect("squeue runs").stdout
    };
    until("Slurm has no job", || listed().is_empty());
    until("the guard has ended", || {
        shell.place.pids("--guard-jobs").is_empty()
    });
    shell.place.assert_gone();
}
