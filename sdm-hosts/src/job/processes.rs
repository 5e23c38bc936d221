//! The processes of this machine, as `/proc` shows them at one time.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use nix::unistd::geteuid;
use sdm_system::{files, proc};

/// Maximum length of a process's name in the kernel, in bytes.
const NAME_BYTES_MAX: usize = 15;
/// Flag in `/proc/PID/stat` of a kernel thread.
const KERNEL_THREAD: u32 = 0x0020_0000;

/// One process of this machine, as `/proc` shows it.
#[derive(Clone, Debug)]
pub(super) struct Process {
    pub(super) pid: i32,
    pub(super) parent: i32,
    /// Real user id of the process.
    pub(super) uid: u32,
    /// True if all user ids of the process are the same, and it is dumpable.
    plain: bool,
    /// Start time of the process, in clock ticks since boot.
    pub(super) began: u64,
    /// Processor time used, in clock ticks.
    pub(super) used_ticks: u64,
    /// The kernel's name for the process, at most 15 bytes.
    pub(super) name: String,
    /// Command line of the process; `None` for another user's process, and for one of this user that is not `plain`.
    /// Another user's text is not read, since that user could delay the read without limit.
    pub(super) command: Option<Vec<String>>,
}

impl Process {
    pub(super) fn is_called(&self, name: &str) -> bool {
        match &self.command {
            Some(_) => self.name == name || self.base() == Some(name),
            // The kernel has cut its name off.
            None => self.name.as_bytes() == &name.as_bytes()[..name.len().min(NAME_BYTES_MAX)],
        }
    }

    /// True if the process belongs to this user, has no other user's rights, and is dumpable.
    pub(super) fn is_of(&self, uid: u32) -> bool {
        self.plain && self.uid == uid
    }

    /// Name of the process's owner, for the user.
    pub(super) fn owner(&self) -> String {
        files::user(self.uid)
    }

    /// The words of the command line; empty if it was not read.
    pub(super) fn words(&self) -> &[String] {
        self.command.as_deref().unwrap_or_default()
    }

    /// True if `name` is a word of the command line, or the file name of a word.
    pub(super) fn has_word(&self, name: &str) -> bool {
        let is_it = |word: &String| word == name || word.rsplit('/').next() == Some(name);
        self.words().iter().any(is_it)
    }

    pub(super) fn is_called_any(&self, names: &[&str]) -> bool {
        names.iter().any(|name| self.is_called(name))
    }

    /// Display name of the program: the file name of the first word, or the kernel's name.
    pub(super) fn program(&self) -> &str {
        self.base().unwrap_or(&self.name)
    }

    fn base(&self) -> Option<&str> {
        let path = self.words().first()?;
        path.rsplit('/').next().filter(|base| !base.is_empty())
    }
}

/// All processes of this machine except zombies and kernel threads.
#[derive(Debug)]
pub(super) struct Processes {
    root: PathBuf,
    by_pid: BTreeMap<i32, Process>,
}

impl Processes {
    /// Reads `/proc`, or a directory like it.
    pub(super) fn read(root: &Path) -> io::Result<Self> {
        let mut by_pid = BTreeMap::new();
        for pid in proc::pids_in(root)? {
            // A process can end at any moment.
            let process = proc::at(root.join(pid.to_string()));
            if let Some(process) = read(pid, &process) {
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

    /// The process that has this id as a thread other than its main one; `None` if there is none.
    pub(super) fn process_of_thread(&self, id: i32) -> Option<&Process> {
        // The kernel does not list threads here, and opens their folders.
        let pid = self.process(id).status().ok()?.number("Tgid")?;
        self.get(pid).filter(|_| pid != id)
    }

    /// All processes, by rising pid.
    pub(super) fn all(&self) -> impl Iterator<Item = &Process> {
        self.by_pid.values()
    }

    /// The children of a process, by rising pid.
    pub(super) fn children(&self, pid: i32) -> impl Iterator<Item = &Process> {
        self.all().filter(move |process| process.parent == pid)
    }

    /// The pids of a process and of its ancestors.
    pub(super) fn ancestors(&self, own: i32) -> BTreeSet<i32> {
        let mut found = BTreeSet::new();
        let mut next = Some(own);
        while let Some(pid) = next.filter(|pid| found.insert(*pid)) {
            next = self.get(pid).map(|process| process.parent);
        }
        found
    }

    /// The environment with which a process was started, as far as it may be read.
    pub(super) fn environment(&self, pid: i32) -> Environment {
        Environment::of(&self.process(pid))
    }

    /// The folder of a process in `/proc`, for further queries.
    pub(super) fn process(&self, pid: i32) -> proc::Process {
        proc::at(self.root.join(pid.to_string()))
    }
}

/// Reads one process; `None` if all its threads have ended, if it is a kernel thread, if its command line is empty, or
/// if it cannot be read.
fn read(pid: i32, process: &proc::Process) -> Option<Process> {
    let stat = process.stat().ok()?;
    let is_kernels = stat.flags().unwrap_or(0) & KERNEL_THREAD != 0;
    if is_kernels || stat.state().has_ended() && process.living_thread().is_none() {
        return None;
    }
    let (uid, plain) = owner(process)?;
    let command = match plain && uid == geteuid().as_raw() {
        true => Some(process.words().ok()?),
        false => None,
    };
    if command.as_ref().is_some_and(Vec::is_empty) {
        return None;
    }
    Some(Process {
        pid,
        parent: stat.parent()?,
        began: stat.began_ticks().unwrap_or(0),
        used_ticks: stat.cpu_ticks().unwrap_or(0),
        uid,
        plain,
        name: process.name().ok()?.trim_end().to_owned(),
        command,
    })
}

/// Real user id of a process, and true if the process belongs to that user alone: it has no other user id, and is
/// dumpable. `None` if this cannot be read.
pub(super) fn owner(process: &proc::Process) -> Option<(u32, bool)> {
    let ids = process.status().ok()?.ids("Uid")?;
    // For a process that is not dumpable, root owns all files in the folder, but not the folder itself.
    let inside = fs::metadata(process.living().path("environ")).ok()?.uid();
    let plain = ids.iter().chain([&inside]).all(|id| *id == ids[0]);
    Some((ids[0], plain))
}

/// The variables that a process was started with.
#[derive(Clone, Debug, Default)]
pub(super) struct Environment(BTreeMap<OsString, OsString>);

impl Environment {
    /// The environment of a process; empty if it cannot be read.
    pub(super) fn of(process: &proc::Process) -> Self {
        let variables = process.environment().unwrap_or_default();
        Self(variables.into_iter().collect())
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
            let uid = geteuid();
            let status = format!("Name:\t{name}\nUid:\t{uid}\t{uid}\t{uid}\t{uid}\n");
            fs::write(directory.join("status"), status).unwrap();
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
    fn non_utf8_names_hide_no_process() {
        let proc = Proc::new("names");
        proc.add(10, 1, "/opt/halo", "");
        let folder = proc.0.join("10");
        fs::write(folder.join("stat"), b"10 (\xff\xfe) S 1 0 0").unwrap();
        fs::write(folder.join("comm"), b"\xff\xfe\n").unwrap();
        fs::write(folder.join("cmdline"), b"/opt/ha\xfflo\0-v\0").unwrap();
        let processes = proc.read();
        let process = processes.get(10).unwrap();
        assert_eq!(process.program(), "ha\u{fffd}lo");
        assert_eq!(process.words()[1], "-v");
    }

    #[test]
    fn process_belongs_to_a_user_only_if_all_ids_and_files_do() {
        let proc = Proc::new("owner");
        let own = geteuid().as_raw();
        let other = own + 1;
        for (pid, ids) in [
            (10, [own; 4]),
            (11, [other; 4]),
            (12, [own, other, other, other]),
        ] {
            proc.add(pid, 1, "mpirun.mpich -n 2", "");
            let [real, effective, saved, files] = ids;
            let status = format!("Uid:\t{real}\t{effective}\t{saved}\t{files}\n");
            fs::write(proc.0.join(pid.to_string()).join("status"), status).unwrap();
        }
        let processes = proc.read();
        let process = |pid| processes.get(pid).unwrap();
        assert!(process(10).is_of(own) && !process(10).is_of(other));
        // The files in the folder are not the other user's: the process counts as not dumpable.
        assert!(!process(11).is_of(other) && process(11).uid == other);
        assert!(!process(12).is_of(own) && !process(12).is_of(other));
        assert_eq!(process(10).words().len(), 3);
        for foreign in [11, 12] {
            assert!(process(foreign).words().is_empty());
            assert!(process(foreign).is_called("mpirun.mpich"));
            assert!(!process(foreign).is_called("mpirun"));
        }
    }

    #[test]
    fn process_lives_while_any_of_its_threads_lives() {
        let proc = Proc::new("headless");
        proc.add_as(10, 1, ('Z', "halo"), "", "");
        assert!(proc.read().get(10).is_none());
        // The other thread has an entry below the process, and one that is not listed.
        let thread = Proc(proc.0.join("10/task"));
        thread.add(11, 1, "./halo -v", "PMIX_RANK=3");
        let alone = proc.0.join("11");
        fs::create_dir(&alone).unwrap();
        fs::write(alone.join("status"), "Tgid:\t10\n").unwrap();
        let processes = proc.read();
        let process = processes.get(10).unwrap();
        assert_eq!(process.words(), ["./halo", "-v"]);
        let environment = processes.environment(10);
        assert_eq!(environment.get("PMIX_RANK"), Some(OsStr::new("3")));
        let of_thread = |id| processes.process_of_thread(id).map(|it| it.pid);
        assert_eq!([10, 11, 12].map(of_thread), [None, Some(10), None]);
    }

    #[test]
    fn process_table_is_read_from_proc() {
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
