//! `--memcheck`: programs that Valgrind runs, and the errors that it finds in them.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use nix::sys::signal::Signal;
use sdm_tests::leftovers;
use sdm_tests::place::{Compiler, Place};
use sdm_tests::processes::{self, signal};
use sdm_tests::sdm::Sdm;

/// A command line for a session of two ranks under `--memcheck`.
fn memcheck(place: &Place) -> Sdm<'_> {
    Sdm::run(place, 2).args(["--memcheck"])
}

#[test]
fn memcheck_error_stops_at_its_line_and_leak_at_exit() {
    let place = Place::new();
    let program = place.compile("memcheck", Compiler::C);
    let line = Place::line("memcheck.c", "sink = cells[2]");
    let done = memcheck(&place)
        .lines(&["continue", "ranks", "up", "print way", "continue"])
        .program(&program, &[])
        .finish()
        .code(0);
    // The ranks stop at different times; `ranks` shows that both have the same error.
    let stopped = "ranks 0-1 (2)  stopped  Memcheck: ";
    let error = format!("{stopped}Invalid read of size 4, read_too_far () at memcheck.c:{line}");
    done.expect_part("ranks", &error);
    // A forked process has no debugger: its error stops no process.
    done.expect_part("continue", "] the child has ended with 3\n");
    let place_of_it = "err]  Address is 0 bytes after a block of size 8 alloc'd\n";
    done.expect_part("continue", place_of_it);
    done.expect_part("print way", "\"fork\"");
    assert!(done.out.contains("exited normally"), "{done}");
    let done = memcheck(&place)
        .lines(&["continue", "ranks", "continue"])
        .program(&program, &["lose"])
        .finish()
        .code(0);
    let lost = format!("{stopped}8 bytes in 1 blocks are definitely lost\n");
    done.expect_part("ranks", &lost);
    done.expect_part("continue", "err]    by main (memcheck.c:");
    assert!(done.out.contains("exited normally"), "{done}");
}

#[test]
fn leak_ends_a_batch_and_invalid_read_is_reported_before_crash() {
    let place = Place::new();
    let program = place.compile("memcheck", Compiler::C);
    let done = memcheck(&place)
        .args(["--batch"])
        .program(&program, &["lose"])
        .finish()
        .code(121);
    let report = fs::read_to_string(place.path().join("report.txt")).expect("it is left");
    let lost = "Memcheck: 8 bytes in 1 blocks are definitely lost";
    assert!(report.contains(lost), "{report}{done}");
    let done = memcheck(&place)
        .lines(&["continue", "continue"])
        .program(&program, &["signal"])
        .finish();
    done.expect_part("continue", "Memcheck: Invalid read of size 4, main ()");
    assert!(done.out.contains("SIGSEGV"), "{done}");
}

#[test]
fn program_under_valgrind_is_interrupted_and_stopped() {
    let place = Place::new();
    let program = place.compile("memcheck", Compiler::C);
    for way in ["spin", "deaf"] {
        let mut sdm = memcheck(&place).talk().program(&program, &[way]).spawn();
        sdm.out.wait_each(0, "0-1", "at main ()");
        sdm.ask("continue &", "spinning");
        for round in 0..2 {
            // Each rank is somewhere in its loop when it is interrupted.
            sdm.stop("0-1");
            let sum = format!("ranks 0-1 (2): {}", 2 + round);
            sdm.ask(&format!("print argc + {round}"), &sum);
            sdm.ask("continue &", "continue");
        }
        let line = Place::line("memcheck.c", "sink++");
        sdm.stop("0-1");
        sdm.ask(&format!("break {line}"), "breakpoint 1 at");
        sdm.ask("continue", "stopped at breakpoint 1");
        sdm.ask_each("kill", "0-1", "killed");
        sdm.ask("ranks", "ranks 0-1 (2)  signalled");
        let _ = sdm.finish();
        place.assert_gone();
    }
    let done = memcheck(&place)
        .lines(&["detach"])
        .program(&program, &["spin"]);
    let refused = "Valgrind runs the program and would end with its debugger: kill the program, or let it run to its end";
    done.finish().code(123).expect_part("detach", refused);
}

/// After a kill of any process of the session no process stays, and its temporary files are gone.
#[test]
fn nothing_is_left_after_killing_any_process() {
    let place = Place::new();
    let program = place.compile("memcheck", Compiler::C);
    let temporary = place.path().join("temporary");
    for member in ["memcheck-amd64-", "vgdb", "gdb", "sdm-srv-0", "sdm"] {
        fs::create_dir(&temporary).expect("a folder of the test's");
        let everybody = fs::Permissions::from_mode(0o777);
        fs::set_permissions(&temporary, everybody).expect("it is ours");
        let sdm = memcheck(&place)
            .env("TMPDIR", &temporary)
            .args(["-c", "continue"])
            .program(&program, &["spin"])
            .spawn();
        sdm.out.wait(0, "spinning");
        let own = leftovers::holding(place.mark());
        let mut pids = own.iter().map(|(pid, _)| *pid).filter(|pid| {
            let name = processes::name(*pid);
            name == member || member.starts_with("memcheck") && name.starts_with("memcheck")
        });
        let pid = pids
            .next()
            .unwrap_or_else(|| panic!("no {member} in {own:?}"));
        signal(pid, Signal::SIGKILL);
        if member.starts_with("memcheck") || member == "vgdb" {
            sdm.out.wait(0, "Valgrind has ended: it was killed");
            sdm.out.wait(0, "killed (SIGKILL)");
        }
        if member != "sdm" && member != "sdm-srv-0" {
            signal(sdm.pid(), Signal::SIGTERM);
        }
        let _ = sdm.finish();
        place.assert_gone();
        let left: Vec<_> = fs::read_dir(&temporary).expect("it is there").collect();
        assert!(left.is_empty(), "{member}: {left:?}");
        fs::remove_dir(&temporary).expect("it is empty");
    }
}

#[test]
fn missing_valgrind_is_reported() {
    let place = Place::new();
    let program = place.compile("memcheck", Compiler::C);
    // All but Valgrind that a session finds by its path.
    let folder = place.path().join("bin");
    fs::create_dir(&folder).expect("a folder of the test's");
    for name in ["gdb", "sh", "env"] {
        symlink(format!("/usr/bin/{name}"), folder.join(name)).expect("a link of the test's");
    }
    let done = memcheck(&place)
        .env("PATH", &folder)
        .lines(&["continue"])
        .program(&program, &["spin"])
        .finish()
        .code(127);
    let said = done.united();
    assert!(
        said.contains("--memcheck: valgrind was not found on this host"),
        "{said}"
    );
    assert!(said.contains("install Valgrind"), "{said}");
}
