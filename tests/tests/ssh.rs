//! Sessions on several hosts that are reached by ssh: network namespaces with an sshd of their own.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use nix::sys::signal::Signal;
use sdm::session::SessionConfig;
use sdm_core::message::Health;
use sdm_launch::HostShare;
use sdm_tests::job::{Folder, HeldJob, look, running};
use sdm_tests::parts::Part;
use sdm_tests::place::{Compiler, Place};
use sdm_tests::run::{Run, alone, evaluate, fake};
use sdm_tests::sdm::Sdm;
use sdm_tests::{binaries, processes};

const CONFIG: &str = "/tmp/sdm-hosts/ssh_config";
const HOSTS: &str = "10.77.0.1,10.77.0.2:2,10.77.0.3,10.77.0.4";

/// A server that bears the place's mark on its command line.
fn server(place: &Place) -> PathBuf {
    let server = place.path().join("sdm-server");
    fs::copy(binaries::folder().join("sdm-server"), &server).expect("a copy");
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
fn hosts_are_reached_cut_off_and_reached_again() {
    let _alone = alone();
    let Some(_hosts) = Part::hosts() else { return };
    let place = Place::new();
    let work = place.compile("work", Compiler::C);
    five_tasks_on_four_hosts(&place, &work);
    what_ssh_says_is_explained(&place, &work);
    nothing_stays_where_sdm_is_killed(&place, &work);
    a_host_that_is_cut_off_is_silent_and_comes_back();
    an_open_mpi_job_is_attached_to_on_its_hosts(&place);
}

fn an_open_mpi_job_is_attached_to_on_its_hosts(place: &Place) {
    let folder = Folder::new("hosts");
    let program = folder.compile("mpicc.openmpi", "mpi_held");
    let mut mpirun = Command::new("mpirun.openmpi");
    let net = "10.77.0.0/24";
    mpirun.args(["--mca", "plm_rsh_agent", &format!("ssh -F {CONFIG}")]);
    mpirun.args([
        "--mca",
        "oob_tcp_if_include",
        net,
        "--mca",
        "btl_tcp_if_include",
        net,
    ]);
    mpirun.args([
        "--mca",
        "btl",
        "self,tcp",
        "--host",
        "10.77.0.1:2,10.77.0.2:2",
        "-n",
        "4",
    ]);
    let job = HeldJob::start(mpirun, &folder, &program, 4);
    let ranks = running(&program);
    let looks = || ranks.iter().map(|pid| look(*pid)).collect::<Vec<_>>();
    let before = looks();
    let starter = job.starter().to_string();
    let options = ["--launcher-option", "-F", "--launcher-option", CONFIG];
    let done = Sdm::new(place, "stacks")
        .args([&starter])
        .args(options)
        .finish()
        .code(1);
    assert!(done.out.contains("ranks 0,2-3 (3): main ()"), "{done}");
    assert_eq!(looks(), before);
    let attached = Sdm::new(place, "attach")
        .args([&starter])
        .args(options)
        .talk()
        .spawn();
    attached.out.wait(0, "rank 1: attached");
    processes::signal(attached.pid(), Signal::SIGKILL);
    assert_eq!(attached.finish().code, None);
    assert_eq!(looks(), before);
    job.finish();
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

fn what_ssh_says_is_explained(place: &Place, work: &std::path::Path) {
    let hosts = "10.77.0.1,10.77.0.99";
    let done = run(place, 2, hosts)
        .lines(&["bt"])
        .program(work, &[])
        .finish()
        .code(124);
    let said = "ssh 10.77.0.99 exited with code 255 before all servers were there: check the host";
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
        done.err
            .contains("ssh would ask for a password: set up a key"),
        "{done}"
    );
    let done = Sdm::run(place, 1)
        .args(["--launcher", "ssh", "--host", "10.77.0.1"])
        .args(["--server-path", "/no/such/server"])
        .args(["--launcher-option", "-F", "--launcher-option", CONFIG])
        .program(work, &[])
        .finish()
        .code(124);
    assert!(done.err.contains("the server is not there"), "{done}");
    let done = Sdm::run(place, 1)
        .args(["--launcher", "ssh"])
        .program(work, &[]);
    let done = done.finish().code(124);
    assert!(done.err.contains("which hosts? say --host"), "{done}");
}

fn nothing_stays_where_sdm_is_killed(place: &Place, work: &std::path::Path) {
    let sdm = run(place, 5, HOSTS).talk().program(work, &["spin"]).spawn();
    sdm.out.wait(0, "at main ()");
    processes::signal(sdm.pid(), Signal::SIGKILL);
    let done = sdm.finish();
    assert_eq!(done.code, None);
}

fn a_host_that_is_cut_off_is_silent_and_comes_back() {
    let config = SessionConfig {
        launcher: "ssh".to_owned(),
        launcher_options: vec!["-F".into(), CONFIG.into()],
        hosts: HostShare::list("10.77.0.1,10.77.0.2,10.77.0.3,10.77.0.4").expect("hosts"),
        ..fake(8, "value n = 1\n")
    };
    let mut run = Run::start(&config);
    run.start_tasks();
    let (all, cut) = (run.all(), "6-7".parse().expect("a set"));
    let link = |state: &str| {
        let status = Command::new("ip")
            .args(["link", "set", "sdmv4", state])
            .status();
        assert!(
            status.is_ok_and(|status| status.success()),
            "ip link set {state}"
        );
    };
    // A black hole: nothing is refused and nothing comes back.
    link("down");
    let silent = run.wait_health(&cut, Health::Silent);
    let others = all.difference(&cut);
    assert_eq!(run.ask(&others, &evaluate("n")).answered, others);
    link("up");
    let back = run.wait_health(&cut, Health::Reachable);
    println!("silent after {silent:?}, back after {back:?}");
    assert_eq!(run.ask(&all, &evaluate("n")).answered, all);
    run.close();
}
