//! The agent of a real Slurm, as an ordinary user has it.

use std::path::Path;
use std::process::Command as Process;

use sdm_runtime::wire::Dialect;
use sdm_runtime::wire::command::{Command, JobChange};
use sdm_tests::agent::Talk;
use sdm_tests::ordinary;
use sdm_tests::parts::Part;
use sdm_tests::place::Place;

const _: () = sdm_tests::run::test_group("slurm", "one controller, and all its nodes");

const CONFIG: &str = "/tmp/sdm-slurm/slurm.conf";
const CONTROLLER_LOG: &str = "/tmp/sdm-slurm/log/slurmctld.log";

/// Runs `scontrol`, for actions that only root may do.
fn scontrol(words: &[&str]) {
    let mut command = Process::new("scontrol");
    let status = command.args(words).env("SLURM_CONF", CONFIG).status();
    assert!(status.expect("scontrol").success(), "{words:?}");
}

fn change(talk: &mut Talk, job: u32, change: JobChange) -> Result<(), String> {
    talk.ask(Command::ChangeJob {
        job: job.to_string(),
        attributes: vec![change.attribute()],
    })
}

fn wait_state(talk: &mut Talk, job: u32, state: &str) {
    if talk.elements[&job]["jobState"] != state {
        talk.until(|talk, _| talk.elements[&job]["jobState"] == state);
    }
}

/// All that the jobs of a folder have written, and what the controller has noted: a job that fails by itself says why there.
fn outputs(folder: &Path) -> String {
    let files = std::fs::read_dir(folder).expect("the test's own folder");
    let files = files.flatten().map(|file| file.path());
    let text = |path| std::fs::read_to_string(path).unwrap_or_default();
    files.chain([CONTROLLER_LOG.into()]).map(text).collect()
}

#[test]
fn slurm_state_is_listed_and_jobs_are_controlled() {
    let Some(_slurm) = Part::slurm() else { return };
    let place = Place::new();
    ordinary::give(place.path());
    let mut talk = Talk::start("slurm", Dialect::Document, |command| {
        ordinary::lower(command.env("SLURM_CONF", CONFIG));
        command.current_dir(place.path());
    });
    talk.wait("machineState", "UP");
    for node in ["n1", "n2", "n3", "n4"] {
        let node = talk.wait("name", node);
        assert_eq!(talk.elements[&node]["nodeCpus"], "16");
    }
    let queue = talk.wait("name", "debug");
    assert_eq!(talk.elements[&queue]["queueState"], "NORMAL");
    assert_eq!(talk.elements[&queue]["queueIsDefault"], "true");
    let (folder, queue_id) = (place.path().display().to_string(), queue.to_string());
    let place_of = [
        ("workingDir", folder.as_str()),
        ("queueId", queue_id.as_str()),
    ];
    talk.submit("JOB_1", "exec sleep 1000", &place_of)
        .expect("it is taken");
    let job = talk.wait("jobSubId", "JOB_1");
    wait_state(&mut talk, job, "RUNNING");
    let process = talk.wait("processState", "RUNNING");
    let node: u32 = talk.elements[&process]["processNodeId"]
        .parse()
        .expect("a number");
    assert!(talk.elements[&node]["name"].starts_with('n'));
    assert_eq!(talk.elements[&job]["queueId"], queue_id);
    let value = |id: &str| talk.elements[&job].get(id).map(String::as_str);
    assert_eq!(
        (value("execPath"), value("execName")),
        (Some("/bin"), Some("sh"))
    );
    assert_eq!(value("progArgs"), Some("exec sleep 1000"));
    the_ranks_are_where_they_are_said_to_be(&mut talk);
    let number = talk.elements[&job]["systemJobId"].clone();
    scontrol(&["suspend", &number]);
    wait_state(&mut talk, job, "SUSPENDED");
    scontrol(&["resume", &number]);
    wait_state(&mut talk, job, "RUNNING");
    let held = [place_of[0], ("submitOptions", "--hold")];
    talk.submit("JOB_2", "exit 5", &held).expect("it is taken");
    let waiting = talk.wait("jobSubId", "JOB_2");
    assert_eq!(talk.elements[&waiting]["jobState"], "PENDING");
    change(&mut talk, waiting, JobChange::Release).expect("it is released");
    wait_state(&mut talk, waiting, "TERMINATED");
    assert_eq!(talk.elements[&waiting]["exitCode"], "5");
    let refused = change(&mut talk, waiting, JobChange::Hold).unwrap_err();
    assert!(refused.starts_with("scontrol: "), "{refused}");
    let end = Command::TerminateJob(job.to_string());
    talk.ask(end).expect("it is ended");
    wait_state(&mut talk, job, "TERMINATED");
    let status = &talk.elements[&job]["jobStatus"];
    assert_eq!(status, "CANCELLED", "{}", outputs(place.path()));
    let process = talk.wait("processState", "EXITED_SIGNALLED");
    assert_eq!(talk.elements[&process]["processSignalName"], "SIGTERM");
    let bad = [place_of[0], ("submitOptions", "--no-such-option")];
    let refused = talk.submit("JOB_3", "true", &bad).unwrap_err();
    assert!(refused.starts_with("sbatch: "), "{refused}");
    talk.quit();
}

/// A program that cannot be started has no processes, and its job is in ERROR.
#[test]
fn slurm_job_with_missing_program_is_in_state_error() {
    let Some(_slurm) = Part::slurm() else { return };
    let place = Place::new();
    ordinary::give(place.path());
    let mut talk = Talk::start("slurm", Dialect::Document, |command| {
        ordinary::lower(command.env("SLURM_CONF", CONFIG));
        command.current_dir(place.path());
    });
    talk.wait("machineState", "UP");
    let folder = place.path().display().to_string();
    let file = place.path().join("data");
    std::fs::write(&file, "no program").expect("a file");
    let data = file.display().to_string();
    for (submission, path, name, why) in [
        (
            "JOB_1",
            "/no/such",
            "program",
            "/no/such/program: no such program",
        ),
        (
            "JOB_2",
            "",
            "no-such-program",
            "no-such-program: no such program",
        ),
        (
            "JOB_3",
            &*folder,
            "data",
            &*format!("{data}: Permission denied"),
        ),
    ] {
        let pairs = [
            ("jobSubId", submission),
            ("execPath", path),
            ("execName", name),
            ("jobNumProcs", "2"),
            ("workingDir", &*folder),
            // Nor can one that starts its processes itself.
            ("batchScript", if name == "data" { "true" } else { "false" }),
        ];
        let pairs = pairs.map(|(id, value)| (id.to_owned(), value.to_owned()));
        talk.ask(Command::SubmitJob(pairs.to_vec()))
            .expect("it is taken");
        let job = talk.wait("jobSubId", submission);
        wait_state(&mut talk, job, "ERROR");
        assert_eq!(talk.elements[&job]["jobStatusMessage"], why);
        assert_eq!(talk.elements[&job]["exitCode"], "127");
    }
    let mut all = talk.elements.values();
    assert!(
        all.all(|it| !it.contains_key("processState")),
        "{:?}",
        talk.elements
    );
    talk.quit();
}

/// The four states of a queue are those of a partition.
#[test]
fn slurm_partition_states_are_queue_states() {
    let Some(_slurm) = Part::slurm() else { return };
    scontrol(&["create", "PartitionName=gate", "Nodes=n2"]);
    let mut talk = Talk::start("slurm", Dialect::Document, |command| {
        ordinary::lower(command.env("SLURM_CONF", CONFIG));
    });
    let queue = talk.wait("name", "gate");
    for (of_slurm, state) in [
        ("INACTIVE", "STOPPED"),
        ("DRAIN", "DRAINING"),
        ("DOWN", "COLLECTING"),
        ("UP", "NORMAL"),
    ] {
        scontrol(&["update", "PartitionName=gate", &format!("State={of_slurm}")]);
        talk.ask(Command::Look).expect("it is asked");
        assert_eq!(talk.elements[&queue]["queueState"], state);
    }
    scontrol(&["delete", "PartitionName=gate"]);
    talk.quit();
}

/// Only Slurm's operators set priorities that stay.
#[test]
fn slurm_operator_changes_the_priority_of_a_job() {
    let Some(_slurm) = Part::slurm() else { return };
    let place = Place::new();
    let mut talk = Talk::start("slurm", Dialect::Document, |command| {
        command.env("SLURM_CONF", CONFIG).current_dir(place.path());
    });
    talk.wait("machineState", "UP");
    let folder = place.path().display().to_string();
    let later = [
        ("workingDir", folder.as_str()),
        ("submitOptions", "--begin=now+1hour"),
    ];
    talk.submit("JOB_1", "true", &later).expect("it is taken");
    let job = talk.wait("jobSubId", "JOB_1");
    change(&mut talk, job, JobChange::Priority(17)).expect("it is changed");
    let mut squeue = Process::new("squeue");
    squeue.args(["-h", "-o", "%Q", "-j", &talk.elements[&job]["systemJobId"]]);
    let said = squeue.env("SLURM_CONF", CONFIG).output().expect("squeue");
    assert_eq!(String::from_utf8_lossy(&said.stdout), "17\n");
    let end = Command::TerminateJob(job.to_string());
    talk.ask(end).expect("it is ended");
    wait_state(&mut talk, job, "TERMINATED");
    talk.quit();
}

/// Checks the places of both processes against the data that Slurm has given them themselves.
fn the_ranks_are_where_they_are_said_to_be(talk: &mut Talk) {
    let placed = |talk: &Talk| {
        let mut all: Vec<_> = talk.elements.values().cloned().collect();
        all.retain(|it| it.contains_key("processPID"));
        all
    };
    if placed(talk).len() < 2 {
        talk.until(|talk, _| placed(talk).len() == 2);
    }
    for process in placed(talk) {
        let pid: i32 = process["processPID"].parse().expect("a pid");
        let told = sdm_system::proc::of(pid).environment().expect("it is ours");
        let value = |name: &str| {
            let found = told.iter().find(|(it, _)| it == name);
            found.map(|(_, value)| value.to_string_lossy().into_owned())
        };
        assert_eq!(value("SLURM_PROCID").as_ref(), process.get("processIndex"));
        let node: u32 = process["processNodeId"].parse().expect("a number");
        let name = talk.elements[&node].get("name");
        assert_eq!(value("SLURMD_NODENAME").as_ref(), name);
    }
}

#[test]
fn job_array_has_slurm_names_and_output_files() {
    let Some(_slurm) = Part::slurm() else { return };
    let place = Place::new();
    ordinary::give(place.path());
    let mut talk = Talk::start("slurm", Dialect::Ptp, |command| {
        ordinary::lower(command.env("SLURM_CONF", CONFIG));
        command.current_dir(place.path());
    });
    let queue = talk.wait("name", "debug");
    assert_eq!(talk.elements[&queue]["queueState"], "NORMAL");
    let folder = place.path().display().to_string();
    let array = [
        ("workingDir", folder.as_str()),
        ("submitOptions", "--array=3-4"),
        ("submitOptions", "--output=of-%A-%2a"),
    ];
    talk.submit("JOB_1", "echo member $SLURM_ARRAY_TASK_ID", &array)
        .expect("it is taken");
    for index in ["3", "4"] {
        let job = talk.wait("arrayIndex", index);
        wait_state(&mut talk, job, "COMPLETED");
        let id = &talk.elements[&job]["systemJobId"];
        assert!(id.ends_with(&format!("_{index}")), "{id}");
        let said = std::fs::read_to_string(&talk.elements[&job]["outputPath"]);
        let line = format!("member {index}\n");
        assert_eq!(said.expect("its output"), line.repeat(2));
    }
    talk.quit();
}
