//! `sdm stacks`.

use std::time::Duration;

use sdm_debug::EndPolicy;
use sdm_shell::{Ending, LookBy, StacksCode};

use super::attach::{look_up, open_to_look};
use super::error::AppError;
use super::explain::named;
use super::opener::Opener;
use super::view::give_up;
use crate::cli::{By, StacksArgs};

/// Looks, shows the merged stacks, leaves everything as it was.
pub(super) fn stacks<O: Opener>(args: &StacksArgs, opener: &mut O) -> u8 {
    match try_stacks(args, opener) {
        Ok(code) => code,
        Err(error) => give_up(args.target.json, StacksCode::Error as u8, named(&error)),
    }
}

fn try_stacks<O: Opener>(args: &StacksArgs, opener: &mut O) -> Result<u8, AppError> {
    let attachment = look_up(&args.target, true)?;
    let (mut shell, spec, all) = open_to_look(&args.target, attachment, opener)?;
    let by = match args.by {
        By::Snapshot => LookBy::Snapshot,
        By::Gdb => LookBy::Gdb,
    };
    let mut code = match args.watch {
        Some(seconds) => {
            let period = Duration::from_secs(seconds.into());
            shell.watch_stacks_of(spec, args.full, by, period)
        }
        None => shell.show_stacks_of(spec, args.full, by),
    };
    if !all && code != StacksCode::Interrupted {
        code = StacksCode::Error;
    }
    let ending = Ending {
        code: code as u8,
        policy: EndPolicy::Detach,
        reason: code.reason(),
    };
    Ok(super::lines::end(shell, opener, ending))
}
