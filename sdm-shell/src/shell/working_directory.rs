//! The working directory of `sdm` itself: `pwd`, `cd`.
use sdm_text::printable_name;
use std::ffi::OsStr;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use sdm_debug::command::StartSpec;
use sdm_idset::IdSet;
use sdm_view::item::Item;

use super::{SessionHandle, Verdict};
use crate::commands::Outside;

/// Carries out `pwd` and `cd`.
pub(super) fn outside(session: &SessionHandle, command: &Outside) -> Verdict {
    match command {
        Outside::WhereAmI => where_am_i(session),
        Outside::GoTo(folder) => go_to(session, folder),
    }
}

fn where_am_i(session: &SessionHandle) -> Verdict {
    match session.machine(|machine| machine.working_directory()) {
        Ok(folder) => {
            let folder = printable_name(&folder);
            session.show(&Item::Text(format!("Working directory {folder}.")));
            Verdict::Done
        }
        Err(error) => session.complain(format!("pwd: {error}"), ""),
    }
}

/// `cd [DIR]`: changes the directory for files of commands, and for the next `run`.
fn go_to(session: &SessionHandle, folder: &str) -> Verdict {
    let home = || session.machine(|machine| machine.home());
    let folder = match folder.strip_prefix('~') {
        _ if folder.is_empty() => home(),
        Some(rest) if rest.is_empty() || rest.starts_with('/') => {
            let mut path = home().into_os_string();
            path.push(rest);
            path.into()
        }
        _ => PathBuf::from(folder),
    };
    let before = session.machine(|machine| machine.working_directory());
    let changed = session.machine(|machine| machine.change_directory(&folder));
    if let Err(error) = changed {
        return session.complain(format!("{}: {error}", printable_name(&folder)), "");
    }
    if let Ok(before) = before {
        session.edit(|model| keep_paths(&mut model.job.programs, &before));
    }
    where_am_i(session)
}

/// Makes relative paths and directories of the programs absolute. They are relative to `before`, the directory before
/// `cd`.
fn keep_paths(programs: &mut [(IdSet, StartSpec)], before: &Path) {
    let kept = |path: &[u8]| {
        before
            .join(OsStr::from_bytes(path))
            .into_os_string()
            .into_vec()
    };
    for (_, start) in programs {
        if start.program.contains(&b'/') {
            start.program = kept(&start.program);
        }
        if let Some(folder) = &mut start.directory {
            *folder = kept(folder);
        }
    }
}
