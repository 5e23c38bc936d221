//! An editor debugs an MPI job.

mod panel;

use std::path::Path;
use std::process::Command;

use sdm_tests::editor::Editor;
use sdm_tests::job::{Folder, HeldJob};
use sdm_tests::place::{Compiler, Place};
use serde_json::{Value, json};

#[test]
fn hanging_job_is_two_threads_and_step_names_running_ranks() {
    let place = Place::new();
    for (launcher, compiler, options) in [
        ("mpirun", Compiler::OpenMpi, &["--oversubscribe"][..]),
        ("mpiexec", Compiler::Mpich, &[]),
    ] {
        let halo = place.compile("halo", compiler);
        let mut editor = Editor::new(&place);
        editor.launch(&json!({
            "program": halo, "args": ["200", "hang"], "ranks": 4, "threads": "classes",
            "launcher": launcher, "launcherOptions": options,
        }));
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/halo.c");
        let line = Place::line("halo.c", "MPI_Allreduce(");
        let set = |editor: &mut Editor<'_>, breakpoints: Value| {
            let arguments = json!({"source": {"path": source}, "breakpoints": breakpoints});
            editor.ask("setBreakpoints", &arguments)
        };
        let body = set(&mut editor, json!([{"line": line}]));
        assert_eq!(body["breakpoints"][0]["verified"], true, "{body}");
        editor.ask("configurationDone", &Value::Null);
        let stopped = all_stopped(&mut editor);
        assert_eq!(stopped["reason"], "breakpoint", "{stopped}");
        let threads = editor.threads();
        let here = format!("[0-3] 4 ranks: total_heat halo.c:{line}");
        assert_eq!(threads, [(1, here)], "{launcher}");
        // Where all arrive a step is over for all.
        editor.ask("next", &json!({"threadId": 1}));
        assert_eq!(all_stopped(&mut editor)["reason"], "step");
        // Rank 3 stops where it will hang, one step of the computation after the others.
        let hangs = Place::line("halo.c", "MPI_Recv(&halo_from_left");
        let both =
            json!([{"line": hangs, "condition": "expected_tag == TAG_NEVER_SENT"}, {"line": line}]);
        set(&mut editor, both);
        let is_at_hang = |(_, name): &(i64, String)| name.contains("rank 3: exchange_halo");
        while !editor.threads().iter().any(is_at_hang) {
            editor.ask("continue", &json!({"threadId": 1}));
            let stopped = all_stopped(&mut editor);
            assert_eq!(stopped["reason"], "breakpoint", "{stopped}");
        }
        set(&mut editor, json!([]));
        let threads = hang(&mut editor);
        let find = |part: &str| {
            let found = threads.iter().find(|(_, name)| name.starts_with(part));
            found
                .unwrap_or_else(|| panic!("no {part} in {threads:?}"))
                .0
        };
        let waiting = find("[0-2] 3 ranks: MPI_Allreduce in total_heat");
        let hanging = find("rank 3: MPI_Recv in exchange_halo");
        let frames = editor.frames(&json!(hanging));
        assert_eq!(frames[0]["presentationHint"], "subtle");
        assert_eq!(frames[1]["name"], "exchange_halo");
        editor.ask("next", &json!({"threadId": waiting}));
        while !editor.output("console").contains("next: [0-3] still run") {
            editor.event("output");
        }
        editor.disconnect();
    }
}

/// Returns the first stop event after which all are stopped.
fn all_stopped(editor: &mut Editor<'_>) -> Value {
    loop {
        let stopped = editor.event("stopped");
        if stopped["allThreadsStopped"] == true {
            return stopped;
        }
    }
}

/// Lets the job hang: rank 3 stays where it is, and the others wait for it. A rank that stops as it enters MPI runs
/// on and waits there. Returns the threads then.
fn hang(editor: &mut Editor<'_>) -> Vec<(i64, String)> {
    let run_on = |editor: &mut Editor<'_>, functions: Value| {
        editor.ask("setFunctionBreakpoints", &json!({"breakpoints": functions}));
        editor.forget("stopped");
        let (thread, _) = editor.threads().remove(0);
        editor.ask("continue", &json!({"threadId": thread}));
    };
    run_on(
        editor,
        json!([{"name": "MPI_Allreduce"}, {"name": "MPI_Recv"}]),
    );
    all_stopped(editor);
    run_on(editor, json!([]));
    editor.ask("pause", &json!({"threadId": 1}));
    all_stopped(editor);
    let threads = editor.threads();
    let is_there = |part: &str| threads.iter().any(|(_, name)| name.contains(part));
    assert_eq!(threads.len(), 2, "{threads:?}");
    assert!(is_there("3 ranks: MPI_Allreduce"), "{threads:?}");
    assert!(is_there("rank 3: MPI_Recv"), "{threads:?}");
    threads
}

/// An editor that has launched four ranks under mpirun, of whom rank 2 calls `MPI_Abort`.
fn launch_abort<'a>(place: &'a Place, ends: &Path) -> Editor<'a> {
    let mut editor = Editor::new(place);
    editor.launch(&json!({
        "program": ends, "args": ["abort"], "ranks": 4, "threads": "classes",
        "launcher": "mpirun", "launcherOptions": ["--oversubscribe"],
    }));
    editor
}

#[test]
fn mpi_abort_is_an_exception_that_can_be_switched_off() {
    let place = Place::new();
    let ends = place.compile("mpi_ends", Compiler::OpenMpi);
    let mut editor = launch_abort(&place, &ends);
    editor.ask("configurationDone", &Value::Null);
    let stopped = editor.event("stopped");
    assert_eq!(stopped["reason"], "exception", "{stopped}");
    let info = editor.ask("exceptionInfo", &json!({"threadId": stopped["threadId"]}));
    assert_eq!(info["exceptionId"], "MPI_Abort", "{info}");
    let frames = editor.frames(&stopped["threadId"]);
    assert!(
        frames.iter().any(|frame| frame["name"] == "leave"),
        "{frames:?}"
    );
    editor.disconnect();
    let mut editor = launch_abort(&place, &ends);
    editor.ask("setExceptionBreakpoints", &json!({"filters": ["abort"]}));
    editor.ask("configurationDone", &Value::Null);
    editor.event("terminated");
    assert_eq!(editor.unread("stopped"), 0);
    editor.disconnect();
}

#[test]
fn spawned_programs_become_threads() {
    let place = Place::new();
    let spawn = place.compile("mpi_spawn", Compiler::OpenMpi);
    let mut editor = Editor::new(&place);
    editor.launch(&json!({
        "program": spawn, "args": ["3"], "ranks": 2, "launcher": "local",
    }));
    let points = json!({"breakpoints": [{"name": "together"}]});
    let body = editor.ask("setFunctionBreakpoints", &points);
    assert_eq!(body["breakpoints"][0]["verified"], true, "{body}");
    editor.ask("configurationDone", &Value::Null);
    editor.stopped_with(3);
    let threads = editor.threads();
    let is_there = |(_, name): &(i64, String)| name.contains("together mpi_spawn.c:");
    assert!(
        threads.len() == 5 && threads.iter().all(is_there),
        "{threads:?}"
    );
    let console = editor.output("console");
    assert!(
        console.contains("[2-4] started by rank 0, command line: "),
        "{console}"
    );
    let frames = editor.frames(&json!(5));
    let arguments = editor.scope(&frames[0], "Arguments");
    assert_eq!(arguments[1]["value"], "1", "{arguments:?}");
    editor.ask("setFunctionBreakpoints", &json!({"breakpoints": []}));
    editor.run_to_end(&json!(1));
    editor.disconnect();
}

#[test]
fn job_is_attached_by_mpirun_pid_and_continues() {
    let place = Place::new();
    let folder = Folder::new("editor");
    let program = folder.compile(Compiler::OpenMpi, "mpi_held");
    let mut mpirun = Command::new("mpirun.openmpi");
    mpirun.args(["--oversubscribe", "-n", "4"]);
    let job = HeldJob::start(mpirun, &folder, &program, 4);
    let mut editor = Editor::new(&place);
    editor.ask(
        "initialize",
        &json!({"adapterID": "sdm", "supportsProgressReporting": true}),
    );
    // Without a target, the error lists the possible jobs.
    let why = editor.refused("attach", &json!({}));
    assert!(why.contains(&format!("{} (", job.starter())), "{why}");
    editor.ask(
        "attach",
        &json!({"pid": job.starter(), "threads": "classes"}),
    );
    let progress = editor.event("progressStart");
    assert_eq!(
        editor.event("progressEnd")["progressId"],
        progress["progressId"]
    );
    editor.event("initialized");
    editor.ask("configurationDone", &Value::Null);
    assert_eq!(all_stopped(&mut editor)["reason"], "entry");
    let threads = editor.threads();
    let (thread, _) = &threads[0];
    let frames = editor.frames(&json!(thread));
    let found = frames.iter().find(|frame| frame["name"] == "main");
    let main = found.unwrap_or_else(|| panic!("{frames:?}"));
    let line = json!({"expression": "[all] print rank", "context": "repl", "frameId": main["id"]});
    assert!(editor.ask("evaluate", &line)["result"].is_string());
    editor.ask("continue", &json!({"threadId": thread}));
    editor.disconnect();
    job.finish();
}

/// A step of one class into a sum over all ranks waits for the ranks that do not run, and reports them.
#[test]
fn step_of_one_class_names_the_ranks_it_waits_for() {
    let place = Place::new();
    let sum = place.compile("mpi_sum", Compiler::OpenMpi);
    let mut editor = Editor::new(&place);
    editor.launch(&json!({
        "program": sum, "ranks": 3, "threads": "ranks", "scope": "class",
        "launcher": "mpirun", "launcherOptions": ["--oversubscribe"],
    }));
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/mpi_sum.c");
    let line = Place::line("mpi_sum.c", "MPI_Allreduce(");
    let points = json!({"source": {"path": source}, "breakpoints": [{"line": line}]});
    let body = editor.ask("setBreakpoints", &points);
    assert_eq!(body["breakpoints"][0]["verified"], true, "{body}");
    editor.ask("configurationDone", &Value::Null);
    assert_eq!(all_stopped(&mut editor)["reason"], "breakpoint");
    editor.ask("next", &json!({"threadId": 3}));
    while !editor
        .output("console")
        .contains("next: [2] still run, [0-1] are stopped and were not stepped")
    {
        editor.event("output");
    }
    assert_eq!(editor.unread("stopped"), 0);
    // The other ranks arrive, too, and the step ends for all.
    editor.ask("sdm/scope", &json!({"scope": "all"}));
    editor.ask("next", &json!({"threadId": 1}));
    assert_eq!(all_stopped(&mut editor)["reason"], "step");
    editor.disconnect();
}
