//! Tests with a PRRTE that the user has started: the verbs of `sdm pmix`, and its jobs as jobs of a cluster.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Command, Stdio};

use nix::libc;
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use sdm_tests::clusters::Shell;
use sdm_tests::parts;
use sdm_tests::processes;
use sdm_tests::run::until;
use serde_json::Value;

/// A `prte` of an ordinary user's, which drop ends.
struct Prte {
    shell: Shell,
    server: Child,
}

impl Prte {
    /// Starts a `prte`; `None` if Open MPI 5 is not available.
    fn start() -> Option<Self> {
        let mpi = parts::openmpi5()?;
        let shell = Shell::new();
        let mut server = shell.program(&mpi.join("bin/prte"), &[]);
        // Tests run on machines of any number of processors.
        server.env("PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe");
        server.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut server = server.spawn().expect("prte");
        let mut said = BufReader::new(server.stdout.take().expect("a pipe"));
        let mut line = String::new();
        said.read_line(&mut line).expect("text");
        assert_eq!(line, "DVM ready\n");
        std::thread::spawn(move || std::io::copy(&mut said, &mut std::io::sink()));
        Some(Self { shell, server })
    }

    /// Starts a job that prints `hi` again and again until a file of this name exists, and ends with 3. Returns the
    /// job's name.
    fn job(&self, count: u32, until: &str) -> String {
        let until = self.shell.place.path().join(until);
        let script = format!(
            "trap 'echo usr1; exit 7' USR1; until [ -e {} ]; do echo hi; sleep 0.1; done; exit 3",
            until.to_str().expect("text")
        );
        let count = count.to_string();
        let words = [
            "pmix", "spawn", "--detach", "-n", &count, "--", "sh", "-c", &script,
        ];
        self.shell.words(&words).done().out.trim().to_owned()
    }

    /// The jobs that `sdm pmix list` shows.
    fn listed(&self) -> Vec<Value> {
        let all = self.shell.sdm("pmix list --json").done().out;
        let all: Value = serde_json::from_str(&all).expect("JSON");
        assert_eq!(all[0]["program"], "prte", "{all}");
        all[0]["jobs"].as_array().expect("jobs").clone()
    }

    /// Ends the `prte`.
    fn end(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }

    /// Lets the job end that waits for the file of this name.
    fn go(&self, name: &str) {
        self.shell.changed();
        fs::write(self.shell.place.path().join(name), "").expect("a file");
    }

    /// Starts `sdm pmix` with these words, and waits for a text in its output.
    fn begun(&self, words: &[&str], until: &str) -> Watched {
        let command = self.shell.command(&[&["pmix"], words].concat());
        Watched::of(command, until)
    }
}

impl Drop for Prte {
    fn drop(&mut self) {
        self.end();
    }
}

/// A running command, with its output so far.
struct Watched {
    child: Child,
    out: BufReader<ChildStdout>,
    said: String,
}

impl Watched {
    fn of(mut command: Command, until: &str) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("sdm");
        let out = BufReader::new(child.stdout.take().expect("a pipe"));
        let said = String::new();
        let mut watched = Self { child, out, said };
        while !watched.said.contains(until) {
            let count = watched.out.read_line(&mut watched.said).expect("text");
            assert!(count > 0, "no {until:?} in {:?}", watched.said);
        }
        watched
    }

    /// Reads the command's output until it contains `wanted`, and kills the command then.
    fn until(mut self, wanted: &str) -> String {
        let mut said = String::new();
        while !said.contains(wanted) {
            let count = self.out.read_line(&mut said).expect("text");
            assert!(count > 0, "no {wanted:?} in {said:?}");
        }
        self.child.kill().expect("it is ours");
        self.child.wait().expect("it is ours");
        said
    }

    /// Waits for the command's end; returns all its output and its exit code.
    fn end(mut self) -> (String, Option<i32>) {
        self.out.read_to_string(&mut self.said).expect("text");
        let status = self.child.wait().expect("it is ours");
        (self.said, status.code())
    }
}

/// Each verb of `sdm pmix` at a foreign server; earlier tools are not listed as jobs.
#[test]
fn sdm_pmix_commands_query_signal_and_end_jobs_of_prte() {
    let Some(prte) = Prte::start() else { return };
    let shell = &prte.shell;
    assert_eq!(prte.listed(), Vec::<Value>::new());
    let first = prte.job(2, "first");
    let listed = prte.listed();
    assert_eq!(listed.len(), 1, "{listed:?}");
    assert_eq!(listed[0]["namespace"], *first);
    assert_eq!(listed[0]["status"], "2 running");
    let command = listed[0]["command"].to_string();
    assert!(command.starts_with("\"sh -c trap"), "{command}");
    let pids: Vec<u64> = (0..2)
        .map(|at| listed[0]["processes"][at]["pid"].as_u64().expect("a pid"))
        .collect();
    for (words, wanted) in [
        (format!("query status {first}"), "2 running".to_owned()),
        (
            format!("query processes {first}"),
            format!("pid {},", pids[1]),
        ),
        (format!("query memory {first}"), format!("{first}:1: ")),
        ("query namespaces".to_owned(), first.clone()),
        ("query keys".to_owned(), "pmix.qry.ptable".to_owned()),
    ] {
        let said = shell.sdm(&format!("pmix {words}"));
        assert_eq!(said.code, Some(0), "{words}: {}", said.err);
        assert!(
            said.out.contains(&wanted),
            "{words}: {} {}",
            said.out,
            said.err
        );
    }
    // The output from now on.
    let io = prte.begun(&["io", &first], "hi\n");
    prte.go("first");
    assert_eq!(io.end().1, Some(0));
    // The ends of jobs, including earlier ones.
    let events = prte.begun(&["events"], &first);
    assert_eq!(prte.listed(), Vec::<Value>::new());
    let second = prte.job(1, "second");
    let is_earlier = |line: &str| line.contains(&first) && line.contains("JOB_END (earlier)");
    assert!(events.said.lines().any(is_earlier), "{}", events.said);
    shell
        .sdm("pmix signal nosuch@1 USR1")
        .refused(124, "nosuch@1");
    shell
        .sdm(&format!("pmix signal {second}:9 USR1"))
        .refused(124, "has no rank 9");
    shell
        .sdm(&format!("pmix query processes {second}:9"))
        .refused(124, "has no rank 9");
    let _done = shell.sdm(&format!("pmix signal {second} USR1")).done();
    let ended = events.until(&second);
    assert!(ended.contains("PMIX_EVENT_JOB_END"), "{ended}");
    let third = prte.job(1, "third");
    assert_eq!(prte.listed()[0]["namespace"], *third);
    let events = prte.begun(&["events"], &second);
    let _done = shell.sdm(&format!("pmix kill {third}")).done();
    let _ended = events.until(&third);
    assert_eq!(prte.listed(), Vec::<Value>::new());
    // A job whose terminal this is: its output, and its end.
    let go = shell.place.path().join("fourth");
    let go = go.display();
    let script = format!("until [ -e {go} ]; do echo mine; sleep 0.1; done; exit 3");
    let job = prte.begun(&["spawn", "-n", "2", "--", "sh", "-c", &script], "mine\n");
    prte.go("fourth");
    assert_eq!(job.end().1, Some(3));
    shell
        .sdm("pmix spawn -- nosuch")
        .refused(124, "nosuch: no such program");
}

/// All that a job prints is shown, also before its name is known and at its end; other jobs print at the same time.
#[test]
fn output_of_spawned_prte_jobs_is_complete() {
    const LINES: usize = 3000;
    let Some(prte) = Prte::start() else { return };
    let _other = prte.job(1, "other");
    let text = "x".repeat(80);
    let script =
        format!("i=0; while [ $i -lt {LINES} ]; do echo $i {text}; i=$((i+1)); done; echo end >&2");
    let words = ["spawn", "--json", "-n", "2", "--", "sh", "-c", &script];
    let done = prte.shell.words(&[&["pmix"], &words[..]].concat()).done();
    let mut printed = BTreeMap::<(u64, String), String>::new();
    for line in done.out.lines() {
        let piece: Value = serde_json::from_str(line).expect("JSON");
        let rank = piece["rank"].as_u64().expect("a rank");
        let channel = piece["channel"].as_str().expect("text").to_owned();
        let all = printed.entry((rank, channel)).or_default();
        all.push_str(piece["text"].as_str().expect("text"));
    }
    let lines: String = (0..LINES).map(|i| format!("{i} {text}\n")).collect();
    for (stream, whole) in [("stdout", &*lines), ("stderr", "end\n")] {
        for rank in 0..2 {
            let found = printed.remove(&(rank, stream.to_owned()));
            let found = found.unwrap_or_default();
            assert!(found == whole, "{stream} of {rank}: {} bytes", found.len());
        }
    }
    assert_eq!(printed, BTreeMap::new());
    for _ in 0..5 {
        let quick = prte.shell.sdm("pmix spawn -- echo out").done();
        assert_eq!(quick.out, "out\n");
    }
    prte.go("other");
}

/// PRRTE itself would signal all ranks, and `prterun` would not end after a signal that ends the ranks.
#[test]
fn usr1_reaches_one_rank_and_kill_ends_prterun() {
    let Some(mpi) = parts::openmpi5() else { return };
    let shell = Shell::new();
    let mut job = shell.program(&mpi.join("bin/prterun"), &[]);
    job.env("PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe");
    let script = "trap 'echo rank $PMIX_RANK has it' USR1; while :; do echo hi of $PMIX_RANK; sleep 0.1; done";
    job.args(["-n", "2", "sh", "-c", script]);
    // A process that has printed has set its trap.
    let mut job = Watched::of(job, "hi of 1\n");
    let pid = job.child.id();
    let listed = shell.sdm(&format!("pmix --pid {pid} list --json")).done();
    let listed: Value = serde_json::from_str(&listed.out).expect("JSON");
    let name = listed[0]["jobs"][0]["namespace"].as_str().expect("its job");
    let signal = |of: &str| shell.sdm(&format!("pmix --pid {pid} signal {name}{of}"));
    let _done = signal(":1 USR1").done();
    while !job.said.contains("has it") {
        assert!(
            job.out.read_line(&mut job.said).expect("text") > 0,
            "{}",
            job.said
        );
    }
    let _done = signal(" KILL").done();
    let (said, code) = job.end();
    assert!(said.contains("rank 1 has it"), "{said}");
    assert!(!said.contains("rank 0 has it"), "{said}");
    assert_eq!(code, Some(128 + 9));
}

/// Jobs of a PRRTE, started by any process, are jobs of a cluster: listed, attached to, submitted and cancelled.
#[test]
fn prte_jobs_are_listed_as_cluster_jobs() {
    let Some(mut prte) = Prte::start() else {
        return;
    };
    let shell = &prte.shell;
    let fifo = shell.place.path().join("fifo");
    mkfifo(&fifo, Mode::S_IRWXU).expect("a FIFO of the test's");
    let script = format!("read -r line < {}; exit 3", fifo.display());
    let words = [
        "pmix", "spawn", "--detach", "-n", "2", "--", "sh", "-c", &script,
    ];
    let foreign = shell.words(&words).done().out.trim().to_owned();
    let _done = shell.sdm("cluster add dvm prrte").done();
    shell.wait_job(&foreign, "jobState", "RUNNING");
    let queues = shell.sdm("queues").done().out;
    let queue = queues.lines().nth(1).unwrap_or_default();
    assert!(
        queue.starts_with("prte-") && queue.contains("@0*  NORMAL"),
        "{queues}"
    );
    let ranks = shell.sdm(&format!("ps {foreign}")).done().out;
    assert!(
        ranks.contains("0-1 ") && ranks.contains("RUNNING"),
        "{ranks}"
    );
    let opens = |pid: &u32| {
        let call = processes::sleeps_in(&processes::of(*pid));
        call.is_some_and(|(number, _)| number == libc::SYS_openat)
    };
    until("both wait for the FIFO's writer", || {
        let shells = shell.place.pids("sh -c read -r line");
        shells.iter().filter(|pid| opens(pid)).count() == 2
    });
    let stacks = shell.sdm(&format!("stacks dvm:{foreign}"));
    assert_eq!(stacks.code, Some(0), "{} {}", stacks.out, stacks.err);
    assert!(stacks.out.contains("ranks 0-1 (2): "), "{}", stacks.out);
    // Both read the end of what is written.
    fs::write(&fifo, "").expect("both read");
    shell.wait_job(&foreign, "jobState", "TERMINATED");
    let own = shell.submit(&["-M", "dvm", "-n", "2", "--", "sleep", "1000"]);
    shell.wait_job(&own, "jobState", "RUNNING");
    assert_eq!(prte.listed()[0]["namespace"], *own);
    let _done = shell.sdm(&format!("cancel {own}")).done();
    shell.wait_job(&own, "jobState", "TERMINATED");
    shell
        .sdm("submit -M dvm -- nosuch")
        .refused(1, "nosuch: no such program");
    shell
        .sdm("submit -M dvm --debug -- sleep 1")
        .refused(1, "attach to the job when it runs");
    // The server is gone: that is reported, and nothing else is lost.
    prte.end();
    let shell = &prte.shell;
    shell.watch("queues", |list| {
        list["queues"][0]["attributes"]["queueState"] == "STOPPED"
    });
    shell
        .sdm("submit -M dvm -- sleep 1")
        .refused(1, "none of your PMIx servers");
}
