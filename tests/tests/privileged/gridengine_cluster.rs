//! A cluster with a real Grid Engine, as an ordinary user has it at a shell.

use std::fs;

use sdm_tests::clusters::Shell;
use sdm_tests::parts::Part;

const PID: &str = "/tmp/sdm-gridengine/pid";

#[test]
fn jobs_of_grid_engine_are_submitted_held_ended_and_looked_up_in_its_accounting() {
    let Some(_gridengine) = Part::gridengine() else {
        return;
    };
    let pid = fs::read_to_string(PID).expect("it is up");
    let shell = Shell::new().inside(pid.trim());
    let shell = shell.with("SGE_ROOT", "/var/lib/gridengine");
    let shell = shell.with("SGE_CELL", "default");
    let _done = shell.sdm("cluster add g gridengine").done();
    let nodes = shell.sdm("nodes").done().out;
    assert!(nodes.contains("ge1"), "{nodes}");
    let queues = shell.sdm("queues").done().out;
    assert!(queues.contains("all.q"), "{queues}");
    // One that ends by itself, with what it has printed and its code.
    let words = [
        "-x",
        "WORD=two words",
        "--",
        "/bin/sh",
        "-c",
        "echo \"$WORD\"; exit 3",
    ];
    let ended = shell.submit(&words);
    shell.wait_job(&ended, "jobState", "TERMINATED");
    shell.wait_job(&ended, "exitCode", "3");
    assert_eq!(
        shell.sdm(&format!("logs {ended}")).done().out,
        "two words\n"
    );
    // One that is held, released and cancelled.
    let held = shell.submit(&["--option=-h", "--", "sleep", "1000"]);
    shell.wait_job(&held, "jobStatus", "hqw");
    let _done = shell.sdm(&format!("release {held}")).done();
    shell.wait_job(&held, "jobState", "RUNNING");
    let shown = shell.sdm(&format!("ps {held}")).done().out;
    assert!(shown.contains("ge1"), "{shown}");
    let _done = shell.sdm(&format!("cancel {held}")).done();
    shell.wait_job(&held, "jobState", "TERMINATED");
    shell.wait_job(&held, "exitSignal", "9");
    // The members of an array are jobs of their own.
    let words = ["--option=-t", "--option=1-2", "--", "sleep", "1000"];
    let first = shell.submit(&words);
    let array = first.strip_suffix(".1").expect("the first member");
    for member in ["1", "2"] {
        shell.wait_job(&format!("{array}.{member}"), "jobState", "RUNNING");
    }
    let _done = shell.sdm(&format!("cancel {array}.1")).done();
    shell.wait_job(&format!("{array}.1"), "jobState", "TERMINATED");
    shell.wait_job(&format!("{array}.2"), "jobState", "RUNNING");
    let _done = shell.sdm(&format!("cancel {array}.2")).done();
    shell.wait_job(&format!("{array}.2"), "jobState", "TERMINATED");
    shell
        .words(&["submit", "--option=-no-such-option", "--", "true"])
        .refused(1, "qsub: ");
    let _done = shell.sdm("cluster remove g").done();
    shell.place.assert_gone();
}
