//! Jobs that run without a debugger, and checks that they continue as before.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use sdm_system::proc::Status;

use crate::fixture::{self, Compiler};
use crate::processes;
use crate::run::{BOUND, until};

/// A folder of one test. Drop removes it.
pub struct Folder(pub PathBuf);

impl Folder {
    /// An empty folder.
    ///
    /// # Panics
    /// If it cannot be made.
    #[must_use]
    pub fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("sdm-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder for the test");
        crate::ordinary::give(&path);
        Self(path)
    }

    /// Compiles a program of `tests/fixtures`.
    ///
    /// # Panics
    /// If it does not compile.
    #[must_use]
    pub fn compile(&self, compiler: Compiler, fixture: &str) -> PathBuf {
        let program = self.0.join(fixture);
        fixture::compile(compiler, fixture, &["-g"], &program);
        program
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Allows root to start Open MPI's programs.
pub fn allow_root(command: &mut Command) -> &mut Command {
    for (prefix, suffix) in [
        ("OMPI", ""),
        ("OMPI", "_CONFIRM"),
        ("PRTE", ""),
        ("PRTE", "_CONFIRM"),
    ] {
        command.env(format!("{prefix}_ALLOW_RUN_AS_ROOT{suffix}"), "1");
    }
    command
}

/// `mpi_held` under a launcher: the ranks wait until the file `go` exists.
pub struct HeldJob {
    starter: Child,
    lines: Receiver<String>,
    said: Vec<String>,
    ranks: u32,
    go: PathBuf,
}

impl HeldJob {
    /// Starts `LAUNCHER PROGRAM GO`, with the path of the file `go`, and waits until the job has reported that all
    /// ranks wait.
    ///
    /// # Panics
    /// If that does not come about.
    #[must_use]
    pub fn start(mut launcher: Command, folder: &Folder, program: &Path, ranks: u32) -> Self {
        // The binaries are built before the ranks spin.
        let _ = crate::binaries::folder();
        let go = folder.0.join("go");
        let _ = std::fs::remove_file(&go);
        launcher.arg(program).arg(&go).stdin(Stdio::null());
        launcher.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut starter = crate::ordinary::lower(allow_root(&mut launcher))
            .spawn()
            .expect("the launcher");
        let (send, lines) = channel();
        let pipes: [Box<dyn std::io::Read + Send>; 2] = [
            Box::new(starter.stdout.take().expect("it is piped")),
            Box::new(starter.stderr.take().expect("it is piped")),
        ];
        for pipe in pipes {
            let send = send.clone();
            std::thread::spawn(move || {
                for line in BufReader::new(pipe).lines().map_while(Result::ok) {
                    let _ = send.send(line);
                }
            });
        }
        let mut job = Self {
            starter,
            lines,
            said: Vec::new(),
            ranks,
            go,
        };
        job.wait_line(&format!("held {ranks}"));
        job
    }

    /// The pid of the launcher.
    #[must_use]
    pub fn starter(&self) -> u32 {
        self.starter.id()
    }

    fn wait_line(&mut self, wanted: &str) {
        while !self.said.iter().any(|line| line.contains(wanted)) {
            match self.lines.recv_timeout(BOUND) {
                Ok(line) => self.said.push(line),
                Err(error) => panic!(
                    "no {wanted:?}: {error}: {:?}\n{}",
                    self.said,
                    threads_below(self.starter.id())
                ),
            }
        }
    }

    /// Releases the job; it must print the right result and have the right exit code.
    ///
    /// # Panics
    /// If it does not.
    pub fn finish(mut self) {
        std::fs::write(&self.go, "").expect("a file");
        let sum = self.ranks * (self.ranks - 1) / 2;
        for rank in 0..self.ranks {
            self.wait_line(&format!("rank {rank}: sum {sum}"));
        }
        assert_eq!(self.wait().code(), Some(7), "{:?}", self.said);
    }

    fn wait(&mut self) -> ExitStatus {
        let deadline = Instant::now() + BOUND;
        loop {
            if let Some(status) = self.starter.try_wait().expect("a child") {
                return status;
            }
            assert!(
                Instant::now() < deadline,
                "the job does not end: {:?}",
                self.said
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for HeldJob {
    fn drop(&mut self) {
        // A failed test leaves no job.
        for pid in descendants(self.starter.id()) {
            let _ = kill(Pid::from_raw(pid.cast_signed()), Signal::SIGKILL);
        }
        let _ = self.starter.kill();
        let _ = self.starter.wait();
    }
}

/// Waits until every rank of `mpi_held` is in its place: rank 1 sleeps and looks for the file `go` again and again,
/// the others compute in `MPI_Allreduce`. The ranks are processes of this pid namespace.
///
/// # Panics
/// If that does not come about.
pub fn wait_held(go: &Path, ranks: u32) {
    /// Processor time that a computing rank has used in its place: much more than on the way there from its file.
    const IN_PLACE_NS: u64 = 20_000_000;
    let pid_of = |rank: u32| {
        let text = std::fs::read_to_string(format!("{}.{rank}", go.display())).ok()?;
        text.strip_suffix('\n')?.parse().ok()
    };
    let mut pids: Vec<u32> = Vec::new();
    until("each rank is through MPI_Init", || {
        pids = (0..ranks).filter_map(pid_of).collect();
        pids.len() == ranks as usize
    });
    let ran = |pid: u32| processes::of(pid).ran_ns().expect("it runs");
    let turns = || {
        let status = processes::of(pids[1]).status().expect("it runs");
        let turns = status.number::<u64>("voluntary_ctxt_switches");
        turns.expect("the kernel counts them")
    };
    let before: Vec<u64> = pids.iter().map(|pid| ran(*pid)).collect();
    let turns_before = turns();
    until("rank 1 sleeps, and the others compute", || {
        let mut all = pids.iter().zip(&before).enumerate();
        turns() > turns_before + 2
            && all.all(|(rank, (pid, before))| rank == 1 || ran(*pid) > before + IN_PLACE_NS)
    });
}

/// States of the threads of all processes below one, for the message of a failed test.
fn threads_below(root: u32) -> String {
    let mut text = String::new();
    for pid in descendants(root) {
        let process = processes::of(pid);
        for id in process.thread_ids().into_iter().flatten() {
            let thread = process.thread(id);
            let (state, call) = (thread.state(), thread.system_call());
            let tracer = processes::tracer(pid);
            let line = format!(
                "{} {pid}, thread {id}: {state:?}, system call {call:?}, traced by {tracer:?}\n",
                processes::name(pid)
            );
            text.push_str(&line);
        }
    }
    text
}

/// State of a process that a debugger could have changed: its pending, blocked, ignored and caught signals, its code, and
/// the files or pipes of its standard streams.
#[derive(Clone, Debug, PartialEq)]
pub struct Look {
    signals: BTreeMap<String, String>,
    code: Vec<u8>,
    streams: [PathBuf; 3],
}

/// The kernel's status of a process, and whether it is neither traced nor stopped.
fn status(pid: u32) -> (Status, bool) {
    let status = processes::of(pid).status();
    let status = status.unwrap_or_else(|error| panic!("process {pid}: {error}"));
    let state = status.field("State").expect("its state");
    let is_free = state.starts_with(['R', 'S', 'D']) && status.tracer().is_none();
    (status, is_free)
}

/// Reads the state of a process, which is neither traced nor stopped: an `sdm` that ends by itself detaches first.
///
/// # Panics
/// If it is traced or stopped, or cannot be read.
#[must_use]
pub fn look(pid: u32) -> Look {
    let (status, is_free) = status(pid);
    let (state, tracer) = (status.field("State"), status.tracer());
    let words = processes::tracer(pid).map(|it| std::fs::read(processes::of(it).path("cmdline")));
    let words = words.map(|it| String::from_utf8_lossy(&it.unwrap_or_default()).replace('\0', " "));
    assert!(
        is_free,
        "process {pid} is {state:?}, traced by {tracer:?}: {words:?}"
    );
    let signal = |name: &str| {
        let bits = status.field(name).expect("a field of it");
        (name.to_owned(), bits.to_owned())
    };
    let names = ["SigPnd", "ShdPnd", "SigBlk", "SigIgn", "SigCgt"];
    Look {
        signals: names.map(signal).into(),
        code: code_of(pid),
        streams: ["fd/0", "fd/1", "fd/2"].map(|name| {
            let stream = std::fs::read_link(processes::of(pid).path(name));
            stream.unwrap_or_else(|error| panic!("process {pid}, {name}: {error}"))
        }),
    }
}

/// True if a stop signal of a debugger is still to be delivered to a process.
fn awaits_stop(status: &Status) -> bool {
    let stop = Signal::SIGSTOP as i32;
    ["SigPnd", "ShdPnd"]
        .iter()
        .any(|name| status.signals(name).contains(&stop))
}

/// As [`look`], after a kill of `sdm` or of one of its processes: the remaining ones release the debugged process. The
/// kernel detaches first, and a later signal of gdb's can stop the process once more.
///
/// # Panics
/// If the process is not released, or cannot be read.
#[must_use]
pub fn look_after_kill(pid: u32) -> Look {
    until("the process is let go", || {
        let (status_before, was_free) = status(pid);
        was_free && !awaits_stop(&status_before) && status(pid).1
    });
    look(pid)
}

/// The program's own code, as it is in memory.
fn code_of(pid: u32) -> Vec<u8> {
    let process = processes::of(pid);
    let program = process.program().expect("its program");
    let maps = process.maps().expect("its maps");
    let memory = std::fs::File::open(process.path("mem")).expect("its memory");
    let mut code = Vec::new();
    let own = maps.iter().filter(|it| it.file() == Some(&program));
    for mapping in own.filter(|it| it.is_executable()) {
        let length = usize::try_from(mapping.end - mapping.start).expect("a size");
        let mut bytes = vec![0; length];
        memory
            .read_exact_at(&mut bytes, mapping.start)
            .expect("its code");
        code.extend(bytes);
    }
    assert!(!code.is_empty(), "no code of {program:?} in {maps:?}");
    code
}

/// Pids of the descendants of `root` with this program name, in rising order. `sdm-server` also finds servers named
/// `sdm-srv-N`.
#[must_use]
pub fn below(root: u32, name: &str) -> Vec<u32> {
    let mut found: Vec<u32> = descendants(root)
        .into_iter()
        .filter(|pid| {
            let called = processes::name(*pid);
            called == name || name == "sdm-server" && called.starts_with("sdm-srv-")
        })
        .collect();
    found.sort_unstable();
    found
}

/// The processes of a program, by rising pid.
#[must_use]
pub fn running(program: &Path) -> Vec<u32> {
    let runs = |pid: &u32| {
        let found = processes::of(*pid).program();
        found.is_ok_and(|it| it == program)
    };
    let mut found: Vec<u32> = crate::leftovers::all_pids().filter(runs).collect();
    found.sort_unstable();
    found
}

/// All processes below `root`.
#[must_use]
pub fn descendants(root: u32) -> Vec<u32> {
    let below = processes::below(root).into_iter();
    below.map(|(pid, _)| pid).collect()
}

/// Waits until a command has a process that looks at others without a gdb.
///
/// # Panics
/// If none appears in time.
pub fn wait_looking(sdm: u32) {
    let looks = |(pid, _): &(u32, _)| {
        let words = std::fs::read(processes::of(*pid).path("cmdline")).unwrap_or_default();
        words.split(|byte| *byte == 0).any(|word| word == b"--look")
    };
    until("a process looks", || {
        processes::below(sdm).iter().any(looks)
    });
}

/// Waits until each of these processes has a tracer.
///
/// # Panics
/// If one has none in time.
pub fn wait_traced(pids: &[u32]) {
    until("gdb holds each process", || {
        pids.iter().all(|pid| processes::tracer(*pid).is_some())
    });
}
