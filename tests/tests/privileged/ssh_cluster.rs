//! A cluster behind ssh, as an ordinary user uses it from a shell.

use std::fs;
use std::path::Path;

use sdm_tests::clusters::Shell;
use sdm_tests::invoke::Client;
use sdm_tests::parts::Part;
use sdm_tests::place::Compiler;
use sdm_tests::run::until;
use sdm_tests::terminal::Terminal;
use sdm_tests::{binaries, ordinary, processes};

use crate::ssh::CONFIG;

const _: () = sdm_tests::run::test_group("hosts", "hosts in namespaces, with one sshd each");

/// Defines the cluster `far`, behind ssh. Processes that ssh starts there have the same folders, which are shared,
/// as home folders are.
fn define(shell: &Shell) {
    let place = shell.place.path().display();
    let agent = binaries::folder().join("sdm-agent");
    let wrapper = shell.place.path().join("sdm-agent");
    let text = format!(
        "#!/bin/sh\nexport XDG_STATE_HOME='{place}/state'\nexec '{}' \"$@\"\n",
        agent.display()
    );
    shell.write_program(&wrapper, &text);
    let sdm = format!(
        "#!/bin/sh\nexport XDG_RUNTIME_DIR='{place}/run'\nexec '{}' \"$@\"\n",
        binaries::folder().join("sdm").display()
    );
    shell.write_program(&shell.place.path().join("sdm"), &sdm);
    let server = format!(
        "#!/bin/sh\nexec '{}' \"$@\"\n",
        binaries::folder().join("sdm-server").display()
    );
    shell.write_program(&shell.place.path().join("sdm-server"), &server);
    let wrapper = wrapper.to_str().expect("text");
    let far = [
        "cluster",
        "add",
        "far",
        "local",
        "--host",
        "h2",
        "--agent",
        wrapper,
        "--ssh-option=-F",
        "--ssh-option",
        CONFIG,
    ];
    let _done = shell.words(&far).done();
}

/// Follows a job's output on the screen while it runs, and by `logs` until the job has ended. The remote processes that
/// follow it end as well.
fn output_is_followed(shell: &Shell, folder: &str) {
    let script = "echo one; until [ -e go ]; do sleep 0.1; done; echo two";
    let writes = shell.submit(&[folder, "--", "/bin/sh", "-c", script]);
    shell.wait_job(&writes, "jobState", "RUNNING");
    let words = shell.lowered(&["top"]);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let mut terminal = Terminal::run(&shell.place, "/usr/bin/env".as_ref(), &words, 120);
    terminal.keys("3");
    terminal.wait_displayed(&["TERMINATED"]);
    terminal.keys("G");
    terminal.wait_displayed(&[&format!("processes of far:{writes}"), "RUNNING"]);
    terminal.keys("\t\r");
    terminal.wait_displayed(&["> process", "one"]);
    fs::write(shell.place.path().join("go"), "").expect("a file");
    terminal.wait_displayed(&["two"]);
    terminal.keys("q");
    assert_eq!(terminal.leave().0, 0);
    let followed = shell.sdm(&format!("logs -f {writes}")).done().out;
    assert_eq!(followed, "one\ntwo\n");
    until("the output is followed no more", || {
        shell.place.pids("tail").is_empty()
    });
}

#[test]
fn jobs_on_a_remote_host_are_submitted_inspected_and_ended() {
    let Some(_hosts) = Part::hosts() else { return };
    let shell = Shell::new();
    let place = shell.place.path().display();
    define(&shell);
    let nodes = shell.sdm("nodes").done().out;
    assert!(nodes.contains("h2"), "{nodes}");
    let work = shell.place.compile("loop", Compiler::C);
    let folder = format!("--directory={place}");
    let job = shell.submit(&["-n", "2", &folder, "--", work.to_str().expect("text")]);
    shell.wait_job(&job, "jobState", "RUNNING");
    let target = format!("far:{job}");
    shell.wait_process(&job);
    let seen = shell.sdm(&format!("stacks {target}"));
    assert_eq!(seen.code, Some(0), "{} {}", seen.out, seen.err);
    assert!(seen.out.contains("main ()"), "{}", seen.out);
    // `sdm doctor` checks the cluster, the job and the host, which is reached by the cluster's own options.
    let looked = shell.sdm(&format!("doctor {target}")).out;
    for line in [
        "  good    cluster        local on h2 answers",
        "the job was found; `sdm attach` debugs it from h2",
        "  good    ssh            the host is reachable",
        "  good    server         ",
    ] {
        assert!(looked.contains(line), "{line}: {looked}");
    }
    let talks = shell.submit(&[&folder, "--", "/bin/sh", "-c", "hostname; exit 5"]);
    shell.wait_job(&talks, "exitCode", "5");
    assert_eq!(shell.sdm(&format!("logs {talks}")).done().out, "h2\n");
    output_is_followed(&shell, &folder);

    // The connection is cut: the earlier data stays, marked as stale, and the job runs on.
    for ssh in shell.place.pids("ssh") {
        // One that did something else may have ended by itself in between.
        processes::kill_if_there(ssh);
    }
    let jobs = shell.watch("jobs", |list| list["clusters"][0]["state"] == "ERROR");
    assert_eq!(jobs["clusters"][0]["stale"], true, "{jobs}");
    assert_eq!(jobs["jobs"].as_array().map(Vec::len), Some(3), "{jobs}");
    let _done = shell.sdm("cluster start far").done();
    let _done = shell.sdm(&format!("cancel {job}")).done();
    shell.wait_job(&job, "jobState", "TERMINATED");
    let _done = shell.sdm("cluster remove far").done();
    shell.place.assert_gone();

    let nowhere = [
        "cluster",
        "add",
        "gone",
        "local",
        "--host",
        "no-such-host",
        "--ssh-option=-F",
        "--ssh-option",
        CONFIG,
    ];
    shell.words(&nowhere).refused(1, "no-such-host");
    // The cluster is not kept.
    shell.sdm("cluster remove gone").refused(1, "not defined");
    shell.place.assert_gone();
}

#[test]
fn grid_rpc_client_runs_its_jobs_on_a_remote_host() {
    let Some(_hosts) = Part::hosts() else { return };
    let shell = Shell::new();
    let place = shell.place.path().display();
    let agent = shell.place.path().join("sdm-agent");
    let text = format!(
        "#!/bin/sh\nexport XDG_STATE_HOME='{place}/state'\nexec '{}' \"$@\"\n",
        binaries::folder().join("sdm-agent").display()
    );
    shell.write_program(&agent, &text);
    let mut client = Client::start(&shell, "SDMssh");
    // An executable that exists only here is copied to the host, and removed there.
    let program = shell.place.path().join("says");
    shell.write_program(&program, "#!/bin/sh\nhostname\necho $0\necho cried >&2\n");
    let attributes = [
        "hostname h2".to_owned(),
        "ssh_option -F".to_owned(),
        format!("ssh_option {CONFIG}"),
        format!("agent_path {}", agent.display()),
        "staging true".to_owned(),
        format!("tmp_dir {place}"),
        "redirect_enable true".to_owned(),
        format!("stdout_file {place}/o"),
        format!("stderr_file {place}/e"),
    ];
    let job = client.create(program.to_str().expect("text"), &[], &attributes);
    client.wait(&job, "DONE");
    let read = |name: &str| fs::read_to_string(shell.place.path().join(name)).expect("a file");
    let said = read("o");
    let (host, staged) = said.trim_end().split_once('\n').expect("two lines");
    assert_eq!((host, &*read("e")), ("h2", "cried\n"));
    assert!(staged.contains("/sdm-staged-"), "{staged}");
    assert!(!Path::new(staged).exists(), "{staged} is left");
    // So is an MPI program, which its launcher starts there.
    for compiler in [Compiler::Mpich, Compiler::OpenMpi] {
        let program = shell.place.compile("mpi_sum", compiler);
        let words = ["backend MPI".to_owned(), "count 2".to_owned()];
        let words = [&words[..], &attributes].concat();
        let job = client.create(program.to_str().expect("text"), &[], &words);
        client.wait(&job, "DONE");
        let said = read("o");
        let mut lines: Vec<&str> = said.lines().collect();
        lines.sort_unstable();
        assert_eq!(
            lines,
            ["rank 0 of 2: sum 3", "rank 1 of 2: sum 3"],
            "{said}"
        );
    }
    // A configuration by which only the job's own port is the right one.
    let config = shell.place.path().join("ssh_config");
    let text = fs::read_to_string(CONFIG).expect("a configuration");
    fs::write(&config, format!("Port 1\n{text}")).expect("a file");
    ordinary::give(&config);
    for (port, state) in [(22, "DONE"), (0, "FAILED")] {
        let words = [
            "hostname h2".to_owned(),
            format!("port {port}"),
            "ssh_option -F".to_owned(),
            format!("ssh_option {}", config.display()),
            attributes[3].clone(),
        ];
        let job = client.create("/bin/true", &[], &words);
        client.wait(&job, state);
    }
    let words = &attributes[..4];
    let runs = client.create("/bin/sleep", &["1000"], words);
    client.wait(&runs, "ACTIVE");
    assert_eq!(client.ask("JOB_DESTROY", &runs), "S");
    client.wait(&runs, "DONE");
    client.exit();
    shell.place.assert_gone();
}
