//! `sdm dap`: a debug adapter for an editor, on standard input and output.

mod clients;
mod connection;
mod console_machine;
mod plan;

use std::io::{self, Read, Write};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::channel;
use std::thread;

use sdm_hosts::job;
use sdm_system::listening;
use serde_json::{Value, json};

use super::opener::Opener;
use super::signals::Signals;
use super::wake::{CurrentWake, Wake};
use crate::cli::{DapArgs, Listen};
use crate::sink::{Records, complain, tell};
use clients::{ClientEvent, Mailbox};
use connection::Connection;

/// Serves one editor; gives the exit code.
pub(super) fn dap<O: Opener>(args: &DapArgs, opener: &O) -> u8 {
    let served = match args.jobs {
        true => tell(&jobs_as_json()),
        false => serve(args, opener),
    };
    match served {
        Ok(()) => 0,
        Err(error) => {
            complain(format_args!("sdm: {error}"));
            124
        }
    }
}

/// The jobs that can be attached to, each with what names it and what a person knows it by.
fn jobs_as_json() -> String {
    let jobs = job::attachable().unwrap_or_default().into_iter();
    let jobs = jobs.map(|job| json!({"target": job.pid.to_string(), "label": job.line}));
    Value::Array(jobs.collect()).to_string()
}

/// Where an editor is: what it says, and where it is answered.
fn editor(args: &DapArgs) -> io::Result<(Box<dyn Read + Send>, Box<dyn Write>)> {
    let mut refused = |why: io::Error| complain(format_args!("sdm: a client is let go: {why}"));
    match &args.listen {
        None => Ok((Box::new(io::stdin()), Box::new(Records))),
        Some(Listen::Tcp(address)) => {
            let mut listening = |at| {
                // Who has started it waits for this line, or nobody does.
                let _ = tell(&format!("listening at {at}"));
            };
            let stream = listening::wait_at_loopback(*address, &mut listening, &mut refused)?;
            stream.set_nodelay(true)?;
            Ok((Box::new(stream.try_clone()?), Box::new(stream)))
        }
        Some(Listen::Unix(path)) => {
            let stream = listening::wait_at_path(path, &mut refused)?;
            Ok((Box::new(stream.try_clone()?), Box::new(stream)))
        }
    }
}

fn serve<O: Opener>(args: &DapArgs, opener: &O) -> io::Result<()> {
    let (input, output) = editor(args)?;
    let signals = Signals::listen(false, false, Arc::new(AtomicBool::new(false)))?;
    let idle: Wake = Arc::new(|| {});
    let wake = CurrentWake::new(idle);
    let (sender, heard) = channel();
    let mailbox = Mailbox::new(sender, wake.wake());
    let given_up = signals.interrupted();
    hear_signals(&signals, mailbox.clone())?;
    clients::read_client(0, input, mailbox.clone(), Some(Arc::clone(&given_up)))?;
    let mut connection = Connection::new(opener.clone(), output, (heard, mailbox), wake, given_up);
    connection.run();
    Ok(())
}

/// What the signals say comes with what clients say.
fn hear_signals(signals: &Signals, mailbox: Mailbox) -> io::Result<()> {
    let (controls, said) = channel();
    signals.send_to(controls, Arc::new(|| {}));
    let forward = thread::Builder::new().name("signal".to_owned());
    forward.spawn(move || while said.recv().is_ok() && mailbox.send(ClientEvent::Signal) {})?;
    Ok(())
}
