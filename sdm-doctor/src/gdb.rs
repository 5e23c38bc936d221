//! gdb: its version, other installed gdbs, and its abilities on this machine.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

use sdm_system::run_bounded::{self, Bounds};
use sdm_system::{files, programs};
use sdm_text::{printable, printable_name};

use crate::{Check, Finding};

/// The oldest supported major version of gdb, with which all functions of SDM were tested.
pub const OLDEST: u32 = 10;
/// The first major version of gdb that asks the processor for the size of its register state.
pub const FIRST_WITH_ALL_REGISTERS: u32 = 14;
/// Time that a gdb has to print its version.
const VERSION_WAIT: Duration = Duration::from_secs(5);
/// Time that a trial may take.
const TRIAL_WAIT: Duration = Duration::from_secs(60);
/// Maximum number of other gdbs that are found in folders, and also of those that are found as environment modules.
const CANDIDATES_MAX: usize = 8;
/// Maximum number of entries of a directory that are examined.
const ENTRIES_MAX: usize = 1000;
/// Directories below the root in which gdbs may be installed; `*` stands for any name.
const PLACES: [&str; 7] = [
    "usr/bin",
    "usr/local/bin",
    "opt/rh/*/root/usr/bin",
    "opt/*/bin",
    "opt/*/*/bin",
    "usr/local/*/bin",
    "usr/libexec/gdb",
];

/// The version of a gdb.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    /// The major number: 13 of `13.1`.
    pub major: u32,
    /// The whole version: `13.1`, `10.2-13.el9`.
    pub text: String,
}

impl Version {
    /// The version in gdb's output: the last word of the line with its name, after any additions of a distribution.
    /// `None` if the output has no version.
    #[must_use]
    pub fn printed(text: &str) -> Option<Self> {
        let line = text.lines().find(|line| line.starts_with("GNU gdb "))?;
        let word = line.split_ascii_whitespace().last()?;
        let major = word.split('.').next()?.parse().ok()?;
        Some(Self {
            major,
            text: printable(word.as_bytes()),
        })
    }

    /// True if the version is older than the oldest supported one.
    #[must_use]
    pub fn is_too_old(&self) -> bool {
        self.major < OLDEST
    }
}

/// Another gdb that the user can choose, and the way to get it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// A path, or a command that loads an environment module.
    pub how: String,
    /// The version; `None` if it is unknown.
    pub version: Option<Version>,
}

/// The files and folders in which gdbs are searched.
#[derive(Clone, Debug)]
pub struct Places {
    /// Prefix of each system path; `/` except in tests.
    pub root: PathBuf,
    /// The folders to search for gdbs, as in `PATH`.
    pub path: OsString,
    /// The folders to search for modulefiles, as in `MODULEPATH`.
    pub modules: OsString,
}

impl Places {
    /// The search folders of this machine and this environment.
    #[must_use]
    pub fn here() -> Self {
        Self {
            root: PathBuf::from("/"),
            path: files::search_path(),
            modules: std::env::var_os("MODULEPATH").unwrap_or_default(),
        }
    }

    /// The installed gdbs that are not too old, except the one at `but`, each once; then those of environment modules.
    #[must_use]
    pub fn candidates(&self, but: &Path) -> Vec<Candidate> {
        let mut folders: Vec<PathBuf> = std::env::split_paths(&self.path).collect();
        for place in PLACES {
            folders.extend(expanded(&self.root, place));
        }
        let real = |path: &Path| path.canonicalize().ok();
        let mut seen: Vec<PathBuf> = real(but).into_iter().collect();
        let mut found = Vec::new();
        for folder in folders {
            for name in names_of(&folder) {
                let path = folder.join(name);
                let Some(target) = real(&path).filter(|it| !seen.contains(it)) else {
                    continue;
                };
                seen.push(target);
                // The user has not named this gdb, so it is not run if it belongs to another user.
                if found.len() < CANDIDATES_MAX
                    && files::open_own(&path).is_ok()
                    && let Some(version) = version_of(&path).filter(|it| !it.is_too_old())
                {
                    let how = printable_name(&path);
                    found.push(Candidate {
                        how,
                        version: Some(version),
                    });
                }
            }
        }
        found.extend(self.modules());
        found
    }

    /// The gdbs that the environment modules in `MODULEPATH` provide: a module `gdb` of a supported version.
    fn modules(&self) -> Vec<Candidate> {
        let mut found: Vec<Candidate> = Vec::new();
        for folder in std::env::split_paths(&self.modules) {
            for entry in entries(&folder.join("gdb")) {
                let name = entry.to_string_lossy();
                let name = name.strip_suffix(".lua").unwrap_or(&name);
                let major = name.split('.').next().and_then(|it| it.parse().ok());
                let Some(major) = major.filter(|major| *major >= OLDEST) else {
                    continue;
                };
                let text = printable(name.as_bytes());
                found.push(Candidate {
                    how: format!("module load gdb/{text}"),
                    version: Some(Version { major, text }),
                });
            }
        }
        found.truncate(CANDIDATES_MAX);
        found
    }
}

/// Advice for an unusable gdb: use one of the others, or install one.
#[must_use]
pub fn other(candidates: &[Candidate]) -> String {
    let listed: Vec<String> = candidates
        .iter()
        .map(|it| match &it.version {
            Some(version) if !it.how.ends_with(&version.text) => {
                format!("{} ({})", it.how, version.text)
            }
            _ => it.how.clone(),
        })
        .collect();
    if listed.is_empty() {
        return format!(
            "install gdb {OLDEST} or later, and select it by --gdb (none was found in /opt, in toolsets or modules)"
        );
    }
    format!(
        "select another by --gdb, or load its module; installed here: {}",
        listed.join(", ")
    )
}

/// The text of the refusal of a gdb with this version.
#[must_use]
pub fn too_old(version: &str) -> String {
    format!("gdb {version} is too old: gdb {OLDEST} or later is required")
}

/// The version of the gdb at a path; `None` if it prints none.
#[must_use]
pub fn version_of(path: &Path) -> Option<Version> {
    let said = asked(path, &["--version"], VERSION_WAIT).ok()?;
    Version::printed(&said)
}

/// The findings about gdb: whether a suitable gdb is installed, and its abilities on this machine. `named` is a path or
/// a name; `gdb` if `None`.
#[must_use]
pub fn findings(named: Option<&Path>, places: &Places) -> Vec<Finding> {
    let check = Check::Gdb;
    let name = named.unwrap_or(Path::new("gdb"));
    let found = match name.as_os_str().as_bytes().contains(&b'/') {
        true => Some(name.to_owned()).filter(|it| files::is_program(it)),
        false => files::search(name),
    };
    let shown = printable_name(name);
    let Some(path) = found else {
        let remedy = other(&places.candidates(name));
        return vec![Finding::bad(
            check,
            format!("{shown}: no such gdb on this host"),
            remedy,
        )];
    };
    let shown = printable_name(&path);
    let Some(version) = version_of(&path) else {
        let remedy = other(&places.candidates(&path));
        let text = format!("{shown} does not identify itself as gdb");
        return vec![Finding::bad(check, text, remedy)];
    };
    if version.is_too_old() {
        let remedy = other(&places.candidates(&path));
        let text = format!("{shown}: {}", too_old(&version.text));
        return vec![Finding::bad(check, text, remedy)];
    }
    let mut findings = vec![Finding::good(
        check,
        format!("gdb {} is {shown}", version.text),
    )];
    match Trial::new(&path) {
        Ok(trial) => findings.extend(trial.findings(&version)),
        Err(error) => findings.push(Finding::unknown(
            Check::Attach,
            format!("gdb cannot be tested: {error}"),
            "see the checks `processes` and `memory`",
        )),
    }
    findings
}

/// The whole output of a gdb.
fn asked(path: &Path, words: &[&str], wait: Duration) -> io::Result<String> {
    let mut command = programs::helper_at(path);
    command.args(words).env("LC_ALL", "C");
    files::shut_python(&mut command);
    let lines_max = 10_000;
    let said = run_bounded::run(&mut command, b"", Bounds { wait, lines_max })?;
    let mut text = said.lines.join("\n");
    text.push('\n');
    text.push_str(&said.complaints.join("\n"));
    Ok(text)
}

/// The existing directories that match a pattern below `root`, in which `*` stands for any name.
fn expanded(root: &Path, place: &str) -> Vec<PathBuf> {
    let mut folders = vec![root.to_owned()];
    for part in place.split('/') {
        folders = folders
            .iter()
            .flat_map(|folder| match part {
                "*" => entries(folder).iter().map(|it| folder.join(it)).collect(),
                part => vec![folder.join(part)],
            })
            .filter(|folder| folder.is_dir())
            .take(ENTRIES_MAX)
            .collect();
    }
    folders
}

/// The names in a folder, sorted.
fn entries(folder: &Path) -> Vec<OsString> {
    let found = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<OsString> = found
        .take(ENTRIES_MAX)
        .map(|entry| entry.file_name())
        .collect();
    names.sort_unstable();
    names
}

/// The names of the gdbs in a folder, such as `gdb`, `gdb-14`, `gdb14`.
fn names_of(folder: &Path) -> Vec<OsString> {
    let is_gdb = |name: &OsString| {
        let rest = name.as_bytes().strip_prefix(b"gdb");
        rest.is_some_and(|rest| {
            rest.iter()
                .all(|byte| byte.is_ascii_digit() || b".-".contains(byte))
        })
    };
    entries(folder).into_iter().filter(is_gdb).collect()
}

/// A gdb, tried on a process started for the purpose.
#[derive(Debug)]
pub struct Trial {
    path: PathBuf,
    said: String,
}

impl Trial {
    /// Has gdb attach to a waiting process, and examine it.
    ///
    /// # Errors
    /// The process, or gdb, cannot be started, or takes too long.
    pub fn new(path: &Path) -> io::Result<Self> {
        let mut waiting = Waiting::start()?;
        let pid = waiting.0.id().to_string();
        let words = [
            "-nx",
            "-batch",
            "-iex",
            "set debuginfod enabled off",
            "-iex",
            "set auto-load off",
            "-ex",
            "python print('sdm-python', 1)",
            "-p",
            &pid,
            "-ex",
            "printf \"sdm-attached %d\\n\", $pc != 0",
            "-ex",
            "printf \"sdm-called %d\\n\", ((int (*) (void)) getpid) ()",
        ];
        let said = asked(path, &words, TRIAL_WAIT);
        waiting.end();
        Ok(Self {
            path: path.to_owned(),
            said: said?,
        })
    }

    /// The results of the trial: whether gdb can attach, has Python, and can write registers.
    #[must_use]
    pub fn findings(&self, version: &Version) -> Vec<Finding> {
        vec![self.python(), self.registers(version), self.attach()]
    }

    fn has(&self, line: &str) -> bool {
        self.said.lines().any(|it| it.trim() == line)
    }

    /// The first line of gdb's output that contains one of these texts; `None` if no line does.
    fn complaint(&self, parts: &[&str]) -> Option<String> {
        let mut lines = self.said.lines();
        let line = lines.find(|line| parts.iter().any(|part| line.contains(part)))?;
        Some(printable(line.trim().as_bytes()))
    }

    fn attach(&self) -> Finding {
        let check = Check::Attach;
        if self.has("sdm-attached 1") {
            return Finding::good(check, "gdb can attach to your processes");
        }
        let why = self.complaint(&["ptrace", "attach", "ermission", "permitted"]);
        let why = why.unwrap_or_else(|| "gdb gave no reason".to_owned());
        Finding::bad(
            check,
            format!("gdb cannot attach to your processes: {why}"),
            "see the check `ptrace-scope`; in a container, allow ptrace (--cap-add SYS_PTRACE, or a seccomp profile with it); programs that `sdm run` starts may still be debugged",
        )
    }

    fn python(&self) -> Finding {
        let check = Check::GdbPython;
        if self.has("sdm-python 1") {
            return Finding::good(check, "this gdb has Python support");
        }
        Finding::bad(
            check,
            "this gdb has no Python support",
            "pretty printers and gdb scripts of libraries are not loaded, everything else works; install the full gdb (not gdb-minimal), or select another with --gdb",
        )
    }

    fn registers(&self, version: &Version) -> Finding {
        let check = Check::GdbRegisters;
        if self.said.lines().any(|it| it.starts_with("sdm-called ")) {
            return Finding::good(check, "this gdb can write the registers of this processor");
        }
        if self.complaint(&["extended state"]).is_none() {
            let text = "register writes could not be tested, because gdb could not call a function of a process";
            return Finding::unknown(check, text, "see attach");
        }
        let first = FIRST_WITH_ALL_REGISTERS;
        let version = &version.text;
        if loads_libraries(&self.path) {
            let text = format!(
                "gdb {version} by itself cannot write all registers of this processor; sdm-server completes what \
                 it writes (gdb {first} and later need no help)"
            );
            return Finding::good(check, text);
        }
        Finding::bad(
            check,
            format!(
                "gdb {version} cannot write registers on this processor, and cannot load SDM's library that writes them"
            ),
            format!(
                "sdm refuses function calls and `return`: use gdb {first} or later (--gdb PATH)"
            ),
        )
    }
}

/// True if a program is linked dynamically and not privileged, so that the dynamic linker respects its environment. A
/// file that is not ELF is taken for a wrapper script.
fn loads_libraries(path: &Path) -> bool {
    let Ok(mut file) = files::open(path) else {
        return true;
    };
    let privileged = file.metadata().is_ok_and(|it| it.mode() & 0o6000 != 0);
    let mut head = Vec::new();
    let read = file.by_ref().take(64 << 10).read_to_end(&mut head);
    if read.is_err() || !head.starts_with(b"\x7fELF\x02\x01") {
        return !privileged;
    }
    let number = |at: usize, bytes: usize| {
        let field = head.get(at..at + bytes)?;
        let value = field
            .iter()
            .rev()
            .fold(0_u64, |sum, byte| sum << 8 | u64::from(*byte));
        usize::try_from(value).ok()
    };
    // e_phoff, e_phentsize and e_phnum. A program header of type 3 names the dynamic linker.
    let (Some(first), Some(bytes), Some(count)) = (number(32, 8), number(54, 2), number(56, 2))
    else {
        return !privileged;
    };
    let is_linker = |index: usize| number(first.saturating_add(index * bytes), 4) == Some(3);
    !privileged && (0..count).any(is_linker)
}

/// A process that runs until its input ends.
pub(crate) struct Waiting(Child);

impl Waiting {
    pub(crate) fn start() -> io::Result<Self> {
        let mut command = programs::helper("cat")?;
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command.spawn().map(Self)
    }

    pub(crate) fn pid(&self) -> i32 {
        self.0.id().cast_signed()
    }

    pub(crate) fn end(&mut self) {
        drop(self.0.stdin.take());
        // The process may have ended with gdb.
        let _ = self.0.wait();
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(test)]
pub(crate) mod tests;
