//! The clients of one `sdm dap`: the editor that has started it, and those that debug a task of its session each.
//!
//! Such a client is another `sdm dap`, which an editor has started for it: it passes on what the editor says, through a
//! socket without a file. Its name is drawn at random, so that nobody has taken it before; it is no secret, as the kernel
//! shows it to everybody: both ends ask the kernel whose the other is, and speak with this user's processes only.

use std::io::{self, Read, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::thread;

use sdm_dap::Adapter;
use sdm_dap::frame::{Framed, Framer, framed};
use sdm_system::peer;

use super::super::wake::Wake;
use crate::sink::complain;

/// How much is read at once, in bytes.
const READ_BYTES: usize = 64 << 10;
/// The most clients of one session.
const CLIENTS_MAX: usize = 64;
/// How many bytes of chance the name of a socket has.
const NAME_BYTES: usize = 16;

/// What reaches `sdm dap` from outside its session.
pub(super) enum ClientEvent {
    /// A client has said so; nothing at its end.
    Input(u32, Vec<u8>),
    /// Another client.
    Came(Stream),
    /// The session of another process has said so; nothing at its end.
    Passed(Vec<u8>),
    /// A command of this machine that a client's console has started prints so.
    Printed(u32, Vec<u8>),
    /// A signal wants the end.
    Signal,
}

/// What a client says, and where it is answered.
pub(super) type Stream = (Box<dyn Read + Send>, Box<dyn Write + Send>);

/// Waits for the next client of this user's.
pub(super) type Door = Box<dyn FnMut() -> io::Result<Stream> + Send>;

/// A client that is not let in.
pub(super) fn let_go(why: io::Error) {
    complain(format_args!("sdm: a client is let go: {why}"));
}

/// Where all that is put, and who is woken by it.
#[derive(Clone)]
pub(super) struct Mailbox {
    to: Sender<ClientEvent>,
    wake: Wake,
}

impl Mailbox {
    pub(super) fn new(to: Sender<ClientEvent>, wake: Wake) -> Self {
        Self { to, wake }
    }

    /// False where nobody listens any more.
    pub(super) fn send(&self, heard: ClientEvent) -> bool {
        let sent = self.to.send(heard).is_ok();
        (self.wake)();
        sent
    }
}

/// One client.
pub(super) struct Client {
    /// 0 for the one whose session it is.
    pub(super) number: u32,
    pub(super) adapter: Adapter,
    pub(super) output: Box<dyn Write>,
    pub(super) over: bool,
}

impl Client {
    pub(super) fn new(number: u32, adapter: Adapter, output: Box<dyn Write>) -> Self {
        Self {
            number,
            adapter,
            output,
            over: false,
        }
    }

    /// Writes what is to be written.
    pub(super) fn write(&mut self) {
        while let Some(bytes) = self.adapter.poll_output() {
            // A client that does not read is gone, which its input says.
            let _ = self.output.write_all(&bytes);
        }
        let _ = self.output.flush();
    }
}

/// Reads what a client says, in a thread of its own; its end sets `ends`.
pub(super) fn read_client(
    number: u32,
    input: impl Read + Send + 'static,
    mailbox: Mailbox,
    ends: Option<Arc<AtomicBool>>,
) -> io::Result<()> {
    let take = move |bytes: Vec<u8>| {
        if let Some(ends) = ends.as_ref().filter(|_| bytes.is_empty()) {
            ends.store(true, Ordering::SeqCst);
        }
        mailbox.send(ClientEvent::Input(number, bytes))
    };
    read_all(input, take)
}

/// Gives all that is read to `take`, in a thread of its own; nothing at the end.
pub(super) fn read_all(
    mut input: impl Read + Send + 'static,
    mut take: impl FnMut(Vec<u8>) -> bool + Send + 'static,
) -> io::Result<()> {
    let reader = thread::Builder::new().name("client".to_owned());
    reader.spawn(move || {
        let mut buffer = vec![0; READ_BYTES];
        loop {
            let count = match input.read(&mut buffer) {
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => 0,
            };
            if !take(buffer[..count].to_vec()) || count == 0 {
                return;
            }
        }
    })?;
    Ok(())
}

/// Listens for further clients; gives the word by which they come.
pub(super) fn invite(mailbox: Mailbox) -> io::Result<String> {
    let mut chance = [0; NAME_BYTES];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut chance)?;
    let word: String = chance.iter().map(|byte| format!("{byte:02x}")).collect();
    let word = format!("sdm-dap-{word}");
    let listener = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&word)?)?;
    let door = move || {
        loop {
            let (stream, _) = listener.accept()?;
            match peer::check_this_user(&stream) {
                Ok(()) => return Ok((Box::new(stream.try_clone()?) as _, Box::new(stream) as _)),
                Err(why) => let_go(why),
            }
        }
    };
    take_in(Box::new(door), mailbox)?;
    Ok(word)
}

/// Takes in whoever comes, in a thread of its own.
pub(super) fn take_in(mut door: Door, mailbox: Mailbox) -> io::Result<()> {
    let accept = thread::Builder::new().name("clients".to_owned());
    accept
        .spawn(move || while door().is_ok_and(|came| mailbox.send(ClientEvent::Came(came))) {})?;
    Ok(())
}

/// Goes to the session of another process: `said` is what the client has said so far, and its first answer is not passed
/// on, since the client has one.
pub(super) fn relay(word: &str, said: &[u8], mailbox: Mailbox) -> io::Result<UnixStream> {
    let mut stream = UnixStream::connect_addr(&SocketAddr::from_abstract_name(word)?)?;
    peer::check_this_user(&stream)?;
    stream.write_all(said)?;
    let mut framer = Framer::default();
    let mut is_first = true;
    read_all(stream.try_clone()?, move |bytes| {
        if bytes.is_empty() {
            return mailbox.send(ClientEvent::Passed(bytes));
        }
        let mut listened = true;
        framer.handle_bytes(&bytes, &mut |message| {
            let Framed::Body(body) = message else {
                return;
            };
            if !std::mem::take(&mut is_first) {
                listened &= mailbox.send(ClientEvent::Passed(framed(&body)));
            }
        });
        listened
    })?;
    Ok(stream)
}

/// A client that has come is one of these from now on.
pub(super) fn let_in(
    clients: &mut Vec<Client>,
    number: u32,
    (adapter, (input, output)): (Adapter, Stream),
    mailbox: Mailbox,
) -> io::Result<()> {
    if clients.len() >= CLIENTS_MAX {
        return Err(io::Error::other(format!("{CLIENTS_MAX} are here already")));
    }
    read_client(number, input, mailbox, None)?;
    clients.push(Client::new(number, adapter, output));
    Ok(())
}
