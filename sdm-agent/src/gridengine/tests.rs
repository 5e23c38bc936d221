//! What a Grid Engine 8.1.9 of Debian has said.

use super::xml;

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
    </job_list>
    <job_list state=\"running\">
      <JB_job_number>4</JB_job_number>
      <JB_name>par</JB_name>
      <JB_owner>nobody</JB_owner>
      <state>t</state>
      <queue_name>all.q@ge2</queue_name>
      <master>SLAVE</master>
      <slots>1</slots>
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
fn jobs_are_read_with_their_states_members_and_places() {
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
    // The master of a job with slaves is not one of them.
    assert_eq!(value("4", "jobState"), Some("STARTED"));
    assert_eq!(value("4", "jobNumProcs"), Some("2"));
    assert_eq!(value("4", "jobNodes"), Some("ge1,ge2"));
    assert_eq!(jobs["4"].queue, "all.q");
}

#[test]
fn hosts_that_do_not_report_are_down_and_a_queue_is_open_where_one_host_has_it_open() {
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
fn the_accounting_says_how_a_job_has_ended() {
    let text = "==============================================================\n\
        qname        all.q               \n\
        start_time   Mon Nov 23 15:13:02 2026\n\
        end_time     Mon Nov 23 15:13:03 2026\n\
        failed       100 : assumedly after job\n\
        exit_status  137                  (Killed)\n";
    let lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let ended = xml::ended(&lines);
    let value = |id: &str| ended.get(id).map(String::as_str);
    assert_eq!(value("exitCode"), Some("137"));
    assert_eq!(value("exitSignal"), Some("9"));
    assert_eq!(value("endTime"), Some("1795446783"));
    assert_eq!(value("jobStatusMessage"), Some("100 : assumedly after job"));
}

#[test]
fn what_is_no_xml_is_an_error_and_no_dtd_is_read() {
    let error = xml::jobs("error: no qmaster").unwrap_err().to_string();
    assert!(error.starts_with("qstat: "), "{error}");
    let dtd = "<!DOCTYPE a [<!ENTITY b \"c\">]><job_info>&b;</job_info>";
    assert!(xml::jobs(dtd).is_err());
    let paths = "<d><JB_cwd>/w</JB_cwd><JB_stdout_path_list><path_list><PN_path>/o</PN_path></path_list></JB_stdout_path_list></d>";
    assert_eq!(
        xml::paths(paths).unwrap(),
        ["/o", "", "/w"].map(str::to_owned)
    );
}
