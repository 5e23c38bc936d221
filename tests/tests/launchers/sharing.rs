//! Tests of servers of several ranks: `mpirun` and `mpiexec` start one shim for each rank, and the ranks share a server.

use std::collections::BTreeMap;
use std::path::Path;

use nix::sys::signal::Signal;
use sdm_tests::place::{Compiler, Place};
use sdm_tests::sdm::{Running, Sdm};
use sdm_tests::{leftovers, processes};

/// Starts four ranks that are stopped at `main`, two of them with each server.
fn start<'a>(place: &'a Place, launcher: &str) -> Running<'a> {
    let compiler = match launcher {
        "mpirun" => Compiler::OpenMpi,
        _ => Compiler::Mpich,
    };
    let halo = place.compile("halo", compiler);
    let sdm = Sdm::run(place, 4)
        .args(["--launcher", launcher, "--tasks-per-server", "2"])
        .talk()
        .program(&halo, &["1000000000"])
        .spawn();
    sdm.out.wait(0, "ranks 0-3 (4): at main ()");
    sdm
}

/// Pids of the shims by the numbers of their ranks.
fn shims(place: &Place) -> BTreeMap<u32, u32> {
    let all = leftovers::holding(place.mark()).into_iter();
    let numbered = all.filter_map(|(pid, _)| {
        let name = processes::name(pid);
        Some((name.strip_prefix("sdm-shim-")?.parse().ok()?, pid))
    });
    numbered.collect()
}

/// Waits until none of these processes is left.
fn gone(place: &Place, pids: &[u32]) {
    leftovers::assert_none_left(|| {
        let mut left = leftovers::holding(place.mark());
        left.retain(|(pid, _)| pids.contains(pid));
        left
    });
}

/// All that is below a process.
fn below(pid: u32) -> Vec<u32> {
    processes::below(pid)
        .into_iter()
        .map(|(pid, _)| pid)
        .collect()
}

#[test]
fn killed_server_loses_only_its_ranks() {
    for launcher in ["mpirun", "mpiexec"] {
        let place = Place::new();
        let mut sdm = start(&place, launcher);
        let (servers, shims) = (processes::servers(place.mark()), shims(&place));
        assert_eq!(
            (servers.len(), shims.len()),
            (2, 4),
            "{servers:?} {shims:?}"
        );
        let (number, server) = servers.first_key_value().expect("there are two");
        assert!(
            *number < 2,
            "the first two ranks have one server: {servers:?}"
        );
        let programs = [below(shims[&0]), below(shims[&1])].concat();
        assert!(
            programs.len() >= 4,
            "a gdb and its program each: {programs:?}"
        );
        processes::signal(*server, Signal::SIGKILL);
        sdm.out.wait_each(0, "0-1", "lost: ");
        gone(&place, &programs);
        assert_eq!(
            self::shims(&place),
            shims,
            "{launcher}: they wait for the end"
        );
        sdm.ask("[2-3] print 6 * 7", "ranks 2-3 (2): 42\n");
        let done = sdm.finish().code(0);
        assert!(!done.out.contains("session ended"), "{done}");
    }
}

#[test]
fn killed_shim_ends_its_rank_despite_a_stopped_server() {
    let place = Place::new();
    let sdm = start(&place, "mpirun");
    let (servers, shims) = (processes::servers(place.mark()), shims(&place));
    let (_, server) = servers.last_key_value().expect("there are two");
    let programs = below(shims[&3]);
    processes::signal(*server, Signal::SIGSTOP);
    processes::wait_state(*server, "T");
    processes::signal(shims[&3], Signal::SIGKILL);
    gone(&place, &programs);
    // mpirun ends a job if one of its processes was killed, and a process that is to end makes the server continue.
    sdm.out.wait(0, "session ended: ");
    let done = sdm.finish().code(122);
    assert!(done.out.contains("the launcher ended: "), "{done}");
}

/// The input may have ended before a shim has started the gdb of its rank.
#[test]
fn short_input_reaches_the_reading_rank() {
    for launcher in ["mpirun", "mpiexec"] {
        for (text, printed) in [("one\ntwo\n", "[0] 2\n"), ("", "[0-1] 0\n")] {
            let place = Place::new();
            let input = place.path().join("input");
            std::fs::write(&input, text).expect("a file");
            let done = Sdm::run(&place, 2)
                .args(["--batch", "--no-report", "--launcher", launcher])
                .args(["--tasks-per-server", "2"])
                .reads(&input)
                .program(Path::new("/usr/bin/wc"), &["-l"])
                .finish()
                .code(0);
            assert!(done.united().contains(printed), "{done}");
        }
    }
}
