//! The invoke server, as a GridRPC client has it, with the managers of this host.

use std::fs;

use nix::sys::signal::Signal;
use sdm_tests::binaries;
use sdm_tests::clusters::Shell;
use sdm_tests::invoke::Client;
use sdm_tests::place::Compiler;
use sdm_tests::processes;
use sdm_tests::run::until;

fn wait_gone(shell: &Shell, part: &str) {
    until(part, || shell.place.pids(part).is_empty());
}

#[test]
fn jobs_are_started_notified_once_and_destroyed() {
    let shell = Shell::new();
    let mut client = Client::start(&shell, "SDM");
    client.write(&["QUERY_FEATURES".to_owned()]);
    assert_eq!(client.reply(), "SM");
    while client.reply() != "REPLY_END" {}
    // All output is in the client's files before the job's end is reported.
    let files = ["o", "e"].map(|name| shell.place.path().join(name).display().to_string());
    let redirect = [
        "redirect_enable true".to_owned(),
        format!("stdout_file {}", files[0]),
        format!("stderr_file {}", files[1]),
        "environment WORD=two words".to_owned(),
        "nonsense".to_owned(),
        "max_time 5".to_owned(),
    ];
    let script = "echo \"$WORD $0\"; i=0; while [ $i -lt 20000 ]; do echo line $i; i=$((i+1)); done; echo cried >&2";
    let ended = client.create("/bin/sh", &["-c", script, "ng"], &redirect);
    client.wait(&ended, "DONE");
    let said = fs::read_to_string(&files[0]).expect("its output");
    assert!(said.starts_with("two words ng\nline 0\n"), "{said:.80}");
    assert!(said.ends_with("line 19999\n"));
    assert_eq!(
        fs::read_to_string(&files[1]).expect("its errors"),
        "cried\n"
    );
    assert_eq!(client.ask("JOB_STATUS", &ended), "S DONE");
    assert_eq!(client.ask("JOB_DESTROY", &ended), "S");
    assert_eq!(client.ask("JOB_DESTROY", &ended), "F no such job");

    let failed = client.create("/bin/sh", &["-c", "exit 3"], &[]);
    client.wait(&failed, "FAILED");
    let missing = client.create("/no/such/program", &[], &[]);
    client.wait(&missing, "FAILED");
    let refused = client.try_create("/bin/true", &[], &["count none".to_owned()]);
    assert_eq!(refused, "F count is `none`: expected a number");
    let far = client.create("/bin/true", &[], &["jobmanager jobmanager-lsf".to_owned()]);
    client.wait(&far, "FAILED");

    // A running job has ended before the answer to its destruction, and is DONE.
    let two = ["count 2".to_owned()];
    let runs = client.create("/bin/sleep", &["1000"], &two);
    client.wait(&runs, "ACTIVE");
    assert_eq!(shell.place.pids("sleep 1000").len(), 2);
    assert_eq!(client.ask("JOB_STATUS", &runs), "S ACTIVE");
    assert_eq!(client.ask("JOB_DESTROY", &runs), "S");
    client.wait(&runs, "DONE");
    wait_gone(&shell, "sleep 1000");
    let log = fs::read_to_string(shell.place.path().join("invoke.log")).expect("a log");
    assert!(
        log.contains("attribute nonsense: ignored, because it is unknown"),
        "{log}"
    );
    assert!(
        log.contains("max_wall_time 5: ignored, because this resource manager has no such limit"),
        "{log}"
    );
    client.exit();
    shell.place.assert_gone();
}

#[test]
fn invoke_server_job_is_a_cluster_job() {
    let shell = Shell::new();
    let _done = shell.sdm("cluster add here local").done();
    let mut client = Client::start(&shell, "SDMlocal");
    let work = shell.place.compile("loop", Compiler::C);
    let job = client.create(work.to_str().expect("text"), &[], &[]);
    client.wait(&job, "ACTIVE");
    shell.wait_job("1", "jobState", "RUNNING");
    shell.wait_process("1");
    let stacks = shell.sdm("stacks here:1");
    assert!(
        stacks.out.contains("main ()"),
        "{} {}",
        stacks.out,
        stacks.err
    );
    assert_eq!(client.ask("JOB_DESTROY", &job), "S");
    // One that is debugged is held in a session.
    let held = client.create(
        work.to_str().expect("text"),
        &[],
        &["sdm_debug true".to_owned()],
    );
    shell.watch_jobs(|it| it["debugSession"].is_string());
    assert_eq!(client.ask("JOB_DESTROY", &held), "S");
    client.wait(&held, "DONE");
    client.exit();
    let _done = shell.sdm("cluster remove here").done();
    shell.place.assert_gone();
}

#[test]
fn mpi_program_runs_under_the_launcher_of_its_mpi() {
    let shell = Shell::new().with("OMPI_ALLOW_RUN_AS_ROOT", "1");
    let shell = shell.with("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    let mut client = Client::start(&shell, "SDM");
    // A server type for one MPI starts anything by its launcher, whatever it is linked with.
    let (mut open_mpi, mut hydra) = (
        Client::start(&shell, "SDMopenmpi"),
        Client::start(&shell, "SDMhydra"),
    );
    let output = shell.place.path().join("out").display().to_string();
    let attributes = [
        "backend MPI".to_owned(),
        "count 2".to_owned(),
        "redirect_enable true".to_owned(),
        format!("stdout_file {output}"),
    ];
    for (client, variable) in [
        (&mut open_mpi, "OMPI_COMM_WORLD_SIZE"),
        (&mut hydra, "PMI_SIZE"),
    ] {
        let words = ["-c".to_owned(), format!("echo size ${variable}")];
        let job = client.create(
            "/bin/sh",
            &words.each_ref().map(|it| it.as_str()),
            &attributes,
        );
        client.wait(&job, "DONE");
        let said = fs::read_to_string(&output).expect("its output");
        assert_eq!(said, "size 2\nsize 2\n", "{variable}");
    }
    for (of_type, compiler) in [(None, Compiler::OpenMpi), (None, Compiler::Mpich)]
        .into_iter()
        .chain([
            (Some(&mut open_mpi), Compiler::OpenMpi),
            (Some(&mut hydra), Compiler::Mpich),
        ])
    {
        let client = of_type.unwrap_or(&mut client);
        let program = shell.place.compile("mpi_held", compiler);
        // Rank 0 waits for a file, which exists.
        let words = ["/dev/null", "0"];
        let job = client.create(program.to_str().expect("text"), &words, &attributes);
        // It ends with 7.
        client.wait(&job, "FAILED");
        let said = fs::read_to_string(&output).expect("its output");
        assert!(
            said.contains("held 2\n") && said.contains("rank 1: sum 1\n"),
            "{said}"
        );
    }
    let plain = client.create("/bin/true", &[], &["backend MPI".to_owned()]);
    client.wait(&plain, "FAILED");
    for client in [client, open_mpi, hydra] {
        client.exit();
    }
    shell.place.assert_gone();
}

#[test]
fn ended_client_or_killed_server_leaves_no_jobs() {
    let shell = Shell::new();
    // EXIT with jobs that run is an ordinary case.
    let mut client = Client::start(&shell, "SDM");
    let job = client.create("/bin/sleep", &["1000"], &[]);
    client.wait(&job, "ACTIVE");
    client.exit();
    wait_gone(&shell, "sleep 1000");
    // So is a client that is gone.
    let mut client = Client::start(&shell, "SDM");
    let job = client.create("/bin/sleep", &["1000"], &[]);
    client.wait(&job, "ACTIVE");
    client.close();
    assert!(client.child.wait().expect("a child").success());
    wait_gone(&shell, "sleep 1000");
    // A server that is killed, between two jobs and in the middle of one.
    for wait in [true, false] {
        let mut client = Client::start(&shell, "SDM");
        let job = client.create("/bin/sleep", &["1000"], &[]);
        if wait {
            client.wait(&job, "ACTIVE");
        }
        processes::signal(client.child.id(), Signal::SIGKILL);
        client.child.wait().expect("a child");
        until("the guard has ended", || {
            shell.place.pids("--guard-jobs").is_empty()
        });
        wait_gone(&shell, "sleep 1000");
    }
    // A job whose leader is killed has failed.
    let mut client = Client::start(&shell, "SDM");
    let job = client.create("/bin/sleep", &["1000"], &[]);
    client.wait(&job, "ACTIVE");
    processes::signal(shell.pid("sleep 1000"), Signal::SIGKILL);
    client.wait(&job, "FAILED");
    client.exit();
    shell.place.assert_gone();
}

/// Number of descriptors of a process, and its resident memory in kB.
fn size_of(pid: u32) -> (usize, u64) {
    let count = fs::read_dir(format!("/proc/{pid}/fd"))
        .expect("it runs")
        .count();
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    (count, kilobytes.expect("a number"))
}

#[test]
fn agent_copied_as_an_invoke_server_runs_a_job() {
    let shell = Shell::new();
    let own = shell.place.path().join("ng_invoke_server.SDMlocal");
    fs::copy(binaries::folder().join("sdm-agent"), own).expect("a copy");
    let mut client = Client::start(&shell, "SDMlocal");
    let job = client.create("/bin/true", &[], &[]);
    client.wait(&job, "DONE");
    // The server and its guard are left; the job's runner ends by itself.
    until("two servers", || {
        shell.place.pids("ng_invoke_server.SDMlocal").len() == 2
    });
    client.exit();
    shell.place.assert_gone();
}

/// At each step of a job's life the client hangs up, or the server, the guard or the runner is killed. The runner is
/// killed only once it has recorded its pid.
#[test]
fn process_killed_at_any_job_step_leaves_no_process() {
    let shell = Shell::new();
    let usual = "hostname localhost\nport 0\nclient_name c\nexecutable_path /bin/sleep\nargument 1000\nbackend NORMAL\ncount 2";
    let begin: Vec<String> = format!("JOB_CREATE 1\n{usual}")
        .lines()
        .map(str::to_owned)
        .collect();
    let steps = [
        "in a request",
        "asked for",
        "numbered",
        "active",
        "destroyed",
    ];
    for (step, what) in steps.iter().enumerate() {
        for who in ["client", "server", "guard", "runner"] {
            // A runner that is killed before it has recorded its pid is waited for for half a minute.
            if who == "runner" && step < 3 {
                continue;
            }
            let mut client = Client::start(&shell, "SDM");
            let mut job = None;
            match step {
                0 => client.write(&begin),
                1 => {
                    client.write(&begin);
                    let rest = "staging false\nredirect_enable false\nstatus_polling 0\nrefresh_credential 0\nJOB_CREATE_END";
                    client.write(&rest.lines().map(str::to_owned).collect::<Vec<_>>());
                }
                _ => job = Some(client.create("/bin/sleep", &["1000"], &["count 2".to_owned()])),
            }
            if let Some(job) = &job {
                if step >= 3 {
                    client.wait(job, "ACTIVE");
                }
                if step == 4 {
                    client.write(&[format!("JOB_DESTROY {job}")]);
                }
            }
            match who {
                "client" => client.close(),
                "server" => processes::signal(client.child.id(), Signal::SIGKILL),
                _ => {
                    let part = if who == "guard" {
                        "--guard-jobs"
                    } else {
                        "--run-job"
                    };
                    for pid in shell.place.pids(part) {
                        processes::kill_if_there(pid);
                    }
                }
            }
            // The other jobs run on, and end with their client.
            client.close();
            client.child.wait().expect("a child");
            for part in ["--guard-jobs", "--run-job", "sleep 1000"] {
                println!("{who} killed, {what}: {part}");
                wait_gone(&shell, part);
            }
        }
    }
    shell.place.assert_gone();
}

/// Number of jobs in sequence: `SDM_INVOKE_JOBS`, for the figures of docs/performance.md.
fn jobs_in_a_row() -> usize {
    let given = std::env::var("SDM_INVOKE_JOBS").ok();
    given.and_then(|count| count.parse().ok()).unwrap_or(90)
}

#[test]
fn many_jobs_run_at_once_and_in_sequence_without_a_leak() {
    let shell = Shell::new();
    let mut client = Client::start(&shell, "SDM");
    let jobs: Vec<String> = (0..64)
        .map(|_| client.create("/bin/sleep", &["1000"], &[]))
        .collect();
    for job in &jobs {
        client.wait(job, "ACTIVE");
    }
    assert_eq!(shell.place.pids("sleep 1000").len(), 64);
    for job in &jobs {
        assert_eq!(client.ask("JOB_DESTROY", job), "S");
        client.wait(job, "DONE");
    }
    wait_gone(&shell, "sleep 1000");
    let mut sizes = Vec::new();
    let count = jobs_in_a_row();
    for index in 0..count {
        let job = client.create("/bin/true", &[], &[]);
        client.wait(&job, "DONE");
        assert_eq!(client.ask("JOB_DESTROY", &job), "S");
        client.jobs.clear();
        if (index + 1) % (count / 3) == 0 {
            sizes.push(size_of(client.child.id()));
        }
    }
    println!("{count} jobs, descriptors and kB behind each third: {sizes:?}");
    let (first, last) = (sizes[0], sizes[2]);
    // One is open for a moment where a record is removed.
    assert!(last.0 <= first.0 + 2, "descriptors: {sizes:?}");
    assert!(last.1 <= first.1 + 1024, "memory: {sizes:?}");
    client.exit();
    shell.place.assert_gone();
}
