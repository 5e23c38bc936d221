//! `sdm stacks`.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use sdm_debug::EndPolicy;

use super::attach::look_up;
use super::signals::Signals;
use super::{Opener, give_up};
use crate::cli::StacksArgs;
use crate::shell::{Ending, Options, Shell, StacksCode};

/// Attaches, shows the merged stacks, leaves everything as it was.
pub(super) fn stacks<O: Opener>(args: &StacksArgs, opener: &mut O) -> u8 {
    match try_stacks(args, opener) {
        Ok(code) => code,
        Err(message) => give_up(args.target.json, StacksCode::Error as u8, message),
    }
}

fn try_stacks<O: Opener>(args: &StacksArgs, opener: &mut O) -> Result<u8, String> {
    let attachment = look_up(&args.target, true)?;
    let signals = Signals::listen(false, Arc::new(AtomicBool::new(false)))
        .map_err(|error| format!("listen to signals: {error}"))?;
    let (session, wake) = super::open(opener, attachment.plan)?;
    let (controls, heard) = channel();
    signals.send_to(controls, wake);
    let options = Options {
        query_timeout: Duration::from_secs(args.target.timeout.into()),
        attached: true,
        ..Options::default()
    };
    let view = super::view(args.target.json, attachment.names, None);
    let mut shell = Shell::new(session, view, heard, options, Box::new(Instant::now));
    for text in &attachment.left_out {
        shell.say(text);
    }
    let mut code = shell.show_stacks_of(attachment.spec, args.full);
    if !attachment.left_out.is_empty() {
        code = StacksCode::Error;
    }
    let ending = Ending {
        code: code as u8,
        policy: EndPolicy::Detach,
        reason: None,
    };
    Ok(super::job::end(shell, opener, ending))
}
