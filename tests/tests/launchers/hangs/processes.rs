//! Tests of targets of `diagnose` and `stacks`: pids, spawned ranks, a name of several jobs, wrappers, and a library
//! without debug information.

use std::path::Path;

use sdm_tests::fixture;
use sdm_tests::job::{Folder, HeldJob, allow_root, running};
use sdm_tests::place::{Compiler, Place};
use sdm_tests::sdm::{Done, Sdm};
use sdm_tests::united::all_told;

use super::job::{Job, Under};
use crate::chosen::chosen;

/// Runs `sdm VERB TARGET`.
fn said(place: &Place, verb: &str, target: &[&str]) -> Done {
    let prefix = ["env", "--default-signal=INT"];
    Sdm::wrapped(&prefix, place, verb).args(target).finish()
}

/// Pid of a rank's process, by the rank in the environment that its launcher has given it.
fn pid_of(program: &Path, rank: u32) -> u32 {
    let variables = ["OMPI_COMM_WORLD_RANK", "PMI_RANK"].map(|name| format!("{name}={rank}"));
    let is_it = |pid: &u32| {
        let own = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        let mut own = own.split(|byte| *byte == 0);
        own.any(|own| variables.iter().any(|wanted| wanted.as_bytes() == own))
    };
    let found = running(program).into_iter().find(is_it);
    found.expect("the rank runs")
}

/// Ranks 2 and 3 are given. If their positions 0 and 1 in the list counted as ranks, each would seem to wait for the
/// other.
#[test]
fn processes_given_by_pid_are_diagnosed_by_mpi_rank() {
    for compiler in chosen(
        processes_given_by_pid_are_diagnosed_by_mpi_rank,
        &[Compiler::OpenMpi, Compiler::Mpich],
    ) {
        let folder = Folder::new("cross");
        let program = folder.compile(compiler, "mpi_cross");
        let under = Under {
            ranks: 4,
            ..Under::new(compiler)
        };
        let job = Job::start(under, &program, "cross");
        let pids = [2, 3]
            .map(|rank| pid_of(&program, rank).to_string())
            .join(",");
        let place = Place::new();
        let done = said(&place, "diagnose", &["--pids", &pids]);
        drop(job);
        assert_ne!(done.code, Some(1), "{compiler:?}: {done}");
        assert!(
            done.out.contains("from 0 [3], 1 [2] (3 - me), tag 3"),
            "{compiler:?}: {done}"
        );
        assert!(
            done.out.contains("ranks 0-1 (2): not sampled"),
            "{compiler:?}: {done}"
        );
    }
}

/// Parents that wait for ranks that they spawned: the parents' number, and the way of `mpi_kids`.
pub(super) const PARENTS: [(usize, &str); 11] = [
    (2, "merge"),
    (2, "request"),
    (1, "any"),
    (2, "collective"),
    (4, "merged"),
    (1, "kids"),
    (2, "kids"),
    (1, "merged"),
    (2, "merged"),
    (3, "kids"),
    (8, "kids"),
];

pub(super) fn check_parents(all: &[(usize, &str)]) {
    // With this version of MPICH, ranks do not return from MPI_Comm_spawn here.
    let compiler = Compiler::OpenMpi;
    for &(ranks, way) in all {
        let folder = Folder::new("kids");
        let program = folder.compile(compiler, "mpi_kids");
        let under = Under {
            ranks,
            ..Under::new(compiler)
        };
        let job = Job::start(under, &program, way);
        let pid = job.launcher.id().to_string();
        let place = Place::new();
        let judged = said(&place, "diagnose", &[&pid]);
        let stacks = said(&place, "stacks", &[&pid]);
        drop(job);
        let told = judged.out.contains("with processes of another job");
        assert!(told && judged.code == Some(4), "{way} {ranks}: {judged}");
        let both = format!("{}{}", stacks.out, stacks.err);
        let told = "have started 2 more processes (MPI_Comm_spawn): use --pids ";
        assert!(
            both.contains(told) && stacks.code == Some(0),
            "{way} {ranks}: {stacks}"
        );
    }
}

/// All of them are in the long run.
#[test]
fn parents_waiting_for_spawned_ranks_are_no_deadlock() {
    check_parents(&PARENTS[..5]);
}

/// A name does not say which of two jobs is meant.
#[test]
fn ambiguous_program_name_lists_both_jobs() {
    for (compiler, name) in [
        (Compiler::OpenMpi, "stray_open_mpi"),
        (Compiler::Mpich, "stray_mpich"),
    ] {
        let folder = Folder::new("twice");
        let program = folder.0.join(name);
        fixture::compile(compiler, "mpi_stray", &["-g"], &program);
        let under = Under {
            ranks: 2,
            ..Under::new(compiler)
        };
        let jobs = ["first", "second"].map(|way| Job::start(under, &program, way));
        let place = Place::new();
        let told = [("stacks", 2), ("diagnose", 2), ("attach", 124)]
            .map(|(verb, code)| (said(&place, verb, &[name]), code));
        let launchers = jobs.each_ref().map(|job| job.launcher.id());
        drop(jobs);
        for (done, code) in told {
            assert_eq!(done.code, Some(code), "{compiler:?}: {done}");
            let asks = format!("{name} runs in several jobs: give the pid of one launcher");
            assert!(done.err.contains(&asks), "{compiler:?}: {done}");
            for pid in launchers {
                let listed = format!("(pid {pid}): ranks 0 (pid ");
                assert!(done.err.contains(&listed), "{compiler:?} {pid}: {done}");
            }
        }
    }
}

/// The arguments of a call are those of the library's function, which has no debug information.
#[test]
fn mpi_call_from_a_library_without_debug_info_has_arguments() {
    for compiler in chosen(
        mpi_call_from_a_library_without_debug_info_has_arguments,
        &[Compiler::OpenMpi, Compiler::Mpich],
    ) {
        let folder = Folder::new("between");
        let library = folder.0.join("libbetween.so");
        let options = ["-O2", "-DLIBRARY", "-shared", "-fPIC"];
        fixture::compile(compiler, "mpi_between", &options, &library);
        let program = folder.0.join("mpi_between");
        let library = library.to_str().expect("a path of text");
        let options = ["-g", "-Wl,--no-as-needed", library];
        fixture::compile(compiler, "mpi_between", &options, &program);
        for by in [&[][..], &["--by", "gdb"]] {
            let under = Under {
                ranks: 4,
                ..Under::new(compiler)
            };
            let job = Job::start(under, &program, "between");
            let place = Place::new();
            let target = job.launcher.id().to_string();
            let done = said(&place, "diagnose", &[&[&*target], by].concat());
            drop(job);
            for part in ["likely to blame: rank 2", "MPI_Scatter", "    root 2"] {
                assert!(
                    done.out.contains(part),
                    "{compiler:?} {by:?} {part}: {done}"
                );
            }
            assert!(
                !done.out.contains("in another communicator"),
                "{compiler:?} {by:?}: {done}"
            );
        }
    }
}

/// A script, a container-like one in a user namespace of its own, one that ends its program after a while, a shell that
/// does not replace itself, and one that counts.
#[test]
fn stacks_show_the_program_and_not_its_wrapper() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/wrap.py");
    let script = script.to_str().expect("a path of text");
    for (compiler, wrapper) in [
        (Compiler::OpenMpi, &["python3", script][..]),
        (
            Compiler::Mpich,
            &["unshare", "--user", "--map-root-user", "--mount"],
        ),
        (Compiler::Mpich, &["timeout", "1000"]),
        (Compiler::OpenMpi, &["sh", "-c", "\"$0\" \"$@\"; exit $?"]),
        (Compiler::Mpich, &["perf", "stat", "-o", "/dev/null"]),
    ] {
        let folder = Folder::new("wrapped");
        let program = folder.compile(compiler, "mpi_held");
        let under = Under {
            ranks: 2,
            ..Under::new(compiler)
        };
        let mut launcher = under.launcher();
        allow_root(&mut launcher).args(wrapper);
        // Ranks in user namespaces of their own map no POSIX memory of one another. Over `tcp` MPICH's MPI_Finalize hangs now
        // and then beside a load, without SDM, too.
        launcher.env("UCX_TLS", "sysv,self");
        let job = HeldJob::start(launcher, &folder, &program, 2);
        let place = Place::new();
        let done = said(&place, "stacks", &[&job.starter().to_string()]);
        job.finish();
        // One rank may be in the sum already, in which it waits for the other.
        let programs = all_told(&done.out, "main () at mpi_held.c:");
        assert_eq!(programs.to_string(), "0-1", "{wrapper:?}: {done}");
    }
}
