//! `sdm emulate`: real servers with scripted tasks, at several sizes, in every mode.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use nix::sys::signal::Signal;
use sdm_tests::{binaries, leftovers, processes};
use serde_json::Value;

const _: () = sdm_tests::run::test_group("crowded", "70 servers");

/// Runs `sdm emulate` in a folder of its own, and checks that no process of it is left.
fn emulate(name: &str, args: &[&str]) -> Output {
    let mark = folder(name);
    let mut command = Command::new(binaries::folder().join("sdm"));
    command.arg("emulate").args(args).current_dir(&mark);
    finish(command, &mark)
}

fn folder(name: &str) -> PathBuf {
    let mark = std::env::temp_dir().join(format!("sdm-emulate-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&mark).expect("a folder of the test's own");
    mark
}

fn finish(mut command: Command, mark: &std::path::Path) -> Output {
    // The folder's name in the environment marks every process of the session.
    let value = mark.display().to_string();
    command.env("SDM_TEST_MARK", &value);
    let output = command.output().expect("sdm starts");
    leftovers::assert_gone(&value);
    std::fs::remove_dir_all(mark).expect("the folder is the test's own");
    output
}

fn text(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

#[test]
fn emulated_session_of_any_size_answers_and_ends() {
    for count in ["1", "64", "300"] {
        let args = [
            "-n",
            count,
            "-c",
            "stacks",
            "-c",
            "print rank % 3",
            "-c",
            "quit",
        ];
        let output = emulate("size", &args);
        let (out, err) = text(&output);
        assert_eq!(output.status.code(), Some(0), "{count}: {out}{err}");
        assert_eq!(err, "", "{count}");
        let who = match count {
            "1" => "rank 0".to_owned(),
            count => format!("ranks 0-{} ({count})", count.parse::<u32>().unwrap() - 1),
        };
        let stack = format!("(sdm) stacks\n{who}: main () at halo.c:142\n");
        assert!(out.contains(&stack), "{count}: {out}");
        let zeros = out.lines().filter(|line| line.ends_with(": 0")).count();
        assert_eq!(zeros, 1, "equal values come once: {out}");
    }
}

#[test]
fn scenario_defines_the_behaviour_of_tasks() {
    let mark = folder("scenario");
    let scenario = "[all]\nstack = main m.c:9 > solve s.c:3\ncontinue = 1ms breakpoint\n\
                    [tasks 5]\nstack = main m.c:9 > report r.c:7\n";
    std::fs::write(mark.join("one.scenario"), scenario).expect("written");
    let mut command = Command::new(binaries::folder().join("sdm"));
    let args = "emulate -n 16 --scenario one.scenario --json";
    command.args(args.split(' ')).current_dir(&mark);
    for line in ["stacks", "break s.c:3", "continue", "frobnicate"] {
        command.args(["-c", line]);
    }
    let output = finish(command, &mark);
    let (out, err) = text(&output);
    assert_eq!(output.status.code(), Some(123), "{out}{err}");
    let records = out
        .lines()
        .map(|line| serde_json::from_str(line).expect(line));
    let records: Vec<Value> = records.collect();
    let stacks = records.iter().find(|it| it["command"] == "stacks");
    let stacks = stacks.expect("an answer")["classes"][0]["stacks"].as_array();
    let stacks = stacks.expect("a list").iter();
    let inner = |it: &Value| it["frames"][1]["function"].clone();
    let stacks: Vec<_> = stacks.map(|it| (it["tasks"].clone(), inner(it))).collect();
    let expected = [("0-4,6-15", "solve"), ("5", "report")];
    assert_eq!(
        stacks,
        expected.map(|(tasks, name)| (tasks.into(), name.into()))
    );
    let stops = records.iter().filter(|it| it["reason"] == "breakpoint");
    let stops: Vec<_> = stops.map(|it| &it["tasks"]).collect();
    assert_eq!(stops, ["0-4,6-15", "5"]);
}

/// Each task is at a different location: a list too long for the screen is shortened, and shown in full on request.
#[test]
fn stacks_at_distinct_lines_fit_a_screen() {
    let file = std::env::temp_dir().join(format!("sdm-places-{}.scenario", std::process::id()));
    let stack = |n| {
        format!(
            "stack = main a.c:1 > phase a.c:2 > place_{n} a.c:{}\n",
            100 + n
        )
    };
    let scenario = format!("[all]\n{}", (0..64).map(stack).collect::<String>());
    std::fs::write(&file, scenario).expect("a file of the test's own");
    let file_name = file.display().to_string();
    let mut args = vec!["-n", "64", "--scenario", &file_name];
    let lines = ["stacks", "more", "bt", "outliers rank", "report r.html"];
    args.extend(lines.iter().flat_map(|line| ["-c", line]));
    let output = emulate("places", &args);
    std::fs::remove_file(&file).expect("it was written");
    let (out, err) = text(&output);
    assert_eq!(output.status.code(), Some(0), "{out}{err}");
    for (line, said) in lines.iter().zip(out.split("(sdm) ").skip(1)) {
        let count = said.lines().count() - 1;
        let whole = (0..64).all(|n| said.contains(&format!("place_{n} ")));
        match *line {
            "more" => assert!(whole && count > 64, "{said}"),
            line => assert!(count <= 41 && !whole, "{line}: {said}"),
        }
    }
}

/// A diagnosis of many tasks, whose probes are merged on their way up a real tree.
#[test]
fn single_mismatched_rank_is_named_among_many() {
    let file = std::env::temp_dir().join(format!("sdm-diagnose-{}.scenario", std::process::id()));
    let scenario = "[all]\ncontinue = never\nstack = main a.c:9 > total a.c:30 > MPI_Allreduce a.c:30\nlocal r = {rank}\n\
                    value communicator = MPI_COMM_WORLD\n\
                    [tasks 63]\nstack = main a.c:9 > halo h.c:44 > MPI_Recv h.c:44\nvalue source = 7\nvalue tag = 5\n";
    std::fs::write(&file, scenario).expect("a file of the test's own");
    let file_name = file.display().to_string();
    let mut args = vec!["-n", "128", "--scenario", &file_name];
    args.extend(["-c", "continue &", "-c", "diagnose"]);
    let output = emulate("diagnose", &args);
    std::fs::remove_file(&file).expect("it was written");
    let (out, err) = text(&output);
    assert_eq!(output.status.code(), Some(0), "{out}{err}");
    for line in [
        "Deadlock: likely to blame: ranks 7,63 (2): rank 63 waits for rank 7, which waits for rank 63 in MPI_Allreduce; one of these two ranks is wrong\n",
        "rank 63: waiting in MPI_Recv, called from halo () at h.c:44; nothing changed\n",
        "    from 7 (source), tag 5 (tag)\n",
        "rank 7: waiting in MPI_Allreduce, called from total () at a.c:30; nothing changed\n",
        "ranks 0-6,8-62,64-127 (126): waiting in MPI_Allreduce, called from total () at a.c:30; nothing changed\n",
    ] {
        assert!(out.contains(line), "{line}: {out}{err}");
    }
}

#[test]
fn round_trip_times_are_printed_in_one_line() {
    let args = "-n 32 --roundtrips 20 --bytes 64 --topology kary:4";
    let output = emulate("rounds", &args.split(' ').collect::<Vec<_>>());
    let (out, err) = text(&output);
    assert_eq!(output.status.code(), Some(0), "{out}{err}");
    assert_eq!(out.lines().count(), 1, "{out}");
    let fields: Vec<(&str, u64)> = out
        .split_whitespace()
        .map(|field| field.split_once('=').expect("name=value"))
        .map(|(name, value)| (name, value.parse().expect("a number")))
        .collect();
    let names: Vec<&str> = fields.iter().map(|(name, _)| *name).collect();
    assert_eq!(
        names,
        ["n", "rounds", "bytes", "min_us", "median_us", "p99_us"]
    );
    let values: Vec<u64> = fields.iter().map(|(_, value)| *value).collect();
    assert_eq!(values[..3], [32, 20, 64]);
    assert!(values[3] <= values[4] && values[4] <= values[5], "{out}");
}

/// The shortest round trip of a tree with these options, in microseconds.
fn quickest(options: &str) -> u64 {
    let args = format!("--roundtrips 3 {options}");
    let output = emulate("links", &args.split(' ').collect::<Vec<_>>());
    let (out, err) = text(&output);
    assert_eq!(output.status.code(), Some(0), "{options}: {out}{err}");
    let field = out
        .split_whitespace()
        .find_map(|it| it.strip_prefix("min_us="));
    field.expect("a field").parse().expect("a number")
}

/// Eight members are three links deep. A latency far above all other costs shows that no link delays less than
/// configured.
#[test]
fn slow_links_delay_each_hop() {
    let latency_us = 20_000;
    assert!(quickest("-n 7 --latency 20ms --topology binomial") >= 3 * 2 * latency_us);
    assert!(quickest("-n 7 --latency 20ms --topology flat") >= 2 * latency_us);
    // 4000 bytes each way over three links.
    assert!(quickest("-n 7 --bandwidth 100k --bytes 4000 --topology binomial") >= 3 * 2 * 40_000);
    let second_us = 1_000_000;
    let two_hosts = quickest("-n 4 --hosts 2 --topology by-host --latency 1s");
    // The master has a host of its own.
    assert!((2 * second_us..6 * second_us).contains(&two_hosts));
}

#[test]
fn emulation_beyond_the_limits_is_refused_before_start() {
    let check = |args: &str, parts: &[&str]| {
        let output = emulate("refused", &args.split(' ').collect::<Vec<_>>());
        let (out, err) = text(&output);
        assert_eq!(output.status.code(), Some(124), "{args}: {out}{err}");
        for part in parts {
            assert!(err.contains(part), "{args}: {part}: {err}");
        }
    };
    check("-n 1000000 -c quit", &["for 1000000 more", "are needed"]);
    if may_raise_limits() {
        println!("SKIP: no limit of descriptors holds this user");
        return;
    }
    let mark = folder("descriptors");
    let mut command = Command::new("sh");
    let line = "ulimit -n 100; exec \"$0\" emulate -n 5000 -c quit";
    command
        .args(["-c", line])
        .arg(binaries::folder().join("sdm"));
    command.current_dir(&mark);
    let output = finish(command, &mark);
    let (out, err) = text(&output);
    assert_eq!(output.status.code(), Some(124), "{out}{err}");
    assert!(
        err.contains("file descriptors, but only 100 are allowed"),
        "{err}"
    );
}

/// True if this process holds CAP_SYS_RESOURCE.
fn may_raise_limits() -> bool {
    const CAP_SYS_RESOURCE: u32 = 24;
    let status = sdm_system::proc::own().status().expect("Linux");
    let held = status.bits("CapEff").expect("a field of it");
    held >> CAP_SYS_RESOURCE & 1 == 1
}

/// Forked servers, each a process of which one can be killed alone; the message names it.
#[test]
fn killed_server_is_named_and_the_others_answer() {
    let mark = folder("killed");
    let value = mark.display().to_string();
    let mut command = Command::new(binaries::folder().join("sdm"));
    command.args("emulate -n 70".split(' ')).current_dir(&mark);
    command.env("SDM_TEST_MARK", &value).stdin(Stdio::piped());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("sdm starts");
    let mut stdout = BufReader::new(child.stdout.take().expect("it was piped"));
    let mut out = String::new();
    let mut read_until = |part: &str| {
        while !out.contains(part) {
            let read = stdout.read_line(&mut out).expect("what it prints");
            assert!(read > 0, "no {part:?} in {out}");
        }
    };
    read_until("at MPI_Recv ()");
    let servers = processes::servers(&value);
    assert_eq!(servers.len(), 70);
    processes::signal(servers[&66], Signal::SIGKILL);
    read_until("rank 66: lost");
    let mut stdin = child.stdin.take().expect("it was piped");
    stdin.write_all(b"print rank % 2\n").expect("it reads");
    drop(stdin);
    read_until("ranks 1-69/2 (35): 1\n");
    child.wait().expect("it ends");
    leftovers::assert_gone(&value);
    std::fs::remove_dir_all(mark).expect("the folder is the test's own");
}

#[test]
fn invalid_scenarios_are_refused_by_name() {
    let output = emulate("missing", &["--scenario", "none.scenario", "-c", "quit"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output).1.contains("read none.scenario"), "{output:?}");
    let mark = folder("wrong");
    std::fs::write(mark.join("bad.scenario"), "[all]\nfoo = 1\n").expect("written");
    let mut command = Command::new(binaries::folder().join("sdm"));
    command.args(["emulate", "--scenario", "bad.scenario", "-c", "quit"]);
    command.current_dir(&mark);
    let output = finish(command, &mark);
    assert_eq!(output.status.code(), Some(2));
    let expect = "bad.scenario: scenario, line 2: the key 'foo' is unknown";
    assert!(text(&output).1.contains(expect), "{output:?}");
}

#[test]
fn servers_are_spread_over_host_names() {
    let args = ["-n", "12", "--hosts", "10", "--topology", "by-host"];
    let commands = ["info nodes", "[@host:n[02-03]] print rank", "info tree"];
    let commands = commands.iter().flat_map(|command| ["-c", command]);
    let output = emulate(
        "hosts",
        &args.into_iter().chain(commands).collect::<Vec<_>>(),
    );
    let (out, err) = text(&output);
    assert_eq!(output.status.code(), Some(0), "{out}{err}");
    for line in [
        "n01  ranks 0-1 (2), 2 servers  2 stopped",
        "n10  rank 11, 1 server",
        "rank 2: 2",
        "rank 4: 4",
        "    server 1 on n01: rank 1",
    ] {
        assert!(out.contains(line), "no {line:?} in {out}");
    }
    assert!(!out.contains("rank 5: 5"), "{out}");
}
