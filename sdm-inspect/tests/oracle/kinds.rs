//! Kinds of processes, with the expected result of an inspection of each.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use nix::libc;
use nix::sys::ptrace::{self, Options};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{Id, WaitPidFlag, waitid, waitpid};
use nix::unistd::Pid;
use sdm_inspect::looker::Looker;
use sdm_inspect::snapshot::Refusal;

use crate::programs::{
    AGAIN, ANEW, C, DEEP, EXEC_WHILE_SEIZED, GENERATED, HEADLESS, KERNEL, Language, NARROW,
    NEWBORN, NULL_CALL, OVERFLOW, Program, STUB, THREADS, WILD_CALL,
};
use crate::safety::{Counting, assert_at_large, looker};
use crate::{look, look_with};

#[test]
fn zombie_is_reported_as_ended() {
    let mut child = Command::new("true").spawn().unwrap();
    let pid = child.id().cast_signed();
    let ended = WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT;
    waitid(Id::Pid(Pid::from_raw(pid)), ended).unwrap();
    assert_eq!(look(&[pid]), [Err(Refusal::Ended)]);
    child.wait().unwrap();
    assert_eq!(look(&[pid]), [Err(Refusal::Ended)]);
}

#[test]
fn stacks_of_a_thousand_threads_are_read() {
    let program = Program::new(THREADS, "O0");
    let counting = Counting::start(&program, &[]);
    let stacks = look(&[counting.pid()]).remove(0).unwrap();
    assert_eq!(stacks.threads.len(), 1001);
    for thread in &stacks.threads {
        assert!(thread.is_whole, "{thread:?}");
        let is_main = thread.thread == counting.pid();
        let expect = if is_main { "main" } else { "wait_for_ever" };
        let mut functions = thread.frames.iter().flat_map(|it| &it.function);
        assert!(functions.any(|name| name == expect), "{thread:?}");
    }
    assert_at_large(counting.pid());
    assert_eq!(counting.end(), "0\n");
}

/// The stack is deeper than the first 64 KiB that are read of it.
#[test]
fn stack_of_two_megabytes_is_read_to_its_end() {
    let program = Program::new(DEEP, "O0");
    let running = program.run().unwrap();
    let stacks = look(&[running.pid()]).remove(0).unwrap();
    let main = &stacks.threads[0];
    assert!(main.is_whole, "{main:?}");
    let functions = main.frames.iter().flat_map(|it| &it.function);
    let count = |name: &str| functions.clone().filter(|it| *it == name).count();
    assert_eq!((count("down"), count("main")), (501, 1), "{main:?}");
    assert_at_large(running.pid());
}

/// The functions of a program's only thread up to `main`, innermost first, and whether its stack is whole.
#[cfg(target_arch = "x86_64")]
fn functions(language: Language, variant: &str) -> (Vec<String>, bool) {
    let program = Program::new(language, variant);
    let running = program.run().unwrap();
    let stacks = look(&[running.pid()]).remove(0).unwrap();
    assert_at_large(running.pid());
    let main = &stacks.threads[0];
    let names = main.frames.iter().map(|frame| frame.function.clone());
    let mut names: Vec<String> = names.map(Option::unwrap_or_default).collect();
    let to = names.iter().position(|name| name == "main");
    names.truncate(to.map_or(names.len(), |main| main + 1));
    (names, main.is_whole)
}

#[cfg(target_arch = "x86_64")]
#[test]
fn function_without_unwind_information_hides_no_caller() {
    for variant in ["O0", "O2", "frame-pointer", "no-unwind"] {
        let (names, is_whole) = functions(KERNEL, variant);
        assert_eq!(names, ["kernel", "block", "multiply", "main"], "{variant}");
        assert!(is_whole, "{variant}");
    }
}

/// gdb shows the same callers.
#[cfg(target_arch = "x86_64")]
#[test]
fn call_through_null_pointer_shows_its_callers() {
    for variant in ["O0", "O2"] {
        let (names, is_whole) = functions(NULL_CALL, variant);
        let at = names.iter().position(|name| name == "handle").unwrap();
        let expect = ["handle", "<signal handler called>", "", "call_null", "main"];
        assert_eq!(names[at..], expect, "{variant}");
        assert!(is_whole, "{variant}");
    }
}

/// gdb shows the same callers.
#[cfg(target_arch = "x86_64")]
#[test]
fn call_through_wild_pointer_shows_its_callers() {
    for variant in ["O0", "O2"] {
        let (names, is_whole) = functions(WILD_CALL, variant);
        let at = names.iter().position(|name| name == "handle").unwrap();
        let expect = ["handle", "<signal handler called>", "", "call_wild", "main"];
        assert_eq!(names[at..], expect, "{variant}");
        assert!(is_whole, "{variant}");
    }
}

/// gdb shows the same name. A stub has no symbol of its own, and the nearest symbol is that of the startup code.
#[cfg(target_arch = "x86_64")]
#[test]
fn stub_of_a_library_call_has_the_name_of_its_function() {
    for variant in ["O0", "stripped"] {
        let program = Program::new(STUB, variant);
        let mut command = Command::new(program.make().unwrap());
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        output.read_line(&mut line).unwrap();
        let pid = child.id().cast_signed();
        let ran_ns = || sdm_system::proc::of(pid).ran_ns().unwrap();
        // What it does between the line and the stub takes microseconds.
        let until = ran_ns() + 10_000_000;
        while ran_ns() < until {
            std::thread::yield_now();
        }
        let stacks = look(&[pid]).remove(0).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        let name = stacks.threads[0].frames[0].function.as_deref();
        assert_eq!(
            (line.as_str(), name),
            ("ready\n", Some("pause@plt")),
            "{variant}"
        );
    }
}

/// The place of the stack pointer, which is beyond the stack's end, differs from one run to the next.
#[cfg(target_arch = "x86_64")]
#[test]
fn overflowed_stack_is_read_to_its_end() {
    for _ in 0..8 {
        let (names, is_whole) = functions(OVERFLOW, "O0");
        let down = names.iter().filter(|name| *name == "down").count();
        assert!(is_whole && down > 100, "{names:?}");
        assert_eq!(names.last().map(String::as_str), Some("main"), "{names:?}");
    }
}

/// The thread is stopped at its first instruction, where nothing has called it yet.
#[cfg(target_arch = "x86_64")]
#[test]
fn stack_of_a_thread_that_was_just_created_is_whole() {
    let program = Program::new(NEWBORN, "O0");
    let mut command = Command::new(program.make().unwrap());
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let pid = child.id().cast_signed();
    let main = Pid::from_raw(pid);
    ptrace::seize(main, Options::PTRACE_O_TRACECLONE).unwrap();
    child.stdin.take().unwrap().write_all(b"x").unwrap();
    waitid(Id::Pid(main), WaitPidFlag::WSTOPPED).unwrap();
    let thread = Pid::from_raw(i32::try_from(ptrace::getevent(main).unwrap()).unwrap());
    waitpid(thread, Some(WaitPidFlag::__WALL)).unwrap();
    kill(main, Signal::SIGSTOP).unwrap();
    ptrace::detach(thread, None).unwrap();
    ptrace::detach(main, None).unwrap();
    let stacks = look(&[pid]).remove(0).unwrap();
    let born = stacks
        .threads
        .iter()
        .find(|it| it.thread == thread.as_raw());
    let born = born.unwrap();
    assert!(born.is_whole && born.frames.len() == 1, "{born:?}");
    child.kill().unwrap();
    child.wait().unwrap();
}

/// The place of the return address in generated code is unknown: the frame pointer in the register is that of `main`.
#[cfg(target_arch = "x86_64")]
#[test]
fn stack_through_generated_code_is_not_taken_for_whole() {
    let (names, is_whole) = functions(GENERATED, "O0");
    assert_eq!(names[names.len() - 2..], ["wait_inside", ""]);
    assert!(!is_whole, "{names:?}");
}

/// The kernel shows no mappings for the ended main thread, and has no memory for its id.
#[test]
fn threads_of_a_process_whose_main_thread_has_ended_are_read() {
    let program = Program::new(HEADLESS, "O0");
    let running = program.run().unwrap();
    let stacks = look(&[running.pid()]).remove(0).unwrap();
    let [thread] = &stacks.threads[..] else {
        panic!("{stacks:?}");
    };
    assert!(thread.is_whole && thread.thread != running.pid());
    let mut functions = thread.frames.iter().flat_map(|frame| &frame.function);
    assert!(functions.any(|name| name == "work"), "{thread:?}");
    assert_eq!(stacks.program, "program");
}

#[test]
fn process_that_executes_programs_is_unharmed() {
    let program = Program::new(AGAIN, "O0");
    let counting = Counting::start(&program, &[]);
    let mut looker = looker();
    for _ in 0..100 {
        match look_with(&mut looker, &[counting.pid()]).remove(0) {
            Ok(_) | Err(Refusal::Executed) => {}
            Err(refusal) => panic!("{refusal:?}"),
        }
    }
    drop(looker);
    assert_at_large(counting.pid());
    assert_eq!(counting.end(), "0\n");
}

#[cfg(target_arch = "x86_64")]
#[test]
fn process_with_32_bits_is_refused() {
    let program = Program::new(NARROW, "");
    let running = program.run().unwrap();
    assert_eq!(look(&[running.pid()]), [Err(Refusal::Architecture)]);
    assert_at_large(running.pid());
}

/// A looker with a script of this text in front.
fn looker_behind(program: &Program, name: &str, words: &str) -> Looker {
    let script = program.folder().join(name);
    let looker = env!("CARGO_BIN_EXE_sdm-looker");
    let text = format!("#!/bin/sh\nexec {words} '{looker}' \"$@\"\n");
    std::fs::write(&script, text).unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    Looker::start(&script, true).unwrap()
}

#[test]
fn process_that_calls_exec_meanwhile_is_sampled_again() {
    let library = Program::new(EXEC_WHILE_SEIZED, "O0");
    let path = library.make().unwrap();
    let program = Program::new(ANEW, "O0");
    for (execs, is_seen) in [(0, true), (1, true), (3, true), (4, false)] {
        let counting = Counting::start(&program, &[]);
        let words = format!("env EXECS={execs} LD_PRELOAD='{}'", path.display());
        let mut looker = looker_behind(&program, "preloaded", &words);
        let seen = look_with(&mut looker, &[counting.pid()]).remove(0);
        match (seen, is_seen) {
            // The new program has just begun.
            (Ok(stacks), true) => {
                let innermost = &stacks.threads[0].frames[0];
                assert!(innermost.function.is_some(), "{innermost:?}");
            }
            (Err(Refusal::Executed), false) => {}
            (seen, _) => panic!("{execs}: {seen:?}"),
        }
        drop(looker);
        assert_at_large(counting.pid());
        assert_eq!(counting.end(), format!("{execs}\n"));
    }
}

/// Inspects a program by a looker for which the kernel refuses a system call with this error number.
fn refused(call: i64, errno: i32) -> Refusal {
    let program = Program::new(C, "O0");
    let running = program.run().unwrap();
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/forbid_call.py");
    let words = format!("python3 '{}' {call} {errno}", fixture.display());
    let mut looker = looker_behind(&program, "forbidden", &words);
    let refused = look_with(&mut looker, &[running.pid()]).remove(0);
    assert_at_large(running.pid());
    refused.unwrap_err()
}

#[test]
fn refused_ptrace_is_reported_as_not_allowed() {
    let refusal = refused(libc::SYS_ptrace, libc::EPERM);
    assert!(matches!(refusal, Refusal::NotAllowed { .. }), "{refusal:?}");
}

#[test]
fn refused_process_vm_readv_is_reported() {
    for (errno, text) in [
        (libc::ENOSYS, "Function not implemented"),
        (libc::EPERM, "Operation not permitted"),
    ] {
        let refusal = refused(libc::SYS_process_vm_readv, errno);
        let text = text.to_owned();
        assert_eq!(refusal, Refusal::MemoryCall { text });
    }
}
