//! `sdm` commands that `timeout` ends, on a job that keeps running. `timeout` signals the command, and then its whole
//! process group.

use nix::sys::signal::Signal;
use sdm_tests::job::{Folder, look, running, wait_looking, wait_traced};
use sdm_tests::place::{Compiler, Place};
use sdm_tests::processes;
use sdm_tests::sdm::Sdm;

use super::chosen::chosen;
use super::hangs::job::{Job, Under};

#[test]
fn timeout_ends_the_session_and_leaves_the_ranks_running() {
    let test = timeout_ends_the_session_and_leaves_the_ranks_running;
    for compiler in chosen(test, &[Compiler::OpenMpi, Compiler::Mpich]) {
        let folder = Folder::new("timeout");
        let program = folder.compile(compiler, "hangs");
        // As few as the way has; each of them computes.
        let under = Under {
            ranks: 5,
            ..Under::new(compiler)
        };
        let job = Job::start(under, &program, "receive");
        let target = job.launcher.id().to_string();
        let ranks = running(&program);
        let looks = || ranks.iter().map(|pid| look(*pid)).collect::<Vec<_>>();
        let before = looks();
        for (verb, more) in [
            ("diagnose", &["--for=1000"][..]),
            ("diagnose", &["--for=1000", "--by", "gdb"]),
            ("stacks", &["--watch=1000"]),
            ("stacks", &["--watch=1000", "--by", "gdb"]),
            ("profile", &["--for=1000"]),
            ("attach", &["-c", "continue"]),
        ] {
            let place = Place::new();
            // A signal to `timeout` has it do what it does when the time is over.
            let timeout = Sdm::wrapped(&["timeout", "3600"], &place, verb);
            let timeout = timeout.args([&*target]).args(more).spawn();
            match more.contains(&"gdb") || verb == "attach" {
                true => wait_traced(&ranks),
                false => wait_looking(timeout.pid()),
            }
            processes::signal(timeout.pid(), Signal::SIGTERM);
            let done = timeout.finish();
            assert_eq!(done.code, Some(143), "{verb} {more:?}: {done}");
            place.assert_gone();
            assert!(looks() == before, "{verb} {more:?}");
        }
    }
}
