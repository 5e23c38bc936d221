//! `sdm doctor`: obstacles for SDM on this host, on other hosts or for a job, with remedies.

mod bundle;
mod cluster;
mod host;
mod job;
mod machine;
mod section;
mod show;

use sdm_doctor::Verdict;

use crate::cli::DoctorArgs;
use crate::sink::{Sink, complain};
use section::Section;

/// Exit code: there is a bad finding.
const BAD: u8 = 1;
/// Exit code: the findings could not be printed, or the support file could not be written.
const FAILED: u8 = 2;

/// Carries out `sdm doctor`. Returns the exit code.
pub(crate) fn carry_out(args: &DoctorArgs) -> u8 {
    let sections = sections(args);
    let text = match args.json {
        true => show::json(&sections),
        false => show::text(&sections, Sink::Output.size().map(|(columns, _)| columns)),
    };
    if Sink::Output.show(&text).is_err() {
        return FAILED;
    }
    if let Some(path) = &args.bundle {
        if let Err(error) = bundle::write(path, &sections) {
            complain(format_args!("sdm: {error}"));
            return FAILED;
        }
        let path = sdm_text::printable_name(path);
        complain(format_args!(
            "sdm: {path} is written; read it before you send it"
        ));
    }
    let mut all = sections.iter().flat_map(|it| &it.findings);
    match all.any(|it| it.verdict == Verdict::Bad) {
        true => BAD,
        false => 0,
    }
}

fn sections(args: &DoctorArgs) -> Vec<Section> {
    let mut sections = vec![Section::new("this machine", machine::findings(args))];
    let mut hosts: Vec<String> = args.hosts.iter().map(|it| it.host.clone()).collect();
    if let Some(target) = &args.target {
        match cluster::job_of(target) {
            Some(located) => {
                let (looked, others) = cluster::look_at_job(args, located);
                sections.extend(looked);
                hosts.extend(others);
            }
            None => {
                let (section, others) = job::look(target);
                sections.push(section);
                hosts.extend(others);
            }
        }
    }
    hosts.dedup();
    sections.extend(hosts.iter().map(|name| host::look(args, name)));
    if let Some(name) = &args.cluster {
        sections.push(cluster::look(name));
    }
    sections
}
