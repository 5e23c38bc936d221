//! A support file: findings, versions, settings, and facts from the kernel. It contains only values that
//! are known not to be secret.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::CommandFactory;
use sdm_system::{files, proc};
use sdm_text::{printable, printable_name};
use serde_json::{Map, Value, json};

use super::section::Section;
use super::show;
use crate::cli::Cli;
use crate::settings::{Origin, Settings};

/// Variables with paths and names, whose values are not secret.
const SHOWN: [&str; 14] = [
    "PATH",
    "LD_LIBRARY_PATH",
    "LD_PRELOAD",
    "LANG",
    "LC_ALL",
    "TERM",
    "SHELL",
    "MODULEPATH",
    "LOADEDMODULES",
    "XDG_RUNTIME_DIR",
    "SLURM_JOB_ID",
    "SLURM_JOB_NUM_NODES",
    "SLURM_CONF",
    "SDM_GDB",
];
/// Prefixes of variables of SDM, MPI and launchers. Their names are included; their values only if [`SHOWN`] lists
/// them.
const NAMED: [&str; 9] = [
    "SDM_", "SLURM_", "OMPI_", "PMIX_", "PRTE_", "PMI_", "MPI", "I_MPI_", "SGE_",
];
/// Settings whose values can contain secrets: variables, command lines, options of other programs.
const HIDDEN: [&str; 7] = [
    "env",
    "wrapper",
    "gdb-setting",
    "launcher-option",
    "program",
    "arguments",
    "notify",
];
/// Placeholder for a hidden value.
const NOT_SHOWN: &str = "(not shown)";

/// The file cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("{}: {source}", printable_name(path))]
pub(super) struct BundleError {
    path: PathBuf,
    source: io::Error,
}

/// Writes the support file as a new file that only this user can read.
pub(super) fn write(path: &Path, sections: &[Section]) -> Result<(), BundleError> {
    let bundle = json!({
        "doctor": show::value(sections),
        "system": system(),
        "environment": environment(std::env::vars_os().map(|(name, value)| {
            (name.to_string_lossy().into_owned(), value.to_string_lossy().into_owned())
        })),
        "settings": settings(),
    });
    let text = format!("{bundle:#}\n");
    let written = files::create_new(path).and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|source| BundleError {
        path: path.to_owned(),
        source,
    })
}

fn system() -> Value {
    let of = |name: &str| {
        let text = proc::of_machine(name).unwrap_or_default();
        printable(text.trim().as_bytes())
    };
    let first = |file: &str, key: &str| {
        let text = proc::of_machine(file).unwrap_or_default();
        let line = text
            .lines()
            .find(|line| line.starts_with(key))
            .map(str::to_owned);
        line.map(|line| printable(line.as_bytes()))
    };
    let release = files::read_text(Path::new("/etc/os-release")).unwrap_or_default();
    let name = release
        .lines()
        .find_map(|it| it.strip_prefix("PRETTY_NAME="));
    json!({
        "kernel": of("version"),
        "system": name.map(|it| printable(it.trim_matches('"').as_bytes())),
        "architecture": std::env::consts::ARCH,
        "processor": first("cpuinfo", "model name"),
        "features": first("cpuinfo", "flags"),
        "memory": first("meminfo", "MemAvailable"),
        "load": of("loadavg"),
    })
}

fn environment(variables: impl Iterator<Item = (String, String)>) -> Value {
    let mut shown = Map::new();
    for (name, value) in variables {
        let value = match () {
            () if SHOWN.contains(&&*name) => printable(value.as_bytes()),
            () if NAMED.iter().any(|it| name.starts_with(it)) => NOT_SHOWN.to_owned(),
            () => continue,
        };
        shown.insert(printable(name.as_bytes()), Value::String(value));
    }
    Value::Object(shown)
}

/// The settings that do not have their default values, with their origins.
fn settings() -> Value {
    let command = Cli::command();
    let settings = match Settings::load(&command, |name| std::env::var_os(name)) {
        Ok(settings) => settings,
        // The error's text may quote a value, so only its place is given.
        Err(error) => return json!({ "wrong": printable(error.place.as_bytes()) }),
    };
    let rows = settings.rows(&command, None).into_iter();
    let set = rows.filter(|row| row.origin != Origin::Definition);
    set.map(|row| {
        let value = match HIDDEN.contains(&&*row.key) {
            true => NOT_SHOWN.to_owned(),
            false => printable(row.value.as_bytes()),
        };
        let place = settings.place(&row.origin);
        json!({ "command": row.verb, "key": row.key, "value": value, "from": printable(place.as_bytes()) })
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bundle_shows_only_variables_that_are_no_secrets() {
        let of = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let variables = [
            of("PATH", "/usr/bin"),
            of("SDM_KEY", "geheim"),
            of("SLURM_JOB_ID", "7"),
            of("SLURM_JWT", "geheim"),
            of("AWS_SECRET_ACCESS_KEY", "geheim"),
        ];
        let shown = environment(variables.into_iter());
        let expect = json!({
            "PATH": "/usr/bin", "SDM_KEY": NOT_SHOWN, "SLURM_JOB_ID": "7", "SLURM_JWT": NOT_SHOWN,
        });
        assert_eq!(shown, expect);
    }

    #[test]
    fn settings_hidden_in_the_bundle_exist() {
        let command = Cli::command();
        let known = Settings::default().rows(&command, None);
        for key in HIDDEN {
            let is_one = known.iter().any(|row| row.key == key);
            assert!(
                is_one || ["program", "arguments"].contains(&key),
                "{key}: no setting"
            );
        }
    }
}
