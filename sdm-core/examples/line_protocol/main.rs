//! A debug manager on the tree, as processes, whose protocol and backend are its own.
//!
//! Usage: `line_protocol COUNT PROGRAM [ARGS]`. COUNT servers have a task each, and start PROGRAM with the variable
//! `TASK`. A line `SET TEXT` on standard input goes to the tasks of the set. The backend writes TEXT to each program
//! and takes one line as its answer. Equal answers arrive as one.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use sdm_core::aggregate::Merge;
use sdm_core::driver::{DriverEvent, MemberDriver};
use sdm_core::link::LinkConfig;
use sdm_core::member::{Member, Output};
use sdm_core::message::{EndPolicy, PlanEntry, Slice, Status};
use sdm_core::node::{Delivery, Node, Submission};
use sdm_core::secure::{SessionKey, draw_session_id};
use sdm_core::topology::Topology;
use sdm_core::transport::{Transport, tcp::TcpTransport};
use sdm_core::{CommandId, Config, ServerId};
use sdm_idset::{IdSet, TaskId};

pub(crate) type Outcome<T> = Result<T, Box<dyn std::error::Error>>;
/// Merge rules by number.
type Rules = fn(u16, &[u8]) -> Option<Box<dyn Merge>>;
/// Handler of input or output: it returns the bytes to pass on.
type Handler = Box<dyn FnMut(Vec<u8>) -> Vec<u8>>;

/// Parts of the tree that a debug manager may replace.
pub(crate) struct Parts<T> {
    pub(crate) transport: fn() -> std::io::Result<T>,
    pub(crate) listen_at: &'static str,
    pub(crate) rules: Rules,
    pub(crate) topology: Topology,
    pub(crate) at_end: fn(ServerId, &Node),
}

/// Variable with the session's key and name, which all members share.
const SESSION: &str = "OWN_SESSION";
/// Time limit of the start, and of each answer.
const PATIENCE: Duration = Duration::from_secs(60);

/// The backend: a program that answers each line of its input with a line.
struct Backend {
    program: Child,
    output: BufReader<ChildStdout>,
    handlers: [Handler; 2],
}

impl Backend {
    fn start(task: u32, words: &[String], handlers: [Handler; 2]) -> Outcome<Self> {
        let mut command = Command::new(&words[0]);
        // The program has no business in the session.
        command.args(&words[1..]).env_remove(SESSION);
        command.env("TASK", task.to_string()).stdin(Stdio::piped());
        let mut program = command.stdout(Stdio::piped()).spawn()?;
        let output = BufReader::new(program.stdout.take().ok_or("no output")?);
        Ok(Self {
            program,
            output,
            handlers,
        })
    }

    fn ask(&mut self, text: &[u8]) -> std::io::Result<Vec<u8>> {
        let [handle_input, handle_output] = &mut self.handlers;
        let input = self.program.stdin.as_mut().expect("a pipe");
        input.write_all(&handle_input([text, b"\n"].concat()))?;
        let mut line = Vec::new();
        self.output.read_until(b'\n', &mut line)?;
        Ok(handle_output(line))
    }
}

impl<T: Transport> Parts<T> {
    /// Makes a node's member listen. Returns its driver and its address.
    fn driver(&self, node: Node, config: LinkConfig) -> Outcome<(MemberDriver<T>, String)> {
        let mut transport = (self.transport)()?;
        let address = transport.listen(&self.listen_at.parse()?, 1)?;
        let member = Member::new(node, Arc::new(config));
        Ok((MemberDriver::new(member, transport), address.to_string()))
    }

    /// Runs the master, which is given the front-end's address, or a server with its backend.
    fn serve(&self, me: ServerId, up: Option<&str>, mut backend: Option<Backend>) -> Outcome<()> {
        let session = std::env::var(SESSION)?;
        let (key, name) = session.split_once(' ').ok_or("no session")?;
        let config = LinkConfig::new(key.parse()?, name.parse()?);
        let node = Node::new(me, self.rules, Instant::now() + PATIENCE);
        let (mut driver, address) = self.driver(node, config)?;
        println!("{address}");
        let up = up.map(str::parse).transpose()?;
        up.iter().for_each(|it| driver.connect_front_end(it));
        while let Some(event) = driver.next(None)? {
            match (event, &mut backend) {
                (DriverEvent::Output(Output::Execute { id, tasks, payload }), Some(backend)) => {
                    let it = Bytes::from(backend.ask(&payload)?);
                    driver.with_member(|m, now| m.handle_local(now, id, &tasks, Status::Ok, it));
                }
                (DriverEvent::Output(Output::End(_)), backend) => {
                    (self.at_end)(me, driver.member().node());
                    if let Some(backend) = backend {
                        backend.program.kill()?;
                        backend.program.wait()?;
                    }
                    driver.with_member(|m, now| m.handle_local_down(now));
                }
                (DriverEvent::Output(Output::Ended), _) => break,
                _ => {}
            }
        }
        driver.flush();
        Ok(())
    }

    fn front_end(&self, count: u32, program: &[String]) -> Outcome<()> {
        let (key, name) = (SessionKey::draw()?, draw_session_id()?);
        let session = format!("{} {name}", *key.to_hex());
        let root = Node::root(Instant::now(), self.rules);
        let (mut driver, address) = self.driver(root, LinkConfig::new(key, name))?;
        let mut children = Vec::new();
        let mut member = |id, tasks, words: &[String]| -> Outcome<PlanEntry> {
            let mut command = Command::new(std::env::current_exe()?);
            command.args(words).env(SESSION, &session);
            command.stdin(Stdio::null()).stdout(Stdio::piped());
            let mut child = command.spawn()?;
            let mut lines = BufReader::new(child.stdout.take().ok_or("no output")?).lines();
            children.push(child);
            let address = lines.next().ok_or("no address")??;
            Ok(PlanEntry::new(id, tasks, &[address]))
        };
        let words = ["master".to_owned(), address];
        let master = member(ServerId::MASTER, IdSet::new(), &words)?;
        let server = |number: u32| {
            let words = [&["server".to_owned(), number.to_string()], program].concat();
            member(ServerId(number), IdSet::single(TaskId(number)), &words)
        };
        let servers = (0..count).map(server).collect::<Outcome<_>>()?;
        let plan = Slice::new(self.topology.plan(master, servers));
        driver.with_member(|m, now| m.start(now, Config::default(), plan))?;
        let mut lines = std::io::stdin().lines();
        loop {
            let Some(DriverEvent::Output(output)) = driver.next(Some(Instant::now() + PATIENCE))?
            else {
                return Err("no answer in time".into());
            };
            match output {
                // The initialisation is a command, too: the next line follows each completed one.
                Output::Deliver(Delivery::Complete(_)) => match lines.next().transpose()? {
                    None => driver.with_member(|m, now| m.finish(now, EndPolicy::KillStarted)),
                    Some(line) => {
                        let (set, text) = line.split_once(' ').ok_or("a line is `SET TEXT`")?;
                        let mut submission = Submission::new(set.parse()?, text.to_owned());
                        submission.rule = u16::from(text.starts_with('#'));
                        driver.with_member(|m, now| m.submit(now, submission));
                    }
                },
                Output::Deliver(Delivery::Answer { id, blocks, .. }) if id != CommandId::INIT => {
                    for block in blocks {
                        println!("{}: {}", block.sources, block.payload.escape_ascii());
                    }
                }
                Output::End(_) => driver.with_member(|m, now| m.handle_local_down(now)),
                Output::Ended => break,
                _ => {}
            }
        }
        Ok(children.iter_mut().try_for_each(|it| it.wait().map(drop))?)
    }

    /// Runs the front-end, or the member that the front-end has started with its parts.
    pub(crate) fn run(&self) -> Outcome<()> {
        let words: Vec<String> = std::env::args().skip(1).collect();
        match &words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
            ["master", front_end] => self.serve(ServerId::MASTER, Some(front_end), None),
            ["server", number, _, ..] => {
                let number = number.parse()?;
                let capitals: Handler = Box::new(|bytes| bytes.to_ascii_uppercase());
                let trimmed: Handler = Box::new(|bytes| bytes.trim_ascii().to_vec());
                let backend = Backend::start(number, &words[2..], [capitals, trimmed])?;
                self.serve(ServerId(number), None, Some(backend))
            }
            [count, _, ..] => self.front_end(count.parse()?, &words[1..]),
            _ => Err("usage: line_protocol COUNT PROGRAM [ARGS]".into()),
        }
    }
}

fn main() -> Outcome<()> {
    Parts {
        transport: TcpTransport::new,
        listen_at: "tcp://127.0.0.1:0",
        rules: |_, _| None,
        topology: Topology::default(),
        at_end: |_, _| (),
    }
    .run()
}
