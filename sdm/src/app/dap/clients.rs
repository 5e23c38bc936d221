//! The clients of one `sdm dap`: the first editor, and further ones, each of which debugs one task of its session:
//! through `--listen`, or another `sdm dap`.
//!
//! Without `--listen`, a further client is another `sdm dap` process that an editor started for one task. That
//! process forwards the editor's messages through an abstract Unix socket. The socket's name is random, so that it
//! is free, but it is not secret. Both ends check by the kernel's peer credentials that the other belongs to the
//! same user.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use sdm_dap::Adapter;
use sdm_dap::frame::{Framed, Framer, framed};
use sdm_system::listener::Refusals;
use sdm_system::peer;

use super::super::wake::Wake;
use super::outlet::Outlet;
use super::slots::{Slot, Slots};
use crate::sink::complain;

/// Maximum number of bytes per read.
const READ_BYTES: usize = 64 << 10;
/// Maximum number of clients of one session.
const CLIENTS_MAX: usize = 64;
/// Number of random bytes in the name of a socket.
const NAME_BYTES: usize = 16;

/// An event from outside the session of `sdm dap`.
pub(super) enum ClientEvent {
    /// An input for a client's adapter.
    ClientInput(u32, ClientInput),
    /// A new client has connected.
    Came(Stream, Slot),
    /// A client has room for output again.
    Room,
    /// A signal requests the end.
    Signal,
}

/// An input for one client's adapter. Dropping it frees its slot in the queue.
pub(super) struct ClientInput {
    pub(super) what: ToAdapter,
    pub(super) _slot: Slot,
}

/// The content of an input for an adapter.
pub(super) enum ToAdapter {
    /// Bytes from the client; empty at end of file.
    Input(Vec<u8>),
    /// Bytes from the session of another process; empty at end of file.
    Passed(Vec<u8>),
    /// Output of a local command that the client's console has started.
    Printed(Vec<u8>),
}

/// The input and output of a client's connection.
pub(super) struct Stream {
    pub(super) input: Box<dyn Read + Send>,
    pub(super) output: Box<dyn Write + Send>,
    /// Closes input and output. Pending reads and writes end.
    pub(super) hang_up: HangUp,
}

/// A function that closes a connection.
pub(super) type HangUp = Box<dyn Fn() + Send>;

impl Stream {
    pub(super) fn of_tcp(stream: TcpStream) -> io::Result<Self> {
        let (input, ended) = (stream.try_clone()?, stream.try_clone()?);
        Ok(Self {
            input: Box::new(input),
            output: Box::new(stream),
            // The connection may be closed already.
            hang_up: Box::new(move || drop(ended.shutdown(Shutdown::Both))),
        })
    }

    pub(super) fn of_unix(stream: UnixStream) -> io::Result<Self> {
        let (input, ended) = (stream.try_clone()?, stream.try_clone()?);
        Ok(Self {
            input: Box::new(input),
            output: Box::new(stream),
            hang_up: Box::new(move || drop(ended.shutdown(Shutdown::Both))),
        })
    }
}

/// Waits for the next client that belongs to this user.
pub(super) type Door = Box<dyn FnMut() -> io::Result<Stream> + Send>;

/// Reports of refused clients, limited in number.
#[derive(Clone, Default)]
pub(super) struct RefusalReports(Arc<Mutex<Refusals>>);

impl RefusalReports {
    /// Reports a refused client.
    pub(super) fn let_go(&self, why: &io::Error) {
        let mut refusals = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(why) = refusals.line(Instant::now(), why) {
            complain(format_args!("sdm: client disconnected: {why}"));
        }
    }

    /// Reports the number of refused clients that were not reported yet.
    pub(super) fn tell_rest(&self) {
        let mut refusals = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(rest) = refusals.rest() {
            complain(format_args!("sdm: {rest}"));
        }
    }
}

/// The channel for [`ClientEvent`]s, with the call that wakes their receiver.
#[derive(Clone)]
pub(super) struct Mailbox {
    to: Sender<ClientEvent>,
    wake: Wake,
}

impl Mailbox {
    pub(super) fn new(to: Sender<ClientEvent>, wake: Wake) -> Self {
        Self { to, wake }
    }

    /// Sends an event and wakes the receiver. Returns false if the receiver is gone.
    pub(super) fn send(&self, heard: ClientEvent) -> bool {
        let sent = self.to.send(heard).is_ok();
        (self.wake)();
        sent
    }

    /// Reports that a client has room for output again. If the receiver is gone this has no effect.
    fn tell_room(&self) {
        self.send(ClientEvent::Room);
    }

    /// Sends an input for a client's adapter. Returns false if the receiver is gone.
    pub(super) fn say(&self, client: u32, what: ToAdapter, slot: Slot) -> bool {
        self.send(ClientEvent::ClientInput(
            client,
            ClientInput { what, _slot: slot },
        ))
    }
}

/// A client of the session.
pub(super) struct Client {
    /// The client's number. The session's owner is 0.
    pub(super) number: u32,
    pub(super) adapter: Adapter,
    pub(super) outlet: Outlet,
    hang_up: HangUp,
    /// Inputs that arrived while the client did not read its output. [`Slots`] limits their number.
    pub(super) held: VecDeque<ClientInput>,
    pub(super) over: bool,
}

impl Client {
    /// A client that this process serves.
    ///
    /// # Errors
    /// The writer thread cannot be started.
    pub(super) fn new(
        number: u32,
        adapter: Adapter,
        (output, hang_up): (Box<dyn Write + Send>, HangUp),
        mailbox: &Mailbox,
    ) -> io::Result<Self> {
        let mailbox = mailbox.clone();
        let outlet = Outlet::new(output, move || mailbox.tell_room())?;
        Ok(Self {
            number,
            adapter,
            outlet,
            hang_up,
            held: VecDeque::new(),
            over: false,
        })
    }

    /// Writes the adapter's output as long as the outlet has room.
    pub(super) fn write(&mut self) {
        while self.outlet.has_room()
            && let Some(bytes) = self.adapter.poll_output()
        {
            self.outlet.put(bytes);
        }
    }

    /// Closes the connection of a client that does not read. Its output was discarded, so the client has
    /// lost messages.
    pub(super) fn give_up_unread(&mut self) {
        if self.adapter.is_overrun() && !self.over {
            (self.hang_up)();
            self.adapter.handle_gone();
        }
    }
}

/// Reads a client's input in a thread of its own. The end of the input sets `ends`.
pub(super) fn read_client(
    number: u32,
    input: impl Read + Send + 'static,
    mailbox: Mailbox,
    ends: Option<Arc<AtomicBool>>,
) -> io::Result<()> {
    let take = move |bytes: Vec<u8>, slot| {
        if let Some(ends) = ends.as_ref().filter(|_| bytes.is_empty()) {
            ends.store(true, Ordering::SeqCst);
        }
        mailbox.say(number, ToAdapter::Input(bytes), slot)
    };
    read_all(input, take)
}

/// Reads input in a thread of its own, and passes it to `take` with a slot for each piece. An empty piece
/// marks the end. Reading waits until a slot is free.
pub(super) fn read_all(
    mut input: impl Read + Send + 'static,
    mut take: impl FnMut(Vec<u8>, Slot) -> bool + Send + 'static,
) -> io::Result<()> {
    let reader = thread::Builder::new().name("client".to_owned());
    let slots = Slots::default();
    reader.spawn(move || {
        let mut buffer = vec![0; READ_BYTES];
        loop {
            let slot = slots.take();
            let count = loop {
                match input.read(&mut buffer) {
                    Ok(count) => break count,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(_) => break 0,
                }
            };
            if !take(buffer[..count].to_vec(), slot) || count == 0 {
                return;
            }
        }
    })?;
    Ok(())
}

/// Listens for further clients. Returns the socket name at which they connect.
pub(super) fn invite(mailbox: Mailbox, bouncer: RefusalReports) -> io::Result<String> {
    let mut chance = [0; NAME_BYTES];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut chance)?;
    let word: String = chance.iter().map(|byte| format!("{byte:02x}")).collect();
    let word = format!("sdm-dap-{word}");
    let listener = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&word)?)?;
    let door = move || {
        loop {
            let (stream, _) = listener.accept()?;
            match peer::check_this_user(&stream) {
                Ok(()) => return Stream::of_unix(stream),
                Err(why) => bouncer.let_go(&why),
            }
        }
    };
    take_in(Box::new(door), mailbox)?;
    Ok(word)
}

/// Accepts clients in a thread of its own.
pub(super) fn take_in(mut door: Door, mailbox: Mailbox) -> io::Result<()> {
    let accept = thread::Builder::new().name("clients".to_owned());
    let slots = Slots::default();
    accept.spawn(move || {
        loop {
            let slot = slots.take();
            if !door().is_ok_and(|came| mailbox.send(ClientEvent::Came(came, slot))) {
                return;
            }
        }
    })?;
    Ok(())
}

/// Connects a client to the session of another process, which is sent the client's input so far. The first
/// answer is not forwarded, because the client has already received one.
pub(super) fn relay(word: &str, said: Vec<u8>, mailbox: Mailbox) -> io::Result<Outlet> {
    let stream = UnixStream::connect_addr(&SocketAddr::from_abstract_name(word)?)?;
    peer::check_this_user(&stream)?;
    let mut framer = Framer::default();
    let mut is_first = true;
    let heard = mailbox.clone();
    read_all(stream.try_clone()?, move |bytes, slot| {
        if bytes.is_empty() {
            return heard.say(0, ToAdapter::Passed(bytes), slot);
        }
        let mut passed = Vec::new();
        framer.handle_bytes(&bytes, &mut |message| {
            if let Framed::Body(body) = message
                && !std::mem::take(&mut is_first)
            {
                passed.extend(framed(&body));
            }
        });
        passed.is_empty() || heard.say(0, ToAdapter::Passed(passed), slot)
    })?;
    let outlet = Outlet::new(stream, move || mailbox.tell_room())?;
    outlet.put(said);
    Ok(outlet)
}

/// Adds a connected client to `clients`.
pub(super) fn let_in(
    clients: &mut Vec<Client>,
    number: u32,
    (adapter, stream): (Adapter, Stream),
    mailbox: Mailbox,
) -> io::Result<()> {
    if clients.len() >= CLIENTS_MAX {
        return Err(io::Error::other(format!(
            "{CLIENTS_MAX} clients are connected already"
        )));
    }
    let Stream {
        input,
        output,
        hang_up,
    } = stream;
    let client = Client::new(number, adapter, (output, hang_up), &mailbox)?;
    read_client(number, input, mailbox, None)?;
    clients.push(client);
    Ok(())
}
