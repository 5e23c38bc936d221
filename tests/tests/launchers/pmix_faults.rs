//! MPI programs without a launcher of MPI where something fails: the PMIx library, or a rank that never connects to it.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};

use nix::sys::signal::Signal;
use sdm_tests::ordinary;
use sdm_tests::place::{Compiler, Place};
use sdm_tests::processes;
use sdm_tests::sdm::command;

use super::choice::ISOLATED;
use super::pmix::{assert_no_folder, hosts, lines_of, local};

/// A rank that ends without `MPI_Init` ends the job, as under mpirun. (mpirun waits for ever where such a rank ends
/// with 0.)
#[test]
fn rank_ending_before_mpi_init_ends_the_job() {
    let place = Place::new();
    let absent = place.compile("mpi_absent", Compiler::OpenMpi);
    for (own, code) in [("7", 7), ("0", 1)] {
        let done = local(&place, 3).args(["--batch", "--no-report"]);
        let done = done.program(&absent, &[own]).finish().code(code);
        let why =
            format!("rank 1 ends the job with status {code}: the rank has ended without MPI_Init");
        assert!(done.out.contains(&why), "{done}");
    }
    let sum = place.compile("mpi_sum", Compiler::Mpich);
    let done = local(&place, 2).args(["--batch", "--no-report"]);
    let done = done.program(&sum, &[]).finish().code(ISOLATED);
    assert!(
        done.err.contains("each process would be rank 0 of 1"),
        "{done}"
    );
}

/// A rank that leaves after `MPI_Init` without `MPI_Finalize` ends the job with its code, as under mpirun, which has 1
/// for such a rank that ends with 0.
#[test]
fn rank_leaving_without_finalize_ends_the_job() {
    let place = Place::new();
    for compiler in [Compiler::OpenMpi, Compiler::OpenMpi5] {
        let ends = place.compile("mpi_ends", compiler);
        for (how, each, code) in [("exit", "1", 7), ("zero", "32", 1)] {
            let done = local(&place, 4)
                .args(["--batch", "--no-report", "--no-holds"])
                .args(["--tasks-per-server", each])
                .program(&ends, &[how])
                .finish()
                .code(code);
            let why = format!(
                "rank 2 ends the job with status {code}: the rank has ended without MPI_Finalize"
            );
            assert!(done.out.contains(&why), "{done}");
            let told = done.united();
            assert!(
                told.contains("ranks 0-1,3 (3): terminated by signal SIGTERM"),
                "{done}"
            );
        }
    }
}

/// A killed rank ends the job if no rank is stopped; a stopped rank ends it when it continues.
#[test]
fn killed_rank_or_continued_early_exit_ends_the_job() {
    let place = Place::new();
    let ends = place.compile("mpi_ends", Compiler::OpenMpi);
    let done = local(&place, 3).args(["--no-holds"]).lines(&["continue"]);
    let done = done.program(&ends, &["kill"]).finish();
    let why = "rank 2 ends the job with status 137: the rank has ended without MPI_Finalize";
    assert!(done.out.contains(why), "{done}");
    let told = done.united();
    assert!(
        told.contains("ranks 0-1 (2): terminated by signal SIGTERM"),
        "{done}"
    );
    let mut sdm = local(&place, 3).talk().program(&ends, &["exit"]).spawn();
    sdm.out.wait(0, "ranks 0-2 (3): at main ()");
    sdm.ask(
        "continue &",
        "rank 2: about to call _exit before MPI_Finalize",
    );
    let ranks = place.pids("mpi_ends").into_iter();
    let ranks = ranks.filter(|pid| processes::name(*pid) == "mpi_ends");
    assert_eq!(ranks.count(), 3);
    sdm.ask("[2] continue &", "rank 2 ends the job with status 7");
    sdm.out.wait_each(0, "0-1", "terminated by signal SIGTERM");
    sdm.ask("quit", "quit");
    let _done = sdm.finish();
}

/// Ranks that never connect to the library merely exit, and those of a tool's job do not end the first one.
#[test]
fn exit_of_a_rank_without_mpi_does_not_end_the_job() {
    let place = Place::new();
    let go = place.path().join("go");
    let script = "test $PMIX_RANK = 1 && exit 3; until test -e $0; do sleep 0.1; done";
    let args = ["-c", script, go.to_str().expect("text")];
    let sdm = local(&place, 3).args(["--no-stop", "--no-holds", "--pmix", "on"]);
    let mut sdm = sdm.talk().program(Path::new("/bin/sh"), &args).spawn();
    sdm.out.wait(0, "rank 1: exited with code 3");
    std::fs::write(&go, "").expect("a file");
    sdm.out.wait_each(0, "0,2", "exited normally");
    assert!(
        !sdm.out.text().contains("ends the job"),
        "{}",
        sdm.out.text()
    );
    sdm.ask("quit", "quit");
    let _done = sdm.finish();
}

/// A library that crashes or hangs costs its own process, whose end is reported.
#[test]
fn failing_pmix_library_is_reported_and_session_continues() {
    let place = Place::new();
    let sum = place.compile("mpi_sum", Compiler::OpenMpi);
    let run = |fault: &str| {
        let library = place.path().join(format!("{fault}.so"));
        let fault = format!("-D{fault}");
        let options = [
            &fault,
            "-shared",
            "-fPIC",
            "-Wl,--no-as-needed",
            "-l:libpmix.so.2",
        ];
        sdm_tests::fixture::compile(Compiler::C, "faulty_library", &options, &library);
        let batch = ["--batch", "--no-report"];
        let sdm = local(&place, 2).args(batch).program(&sum, &[]);
        sdm.env("SDM_PMIX_LIBRARY", library)
    };
    let alone = "rank 0 of 1: sum 1";
    let done = run("CRASHES").finish().code(118);
    let why = "ranks 0-1 (2): the PMIx server of SDM cannot be started: sdm-pmix: killed by SIGABRT: the store is full; each MPI process is a job of its own";
    assert!(done.out.contains(why), "{done}");
    // Equal output of both within a moment is one line.
    let printed = |out: &str| {
        let lines = out.lines().filter(|line| !line.contains("error: "));
        lines.collect::<Vec<_>>().join("\n")
    };
    let is_alone = |out: &str| lines_of(&printed(out)).iter().all(|it| *it == alone);
    assert!(is_alone(&done.out), "{done}");
    if sdm_tests::run::is_full() {
        let running = run("HANGS").spawn();
        let why =
            "sdm-pmix did not start within its time limit; each MPI process is a job of its own";
        running.out.wait(0, why);
        let done = running.finish().code(118);
        assert!(is_alone(&done.out), "{done}");
    }
    assert_no_folder(&place);
}

/// The folder of a session that is killed as a whole stays, and the next PMIx server removes it; nothing else of such a
/// name.
#[test]
fn pmix_server_removes_the_folder_of_a_killed_server() {
    let place = Place::new();
    let sum = place.compile("mpi_sum", Compiler::OpenMpi);
    let own = place.path().join("tmp");
    let folders = || {
        let entries = std::fs::read_dir(&own).expect("a folder").flatten();
        let names = entries.map(|it| it.file_name().into_string().expect("text"));
        names.filter(|it| it.starts_with("sdm-pmix-")).collect()
    };
    let start = || {
        let mut sdm = local(&place, 2).talk().program(&sum, &[]).spawn();
        sdm.ask("break add_up", "breakpoint 1 at");
        sdm
    };
    let killed = start();
    let dead: BTreeSet<String> = folders();
    assert_eq!(dead.len(), 1, "{dead:?}");
    let victims = hosts(&place);
    processes::signal(victims[0], Signal::SIGSTOP);
    for server in processes::servers(place.mark()).into_values() {
        processes::kill_if_there(server);
    }
    processes::kill_if_there(victims[0]);
    let _done = killed.finish();
    assert_eq!(folders(), dead);
    // In use, a file, and a link.
    let mut lives = start();
    let mut stay: BTreeSet<String> = folders();
    assert!(stay.len() == 1 && stay.is_disjoint(&dead), "{stay:?}");
    std::fs::write(own.join("sdm-pmix-file-0"), "").expect("a file");
    symlink(place.path(), own.join("sdm-pmix-link-0")).expect("a link");
    stay.extend(["sdm-pmix-file-0", "sdm-pmix-link-0"].map(str::to_owned));
    let mut next = start();
    let found: BTreeSet<String> = folders();
    assert!(
        found.is_superset(&stay) && found.len() == stay.len() + 1,
        "{found:?}"
    );
    for sdm in [&mut lives, &mut next] {
        sdm.ask("quit", "quit");
    }
    let _done = [lives.finish(), next.finish()];
}

/// Whatever a PMIx server answers, a tool ends with an error that says so.
#[test]
fn hostile_pmix_server_cannot_hang_or_crash_a_tool() {
    let place = Place::new();
    let own = place.path().join("tmp");
    std::fs::create_dir(&own).expect("a folder");
    ordinary::give(&own);
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/pmix_hostile.py");
    let mut asking = Vec::new();
    for way in ["garbage", "huge", "hang up", "echo", "silence"] {
        let file = own.join(format!("pmix.host.tool.{}", way.replace(' ', "-")));
        let mut server = ordinary_command(&place, "python3");
        server
            .arg(&fixture)
            .arg(file)
            .arg(way)
            .stdout(Stdio::piped());
        let mut server = server.spawn().expect("python3");
        let mut said = BufReader::new(server.stdout.take().expect("a pipe"));
        let mut pid = String::new();
        said.read_line(&mut pid).expect("text");
        let sdm = sdm_tests::binaries::folder().join("sdm");
        let mut tool = ordinary_command(&place, sdm.to_str().expect("text"));
        tool.args(["pmix", "--pid", pid.trim(), "query", "status"]);
        let tool = tool.env("TMPDIR", &own).stderr(Stdio::piped()).spawn();
        asking.push((way, server, tool.expect("sdm")));
    }
    for (way, mut server, tool) in asking {
        let done = tool.wait_with_output().expect("it ends");
        let said = String::from_utf8_lossy(&done.stderr);
        let wanted = "sdm: no answer within 30s: the PMIx server or its library hangs";
        assert!(said.starts_with(wanted), "{way}: {said}");
        assert_eq!(done.status.code(), Some(124), "{way}: {said}");
        server.kill().expect("it is ours");
        server.wait().expect("it is ours");
    }
    place.assert_gone();
}

/// A program as the ordinary user has it.
fn ordinary_command(place: &Place, program: &str) -> Command {
    let mut command = command(place, program);
    ordinary::lower(&mut command);
    command
}
