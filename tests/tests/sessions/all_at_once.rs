//! All processes of a session on a host are killed at once, as a resource manager does. None is left that could detach
//! from the attached process.

use nix::sys::signal::Signal;
use sdm_tests::job::{Folder, HeldJob, below, look, look_after_kill, running};
use sdm_tests::place::{Compiler, Place};
use sdm_tests::processes::{kill_if_there, signal, wait_state};
use sdm_tests::sdm::Sdm;

/// A process that was not resumed since it was attached to has no breakpoint in it, so nothing stops it when gdb dies.
#[test]
fn attached_process_survives_simultaneous_kill_of_sdm_and_gdb() {
    let folder = Folder::new("at-once");
    let program = folder.compile(Compiler::OpenMpi, "mpi_held");
    let mut mpirun = std::process::Command::new("mpirun");
    mpirun.args(["--oversubscribe", "-n", "2"]);
    let job = HeldJob::start(mpirun, &folder, &program, 2);
    let ranks = running(&program);
    let before: Vec<_> = ranks.iter().map(|pid| look(*pid)).collect();
    for options in [&["--ranks", "0"][..], &[]] {
        let place = Place::new();
        let starter = job.starter().to_string();
        let sdm = Sdm::new(&place, "attach").args([&*starter]).args(options);
        let mut attached = sdm.talk().spawn();
        attached.out.wait(0, "attached");
        attached.ask("print 1", ": 1\n");
        let mut all = Vec::new();
        // In this order the kernel is still told by who lives of who has died.
        for name in ["sdm-server", "sdm-warden", "gdb"] {
            let found = below(attached.pid(), name);
            assert!(!found.is_empty(), "{name}");
            all.extend(found);
        }
        let gdb = all.pop().expect("there is one");
        for pid in &all {
            signal(*pid, Signal::SIGSTOP);
            wait_state(*pid, "T");
        }
        signal(gdb, Signal::SIGKILL);
        // The parent is stopped, and so does not reap it.
        wait_state(gdb, "Z");
        for pid in all {
            // The second may go with the first.
            kill_if_there(pid);
        }
        let now: Vec<_> = ranks.iter().map(|pid| look_after_kill(*pid)).collect();
        assert_eq!(now, before);
        let _ = attached.finish();
    }
    job.finish();
}
