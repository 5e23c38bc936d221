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

use programs::{C, CLANG, CLONED, CONTEXTS, CXX, FORTRAN, Program, RUST, VARIANTS};

/// A reason why stacks may differ from gdb's. No other reason is accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cause {
    /// gdb leaves out functions that were inlined into a function of another unit, and the names of their parents.
    /// llvm-symbolizer shows them as we do.
    OtherUnit,
    /// Without call frame information gdb shows frames that do not exist. We follow the instructions of the functions
    /// to the stack's end.
    NoRules,
    /// As [`Cause::NoRules`]. In addition gdb shows the file name by which the loader was told a library, which is a
    /// link.
    NoRulesAndLink,
    /// gdb shows frames beyond `__start_context`, which no function has called. eu-stack shows other frames there.
    ContextBottom,
}

/// A program whose stacks differ from gdb's. The stacks of no other program may differ, and those of each of these do.
struct Difference {
    program: &'static str,
    cause: Cause,
    /// Maximum number of differing frames, of all threads, in our and in gdb's stacks; only those of gdb with
    /// [`Cause::NoRules`]. It may only fall.
    frames_max: usize,
}

/// The programs whose stacks differ from gdb's. The list may only become shorter, except by programs that were not
/// compared before. `docs/stacks.md` has its rows.
const DIFFERENCES: &[Difference] = &[
    Difference {
        program: "heat.f90 gfortran lto",
        cause: Cause::OtherUnit,
        frames_max: 7,
    },
    Difference {
        program: "plain.c musl-gcc static",
        cause: Cause::NoRules,
        frames_max: 2,
    },
    Difference {
        program: "plain.c musl-gcc",
        cause: Cause::NoRulesAndLink,
        frames_max: 16,
    },
    Difference {
        program: "contexts.c gcc O0",
        cause: Cause::ContextBottom,
        frames_max: 4,
    },
    Difference {
        program: "contexts.c gcc O2",
        cause: Cause::ContextBottom,
        frames_max: 4,
    },
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

/// The frames of a thread between those that are equal at both ends.
#[derive(Debug)]
struct Differing {
    is_whole: bool,
    ours: Vec<Row>,
    gdb: Vec<Row>,
}

impl Differing {
    /// The differing frames; `None` if both stacks are the same and whole.
    fn of(is_whole: bool, mut ours: Vec<Row>, mut gdb: Vec<Row>) -> Option<Self> {
        while let (Some(own), Some(other)) = (ours.last(), gdb.last())
            && same(own, other)
        {
            ours.pop();
            gdb.pop();
        }
        let pairs = ours.iter().zip(&gdb);
        let inner = pairs.take_while(|(own, other)| same(own, other)).count();
        let (ours, gdb) = (ours.split_off(inner), gdb.split_off(inner));
        let differs = !is_whole || !ours.is_empty() || !gdb.is_empty();
        differs.then_some(Self {
            is_whole,
            ours,
            gdb,
        })
    }

    fn frames(&self) -> impl Iterator<Item = &Row> {
        self.ours.iter().chain(&self.gdb)
    }
}

impl Difference {
    /// True if the cause explains the differing frames. With `OtherUnit` they may be of any source. With `NoRules` some
    /// of ours are of the program's own source, and none of gdb's. Otherwise none are.
    fn explains(&self, found: &[Differing]) -> bool {
        let source = self.program.split(' ').next().unwrap();
        let is_user = |row: &Row| row.1 == source;
        let is_cut = self.cause == Cause::NoRulesAndLink;
        let fits = |it: &Differing| match self.cause {
            Cause::OtherUnit => it.is_whole,
            Cause::NoRules => {
                it.is_whole && it.ours.iter().any(is_user) && !it.gdb.iter().any(is_user)
            }
            _ => (it.is_whole || is_cut) && !it.frames().any(is_user),
        };
        let count: usize = found
            .iter()
            .map(|it| match self.cause {
                Cause::NoRules => it.gdb.len(),
                _ => it.frames().count(),
            })
            .sum();
        found.iter().all(fits) && count <= self.frames_max
    }
}

/// Compares each thread of a program; `None` if this machine cannot compile it.
fn compare(program: &Program) -> Option<Vec<Differing>> {
    let running = program.run()?;
    let stacks = look(&[running.pid()]).remove(0).unwrap();
    let gdb = gdb::stacks(running.pid(), stacks.threads.len());
    assert_eq!(gdb.len(), stacks.threads.len(), "{}", program.name());
    let both = stacks.threads.iter().zip(gdb);
    let differing = both.filter_map(|(thread, gdb)| {
        let ours = thread.frames.iter().map(ours).collect();
        Differing::of(thread.is_whole, ours, gdb)
    });
    Some(differing.collect())
}

fn check(programs: &[Program]) {
    let mut wrong = Vec::new();
    for program in programs {
        let name = program.name();
        let known = DIFFERENCES.iter().find(|known| known.program == name);
        let Some(found) = compare(program) else {
            println!("SKIP: no {}", program.compiler());
            continue;
        };
        match known {
            None if !found.is_empty() => wrong.push(format!("{name}: {found:#?}")),
            Some(known) if found.is_empty() => {
                wrong.push(format!(
                    "{name}: the same by now, in spite of {:?}",
                    known.cause
                ));
            }
            Some(known) if !known.explains(&found) => {
                wrong.push(format!(
                    "{name}: not explained by {:?}: {found:#?}",
                    known.cause
                ));
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
fn documentation_lists_each_difference_from_gdb() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/stacks.md");
    let text = std::fs::read_to_string(path).unwrap();
    let (_, table) = text.split_once("| program | cause |").unwrap();
    let rows: Vec<(&str, usize)> = table
        .lines()
        .skip(2)
        .map_while(|line| line.strip_prefix("| `"))
        .map(|row| {
            let (program, rest) = row.split_once("` |").unwrap();
            let most = rest.split('|').nth(1).unwrap().trim();
            (program, most.parse().unwrap())
        })
        .collect();
    let known = DIFFERENCES.iter().map(|it| (it.program, it.frames_max));
    assert_eq!(rows, known.collect::<Vec<_>>());
}

#[test]
fn stacks_of_c_equal_those_of_gdb() {
    check(&some(
        C,
        &["O0", "O2", "static", "split", "stripped", "debuglink"],
    ));
    check(&some(C, &["zstd", "debug-folder", "packed", "package"]));
    check(&[Program::musl(&["static"]), Program::musl(&[])]);
}

#[test]
fn stacks_of_contexts_and_clones_equal_those_of_gdb() {
    check(&some(CONTEXTS, &["O0", "O2"]));
    check(&some(CLONED, &["O0", "O2"]));
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

/// C, C++ by gcc and by clang, and Fortran, with all compiler variants.
#[test]
fn stacks_of_every_compiler_variant_equal_those_of_gdb() {
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
