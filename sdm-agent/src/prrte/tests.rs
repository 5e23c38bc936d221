//! Tests that PRRTE servers become queues, and that their jobs and processes have the states that PRRTE reports.

use super::*;

fn prrte() -> Prrte {
    Prrte {
        program: PathBuf::new(),
        host: "here".to_owned(),
        jobs: BTreeMap::new(),
    }
}

fn servers(jobs: &str) -> Vec<PrrteServer> {
    let text = format!(
        r#"[{{"namespace":"p@0","pid":7,"program":"prte","version":"5.0","jobs":[{jobs}]}}]"#
    );
    serde_json::from_str(&text).unwrap()
}

const JOB: &str = r#"{"namespace":"p@1","command":"sh -c x","status":"1 running","processes":[
    {"namespace":"p@1","rank":0,"host":"away","program":"/bin/sh","pid":8,"exit_code":0,"state":"running"},
    {"namespace":"p@1","rank":1,"host":"away","program":"/bin/sh","pid":9,"exit_code":4,"state":"undefined"}]}"#;

#[test]
fn prrte_servers_become_queues_with_jobs() {
    let (mut all, there) = (prrte(), servers(JOB));
    all.take(&there, &[], 100);
    let snapshot = all.snapshot(&there, &[]);
    let value = |it: &Attributes, id: &str| it.get(id).cloned().unwrap_or_default();
    assert_eq!(value(&snapshot.queues["p@0"], "queueIsDefault"), "true");
    assert_eq!(Vec::from_iter(snapshot.nodes.keys()), ["away", "here"]);
    let job = &snapshot.jobs["p@1"];
    assert_eq!(value(&job.attributes, "jobState"), "RUNNING");
    assert_eq!(value(&job.attributes, "exitCode"), "4");
    let states = job
        .processes
        .iter()
        .map(|it| value(&it.attributes, "processState"));
    assert_eq!(Vec::from_iter(states), ["RUNNING", "EXITED"]);
    // A pid of another host is useless here.
    assert_eq!(value(&job.processes[0].attributes, "processPID"), "");
}

#[test]
fn prrte_process_words_map_to_process_and_job_states() {
    for (word, state, of_job) in [
        ("prepared", "STARTING", "STARTED"),
        ("being launched", "STARTING", "STARTED"),
        ("running", "RUNNING", "RUNNING"),
        ("ended by a signal", "EXITED_SIGNALLED", "TERMINATED"),
        ("failed to start", "ERROR", "ERROR"),
        ("undefined", "EXITED", "TERMINATED"),
    ] {
        let row = format!(
            r#"{{"namespace":"p@1","rank":0,"host":"away","program":"a","pid":8,"exit_code":0,"state":"{word}"}}"#
        );
        let job = format!(r#"{{"namespace":"p@1","command":"a","status":"","processes":[{row}]}}"#);
        let (mut all, there) = (prrte(), servers(&job));
        all.take(&there, &[], 100);
        let job = &all.snapshot(&there, &[]).jobs["p@1"];
        assert_eq!(job.processes[0].attributes["processState"], state, "{word}");
        assert_eq!(job.attributes["jobState"], of_job, "{word}");
    }
}

#[test]
fn vanished_job_has_ended_unless_its_server_is_silent() {
    let mut all = prrte();
    all.take(&servers(JOB), &[], 100);
    let state = |all: &Prrte| all.jobs["p@1"].attributes["jobState"].clone();
    all.take(&[], &["sdm: it is stopped".to_owned()], 101);
    assert_eq!(state(&all), "UNKNOWN");
    // Of the processes it is unknown, too, but for one that had ended.
    let processes = all.jobs["p@1"].processes.iter();
    let states = processes.map(|it| it.attributes["processState"].clone());
    assert_eq!(Vec::from_iter(states), ["UNKNOWN", "EXITED"]);
    all.take(&servers(JOB), &[], 102);
    assert_eq!(state(&all), "RUNNING");
    all.take(&servers(""), &[], 103);
    assert_eq!(state(&all), "TERMINATED");
    all.take(&servers(""), &[], 103 + GONE_S);
    assert_eq!(state(&all), "TERMINATED");
    all.take(&servers(""), &[], 104 + GONE_S);
    assert!(all.jobs.is_empty());
}
