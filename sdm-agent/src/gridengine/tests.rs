//! Tests of the parsers with recorded output of Debian's Grid Engine 8.1.9.

use super::{accounting, script, xml};
use crate::manager::Submission;

const JOBS: &str = "<?xml version='1.0'?>
<job_info  xmlns:xsd=\"http://arc.liv.ac.uk/repos/darcs/sge/source/dist/util/resources/schemas/qstat/qstat.xsd\">
  <queue_info>
    <job_list state=\"running\">
      <JB_job_number>3</JB_job_number>
      <JAT_prio>0.25000</JAT_prio>
      <JB_name>arr</JB_name>
      <JB_owner>nobody</JB_owner>
      <state>r</state>
      <JAT_start_time>2026-11-23T15:13:02</JAT_start_time>
      <queue_name>all.q@ge1</queue_name>
      <master>MASTER</master>
      <slots>1</slots>
      <tasks>1</tasks>
    </job_list>
    <job_list state=\"running\">
      <JB_job_number>4</JB_job_number>
      <JB_name>par</JB_name>
      <JB_owner>nobody</JB_owner>
      <state>t</state>
      <JAT_start_time>2026-11-23T15:13:02</JAT_start_time>
      <queue_name>all.q@ge1</queue_name>
      <master>MASTER</master>
      <slots>1</slots>
    </job_list>
    <job_list state=\"running\">
      <JB_job_number>4</JB_job_number>
      <JB_name>par</JB_name>
      <JB_owner>nobody</JB_owner>
      <state>t</state>
      <queue_name>all.q@ge1</queue_name>
      <master>SLAVE</master>
      <slots>1</slots>
      <requested_pe name=\"mpi\">2</requested_pe>
      <granted_pe name=\"mpi\">2</granted_pe>
    </job_list>
    <job_list state=\"running\">
      <JB_job_number>4</JB_job_number>
      <JB_name>par</JB_name>
      <JB_owner>nobody</JB_owner>
      <state>t</state>
      <queue_name>all.q@ge2</queue_name>
      <master>SLAVE</master>
      <slots>1</slots>
      <requested_pe name=\"mpi\">2</requested_pe>
      <granted_pe name=\"mpi\">2</granted_pe>
    </job_list>
  </queue_info>
  <job_info>
    <job_list state=\"pending\">
      <JB_job_number>2</JB_job_number>
      <JB_name>held</JB_name>
      <JB_owner>nobody</JB_owner>
      <state>hqw</state>
      <JB_submission_time>2026-11-23T15:12:54</JB_submission_time>
      <queue_name></queue_name>
      <slots>1</slots>
    </job_list>
  </job_info>
</job_info>";

const PLACES: &str = "<?xml version='1.0'?>
<qhost xmlns:xsd=\"http://arc.liv.ac.uk/repos/darcs/sge/source/dist/util/resources/schemas/qhost/qhost.xsd\">
 <host name='global'>
   <hostvalue name='load_avg'>-</hostvalue>
 </host>
 <host name='ge1'>
   <hostvalue name='num_proc'>2</hostvalue>
   <hostvalue name='load_avg'>4.24</hostvalue>
   <hostvalue name='mem_total'>23.5G</hostvalue>
 <queue name='all.q'>
   <queuevalue qname='all.q' name='slots'>4</queuevalue>
   <queuevalue qname='all.q' name='state_string'></queuevalue>
 </queue>
 <queue name='old.q'>
   <queuevalue qname='old.q' name='state_string'>d</queuevalue>
 </queue>
 </host>
 <host name='ge2'>
   <hostvalue name='num_proc'>-</hostvalue>
   <hostvalue name='load_avg'>-</hostvalue>
   <hostvalue name='mem_total'>-</hostvalue>
 <queue name='all.q'>
   <queuevalue qname='all.q' name='state_string'>au</queuevalue>
 </queue>
 </host>
</qhost>";

#[test]
fn qstat_xml_yields_job_states_array_tasks_and_hosts() {
    let jobs = xml::jobs(JOBS).unwrap();
    let keys: Vec<&str> = jobs.keys().map(String::as_str).collect();
    assert_eq!(keys, ["2", "3.1", "4"]);
    let value = |key: &str, id: &str| jobs[key].attributes.get(id).map(String::as_str);
    assert_eq!(value("2", "jobState"), Some("PENDING"));
    assert_eq!(value("2", "jobStatus"), Some("hqw"));
    assert_eq!(value("2", "submitTime"), Some("1795446774"));
    assert_eq!(
        (jobs["2"].queue.as_str(), jobs["2"].processes.len()),
        ("", 0)
    );
    assert_eq!(value("3.1", "jobState"), Some("RUNNING"));
    assert_eq!(value("3.1", "arrayIndex"), Some("1"));
    assert_eq!(value("3.1", "startTime"), Some("1795446782"));
    // It cannot be started.
    let text = JOBS.replace(">hqw<", ">Ehqw<");
    let failed = &xml::jobs(&text).unwrap()["2"];
    assert_eq!(failed.attributes["jobState"], "ERROR");
    // The master of a job with slaves is not counted as one of them.
    assert_eq!(value("4", "jobState"), Some("STARTED"));
    assert_eq!(value("4", "jobNumProcs"), Some("2"));
    assert_eq!(value("4", "jobNodes"), Some("ge1,ge2"));
    assert_eq!(jobs["4"].queue, "all.q");
}

#[test]
fn silent_host_is_down_and_queue_is_open_if_open_on_one_host() {
    let (nodes, queues) = xml::places(PLACES).unwrap();
    let node = |name: &str, id: &str| nodes[name].get(id).map(String::as_str);
    assert_eq!(nodes.len(), 2);
    assert_eq!(node("ge1", "nodeState"), Some("UP"));
    assert_eq!(node("ge1", "nodeCpus"), Some("2"));
    assert_eq!(node("ge1", "nodeMemory"), Some("24064"));
    assert_eq!(node("ge1", "nodeStatus"), Some("old.q:d"));
    assert_eq!(
        (node("ge2", "nodeState"), node("ge2", "nodeCpus")),
        (Some("DOWN"), None)
    );
    assert_eq!(queues["all.q"]["queueState"], "NORMAL");
    assert_eq!(queues["old.q"]["queueState"], "STOPPED");
}

#[test]
fn master_task_in_a_granted_slot_is_reported_as_a_process() {
    // `job_is_first_task TRUE`: the master's row is one of the granted slots.
    let text = JOBS.replace(">2</granted_pe>", ">3</granted_pe>");
    let jobs = xml::jobs(&text).unwrap();
    assert_eq!(jobs["4"].processes.len(), 3);
}

#[test]
fn accounting_record_gives_job_exit_status() {
    let text = "==============================================================\n\
        qname        all.q               \n\
        owner        ann                 \n\
        jobname      loop                \n\
        jobnumber    12                  \n\
        taskid       3                   \n\
        account      sge                 \n\
        qsub_time    Mon Nov 23 15:13:00 2026\n\
        start_time   Mon Nov 23 15:13:02 2026\n\
        end_time     Mon Nov 23 15:13:03 2026\n\
        slots        2                   \n\
        failed       100 : assumedly after job\n\
        exit_status  137                  (Killed)\n\
        ==============================================================\n\
        jobnumber    13                  \n\
        taskid       undefined\n\
        end_time     -/-\n\
        failed       0    \n\
        exit_status  3                   \n\
        ==============================================================\n\
        jobnumber    14                  \n\
        failed       28  : changing into working directory\n\
        exit_status  0                   \n";
    let lines: Vec<String> = text
        .lines()
        .map(|line| line.trim_start().to_owned())
        .collect();
    let ended = accounting::jobs(&lines);
    assert_eq!(ended.keys().collect::<Vec<_>>(), ["12.3", "13", "14"]);
    let state = |key: &str| ended[key].attributes["jobState"].as_str();
    assert_eq!(
        ["12.3", "13", "14"].map(state),
        ["TERMINATED", "TERMINATED", "ERROR"]
    );
    let value = |key: &str, id: &str| ended[key].attributes.get(id).map(String::as_str);
    assert_eq!(value("12.3", "exitCode"), Some("137"));
    assert_eq!(value("12.3", "exitSignal"), Some("9"));
    assert_eq!(value("12.3", "endTime"), Some("1795446783"));
    assert_eq!(value("12.3", "arrayIndex"), Some("3"));
    assert_eq!(
        value("12.3", "jobStatusMessage"),
        Some("100 : assumedly after job")
    );
    assert_eq!(ended["12.3"].queue, "all.q");
    assert_eq!(value("13", "exitCode"), Some("3"));
    assert_eq!(value("13", "jobStatusMessage"), None);
    assert_eq!(value("13", "endTime"), None);
}

#[test]
fn job_details_are_read_for_each_job() {
    let text = "<detailed_job_info><djob_info>
      <element>
        <JB_job_number>3</JB_job_number>
        <JB_account>sge</JB_account>
        <JB_merge_stderr>true</JB_merge_stderr>
        <JB_mail_list><element><MR_user>ann</MR_user></element></JB_mail_list>
        <JB_cwd>/w</JB_cwd>
        <JB_env_list>
          <job_sublist><VA_variable>__SGE_PREFIX__O_HOME</VA_variable><VA_value>/home/ann</VA_value></job_sublist>
          <job_sublist><VA_variable>WORD</VA_variable><VA_value> two words</VA_value></job_sublist>
          <job_sublist><VA_variable>TERM</VA_variable></job_sublist>
        </JB_env_list>
        <JB_job_args><element><ST_name>-n </ST_name></element><element>
        </element></JB_job_args>
        <JB_script_file>/w/run.sh</JB_script_file>
        <JB_stdout_path_list><path_list><PN_path>/o</PN_path><PN_host>ge1</PN_host></path_list></JB_stdout_path_list>
        <JB_ja_tasks><ulong_sublist>
          <JAT_task_number>1</JAT_task_number>
          <JAT_message_list><ulong_sublist><QIM_message>error: can&apos;t chdir to /home/ann</QIM_message></ulong_sublist></JAT_message_list>
        </ulong_sublist></JB_ja_tasks>
      </element>
      <element>
        <JB_job_number>5</JB_job_number>
        <JB_context><context_list><VA_variable>sdm</VA_variable><VA_value>held</VA_value></context_list></JB_context>
        <JB_stderr_path_list><path_list><PN_path>rel</PN_path></path_list></JB_stderr_path_list>
      </element>
    </djob_info><messages><element><SME_message_list/></element></messages></detailed_job_info>";
    let details = xml::details(text).unwrap();
    assert_eq!(details.keys().collect::<Vec<_>>(), ["3", "5"]);
    let one = &details["3"];
    assert_eq!((&*one.output, &*one.folder), ("/o", "/w"));
    assert!(one.is_merged && !one.is_held);
    assert_eq!(one.reasons["1"], "error: can't chdir to /home/ann");
    assert_eq!(one.program.words, ["/w/run.sh", "-n ", ""]);
    assert_eq!(one.program.environment, ["WORD= two words", "TERM="]);
    let other = &details["5"];
    assert_eq!(other.program, crate::program::Program::default());
    assert_eq!((&*other.errors, &*other.output), ("rel", ""));
    assert!(other.is_held && !other.is_merged);
}

#[test]
fn invalid_xml_is_an_error_and_dtd_is_refused() {
    let error = xml::jobs("error: no qmaster").unwrap_err().to_string();
    assert!(error.starts_with("qstat: "), "{error}");
    let dtd = "<!DOCTYPE a [<!ENTITY b \"c\">]><job_info>&b;</job_info>";
    assert!(xml::jobs(dtd).is_err());
}

#[test]
fn multiline_argument_injects_no_qsub_option() {
    let job = Submission {
        program: "echo".to_owned(),
        arguments: vec!["one\n#$ -t 1-3\n#".to_owned()],
        environment: vec!["TEXT=a\n#$ -N other".to_owned()],
        processes: 1,
        ..Submission::default()
    };
    let text = script(&job).unwrap();
    assert!(
        text.lines().skip(1).all(|line| !line.starts_with('#')),
        "{text}"
    );
    let done = std::process::Command::new("/bin/sh")
        .args(["-c", &text])
        .output();
    let done = done.expect("a shell");
    assert_eq!(String::from_utf8_lossy(&done.stdout), "one\n#$ -t 1-3\n#\n");
}
