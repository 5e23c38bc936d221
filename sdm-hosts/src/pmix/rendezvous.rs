//! Rendezvous files, in which a PMIx server writes its address for tools.
//!
//! A file has five lines: `NAMESPACE.RANK;tcp4://IP:PORT` (or `tcp6://`), the library's version, the server's pid, its
//! user and group (`UID:GID`), and a date.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nix::libc::{O_NOFOLLOW, O_NONBLOCK};
use nix::unistd::geteuid;
use sdm_system::{files, proc, tcp_peer};
use sdm_text::{printable, printable_name};

use crate::job::has_pmix;

/// Prefix of the name of the system server's file; the host's name follows.
const SYSTEM: &str = "pmix.sys.";
/// Parts of the names of other servers' files: the prefix before the host's name, and the suffix after it.
const SESSION: &str = "pmix.";
const TOOL: &str = ".tool";
/// Prefixes of the names of servers' folders. The servers are PRRTE as `mpirun`, as `prte`, and as `prterun` (before
/// 3.0 and since), PMIx's own server, and that of SDM.
const FOLDERS: [&str; 6] = ["ompi.", "prte", "prtrn.", "pmix", "openpmix", "sdm-pmix-"];
/// Maximum depth of the search in a server's folder.
const DEPTH_MAX: usize = 3;
/// Maximum number of directory entries that a search reads, so that a large `/tmp` does not delay it.
const ENTRIES_MAX: usize = 1 << 16;
/// Maximum number of files that are read.
const FILES_MAX: usize = 4096;
/// Maximum accepted length of a file, in bytes.
const BYTES_MAX: u64 = 4096;
/// Number of attempts to find a server's socket.
const LOOKS_MAX: usize = 3;
/// Programs whose server crashes when a tool connects: those of Open MPI 4.
const HARMED: [&str; 2] = ["orterun", "orted"];

/// Reason for which the server of a file is rejected.
#[derive(Debug, thiserror::Error)]
pub enum RejectedFile {
    /// The file cannot be read.
    #[error("{0}")]
    Unread(io::Error),
    /// The path is a folder, a pipe or the like.
    #[error("not a regular file")]
    NoFile,
    /// The file belongs to another user.
    #[error("the file belongs to {0}")]
    Foreign(String),
    /// The file is not a rendezvous file.
    #[error("not a rendezvous file of a PMIx server")]
    NoServer,
    /// The server has ended.
    #[error("the PMIx server of this file, process {0}, has ended")]
    Ended(i32),
    /// The server of the rendezvous file belongs to another user.
    #[error("process {pid} belongs to {owner}")]
    ForeignProcess {
        /// The server's pid.
        pid: i32,
        /// Name of the process's owner.
        owner: String,
    },
    /// The server would crash when a tool connects: it belongs to Open MPI 4.
    #[error("{program} (pid {pid}) crashes when a tool connects")]
    Harmed {
        /// Name of the server's program.
        program: String,
        /// The server's pid.
        pid: i32,
    },
    /// The process has no libpmix. So the server has ended, and its pid now belongs to another process.
    #[error("process {0} has not loaded libpmix: the PMIx server of this file has ended")]
    NoLibrary(i32),
    /// The process has libpmix, but does not listen at the address. So the server has ended, and its pid now belongs to
    /// another process.
    #[error("process {0} does not listen at this address: the PMIx server of this file has ended")]
    NoListener(i32),
}

/// Scope of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// The machine's server.
    System,
    /// A server of an allocation or a job.
    Session,
}

/// A running server that belongs to this user and accepts tools.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rendezvous {
    /// The rendezvous file.
    pub file: PathBuf,
    /// Scope of the server.
    pub level: Level,
    /// The server's own namespace, as its file gives it.
    pub namespace: String,
    /// Address of the server, with namespace and rank.
    pub uri: String,
    /// The version of the server's library, as its file gives it.
    pub version: String,
    /// Pid of the server.
    pub pid: i32,
    /// Name of the program that the server runs.
    pub program: String,
}

impl Rendezvous {
    pub(super) fn has_address(&self, uri: &str) -> bool {
        let place = self.uri.split_once(';').map(|(_, place)| place);
        self.uri == uri || place == Some(uri)
    }
}

impl fmt::Display for Rendezvous {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let level = match self.level {
            Level::System => ", the system's",
            Level::Session => "",
        };
        let (program, namespace) = (
            printable(self.program.as_bytes()),
            printable(self.namespace.as_bytes()),
        );
        write!(f, "{program} (pid {}{level}) as {namespace}", self.pid)
    }
}

/// Folders in which servers of this user have their files.
pub(super) fn folders() -> Vec<PathBuf> {
    folders_of(|variable| std::env::var_os(variable))
}

/// The folders that the environment variables name, those for the files of PMIx servers first; then `/tmp` and
/// `/run/pmix`.
fn folders_of(variable: impl Fn(&str) -> Option<OsString>) -> Vec<PathBuf> {
    let named = [
        "PMIX_SYSTEM_TMPDIR",
        "PMIX_SERVER_TMPDIR",
        "TMPDIR",
        "TEMP",
        "TMP",
    ];
    let named = named.iter().filter_map(|name| variable(name));
    let named = named.map(PathBuf::from);
    let mut folders = Vec::new();
    for folder in named.chain([PathBuf::from("/tmp"), PathBuf::from("/run/pmix")]) {
        if folder.is_absolute() && !folders.contains(&folder) {
            folders.push(folder);
        }
    }
    folders
}

/// The servers with files in these folders, the system's first, each once. Also returns the reason for each rejected
/// server.
pub(super) fn find(folders: &[PathBuf]) -> (Vec<Rendezvous>, Vec<String>) {
    let mut search = Walk::default();
    for folder in folders {
        search.look(folder, 0);
    }
    let mut found: BTreeMap<(Level, i32), Rendezvous> = BTreeMap::new();
    let mut left = Vec::new();
    for file in search.files {
        match read(&file) {
            Ok(server) => {
                found.entry((server.level, server.pid)).or_insert(server);
            }
            Err(why) => left.push(format!("{}: {why}", printable_name(&file))),
        }
    }
    // A server with a file of each kind is the system's.
    let system: Vec<i32> = of_level(&found, Level::System);
    found.retain(|(level, pid), _| *level == Level::System || !system.contains(pid));
    (found.into_values().collect(), left)
}

fn of_level(found: &BTreeMap<(Level, i32), Rendezvous>, level: Level) -> Vec<i32> {
    let keys = found.keys().filter(|(it, _)| *it == level);
    keys.map(|(_, pid)| *pid).collect()
}

#[derive(Default)]
struct Walk {
    files: Vec<PathBuf>,
    entries: usize,
}

impl Walk {
    fn look(&mut self, folder: &Path, depth: usize) {
        let Ok(entries) = std::fs::read_dir(folder) else {
            return;
        };
        for entry in entries.flatten() {
            self.entries += 1;
            if self.entries > ENTRIES_MAX || self.files.len() >= FILES_MAX {
                return;
            }
            let name = entry.file_name();
            let (Some(name), Ok(kind)) = (name.to_str(), entry.file_type()) else {
                continue;
            };
            // Links are skipped: servers create none, and a link may lead anywhere.
            if kind.is_file() && level_of(name).is_some() {
                self.files.push(entry.path());
            } else if kind.is_dir() && depth < DEPTH_MAX {
                let is_ours = depth > 0 || FOLDERS.iter().any(|it| name.starts_with(it));
                // Folders of other users are not searched.
                let is_own = || {
                    entry
                        .metadata()
                        .is_ok_and(|it| it.uid() == geteuid().as_raw())
                };
                if is_ours && is_own() {
                    self.look(&entry.path(), depth + 1);
                }
            }
        }
    }
}

/// Scope of the server whose file has this name; `None` for other files.
fn level_of(name: &str) -> Option<Level> {
    if name
        .strip_prefix(SYSTEM)
        .is_some_and(|host| !host.is_empty())
    {
        return Some(Level::System);
    }
    let rest = name.strip_prefix(SESSION)?;
    rest.contains(TOOL).then_some(Level::Session)
}

/// The server that has written a rendezvous file.
///
/// # Errors
/// [`RejectedFile`]: the file cannot be read, belongs to another user, or is no rendezvous file. Or its server has
/// ended, belongs to another user, or would crash.
pub(super) fn read(file: &Path) -> Result<Rendezvous, RejectedFile> {
    let text = text_of(file)?;
    let name = file.file_name().and_then(|name| name.to_str());
    // A file that a person names may be called anything.
    let level = name.and_then(level_of).unwrap_or(Level::Session);
    let mut server = parse(&text).ok_or(RejectedFile::NoServer)?;
    server.level = level;
    file.clone_into(&mut server.file);
    check(&mut server)?;
    Ok(server)
}

fn text_of(file: &Path) -> Result<String, RejectedFile> {
    let mut options = OpenOptions::new();
    // Opening a FIFO would block.
    options.read(true).custom_flags(O_NOFOLLOW | O_NONBLOCK);
    let file: File = options.open(file).map_err(RejectedFile::Unread)?;
    let about = file.metadata().map_err(RejectedFile::Unread)?;
    let own = geteuid().as_raw();
    if !about.is_file() {
        return Err(RejectedFile::NoFile);
    }
    if about.uid() != own {
        return Err(RejectedFile::Foreign(files::user(about.uid())));
    }
    files::text_of(file, BYTES_MAX).map_err(RejectedFile::Unread)
}

/// Parses the lines of a file, without checking the server; `None` if they are malformed.
fn parse(text: &str) -> Option<Rendezvous> {
    let mut lines = text.lines();
    let uri = lines.next()?;
    let version = lines.next()?.trim_start_matches('v');
    let pid: i32 = lines.next()?.trim().parse().ok()?;
    let (who, place) = uri.split_once(';')?;
    let (namespace, rank) = who.rsplit_once('.')?;
    let is_place = place.starts_with("tcp4://") || place.starts_with("tcp6://");
    let fits = pid > 0 && !namespace.is_empty() && namespace.len() < 256 && is_place;
    (fits && rank.parse::<u32>().is_ok()).then(|| Rendezvous {
        file: PathBuf::new(),
        level: Level::Session,
        namespace: namespace.to_owned(),
        uri: uri.to_owned(),
        version: version.to_owned(),
        pid,
        program: String::new(),
    })
}

/// Checks that the process is a server of this user that accepts tools, and sets the name of its program.
fn check(server: &mut Rendezvous) -> Result<(), RejectedFile> {
    let pid = server.pid;
    let process = proc::of(pid);
    let status = process.status();
    let status = status.map_err(|_| RejectedFile::Ended(pid))?;
    let ids = status.ids("Uid").unwrap_or_default();
    let own = geteuid().as_raw();
    if ids.is_empty() || ids.iter().any(|id| *id != own) {
        let owner = ids.first().copied().unwrap_or_default();
        let owner = files::user(owner);
        return Err(RejectedFile::ForeignProcess { pid, owner });
    }
    let program = process.program().unwrap_or_default();
    let program = program.file_name().unwrap_or_default().to_string_lossy();
    if HARMED.contains(&&*program) {
        let program = program.into_owned();
        return Err(RejectedFile::Harmed { program, pid });
    }
    // Its number may be another's by now.
    if !has_pmix(&process, pid) {
        return Err(RejectedFile::NoLibrary(pid));
    }
    if !listens(&process, &server.uri) {
        return Err(RejectedFile::NoListener(pid));
    }
    server.program = program.into_owned();
    Ok(())
}

/// True if a process listens at the port of an address, or if this cannot be found out.
fn listens(process: &proc::Process, uri: &str) -> bool {
    let port = uri.rsplit_once(':').map(|(_, port)| port.parse());
    let (Some(Ok(port)), Ok(descriptors)) = (port, process.descriptors()) else {
        return true;
    };
    let numbers = descriptors.filter_map(|number| u64::try_from(number).ok());
    let own: BTreeSet<u64> = numbers.filter_map(|it| process.socket(it)).collect();
    let look = || {
        let tables = tcp_peer::tables(process);
        let mut all = tables.iter().flat_map(|it| tcp_peer::listeners(it, port));
        all.any(|it| own.contains(&it))
    };
    // The kernel leaves rows out where sockets come and go meanwhile.
    (0..LOOKS_MAX).any(|_| look())
}

/// Feeds arbitrary text to the reader of rendezvous files.
pub fn fuzz_rendezvous(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    if let Some(server) = parse(&text) {
        assert!(server.pid > 0 && server.has_address(&server.uri));
        assert!(!server.to_string().contains('\n'));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(pid: i32) -> String {
        format!("prterun-h-{pid}@0.0;tcp4://127.0.0.1:4\n5.0.11rc1\n{pid}\n0:0\nMon\n\n")
    }

    #[test]
    fn pmix_server_folders_follow_environment_variables() {
        let set = [
            ("PMIX_SERVER_TMPDIR", "/scratch/job"),
            ("PMIX_SYSTEM_TMPDIR", "/var/run/rm"),
            ("TMPDIR", "/scratch/job"),
            ("TMP", "relative"),
        ];
        let folders = folders_of(|name| {
            let value = set.iter().find(|(known, _)| *known == name);
            value.map(|(_, value)| value.into())
        });
        let expected = ["/var/run/rm", "/scratch/job", "/tmp", "/run/pmix"];
        assert_eq!(folders, expected.map(PathBuf::from));
    }

    #[test]
    fn only_wellformed_rendezvous_files_are_read() {
        let server = parse(&text(7)).unwrap();
        assert_eq!((server.pid, &*server.namespace), (7, "prterun-h-7@0"));
        assert_eq!(server.version, "5.0.11rc1");
        for wrong in [
            "",
            "a",
            "a.0;tcp4://x\n5\n0\n",
            "a.0;file:/x\n5\n7\n",
            "a;tcp4://x\n5\n7\n",
        ] {
            assert!(parse(wrong).is_none(), "{wrong:?}");
        }
        fuzz_rendezvous(text(7).as_bytes());
    }

    #[test]
    fn process_not_listening_at_the_address_is_no_server() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let own = proc::own();
        assert!(listens(&own, &format!("tcp4://127.0.0.1:{port}")));
        let theirs = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
        let other = theirs.local_addr().unwrap().port();
        assert!(!listens(&own, &format!("tcp4://127.0.0.1:{other}")));
    }

    #[test]
    fn stale_rendezvous_files_are_skipped_and_reported() {
        let root = std::env::temp_dir().join(format!("sdm-rendezvous-{}", std::process::id()));
        let folder = root.join("prtrn.1/0");
        std::fs::create_dir_all(&folder).unwrap();
        let mut ended = std::process::Command::new("true").spawn().unwrap();
        let dead = ended.id().cast_signed();
        ended.wait().unwrap();
        let own = std::process::id().cast_signed();
        std::fs::write(folder.join("pmix.h.tool"), text(dead)).unwrap();
        std::fs::write(root.join("pmix.sys.h"), text(own)).unwrap();
        std::fs::write(root.join("pmix.h.tool.7"), "nothing").unwrap();
        std::fs::write(root.join("other"), text(own)).unwrap();
        std::os::unix::fs::symlink(root.join("other"), root.join("pmix.x.tool")).unwrap();
        let (found, left) = find(std::slice::from_ref(&root));
        std::fs::remove_dir_all(&root).unwrap();
        assert_eq!(found, []);
        let left = left.join("\n");
        for part in [
            format!("process {dead}, has ended"),
            format!("process {own} has not loaded libpmix"),
            "not a rendezvous file of a PMIx server".to_owned(),
        ] {
            assert!(left.contains(&part), "no {part:?} in {left}");
        }
        assert!(!left.contains("pmix.x.tool"), "{left}");
    }
}
