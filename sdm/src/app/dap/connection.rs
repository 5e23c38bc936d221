//! The session of an editor, its clients, and the loop that serves both.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Instant;

use sdm_dap::{Action, Adapter, Opened, Opening, RequestError};
use sdm_debug::{Command, EndPolicy};
use sdm_session::{DebugSession, SessionEvent, StartProgress};

use super::super::opener::{Opener, Refused, refused};
use super::super::wake::CurrentWake;
use super::clients::{
    self, Client, ClientEvent, ClientInput, HangUp, Mailbox, RefusalReports, ToAdapter,
};
use super::console_machine::ConsoleMachine;
use super::jobs;
use super::outlet::Outlet;
use super::plan::{Begin, Plan, plan};
use crate::sink::complain;

/// The clients of one `sdm dap`, and the session that they debug.
pub(super) struct Connection<O: Opener> {
    /// The clients. The first is the editor that owns the session.
    clients: Vec<Client>,
    last_client: u32,
    opener: O,
    session: Option<O::Session>,
    heard: Receiver<ClientEvent>,
    mailbox: Mailbox,
    wake: CurrentWake,
    /// A flag that aborts the opening of a session.
    given_up: Arc<AtomicBool>,
    /// The secret word by which other clients connect. None until it is requested.
    word: Option<String>,
    /// The connection to another process that owns the session. None if this one does.
    relay: Option<Outlet>,
    /// Outputs to disconnected clients, until all is written.
    leaving: Vec<Outlet>,
    /// Reports refused clients.
    bouncer: RefusalReports,
}

impl<O: Opener> Connection<O> {
    pub(super) fn new(
        opener: O,
        to: (Box<dyn Write + Send>, HangUp),
        (heard, mailbox): (Receiver<ClientEvent>, Mailbox),
        (wake, given_up): (CurrentWake, Arc<AtomicBool>),
        bouncer: RefusalReports,
    ) -> io::Result<Self> {
        let mut adapter = Adapter::new(Instant::now());
        give_machine(&mut adapter, 0, mailbox.clone());
        let editor = Client::new(0, adapter, to, &mailbox)?;
        Ok(Self {
            clients: vec![editor],
            last_client: 0,
            opener,
            session: None,
            heard,
            mailbox,
            wake,
            given_up,
            word: None,
            relay: None,
            leaving: Vec::new(),
            bouncer,
        })
    }

    /// Serves the editor until it disconnects.
    pub(super) fn run(&mut self) {
        loop {
            while self.carry_out() {}
            if self.clients[0].over {
                break;
            }
            self.wait();
        }
        if let Some(mut session) = self.session.take() {
            let policy = EndPolicy::KillStarted;
            if let Err(error) = self.opener.close(&mut session, policy) {
                complain(format_args!("sdm: {error}"));
            }
        }
        let clients = self.clients.iter().map(|client| &client.outlet);
        let all = clients.chain(&self.leaving).chain(&self.relay);
        all.for_each(Outlet::finish);
    }

    /// Waits for the next event and handles it.
    fn wait(&mut self) {
        let due = self.clients.iter();
        let until = due.filter_map(|it| it.adapter.poll_timeout()).min();
        let wait = until.map(|until| until.saturating_duration_since(Instant::now()));
        let event = match &mut self.session {
            // Events of the session wait while its owner does not read. The programs of the session wait
            // then, too.
            Some(session) if self.clients[0].outlet.has_room() => session.next_event(wait),
            waits => {
                // Without a session only clients have something to say.
                let wait = wait.filter(|_| waits.is_some());
                let heard = match wait {
                    Some(wait) => self.heard.recv_timeout(wait),
                    None => self.heard.recv().map_err(RecvTimeoutError::from),
                };
                match heard {
                    Ok(heard) => self.hear(heard),
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => self.clients[0].over = true,
                }
                None
            }
        };
        let now = Instant::now();
        for client in &mut self.clients {
            match &event {
                Some(event) => client.adapter.handle_event(now, event.clone()),
                None => client.adapter.handle_timeout(now),
            }
        }
        while let Ok(heard) = self.heard.try_recv() {
            self.hear(heard);
        }
        for client in &mut self.clients {
            take_held(client, self.relay.as_ref());
        }
    }

    /// Handles an event from outside the session.
    fn hear(&mut self, heard: ClientEvent) {
        match heard {
            ClientEvent::ClientInput(number, said) => {
                let mut clients = self.clients.iter_mut();
                if let Some(client) = clients.find(|client| client.number == number) {
                    client.held.push_back(said);
                }
            }
            ClientEvent::Room => {}
            // A signal to the adapter ends everything that the editor's end would have ended.
            ClientEvent::Signal => self.clients[0].adapter.handle_terminated(),
            ClientEvent::Came(stream, _slot) => {
                if let Err(why) = self.let_in(stream) {
                    self.bouncer.let_go(&why);
                }
            }
        }
    }

    /// Accepts another client. The client has to present the secret word, otherwise it is refused.
    fn let_in(&mut self, stream: clients::Stream) -> io::Result<()> {
        let word = self.word()?;
        self.last_client += 1;
        let number = self.last_client;
        let mut adapter = Adapter::beside(Instant::now(), number, word);
        let mailbox = self.mailbox.clone();
        give_machine(&mut adapter, number, mailbox.clone());
        clients::let_in(&mut self.clients, number, (adapter, stream), mailbox)
    }

    /// Returns the secret word by which other clients connect, and creates it at the first call.
    fn word(&mut self) -> io::Result<String> {
        let word = match &self.word {
            Some(word) => word.clone(),
            None => clients::invite(self.mailbox.clone(), self.bouncer.clone())?,
        };
        Ok(self.word.insert(word).clone())
    }

    /// Carries out the actions that the clients' adapters request. Returns false if there was none.
    fn carry_out(&mut self) -> bool {
        let mut some = false;
        for at in 0..self.clients.len() {
            loop {
                let client = &mut self.clients[at];
                client.write();
                if client.number != 0 {
                    client.give_up_unread();
                }
                let Some(action) = self.clients[at].adapter.poll_action() else {
                    break;
                };
                some = true;
                self.act(at, action);
            }
        }
        self.leaving.retain(|outlet| !outlet.is_done());
        let over = |client: &mut Client| client.number != 0 && client.over;
        let over = self.clients.extract_if(.., over);
        self.leaving.extend(over.map(|client| client.outlet));
        some
    }

    fn act(&mut self, at: usize, action: Action) {
        match action {
            Action::Open(opening) => {
                let opened = self.open(&opening);
                let opened = opened.map_err(|(_, why)| RequestError::Opening(why));
                self.clients[at].adapter.handle_opened(opened);
            }
            Action::Send {
                ticket,
                to,
                command,
                options,
            } => {
                if let Some(session) = &mut self.session {
                    let id = session.send(&to, &command, &options);
                    let now = Instant::now();
                    for (other, client) in self.clients.iter_mut().enumerate() {
                        match other == at {
                            true => client.adapter.handle_sent(ticket, id),
                            false => client.adapter.handle_foreign(now, &to, &command, id),
                        }
                    }
                }
            }
            Action::Cancel(id) => {
                if let Some(session) = &mut self.session {
                    session.cancel(id);
                }
            }
            Action::Close(policy) => self.close(policy),
            Action::ListJobs => {
                let jobs = jobs::attachable();
                self.clients[at].adapter.handle_jobs(&jobs);
            }
            Action::Invite => {
                let invited = self.word();
                let invited = invited.map_err(|why| RequestError::Opening(why.to_string()));
                self.clients[at].adapter.handle_invited(invited);
            }
            Action::Join => {
                let (owners, others) = self.clients.split_at_mut(1);
                if let Some(client) = at.checked_sub(1).and_then(|at| others.get_mut(at)) {
                    client
                        .adapter
                        .handle_joined(Instant::now(), &owners[0].adapter);
                }
            }
            Action::Relay { address, said } => {
                match clients::relay(&address, said, self.mailbox.clone()) {
                    Ok(relay) => self.relay = Some(relay),
                    Err(why) => self.clients[at].adapter.handle_unreached(&why.to_string()),
                }
            }
            Action::Pass(bytes) => {
                // The end of the relay arrives as an event of its own.
                if let Some(relay) = &self.relay {
                    relay.put(bytes);
                }
            }
            Action::Leave => self.clients[at].over = true,
        }
    }

    /// Ends the session, after the other clients were told of its end.
    fn close(&mut self, policy: EndPolicy) {
        let now = Instant::now();
        let why = "the editor has ended the session";
        for client in &mut self.clients[1..] {
            let event = SessionEvent::Ended(why.to_owned());
            client.adapter.handle_event(now, event);
            client.write();
        }
        let closed = match &mut self.session {
            Some(session) => self.opener.close(session, policy),
            None => Ok(()),
        };
        self.session = None;
        let closed = closed.map_err(|error| RequestError::Opening(error.to_string()));
        self.clients[0].adapter.handle_closed(closed);
    }

    fn open(&mut self, opening: &Opening) -> Result<Opened, Refused> {
        let Plan {
            mut config,
            begin,
            mut notes,
        } = plan(&opening.words)?;
        config.given_up = Some(Arc::clone(&self.given_up));
        let editor = &mut self.clients[0];
        let (heard, given_up) = (&self.heard, &self.given_up);
        let mut tell = |progress: StartProgress| {
            let count = (progress.done, progress.total);
            let adapter = &mut editor.adapter;
            adapter.handle_progress(progress.phase, count, progress.note.as_deref());
            while let Ok(heard) = heard.try_recv() {
                match heard {
                    ClientEvent::ClientInput(0, said) => editor.held.push_back(said),
                    ClientEvent::Signal => editor.adapter.handle_terminated(),
                    // A session that is being opened has no other clients.
                    _ => {}
                }
            }
            take_held(editor, None);
            if editor.adapter.is_ending() {
                given_up.store(true, Ordering::SeqCst);
            }
            editor.write();
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
                notes.append(&mut attachment.notes);
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

/// Handles queued input of a client, as long as there is room for the answers, and in the queue of a relay.
fn take_held(client: &mut Client, relay: Option<&Outlet>) {
    let has_room = |client: &Client| {
        let relay = relay.filter(|_| client.number == 0);
        client.outlet.has_room() && relay.is_none_or(Outlet::has_room)
    };
    while has_room(client)
        && let Some(ClientInput { what, .. }) = client.held.pop_front()
    {
        let now = Instant::now();
        match what {
            ToAdapter::Input(bytes) | ToAdapter::Passed(bytes) if bytes.is_empty() => {
                client.adapter.handle_gone();
            }
            ToAdapter::Input(bytes) => client.adapter.handle_bytes(now, &bytes),
            ToAdapter::Passed(bytes) => client.outlet.put(bytes),
            ToAdapter::Printed(bytes) => client.adapter.handle_printed(&bytes),
        }
        client.write();
    }
}

/// Lets the debug console of a client read and write files, and run commands, on the host of `sdm`.
fn give_machine(adapter: &mut Adapter, client: u32, mailbox: Mailbox) {
    adapter.set_machines(move || {
        let mailbox = mailbox.clone();
        Box::new(ConsoleMachine { client, mailbox })
    });
}
