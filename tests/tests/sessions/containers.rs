//! Containers as Apptainer makes them: namespaces of one's own for users, mounts and pids.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use sdm_system::proc;
use sdm_tests::fixture::Compiler;
use sdm_tests::job::Folder;
use sdm_tests::place::Place;
use sdm_tests::processes;
use sdm_tests::run::until;
use sdm_tests::sdm::Sdm;

/// Command prefix that runs the rest in namespaces of its own.
const CONTAINER: [&str; 6] = [
    "unshare",
    "--user",
    "--map-root-user",
    "--mount",
    "--pid",
    "--fork",
];
/// Option of `unshare` that gives the container a `/proc` of its own, as real containers have.
const OWN_PROC: &str = "--mount-proc";

/// False, with a message, where this machine does not allow user namespaces.
fn can_be_had() -> bool {
    let tried = Command::new(CONTAINER[0])
        .args(&CONTAINER[1..])
        .args([OWN_PROC, "true"])
        .output();
    let can = tried.is_ok_and(|it| it.status.success());
    if !can {
        println!("SKIP: this machine lets an ordinary user make no namespaces");
    }
    can
}

/// A container with two processes, whose program exists only inside.
fn container(program: &Path) -> (Child, Vec<u32>) {
    let script = "mount -t tmpfs none /mnt && cp \"$0\" /mnt/inside || exit 1\n/mnt/inside &\n/mnt/inside &\n\
                  echo ready; wait";
    let mut child = Command::new(CONTAINER[0])
        .args(&CONTAINER[1..])
        .args([OWN_PROC, "--kill-child", "sh", "-c", script])
        .arg(program)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("unshare runs");
    let mut line = String::new();
    let out = child.stdout.as_mut().expect("it is a pipe");
    BufReader::new(out)
        .read_line(&mut line)
        .expect("it says so");
    assert_eq!(line.trim(), "ready");
    let is_inside = |pid: &u32| {
        proc::of(pid.cast_signed())
            .program()
            .is_ok_and(|it| it.ends_with("mnt/inside"))
    };
    let mut found = Vec::new();
    // A shell reports that both have begun before they have executed the program.
    until("both have executed the program", || {
        let below = processes::below(child.id()).into_iter();
        found = below.map(|(pid, _)| pid).filter(is_inside).collect();
        found.len() == 2
    });
    (child, found)
}

#[test]
fn container_processes_are_attached_from_outside() {
    if !can_be_had() {
        return;
    }
    let place = Place::new();
    let folder = Folder::new("container");
    let (mut child, pids) = container(&folder.compile(Compiler::C, "loop"));
    let pids: Vec<String> = pids.iter().map(u32::to_string).collect();
    let pids = pids.join(",");
    // The program does not exist outside of the container: functions and lines come from the files inside.
    let done = Sdm::new(&place, "stacks")
        .args(["--pids", &pids, "--gdb", "/no/gdb"])
        .finish();
    assert!(done.out.contains("main () at loop.c:"), "{done}");
    let done = Sdm::new(&place, "attach")
        .args(["--pids", &pids, "-c", "print argc"])
        .finish()
        .code(0);
    assert!(done.out.contains("(2): 1"), "{done}");
    let done = Sdm::new(&place, "doctor").args([&pids]).finish();
    assert!(done.out.contains("is in a container"), "{done}");
    child.kill().expect("it runs");
    child.wait().expect("it ends");
}

#[test]
fn session_runs_inside_a_container() {
    if !can_be_had() {
        return;
    }
    let place = Place::new();
    let program = place.compile("loop", Compiler::C);
    let mut prefix = CONTAINER.to_vec();
    prefix.push(OWN_PROC);
    let done = Sdm::wrapped(&prefix, &place, "run")
        .args(["-n", "2", "--launcher", "local"])
        .lines(&["break step", "continue", "print i"])
        .program(&program, &[])
        .finish()
        .code(0);
    done.expect_part("print i", "ranks 0-1 (2): 1");
    let done = Sdm::wrapped(&prefix, &place, "doctor")
        .args(["--json"])
        .finish();
    assert!(done.out.contains("sdm runs in a user namespace"), "{done}");
}
