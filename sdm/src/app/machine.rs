//! Facts about this machine and this invocation of `sdm`.

use sdm_system::proc;
use sdm_text::printable_name;
use sdm_view::report::Fact;

/// Environment variables in which batch systems give the number of a job, each with the system's name.
const JOBS: [(&str, &str); 4] = [
    ("SLURM_JOB_ID", "Slurm"),
    ("PBS_JOBID", "PBS"),
    ("LSB_JOBID", "LSF"),
    ("JOB_ID", "Grid Engine"),
];

/// Facts for a report: the command line, its working directory, the machine, the batch job, and SDM's build.
pub(super) fn of_machine() -> Vec<Fact> {
    let words = std::env::args_os().map(|word| quoted(&word.to_string_lossy()));
    let mut facts = vec![Fact::new(
        "command line",
        words.collect::<Vec<_>>().join(" "),
    )];
    if let Ok(directory) = std::env::current_dir() {
        facts.push(Fact::new("directory", printable_name(directory)));
    }
    facts.push(Fact::new("machine", machine()));
    for (variable, system) in JOBS {
        if let Ok(id) = std::env::var(variable) {
            facts.push(Fact::new("job", format!("{system} {id}")));
        }
    }
    facts.push(Fact::new("SDM", crate::build::name()));
    facts
}

/// Host, system, processors and memory of this machine.
fn machine() -> String {
    let read = |file: &str| {
        let text = proc::of_machine(file).unwrap_or_default();
        text.trim().to_owned()
    };
    let field = |file: &str, name: &str| {
        let text = proc::of_machine(file).unwrap_or_default();
        let line = text.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            (key.trim() == name).then(|| value.trim().to_owned())
        });
        line.unwrap_or_default()
    };
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let parts = [
        read("sys/kernel/hostname"),
        format!("Linux {}", read("sys/kernel/osrelease")),
        std::env::consts::ARCH.to_owned(),
        format!("{processors} processors"),
        field("cpuinfo", "model name"),
        field("meminfo", "MemTotal"),
    ];
    let parts = parts.into_iter().filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join(", ")
}

/// Quotes a word for a shell.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=+./:,@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_words_are_quoted_for_a_shell() {
        for (word, expect) in [
            ("--batch", "--batch"),
            ("break f if x > 3", "'break f if x > 3'"),
            ("it's", r"'it'\''s'"),
            ("", "''"),
        ] {
            assert_eq!(quoted(word), expect);
        }
    }

    #[test]
    fn machine_facts_name_command_line_directory_and_version() {
        let facts = of_machine();
        let of = |name| facts.iter().find(|fact| fact.name == name);
        for name in ["command line", "directory", "machine", "SDM"] {
            assert!(
                of(name).is_some_and(|fact| !fact.value.is_empty()),
                "{name}"
            );
        }
    }
}
