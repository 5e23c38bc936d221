//! Recorded observations of jobs that hang, in `golden/observations/MPI/WAY.json`; `scripts/observations renew` records
//! them again.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use sdm_diagnose::Observations;
use sdm_idset::IdSet;
use serde_json::{Value, json};

use crate::place::Compiler;

/// The MPIs, each with the name of its folder below `golden/observations`.
pub const MPIS: [(Compiler, &str); 3] = [
    (Compiler::OpenMpi, "open_mpi"),
    (Compiler::Mpich, "mpich"),
    (Compiler::OpenMpi5, "open_mpi_5"),
];

/// Normalised duration of the observation, and of a rank's computing; only whether it computed matters.
const SPAN_NS: u64 = 1_000_000_000;
const BUSY_MS: u64 = 250;

/// The pid of rank 0 in a recorded file. The pids of the other ranks follow in the order of ranks.
const RANK_PID: i64 = 1000;
/// Lower bound of the pids in a recorded file that stand for processes outside of the job.
const OTHER_PID: i64 = 2000;

/// The name of an MPI's folder.
///
/// # Panics
/// If the compiler is not one of an MPI.
#[must_use]
pub fn folder_of(compiler: Compiler) -> &'static str {
    let mut known = MPIS.iter();
    let known = known.find(|(one, _)| *one == compiler);
    known.expect("it is an MPI's").1
}

/// Folder of the recorded observations.
#[must_use]
pub fn kept() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("golden/observations")
}

/// Recorded observations with a new verdict in place of the recorded one.
///
/// # Panics
/// If the text holds no observations.
#[must_use]
pub fn judged(text: &str) -> Observations {
    let mut kept = Observations::decode(text).unwrap_or_else(|error| panic!("{error}"));
    let found = kept.judge();
    kept = Observations::new(kept.observed, &found);
    kept
}

/// Observations of a job that `sdm diagnose --observations` has written in this folder, without values that differ
/// from run to run and cannot matter to the verdict: times, and the numbers of processes, pipes, ports and
/// addresses.
///
/// # Panics
/// If the text is malformed, or the verdict changes without these values.
#[must_use]
pub fn normalised(text: &str, folder: &Path) -> String {
    let mut file: Value = serde_json::from_str(text).expect("it is JSON");
    let mut names = Names {
        busy: busy(&file),
        pids: ranks(&file),
        ..Names::default()
    };
    for (field, value) in file.as_object_mut().expect("an object") {
        if field != "verdict" {
            names.in_value(field, value);
        }
    }
    let text_of = |file: &Value| {
        file.to_string()
            .replace(&folder.display().to_string(), "/job")
    };
    let before = &file["verdict"];
    let after = judged(&text_of(&file));
    for field in ["step", "suspects", "held_up_by", "circle"] {
        assert_eq!(after.verdict[field], before[field], "{field}: {text}");
    }
    after.encode()
}

/// Replacements for numbers that differ from run to run.
#[derive(Default)]
struct Names {
    /// Tasks that used a processor between any two samples.
    busy: IdSet,
    pids: BTreeMap<i64, i64>,
    others: BTreeMap<String, usize>,
}

impl Names {
    fn in_value(&mut self, field: &str, value: &mut Value) {
        match (field, value) {
            ("span_ns" | "ran_ns", value) => *value = SPAN_NS.into(),
            ("cpu", value) => *value = self.in_times(value),
            ("pid", value) => {
                let next = OTHER_PID + i64::try_from(self.pids.len()).expect("there are few");
                let pid = value.as_i64().expect("a number");
                *value = (*self.pids.entry(pid).or_insert(next)).into();
            }
            (field, Value::Array(list)) => {
                list.iter_mut().for_each(|item| self.in_value(field, item));
            }
            (_, Value::Object(fields)) => {
                let fields = fields.iter_mut();
                fields.for_each(|(name, value)| self.in_value(name, value));
            }
            (_, Value::String(text)) => *text = self.in_text(text),
            _ => {}
        }
    }

    /// Normalised processor times: the same time for all busy tasks, and 0 for the others.
    fn in_times(&self, list: &Value) -> Value {
        let all = list.as_array().into_iter().flatten().map(tasks_of);
        let all = all.fold(IdSet::new(), |all, more| all.union(&more));
        let parts = [
            (0, all.difference(&self.busy)),
            (BUSY_MS, all.intersection(&self.busy)),
        ];
        let parts = parts.iter().filter(|(_, tasks)| !tasks.is_empty());
        let parts = parts.map(|(ms, tasks)| json!({ "tasks": tasks.to_string(), "ms": ms }));
        parts.collect::<Vec<_>>().into()
    }

    /// Replaces the numbers of pipes, sockets, ports and addresses in a text by 1, 2 and so on, in order of first
    /// occurrence.
    fn in_text(&mut self, text: &str) -> String {
        let mut text = text.to_owned();
        for (head, digits) in [
            ("pipe:[", 10),
            ("socket:[", 10),
            ("127.0.0.1:", 10),
            ("0x", 16),
        ] {
            let mut parts = text.split(head);
            let mut new = parts.next().unwrap_or_default().to_owned();
            for part in parts {
                let end = part
                    .find(|c: char| !c.is_digit(digits))
                    .unwrap_or(part.len());
                new.push_str(head);
                if end > 0 {
                    let next = self.others.len() + 1;
                    let number = self.others.entry(format!("{head}{}", &part[..end]));
                    new.push_str(&number.or_insert(next).to_string());
                }
                new.push_str(&part[end..]);
            }
            text = new;
        }
        text
    }
}

/// Replacement pids of the ranks' processes, by their real pids.
fn ranks(file: &Value) -> BTreeMap<i64, i64> {
    let pids = file["pids"].as_array().into_iter().flatten();
    let number = |one: &Value| Some((one["pid"].as_i64()?, RANK_PID + one["rank"].as_i64()?));
    pids.filter_map(number).collect()
}

/// Tasks that used a processor between any two samples: nothing else of processor times matters to a verdict.
fn busy(file: &Value) -> IdSet {
    let samples = file["samples"].as_array().into_iter().flatten();
    let times = samples.flat_map(|sample| sample["cpu"].as_array().into_iter().flatten());
    let busy = times.filter(|one| one["ms"] != 0).map(tasks_of);
    busy.fold(IdSet::new(), |all, more| all.union(&more))
}

fn tasks_of(object: &Value) -> IdSet {
    let text = object["tasks"].as_str().unwrap_or_default();
    text.parse().expect("a set")
}

/// The recorded files of a folder, by the ways to hang that they show (`WAY.json`).
#[must_use]
pub fn files(folder: &Path) -> BTreeMap<String, PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let way = |path: &PathBuf| {
        Some(
            path.file_name()?
                .to_str()?
                .strip_suffix(".json")?
                .to_owned(),
        )
    };
    let files = entries.filter_map(|entry| Some((way(&entry.path())?, entry.path())));
    files.collect()
}

/// The lines in which two verdicts differ: those of the first, then those of the second.
#[must_use]
pub fn differing(before: &Value, after: &Value) -> Vec<String> {
    let lines = |value: &Value| {
        let text = serde_json::to_string_pretty(value).expect("JSON has a text");
        text.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let (before, after) = (lines(before), lines(after));
    let gone = before.iter().filter(|line| !after.contains(line));
    let new = after.iter().filter(|line| !before.contains(line));
    let gone = gone.map(|line| format!("- {}", line.trim()));
    gone.chain(new.map(|line| format!("+ {}", line.trim())))
        .collect()
}

/// Replaces the recorded observations of these MPIs in `into` by those in `from`. Returns a line for each job that is
/// new, was not recorded, or has another verdict.
///
/// # Errors
/// A file cannot be read or written, or nothing was recorded of an MPI.
pub fn renew(from: &Path, into: &Path, mpis: &[String]) -> std::io::Result<Vec<String>> {
    let mut said = Vec::new();
    for mpi in mpis {
        let (recorded, folder) = (files(&from.join(mpi)), into.join(mpi));
        if recorded.is_empty() {
            let what = format!("{}: nothing was recorded", from.join(mpi).display());
            return Err(std::io::Error::other(what));
        }
        fs::create_dir_all(&folder)?;
        let old = files(&folder);
        for (way, path) in old.iter().filter(|(way, _)| !recorded.contains_key(*way)) {
            said.push(format!(
                "{mpi}/{way}: was not recorded, {} stays",
                path.display()
            ));
        }
        for (way, path) in recorded {
            let text = fs::read_to_string(path)?;
            let new = judged(&text);
            match old.get(&way).map(fs::read_to_string).transpose()? {
                None => said.push(format!("{mpi}/{way}: new, {}", new.verdict["step"])),
                Some(before) => {
                    let before = Observations::decode(&before).map_err(std::io::Error::other)?;
                    let differing = differing(&before.verdict, &new.verdict);
                    if !differing.is_empty() {
                        let lines = differing.join("\n    ");
                        said.push(format!(
                            "{mpi}/{way}: the verdict is another one\n    {lines}"
                        ));
                    }
                }
            }
            fs::write(folder.join(format!("{way}.json")), text)?;
        }
    }
    Ok(said)
}
