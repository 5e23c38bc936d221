//! Jobs of clusters of this host: their start by a launch configuration, and starts that fail.

use std::fs;

use sdm_tests::clusters::Shell;
use serde_json::Value;

/// A job whose program does not exist is in ERROR, and no process is listed that never was.
#[test]
fn missing_program_is_an_error_under_launchers_and_debuggers() {
    let shell = Shell::new();
    for (kind, options) in [
        ("local", &["-n", "2"][..]),
        ("local", &["--debug"]),
        ("local", &["--debugger", "/usr/bin/env"]),
        ("openmpi", &["-n", "2"]),
        ("openmpi", &["--debug"]),
        ("hydra", &["-n", "2"]),
    ] {
        let _done = shell.sdm(&format!("cluster add m {kind}")).done();
        let job = shell.submit(&[options, &["--", "/no/such/program"]].concat());
        shell.wait_job(&job, "jobState", "ERROR");
        let why = "/no/such/program: No such file or directory";
        shell.wait_job(&job, "jobStatusMessage", why);
        let listed = shell.sdm(&format!("ps {job} --json")).done().out;
        let listed: Value = serde_json::from_str(&listed).expect("JSON");
        assert_eq!(
            listed["processes"],
            serde_json::json!([]),
            "{kind} {options:?}"
        );
        let _done = shell.sdm("cluster remove m").done();
    }
    shell.place.assert_gone();
}

/// Each setting of a launch configuration that a manager of this host has is followed from the file into the job.
#[test]
fn job_has_every_setting_of_its_launch_configuration() {
    let shell = Shell::new();
    let _done = shell.sdm("cluster add other local").done();
    let _done = shell.sdm("cluster add here local").done();
    let work = shell.place.path().join("work");
    fs::create_dir(&work).expect("a folder");
    sdm_tests::ordinary::give(&work);
    let config = shell.place.path().join("config/sdm/config.toml");
    let script = r#"echo "$(pwd)|$LEVEL|$OTHER|$1|$2|$HELD|$FLAG""#;
    let profile = format!(
        "[profile.halo]\ncluster = \"here\"\nqueue = \"default\"\nname = \"waves\"\nprocesses = 2\n\
         directory = {work:?}\nenv = [\"LEVEL=a=b c\", \"OTHER=\"]\n\
         debugger = \"/usr/bin/env\"\ndebugger-arg = [\"HELD=by two\", \"FLAG=-q\"]\n\
         program = [\"/bin/sh\", \"-c\", '{script}', \"name\", \"two words\", \"--steps\"]\n"
    );
    fs::write(&config, profile).expect("a file");
    sdm_tests::ordinary::give(&config);
    let job = shell.words(&["submit", "--profile", "halo"]).done().out;
    let job = format!("here:{}", job.trim_end());
    let shown = shell.sdm("jobs -M here --json").done().out;
    let shown: Value = serde_json::from_str(&shown).expect("JSON");
    let attributes = &shown["jobs"][0]["attributes"];
    assert_eq!(attributes["name"], "waves", "{shown}");
    assert_eq!(attributes["jobNumProcs"], "2", "{shown}");
    shell.wait_job(job.trim_start_matches("here:"), "jobState", "TERMINATED");
    let said = shell.sdm(&format!("logs {job}")).done().out;
    let line = format!("{}|a=b c||two words|--steps|by two|-q\n", work.display());
    assert_eq!(said, line.repeat(2));
    // SDM's own debugger, from the file.
    let profile = "[profile.held]\ncluster = \"here\"\ndebug = true\nprogram = [\"/bin/true\"]\n";
    fs::write(&config, profile).expect("a file");
    let job = shell.words(&["submit", "--profile", "held"]).done().out;
    shell.watch_jobs(|it| it["debugSession"].is_string());
    let job = job.trim_end();
    let _done = shell.sdm(&format!("cancel here:{job}")).done();
    shell.wait_job(job, "jobState", "TERMINATED");
    for name in ["here", "other"] {
        let _done = shell.sdm(&format!("cluster remove {name}")).done();
    }
    shell.place.assert_gone();
}

#[test]
fn cluster_is_shown_with_name_and_description() {
    let shell = Shell::new();
    let _done = shell
        .words(&[
            "cluster",
            "add",
            "here",
            "local",
            "--description",
            "of the lab",
        ])
        .done();
    let shown = shell.sdm("show here").done().out;
    for (name, value) in [("Name", "here"), ("Description", "of the lab")] {
        let mut lines = shown.lines();
        let is_it = |line: &str| line.contains(name) && line.ends_with(value);
        assert!(lines.any(is_it), "no {name}: {shown}");
    }
    let shown = shell.sdm("show here --json").done().out;
    assert!(shown.contains("\"description\":\"of the lab\""), "{shown}");
    let _done = shell.sdm("cluster remove here").done();
    shell.place.assert_gone();
}
