//! The file `pmix.sys.HOST`, by which tools find this server as the system server of its node.
//!
//! libpmix would overwrite any file of that name, and would follow a planted symbolic link. So it writes into the
//! server's own folder, and the file is hard-linked to the place where tools look; the kernel refuses that where the
//! name is taken.

use std::fs;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use nix::unistd::{gethostname, getpid};
use sdm_hosts::pmix::{RejectedFile, server_of};
use sdm_system::files::create_new;
use sdm_text::printable_name;

/// Beginning of the file's name; the host's name follows.
const PREFIX: &str = "pmix.sys.";
/// Environment variables with the file's folder, in the order in which libpmix looks.
const FOLDERS: [&str; 4] = ["PMIX_SYSTEM_TMPDIR", "TMPDIR", "TEMP", "TMP"];
/// Number of attempts to take a name that other processes may take and free meanwhile.
const TRIES: usize = 3;

/// The published file. Drop removes it, if it is still the same file.
pub(super) struct SystemFile {
    path: PathBuf,
    text: Vec<u8>,
}

impl SystemFile {
    /// Publishes libpmix's connection file in `folder` under the path where tools look for this node's server.
    ///
    /// # Errors
    /// The node already has a server, or the file cannot be written; the error's text is for the user. A file of
    /// another user stays.
    pub(super) fn publish(folder: &Path) -> Result<Self> {
        let host = gethostname().context("cannot get the name of this host")?;
        let named = FOLDERS.iter().find_map(std::env::var_os);
        let place = named.map_or_else(|| PathBuf::from("/tmp"), PathBuf::from);
        let mut name = std::ffi::OsString::from(PREFIX);
        name.push(host);
        let path = place.join(name);
        let text = fs::read(written(folder)?)
            .context("cannot read the rendezvous file of the PMIx library")?;
        // It becomes visible whole or not at all.
        let new = place.join(format!("sdm-{PREFIX}{}", getpid()));
        let made = create_new(&new).and_then(|mut file| file.write_all(&text));
        let linked = made
            .with_context(|| format!("cannot write {}", printable_name(&new)))
            .and_then(|()| link(&new, &path));
        let _ = fs::remove_file(&new);
        linked?;
        Ok(Self { path, text })
    }
}

impl Drop for SystemFile {
    fn drop(&mut self) {
        // Another process may have replaced the file, believing it stale.
        if fs::read(&self.path).is_ok_and(|text| text == self.text) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// The address of the server whose rendezvous file is in a folder: `NAMESPACE.RANK;tcp4://IP:PORT`.
pub(super) fn address_in(folder: &Path) -> Option<String> {
    let paths = fs::read_dir(folder).ok()?.flatten().map(|it| it.path());
    let first = |path: PathBuf| {
        let text = fs::read_to_string(path).ok()?;
        let line = text.lines().next()?;
        line.contains(";tcp").then(|| line.to_owned())
    };
    paths.filter_map(first).next()
}

/// The file that libpmix has written.
fn written(folder: &Path) -> Result<PathBuf> {
    let entries = fs::read_dir(folder).context("cannot read the folder of the PMIx library")?;
    let mut names = entries.flatten().map(|entry| entry.path());
    let is_it = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name.starts_with(PREFIX))
    };
    names
        .find(is_it)
        .context("the PMIx library has not written the rendezvous file of a system server")
}

fn link(new: &Path, path: &Path) -> Result<()> {
    for _ in 0..TRIES {
        match fs::hard_link(new, path) {
            Ok(()) => return Ok(()),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => remove_stale(path)?,
            Err(error) => return Err(error).with_context(|| printable_name(path)),
        }
    }
    bail!(
        "{}: another process keeps recreating the file",
        printable_name(path)
    )
}

/// Removes a file whose server has ended.
fn remove_stale(path: &Path) -> Result<()> {
    match server_of(path) {
        Ok(server) => bail!("the node already has a system server: {server}"),
        Err(RejectedFile::Ended(_) | RejectedFile::NoLibrary(_)) => {
            let removed = fs::remove_file(path);
            removed.with_context(|| {
                format!(
                    "cannot remove {}, the rendezvous file of a dead server",
                    printable_name(path)
                )
            })
        }
        // The file was removed just now.
        Err(RejectedFile::Unread(error)) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(why) => bail!("{}: {why}", printable_name(path)),
    }
}
