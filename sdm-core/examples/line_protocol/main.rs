//! A debug manager on the tree, as processes. Its protocol, backend, merge rule, topology and transport are its own.
//!
//! Usage: `line_protocol COUNT PROGRAM [ARGS]`. Each of COUNT servers has one task and starts PROGRAM for it, with the
//! variable `TASK`. A line `SET TEXT` on standard input goes to the tasks of the set. The backend writes TEXT to each
//! program and takes one line as its answer. Equal answers arrive as one. For `SET #TEXT` the largest number arrives.

mod extensions;

use std::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use sdm_core::driver::{DriverEvent, MemberDriver};
use sdm_core::link::LinkConfig;
use sdm_core::member::{Member, Output};
use sdm_core::message::{EndPolicy, Lane, PlanEntry, Slice, Status, SyncPolicy};
use sdm_core::node::{Delivery, Node, Submission};
use sdm_core::secure::{SessionKey, draw_session_id};
use sdm_core::topology::Topology;
use sdm_core::transport::{Transport, tcp::TcpTransport};
use sdm_core::{CommandId, Config, ServerId};
use sdm_idset::{IdSet, TaskId};

use extensions::{Chain, Ports, print_place, rules};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Environment variable with the session's key and name, which all members share.
const SESSION: &str = "OWN_SESSION";
/// Time limit of the start, and of the whole session.
const PATIENCE: Duration = Duration::from_secs(60);

/// The backend: a program that answers each line of its input with a line.
struct Backend {
    program: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Backend {
    fn start(task: u32, words: &[String]) -> Outcome<Self> {
        let mut command = Command::new(&words[0]);
        // The program has no business in the session.
        command.args(&words[1..]).env_remove(SESSION);
        command.env("TASK", task.to_string()).stdin(Stdio::piped());
        let mut program = command.stdout(Stdio::piped()).spawn()?;
        let input = program.stdin.take().ok_or("no input")?;
        let output = BufReader::new(program.stdout.take().ok_or("no output")?);
        Ok(Self {
            program,
            input,
            output,
        })
    }

    fn ask(&mut self, text: &[u8]) -> std::io::Result<String> {
        // The handler of input: programs read capitals.
        let text = text.to_ascii_uppercase();
        self.input.write_all(&[&text, &b"\n"[..]].concat())?;
        let mut line = String::new();
        match self.output.read_line(&mut line)? {
            0 => Err(std::io::ErrorKind::UnexpectedEof.into()),
            // The handler of output: an answer has no blanks at its ends.
            _ => Ok(line.trim().to_owned()),
        }
    }
}

/// Makes a node's member listen. Returns its driver and its address.
fn driver(node: Node, config: LinkConfig) -> Outcome<(MemberDriver<Ports>, String)> {
    let mut transport = Ports(TcpTransport::new()?);
    let address = transport.listen(&"port://0".parse()?, 1)?;
    let member = Member::new(node, Arc::new(config));
    Ok((MemberDriver::new(member, transport), address.to_string()))
}

/// Runs the master, which is given the front-end's address, or a server with its backend.
fn serve(me: ServerId, front_end: Option<&str>, mut backend: Option<Backend>) -> Outcome<()> {
    let session = std::env::var(SESSION)?;
    let (key, name) = session.split_once(' ').ok_or("no session")?;
    let config = LinkConfig::new(key.parse()?, name.parse()?);
    let node = Node::new(me, rules(&Arc::default()), Instant::now() + PATIENCE);
    let (mut driver, address) = driver(node, config)?;
    println!("{address}");
    if let Some(front_end) = front_end {
        driver.connect_front_end(&front_end.parse()?);
    }
    while let Some(event) = driver.next(None)? {
        match (event, &mut backend) {
            (DriverEvent::Output(Output::Execute { id, tasks, payload }), Some(backend)) => {
                let answer = backend.ask(&payload);
                let answer = Bytes::from(answer.unwrap_or_else(|error| error.to_string()));
                driver.with_member(|m, now| m.handle_local(now, id, &tasks, Status::Ok, answer));
            }
            (DriverEvent::Output(Output::End(_)), backend) => {
                print_place(me, driver.member().node())?;
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

/// Starts a member as a process with these arguments. Returns the process, and the address that it printed, in a list.
fn start(session: &str, words: &[String]) -> Outcome<(Child, Vec<String>)> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(words).env(SESSION, session);
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = command.spawn()?;
    let mut lines = BufReader::new(child.stdout.take().ok_or("no output")?).lines();
    Ok((child, vec![lines.next().ok_or("no address")??]))
}

fn front_end(count: u32, program: &[String]) -> Outcome<()> {
    let (key, name) = (SessionKey::draw()?, draw_session_id()?);
    let session = format!("{} {name}", *key.to_hex());
    let seen = Arc::new(AtomicI64::new(i64::MIN));
    let root = Node::root(Instant::now(), rules(&seen));
    let (mut driver, address) = driver(root, LinkConfig::new(key, name))?;
    let entry = |server, tasks, addresses: Vec<String>| PlanEntry {
        server,
        subtree_count: 0,
        tasks,
        host: "here".into(),
        addresses: addresses.iter().collect(),
    };
    let (child, addresses) = start(&session, &["master".to_owned(), address])?;
    let master = entry(ServerId::MASTER, IdSet::new(), addresses);
    let (mut children, mut servers) = (vec![child], Vec::new());
    for number in 0..count {
        let words = [&["server".to_owned(), number.to_string()], program].concat();
        let (child, addresses) = start(&session, &words)?;
        children.push(child);
        let tasks = IdSet::single(TaskId(number));
        servers.push(entry(ServerId(number), tasks, addresses));
    }
    let plan = Slice::new(Topology::Own(&Chain).plan(master, servers));
    driver.with_member(|m, now| m.start(now, Config::default(), plan))?;
    let mut lines = std::io::stdin().lines();
    let deadline = Instant::now() + PATIENCE;
    loop {
        let Some(DriverEvent::Output(output)) = driver.next(Some(deadline))? else {
            return Err("no answer in time".into());
        };
        match output {
            // The initialisation is a command, too: the next line follows each completed one.
            Output::Deliver(Delivery::Complete(_)) => match lines.next().transpose()? {
                None => driver.with_member(|m, now| m.finish(now, EndPolicy::KillStarted)),
                Some(line) => {
                    let (set, text) = line.split_once(' ').ok_or("a line is `SET TEXT`")?;
                    let submission = Submission {
                        destination: set.parse()?,
                        lane: Lane::Control,
                        sync: SyncPolicy::WaitForAll,
                        rule: u16::from(text.starts_with('#')),
                        rule_params: Bytes::new(),
                        payload: Bytes::from(text.to_owned()),
                    };
                    driver.with_member(|m, now| m.submit(now, submission));
                }
            },
            Output::Deliver(Delivery::Answer { id, blocks, .. }) if id != CommandId::INIT => {
                for block in blocks {
                    let answer = String::from_utf8_lossy(&block.payload);
                    println!("{}: {answer}", block.sources);
                }
            }
            Output::End(_) => driver.with_member(|m, now| m.handle_local_down(now)),
            Output::Ended => break,
            _ => {}
        }
    }
    println!("largest of all: {}", seen.load(Ordering::Relaxed));
    Ok(children.iter_mut().try_for_each(|it| it.wait().map(drop))?)
}

fn main() -> Outcome<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match &words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["master", front_end] => serve(ServerId::MASTER, Some(front_end), None),
        ["server", number, _, ..] => {
            let number = number.parse()?;
            let backend = Backend::start(number, &words[2..])?;
            serve(ServerId(number), None, Some(backend))
        }
        [count, _, ..] => front_end(count.parse()?, &words[1..]),
        _ => Err("usage: line_protocol COUNT PROGRAM [ARGS]".into()),
    }
}
