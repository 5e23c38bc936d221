//! Sessions on several hosts that are reached by ssh: network namespaces with an sshd of their own.

mod doctor;
mod hosted;
mod jobs;
mod network;

pub(crate) use network::hosts_script;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use sdm_tests::cores::leave_core;
use sdm_tests::parts::Part;
use sdm_tests::place::{Compiler, Place};
use sdm_tests::run::BOUND;
use sdm_tests::sdm::Sdm;
use sdm_tests::{binaries, ordinary, processes};

const _: () = sdm_tests::run::test_group("hosts", "hosts in namespaces, with one sshd each");

pub(crate) const CONFIG: &str = "/tmp/sdm-hosts/ssh_config";
const HOSTS: &str = "10.77.0.1,10.77.0.2:2,10.77.0.3,10.77.0.4";

/// A server that bears the place's mark on its command line.
pub(crate) fn server(place: &Place) -> PathBuf {
    let server = place.path().join("sdm-server");
    // One that still runs cannot be written over.
    if !server.exists() {
        fs::copy(binaries::folder().join("sdm-server"), &server).expect("a copy");
    }
    server
}

fn run<'a>(place: &'a Place, count: u32, hosts: &str) -> Sdm<'a> {
    let server = server(place).to_string_lossy().into_owned();
    Sdm::run(place, count)
        .args([
            "--launcher",
            "ssh",
            "--host",
            hosts,
            "--server-path",
            &server,
        ])
        .args(["--launcher-option", "-F", "--launcher-option", CONFIG])
}

#[test]
fn sessions_run_over_ssh_and_survive_cut_off_hosts() {
    // It takes a host away for good.
    let Some(_hosts) = Part::hosts().map(Part::to_be_harmed) else {
        return;
    };
    let place = Place::new();
    let work = place.compile("work", Compiler::C);
    doctor::a_host_is_looked_at(&place);
    five_tasks_on_four_hosts(&place, &work);
    what_ssh_says_is_explained(&place, &work);
    network::the_network_is_the_one_that_was_chosen(&place, &work);
    network::only_sshd_can_be_reached(&place, &work);
    hosts_start_each_other_with_a_copy_of_the_server(&place, &work);
    core_files_are_read_where_they_are(&place);
    nothing_stays_where_sdm_is_killed(&place, &work);
    jobs::an_open_mpi_job_is_attached_to_on_its_hosts(&place);
    jobs::a_hydra_job_is_attached_to_on_its_hosts(&place);
    network::who_calls_calls_again();
    network::a_host_that_is_cut_off_is_silent_and_comes_back_or_is_lost();
}

/// Three core files, read on two hosts.
fn core_files_are_read_where_they_are(place: &Place) {
    let server = server(place).to_string_lossy().into_owned();
    let names = [0, 1, 2].map(|rank| leave_core(place, Some(rank), "segv", &["run"]));
    let done = Sdm::new(place, "core")
        .args(["--host", "10.77.0.1,10.77.0.2", "--server-path", &server])
        .args(["--launcher-option", "-F", "--launcher-option", CONFIG])
        .args(["./work"])
        .args(names)
        .finish()
        .code(0);
    assert!(
        done.out.contains("ranks 0-2 (3): main () at work.c"),
        "{done}"
    );
}

fn five_tasks_on_four_hosts(place: &Place, work: &std::path::Path) {
    let done = run(place, 5, HOSTS)
        .lines(&[
            "set var rank = 7",
            "break twice",
            "continue",
            "bt",
            "next",
            "print number",
        ])
        .lines(&["[1-2] print (int)getpid() > 0", "stacks"])
        .program(work, &[])
        .finish()
        .code(0);
    done.expect_part(
        "continue",
        "ranks 0-4 (5): stopped at breakpoint 1, twice () at work.c:",
    );
    done.expect("print number", "ranks 0-4 (5): 7\n");
    done.expect_part("stacks", "ranks 0-4 (5): main ()");
}

/// Two levels of ssh; the copied files are removed afterwards.
fn hosts_start_each_other_with_a_copy_of_the_server(place: &Place, work: &Path) {
    let temporary = place.path().join("tmp");
    fs::create_dir_all(&temporary).expect("a folder");
    ordinary::give(&temporary);
    let login = |hosts: &'static str| {
        // The folder for copies is the test's own, on every host.
        let command = format!("-oSetEnv=TMPDIR={}", temporary.display());
        Sdm::run(place, 4)
            .env("TMPDIR", &temporary)
            .args([
                "--launcher",
                "ssh",
                "--host",
                hosts,
                "--fanout",
                "1",
                "--stage",
            ])
            .args(["--launcher-option", "-F", "--launcher-option", CONFIG])
            .args(["--launcher-option", &command])
    };
    let done = login("h1,h2,h3,h4")
        .lines(&["print 1"])
        .program(work, &[])
        .finish()
        .code(0);
    done.expect("print 1", "ranks 0-3 (4): 1\n");
    let done = login("h1,h2,h3,10.77.0.99")
        .program(work, &[])
        .finish()
        .code(124);
    let said =
        "ssh 10.77.0.99 (from h3) exited with code 255: check the host and the network; it said:";
    assert!(done.err.contains(said), "{done}");
    let sdm = login("h1,h2,h3,h4").talk().program(work, &["spin"]).spawn();
    sdm.out.wait(0, "ranks 0-3 (4): at main ()");
    let copies = || fs::read_dir(&temporary).map_or(0, Iterator::count);
    assert!(copies() >= 4, "{} copies", copies());
    processes::signal(sdm.pid(), Signal::SIGKILL);
    assert_eq!(sdm.finish().code, None);
    let deadline = Instant::now() + BOUND;
    while copies() > 0 {
        assert!(Instant::now() < deadline, "{} copies stay", copies());
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn what_ssh_says_is_explained(place: &Place, work: &std::path::Path) {
    let hosts = "10.77.0.1,10.77.0.99";
    let done = run(place, 2, hosts)
        .lines(&["bt"])
        .program(work, &[])
        .finish()
        .code(124);
    let said =
        "ssh 10.77.0.99 exited with code 255 before all servers had reported: check the host";
    assert!(done.err.contains(said), "{done}");
    let done = run(place, 2, hosts)
        .args(["--partial"])
        .lines(&["bt"])
        .program(work, &[])
        .finish()
        .code(0);
    assert!(done.err.contains("ssh 10.77.0.99 exited"), "{done}");
    done.expect_part("bt", "rank 0:\n#0  main (argc=1");
    let config = place.path().join("no-key");
    let text = fs::read_to_string(CONFIG).expect("made by the script");
    let without = text.lines().filter(|line| !line.contains("IdentityFile"));
    fs::write(&config, without.collect::<Vec<_>>().join("\n")).expect("a file");
    let server = server(place).to_string_lossy().into_owned();
    let done = Sdm::run(place, 1)
        .args([
            "--launcher",
            "ssh",
            "--host",
            "10.77.0.1",
            "--server-path",
            &server,
        ])
        .args(["--launcher-option", "-F", "--launcher-option"])
        .args([&config])
        .args(["--launcher-option", "-oIdentityFile=/dev/null"])
        .program(work, &[])
        .finish()
        .code(124);
    assert!(
        done.err.contains("ssh requires a password: set up a key"),
        "{done}"
    );
    let done = Sdm::run(place, 1)
        .args(["--launcher", "ssh", "--host", "10.77.0.1"])
        .args(["--server-path", "/no/such/server"])
        .args(["--launcher-option", "-F", "--launcher-option", CONFIG])
        .program(work, &[])
        .finish()
        .code(124);
    assert!(
        done.err
            .contains("sdm-server is not installed on that host"),
        "{done}"
    );
    let done = Sdm::run(place, 1)
        .args(["--launcher", "ssh"])
        .program(work, &[]);
    let done = done.finish().code(124);
    assert!(done.err.contains("no hosts given: use --host"), "{done}");
}

fn nothing_stays_where_sdm_is_killed(place: &Place, work: &std::path::Path) {
    let sdm = run(place, 5, HOSTS).talk().program(work, &["spin"]).spawn();
    sdm.out.wait(0, "at main ()");
    processes::signal(sdm.pid(), Signal::SIGKILL);
    let done = sdm.finish();
    assert_eq!(done.code, None);
}
