//! `sdm stacks`.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use sdm_debug::EndPolicy;
use sdm_debug::command::AttachSpec;
use sdm_idset::{IdSet, TaskId};

use super::signals::Signals;
use super::{Opener, Plan, give_up, processes};
use crate::cli::StacksArgs;
use crate::render::Names;
use crate::shell::{Ending, Options, Shell, StacksCode};

/// Attaches, shows the merged stacks, leaves everything as it was.
pub(super) fn stacks<O: Opener>(args: &StacksArgs, opener: &mut O) -> u8 {
    match try_stacks(args, opener) {
        Ok(code) => code,
        Err(message) => give_up(args.json, StacksCode::Error as u8, message),
    }
}

fn try_stacks<O: Opener>(args: &StacksArgs, opener: &mut O) -> Result<u8, String> {
    let pids = pids(args)?;
    let count = u32::try_from(pids.len()).map_err(|_| "too many processes".to_owned())?;
    let spec = AttachSpec {
        pids: (0..count).zip(pids.iter().copied()).collect(),
        read_only: true,
        gdb: args.gdb.as_ref().map(|path| {
            use std::os::unix::ffi::OsStrExt;
            path.as_os_str().as_bytes().to_vec()
        }),
        ..AttachSpec::default()
    };
    let named = spec
        .pids
        .iter()
        .map(|(task, pid)| (TaskId(*task), pid.unsigned_abs()));
    let names = Names::pids(named.collect());
    let signals = Signals::listen(false, Arc::new(AtomicBool::new(false)))
        .map_err(|error| format!("listen to signals: {error}"))?;
    let plan = Plan {
        launcher: "local".to_owned(),
        launcher_options: Vec::new(),
        servers: 1,
        tasks: vec![IdSet::all_below(count)],
        directory: None,
    };
    let (session, wake) = super::open(opener, plan)?;
    let (controls, heard) = channel();
    signals.send_to(controls, wake);
    let options = Options {
        query_timeout: Duration::from_secs(args.timeout.into()),
        attached: true,
        ..Options::default()
    };
    let view = super::view(args.json, names, None);
    let mut shell = Shell::new(session, view, heard, options, Box::new(Instant::now));
    let code = shell.show_stacks_of(spec, args.full);
    let ending = Ending {
        code: code as u8,
        policy: EndPolicy::Detach,
        reason: None,
    };
    Ok(super::run::end(shell, opener, ending))
}

fn pids(args: &StacksArgs) -> Result<Vec<i32>, String> {
    let mut pids = match &args.name {
        Some(name) => processes::find(name).map_err(|error| format!("read /proc: {error}"))?,
        None => args.pids.clone(),
    };
    pids.sort_unstable();
    pids.dedup();
    if pids.is_empty() {
        let name = args.name.as_deref().unwrap_or_default();
        return Err(format!(
            "no process of yours is called `{name}`, nor has it in its command line"
        ));
    }
    Ok(pids)
}
