//! Compares stacks read without a debugger with gdb's: the same functions, files, lines and inlined functions.

#![allow(clippy::unwrap_used)]

mod gdb;
mod kinds;
mod programs;
mod safety;

use std::time::{Duration, Instant};

use sdm_inspect::looker::{Answer, Looker, Question, View};
use sdm_inspect::snapshot::Refusal;
use sdm_inspect::stack::{ProcessStacks, StackFrame};

use programs::{C, CLANG, CXX, FORTRAN, Program, RUST, VARIANTS};

/// The programs whose stacks differ from gdb's, with the reason. No other program may differ, and each of these does.
const DIFFERENCES: &[(&str, &str)] = &[
    (
        "heat.f90 gfortran lto",
        "gdb leaves out what was put into a function of another unit; llvm-symbolizer has it as we do",
    ),
    (
        "plain.c musl-gcc static",
        "no call frame information: gdb goes on with what is no frame, ours says that it is cut",
    ),
    (
        "plain.c musl-gcc",
        "the same; and gdb has the file's name as the loader was told it, a link",
    ),
];

/// A frame in comparable form.
type Row = (String, String, u32, String);

fn ours(frame: &StackFrame) -> Row {
    (
        frame.function.clone().unwrap_or_default(),
        frame.file.clone().unwrap_or_default(),
        frame.line,
        frame.module.clone(),
    )
}

/// True if gdb's frame equals ours. gdb's name may have a parameter list behind it, which gdb keeps if it cannot
/// parse the name.
fn same(ours: &Row, gdb: &Row) -> bool {
    let rest = gdb.0.strip_prefix(ours.0.as_str());
    let is_name = rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('('));
    is_name && (ours.1.as_str(), ours.2, ours.3.as_str()) == (&gdb.1, gdb.2, &gdb.3)
}

/// The looker's answers for these processes.
pub(crate) fn look(pids: &[i32]) -> Vec<Result<ProcessStacks, Refusal>> {
    let mut looker = Looker::start(env!("CARGO_BIN_EXE_sdm-looker").as_ref(), true).unwrap();
    look_with(&mut looker, pids)
}

pub(crate) fn look_with(looker: &mut Looker, pids: &[i32]) -> Vec<Result<ProcessStacks, Refusal>> {
    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
    looker.ask(Instant::now(), 1, pids.to_vec(), Question::Stacks);
    let mut answers: Vec<Answer> = Vec::new();
    while answers.len() < pids.len() {
        let mut fds = [PollFd::new(looker.as_fd(), PollFlags::POLLIN)];
        poll(&mut fds, PollTimeout::NONE).unwrap();
        looker.take(Instant::now(), &mut answers);
    }
    let stacks = |seen| match seen {
        View::Stacks(stacks) => stacks,
        other => panic!("nobody has asked for {other:?}"),
    };
    let seen = answers.into_iter().map(|answer| answer.seen);
    seen.map(|seen| seen.map(stacks)).collect()
}

/// Compares each thread of a program; returns the differences.
fn compare(program: &Program) -> Option<String> {
    let running = program.run()?;
    let stacks = look(&[running.pid()]).remove(0).unwrap();
    let gdb = gdb::stacks(running.pid(), stacks.threads.len());
    let mut text = String::new();
    for (at, (thread, gdb)) in stacks.threads.iter().zip(&gdb).enumerate() {
        let ours: Vec<Row> = thread.frames.iter().map(ours).collect();
        let is_same = ours.len() == gdb.len() && ours.iter().zip(gdb).all(|(a, b)| same(a, b));
        if !is_same || !thread.is_whole {
            let whole = if thread.is_whole { "whole" } else { "cut" };
            text += &format!("thread {at}, {whole}:\n  ours {ours:#?}\n  gdb {gdb:#?}\n");
        }
    }
    Some(text)
}

fn check(programs: &[Program]) {
    let mut wrong = Vec::new();
    for program in programs {
        let name = program.name();
        let known = DIFFERENCES.iter().find(|(known, _)| *known == name);
        match (compare(program), known) {
            (None, _) => println!("SKIP: no {}", program.compiler()),
            (Some(text), None) if !text.is_empty() => wrong.push(format!("{name}: {text}")),
            (Some(text), Some((_, why))) if text.is_empty() => {
                wrong.push(format!("{name}: the same by now; it is listed: {why}"));
            }
            _ => {}
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn some(language: programs::Language, variants: &[&str]) -> Vec<Program> {
    let of = |name: &&str| Program::new(language, name);
    variants.iter().map(of).collect()
}

#[test]
fn stacks_of_c_equal_those_of_gdb() {
    check(&some(
        C,
        &["O0", "O2", "static", "split", "stripped", "debuglink"],
    ));
    check(&[Program::musl(&["static"]), Program::musl(&[])]);
}

#[test]
fn stacks_of_cplusplus_equal_those_of_gdb() {
    check(&some(CXX, &["O0", "O2", "lto", "types"]));
    check(&some(CLANG, &["O2", "dwarf-4"]));
}

#[test]
fn stacks_of_fortran_and_rust_equal_those_of_gdb() {
    check(&some(FORTRAN, &["O0", "O2", "lto", "gz"]));
    check(&some(RUST, &["O0", "O2"]));
}

/// All languages with all compiler variants.
#[test]
fn every_variant_has_the_stacks_of_gdb() {
    for language in [C, CXX, CLANG, FORTRAN] {
        check(&some(language, VARIANTS));
    }
}

#[test]
fn ended_process_is_reported_as_ended() {
    let pid = {
        let program = Program::new(C, "O0");
        let running = program.run().unwrap();
        running.pid()
    };
    assert_eq!(look(&[pid]), [Err(Refusal::Ended)]);
}

/// Time limit of each wait in these tests.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
