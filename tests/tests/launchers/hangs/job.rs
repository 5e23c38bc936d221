//! A job that hangs, without a debugger.

use std::collections::BTreeMap;
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
use sdm_tests::processes;
use sdm_tests::run::{BOUND, until};
use sdm_tests::ways::RANKS;

/// A job's compiler, number of ranks, and launcher options.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Under {
    pub(crate) compiler: Compiler,
    pub(crate) ranks: usize,
    /// More options of the launcher.
    pub(crate) options: &'static [&'static str],
}

impl Under {
    pub(crate) fn new(compiler: Compiler) -> Self {
        Self {
            compiler,
            ranks: RANKS,
            options: &[],
        }
    }

    pub(crate) fn launcher(self) -> Command {
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

/// A FIFO into which each rank writes that it is about to begin its way of `hangs.c`. Launchers do not pass on every
/// line of output on a busy machine.
pub(crate) struct Ready {
    fifo: File,
}

impl Ready {
    /// Creates the file `file`, which the ranks get as an argument, and the FIFO next to it.
    pub(crate) fn at(file: &Path) -> Self {
        std::fs::write(file, "").expect("a file of the test's");
        let path = file.with_extension("ready");
        let _ = std::fs::remove_file(&path);
        mkfifo(&path, Mode::S_IRUSR | Mode::S_IWUSR).expect("a FIFO of the test's");
        let both_ends = File::options().read(true).write(true).open(&path);
        Self {
            fifo: both_ends.expect("it is there"),
        }
    }

    /// Waits until `ranks` ranks have reported that they are ready.
    pub(crate) fn wait(&mut self, ranks: usize) {
        let mut missing = ranks * "ready\n".len();
        while missing > 0 {
            let bound = PollTimeout::try_from(BOUND).expect("it is short");
            let mut fds = [PollFd::new(self.fifo.as_fd(), PollFlags::POLLIN)];
            let count = poll(&mut fds, bound).expect("it can be waited for");
            assert!(count > 0, "{missing} bytes of {ranks} ranks are missing");
            missing -= self
                .fifo
                .read(&mut vec![0; missing])
                .expect("there is something");
        }
    }
}

/// Pids of a program's processes, each with the processor time that it had used at the beginning.
pub(crate) struct Ranks(BTreeMap<u32, u64>);

impl Ranks {
    /// Processor time that a computing rank has used in its place: much more than on the way there from its ready
    /// message.
    const IN_PLACE_NS: u64 = 5_000_000;

    pub(crate) fn of(program: &Path) -> Self {
        let pids = running(program).into_iter();
        Self(pids.map(|pid| (pid, ran_ns(pid))).collect())
    }

    /// Pids of the ranks that have computed since the beginning.
    pub(crate) fn computing(&self) -> Vec<u32> {
        let since = |(pid, before): (&u32, &u64)| {
            let ran = ran_ns(*pid).saturating_sub(*before);
            (ran >= Self::IN_PLACE_NS).then_some(*pid)
        };
        self.0.iter().filter_map(since).collect()
    }

    /// Pids of the ranks whose process state is one of these letters, or that no longer exist.
    pub(crate) fn in_state(&self, letters: &str) -> Vec<u32> {
        let is_there = |pid: &u32| {
            let state = processes::of(*pid).state();
            state.is_none_or(|state| letters.contains(state.0))
        };
        self.0.keys().copied().filter(is_there).collect()
    }

    /// Waits until each rank sleeps, is stopped, has ended, or computes where it hangs.
    fn wait_in_place(&self) {
        until("all ranks are in their places", || {
            let mut there = self.in_state("SDTtZX");
            there.extend(self.computing());
            self.0.keys().all(|pid| there.contains(pid))
        });
    }
}

fn ran_ns(pid: u32) -> u64 {
    processes::of(pid).ran_ns().unwrap_or_default()
}

/// A job that runs, and is killed when this goes.
pub(crate) struct Job {
    pub(crate) launcher: Child,
    pub(crate) way: String,
    program: PathBuf,
}

impl Job {
    /// Starts a job, and waits until every rank is where it hangs.
    pub(crate) fn start(under: Under, program: &Path, way: &str) -> Self {
        let folder = program.parent().expect("it lies in a folder");
        let file = folder.join("file");
        let mut ready = Ready::at(&file);
        let mut command = under.launcher();
        command.arg(program).arg(way).arg(file);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let launcher = command.spawn().expect("it is installed");
        let job = Self {
            launcher,
            way: way.to_owned(),
            program: program.to_owned(),
        };
        ready.wait(under.ranks);
        Ranks::of(&job.program).wait_in_place();
        job
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        // A stopped rank reacts to no other signal.
        for pid in running(&self.program) {
            let pid = nix::unistd::Pid::from_raw(pid.cast_signed());
            // Its launcher may have ended it by then, as another one has gone.
            let _ = nix::sys::signal::kill(pid, Signal::SIGKILL);
        }
        let _ = self.launcher.kill();
        let _ = self.launcher.wait();
    }
}
