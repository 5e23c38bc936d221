//! Ranks of Python programs, by mpi4py.

use std::path::Path;
use std::process::Command;

use sdm_tests::place::Place;
use sdm_tests::run::alone;
use sdm_tests::sdm::Sdm;

const PYTHON: &str = "/usr/bin/python3";

fn has_mpi4py() -> bool {
    let found = Command::new(PYTHON)
        .args(["-c", "import mpi4py"])
        .output()
        .is_ok_and(|output| output.status.success());
    if !found {
        println!("SKIP: no python3-mpi4py");
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
        sdm.ask("interrupt", "ranks ");
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
    sdm.ask("interrupt", "ranks ");
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
    let _alone = alone();
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
