//! `sdm dap`: a debug adapter for an editor, on standard input and output.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Instant;

use sdm_dap::{Action, Adapter, Opened, Opening, RequestError};
use sdm_debug::Command;
use sdm_session::{DebugSession, SessionConfig, StartProgress};
use sdm_shell::Control;
use sdm_system::listening;

use super::opener::{Opener, Refused, refused};
use super::signals::Signals;
use super::wake::{CurrentWake, Wake};
use super::{attach, emulate, run, self_description};
use crate::cli::{self, DapArgs, Listen, Verb};
use crate::sink::{Records, complain, tell};

/// How much is read at once, in bytes.
const READ_BYTES: usize = 64 << 10;

/// An editor at standard input and output, and the session that it debugs.
struct Connection<O: Opener> {
    adapter: Adapter,
    opener: O,
    session: Option<O::Session>,
    controls: Receiver<Control>,
    wake: CurrentWake,
    /// Set where a session that is being opened is to be given up.
    given_up: Arc<AtomicBool>,
    output: Box<dyn Write>,
    over: bool,
}

/// What is opened for a launch or an attach.
struct Plan {
    config: SessionConfig,
    begin: Begin,
    notes: Vec<String>,
}

/// What brings tasks under the debugger.
enum Begin {
    Start(Vec<(sdm_idset::IdSet, sdm_debug::command::StartSpec)>),
    Attach(Box<attach::Attachment>),
}

/// Serves one editor; gives the exit code.
pub(super) fn dap<O: Opener>(args: &DapArgs, opener: &O) -> u8 {
    match serve(args, opener) {
        Ok(()) => 0,
        Err(error) => {
            complain(format_args!("sdm: {error}"));
            124
        }
    }
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
    let (heard, controls) = channel();
    signals.send_to(heard.clone(), wake.wake());
    let given_up = signals.interrupted();
    read_input(input, heard, wake.wake(), Arc::clone(&given_up))?;
    let mut connection = Connection {
        adapter: Adapter::new(Instant::now()),
        opener: opener.clone(),
        session: None,
        controls,
        wake,
        given_up,
        output,
        over: false,
    };
    connection.run();
    Ok(())
}

/// Reads what the editor says, in a thread of its own.
fn read_input(
    mut input: Box<dyn Read + Send>,
    heard: Sender<Control>,
    wake: Wake,
    given_up: Arc<AtomicBool>,
) -> io::Result<()> {
    let reader = thread::Builder::new().name("editor".to_owned());
    reader.spawn(move || {
        let mut buffer = vec![0; READ_BYTES];
        loop {
            let count = match input.read(&mut buffer) {
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => 0,
            };
            if count == 0 {
                given_up.store(true, Ordering::SeqCst);
            }
            let sent = heard.send(Control::Input(buffer[..count].to_vec()));
            wake();
            if count == 0 || sent.is_err() {
                return;
            }
        }
    })?;
    Ok(())
}

impl<O: Opener> Connection<O> {
    fn run(&mut self) {
        while !self.over {
            self.carry_out();
            if self.over {
                break;
            }
            self.wait();
        }
        if let Some(mut session) = self.session.take() {
            let policy = sdm_debug::EndPolicy::KillStarted;
            if let Err(error) = self.opener.close(&mut session, policy) {
                complain(format_args!("sdm: {error}"));
            }
        }
    }

    /// Waits for the next thing to happen, and takes it in.
    fn wait(&mut self) {
        let until = self.adapter.poll_timeout();
        let wait = until.map(|until| until.saturating_duration_since(Instant::now()));
        let event = match &mut self.session {
            Some(session) => session.next_event(wait),
            None => {
                // Without a session only the editor has something to say.
                match self.controls.recv() {
                    Ok(control) => hear(&mut self.adapter, control),
                    Err(_) => self.over = true,
                }
                None
            }
        };
        let now = Instant::now();
        match event {
            Some(event) => self.adapter.handle_event(now, event),
            None => self.adapter.handle_timeout(now),
        }
        while let Ok(control) = self.controls.try_recv() {
            hear(&mut self.adapter, control);
        }
    }

    /// Does what the adapter wants done.
    fn carry_out(&mut self) {
        loop {
            self.write();
            let Some(action) = self.adapter.poll_action() else {
                return;
            };
            match action {
                Action::Open(opening) => {
                    let opened = self.open(&opening);
                    let opened = opened.map_err(|(_, why)| RequestError::Opening(why));
                    self.adapter.handle_opened(opened);
                }
                Action::Send {
                    ticket,
                    to,
                    command,
                    options,
                } => {
                    if let Some(session) = &mut self.session {
                        let id = session.send(&to, &command, &options);
                        self.adapter.handle_sent(ticket, id);
                    }
                }
                Action::Cancel(id) => {
                    if let Some(session) = &mut self.session {
                        session.cancel(id);
                    }
                }
                Action::Close(policy) => {
                    let closed = match &mut self.session {
                        Some(session) => self.opener.close(session, policy),
                        None => Ok(()),
                    };
                    self.session = None;
                    let closed = closed.map_err(|error| RequestError::Opening(error.to_string()));
                    self.adapter.handle_closed(closed);
                }
                Action::Leave => self.over = true,
            }
        }
    }

    fn write(&mut self) {
        while let Some(bytes) = self.adapter.poll_output() {
            // An editor that does not read is gone, which its input says.
            let _ = self.output.write_all(&bytes);
        }
    }

    fn open(&mut self, opening: &Opening) -> Result<Opened, Refused> {
        let Plan {
            mut config,
            begin,
            mut notes,
        } = plan(&opening.words)?;
        config.given_up = Some(Arc::clone(&self.given_up));
        let (adapter, output) = (&mut self.adapter, &mut self.output);
        let (controls, given_up) = (&self.controls, &self.given_up);
        let mut tell = |progress: StartProgress| {
            let count = (progress.done, progress.total);
            adapter.handle_progress(progress.phase, count, progress.note.as_deref());
            while let Ok(control) = controls.try_recv() {
                hear(adapter, control);
            }
            if adapter.is_ending() {
                given_up.store(true, Ordering::SeqCst);
            }
            while let Some(bytes) = adapter.poll_output() {
                let _ = output.write_all(&bytes);
            }
        };
        let (session, wake) = self.opener.open(&config, &mut tell).map_err(refused)?;
        self.wake.set(wake);
        let tasks = session.tasks().clone();
        let begin = match begin {
            Begin::Start(programs) => {
                let starts = programs.into_iter();
                let starts =
                    starts.map(|(set, spec)| (set.intersection(&tasks), Command::Start(spec)));
                starts.collect()
            }
            Begin::Attach(mut attachment) => {
                attachment.keep_to(&tasks);
                notes.append(&mut attachment.left_out);
                vec![(tasks.clone(), Command::Attach(attachment.spec))]
            }
        };
        self.session = Some(session);
        Ok(Opened {
            tasks,
            begin,
            notes,
        })
    }
}

/// Takes in what reaches the adapter from outside the session.
fn hear(adapter: &mut Adapter, control: Control) {
    match control {
        Control::Input(bytes) if bytes.is_empty() => adapter.handle_gone(),
        Control::Input(bytes) => adapter.handle_bytes(Instant::now(), &bytes),
        // Who ends the adapter ends what the editor would have ended.
        Control::Interrupt | Control::Terminate(_) => adapter.handle_terminated(),
        _ => {}
    }
}

/// Reads the words of a command line, with the settings of its verb.
fn plan(words: &[OsString]) -> Result<Plan, Refused> {
    let mut line = vec![OsString::from("sdm")];
    line.extend_from_slice(words);
    let definition = self_description::definition(&line);
    let definition = definition.map_err(|error| (2, error.to_string()))?;
    let (cli, _) = cli::parse(definition, line).map_err(|error| (2, wrong_words(&error)))?;
    let of_job = |job: super::job::Job<'_>| Plan {
        config: job.session,
        begin: Begin::Start(job.programs),
        notes: Vec::new(),
    };
    match cli.command {
        Verb::Run(args) => {
            let job = run::job(&args, Vec::new())?;
            if job.control.is_some() || job.batch.is_some() {
                let text = "--control and --batch are not for an editor";
                return Err((2, text.to_owned()));
            }
            Ok(of_job(job))
        }
        Verb::Emulate(args) => Ok(of_job(emulate::job(&args, Vec::new())?)),
        Verb::Attach(args) => {
            let attachment = attach::look_up(&args.target, false).map_err(refused)?;
            Ok(Plan {
                config: attachment.session.clone(),
                begin: Begin::Attach(Box::new(attachment)),
                notes: Vec::new(),
            })
        }
        _ => Err((2, "an editor launches or attaches".to_owned())),
    }
}

/// What is wrong with a command line, in one line without the advice of how it is used.
fn wrong_words(error: &clap::Error) -> String {
    let text = error.to_string();
    let first = text.lines().next().unwrap_or_default();
    let first = first.strip_prefix("error: ").unwrap_or(first);
    sdm_text::printable(first.as_bytes())
}
