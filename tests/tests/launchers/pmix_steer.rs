//! Tools at the PMIx servers of a session: monitoring and control of processes, and requests that must do no harm.

use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use sdm_idset::IdSet;
use sdm_tests::late::{Beside, waits_for_tools};
use sdm_tests::ordinary;
use sdm_tests::parts;
use sdm_tests::place::{Compiler, Place};
use sdm_tests::processes;
use sdm_tests::sdm::{Running, Sdm, command};
use serde_json::{Value, json};

use super::pmix::wait_exited;

fn local(place: &Place, count: u32) -> Sdm<'_> {
    ordinary::run(place, count).args(["--launcher", "local"])
}

pub(super) fn said(output: &Output) -> String {
    let all = [&output.stdout[..], &output.stderr[..]].concat();
    String::from_utf8_lossy(&all).into_owned()
}

fn begun(command: &mut Command) -> Child {
    let piped = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    piped.spawn().expect("sdm")
}

/// A job of ranks that wait until the file exists, its name, and the pid of its PMIx server: other tests have
/// servers too.
pub(super) struct Job<'a> {
    place: &'a Place,
    sdm: Running<'a>,
    go: PathBuf,
    pub(super) name: String,
    pub(super) server: String,
}

impl<'a> Job<'a> {
    pub(super) fn begin(place: &'a Place, count: u32) -> Self {
        let held = place.compile("mpi_held", Compiler::OpenMpi);
        let go = place.path().join("go");
        let sdm = local(place, count).args(["--no-stop", "--no-holds"]).talk();
        let sdm = sdm.program(&held, &[go.to_str().expect("text"), "0"]);
        Self::of(place, sdm, count, &format!("held {count}"))
    }

    /// As [`Job::begin`], with ranks that write lines again and again until [`Job::see`].
    fn that_waits_for_tools(place: &'a Place, count: u32) -> Self {
        let held = place.compile("mpi_held", Compiler::OpenMpi);
        let [seen, go] = ["seen", "go"].map(|name| place.path().join(name));
        let script = waits_for_tools(&seen, &held, &go);
        // A shell's libraries do not show that an MPI program will follow.
        let sdm = local(place, count).args(["--no-stop", "--no-holds", "--pmix", "on"]);
        let sdm = sdm.talk().program(Path::new("/bin/sh"), &["-c", &script]);
        Self::of(place, sdm, count, "waits")
    }

    /// Tells the ranks that the readers of their output are connected, and waits until all ranks are held.
    fn see(&self, count: u32) {
        std::fs::write(self.place.path().join("seen"), "").expect("a file");
        self.sdm.out.wait(0, &format!("held {count}"));
    }

    fn of(place: &'a Place, sdm: Sdm<'a>, count: u32, begins: &str) -> Self {
        let go = place.path().join("go");
        let sdm = sdm.spawn();
        sdm.out.wait(0, begins);
        let servers = place.pids("sdm-pmix host");
        let [server] = servers[..] else {
            panic!("servers {servers:?}");
        };
        let server = server.to_string();
        let mut job = Self {
            place,
            sdm,
            go,
            name: String::new(),
            server,
        };
        let servers = job.listed();
        let name = servers[0]["jobs"][0]["namespace"].as_str();
        job.name = name.unwrap_or_else(|| panic!("{servers}")).to_owned();
        let rows = servers[0]["jobs"][0]["processes"].as_array();
        assert_eq!(rows.map(Vec::len), Some(count as usize), "{servers}");
        job
    }

    /// `sdm pmix` at the server of the job, as the ordinary user.
    fn pmix(&self, args: &[&str]) -> Command {
        let own = self.place.path().join("tmp");
        let sdm = sdm_tests::binaries::folder().join("sdm");
        let mut command = command(self.place, sdm.to_str().expect("text"));
        ordinary::lower(&mut command).args(["pmix", "--pid", &self.server]);
        command.args(args).stdin(Stdio::null()).env("TMPDIR", own);
        command
    }

    /// The server's list of itself and its jobs.
    fn listed(&self) -> Value {
        let listed = self.pmix(&["list", "--json"]).output().expect("sdm");
        serde_json::from_slice(&listed.stdout).unwrap_or_else(|error| panic!("{error}: {listed:?}"))
    }

    /// The server's own answer to a query.
    fn asked(&self, words: &[&str]) -> Value {
        let words = [&["query"], words, &["--json"]].concat();
        let output = self.pmix(&words).output().expect("sdm");
        let document: Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{error}: {output:?}"));
        assert_eq!(document["from"], "server", "{document}");
        document["values"].clone()
    }

    pub(super) fn end(mut self, count: u32) {
        std::fs::write(&self.go, "").expect("a file");
        let ranks = IdSet::all_below(count).to_string();
        self.sdm.out.wait_each(0, &ranks, "exited with code 7");
        self.sdm.ask("quit", "quit");
        let _done = self.sdm.finish();
    }
}

/// Programs started by a tool are a job of their own, and their tasks are tasks of the session. The tool has their
/// input, output and exit code.
#[test]
fn a_tool_starts_programs_and_gets_streams_and_exit_code() {
    let place = Place::new();
    let job = Job::begin(&place, 2);
    let mut cat = job.pmix(&["spawn", "-n", "2", "--", "/bin/cat"]);
    let mut cat = begun(cat.stdin(Stdio::piped()));
    let mut input = cat.stdin.take().expect("a pipe");
    input.write_all(b"from the tool\n").expect("it reads");
    drop(input);
    let cat = cat.wait_with_output().expect("it ends");
    assert_eq!(said(&cat), "from the tool\n");
    assert!(cat.status.success(), "{cat:?}");
    job.sdm.out.wait(
        0,
        "ranks 2-3 (2): started by a PMIx tool, command line: /bin/cat",
    );
    wait_exited(&job.sdm, "2-3");
    let script = "echo out; echo err >&2; exit 9";
    let mut both = job.pmix(&["spawn", "-n", "1", "--", "/bin/sh", "-c", script]);
    let both = both.output().expect("sdm");
    assert_eq!(both.stdout, b"out\n", "{both:?}");
    assert_eq!(both.stderr, b"err\n", "{both:?}");
    assert_eq!(both.status.code(), Some(9), "{both:?}");
    job.sdm.out.wait(0, "rank 4: exited with code 9");
    // Its ranks that wait for one that has left are ended. The first job and the server go on.
    let ends = job.place.compile("mpi_ends", Compiler::OpenMpi);
    let ends = ends.to_str().expect("text");
    let mut left = job.pmix(&["spawn", "-n", "3", "--", ends, "exit"]);
    let left = left.output().expect("sdm");
    assert_eq!(left.status.code(), Some(7), "{left:?}");
    job.sdm.out.wait(0, "rank 7: exited with code 7");
    job.sdm
        .out
        .wait_each(0, "5-6", "terminated by signal SIGTERM");
    // A job can have ended before its tool is notified of its start.
    for _ in 0..10 {
        let mut quick = job.pmix(&["spawn", "-n", "1", "--", "/bin/echo", "out"]);
        let quick = quick.output().expect("sdm");
        assert_eq!(quick.stdout, b"out\n", "{quick:?}");
    }
    job.end(2);
}

/// Signals reach the named processes, ends are reported with their status, and text logged by a tool is shown as
/// the tool's.
#[test]
fn a_tool_sends_signals_and_receives_end_events() {
    let place = Place::new();
    let job = Job::that_waits_for_tools(&place, 2);
    for channel in ["stdout", "stderr"] {
        let text = format!("to {channel}");
        let logged = job.pmix(&["log", channel, &text]).output();
        let logged = logged.expect("sdm");
        assert!(logged.status.success(), "{logged:?}");
        let shown = format!("ranks 0-1 (2): message of a PMIx tool: to {channel}\n");
        job.sdm.out.wait(0, &shown);
    }
    let events = Beside::start(&mut job.pmix(&["events", "--json"]));
    let output = Beside::start(&mut job.pmix(&["io", &job.name]));
    output.out.wait(0, "waits\n");
    job.see(2);
    let spawn = ["spawn", "-n", "1", "--", "/bin/sleep", "1000"];
    let sleep = begun(&mut job.pmix(&spawn));
    job.sdm.out.wait(
        0,
        "rank 2: started by a PMIx tool, command line: /bin/sleep 1000",
    );
    let asleep = format!("{}.0.0", job.name);
    let killed = job.pmix(&["signal", &asleep, "SIGTERM"]).output();
    let killed = killed.expect("sdm");
    assert!(killed.status.success(), "{killed:?}");
    job.sdm.out.wait(0, "rank 2: ");
    let sleep = sleep.wait_with_output().expect("it ends");
    assert_eq!(sleep.status.code(), Some(128 + 15), "{sleep:?}");
    let name = job.name.clone();
    // By now the tool is connected, or will get this event as an earlier one.
    events.out.wait(0, &asleep);
    job.end(2);
    let printed = output.finish();
    for rank in 0..2 {
        let line = format!("rank {rank}: sum 1\n");
        assert!(printed.contains(&line), "no {line:?} in {printed}");
    }
    let told = events.finish();
    let ended = |name: &str| {
        let lines = told
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok());
        let mut its = lines.filter(|it: &Value| it["namespace"] == name);
        its.next().unwrap_or_else(|| panic!("no {name} in {told}"))
    };
    let (first, second) = (ended(&asleep), ended(&name));
    assert_eq!(first["event"], "PMIX_EVENT_JOB_END", "{first}");
    assert_eq!(second["event"], "PMIX_EVENT_JOB_END", "{second}");
    assert!(second.to_string().contains('7'), "{second}");
}

/// The server itself answers queries about jobs, about the processes of a node, and about what it supports.
#[test]
fn pmix_server_answers_queries_of_jobs_nodes_and_support() {
    let place = Place::new();
    let job = Job::begin(&place, 2);
    let spawn = ["spawn", "--detach", "-n", "1", "--", "/bin/sleep", "1000"];
    let spawned = said(&job.pmix(&spawn).output().expect("sdm"));
    let spawned = spawned.trim();
    let jobs = job.asked(&["jobs"]);
    let jobs = &jobs["pmix.qry.nsinfo"]["pmix.job.arr"];
    let held = format!("/mpi_held {} 0", job.go.display());
    for (at, (name, end)) in [(&*job.name, &*held), (spawned, "bin/sleep 1000")]
        .into_iter()
        .enumerate()
    {
        let line = jobs[at]["pmix.cmd.line"].as_str().unwrap_or_default();
        assert!(line.ends_with(end), "{jobs}");
        assert_eq!(jobs[at]["pmix.nspace"], *name, "{jobs}");
    }
    for (key, wanted) in [
        ("pmix.qry.keys", "pmix.qry.mem"),
        ("pmix.qry.spawn", "pmix.wdir"),
        ("pmix.qry.debug", "pmix.dbg.init"),
        ("pmix.host.fns", "PMIx_Spawn"),
        ("pmix.srvr.uri", &*format!("{}-server.0;tcp4://", job.name)),
    ] {
        let answer = job.asked(&[key]);
        let mut words = answer[key].as_str().unwrap_or_default().split(',');
        let is_it = |it: &str| it == wanted || wanted.ends_with('/') && it.starts_with(wanted);
        assert!(words.any(is_it), "{key}: {answer}");
    }
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let slots = job.asked(&["pmix.qry.aslots"]);
    assert_eq!(slots["pmix.qry.aslots"], processors.saturating_sub(3));
    let sets = job.asked(&["pmix.qry.psetnum"]);
    assert_eq!(sets, json!({"pmix.qry.psetnum": 0}));
    memory_is_that_of_the_process(&job, spawned);
    for (words, why) in [
        ("nosuch", "nosuch: PMIX_ERR_NOT_SUPPORTED"),
        ("pmix.qry.attrs", "pmix.qry.attrs: PMIX_ERR_NOT_SUPPORTED"),
        (
            "memory nosuch@1",
            "nosuch@1: the PMIx server has no such job",
        ),
        (
            "status nosuch@1",
            "nosuch@1: the PMIx server has no such job",
        ),
        (&*format!("processes {spawned}:7"), "has no rank 7"),
    ] {
        let words: Vec<&str> = ["query"].into_iter().chain(words.split(' ')).collect();
        let output = job.pmix(&words).output().expect("sdm");
        assert!(said(&output).contains(why), "{words:?}: {output:?}");
        assert_eq!(output.status.code(), Some(124), "{words:?}");
    }
    processes_of_a_node_are_listed(&job, spawned);
    let killed = job.pmix(&["kill", spawned]).output().expect("sdm");
    assert!(killed.status.success(), "{killed:?}");
    job.sdm.out.wait(0, "rank 2: killed (SIGKILL)");
    job.end(2);
}

/// The memory of the process of a spawned job, which sleeps, is what the kernel says of it.
fn memory_is_that_of_the_process(job: &Job<'_>, spawned: &str) {
    let servers = job.listed();
    let pid = servers[0]["jobs"][1]["processes"][0]["pid"].as_u64();
    let pid = u32::try_from(pid.expect("a pid")).expect("a pid");
    processes::wait_state(pid, "S");
    let status = processes::of(pid).status().expect("it runs");
    let memory = job.asked(&["memory", spawned]);
    let memory = &memory["pmix.qry.mem"]["pmix.pdata"];
    let process = json!({"namespace": spawned, "rank": 0});
    assert_eq!(memory["pmix.procid"], process, "{memory}");
    // The library sends a float as text with six decimals.
    let kibibytes = memory["pmix.cl.mem.avg"].as_f64();
    let kibibytes = kibibytes.map(|it| (it * 1024.0).round());
    let resident = status.bytes("VmRSS").map(|it| (it / 1024) as f64);
    assert_eq!(kibibytes, resident, "{memory}");
    let of_both = job.asked(&["memory", &job.name]);
    let of_both = of_both["pmix.qry.mem"]["pmix.pdata"].as_array();
    assert_eq!(of_both.map(Vec::len), Some(2));
}

/// One call has two queries, one of them with two keys; each key has its answer.
fn several_queries_of_several_keys_are_answered(job: &Job<'_>, spawned: &str) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/pmix_ask.py");
    let mut tool = command(job.place, "/usr/bin/python3");
    ordinary::lower(&mut tool)
        .args(["-W", "ignore"])
        .arg(script);
    tool.args([&job.server, "together"]);
    tool.args(["pmix.qry.ns,pmix.qry.psetnum", "pmix.job.size"]);
    let told = said(&tool.output().expect("python3"));
    let name = &job.name;
    let expected =
        format!("pmix.qry.ns: {name},{spawned}\npmix.qry.psetnum: 0\npmix.job.size: 2\n");
    assert_eq!(told, expected);
}

/// A foreign tool lists the processes of a node by its number. A node that does not exist, by number or by name, is
/// reported as not found.
fn processes_of_a_node_are_listed(job: &Job<'_>, spawned: &str) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/pmix_ask.py");
    let mut tool = command(job.place, "/usr/bin/python3");
    ordinary::lower(&mut tool)
        .args(["-W", "ignore"])
        .arg(script);
    let name = &job.name;
    let both = format!(
        "{{'type': 22, 'array': [{{'nspace': b'{name}', 'rank': 0}}, {{'nspace': b'{name}', 'rank': 1}}]}}"
    );
    let of = |key: &str, name: &str| format!("{key}?pmix.nodeid=0?pmix.nspace={name}");
    let peers = [
        (of("pmix.lprocs", name), &*both),
        (of("pmix.lpeers", name), "0,1"),
        (of("pmix.lpeers", spawned), "0"),
        ("pmix.lprocs?pmix.nodeid=1".to_owned(), "-46"),
        ("pmix.lprocs?pmix.hname=nowhere".to_owned(), "-46"),
        ("pmix.qry.psetnum?no.such.qualifier=1".to_owned(), "0"),
        ("pmix.qry.psetnum?no.such.qualifier!=1".to_owned(), "-47"),
    ];
    tool.arg(&job.server).args(peers.iter().map(|it| &it.0));
    let told = said(&tool.output().expect("python3"));
    let expected = peers
        .iter()
        .map(|(asked, found)| format!("{asked}: {found}\n"));
    assert_eq!(told, expected.collect::<String>());
    several_queries_of_several_keys_are_answered(job, spawned);
    let mut launcher = command(job.place, "/usr/bin/python3");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/pmix_ask.py");
    ordinary::lower(&mut launcher)
        .args(["-W", "ignore"])
        .arg(script);
    launcher.args([&job.server, "launcher", "pmix.job.size"]);
    let told = said(&launcher.output().expect("python3"));
    assert_eq!(told, "pmix.job.size: 2\n");
}

/// A debugger that uses only PMIx holds the ranks that it starts in `PMIx_Init`, starts daemons next to them, and
/// releases the ranks. All the while they are tasks of the session.
#[test]
fn pmix_debugger_holds_ranks_and_starts_daemons() {
    let place = Place::new();
    let sum = place.compile("mpi_sum", Compiler::OpenMpi);
    let job = Job::begin(&place, 1);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/pmix_debugger.py");
    let mut debugger = command(&place, "/usr/bin/python3");
    ordinary::lower(&mut debugger)
        .args(["-W", "ignore"])
        .arg(script);
    debugger.args([&job.server, sum.to_str().expect("text"), "2"]);
    let debugger = begun(debugger.stdin(Stdio::null()));
    let debugger = debugger.wait_with_output().expect("it ends");
    let told = said(&debugger);
    let ready = told.find("ready\n").unwrap_or_else(|| panic!("{told}"));
    let sees = told.find(" sees [0, 1]\n");
    let sees = sees.unwrap_or_else(|| panic!("{told}"));
    let sums: Vec<_> = told.match_indices(" of 2: sum 3\n").collect();
    assert!(ready < sees && sums.len() == 2, "{told}");
    assert!(sums.iter().all(|(at, _)| *at > sees), "{told}");
    assert!(told.ends_with("over\n"), "{told}");
    wait_exited(&job.sdm, "1-3");
    job.end(1);
}

/// Whatever data arrives at its port, the server serves its job and its tools.
#[test]
fn pmix_server_survives_garbage_and_many_connections() {
    let place = Place::new();
    let job = Job::begin(&place, 1);
    let servers = job.listed();
    let file = servers[0]["file"].as_str().expect("its file");
    let text = std::fs::read_to_string(file).expect("its file");
    let address = text.lines().next().expect("its first line");
    let (_, address) = address.rsplit_once('/').expect("an address");
    let address: SocketAddr = address.parse().expect("an address");
    let connect = || TcpStream::connect(address).expect("it listens");
    let crowd: Vec<_> = (0..256).map(|_| connect()).collect();
    let garbage: Vec<Vec<u8>> = vec![
        vec![0xff; 65_536],
        b"GET / HTTP/1.0\r\n\r\n".to_vec(),
        vec![0; 16],
        (0..=255_u8).cycle().take(100_000).collect(),
    ];
    for bytes in &garbage {
        // The server may hang up before it has read all.
        let _ = connect().write_all(bytes);
    }
    let servers = job.listed();
    assert_eq!(servers[0]["jobs"][0]["status"], "1 connected", "{servers}");
    drop(crowd);
    job.end(1);
}

/// Creation of communicators from groups, an MPI 4 function, needs a server with a library of the same generation.
#[test]
fn ranks_create_communicators_from_groups() {
    let Some(mpi) = parts::openmpi5() else { return };
    let place = Place::new();
    let group = place.compile("mpi_group", Compiler::OpenMpi5);
    let library = mpi.join("lib/openmpi/libpmix.so.2");
    let done = local(&place, 4)
        .args(["--batch", "--no-report", "--no-stop"])
        .env("SDM_PMIX_LIBRARY", library.to_str().expect("text"))
        .program(&group, &[])
        .finish()
        .code(0);
    for rank in 0..4 {
        let line = format!("rank {rank} of 4: sum 6");
        assert!(done.out.contains(&line), "no {line:?} in {done}");
    }
}
