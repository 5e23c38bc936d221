//! The jobs that an editor can attach to: those with a launcher on this host, and those of its clusters.

use sdm_hosts::job;

use crate::cluster;

/// The target word and a label for each job. A job of a cluster appears once, by its number.
pub(super) fn attachable() -> Vec<(String, String)> {
    let of_clusters = cluster::running();
    let is_of_none = |pid: i32| of_clusters.iter().all(|job| job.starter != Some(pid));
    let starters = job::attachable().unwrap_or_default().into_iter();
    let starters = starters.filter(|job| is_of_none(job.pid));
    let mut jobs: Vec<_> = starters
        .map(|job| (job.pid.to_string(), job.line))
        .collect();
    jobs.extend(of_clusters.into_iter().map(|job| (job.target, job.label)));
    jobs
}
