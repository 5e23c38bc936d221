//! A `prterun` is asked once only. Each tool that was ever connected stays a job in its books, and from the
//! second one on it does not end when the user's job does (Open MPI 5.0.11: 11 of 11 tries; after a
//! single one it ended in 16 of 16, whether that tool said goodbye or was killed).
//!
//! So what it said lies in its own session directory, which it removes when it ends: who comes next
//! reads that. A `prte` is made for tools and lives until it is told to end: it has no such file.

use sdm_text::printable_name;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::keeper;

/// The file's name.
const NAME: &str = "sdm-processes";
/// The last line of an answer.
pub(crate) const END: &str = "end\n";
/// What a session directory's name begins with: PRRTE's `prterun` started as `mpirun` (`ompi`), by its own name (`prtrn`
/// since PRRTE 3.0, `prterun` before), and `prte`.
const SESSIONS: [&str; 4] = ["ompi", "prtrn", "prterun", "prte"];
/// The longest answer that is believed, in bytes.
const BYTES_MAX: u64 = 256 << 20;

/// What is known before a server is asked.
pub(crate) enum Before {
    /// Its answer of an earlier time.
    Known(String),
    /// Nothing; its answer goes into the file, where there is one.
    Unknown(Option<File>),
}

/// Looks for an earlier answer; where there is none, nobody else may ask from now on.
pub(crate) fn look(server: i32) -> Result<Before> {
    let program = std::fs::read_link(format!("/proc/{server}/exe"));
    let program = program.with_context(|| format!("process {server}"))?;
    if program.file_name().is_none_or(|name| name != "prterun") {
        keeper::check_runs(server)?;
        return Ok(Before::Unknown(None));
    }
    let path = session_directory(server)?.join(NAME);
    if !path.exists() {
        keeper::check_runs(server)?;
    }
    let mut options = OpenOptions::new();
    match options.write(true).create_new(true).mode(0o600).open(&path) {
        Ok(file) => Ok(Before::Unknown(Some(file))),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(Before::Known(read(&path)?)),
        Err(error) => Err(error).with_context(|| format!("write {}", printable_name(&path))),
    }
}

fn read(path: &Path) -> Result<String> {
    let mut text = String::new();
    let file = File::open(path).with_context(|| format!("read {}", printable_name(path)))?;
    file.take(BYTES_MAX).read_to_string(&mut text)?;
    if !text.ends_with(END) {
        bail!(
            "prterun was asked before and has not answered; it is not asked again, as it would not end \
             after a second tool"
        );
    }
    Ok(text)
}

/// Keeps an answer.
pub(crate) fn keep(file: Option<File>, text: &str) -> Result<()> {
    match file {
        Some(mut file) => file.write_all(text.as_bytes()).context("keep the answer"),
        None => Ok(()),
    }
}

/// Where a server has its files: nobody else can write there.
fn session_directory(server: i32) -> Result<PathBuf> {
    let environment = std::fs::read(format!("/proc/{server}/environ"));
    let environment = environment.with_context(|| format!("process {server}"))?;
    let variable = |name: &str| {
        let mut pairs = environment.split(|byte| *byte == 0);
        let value =
            pairs.find_map(|pair| pair.strip_prefix(name.as_bytes())?.strip_prefix(b"="))?;
        Some(PathBuf::from(String::from_utf8_lossy(value).into_owned()))
    };
    let owner = std::fs::metadata(format!("/proc/{server}"))?.uid();
    let is_its_own = |path: &PathBuf| {
        let found = std::fs::symlink_metadata(path);
        found.is_ok_and(|it| it.is_dir() && it.uid() == owner && it.mode() & 0o022 == 0)
    };
    let folders = ["PMIX_SERVER_TMPDIR", "TMPDIR", "TEMP", "TMP"].into_iter();
    let mut folders = folders
        .filter_map(variable)
        .chain([PathBuf::from("/tmp")])
        .flat_map(|folder| SESSIONS.map(|it| folder.join(format!("{it}.{server}"))));
    let found = folders.find(is_its_own);
    found.context("the session directory of prterun is not known: it is not asked")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn the_session_directory_of_a_prterun_is_found_under_each_name() {
        let root = std::env::temp_dir().join(format!("sdm-pmix-once-{}", std::process::id()));
        std::fs::create_dir(&root).unwrap();
        // It lives until its input ends, with the environment that a server would have.
        let mut server = Command::new("cat")
            .env_clear()
            .env("TMPDIR", &root)
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let pid = server.id().cast_signed();
        let mut found = Vec::new();
        for name in ["ompi", "prtrn", "prterun", "prte"] {
            let folder = root.join(format!("{name}.{pid}"));
            std::fs::create_dir(&folder).unwrap();
            found.push((session_directory(pid).ok(), folder.clone()));
            std::fs::remove_dir(&folder).unwrap();
        }
        let none = session_directory(pid).is_err();
        drop(server.stdin.take());
        server.wait().unwrap();
        std::fs::remove_dir(&root).unwrap();
        assert!(none);
        for (got, folder) in found {
            assert_eq!(got, Some(folder));
        }
    }
}
