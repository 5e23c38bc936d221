//! Processes of this machine, by name.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Programs that start others and are never meant.
const LAUNCHERS: &[&str] = &[
    "gdb",
    "hydra_pmi_proxy",
    "mpiexec",
    "mpiexec.hydra",
    "mpirun",
    "mpirun.openmpi",
    "orted",
    "orterun",
    "prte",
    "prted",
    "prterun",
    "sdm",
    "sdm-master",
    "sdm-server",
    "srun",
];

/// One process.
struct Process {
    pid: i32,
    parent: i32,
    name: String,
    command: Vec<String>,
}

/// The processes of this user that are called `name`, rising; where there is none, those whose
/// command line holds it. Launchers, and what this process descends from, are never meant.
///
/// # Errors
/// A `/proc` that cannot be read.
pub(super) fn find(name: &str) -> io::Result<Vec<i32>> {
    let own = i32::try_from(std::process::id()).unwrap_or(0);
    find_in(
        Path::new("/proc"),
        name,
        own,
        nix::unistd::geteuid().as_raw(),
    )
}

fn find_in(proc: &Path, name: &str, own: i32, uid: u32) -> io::Result<Vec<i32>> {
    let mut processes = Vec::new();
    for entry in fs::read_dir(proc)? {
        let entry = entry?;
        let Some(pid) = entry.file_name().to_str().and_then(|pid| pid.parse().ok()) else {
            continue;
        };
        // A process can end at any moment.
        let of_user = entry.metadata().is_ok_and(|metadata| metadata.uid() == uid);
        if let Some(process) = of_user.then(|| read(&entry.path(), pid)).flatten() {
            processes.push(process);
        }
    }
    let ancestors = ancestors(&processes, own);
    processes
        .retain(|process| !ancestors.contains(&process.pid) && !process.is_called_any(LAUNCHERS));
    processes.sort_by_key(|process| process.pid);
    let called: Vec<_> = processes
        .iter()
        .filter(|process| process.is_called(name))
        .map(|process| process.pid)
        .collect();
    if !called.is_empty() {
        return Ok(called);
    }
    let holds = |process: &&Process| process.command.iter().any(|word| word.contains(name));
    let holding = processes.iter().filter(holds);
    Ok(holding.map(|process| process.pid).collect())
}

impl Process {
    /// The kernel keeps 15 bytes of a name.
    fn is_called(&self, name: &str) -> bool {
        let base = self
            .command
            .first()
            .and_then(|path| path.rsplit('/').next());
        self.name == name || base == Some(name)
    }

    fn is_called_any(&self, names: &[&str]) -> bool {
        names.iter().any(|name| self.is_called(name))
    }
}

/// Absent where it has ended, is a zombie, or is a thread of the kernel.
fn read(directory: &Path, pid: i32) -> Option<Process> {
    let stat = fs::read_to_string(directory.join("stat")).ok()?;
    // The name stands in brackets and can hold any character.
    let (_, after_name) = stat.rsplit_once(')')?;
    let mut fields = after_name.split_whitespace();
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    let command = fs::read(directory.join("cmdline")).ok()?;
    if matches!(state, "Z" | "X") || command.is_empty() {
        return None;
    }
    let words = command
        .split(|byte| *byte == 0)
        .filter(|word| !word.is_empty());
    let name = fs::read_to_string(directory.join("comm")).ok()?;
    Some(Process {
        pid,
        parent,
        name: name.trim_end().to_owned(),
        command: words
            .map(|word| String::from_utf8_lossy(word).into_owned())
            .collect(),
    })
}

/// A process and all that it descends from.
fn ancestors(processes: &[Process], own: i32) -> BTreeSet<i32> {
    let mut found = BTreeSet::new();
    let mut next = Some(own);
    while let Some(pid) = next.filter(|pid| found.insert(*pid)) {
        let process = processes.iter().find(|process| process.pid == pid);
        next = process.map(|process| process.parent);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add(proc: &Path, pid: i32, parent: i32, state: char, name: &str, command: &str) {
        let directory = proc.join(pid.to_string());
        fs::create_dir_all(&directory).unwrap();
        let stat = format!("{pid} ({name}) {state} {parent} 0 0");
        fs::write(directory.join("stat"), stat).unwrap();
        fs::write(directory.join("comm"), format!("{name}\n")).unwrap();
        fs::write(directory.join("cmdline"), command.replace(' ', "\0")).unwrap();
    }

    #[test]
    fn processes_are_found_by_name_and_launchers_never() {
        let proc = std::env::temp_dir().join(format!("sdm-proc-{}", std::process::id()));
        add(&proc, 10, 1, 'S', "bash", "bash -c sdm stacks --match halo");
        add(&proc, 11, 10, 'R', "sdm", "sdm stacks --match halo");
        add(&proc, 20, 1, 'S', "mpirun", "mpirun -n 2 ./halo");
        add(&proc, 22, 20, 'R', "halo", "./halo 100");
        add(&proc, 21, 20, 'S', "halo) x", "/opt/bin/halo 100");
        add(&proc, 23, 20, 'Z', "halo", "./halo 100");
        add(&proc, 30, 1, 'S', "python3", "python3 solver.py");
        add(&proc, 40, 2, 'S', "kworker/halo", "");
        let uid = fs::metadata(&proc).unwrap().uid();
        let find = |name| find_in(&proc, name, 11, uid).unwrap();
        assert_eq!(find("halo"), [21, 22]);
        assert_eq!(find("solver.py"), [30]);
        assert_eq!(find("mpirun"), [0; 0]);
        assert_eq!(find("nothing"), [0; 0]);
        assert_eq!(find_in(&proc, "halo", 11, uid + 1).unwrap(), [0; 0]);
        fs::remove_dir_all(&proc).unwrap();
    }
}
