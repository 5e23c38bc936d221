//! Core files of real processes, written by a real gdb.

use std::process::Command;

use crate::place::Place;

/// Writes a core file of `work WHAT` at its state after these gdb commands; returns the file's name in the folder.
///
/// # Panics
/// If gdb does not write it.
#[must_use]
pub fn leave_core(place: &Place, rank: Option<u32>, what: &str, until: &[&str]) -> String {
    let name = rank.map_or_else(|| format!("{what}.core"), |rank| format!("core.r{rank}"));
    let mut gdb = Command::new("gdb");
    gdb.current_dir(place.path())
        .args(["-nx", "-batch", "-ex", "set debuginfod enabled off"]);
    for variable in [
        "OMPI_COMM_WORLD_RANK",
        "SLURM_PROCID",
        "PMIX_RANK",
        "PMI_ID",
    ] {
        gdb.env_remove(variable);
    }
    match rank {
        Some(rank) => gdb.env("PMI_RANK", rank.to_string()).env("PMI_SIZE", "4"),
        None => gdb.env_remove("PMI_RANK"),
    };
    for line in until.iter().chain(&[&*format!("gcore {name}"), "kill"]) {
        gdb.args(["-ex", line]);
    }
    let output = gdb
        .args(["--args", "./work", what])
        .output()
        .expect("gdb runs");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains(&format!("Saved corefile {name}")), "{text}");
    name
}
