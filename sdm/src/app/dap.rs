//! The command `sdm dap`: a debug adapter for an editor, on standard input and output or a socket (`--listen`).

mod clients;
mod connection;
mod console_machine;
mod jobs;
mod outlet;
mod plan;
mod slots;

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::channel;
use std::thread;

use sdm_shell::exit_codes::NOT_STARTED;
use sdm_system::listener::{self, SocketFile};
use serde_json::{Value, json};

use super::opener::Opener;
use super::signals::Signals;
use super::wake::{CurrentWake, Wake};
use crate::cli::{DapArgs, Listen};
use crate::sink::{Records, complain, tell};
use clients::{ClientEvent, Door, Mailbox, RefusalReports, Stream};
use connection::Connection;

/// Serves an editor and the further clients of its session, or prints the jobs for `--jobs`. Returns the exit code.
pub(super) fn dap<O: Opener>(args: &DapArgs, opener: &O) -> u8 {
    let served = match args.jobs {
        true => tell(&jobs_as_json()),
        false => serve(args, opener),
    };
    match served {
        Ok(()) => 0,
        Err(error) => {
            complain(format_args!("sdm: {error}"));
            NOT_STARTED
        }
    }
}

/// The jobs that can be attached to, each with its target word and a label for a person.
fn jobs_as_json() -> String {
    let jobs = jobs::attachable().into_iter();
    let jobs = jobs.map(|(target, label)| json!({"target": target, "label": label}));
    Value::Array(jobs.collect()).to_string()
}

/// The connection to an editor, and the listener for further clients of its session.
struct Place {
    stream: Stream,
    /// The listener for the next client; None without `--listen`.
    door: Option<Door>,
    /// The file of the Unix socket, which exists as long as clients may connect. None without such a socket.
    _file: Option<SocketFile>,
}

fn editor(args: &DapArgs, bouncer: RefusalReports) -> io::Result<Place> {
    let mut file = None;
    let mut door: Door = match &args.listen {
        None => {
            return Ok(Place {
                stream: Stream {
                    input: Box::new(io::stdin()),
                    output: Box::new(Records),
                    // Standard input has only one client, which stays until the end.
                    hang_up: Box::new(|| {}),
                },
                door: None,
                _file: None,
            });
        }
        Some(Listen::Tcp(address)) => {
            let listener = listener::listen_at_loopback(*address)?;
            // The process that started the adapter may wait for this line. A failed write is ignored.
            let _ = tell(&format!("listening at {}", listener.local_addr()?));
            Box::new(move || {
                let mut let_go = |why| bouncer.let_go(&why);
                let stream = listener::next_at_loopback(&listener, &mut let_go)?;
                stream.set_nodelay(true)?;
                Stream::of_tcp(stream)
            })
        }
        Some(Listen::Unix(path)) => {
            let (listener, own) = listener::listen_at_path(path)?;
            file = Some(own);
            Box::new(move || {
                let mut let_go = |why| bouncer.let_go(&why);
                let stream = listener::next_at_path(&listener, &mut let_go)?;
                Stream::of_unix(stream)
            })
        }
    };
    Ok(Place {
        stream: door()?,
        door: Some(door),
        _file: file,
    })
}

fn serve<O: Opener>(args: &DapArgs, opener: &O) -> io::Result<()> {
    let bouncer = RefusalReports::default();
    let place = editor(args, bouncer.clone())?;
    let signals = Signals::listen(false, false, Arc::new(AtomicBool::new(false)))?;
    let idle: Wake = Arc::new(|| {});
    let wake = CurrentWake::new(idle);
    let (sender, heard) = channel();
    let mailbox = Mailbox::new(sender, wake.wake());
    let given_up = signals.interrupted();
    hear_signals(&signals, mailbox.clone())?;
    if let Some(door) = place.door {
        clients::take_in(door, mailbox.clone())?;
    }
    let Stream {
        input,
        output,
        hang_up,
    } = place.stream;
    clients::read_client(0, input, mailbox.clone(), Some(Arc::clone(&given_up)))?;
    let (from, to) = ((heard, mailbox), (output, hang_up));
    let waked = (wake, given_up);
    let mut connection = Connection::new(opener.clone(), to, from, waked, bouncer.clone())?;
    connection.run();
    bouncer.tell_rest();
    Ok(())
}

/// Passes signals on to the mailbox that also gets the clients' messages.
fn hear_signals(signals: &Signals, mailbox: Mailbox) -> io::Result<()> {
    let (controls, said) = channel();
    signals.send_to(controls, Arc::new(|| {}));
    let forward = thread::Builder::new().name("signal".to_owned());
    forward.spawn(move || while said.recv().is_ok() && mailbox.send(ClientEvent::Signal) {})?;
    Ok(())
}
