//! `queues`: what MPI's own debug library tells of sends and receives that have not completed.

use std::fs::{self, File, Permissions};
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use nix::sys::signal::Signal;
use sdm_pmix::queues::{QUEUES_VERSION, QueuesAnswer, QueuesAsk};
use sdm_pmix::wire::{Frames, frame};
use sdm_tests::place::{Compiler, Place};
use sdm_tests::processes;
use sdm_tests::run::BOUND;
use sdm_tests::sdm::{Running, Sdm};

/// Where Debian and Ubuntu install the library of Open MPI 4, below the folder of the machine's architecture.
const LIBRARY: &str = "openmpi/lib/openmpi3/libompi_dbg_msgq.so";
const NO_UNEXPECTED: &str = "the MPI library's debug library does not tell of messages that have come and that nobody has received";

fn library() -> PathBuf {
    let machine = format!("/usr/lib/{}-linux-gnu", std::env::consts::ARCH);
    Path::new(&machine).join(LIBRARY)
}

/// Eight ranks that hang in a way.
fn hanging<'a>(place: &'a Place, launcher: &[&str], compiler: Compiler, way: &str) -> Running<'a> {
    let hangs = place.compile("hangs", compiler);
    let nowhere = place.path().join("file");
    let mut sdm = Sdm::run(place, 8)
        .args(launcher)
        .talk()
        .program(&hangs, &[way, &nowhere.to_string_lossy()])
        .spawn();
    sdm.out.wait(0, "ranks 0-7 (8): at main ()");
    sdm.ask("continue &", "ready");
    sdm
}

fn open_mpi<'a>(place: &'a Place, way: &str) -> Running<'a> {
    let launcher = ["--launcher", "mpirun", "--launcher-option=--oversubscribe"];
    hanging(place, &launcher, Compiler::OpenMpi, way)
}

/// Stops them and asks for the queues, until all of that is told of: who is ready has not come to where it hangs yet.
fn expect(sdm: &mut Running<'_>, wanted: &[&str]) {
    let end = Instant::now() + BOUND;
    loop {
        sdm.stop("0-7");
        let mark = sdm.out.mark();
        sdm.ask("queues", NO_UNEXPECTED);
        let said = sdm.out.text()[mark..].to_owned();
        if wanted.iter().all(|line| said.contains(line)) {
            return;
        }
        assert!(Instant::now() < end, "{wanted:#?} are wanted:\n{said}");
        sdm.ask("continue &", "(sdm) continue &");
    }
}

fn end(mut sdm: Running<'_>) {
    sdm.ask("kill", "killed");
    let _ = sdm.finish();
}

#[test]
fn receives_and_sends_are_those_of_the_program() {
    for (way, wanted) in [
        (
            "request",
            &[
                "rank 3: 1 pending receive: from rank 0, tag 99, MPI_COMM_WORLD, 8 bytes",
                "ranks 0-2,4-7 (7): no send or receive is pending",
            ][..],
        ),
        (
            "any_source",
            &["rank 3: 1 pending receive: from any rank, tag 99, MPI_COMM_WORLD, 8 bytes"],
        ),
        (
            "ring",
            &[
                "rank 0: 1 pending receive: from rank 7, tag 1, MPI_COMM_WORLD, 8 bytes",
                "ranks 1-7 (7): 1 pending receive: from the rank 1 below, tag 1, MPI_COMM_WORLD, 8 bytes",
            ],
        ),
        (
            "send_ring",
            &[
                "rank 7: 1 pending send: to rank 0, tag 1, MPI_COMM_WORLD, 8 bytes",
                "ranks 0-6 (7): 1 pending send: to the rank 1 above, tag 1, MPI_COMM_WORLD, 8 bytes",
            ],
        ),
        (
            "tags",
            &[
                "rank 2: 1 pending send: to rank 3, tag 1, MPI_COMM_WORLD, 8 bytes",
                "rank 3: 1 pending receive: from rank 2, tag 99, MPI_COMM_WORLD, 8 bytes",
            ],
        ),
        // Ranks of the communicator are others than those of the job.
        (
            "ring_of_some",
            &[
                "rank 4: 1 pending receive: from rank 7 (rank 3 of the communicator), tag 1, ",
                "1 pending receive: from the rank 1 below (the rank 5 below of the communicator), tag 1, ",
            ],
        ),
    ] {
        let place = Place::new();
        let mut sdm = open_mpi(&place, way);
        expect(&mut sdm, wanted);
        end(sdm);
    }
}

#[test]
fn who_has_no_such_library_says_so() {
    let place = Place::new();
    let mut sdm = hanging(&place, &["--launcher", "mpiexec"], Compiler::Mpich, "ring");
    sdm.stop("0-7");
    let why = "ranks 0-7 (8): MPICH names no debug library that knows its queues";
    sdm.ask("queues", why);
    // A command that fails is the last one of a session without a terminal.
    let _ = sdm.finish();
}

/// Kills a helper as soon as there is one. It has nothing of its server's environment, so its parent leads to it.
fn kill_a_helper(place: &Place, is_over: impl Fn() -> bool) {
    while !is_over() {
        let servers = processes::servers(place.mark());
        let below = servers
            .values()
            .flat_map(|server| processes::below(*server));
        let mut helpers = below.filter(|(pid, _)| processes::name(*pid) == "sdm-pmix");
        if let Some((helper, _)) = helpers.next() {
            return processes::signal(helper, Signal::SIGKILL);
        }
    }
}

#[test]
fn a_helper_that_is_killed_costs_its_answer_only() {
    let place = Place::new();
    let mut sdm = open_mpi(&place, "ring");
    expect(&mut sdm, &["pending receive"]);
    let end = Instant::now() + BOUND;
    let killed =
        "sdm-pmix with the MPI library's debug library in it: killed by SIGKILL before it answered";
    // One that has answered already is killed in vain.
    loop {
        assert!(Instant::now() < end, "no helper was met before it answered");
        let mark = sdm.out.mark();
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| kill_a_helper(&place, || is_over.load(Ordering::Relaxed)));
            sdm.ask("queues", NO_UNEXPECTED);
            is_over.store(true, Ordering::Relaxed);
        });
        if sdm.out.text()[mark..].contains(&format!("(7): {NO_UNEXPECTED}")) {
            sdm.out.wait(mark, killed);
            break;
        }
    }
    let _ = sdm.finish();
}

/// What `sdm-pmix queues` says to a library at this path.
fn asked(library: &Path) -> QueuesAnswer {
    let (mut socket, theirs) = UnixStream::pair().expect("descriptors");
    let memory = File::open("/proc/self/mem").expect("our own");
    let helper = sdm_tests::binaries::folder().join("sdm-pmix");
    let mut child = Command::new(helper)
        .arg("queues")
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .stdout(Stdio::from(memory))
        .spawn()
        .expect("it is built");
    let ask = QueuesAsk {
        version: QUEUES_VERSION,
        library: library.as_os_str().as_bytes().to_vec(),
        symbols: Vec::new(),
        types: Vec::new(),
    };
    let ask = frame(&ask).expect("it is short");
    socket.write_all(&ask).expect("it reads");
    let mut bytes = Vec::new();
    socket.read_to_end(&mut bytes).expect("it answers");
    child.wait().expect("it ends");
    let mut frames = Frames::default();
    frames.push(&bytes);
    frames.take().expect("a frame").expect("all of it")
}

#[test]
fn a_library_that_others_can_write_is_not_loaded() {
    let place = Place::new();
    let copy = place.path().join("libmsgq.so");
    fs::copy(library(), &copy).expect("there is room");
    fs::set_permissions(&copy, Permissions::from_mode(0o666)).expect("it is ours");
    let failed = |library: &Path| match asked(library) {
        QueuesAnswer::Failed { text } => text,
        known => panic!("{known:?}"),
    };
    let refused = failed(&copy);
    assert!(refused.contains("others may write to it"), "{refused}");
    fs::set_permissions(&copy, Permissions::from_mode(0o644)).expect("it is ours");
    // Without types it goes no further than that.
    assert_eq!(failed(&copy), "Failed to find some type (116)");
}
