//! Jobs of MPI on several hosts, which are attached to where their ranks are.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use nix::sys::signal::Signal;
use sdm_tests::fixture::Compiler;
use sdm_tests::job::{Folder, HeldJob, look_after_kill, running};
use sdm_tests::place::Place;
use sdm_tests::processes;
use sdm_tests::sdm::Sdm;

use super::network::hosts_script;
use super::{CONFIG, server};

/// `mpi_held` on the first two hosts.
fn held_by_open_mpi(folder: &Folder, program: &Path) -> HeldJob {
    let mut mpirun = Command::new("mpirun.openmpi");
    let (net, agent) = ("10.77.0.0/24", format!("ssh -F {CONFIG}"));
    for (name, value) in [
        ("plm_rsh_agent", &*agent),
        ("oob_tcp_if_include", net),
        ("btl_tcp_if_include", net),
        ("btl", "self,tcp"),
    ] {
        mpirun.args(["--mca", name, value]);
    }
    mpirun.args(["--host", "10.77.0.1:2,10.77.0.2:2", "-n", "4"]);
    HeldJob::start(mpirun, folder, program, 4)
}

/// Settings of ssh for a job of which one host is cut off: a short time limit for that host, whose connection must
/// fail. The other hosts keep their limit.
fn settings_without(host: &str) -> String {
    format!("Include {CONFIG}\nHost {host}\n  ConnectTimeout 3\n")
}

/// `sdm stacks` or `attach` of a job.
fn look_at<'a>(place: &'a Place, verb: &str, job: &HeldJob) -> Sdm<'a> {
    Sdm::new(place, verb)
        .args([job.starter().to_string()])
        .args(["--launcher-option", "-F", "--launcher-option", CONFIG])
}

pub(super) fn an_open_mpi_job_is_attached_to_on_its_hosts(place: &Place) {
    let folder = Folder::new("hosts");
    let program = folder.compile(Compiler::OpenMpi, "mpi_held");
    let job = held_by_open_mpi(&folder, &program);
    let ranks = running(&program);
    // The gdbs on the hosts may take longer to detach than `sdm` waits for them.
    let looks = || {
        ranks
            .iter()
            .map(|pid| look_after_kill(*pid))
            .collect::<Vec<_>>()
    };
    let before = looks();
    let done = look_at(place, "stacks", &job).finish().code(1);
    assert!(done.out.contains("ranks 0,2-3 (3): main ()"), "{done}");
    assert_eq!(looks(), before);
    a_host_with_an_obstacle_costs_its_own_ranks(place, &job);
    assert_eq!(looks(), before);
    more_of_the_job_is_attached_to_where_no_server_is(place, &job);
    assert_eq!(looks(), before);
    let attached = look_at(place, "attach", &job).talk().spawn();
    attached.out.wait(0, "rank 1: attached");
    processes::signal(attached.pid(), Signal::SIGKILL);
    assert_eq!(attached.finish().code, None);
    assert_eq!(looks(), before);
    // It ends while the servers come up.
    let pids: Vec<String> = ranks.iter().map(u32::to_string).collect();
    let end = format!(
        "touch {}; for pid in {}; do while kill -0 $pid; do sleep 0.05; done; done",
        folder.0.join("go").display(),
        pids.join(" ")
    );
    let done = look_at(place, "stacks", &job)
        .args([
            OsStr::new("--server-path"),
            server_behind(place, "end", &end).as_os_str(),
        ])
        .finish()
        .code(2);
    let said = "ranks 0-3 (4): the process has ended\n";
    assert!(done.out.contains(said), "{done}");
    job.finish();
}

/// Hydra has no process table. SDM finds its hosts by the ssh processes that Hydra has started, and queries them.
pub(super) fn a_hydra_job_is_attached_to_on_its_hosts(place: &Place) {
    let folder = Folder::new("hydra");
    let program = folder.compile(Compiler::Mpich, "mpi_held");
    let login = folder.0.join("login");
    let config = folder.0.join("ssh_config");
    fs::write(&config, format!("Include {CONFIG}\n")).expect("a file");
    let text = format!("#!/bin/sh\nexec ssh -F {} \"$@\"\n", config.display());
    fs::write(&login, text).expect("a file");
    fs::set_permissions(&login, fs::Permissions::from_mode(0o755)).expect("it is ours");
    let mut mpiexec = Command::new("mpiexec.hydra");
    mpiexec
        .args(["-launcher", "ssh", "-launcher-exec"])
        .arg(&login)
        .args(["-localhost", "10.77.0.254"])
        .args(["-hosts", "10.77.0.1,10.77.0.2,10.77.0.3", "-ppn", "2"])
        .args(["-n", "6"]);
    let job = HeldJob::start(mpiexec, &folder, &program, 6);
    let ranks = running(&program);
    // The gdbs on the hosts may take longer to detach than `sdm` waits for them.
    let looks = || {
        ranks
            .iter()
            .map(|pid| look_after_kill(*pid))
            .collect::<Vec<_>>()
    };
    let before = looks();
    let done = look_at(place, "stacks", &job).finish().code(1);
    assert!(done.out.contains("ranks 0,2-5 (5): main ()"), "{done}");
    assert!(done.out.contains("rank 1: main ()"), "{done}");
    let done = look_at(place, "attach", &job)
        .args(["--ranks", "1-2"])
        .lines(&["print 1", "[2] print rank", "info nodes"])
        .lines(&["[1] break turn", "[1] continue", "[1] next"])
        .lines(&["stacks", "detach"])
        .finish()
        .code(0);
    done.expect("print 1", "ranks 1-2 (2): 1\n");
    done.expect("[2] print rank", "rank 2: 2\n");
    assert!(!done.answer("info nodes").contains("10.77.0.3"), "{done}");
    let stopped = "rank 1: stopped at breakpoint 1, turn () at mpi_held.c:";
    done.expect_part("[1] continue", stopped);
    done.expect_part("[1] next", "rank 1: turn () at mpi_held.c:");
    done.expect_part("stacks", "rank 2: main () at mpi_held.c:");
    assert_eq!(looks(), before);
    let attached = look_at(place, "attach", &job).talk().spawn();
    attached.out.wait(0, "rank 1: attached");
    processes::signal(attached.pid(), Signal::SIGKILL);
    assert_eq!(attached.finish().code, None);
    assert_eq!(looks(), before);
    // A host that cannot be queried any more is reported, and costs its own ranks only.
    fs::write(&config, settings_without("10.77.0.3")).expect("a file");
    hosts_script(&["cut", "3"]);
    let done = look_at(place, "stacks", &job).finish().code(2);
    hosts_script(&["mend", "3"]);
    let said = "2 of the 6 ranks run on other hosts, 10.77.0.3: ";
    assert!(done.out.contains(said), "{done}");
    assert!(done.out.contains("ranks 0,2-3 (3): main ()"), "{done}");
    assert_eq!(looks(), before);
    job.finish();
}

/// Ranks 2 and 3 are on the second host.
fn more_of_the_job_is_attached_to_where_no_server_is(place: &Place, job: &HeldJob) {
    let done = look_at(place, "attach", job)
        .args(["--ranks", "0-1"])
        .lines(&[
            "[1] break turn",
            "attach 2-3",
            "print 1",
            "[0,2-3] print rank",
        ])
        .lines(&["[1] continue", "[1] next", "stacks", "detach"])
        .finish()
        .code(0);
    done.expect_part(
        "attach 2-3",
        "this session has no sdm-server on the hosts of ranks 2-3 (2); sdm detaches",
    );
    done.expect_part("attach 2-3", "attached, in MPI_Allreduce");
    done.expect("print 1", "ranks 0-3 (4): 1\n");
    let each = "rank 0: 0\nrank 2: 2\nrank 3: 3\n";
    done.expect("[0,2-3] print rank", each);
    done.expect_part("[1] continue", "rank 1: stopped at breakpoint 1, turn ()");
    done.expect_part("[1] next", "rank 1: turn () at mpi_held.c:");
    done.expect_part("stacks", "ranks 0,2-3 (3): main () at mpi_held.c:");
}

/// A script in place of the server, which executes `what` first on host h2.
fn server_behind(place: &Place, name: &str, what: &str) -> PathBuf {
    let script = place.path().join(format!("server-behind-{name}"));
    let server = server(place);
    let text = format!(
        "#!/bin/sh\nif [ \"$(hostname)\" = h2 ]; then\n{what}\nfi\nexec {} \"$@\"\n",
        server.display()
    );
    fs::write(&script, text).expect("a file");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).expect("it is ours");
    script
}

fn a_host_with_an_obstacle_costs_its_own_ranks(place: &Place, job: &HeldJob) {
    let server = server_behind(place, "no-gdb", "PATH=/etc");
    let done = look_at(place, "stacks", job)
        .args(["--by", "gdb", "--server-path"])
        .args([&server])
        .finish()
        .code(2);
    for part in [
        "ranks 2-3 (2): gdb: no such gdb on this host\n",
        "install gdb, or select one with --gdb",
        "rank 1: main ()",
    ] {
        assert!(done.out.contains(part), "no {part:?} in {done}");
    }
    let config = place.path().join("without-2");
    fs::write(&config, settings_without("10.77.0.2")).expect("a file");
    hosts_script(&["cut", "2"]);
    let done = look_at(place, "attach", job)
        .args(["--launcher-option", "-F", "--launcher-option"])
        .args([&config])
        .lines(&["print 6 * 7", "ranks"])
        .finish()
        .code(0);
    hosts_script(&["mend", "2"]);
    let said = "the host does not answer: check it, the network and the firewall";
    assert!(done.err.contains(said), "{done}");
    assert!(
        done.out
            .contains("ranks 2-3 (2): no sdm-server started on 10.77.0.2\n"),
        "{done}"
    );
    done.expect("print 6 * 7", "ranks 0-1 (2): 42\n");
}
