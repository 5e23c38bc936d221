//! The PMIx server of a session in the role of its node's server, and the queues of SDM's clusters that tools list.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use nix::sys::signal::Signal;
use sdm_tests::clusters::Shell;
use sdm_tests::ordinary;
use sdm_tests::place::{Compiler, Place};
use sdm_tests::processes;
use sdm_tests::run::until;
use sdm_tests::sdm::{Running, Sdm, command};

/// A session of one rank, whose PMIx server is to be the node's own. The rank waits until the file `go` exists.
fn session<'a>(place: &'a Place, tmp: &Path, held: &Path, go: &Path) -> Running<'a> {
    let sdm: Sdm<'a> = ordinary::run(place, 1)
        .env("TMPDIR", tmp)
        .args(["--launcher", "local", "--pmix", "system", "--no-stop"])
        .talk()
        .program(held, &[go.to_str().expect("text"), "0"]);
    let sdm = sdm.spawn();
    sdm.out.wait(0, "held 1");
    sdm
}

fn end(mut sdm: Running<'_>, go: &Path) {
    fs::write(go, "").expect("a file");
    sdm.out.wait(0, "rank 0: exited with code 7");
    sdm.ask("quit", "quit");
    let _done = sdm.finish();
}

/// The file by which tools find the server of the node.
fn file(tmp: &Path) -> PathBuf {
    let host = nix::unistd::gethostname().expect("a name");
    let name = format!("pmix.sys.{}", host.to_str().expect("text"));
    tmp.join(name)
}

/// A server removes a stale rendezvous file, leaves the file of a live server, and removes its own at its end.
#[test]
fn pmix_server_becomes_node_server_if_there_is_none() {
    let place = Place::new();
    let held = place.compile("mpi_held", Compiler::OpenMpi);
    let [first, second] = ["first", "second"].map(|it| place.path().join(it));
    let tmp = place.path().join("tmp");
    let file = file(&tmp);
    fs::create_dir_all(&tmp).expect("a folder");
    ordinary::give(&tmp);
    let ended = Command::new("true").spawn().expect("true");
    let pid = ended.id();
    let _ended = ended.wait_with_output();
    let text = format!("old-server.0;tcp4://127.0.0.1:9\nv4.2.2\n{pid}\n");
    fs::write(&file, text).expect("a file");
    ordinary::give(&file);
    let sdm = session(&place, &tmp, &held, &first);
    let server = place.pids("sdm-pmix host")[0];
    let said = fs::read_to_string(&file).expect("the server's file");
    assert_eq!(said.lines().nth(2), Some(&*server.to_string()), "{said}");
    let mut pps = command(&place, "pps");
    let pps = ordinary::lower(&mut pps).env("TMPDIR", &tmp);
    let listed = pps.arg("--system-server-first").output().expect("pps");
    let text = String::from_utf8_lossy(&listed.stderr);
    assert!(text.contains("Active nspaces: sdm-"), "{listed:?}");
    // The file exists already: the other session's rank does not wait.
    fs::write(&second, "").expect("a file");
    let mut other = command(&place, sdm_tests::binaries::folder().join("sdm"));
    let words = [
        "run",
        "-n",
        "1",
        "--launcher",
        "local",
        "--pmix",
        "system",
        "--no-stop",
    ];
    let program = [held.as_os_str(), second.as_os_str(), "0".as_ref()];
    let other = other.args(words).args(program).env("TMPDIR", &tmp);
    let other = other.output().expect("sdm");
    let text = String::from_utf8_lossy(&other.stdout);
    let node = nix::unistd::gethostname().expect("a name");
    let node = node.to_string_lossy();
    let notice = format!(
        "PMIx tools cannot find this server as the system server of node {node}: the node already has a system server: sdm-pmix (pid {server}"
    );
    assert!(text.contains(&notice), "{other:?}");
    assert_eq!(fs::read_to_string(&file).expect("it is left"), said);
    end(sdm, &first);
    assert!(!file.exists());
}

/// A link under the name of the rendezvous file is neither followed nor overwritten, and a killed server's file is
/// stale.
#[test]
fn foreign_rendezvous_file_is_left_unchanged() {
    let place = Place::new();
    let held = place.compile("mpi_held", Compiler::OpenMpi);
    let [first, second] = ["first", "second"].map(|it| place.path().join(it));
    let tmp = place.path().join("tmp");
    let file = file(&tmp);
    fs::create_dir_all(&tmp).expect("a folder");
    ordinary::give(&tmp);
    let precious = place.path().join("precious");
    fs::write(&precious, "precious").expect("a file");
    ordinary::give(&precious);
    symlink(&precious, &file).expect("a link");
    let sdm = session(&place, &tmp, &held, &first);
    sdm.out.wait(
        0,
        "PMIx tools cannot find this server as the system server of node ",
    );
    end(sdm, &first);
    assert_eq!(
        fs::read_to_string(&precious).expect("it is there"),
        "precious"
    );
    fs::remove_file(&file).expect("the link");
    fs::remove_file(&first).expect("the file");
    let sdm = session(&place, &tmp, &held, &first);
    let killed = place.pids("sdm-pmix host")[0];
    processes::signal(killed, Signal::SIGKILL);
    sdm.out.wait(0, "(sdm-pmix) has ended");
    assert!(file.exists());
    end(sdm, &first);
    let sdm = session(&place, &tmp, &held, &second);
    let server = place.pids("sdm-pmix host")[0];
    let said = fs::read_to_string(&file).expect("the server's file");
    assert_eq!(said.lines().nth(2), Some(&*server.to_string()), "{said}");
    end(sdm, &second);
}

/// Tools get the queues of the runtime model: from the PMIx server of a session, and also where a server knows no
/// queues.
#[test]
fn tools_list_the_queues_of_the_clusters() {
    let shell = Shell::new();
    let held = shell.place.compile("mpi_held", Compiler::OpenMpi);
    let go = shell.place.path().join("go");
    let words = ["run", "--launcher", "local", "--no-stop", "-n", "1"];
    let program = [
        held.to_str().expect("text"),
        go.to_str().expect("text"),
        "0",
    ];
    let mut sdm = shell.command(&[&words[..], &program].concat());
    let piped = sdm
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let sdm = piped.spawn().expect("sdm");
    let here = shell.place.path().join("go.0");
    until("the rank is through MPI_Init", || here.exists());
    let list = shell.sdm("pmix list").done().out;
    assert!(list.contains(": 1 connected"), "{list}");
    let none = shell.sdm("pmix query queues");
    assert_eq!(none.code, Some(0), "{}", none.err);
    assert!(
        none.err
            .contains("empty: no cluster with queues is connected"),
        "{}",
        none.err
    );
    let _done = shell.sdm("cluster add here local").done();
    shell.watch("queues", |list| {
        list["queues"][0]["attributes"]["name"] == "default"
    });
    let ask = shell.place.path().join("pmix_ask.py");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/pmix_ask.py");
    fs::copy(source, &ask).expect("a copy");
    let server = shell.place.pids("sdm-pmix host")[0].to_string();
    let ask = ask.to_str().expect("text");
    let told = {
        let words = [
            "-W",
            "ignore",
            ask,
            &server,
            "pmix.qry.qlst",
            "pmix.qry.qst",
        ];
        let mut python = shell.program(Path::new("/usr/bin/python3"), &words);
        let told = python.output().expect("python3");
        String::from_utf8_lossy(&[told.stdout, told.stderr].concat()).into_owned()
    };
    let wanted = "pmix.qry.qlst: default\npmix.qry.qst: default=NORMAL\n";
    assert_eq!(told, wanted);
    assert_eq!(
        shell.sdm("pmix query queues").done().out,
        "pmix.qry.qlst: default\n"
    );
    let _done = shell.sdm("cluster add there local").done();
    shell.watch("queues", |list| {
        list["queues"].as_array().map(Vec::len) == Some(2)
    });
    assert_eq!(
        shell.sdm("pmix query queues").done().out,
        "pmix.qry.qlst: here:default,there:default\n"
    );
    fs::write(&go, "").expect("a file");
    let done = sdm.wait_with_output().expect("it ends");
    assert!(done.status.code().is_some(), "{done:?}");
}
