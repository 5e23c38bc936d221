//! MPI programs on several hosts without mpirun: each host has a PMIx server of the session.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use nix::sys::signal::Signal;
use sdm_tests::late::{Beside, waits_for_tools};
use sdm_tests::parts::{self, Part};
use sdm_tests::place::{Compiler, Place};
use sdm_tests::run::until;
use sdm_tests::sdm::{Done, Sdm};
use sdm_tests::{binaries, processes};
use serde_json::Value;

use super::run;

const TWO: &str = "10.77.0.1:2,10.77.0.2:2";
const THREE: &str = "10.77.0.1:2,10.77.0.2:2,10.77.0.3:2";

/// Copies the PMIx server's program into the folder of the server.
fn put_program(place: &Place) {
    let name = "sdm-pmix";
    let source = binaries::folder().join(name);
    fs::copy(source, place.path().join(name)).expect("a copy");
}

fn batch<'a>(place: &'a Place, count: u32, hosts: &str) -> Sdm<'a> {
    run(place, count, hosts).args(["--batch", "--no-report", "--no-stop"])
}

/// The programs' lines without the labels of ranks.
fn lines_of(done: &Done) -> Vec<String> {
    let said = done.out.lines();
    let said = said.filter_map(|line| line.split_once("rank ").map(|(_, said)| said.to_owned()));
    let mut said: Vec<_> = said.filter(|line| line.contains(" of ")).collect();
    said.sort_unstable();
    said
}

fn expected(count: u32, what: &str) -> Vec<String> {
    let mut lines: Vec<_> = (0..count)
        .map(|rank| format!("{rank} of {count}: {what}"))
        .collect();
    lines.sort_unstable();
    lines
}

#[test]
fn mpi_ranks_of_several_hosts_form_one_job_without_mpirun() {
    let Some(_hosts) = Part::hosts() else { return };
    let place = Place::new();
    put_program(&place);
    let sum = place.compile("mpi_sum", Compiler::OpenMpi);
    let late = place.compile("mpi_late", Compiler::OpenMpi);
    sums_are_right(&place, &sum);
    the_program_is_copied_to_hosts(&place, &sum);
    ranks_know_their_neighbours(&place, &late);
    names_and_statuses_go_over_hosts(&place);
    they_are_debugged(&place, &sum);
    a_crash_is_reported(&place);
    who_waits_for_a_lost_host_is_ended(&place, &late);
    what_all_put_comes_to_all(&place);
    who_is_left_running_ends(&place, &late);
    they_start_others(&place, Compiler::OpenMpi);
    a_tool_follows_and_steers_all_hosts(&place);
    if parts::openmpi5().is_some() {
        let sum = place.compile("mpi_sum", Compiler::OpenMpi5);
        sums_are_right(&place, &sum);
        they_start_others(&place, Compiler::OpenMpi5);
    }
    assert!(place.pids("sdm-pmix host").is_empty());
}

fn sums_are_right(place: &Place, sum: &Path) {
    let one_by_one = [
        "OMPI_MCA_pmix_base_async_modex=1",
        "OMPI_MCA_pmix_base_collect_data=0",
    ];
    let done = batch(place, 6, THREE).program(sum, &[]).finish().code(0);
    assert_eq!(lines_of(&done), expected(6, "sum 21"), "{done}");
    // Each process requests the data that it needs, instead of an exchange of all data.
    let done = batch(place, 4, TWO)
        .args(["--tasks-per-server", "1"])
        .args(["--env", one_by_one[0], "--env", one_by_one[1]])
        .program(sum, &[])
        .finish()
        .code(0);
    assert_eq!(lines_of(&done), expected(4, "sum 10"), "{done}");
    let done = batch(place, 40, "10.77.0.1:14,10.77.0.2:13,10.77.0.3:13")
        .program(sum, &[])
        .finish()
        .code(0);
    assert_eq!(lines_of(&done), expected(40, "sum 820"), "{done}");
}

/// The two ranks of each host share memory, and each rank ends with its own exit code.
fn ranks_know_their_neighbours(place: &Place, late: &Path) {
    let done = batch(place, 6, THREE)
        .args(["--no-holds"])
        .program(late, &["/", "codes"])
        .finish()
        .code(1);
    assert_eq!(lines_of(&done), expected(6, "2 here"), "{done}");
    for rank in 1..6 {
        let ended = format!("rank {rank}: exited with code {rank}\n");
        assert!(done.out.contains(&ended), "{done}");
    }
}

fn names_and_statuses_go_over_hosts(place: &Place) {
    let meet = place.compile("mpi_meet", Compiler::OpenMpi);
    let done = batch(place, 2, "10.77.0.1,10.77.0.2")
        .program(&meet, &[])
        .finish()
        .code(0);
    assert!(done.out.contains("rank 0 heard of 1"), "{done}");
    assert!(done.out.contains("rank 1 heard of 0"), "{done}");
    let ends = place.compile("mpi_ends", Compiler::OpenMpi);
    let done = batch(place, 6, THREE)
        .args(["--no-holds"])
        .program(&ends, &["abort"])
        .finish()
        .code(9);
    let said = done.united();
    assert!(
        said.contains("ranks 0-5 (6): rank 2 ends the job with status 9"),
        "{done}"
    );
    assert!(
        said.contains("ranks 0-1,3-5 (5): terminated by signal SIGTERM"),
        "{done}"
    );
}

fn a_crash_is_reported(place: &Place) {
    let ends = place.compile("mpi_ends", Compiler::OpenMpi);
    for gdb in ["gdb", "/nosuch/gdb"] {
        let done = batch(place, 4, TWO).args(["--gdb", gdb]);
        let done = done.program(&ends, &["segv"]).finish().code(139);
        let shown = "rank 2: received signal SIGSEGV, Segmentation fault, leave () at mpi_ends.c:";
        assert!(done.out.contains(shown), "{done}");
        done.expect_part("[@stopped] stacks", "MPI_Allreduce");
    }
}

fn they_are_debugged(place: &Place, sum: &Path) {
    let done = run(place, 4, TWO)
        .lines(&["break add_up", "continue", "print contribution", "finish"])
        .lines(&["stacks", "delete", "continue"])
        .program(sum, &[])
        .finish()
        .code(0);
    done.expect_part(
        "continue",
        "ranks 0-3 (4): stopped at breakpoint 1, add_up ()",
    );
    done.expect(
        "print contribution",
        "rank 0: 1\nrank 1: 2\nrank 2: 3\nrank 3: 4\n",
    );
    done.expect_part("stacks", "ranks 0-3 (4): main ()");
    assert_eq!(lines_of(&done), expected(4, "sum 10"), "{done}");
}

/// Processes started by a rank run on its host, and communicate with the ranks of all hosts.
fn they_start_others(place: &Place, compiler: Compiler) {
    let spawn = place.compile("mpi_spawn", compiler);
    let done = run(place, 4, TWO)
        .lines(&["break together", "continue", "print is_worker", "delete"])
        .lines(&["continue"])
        .program(&spawn, &["3", "1"])
        .finish()
        .code(0);
    let all = "ranks 0-6 (7): stopped at breakpoint 1, together ()";
    done.expect_part("continue", all);
    done.expect("print is_worker", "ranks 0-3 (4): 0\nranks 4-6 (3): 1\n");
    for rank in 0..4 {
        for (count, sum) in [(3, 2107), (1, 1005)] {
            let line = format!("rank {rank} has started {count}: {sum}");
            assert!(done.out.contains(&line), "no {line} in {done}");
        }
    }
    assert!(done.out.contains("worker 2 of 3: 2107"), "{done}");
    assert!(done.out.contains("worker 0 of 1: 1005"), "{done}");
    // Ranks 0 and 1 are on the second host, 2 on the first: in that order their tasks are not.
    let done = batch(place, 4, TWO)
        .program(&spawn, &["@h2:2,h1", "3", "@h2", "1"])
        .finish()
        .code(0);
    for (rank, host) in [(0, "h2"), (1, "h2"), (2, "h1")] {
        let line = format!("worker {rank} of 3: 2107 on {host}\n");
        assert!(done.out.contains(&line), "no {line:?} in {done}");
    }
    assert!(done.out.contains("worker 0 of 1: 1005 on h2"), "{done}");
    let done = batch(place, 2, "10.77.0.1,10.77.0.2")
        .program(&spawn, &["@nowhere", "1"])
        .finish();
    let said = done.united();
    let refused = "\"nowhere\" is not among the hosts of the job: h1, h2";
    assert!(said.contains(refused), "{done}");
    assert_ne!(done.code, Some(0), "{done}");
}

/// Without a shared file system, the program of the PMIx servers is copied with that of the servers.
fn the_program_is_copied_to_hosts(place: &Place, sum: &Path) {
    let mut sdm = run(place, 4, TWO)
        .args(["--stage"])
        .talk()
        .program(sum, &[])
        .spawn();
    sdm.out.wait(0, "ranks 0-3 (4): at main ()");
    let hosts = place.pids("sdm-pmix host");
    assert_eq!(hosts.len(), 2, "{hosts:?}");
    for pid in hosts {
        let program = fs::read_link(format!("/proc/{pid}/exe")).expect("it runs");
        let folder = program.parent().expect("a folder");
        assert_ne!(folder, place.path(), "{program:?}");
        assert_ne!(folder, binaries::folder(), "{program:?}");
    }
    sdm.ask("continue", "exited normally");
    sdm.ask("quit", "");
    assert_eq!(lines_of(&sdm.finish().code(0)), expected(4, "sum 10"));
}

/// Ranks that wait for a host to end are ended when that host is lost.
fn who_waits_for_a_lost_host_is_ended(place: &Place, late: &Path) {
    let never = place.path().join("never");
    let mut sdm = run(place, 3, "10.77.0.1,10.77.0.2,10.77.0.3")
        .args(["--no-stop", "--no-holds"])
        .talk()
        .program(late, &[never.to_str().expect("text")])
        .spawn();
    for rank in 0..3 {
        sdm.out.wait(0, &format!("rank {rank} of 3: 1 here"));
    }
    a_tool_sees_all_hosts(place);
    let servers = processes::servers(place.mark());
    processes::signal(servers[&2], Signal::SIGKILL);
    sdm.out.wait(0, "MPI cannot continue");
    sdm.out.wait_each(0, "0-1", "terminated by signal SIGTERM");
    sdm.ask("quit", "quit");
    let _done = sdm.finish();
}

/// A command on the host of a PMIx server, by its pid. The server listens on that host's loopback, and accepts only
/// its own user.
fn at_the_host_of(server: &str) -> Command {
    let mut command = Command::new("nsenter");
    command
        .args(["--target", server, "--net", "--mount", "--uts"])
        .args([
            "setpriv",
            "--reuid=nobody",
            "--regid=nogroup",
            "--clear-groups",
        ])
        .env_remove("TMPDIR")
        .stdin(Stdio::null());
    command
}

/// The rendezvous file of a PMIx server. A tool that knows only the pid searches all of `/tmp`, including other
/// users' files, and follows links: a link to `/proc` makes it search for ever.
fn file_of(server: &str) -> String {
    let folders = fs::read_dir("/tmp").expect("/tmp").flatten();
    let files = folders.filter_map(|it| fs::read_dir(it.path()).ok());
    let files = files.flat_map(Iterator::flatten).map(|it| it.path());
    let its = format!(".tool.{server}");
    let mut of_it = files.filter(|it| it.to_string_lossy().ends_with(&its));
    let found = of_it.next().expect("a server has one");
    format!("file:{}", found.display())
}

/// The ranks that a debugger starts wait until it has inspected them on each host.
fn a_debugger_has_daemons_on_all_hosts(place: &Place, server: &str) -> String {
    let sum = place.compile("mpi_sum", Compiler::OpenMpi);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/pmix_debugger.py");
    let mut debugger = at_the_host_of(server);
    debugger
        .args(["/usr/bin/python3", "-W", "ignore"])
        .arg(script);
    let server = file_of(server);
    debugger.args([&*server, sum.to_str().expect("text"), "3", "h2:2,h1"]);
    let told = debugger.output().expect("nsenter");
    let told = String::from_utf8_lossy(&[told.stdout, told.stderr].concat()).into_owned();
    assert!(told.contains(" on h1 sees [2]\n"), "{told}");
    assert!(told.contains(" on h2 sees [0, 1]\n"), "{told}");
    assert!(told.contains("\nover\n"), "{told}");
    told
}

/// The name of the job of a PMIx server.
fn name_of_job(server: &str) -> String {
    let mut list = at_the_host_of(server);
    list.arg(binaries::folder().join("sdm"));
    let listed = list.args(["pmix", "list", "--json", "--pid", server]);
    let listed = listed.output().expect("sdm");
    let servers: Value = serde_json::from_slice(&listed.stdout).expect("JSON");
    let name = servers[0]["jobs"][0]["namespace"].as_str();
    name.unwrap_or_else(|| panic!("{servers}")).to_owned()
}

/// Tools of one host follow and steer the ranks of all.
fn a_tool_follows_and_steers_all_hosts(place: &Place) {
    let held = place.compile("mpi_held", Compiler::OpenMpi);
    let [seen, go] = ["seen-held", "go-held"].map(|name| place.path().join(name));
    let script = waits_for_tools(&seen, &held, &go);
    let mut sdm = run(place, 4, TWO)
        .args(["--no-stop", "--no-holds", "--pmix", "on"])
        .talk()
        .program(Path::new("/bin/sh"), &["-c", &script])
        .spawn();
    sdm.out.wait(0, "waits");
    until("each host has a PMIx server", || {
        place.pids("sdm-pmix host").len() == 2
    });
    let server = place.pids("sdm-pmix host")[1].to_string();
    let pmix = |words: &[&str]| {
        let mut command = at_the_host_of(&server);
        command.arg(binaries::folder().join("sdm")).arg("pmix");
        let (verb, rest) = words.split_first().expect("a verb");
        command.arg(verb).args(["--pid", &server]).args(rest);
        command
    };
    let name = &*name_of_job(&server);
    let events = Beside::start(&mut pmix(&["events", "--json"]));
    let output = Beside::start(&mut pmix(&["io", name]));
    output.out.wait(0, "waits\n");
    fs::write(&seen, "").expect("a file");
    sdm.out.wait(0, "held 4");
    // This sends a signal once all ranks have arrived; SIGURG is ignored by default.
    let urged = pmix(&["signal", name, "SIGURG"]).output().expect("sdm");
    assert!(urged.status.success(), "{urged:?}");
    let debugged = a_debugger_has_daemons_on_all_hosts(place, &server);
    // By now the tool is connected, or will get the events of the debugger's jobs as earlier ones.
    events.out.wait(0, "PMIX_EVENT_JOB_END");
    fs::write(&go, "").expect("a file");
    sdm.out.wait_each(0, "0-3", "exited with code 7");
    sdm.ask("quit", "quit");
    let _done = sdm.finish();
    let printed = output.finish();
    for rank in 0..4 {
        let line = format!("rank {rank}: sum ");
        assert!(printed.contains(&line), "no {line:?} in {printed}");
    }
    let told = events.finish();
    let mut lines = told
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok());
    let ended = lines.any(|it: Value| {
        it["event"] == "PMIX_EVENT_JOB_END" && it["namespace"].as_str() == Some(name)
    });
    assert!(ended, "{told}");
    let sums = debugged.matches(" of 3: sum 6\n").count();
    assert_eq!(sums, 3, "{debugged}");
    let mut sdm = run(place, 2, "10.77.0.1,10.77.0.2")
        .args(["--no-stop", "--no-holds"])
        .talk()
        .program(&held, &["/never", "0"])
        .spawn();
    sdm.out.wait(0, "held 2");
    let server = place.pids("sdm-pmix host")[1].to_string();
    let mut kill = at_the_host_of(&server);
    kill.arg(binaries::folder().join("sdm"));
    kill.args(["pmix", "signal", "--pid", &server]);
    let listed = name_of_job(&server);
    let killed = kill.args([&*listed, "SIGTERM"]).output().expect("sdm");
    assert!(killed.status.success(), "{killed:?}");
    sdm.out.wait_each(0, "0-1", "terminated by signal SIGTERM");
    sdm.ask("quit", "quit");
    let _done = sdm.finish();
}

/// A tool sees the ranks of all hosts, whichever host's PMIx server it asks.
fn a_tool_sees_all_hosts(place: &Place) {
    let ask = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/pmix_ask.py");
    let server = place.pids("sdm-pmix host")[1].to_string();
    let told = at_the_host_of(&server)
        .arg("/usr/bin/python3")
        .arg(&ask)
        .arg(file_of(&server))
        .output()
        .expect("nsenter");
    let told = String::from_utf8_lossy(&[told.stdout, told.stderr].concat()).into_owned();
    for (rank, host) in [(0, "h1"), (1, "h2"), (2, "h3")] {
        let row = format!("{rank} on {host}: mpi_late, pid ");
        assert!(told.contains(&row), "no {row:?} in {told}");
    }
    let asked = [
        ("pmix.lprocs?pmix.nodeid=0", &[0][..]),
        ("pmix.lprocs?pmix.nodeid=1?pmix.nodeid=2", &[1, 2]),
        ("pmix.lprocs?pmix.hname=h3", &[2]),
    ];
    let mut tool = at_the_host_of(&server);
    tool.args(["/usr/bin/python3", "-W", "ignore"]).arg(ask);
    tool.arg(file_of(&server)).args(asked.map(|(key, _)| key));
    let told = tool.arg("pmix.lprocs?pmix.nodeid=3").output();
    let told = String::from_utf8_lossy(&told.expect("nsenter").stdout).into_owned();
    let mut lines = told.lines();
    for (key, ranks) in asked {
        let line = lines.next().unwrap_or_else(|| panic!("{told}"));
        let found = line
            .match_indices("'rank': ")
            .map(|(at, word)| &line[at + word.len()..]);
        let found = found.map(|it| it.split('}').next().unwrap_or_default().to_owned());
        let ranks: Vec<_> = ranks.iter().map(ToString::to_string).collect();
        assert!(line.starts_with(&format!("{key}: ")), "{told}");
        assert_eq!(found.collect::<Vec<_>>(), ranks, "{told}");
    }
    assert_eq!(
        lines.next(),
        Some("pmix.lprocs?pmix.nodeid=3: -46"),
        "{told}"
    );
    let mut sdm = at_the_host_of(&server);
    sdm.arg(binaries::folder().join("sdm"))
        .args(["pmix", "query", "--pid", &server]);
    let memory = sdm.args(["memory", "--json"]).output().expect("nsenter");
    let memory: Value = serde_json::from_slice(&memory.stdout).expect("JSON");
    let memory = &memory["values"]["pmix.qry.mem"]["pmix.pdata"];
    for (rank, host) in [(0, "h1"), (1, "h2"), (2, "h3")] {
        let row = &memory[rank];
        assert_eq!(row["pmix.procid"]["rank"], rank, "{memory}");
        assert_eq!(row["pmix.hname"], host, "{memory}");
        assert!(row["pmix.cl.mem.avg"].as_f64() > Some(1.0), "{memory}");
    }
}

/// The ranks use PMIx without MPI. Their data is larger than a frame, or is requested in single pieces.
fn what_all_put_comes_to_all(place: &Place) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/pmix_put.py");
    let script: PathBuf = place.path().join("pmix_put.py");
    fs::copy(source, &script).expect("a copy");
    let script = script.to_str().expect("text");
    for words in [
        vec![script, "10"],
        vec![script, "9000000"],
        vec![script, "3000000", "one by one"],
    ] {
        let done = batch(place, 4, TWO)
            .args(["--pmix", "on"])
            .program(Path::new("/usr/bin/python3"), &words)
            .finish()
            .code(0);
        assert_eq!(lines_of(&done), expected(4, "all are there"), "{done}");
    }
}

/// Ranks that run on without gdb meet at their end; where `sdm` is killed they cannot, and end all the same.
fn who_is_left_running_ends(place: &Place, late: &Path) {
    for killed in [false, true] {
        let go = place.path().join(format!("go-{killed}"));
        let mut sdm = run(place, 4, TWO)
            .args(["--no-stop"])
            .talk()
            .program(late, &[go.to_str().expect("text")])
            .spawn();
        for rank in 0..4 {
            sdm.out.wait(0, &format!("rank {rank} of 4: 2 here"));
        }
        sdm.stop("0-3");
        sdm.ask("detach", "detached");
        if killed {
            processes::signal(sdm.pid(), Signal::SIGKILL);
            until("sdm-master, the root of the servers, has ended", || {
                place.pids("sdm-master").is_empty()
            });
        }
        fs::write(&go, "").expect("a file");
        let done = sdm.finish();
        assert_eq!(done.code, (!killed).then_some(0), "{done}");
        place.assert_gone();
    }
}
