//! The processes of this machine, as `/proc` shows them at one moment.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The largest environment that is read, in bytes.
const ENVIRONMENT_BYTES_MAX: u64 = 4 << 20;

/// One process.
#[derive(Clone, Debug)]
pub(super) struct Process {
    pub(super) pid: i32,
    pub(super) parent: i32,
    /// Whose it is: the owner of its `/proc` directory, root where it must not be traced.
    pub(super) uid: u32,
    /// The kernel's name for it, at most 15 bytes.
    pub(super) name: String,
    pub(super) command: Vec<String>,
}

impl Process {
    pub(super) fn is_called(&self, name: &str) -> bool {
        self.name == name || self.base() == Some(name)
    }

    pub(super) fn is_called_any(&self, names: &[&str]) -> bool {
        names.iter().any(|name| self.is_called(name))
    }

    /// What a person calls it.
    pub(super) fn program(&self) -> &str {
        self.base().unwrap_or(&self.name)
    }

    fn base(&self) -> Option<&str> {
        let path = self.command.first()?;
        path.rsplit('/').next().filter(|base| !base.is_empty())
    }
}

/// All processes with a command line, without zombies and the kernel's own threads.
#[derive(Debug)]
pub(super) struct Processes {
    root: PathBuf,
    by_pid: BTreeMap<i32, Process>,
}

impl Processes {
    /// Reads `/proc`, or a directory like it.
    pub(super) fn read(root: &Path) -> io::Result<Self> {
        let mut by_pid = BTreeMap::new();
        for entry in fs::read_dir(root)? {
            let entry = entry?;
            let Some(pid) = entry.file_name().to_str().and_then(|pid| pid.parse().ok()) else {
                continue;
            };
            // A process can end at any moment.
            if let Some(process) = read(&entry.path(), pid) {
                by_pid.insert(pid, process);
            }
        }
        Ok(Self {
            root: root.to_owned(),
            by_pid,
        })
    }

    pub(super) fn get(&self, pid: i32) -> Option<&Process> {
        self.by_pid.get(&pid)
    }

    /// All of them, by rising pid.
    pub(super) fn all(&self) -> impl Iterator<Item = &Process> {
        self.by_pid.values()
    }

    /// The children of a process, by rising pid.
    pub(super) fn children(&self, pid: i32) -> impl Iterator<Item = &Process> {
        self.all().filter(move |process| process.parent == pid)
    }

    /// A process and all that it descends from.
    pub(super) fn ancestors(&self, own: i32) -> BTreeSet<i32> {
        let mut found = BTreeSet::new();
        let mut next = Some(own);
        while let Some(pid) = next.filter(|pid| found.insert(*pid)) {
            next = self.get(pid).map(|process| process.parent);
        }
        found
    }

    /// What a process was started with, where that may be read.
    pub(super) fn environment(&self, pid: i32) -> Environment {
        use std::io::Read;
        let path = self.root.join(pid.to_string()).join("environ");
        let mut bytes = Vec::new();
        if let Ok(file) = fs::File::open(path) {
            // One that cannot be read is as good as empty.
            let _ = file.take(ENVIRONMENT_BYTES_MAX).read_to_end(&mut bytes);
        }
        Environment::parse(&bytes)
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
        uid: fs::metadata(directory).ok()?.uid(),
        name: name.trim_end().to_owned(),
        command: words
            .map(|word| String::from_utf8_lossy(word).into_owned())
            .collect(),
    })
}

/// The variables that a process was started with.
#[derive(Clone, Debug, Default)]
pub(super) struct Environment(BTreeMap<OsString, OsString>);

impl Environment {
    fn parse(bytes: &[u8]) -> Self {
        let variables = bytes.split(|byte| *byte == 0).filter_map(|variable| {
            let at = variable.iter().position(|byte| *byte == b'=')?;
            let (name, value) = variable.split_at(at);
            let text = |bytes: &[u8]| OsString::from_vec(bytes.to_vec());
            Some((text(name), text(&value[1..])))
        });
        Self(variables.collect())
    }

    pub(super) fn get(&self, name: &str) -> Option<&OsStr> {
        self.0.get(OsStr::new(name)).map(OsString::as_os_str)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A directory that looks like `/proc`.
    pub(in crate::job) struct Proc(pub(in crate::job) PathBuf);

    impl Proc {
        pub(in crate::job) fn new(name: &str) -> Self {
            let id = std::process::id();
            Self(std::env::temp_dir().join(format!("sdm-proc-{name}-{id}")))
        }

        pub(in crate::job) fn add(&self, pid: i32, parent: i32, command: &str, environment: &str) {
            let name = command
                .split(' ')
                .next()
                .unwrap()
                .rsplit('/')
                .next()
                .unwrap();
            self.add_as(pid, parent, ('S', name), command, environment);
        }

        pub(in crate::job) fn add_as(
            &self,
            pid: i32,
            parent: i32,
            (state, name): (char, &str),
            command: &str,
            environment: &str,
        ) {
            let directory = self.0.join(pid.to_string());
            fs::create_dir_all(&directory).unwrap();
            let stat = format!("{pid} ({name}) {state} {parent} 0 0");
            fs::write(directory.join("stat"), stat).unwrap();
            fs::write(directory.join("comm"), format!("{name}\n")).unwrap();
            fs::write(directory.join("cmdline"), command.replace(' ', "\0")).unwrap();
            fs::write(directory.join("environ"), environment.replace(' ', "\0")).unwrap();
        }

        pub(in crate::job) fn read(&self) -> Processes {
            Processes::read(&self.0).unwrap()
        }
    }

    impl Drop for Proc {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_moment_of_proc() {
        let proc = Proc::new("moment");
        proc.add(10, 1, "bash -c x", "A=1 B= C=x=y");
        proc.add(11, 10, "/bin/sdm stacks", "");
        proc.add_as(12, 10, ('Z', "halo"), "./halo", "");
        proc.add_as(13, 2, ('S', "kworker"), "", "");
        proc.add_as(14, 11, ('R', "halo) x"), "/opt/halo 100", "");
        let processes = proc.read();
        let pids: Vec<i32> = processes.all().map(|process| process.pid).collect();
        assert_eq!(pids, [10, 11, 14]);
        assert_eq!(processes.children(10).count(), 1);
        assert_eq!(processes.ancestors(14), [1, 10, 11, 14].into());
        assert_eq!(processes.get(14).unwrap().program(), "halo");
        assert!(processes.get(11).unwrap().is_called("sdm"));
        let environment = processes.environment(10);
        assert_eq!(environment.get("C"), Some(OsStr::new("x=y")));
        assert_eq!(environment.get("B"), Some(OsStr::new("")));
        assert_eq!(environment.get("D"), None);
        assert_eq!(processes.environment(99).get("A"), None);
    }
}
