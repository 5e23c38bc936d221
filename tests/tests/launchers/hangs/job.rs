//! A job that hangs, without a debugger.

use std::fs::File;
use std::io::Read;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::Signal;
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use sdm_tests::job::{allow_root, running};
use sdm_tests::parts;
use sdm_tests::place::Compiler;
use sdm_tests::run::BOUND;

use super::RANKS;

/// By what a job is run, and how large it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Under {
    pub(super) compiler: Compiler,
    pub(super) ranks: usize,
    /// More options of the launcher.
    pub(super) options: &'static [&'static str],
}

impl Under {
    pub(super) fn new(compiler: Compiler) -> Self {
        Self {
            compiler,
            ranks: RANKS,
            options: &[],
        }
    }

    fn launcher(self) -> Command {
        let mut command = match (self.compiler, parts::openmpi5()) {
            (Compiler::Mpich, _) => Command::new("mpiexec.hydra"),
            (Compiler::OpenMpi5, Some(folder)) => {
                let mut command = Command::new(folder.join("bin/mpirun"));
                command.args(["--oversubscribe", "--bind-to", "none"]);
                command.args(["--mca", "pml", "ob1", "--mca", "btl", "self,sm"]);
                command
            }
            _ => {
                let mut command = Command::new("mpirun.openmpi");
                command.arg("--oversubscribe");
                command
            }
        };
        allow_root(&mut command);
        command.args(self.options);
        command.args(["-n", &self.ranks.to_string()]);
        command
    }
}

/// A job that runs, and is killed when this goes.
pub(super) struct Job {
    pub(super) launcher: Child,
    program: PathBuf,
}

impl Job {
    /// Starts it, and waits until every rank is about to do what it is to do.
    pub(super) fn start(under: Under, program: &Path, way: &str) -> Self {
        let folder = program.parent().expect("it lies in a folder");
        let file = folder.join("file");
        std::fs::write(&file, "").expect("a file of the test's");
        // Launchers do not pass on every line of output on a busy machine.
        let fifo = folder.join("file.ready");
        let _ = std::fs::remove_file(&fifo);
        mkfifo(&fifo, Mode::S_IRUSR | Mode::S_IWUSR).expect("a FIFO of the test's");
        let both_ends = File::options().read(true).write(true).open(&fifo);
        let mut ready = both_ends.expect("it is there");
        let mut command = under.launcher();
        command.arg(program).arg(way).arg(file);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let launcher = command.spawn().expect("it is installed");
        let job = Self {
            launcher,
            program: program.to_owned(),
        };
        let mut missing = under.ranks * "ready\n".len();
        while missing > 0 {
            let bound = PollTimeout::try_from(BOUND).expect("it is short");
            let mut fds = [PollFd::new(ready.as_fd(), PollFlags::POLLIN)];
            let count = poll(&mut fds, bound).expect("it can be waited for");
            assert!(
                count > 0,
                "{way} under {under:?}: {missing} bytes are missing"
            );
            missing -= ready
                .read(&mut vec![0; missing])
                .expect("there is something");
        }
        job
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        // A rank that is stopped hears no other signal.
        for pid in running(&self.program) {
            let pid = nix::unistd::Pid::from_raw(pid.cast_signed());
            // Its launcher may have ended it by then, as another one has gone.
            let _ = nix::sys::signal::kill(pid, Signal::SIGKILL);
        }
        let _ = self.launcher.kill();
        let _ = self.launcher.wait();
    }
}
