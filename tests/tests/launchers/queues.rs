//! `queues`: sends and receives that have not completed, as MPI's own debug library reports them.

use std::fs::{self, File, Permissions};
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use nix::sys::signal::Signal;
use sdm_foreign::queues::{QUEUES_VERSION, QueuesAnswer, QueuesAsk};
use sdm_foreign::wire::{Frames, frame};
use sdm_system::proc::State;
use sdm_tests::fixture;
use sdm_tests::place::{Compiler, Place};
use sdm_tests::processes;
use sdm_tests::run::until;
use sdm_tests::sdm::{Running, Sdm};

/// Path at which Debian and Ubuntu install the library of Open MPI 4, below the folder of the machine's architecture.
const LIBRARY: &str = "openmpi/lib/openmpi3/libompi_dbg_msgq.so";
const NO_UNEXPECTED: &str =
    "the MPI library's debug library does not report unexpected messages (arrived, not received)";

fn library() -> PathBuf {
    let machine = format!("/usr/lib/{}-linux-gnu", std::env::consts::ARCH);
    Path::new(&machine).join(LIBRARY)
}

/// Eight ranks of `hangs`, stopped at `main`, which will hang in this way.
fn hanging<'a>(place: &'a Place, launcher: &[&str], compiler: Compiler, way: &str) -> Running<'a> {
    let hangs = place.compile("hangs", compiler);
    let nowhere = place.path().join("file");
    let sdm = Sdm::run(place, 8)
        .args(launcher)
        .talk()
        .program(&hangs, &[way, &nowhere.to_string_lossy()])
        .spawn();
    sdm.out.wait_each(0, "0-7", "at main ()");
    sdm
}

fn open_mpi<'a>(place: &'a Place, way: &str) -> Running<'a> {
    let launcher = ["--launcher", "mpirun", "--launcher-option=--oversubscribe"];
    hanging(place, &launcher, Compiler::OpenMpi, way)
}

/// Lets ranks of Open MPI run until each waits within MPI: it has posted its sends or receives, and polls for progress.
fn wait_within_mpi(sdm: &mut Running<'_>) {
    for place in ["say_ready", "opal_progress"] {
        sdm.ask(&format!("tbreak {place}"), "breakpoint ");
        let mark = sdm.out.mark();
        sdm.ask("continue", "(sdm) continue\n");
        sdm.out.wait_each(mark, "0-7", "stopped at breakpoint ");
    }
}

/// Lets the ranks run until they wait in MPI, and checks that `queues` shows these lines.
fn expect(sdm: &mut Running<'_>, wanted: &[&str]) {
    wait_within_mpi(sdm);
    let said = sdm.ask("queues", NO_UNEXPECTED);
    for line in wanted {
        assert!(said.contains(line), "no {line:?} in {said}");
    }
}

fn end(mut sdm: Running<'_>) {
    sdm.ask("kill", "killed");
    let _ = sdm.finish();
}

#[test]
fn receives_and_sends_of_waiting_ranks_are_listed() {
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
                "ranks 1-7 (7): 1 pending receive: from rank-1, tag 1, MPI_COMM_WORLD, 8 bytes",
            ],
        ),
        (
            "send_ring",
            &[
                "rank 7: 1 pending send: to rank 0, tag 1, MPI_COMM_WORLD, 8 bytes",
                "ranks 0-6 (7): 1 pending send: to rank+1, tag 1, MPI_COMM_WORLD, 8 bytes",
            ],
        ),
        (
            "tags",
            &[
                "rank 2: 1 pending send: to rank 3, tag 1, MPI_COMM_WORLD, 8 bytes",
                "rank 3: 1 pending receive: from rank 2, tag 99, MPI_COMM_WORLD, 8 bytes",
            ],
        ),
        // A communicator's ranks differ from those of the job.
        (
            "ring_of_some",
            &[
                "rank 4: 1 pending receive: from rank 7 (rank 3 of the communicator), tag 1, ",
                "ranks 5-7 (3): 1 pending receive: from rank-1, tag 1, ",
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
fn missing_queues_library_is_reported() {
    let place = Place::new();
    let mut sdm = hanging(&place, &["--launcher", "mpiexec"], Compiler::Mpich, "ring");
    // The library is loaded once the rank reports that it is ready.
    sdm.ask("tbreak say_ready", "breakpoint 1 ");
    let mark = sdm.out.mark();
    sdm.ask("continue", "(sdm) continue\n");
    sdm.out.wait_each(mark, "0-7", "stopped at breakpoint 1");
    let why = "ranks 0-7 (8): MPICH provides no debug library for message queues";
    sdm.ask("queues", why);
    // In a session without a terminal a failing command is the last one.
    let _ = sdm.finish();
}

/// The helper of the place's session. It has nothing of its server's environment, so its parent leads to it.
fn helper(place: &Place) -> Option<u32> {
    let servers = processes::servers(place.mark());
    let below = servers
        .values()
        .flat_map(|server| processes::below(*server));
    let mut helpers = below.filter(|(pid, _)| processes::name(*pid) == "sdm-pmix");
    helpers.next().map(|(pid, _)| pid)
}

#[test]
fn killed_helper_loses_only_the_message_queues_of_its_rank() {
    let place = Place::new();
    let mut sdm = open_mpi(&place, "ring");
    wait_within_mpi(&mut sdm);
    // Rank 3 names a library that stops the process that loads it: rank 3 gives no answer.
    let held = place.path().join("held.so");
    let library = library();
    let folder = library.parent().expect("it lies in one").display();
    let options = [
        "-shared",
        "-fPIC",
        "-Wl,--no-as-needed",
        &library.display().to_string(),
        &format!("-Wl,-rpath,{folder}"),
    ];
    fixture::compile(Compiler::C, "held_library", &options, &held);
    let name = format!("[3] print *(char **)numbers = \"{}\"", held.display());
    sdm.ask(&name, "rank 3: ");
    let list = "[3] print *(char ***)&mpimsgq_dll_locations = (char **)numbers";
    sdm.ask(list, "rank 3: ");
    let mark = sdm.out.mark();
    sdm.ask("queues", "(sdm) queues\n");
    let mut stopped = None;
    until("the helper of rank 3 is stopped", || {
        stopped =
            helper(&place).filter(|it| processes::of(*it).state().is_some_and(State::is_stopped));
        stopped.is_some()
    });
    processes::signal(stopped.expect("it was waited for"), Signal::SIGKILL);
    let killed = "rank 3: sdm-pmix, which had loaded the MPI library's debug library, failed: killed by SIGKILL before it answered";
    sdm.out.wait(mark, killed);
    sdm.out
        .wait(mark, &format!("ranks 0-2,4-7 (7): {NO_UNEXPECTED}"));
    let _ = sdm.finish();
}

/// The answer of `sdm-pmix queues` with a library at this path.
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
fn library_writable_by_others_is_not_loaded() {
    let place = Place::new();
    let copy = place.path().join("libmsgq.so");
    fs::copy(library(), &copy).expect("there is room");
    fs::set_permissions(&copy, Permissions::from_mode(0o666)).expect("it is ours");
    let failed = |library: &Path| match asked(library) {
        QueuesAnswer::Failed { text } => text,
        known => panic!("{known:?}"),
    };
    let refused = failed(&copy);
    assert!(
        refused.contains("other users may write to this file"),
        "{refused}"
    );
    fs::set_permissions(&copy, Permissions::from_mode(0o644)).expect("it is ours");
    // Without types it goes no further than that.
    assert_eq!(failed(&copy), "Failed to find some type (116)");
}
