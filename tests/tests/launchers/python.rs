//! Ranks of Python programs, by mpi4py and by PyTorch.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use sdm_tests::place::Place;
use sdm_tests::sdm::Sdm;

const _: () = sdm_tests::run::test_group("crowded", "ranks that poll");

const PYTHON: &str = "/usr/bin/python3";

fn has_mpi4py() -> bool {
    has("mpi4py")
}

fn has(package: &str) -> bool {
    let found = Command::new(PYTHON)
        .args(["-c", &format!("import {package}")])
        .output()
        .is_ok_and(|output| output.status.success());
    if !found {
        println!("SKIP: no python3-{package}");
    }
    found
}

#[test]
fn stacks_and_bt_are_those_of_python() {
    if !has_mpi4py() {
        return;
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/mpi_solver.py");
    let script = script.to_str().expect("a path of text");
    let line = |text| Place::line("mpi_solver.py", text);
    let place = Place::new();
    let mut sdm = Sdm::run(&place, 3)
        .args(["--launcher", "mpirun"])
        .talk()
        .program(Path::new(PYTHON), &[script])
        .spawn();
    sdm.out.wait(0, "ranks 0-2 (3): at");
    sdm.ask("continue &", "waiting");
    // They are where they wait soon after that.
    let stacks = || {
        sdm.stop("0-2");
        let stacks = sdm.ask("stacks", "left out\n");
        let trace = sdm.ask("[1] bt", "<module>");
        sdm.ask("continue &", "continue &");
        (stacks, trace)
    };
    let seen = std::iter::repeat_with(stacks)
        .take(100)
        .find(|(stacks, _)| stacks.contains("MPI_Barrier") && stacks.contains("Solver.halo"));
    let (stacks, trace) = seen.unwrap_or_else(|| panic!("{}", sdm.out.text()));
    let (main, step) = (line("main()  # from here"), line("solver.step()"));
    let top = format!("ranks 0-2 (3): <module> () at mpi_solver.py:{main}\n");
    assert!(stacks.contains(&top), "{stacks}");
    assert!(
        stacks.contains(&format!("main () at mpi_solver.py:{step}\n")),
        "{stacks}"
    );
    for part in ["_PyEval", "python3.11+", "__pyx_"] {
        assert!(!stacks.contains(part), "{part}: {stacks}");
    }
    let halo = format!(
        "Solver.halo () at mpi_solver.py:{}\n",
        line("self.comm.recv")
    );
    assert!(trace.contains(&halo), "{trace}");
    sdm.stop("0-2");
    // A diagnosis and the report are made of the same.
    sdm.ask("diagnose", "called from Solver.halo () at mpi_solver.py:");
    sdm.ask("report r.html", "r.html");
    sdm.ask("quit", "quit");
    let _done = sdm.finish().code(0);
    for name in ["r.html", "r.txt", "r.json"] {
        let report = std::fs::read_to_string(place.path().join(name)).expect(name);
        assert!(report.contains("Solver.halo"), "{name}: {report}");
        assert!(!report.contains("_PyEval"), "{name}: {report}");
    }
}

/// What hangs in a rank of Python's is Python's: its lock, and workers in processes of their own.
#[test]
fn hangs_of_python_are_told() {
    if !has_mpi4py() {
        return;
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/mpi_python_hangs.py");
    let script = script.to_str().expect("a path of text");
    for (way, why) in [
        ("gil", "for Python's lock (the GIL), which thread "),
        (
            "loader",
            "whose other end nobody else has since a child has ended",
        ),
        (
            "server",
            "for what the other end of a local socket sends: process ",
        ),
    ] {
        let place = Place::new();
        let mut sdm = Sdm::run(&place, 4)
            .args(["--launcher", "mpirun", "--no-stop"])
            .talk()
            .program(Path::new(PYTHON), &[script, way])
            .spawn();
        // It is where it hangs soon after that.
        sdm.out.wait(0, "rank 3 is ready");
        let diagnose = || sdm.ask("diagnose", " samples in ");
        let mut told = std::iter::repeat_with(diagnose).take(100);
        let told = told.find(|said| said.contains(why));
        let told = told.unwrap_or_else(|| panic!("{way}: {}", sdm.out.text()));
        assert!(told.contains("eld up by rank 3"), "{way}: {told}");
        let called = format!("{way} () at mpi_python_hangs.py:");
        assert!(told.contains(&called), "no {called:?}: {told}");
        sdm.ask("quit", "quit");
        let _done = sdm.finish();
    }
}

/// What torchrun has started; it ends it all when it is told to end.
struct Torchrun(Child);

impl Torchrun {
    fn start(way: &str) -> Self {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/torch_hangs.py");
        let mut command = Command::new(PYTHON);
        command.args(["-m", "torch.distributed.run", "--standalone"]);
        // Of the two numbers 0 and 3, which are usual, that of Debian knows neither with its Python.
        command.args(["--redirects", "1", "--tee", "1", "--nproc_per_node", "4"]);
        command.arg(script).arg(way).env("OMP_NUM_THREADS", "1");
        let mut job = Self(command.stdout(Stdio::piped()).spawn().expect("it starts"));
        let output = job.0.stdout.take().expect("it was asked for");
        let lines = BufReader::new(output).lines().map_while(Result::ok);
        let ready = lines.filter(|line| line.contains("ready")).take(4).count();
        assert_eq!(ready, 4, "the others have ended");
        job
    }
}

impl Drop for Torchrun {
    fn drop(&mut self) {
        let pid = Pid::from_raw(self.0.id().cast_signed());
        let _ = kill(pid, Signal::SIGTERM);
        let _ = self.0.wait();
    }
}

/// Ranks of PyTorch's wait for each other by sockets that threads of a library's look after.
#[test]
fn ranks_of_torchrun_are_told_by_their_operations() {
    if !has("torch") {
        return;
    }
    let diagnosed = |job: &Torchrun| {
        let place = Place::new();
        let pid = job.0.id().to_string();
        let done = Sdm::new(&place, "diagnose").args(["--json", &pid]).finish();
        let records = done.records().into_iter();
        let mut records = records.filter(|record| record["kind"] == "diagnosis");
        records.next().unwrap_or_else(|| panic!("{done}"))
    };
    let job = Torchrun::start("computes");
    // They are where they hang soon after that.
    let mut told = std::iter::repeat_with(|| diagnosed(&job)).take(10);
    let told = told.find(|found| found["held_up_by"] == "3");
    let told = told.expect("rank 3 is who does not come").to_string();
    let waits = "waiting in torch.distributed.all_reduce, called from main () at torch_hangs.py:";
    assert!(told.contains(waits), "{told}");
    drop(job);
    let job = Torchrun::start("healthy");
    for _ in 0..3 {
        let found = diagnosed(&job);
        assert_eq!(found["suspects"], "", "{found:#}");
        assert_eq!(found["stuck"], false, "{found:#}");
    }
}
