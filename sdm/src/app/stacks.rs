//! The commands `sdm stacks` and `sdm profile`.

use std::time::Duration;

use sdm_debug::EndPolicy;
use sdm_shell::{Ending, Sampling, Shell, StacksCode};
use sdm_view::profile::{flame, speedscope};

use super::attach::{look_up, open_to_look};
use super::error::AppError;
use super::explain::named;
use super::opener::Opener;
use super::view::{give_up, write};
use crate::cli::{ProfileArgs, SamplingArgs, StacksArgs, TargetArgs};

/// Reads the stacks once, again and again (`--watch`), or as samples for a time, shows them merged, and detaches.
pub(super) fn stacks<O: Opener>(args: &StacksArgs, opener: &mut O) -> u8 {
    match try_stacks(args, opener) {
        Ok(code) => code,
        Err(error) => give_up(args.target.json, StacksCode::Error as u8, named(&error)),
    }
}

/// Samples the stacks for a time, shows the profile, and detaches.
pub(super) fn profile<O: Opener>(args: &ProfileArgs, opener: &mut O) -> u8 {
    let sampling = sampling(args.seconds, &args.sampling, args.full);
    match try_profile(&args.target, sampling, &args.sampling, opener) {
        Ok(code) => code,
        Err(error) => give_up(args.target.json, StacksCode::Error as u8, named(&error)),
    }
}

fn sampling(seconds: u32, args: &SamplingArgs, full: bool) -> Sampling {
    Sampling {
        span: Duration::from_secs(seconds.into()),
        rate: args.rate,
        full,
    }
}

fn try_profile<O: Opener>(
    target: &TargetArgs,
    sampling: Sampling,
    files: &SamplingArgs,
    opener: &mut O,
) -> Result<u8, AppError> {
    let attachment = look_up(target, true)?;
    let names = attachment.names.clone();
    let (mut shell, spec, all) = open_to_look(target, attachment, opener)?;
    let (mut code, profile) = shell.profile_of(spec, sampling);
    if let Some(profile) = profile {
        write(files.flame.as_deref(), || flame(&profile, &names));
        write(files.speedscope.as_deref(), || speedscope(&profile, &names));
    }
    if !all && code != StacksCode::Interrupted {
        code = StacksCode::Error;
    }
    Ok(end(shell, opener, code))
}

fn end<O: Opener>(shell: Shell<O::Session>, opener: &mut O, code: StacksCode) -> u8 {
    let ending = Ending {
        code: code as u8,
        policy: EndPolicy::Detach,
        reason: code.reason(),
    };
    super::command_source::end(shell, opener, ending)
}

fn try_stacks<O: Opener>(args: &StacksArgs, opener: &mut O) -> Result<u8, AppError> {
    if let Some(seconds) = args.seconds {
        let sampling = sampling(seconds, &args.sampling, args.full);
        return try_profile(&args.target, sampling, &args.sampling, opener);
    }
    let attachment = look_up(&args.target, true)?;
    let (mut shell, spec, all) = open_to_look(&args.target, attachment, opener)?;
    let by = args.by.into();
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
    Ok(end(shell, opener, code))
}
