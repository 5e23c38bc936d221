//! Paths through the network between the hosts, and the effects of losing them.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use sdm_core::message::Health;
use sdm_core::topology::Topology;
use sdm_hosts::HostShare;
use sdm_session::{Network, SessionConfig};
use sdm_tests::place::Place;
use sdm_tests::run::{BOUND, Run, evaluate, fake};
use sdm_tests::sdm::Sdm;

use super::{CONFIG, run, server};

pub(super) fn the_network_is_the_one_that_was_chosen(place: &Place, work: &Path) {
    let four = |network: &[&str]| {
        run(place, 4, "10.77.0.1,10.77.0.2:2,10.77.0.3")
            .args(network)
            .lines(&["print 1"])
            .program(work, &[])
            .finish()
    };
    // IPv6 only, and two ports on each host.
    let done = four(&["--interface", "fd77::/64", "--port", "23500-23501"]).code(0);
    done.expect("print 1", "ranks 0-3 (4): 1\n");
    let done = four(&["--port", "23500-23500", "--tasks-per-server", "1"]).code(124);
    let said = "listen at tcp://[::]:23500: every port or path up to tcp://[::]:23500 is in use";
    assert!(done.err.contains(said), "{done}");
    let done = four(&["--interface", "ib0"]).code(124);
    assert!(
        done.err
            .contains("--interface matches no address of this host"),
        "{done}"
    );
    assert!(done.err.contains(" (eth0), ::1 (lo)"), "{done}");
}

/// No port is open but that of sshd.
pub(super) fn only_sshd_can_be_reached(place: &Place, work: &Path) {
    let ssh = place.path().join("bin/ssh");
    fs::create_dir_all(ssh.parent().expect("it has one")).expect("a folder");
    let text = format!("#!/bin/sh\nexec /usr/bin/ssh -F {CONFIG} \"$@\"\n");
    fs::write(&ssh, text).expect("a file");
    fs::set_permissions(&ssh, fs::Permissions::from_mode(0o755)).expect("it is ours");
    let bin = place.path().join("bin");
    let path = |rest: &str| format!("{}:{rest}", bin.display());
    let behind = place.path().join("server-tunnel");
    let set_path = format!(
        "#!/bin/sh\nPATH={} exec {} \"$@\"\n",
        path("$PATH"),
        server(place).display()
    );
    fs::write(&behind, set_path).expect("a file");
    fs::set_permissions(&behind, fs::Permissions::from_mode(0o755)).expect("it is ours");
    for host in ["1", "2", "3"] {
        hosts_script(&["only-ssh", host]);
    }
    let own = std::env::var("PATH").expect("a path");
    let done = Sdm::run(place, 3)
        .env("PATH", path(&own))
        .args(["--launcher", "ssh", "--host", "h1,h2,h3", "--tunnel"])
        .args([OsStr::new("--server-path"), behind.as_os_str()])
        .lines(&["print 1"])
        .program(work, &[])
        .finish()
        .code(0);
    done.expect("print 1", "ranks 0-2 (3): 1\n");
    connections_pass_in_the_other_direction_only(place, work);
    for host in ["1", "2", "3"] {
        hosts_script(&["mend", host]);
    }
}

/// A firewall lets only connections to sshd into these hosts.
fn connections_pass_in_the_other_direction_only(place: &Place, work: &Path) {
    let three = |network: &[&str]| {
        run(place, 3, "10.77.0.1,10.77.0.2,10.77.0.3")
            .args(network)
            .lines(&["break twice", "continue", "print number", "stacks"])
            .program(work, &[])
            .finish()
    };
    // Servers that do not come in time at all are another matter.
    let done = three(&["--start-wait", "20"]).code(124);
    let said = "--reverse lets the servers connect to this host, --tunnel connects through ssh";
    assert!(done.err.contains(said), "{done}");
    let done = three(&["--reverse"]).code(0);
    done.expect("print number", "ranks 0-2 (3): 0\n");
    let chosen = ["--interface", "fd77::/64", "--port", "23600-23600"];
    let done = three(&[&["--reverse"], &chosen[..]].concat()).code(0);
    done.expect("print number", "ranks 0-2 (3): 0\n");
}

/// With `reverse` the servers connect to `sdm`. All connections of a host break, and its servers connect again.
pub(super) fn who_calls_calls_again() {
    let mut config = SessionConfig {
        network: Network {
            reverse: true,
            ..Network::default()
        },
        ..on_four_hosts()
    };
    // Both begin with the loss, and a busy machine takes its time to mend the host.
    config.config.rejoin_wait = BOUND;
    config.config.orphan_wait = BOUND;
    let mut run = Run::start(&config);
    run.start_tasks();
    let (all, cut) = (run.all(), "6-7".parse().expect("a set"));
    hosts_script(&["reset", "4"]);
    run.wait_health(&cut, Health::Silent);
    hosts_script(&["mend", "4"]);
    run.wait_health(&cut, Health::Reachable);
    assert_eq!(run.ask(&all, &evaluate("n")).answered, all);
    run.close();
}

fn on_four_hosts() -> SessionConfig {
    SessionConfig {
        launcher: "ssh".to_owned(),
        launcher_options: vec!["-F".into(), CONFIG.into()],
        hosts: HostShare::list("10.77.0.1,10.77.0.2,10.77.0.3,10.77.0.4").expect("hosts"),
        ..fake(8, "value n = 1\n")
    }
}

pub(super) fn a_host_that_is_cut_off_is_silent_and_comes_back_or_is_lost() {
    let config = SessionConfig {
        // Below the host's first server, the other server would be searched for while the first is silent, and be
        // lost earlier.
        topology: Topology::Binomial,
        ..on_four_hosts()
    };
    let mut run = Run::start(&config);
    run.start_tasks();
    let (all, cut) = (run.all(), "6-7".parse().expect("a set"));
    let others = all.difference(&cut);
    hosts_script(&["cut", "4"]);
    let silent = run.wait_health(&cut, Health::Silent);
    assert_eq!(run.ask(&others, &evaluate("n")).answered, others);
    hosts_script(&["mend", "4"]);
    let back = run.wait_health(&cut, Health::Reachable);
    assert_eq!(run.ask(&all, &evaluate("n")).answered, all);
    // This time for good.
    hosts_script(&["cut", "4"]);
    run.wait_health(&cut, Health::Silent);
    let lost = run.wait_health(&cut, Health::Lost);
    println!("silent after {silent:?}, back after {back:?}, lost after {lost:?}");
    let ledger = run.ask(&all, &evaluate("n"));
    assert_eq!((ledger.answered, ledger.lost), (others, cut));
    // Its servers give up by themselves; `close` sees to it that nothing is left.
    run.close();
}

pub(crate) fn hosts_script(args: &[&str]) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts/netns-hosts");
    let status = Command::new(script).args(args).status();
    assert!(status.is_ok_and(|it| it.success()), "netns-hosts {args:?}");
    sdm_tests::questions::changed_outside();
}
