//! Sessions with `--control`: the job's own launcher starts the ranks, and holds them until SDM attaches.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use nix::sys::signal::Signal;

use crate::place::{Compiler, Place};
use crate::processes;
use crate::sdm::{Done, Sdm};

/// Runs a session of four ranks from beginning to end; `to_main` are the commands that bring the ranks to `main`.
///
/// # Panics
/// If the result is not the expected one.
pub fn four_ranks_add_up(sdm: Sdm<'_>, sum: &Path, to_main: &[&str]) -> Done {
    let done = sdm
        .lines(to_main)
        .lines(&["break add_up", "continue", "print contribution", "next"])
        .lines(&["stacks", "delete", "continue", "wait"])
        .program(sum, &[])
        .finish()
        .code(0);
    let stops = ["1", "2"].map(|number| {
        let stop = format!("ranks 0-3 (4): stopped at breakpoint {number}, add_up () at");
        done.united().contains(&stop)
    });
    assert!(stops.contains(&true), "{done}");
    let each = "rank 0: 1\nrank 1: 2\nrank 2: 3\nrank 3: 4\n";
    done.expect("print contribution", each);
    done.expect_part("next", "ranks 0-3 (4): add_up () at mpi_sum.c:");
    done.expect_part("stacks", "ranks 0-3 (4): main ()");
    for rank in 0..4 {
        let said = format!("rank {rank} of 4: sum 10\n");
        assert!(done.out.contains(&said), "no {said:?} in {done}");
    }
    let end = "the launcher ended: exited with code 0\n";
    assert!(done.out.contains(end), "{done}");
    done
}

/// Checks sessions of ranks held by a launcher: exit code and output, detaching, and `kill -9` of `sdm` at any
/// moment. `sdm` makes the command that starts a number of ranks.
///
/// # Panics
/// If a process is left, or a result is wrong.
pub fn held_ranks_end_well<'a>(place: &'a Place, compiler: Compiler, sdm: &dyn Fn(u32) -> Sdm<'a>) {
    let program = place.compile("mpi_held", compiler);
    let (there, never) = (place.path().join("there"), "/nonexistent");
    fs::write(&there, "").expect("a file");
    let there = there.to_str().expect("text");
    // One rank: a launcher may kill the others when the first ends with a code other than 0.
    let done = sdm(1).args(["--batch", "--no-report"]);
    let done = done.program(&program, &[there]).finish().code(7);
    assert!(done.out.contains("rank 0: sum 0\n"), "{done}");
    // The job runs to its end without gdb, as its launcher releases it.
    let done = sdm(2).lines(&["detach"]).program(&program, &[there]);
    let done = done.finish().code(0);
    done.expect_part("detach", "sdm waits until they have ended");
    assert!(done.out.contains(": sum 1\n"), "{done}");
    // `quit` ends it.
    let done = sdm(2).lines(&["ranks"]).program(&program, &[never]);
    // Where in `MPI_Init` each is held is its own affair.
    let done = done.finish().code(0);
    done.expect_part("ranks", "  stopped  ");
    assert!(!done.out.contains("  running"), "{done}");
    for option in ["--gdb", "--server-path"] {
        let pid = place.path().join("pid");
        let killer = killer(place, &pid);
        let killed = sdm(2).args([option.as_ref(), killer.as_os_str()]);
        let killed = killed.program(&program, &[never]).spawn();
        fs::write(&pid, format!("{}\n", killed.pid())).expect("a file");
        assert_eq!(killed.finish().code, None, "{option}");
        fs::remove_file(&pid).expect("ours");
    }
    let mut attached = sdm(2).talk().program(&program, &[never]).spawn();
    attached.ask("print 1", "ranks 0-1 (2): 1\n");
    processes::signal(attached.pid(), Signal::SIGKILL);
    assert_eq!(attached.finish().code, None);
}

/// A script that kills the `sdm` whose pid is in the file `pid`. A test names it as gdb or as server, so that `sdm`, or
/// a process that it has started, executes it.
fn killer(place: &Place, pid: &Path) -> PathBuf {
    let path = place.path().join("killer");
    let (pid, own) = (pid.display(), place.mark());
    let text = format!(
        "#!/bin/sh\n: {own}\nwhile ! read -r pid < {pid}; do :; done 2>/dev/null\nkill -9 $pid\n"
    );
    fs::write(&path, text).expect("a file");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("it is ours");
    path
}
