//! The library with which gdb writes registers that it does not know (see `sdm-xstate`), and the conditions for its
//! use.
//!
//! It is embedded in this program, and is given to gdb as a memory file that gdb inherits. So there is nothing to
//! install or to copy beside a server, nobody can replace it, and it cannot be changed once sealed. The library hides
//! the file from programs that gdb starts; gdb restores `LD_PRELOAD`.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::process::Command;
use std::str::FromStr;

use nix::fcntl::{FcntlArg, SealFlag, fcntl};
use nix::sys::memfd::{MFdFlags, memfd_create};
use sdm_system::proc;

use crate::sys::out_of_the_way;

/// The shared library; empty on architectures without such registers.
static LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/xstate.so"));

/// Name of the memory file. `/proc/PID/maps` of a gdb that has loaded the library shows it.
const NAME: &str = "sdm-xstate";

/// The environment variable that names the libraries to preload into a program.
const VARIABLE: &str = "LD_PRELOAD";

/// The variable with the users whose files an attached gdb may read, besides root and the user himself.
const OWNERS: &str = "SDM_GDB_OWNERS";

/// Bytes of registers that a gdb before 14 knows.
const KNOWN_BYTES: u32 = 2696;

/// Condition for preloading the library with which gdb writes registers that it does not know. A gdb older than 14
/// needs the library on processors with more registers than such a gdb knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Completion {
    /// If the processor has more registers than such a gdb knows, and for a gdb that attaches.
    #[default]
    Auto,
    /// Always: the library has no effect if it is not needed.
    Always,
    /// Never: commands are refused if they need writes of registers that gdb cannot make.
    Never,
}

/// A word that names no [`Completion`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownCompletion(String);

impl fmt::Display for UnknownCompletion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: expected auto, always or never", self.0)
    }
}

impl std::error::Error for UnknownCompletion {}

impl FromStr for Completion {
    type Err = UnknownCompletion;

    fn from_str(text: &str) -> Result<Self, UnknownCompletion> {
        match text {
            "auto" => Ok(Self::Auto),
            "always" => Ok(Self::Always),
            "never" => Ok(Self::Never),
            _ => Err(UnknownCompletion(text.to_owned())),
        }
    }
}

impl Completion {
    /// True if a gdb older than 14 fails to write registers here unless it has loaded the library; always true for
    /// `Always`.
    pub fn is_needed(self) -> bool {
        self == Self::Always || crate::sys::register_bytes() > KNOWN_BYTES
    }

    /// The library for a gdb that needs it: for registers, or because it attaches. `None` if it is not needed, not
    /// permitted, or not available. A warning is logged only if its memory file cannot be made.
    pub fn preload(self, attaches: bool) -> Option<Preload> {
        let is_wanted = self.is_needed() || attaches;
        if self == Self::Never || !is_wanted || LIBRARY.is_empty() {
            return None;
        }
        Preload::new()
            .inspect_err(|error| {
                tracing::warn!(
                    "cannot preload sdm-xstate, with which gdb writes registers: {error}"
                )
            })
            .ok()
    }
}

/// The library in a memory file that a gdb can inherit.
pub struct Preload {
    file: OwnedFd,
}

impl Preload {
    fn new() -> io::Result<Self> {
        let flags = MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING;
        let mut file = std::fs::File::from(memfd_create(NAME, flags)?);
        file.write_all(LIBRARY)?;
        fcntl(&file, FcntlArg::F_ADD_SEALS(SealFlag::all()))?;
        let file = out_of_the_way(file.into());
        Ok(Self { file })
    }

    /// The environment variable for a gdb that attaches to processes: it may open files of these users.
    pub fn guarding(owners: impl IntoIterator<Item = u32>) -> (OsString, Option<OsString>) {
        let owners: Vec<String> = owners.into_iter().map(|it| it.to_string()).collect();
        (OWNERS.into(), Some(owners.join(",").into()))
    }

    /// Makes a gdb load the library, followed by the user's own preloads.
    pub fn load_into(&self, command: &mut Command) {
        let user = std::env::var_os(VARIABLE);
        let mut names = OsString::from(format!("/proc/self/fd/{}", self.file.as_raw_fd()));
        if let Some(user) = &user {
            names.push(" ");
            names.push(user);
        }
        command.env(VARIABLE, names);
        // The user's own settings precede this one.
        command.args(["-iex".into(), restoring(user.as_deref())]);
        sdm_system::hand_on(command, &self.file);
    }
}

/// gdb's setting by which programs get the user's own `LD_PRELOAD`.
fn restoring(user: Option<&OsStr>) -> OsString {
    match user {
        Some(value) if !is_changed_by_gdb(VARIABLE.as_ref(), value) => {
            let mut setting = OsString::from(format!("set environment {VARIABLE}="));
            setting.push(value);
            setting
        }
        _ => format!("unset environment {VARIABLE}").into(),
    }
}

/// True for an `LD_PRELOAD` that gdb cannot set to exactly this value: one that is empty, has blanks at an end (gdb
/// strips them), or has control characters.
pub(super) fn is_changed_by_gdb(name: &OsStr, value: &OsStr) -> bool {
    let value = value.as_bytes();
    let is_odd =
        value.is_empty() || value.trim_ascii() != value || value.iter().any(u8::is_ascii_control);
    name == VARIABLE && is_odd
}

/// True if the process has loaded the library; false also if its mappings may not be read.
pub fn is_loaded(pid: i32) -> bool {
    let name = format!("/memfd:{NAME} ");
    let is_it = |it: &proc::Mapping| it.name.as_bytes().starts_with(name.as_bytes());
    proc::of(pid)
        .maps()
        .is_ok_and(|maps| maps.iter().any(is_it))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn xstate_setting_auto_always_or_never_is_parsed() {
        assert_eq!("auto".parse(), Ok(Completion::Auto));
        assert_eq!("always".parse(), Ok(Completion::Always));
        assert_eq!("never".parse(), Ok(Completion::Never));
        let wrong: Result<Completion, _> = "yes".parse();
        let wrong = wrong.unwrap_err().to_string();
        assert_eq!(wrong, "\"yes\": expected auto, always or never");
        assert!(Completion::Never.preload(true).is_none());
    }

    #[test]
    fn user_ld_preload_is_restored() {
        let check = |user: Option<&str>, expect: &str| {
            assert_eq!(restoring(user.map(OsStr::new)), expect, "{user:?}");
        };
        check(None, "unset environment LD_PRELOAD");
        check(
            Some("liba.so b.so"),
            "set environment LD_PRELOAD=liba.so b.so",
        );
        check(Some("a=b:c"), "set environment LD_PRELOAD=a=b:c");
        for odd in ["", " a", "a ", "a\nb"] {
            check(Some(odd), "unset environment LD_PRELOAD");
            assert!(is_changed_by_gdb("LD_PRELOAD".as_ref(), odd.as_ref()));
            assert!(!is_changed_by_gdb("PATH".as_ref(), odd.as_ref()));
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn preloaded_library_is_sealed_and_loaded_by_children() {
        let preload = Completion::Always.preload(false).unwrap();
        let run = |shell: &str| {
            let mut command = Command::new("/bin/sh");
            command.args(["-c", shell, "sh"]);
            preload.load_into(&mut command);
            let output = command.output().unwrap();
            assert_eq!(String::from_utf8_lossy(&output.stderr), "");
            String::from_utf8_lossy(&output.stdout).into_owned()
        };
        // Programs that a wrapper of gdb starts can load the library too.
        let maps = run("grep -c sdm-xstate /proc/self/maps; echo");
        assert_ne!(maps.trim(), "0");
        let fd = preload.file.as_raw_fd();
        assert!(fd >= crate::sys::HANDED_FD_FIRST);
        let again = io::Write::write(&mut std::fs::File::from(preload.file), b"x");
        assert!(again.is_err(), "it is sealed");
    }
}
