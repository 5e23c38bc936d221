//! An editor attaches to a job that is picked from the list of running jobs.

use sdm_tests::clusters::Shell;
use sdm_tests::editor::Editor;
use sdm_tests::place::Compiler;
use serde_json::{Value, json};

use super::all_stopped;

#[test]
fn cluster_job_is_picked_and_attached() {
    let shell = Shell::new();
    let work = shell.place.compile("work", Compiler::C);
    let _done = shell.sdm("cluster add here local").done();
    let program = work.to_str().expect("text");
    let job = shell.submit(&["-n", "2", "--name", "spins", "--", program, "spin"]);
    shell.wait_job(&job, "jobState", "RUNNING");
    let target = format!("here:{job}");
    let wanted = json!({"target": target, "label": "spins, 2 processes"});
    let listed = shell.sdm("dap --jobs").done().out;
    let listed: Value = serde_json::from_str(&listed).expect("JSON");
    // Jobs of other tests are listed as well.
    let jobs = listed.as_array().expect("a list");
    let found = jobs.iter().filter(|job| **job == wanted).count();
    assert_eq!(found, 1, "{listed}");
    let mut editor = Editor::of_shell(&shell);
    editor.ask("initialize", &json!({"adapterID": "sdm"}));
    let offered = format!("{target} (spins, 2 processes)");
    let why = editor.refused("attach", &json!({}));
    assert!(why.contains(&offered), "{why}");
    editor.ask("attach", &json!({"target": target}));
    editor.event("initialized");
    editor.ask("configurationDone", &Value::Null);
    assert_eq!(all_stopped(&mut editor)["reason"], "entry");
    let names: Vec<String> = editor.threads().into_iter().map(|it| it.1).collect();
    assert!(names[1].starts_with("rank 1: "), "{names:?}");
    editor.leave();
    // The attached job runs on, and belongs to the cluster.
    let _done = shell.sdm(&format!("cancel {job}")).done();
    shell.wait_job(&job, "jobState", "TERMINATED");
    let mut editor = Editor::of_shell(&shell);
    editor.ask("initialize", &json!({"adapterID": "sdm"}));
    let why = editor.refused("attach", &json!({"target": target}));
    assert!(why.contains("the job has ended (TERMINATED)"), "{why}");
    editor.leave();
    let _done = shell.sdm("cluster remove here").done();
    shell.place.assert_gone();
}
