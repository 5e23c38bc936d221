//! Clients that do not read: they neither keep the adapter from ending nor block other clients, and the data that
//! they can send is bounded.

use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};

use nix::libc;
use nix::sys::signal::Signal;
use sdm_dap::frame::framed;
use sdm_system::proc::State;
use sdm_tests::editor::{Editor, read};
use sdm_tests::place::{Compiler, Place};
use sdm_tests::run::{connect, until};
use sdm_tests::sdm::command;
use sdm_tests::{binaries, job, processes};
use serde_json::{Value, json};

use super::configuration;

/// Upper bound for the bytes that a client without reading can send before the adapter stops reading: the buffers
/// of sockets and of a client, with a large margin.
const SAID_BYTES_MAX: usize = 256 << 20;
/// Size of one of many repeated requests, in bytes.
const REQUEST_BYTES: usize = 1 << 16;

/// The transport between an editor and the adapter.
#[derive(Clone, Copy, Debug)]
enum Way {
    Stdio,
    Tcp,
    Unix,
}

/// An editor that reads only when the test tells it to.
struct Reader {
    child: Child,
    input: Box<dyn Write>,
    output: BufReader<Box<dyn Read>>,
    /// Its end of the connection, where that is a socket with a path.
    socket: Option<UnixStream>,
}

impl Reader {
    fn new(place: &Place, way: Way) -> Self {
        let path = place.path().join("sockets/editor");
        let mut sdm: Command = command(place, binaries::folder().join("sdm"));
        sdm.arg("dap").stdin(Stdio::piped()).stdout(Stdio::piped());
        match way {
            Way::Stdio => {}
            Way::Tcp => drop(sdm.args(["--listen", "127.0.0.1:0"])),
            Way::Unix => drop(sdm.arg("--listen").arg(format!("unix:{}", path.display()))),
        }
        let mut child = sdm.stderr(Stdio::inherit()).spawn().expect("sdm starts");
        let mut output = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut socket = None;
        let (input, output): (Box<dyn Write>, Box<dyn Read>) = match way {
            Way::Stdio => (
                Box::new(child.stdin.take().expect("a pipe")),
                Box::new(output.into_inner()),
            ),
            Way::Tcp => {
                let mut line = String::new();
                output.read_line(&mut line).expect("it says where");
                let address = line.trim_end().strip_prefix("listening at ");
                let stream = TcpStream::connect(address.expect("where")).expect("it listens");
                both(stream.try_clone().expect("a descriptor"), stream)
            }
            Way::Unix => {
                let stream = connect(&path);
                socket = Some(stream.try_clone().expect("a descriptor"));
                both(stream.try_clone().expect("a descriptor"), stream)
            }
        };
        Self {
            child,
            input,
            output: BufReader::new(output),
            socket,
        }
    }

    fn send(&mut self, name: &str, arguments: &Value) {
        let request = request(name, arguments);
        self.input.write_all(&request).expect("the adapter reads");
    }

    /// Launches programs that print more than all buffers hold, and reads none of their output.
    fn run_unread(&mut self, place: &Place) {
        let work = place.compile("work", Compiler::C);
        self.send("initialize", &json!({"adapterID": "sdm"}));
        self.send("launch", &configuration(&work, &["lines", "4000000"], 2));
        let is_it = |message: Option<Value>| message.expect("more")["command"] == "launch";
        while !is_it(read(&mut self.output)) {}
        self.send("configurationDone", &Value::Null);
        let ranks = job::running(&work);
        assert_eq!(ranks.len(), 2);
        let mut written = 0;
        until("its programs wait until somebody reads", || {
            let before = written;
            written = ranks.iter().map(|pid| written_bytes(*pid)).sum();
            let waits = |pid: &u32| {
                let call = processes::sleeps_in(&processes::of(*pid));
                call.is_some_and(|(number, _)| number == libc::SYS_write)
            };
            ranks.iter().all(waits) && written == before
        });
    }

    /// A signal ends the adapter, and nothing is left.
    fn end_by_signal(mut self, place: &Place) {
        processes::signal(self.child.id(), Signal::SIGTERM);
        until("the signal ends it", || {
            self.child.try_wait().expect("it is a child").is_some()
        });
        place.assert_gone();
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        // Where it has not ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn both(
    input: impl Write + 'static,
    output: impl Read + 'static,
) -> (Box<dyn Write>, Box<dyn Read>) {
    (Box::new(input), Box::new(output))
}

fn request(name: &str, arguments: &Value) -> Vec<u8> {
    let request = json!({"seq": 1, "type": "request", "command": name, "arguments": arguments});
    framed(request.to_string().as_bytes())
}

/// The bytes that a process has written.
fn written_bytes(pid: u32) -> u64 {
    let text = fs::read_to_string(processes::of(pid).path("io")).expect("it lives");
    let count = text.lines().find_map(|line| line.strip_prefix("wchar: "));
    count.and_then(|it| it.parse().ok()).expect("a number")
}

/// True if the adapter's threads that read from clients sleep.
fn readers_sleep(adapter: u32) -> bool {
    let process = processes::of(adapter);
    let threads = process.thread_ids().into_iter().flatten();
    let mut readers = threads
        .map(|id| process.thread(id))
        .filter(|thread| thread.name().is_ok_and(|name| name == "client"));
    readers.all(|thread| thread.state() == Some(State('S')))
}

/// Sends requests until the adapter stops reading: unknown ones, each answered with its own name.
fn say_unread(adapter: u32, stream: &UnixStream) {
    stream.set_nonblocking(true).expect("a socket");
    let request = request(&"x".repeat(REQUEST_BYTES), &Value::Null);
    let mut said = 0;
    let mut rest = &request[..];
    let mut slept = false;
    loop {
        match (&*stream).write(rest) {
            Ok(count) => {
                slept = false;
                said += count;
                rest = &rest[count..];
                if rest.is_empty() {
                    rest = &request;
                }
                assert!(said < SAID_BYTES_MAX, "{said} bytes were taken in");
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                // An adapter that sleeps while its socket is full does not read it.
                if slept {
                    return;
                }
                slept = readers_sleep(adapter);
                std::thread::yield_now();
            }
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn signal_ends_an_adapter_with_unread_output() {
    for way in [Way::Stdio, Way::Tcp, Way::Unix] {
        println!("{way:?}");
        let place = Place::new();
        let mut editor = Reader::new(&place, way);
        editor.run_unread(&place);
        editor.end_by_signal(&place);
    }
}

#[test]
fn memory_is_bounded_for_an_editor_that_does_not_read() {
    let place = Place::new();
    let mut editor = Reader::new(&place, Way::Unix);
    editor.run_unread(&place);
    let socket = editor.socket.as_ref().expect("it is one");
    say_unread(editor.child.id(), socket);
    let resident = processes::resident_bytes(editor.child.id());
    assert!(resident < SAID_BYTES_MAX as u64, "{resident} bytes");
    editor.end_by_signal(&place);
}

#[test]
fn nonreading_client_does_not_block_the_editor() {
    let place = Place::new();
    let mut editor = Editor::over_unix(&place);
    editor.launch(&json!({"emulate": 3, "stopAtEntry": true}));
    editor.ask("configurationDone", &Value::Null);
    editor.event("stopped");
    let stranger = connect(&place.path().join("sockets/editor"));
    say_unread(editor.pid(), &stranger);
    assert!(!editor.threads().is_empty());
    editor.disconnect();
}
