//! The directory where `sdm` itself runs: `pwd`, `cd`.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use sdm_session::Debug;
use sdm_view::item::Item;

use super::{Shell, Verdict};
use crate::commands::Outside;

impl<D: Debug> Shell<D> {
    pub(super) fn outside(&mut self, command: &Outside) -> Verdict {
        match command {
            Outside::WhereAmI => match std::env::current_dir() {
                Ok(folder) => {
                    let folder = folder.display();
                    self.show(&Item::Text(format!("Working directory {folder}.")));
                    Verdict::Done
                }
                Err(error) => self.complain(format!("pwd: {error}"), ""),
            },
            Outside::GoTo(folder) => self.go_to(folder),
        }
    }

    /// `cd [DIR]`: for files that commands name, and for the next `run`.
    fn go_to(&mut self, folder: &str) -> Verdict {
        let home = || std::env::var_os("HOME").unwrap_or_else(|| "/".into());
        let folder = match folder.strip_prefix('~') {
            _ if folder.is_empty() => home(),
            Some(rest) if rest.is_empty() || rest.starts_with('/') => {
                let mut path = home();
                path.push(rest);
                path
            }
            _ => OsString::from(folder),
        };
        let before = std::env::current_dir();
        if let Err(error) = std::env::set_current_dir(&folder) {
            return self.complain(format!("{}: {error}", folder.display()), "");
        }
        if let Ok(before) = before {
            self.keep_paths(&before);
        }
        self.outside(&Outside::WhereAmI)
    }

    /// What was named from another directory stays what it was.
    fn keep_paths(&mut self, before: &Path) {
        let kept = |path: &[u8]| {
            before
                .join(OsStr::from_bytes(path))
                .into_os_string()
                .into_vec()
        };
        for (_, start) in &mut self.programs {
            if start.program.contains(&b'/') {
                start.program = kept(&start.program);
            }
            if let Some(folder) = &mut start.directory {
                *folder = kept(folder);
            }
        }
    }
}
