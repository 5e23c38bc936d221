//! An inspected process continues unchanged, whatever happens to the looker.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use nix::libc;
use nix::sys::ptrace::{self, Options};
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::Pid;
use sdm_inspect::looker::{Looker, Question};
use sdm_inspect::snapshot::Refusal;
use sdm_system::proc;

use crate::programs::{BUSY, C, HELD, Program};
use crate::{PATIENCE, look, look_with};

/// Number of times that a looker is dropped, each at most 21 ms after a request.
const DROPS: u32 = 200;
const LOOKS: usize = 100;

pub(crate) fn looker() -> Looker {
    Looker::start(env!("CARGO_BIN_EXE_sdm-looker").as_ref(), true).unwrap()
}

/// Fails if a thread of a process is traced or stopped, or if it has ended.
pub(crate) fn assert_at_large(pid: i32) {
    let process = proc::of(pid);
    for id in process.thread_ids().unwrap() {
        if let Some(state) = process.thread(id).state() {
            assert!(!state.is_stopped() && !state.is_held(), "{id}: {state:?}");
        }
        let tracer = process.thread(id).status().ok().and_then(|it| it.tracer());
        assert_eq!(tracer, None, "{id} is traced");
    }
}

#[test]
fn dropped_looker_leaves_no_process_traced() {
    let program = Program::new(C, "O0");
    let running = [program.run().unwrap(), program.run().unwrap()];
    let pids: Vec<i32> = running.iter().map(|it| it.pid()).collect();
    let mut asked = looker();
    for round in 0..DROPS {
        asked.ask(Instant::now(), 1, pids.clone(), Question::Stacks);
        std::thread::sleep(Duration::from_micros(u64::from(round * 7919 % 21_000)));
        drop(asked);
        for pid in &pids {
            assert_at_large(*pid);
        }
        asked = looker();
    }
    assert!(look(&pids).iter().all(Result::is_ok));
}

/// A server blocks SIGTERM, and its children inherit the mask.
#[test]
fn looker_of_a_parent_that_blocks_sigterm_ends_when_asked() {
    let running = Program::new(C, "O0").run().unwrap();
    SigSet::from_iter([Signal::SIGTERM]).thread_block().unwrap();
    let mut asked = looker();
    asked.ask(Instant::now(), 1, vec![running.pid()], Question::Stacks);
    let mut answers = Vec::new();
    asked.give_up(&mut answers);
    let Err(Refusal::System { text }) = &answers[0].seen else {
        panic!("an answer");
    };
    assert_eq!(text, "the sampling process has ended: exit status: 0");
}

/// The looker has stopped one thread and waits for the other one, which cannot be stopped.
#[test]
fn thread_stopped_by_a_dropped_looker_continues() {
    let counting = Counting::start(&Program::new(HELD, "O0"), &[]);
    let pid = counting.pid();
    for _ in 0..DROPS / 10 {
        let mut asked = looker();
        let until = Instant::now() + PATIENCE;
        while !proc::of(pid).state().unwrap().is_held() {
            assert!(Instant::now() < until, "the main thread is held");
            // It lets the thread go after a tenth of a second.
            if asked.until().is_none() {
                asked.ask(Instant::now(), 1, vec![pid], Question::Stacks);
            }
            assert!(!asked.take(Instant::now(), &mut Vec::new()));
            std::thread::yield_now();
        }
        drop(asked);
        assert_at_large(pid);
    }
    assert_eq!(counting.end(), "0\n");
}

#[test]
fn process_with_a_thread_in_state_d_is_refused() {
    let counting = Counting::start(&Program::new(HELD, "O0"), &[]);
    let pid = counting.pid();
    let refused = look(&[pid, pid]);
    let thread = "a thread of the process";
    let is_told = |it: &Result<_, Refusal>| matches!(it, Err(Refusal::Uninterruptible { what, .. }) if what == thread);
    assert!(refused.iter().all(is_told), "{refused:?}");
    assert_at_large(pid);
    assert_eq!(counting.end(), "0\n");
}

#[test]
fn stopped_process_stays_stopped_after_an_inspection() {
    let program = Program::new(C, "O0");
    let running = program.run().unwrap();
    let pid = Pid::from_raw(running.pid());
    kill(pid, Signal::SIGSTOP).unwrap();
    waitpid(pid, Some(WaitPidFlag::WUNTRACED)).unwrap();
    let stacks = look(&[running.pid()]).remove(0).unwrap();
    assert_eq!(stacks.threads.len(), 2);
    assert!(proc::of(running.pid()).state().unwrap().is_stopped());
    kill(pid, Signal::SIGCONT).unwrap();
    waitpid(pid, Some(WaitPidFlag::WCONTINUED)).unwrap();
    assert_at_large(running.pid());
}

#[test]
fn traced_process_is_refused() {
    let program = Program::new(C, "O0");
    let running = program.run().unwrap();
    let pid = Pid::from_raw(running.pid());
    ptrace::seize(pid, Options::empty()).unwrap();
    let tracer = nix::unistd::gettid().as_raw();
    assert_eq!(look(&[running.pid()]), [Err(Refusal::Traced { tracer })]);
}

/// A program that prints a number at the end of its input: the count of signals it has received, if it counts them.
pub(crate) struct Counting {
    child: Child,
    out: BufReader<ChildStdout>,
}

impl Counting {
    pub(crate) fn start(program: &Program, words: &[&str]) -> Self {
        let mut command = Command::new(program.make().unwrap());
        command
            .args(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        out.read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        Self { child, out }
    }

    pub(crate) fn pid(&self) -> i32 {
        self.child.id().cast_signed()
    }

    pub(crate) fn end(mut self) -> String {
        drop(self.child.stdin.take());
        let mut line = String::new();
        self.out.read_line(&mut line).unwrap();
        assert!(self.child.wait().unwrap().success());
        line
    }
}

#[test]
fn signals_are_delivered_during_snapshots() {
    let program = Program::new(BUSY, "O0");
    let counting = Counting::start(&program, &[]);
    let pid = counting.pid();
    let mut looker = looker();
    let mut sent = 0;
    for _ in 0..LOOKS {
        for _ in 0..20 {
            // `nix` has no real-time signals.
            let number = libc::SIGRTMIN().to_string();
            let status = Command::new("/bin/kill")
                .args(["-s", &number, &pid.to_string()])
                .status();
            assert!(status.unwrap().success());
            sent += 1;
            if sent % 10 == 0 {
                break;
            }
        }
        look_with(&mut looker, &[pid]).remove(0).unwrap();
    }
    assert_eq!(counting.end(), format!("{sent}\n"));
}

fn look_at_one_that_begins(others: &str) {
    let program = Program::new(BUSY, "O0");
    let counting = Counting::start(&program, &[others]);
    let pid = counting.pid();
    let mut looker = looker();
    for _ in 0..LOOKS {
        let stacks = look_with(&mut looker, &[pid]).remove(0).unwrap();
        let main = &stacks.threads[0];
        assert!(main.is_whole && main.thread == pid);
        let functions = main.frames.iter().map(|frame| frame.function.as_deref());
        assert!(functions.flatten().any(|name| name == "main"), "{main:?}");
        for thread in &stacks.threads {
            let is_of_it = |name: &str| !["end", "__clone"].contains(&name);
            let mut functions = thread.frames.iter().filter_map(|it| it.function.as_deref());
            assert!(others == "threads" || functions.all(is_of_it), "{thread:?}");
        }
    }
    drop(looker);
    assert_at_large(pid);
    assert_eq!(counting.end(), "0\n");
}

#[test]
fn stacks_are_read_while_threads_start_and_end() {
    look_at_one_that_begins("threads");
}

#[test]
fn forked_process_is_not_listed_as_a_thread() {
    look_at_one_that_begins("processes");
}

/// Threads of the processes of [`calls_of_a_look`].
const THREADS: usize = 4;

/// The system calls that `strace` records for an inspection of two processes, one of them with three threads.
fn calls_of_a_look() -> Vec<String> {
    let program = Program::new(BUSY, "O0");
    let counting = [
        Counting::start(&program, &["waiting"]),
        Counting::start(&program, &[]),
    ];
    let pids: Vec<i32> = counting.iter().map(Counting::pid).collect();
    let mut looker = looker();
    look_with(&mut looker, &pids);
    // A file for each process: a call that takes a while is one line then.
    let mut strace = Command::new("strace")
        .args(["-ff", "-qq", "-s", "0", "-o"])
        .arg(program.folder().join("calls"))
        .args(["-p", &looker.pid().to_string()])
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    let status = || proc::of(looker.pid()).status().unwrap();
    let until = Instant::now() + PATIENCE;
    while status().tracer().is_none() || proc::of(looker.pid()).state().unwrap().is_held() {
        assert!(Instant::now() < until, "strace is there");
        std::thread::yield_now();
    }
    assert!(look_with(&mut looker, &pids).iter().all(Result::is_ok));
    drop(looker);
    strace.wait().unwrap();
    for it in counting {
        assert_eq!(it.end(), "0\n");
    }
    let files = std::fs::read_dir(program.folder()).unwrap();
    let files = files.map(|it| it.unwrap().path());
    let files = files.filter(|it| it.file_stem().is_some_and(|name| name == "calls"));
    let said: Vec<String> = files
        .map(|it| std::fs::read_to_string(it).unwrap())
        .collect();
    said.concat().lines().map(str::to_owned).collect()
}

#[test]
fn snapshot_stops_each_thread_once() {
    let is_here = Command::new("strace").arg("-V").output().is_ok();
    if !is_here {
        println!("SKIP: no strace");
        return;
    }
    let calls = calls_of_a_look();
    let count = |part: &str| calls.iter().filter(|call| call.contains(part)).count();
    for request in [
        "PTRACE_SEIZE",
        "PTRACE_INTERRUPT",
        "PTRACE_GETREGSET",
        "PTRACE_DETACH",
    ] {
        assert_eq!(count(request), THREADS, "{request}: {calls:#?}");
    }
    assert_eq!(count("execve"), 0, "{calls:#?}");
    let own = |call: &&String| call.contains("kill(") && !call.contains("SIGKILL");
    assert_eq!(calls.iter().filter(own).count(), 0, "{calls:#?}");
    let mut stand = 0_usize;
    let mut read = BTreeMap::<&str, u64>::new();
    for call in &calls {
        let name = call.split('(').next().unwrap_or_default();
        stand += usize::from(call.contains("PTRACE_INTERRUPT"));
        if call.contains("PTRACE_DETACH") {
            stand -= 1;
        }
        // An allocation of more than the heap has.
        let grows = ["mmap", "mremap", "brk"].contains(&name);
        let is_quiet = !grows && !name.starts_with("open");
        assert!(stand == 0 || is_quiet, "{call}: {calls:#?}");
        if let Some((_, arguments)) = call.split_once("process_vm_readv(") {
            let thread = arguments.split(',').next().expect("a thread");
            let bytes = call.rsplit("= ").next().expect("a result");
            *read.entry(thread).or_default() += bytes.trim().parse::<u64>().expect("a number");
        }
    }
    assert_eq!(read.len(), THREADS, "{read:?}");
    assert!(read.values().all(|bytes| *bytes <= 64 << 10), "{read:?}");
}

#[test]
fn malformed_request_ends_the_looker() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_sdm-looker"))
        .arg("--look")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut to = child.stdin.take().unwrap();
    to.write_all(&[0xff; 64]).unwrap();
    assert!(!child.wait().unwrap().success());
}
