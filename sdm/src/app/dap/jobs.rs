//! What an editor can attach to: jobs whose starters run on this host, and those of its clusters.

use sdm_hosts::job;

use crate::cluster;

/// What names each as a target, and what a person knows it by. A job of a cluster is there once, by its number.
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
