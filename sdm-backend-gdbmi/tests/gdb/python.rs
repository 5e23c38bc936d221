//! Tests of Python functions in the stacks of the interpreter. The interpreters are the system's `python3`, and those
//! in the colon-separated list `SDM_PYTHONS`.

use std::path::{Path, PathBuf};

use nix::libc;
use sdm_debug::command::{BacktraceSpec, StartSpec, StopAt};
use sdm_debug::event::Stream;
use sdm_debug::reply::{Frame, StackFrame};
use sdm_debug::{Command, Reply};
use sdm_system::proc;

use crate::harness::{Harness, place, processes_of, spec, stopped};

fn interpreters() -> Vec<PathBuf> {
    let more = std::env::var_os("SDM_PYTHONS").unwrap_or_default();
    let all = [PathBuf::from("/usr/bin/python3")];
    let all = all.into_iter().chain(std::env::split_paths(&more));
    let there: Vec<_> = all.filter(|path| path.is_file()).collect();
    if there.is_empty() {
        println!("SKIP: no /usr/bin/python3");
    }
    there
}

fn started(harness: &mut Harness, python: &Path, args: &[&str]) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/waits.py");
    let mut all = vec![script.to_str().unwrap()];
    all.extend(args);
    let start = StartSpec {
        stop: StopAt::Nowhere,
        ..spec(python, &all)
    };
    let run = harness.send(Command::Start(start));
    harness.wait_output(Stream::Stdout, "waiting");
    if args.first() == Some(&"asleep") {
        wait_asleep(harness, python);
    }
    harness.ask(Command::Interrupt).unwrap();
    let _stop = stopped(harness.answer(run));
}

/// Waits until the main thread of `waits.py` is in `time.sleep`, and its other thread waits for a lock.
fn wait_asleep(harness: &mut Harness, python: &Path) {
    // Older interpreters sleep in `select`.
    const SLEEPS: [i64; 2] = [libc::SYS_clock_nanosleep, libc::SYS_pselect6];
    let mut processes = processes_of(&harness.directory).into_iter();
    let python = python.to_str().unwrap();
    let is_it = |(_, line): &(i32, String)| line.starts_with(python);
    let (pid, _) = processes.rfind(is_it).expect("it runs");
    let process = proc::of(pid);
    let call = |id: i32| {
        let thread = process.thread(id);
        let call = thread.system_call().map(|(number, _)| number);
        call.filter(|_| thread.state() == Some(proc::State('S')))
    };
    harness.wait("two threads that sleep", |_| {
        let is_asleep = call(pid).is_some_and(|call| SLEEPS.contains(&call));
        let mut others = process.thread_ids().ok()?.filter(|id| *id != pid);
        let waits = others.any(|id| call(id) == Some(libc::SYS_futex));
        (is_asleep && waits).then_some(())
    });
}

/// Formats frames as `main waits.py:27 > apart waits.py:23`.
fn shown(frames: &[StackFrame]) -> String {
    let one = |frame: &StackFrame| match frame.repeat {
        1 => format!("{} {}:{}", frame.function, frame.file, frame.line),
        more => format!("{} {}:{} x{more}", frame.function, frame.file, frame.line),
    };
    frames.iter().map(one).collect::<Vec<_>>().join(" > ")
}

fn stacks(harness: &mut Harness) -> Vec<String> {
    match harness.ask(Command::Stacks { full: false }) {
        Ok(Reply::Stacks(stacks)) => stacks
            .threads
            .iter()
            .map(|one| shown(&one.frames))
            .collect(),
        other => panic!("{other:?}"),
    }
}

fn trace_of_selected(harness: &mut Harness) -> Vec<Frame> {
    let spec = BacktraceSpec {
        limit: 0,
        args: true,
        full: false,
    };
    match harness.ask(Command::Backtrace(spec)) {
        Ok(Reply::Backtrace(trace)) => trace.frames,
        other => panic!("{other:?}"),
    }
}

#[test]
fn python_frames_replace_interpreter_frames() {
    for python in interpreters() {
        let mut harness = Harness::new();
        let directory = harness.directory.clone();
        started(
            &mut harness,
            &python,
            &["asleep", directory.to_str().unwrap()],
        );
        let about = python.display();
        let seen = stacks(&mut harness);
        let trace = trace_of_selected(&mut harness);
        let main = "<module> waits.py:33 > main waits.py:26 > main.<locals>.<lambda> waits.py:26 > \
                    Solver.step waits.py:11 x2 > Solver.step waits.py:12 > wait waits.py:17 > ";
        assert!(seen[0].starts_with(main), "{about}: {seen:?}");
        assert!(
            seen[0].ends_with("nanosleep waits.py:17"),
            "{about}: {seen:?}"
        );
        let apart = "apart waits.py:21 > Event.wait waits.py:21";
        assert!(seen.iter().any(|stack| stack == apart), "{about}: {seen:?}");
        // `bt` has the same frames, and the stop is shown in the user's Python code.
        let names: Vec<_> = trace.iter().map(|frame| frame.function.as_str()).collect();
        let expect = ["wait", "Solver.step", "Solver.step", "Solver.step"];
        assert_eq!(names[..4], expect, "{about}");
        assert_eq!(names.last(), Some(&"<module>"), "{about}: {names:?}");
        assert_eq!((trace[0].line, trace[0].args.len()), (17, 0), "{about}");
        // The full stacks have every frame that gdb knows.
        let full = Command::Stacks { full: true };
        let Ok(Reply::Stacks(full)) = harness.ask(full) else {
            panic!("no stacks");
        };
        let text = shown(&full.threads[0].frames);
        assert!(text.contains("_PyEval_EvalFrameDefault"), "{about}: {text}");
    }
}

#[test]
fn interrupted_python_loop_is_shown_at_its_python_line() {
    for python in interpreters() {
        let mut harness = Harness::new();
        let directory = harness.directory.clone();
        started(
            &mut harness,
            &python,
            &["spin", directory.to_str().unwrap()],
        );
        let mut processes = processes_of(&directory).into_iter();
        let (pid, _) = processes
            .find(|(_, line)| line.contains("waits.py"))
            .expect("it runs");
        // The program may still be printing.
        let ticks = || proc::of(pid).stat().unwrap().cpu_ticks().unwrap();
        let before = ticks();
        let run = harness.send(Command::Continue);
        harness.wait("processor time that only its loop takes", |_| {
            (ticks() >= before + 2).then_some(())
        });
        harness.ask(Command::Interrupt).unwrap();
        let stop = stopped(harness.answer(run));
        let (function, line) = place(&stop);
        assert_eq!(function, "<module>", "{}", python.display());
        assert!((31..=32).contains(&line), "{}: {line}", python.display());
        assert!(stop.source.is_some());
    }
}
