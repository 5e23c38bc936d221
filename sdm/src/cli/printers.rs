//! The option `--printers`: pretty printers that gdb loads although other users can write to them.

use clap::Args;
use sdm_debug::{BackendSettings, GdbOptions};

use super::ValueError;

/// The pretty printers to load.
#[derive(Clone, Debug, Default, Args)]
pub struct PrinterArgs {
    /// Trust gdb pretty printers in this folder or script, even if users other than you and root can write there.
    /// Scripts of a folder are loaded with the libraries they belong to. Can be repeated.
    #[arg(long = "printers", value_name = "PATH", value_parser = checked, help_heading = "gdb")]
    paths: Vec<String>,
}

impl PrinterArgs {
    /// The backend settings for the servers, with these printers and otherwise the default gdb options.
    #[must_use]
    pub fn backend(&self) -> BackendSettings {
        let settings = self.settings().collect();
        backend(GdbOptions {
            settings,
            ..GdbOptions::default()
        })
    }

    /// The commands for every gdb.
    pub(super) fn settings(&self) -> impl Iterator<Item = String> {
        self.paths.iter().map(|path| line(path))
    }
}

/// The backend settings with these gdb options. Default options give the plain [`BackendSettings::Gdb`].
pub(super) fn backend(options: GdbOptions) -> BackendSettings {
    if options == GdbOptions::default() {
        BackendSettings::Gdb
    } else {
        BackendSettings::GdbWith(options)
    }
}

/// Checks that a path names the same place for gdb on every host: it begins with `/` or `~/`, and gdb accepts its
/// characters.
fn checked(path: &str) -> Result<String, ValueError> {
    if !path.starts_with('/') && !path.starts_with("~/") {
        let what = "the path must begin with / or ~/, because every host of the job reads it";
        return Err(ValueError::Wrong(what));
    }
    if path.contains([':', '$', '*', '?', '[', '\\']) || path.contains(char::is_control) {
        let what = "gdb cannot take this path in a list of folders: it contains one of : $ * ? [ \\ or a control character";
        return Err(ValueError::Wrong(what));
    }
    Ok(path.to_owned())
}

/// The gdb command for a path. A script named after its library is loaded together with the library.
fn line(path: &str) -> String {
    let is_script = [".py", ".gdb"].iter().any(|end| path.ends_with(end));
    let is_beside = ["-gdb.py", "-gdb.gdb"]
        .iter()
        .any(|end| path.ends_with(end));
    match is_script && !is_beside {
        true => format!("source {path}"),
        false => format!("add-auto-load-safe-path {path}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printers_option_takes_folders_and_scripts() {
        for (path, expect) in [
            ("/sw/gcc", "add-auto-load-safe-path /sw/gcc"),
            (
                "~/lib/libx.so-gdb.py",
                "add-auto-load-safe-path ~/lib/libx.so-gdb.py",
            ),
            ("/sw/a b/printers.py", "source /sw/a b/printers.py"),
            ("/sw/x.gdb", "source /sw/x.gdb"),
        ] {
            let path = checked(path).unwrap();
            assert_eq!(line(&path), expect);
        }
        for bad in [
            "printers.py",
            "",
            "/a:/b",
            "/a\nshell ls",
            "/$debugdir",
            "/*",
        ] {
            assert!(checked(bad).is_err(), "{bad:?}");
        }
    }
}
