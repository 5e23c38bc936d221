//! A PMIx tool: it reads requests on its standard input and writes answers to its standard output; see
//! `sdm_foreign::tool_protocol`.
//!
//! Callbacks of libpmix only put a message into a channel that one thread writes. libpmix waits while the parent
//! process does not read.
#![allow(unsafe_code)]

mod calls;
mod decode;
mod out;

use std::ffi::CString;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::JoinHandle;

use anyhow::{Context, Result, bail};
use sdm_foreign::tool_protocol::{FromTool, Line, TOOL_VERSION, ToTool};
use sdm_foreign::wire::{Frames, frame};

use crate::messages;
use out::tell;

/// Maximum number of messages that wait to be written to the parent process.
const WAITING_MAX: usize = 1024;
/// Approximate size of the lines of one message, in bytes.
const PART_BYTES: usize = 512 << 10;
/// Estimated size of a line without the texts in it, in bytes.
const LINE_BYTES: usize = 600;

/// Acts as a tool of the server in process `server`, whose rendezvous file is `file`, until standard input ends.
pub(crate) fn run(library: &Path, server: i32, file: &str) -> Result<()> {
    let file =
        CString::new(file).context("the path of the rendezvous file contains a zero byte")?;
    let connected = crate::connect::connect(library, server, Some(&file));
    // Output of the library itself must not mix with the messages.
    let out = own_output().context("cannot duplicate standard output")?;
    let (sender, receiver) = sync_channel(WAITING_MAX);
    out::begin(sender);
    let writer = std::thread::spawn(move || write(&receiver, &mut File::from(out)));
    let (tool, turn) = match connected {
        Ok(connected) => connected,
        Err(error) => {
            let text = format!("{error:#}");
            tell(FromTool::Failed { text });
            tell_no_more(writer);
            return Err(error);
        }
    };
    tool.wait_for_job(|| tell(FromTool::Starting));
    let turn = turn.end();
    let done = serve(&calls::Calls::of(&tool)?);
    crate::connect::leave(tool, turn);
    tell_no_more(writer);
    done
}

/// Waits until all messages are written; an empty failure message tells the writer thread to end.
fn tell_no_more(writer: JoinHandle<()>) {
    tell(FromTool::Failed {
        text: String::new(),
    });
    let _ = writer.join();
}

/// A duplicate of standard output for this program's messages. From now on standard output itself, which libpmix may
/// write to, is standard error.
fn own_output() -> Result<OwnedFd> {
    let own = std::io::stdout().as_fd().try_clone_to_owned()?;
    nix::unistd::dup2_stdout(std::io::stderr())?;
    Ok(own)
}

fn write(messages: &Receiver<FromTool>, out: &mut File) {
    for message in messages {
        if matches!(&message, FromTool::Failed { text } if text.is_empty()) {
            return;
        }
        match frame(&message) {
            Ok(bytes) if out.write_all(&bytes).is_ok() => {}
            Ok(_) => return,
            Err(error) => messages::say(&error.to_string()),
        }
    }
}

fn serve(calls: &calls::Calls) -> Result<()> {
    let mut frames = Frames::default();
    let mut input = std::io::stdin().lock();
    let mut bytes = vec![0; 64 << 10];
    let mut is_known = false;
    loop {
        while let Some(message) = frames
            .take::<ToTool>()
            .context("the request of sdm cannot be decoded")?
        {
            match message {
                ToTool::Hello { version } if version == TOOL_VERSION => {
                    is_known = true;
                    tell(FromTool::Hello {
                        version: TOOL_VERSION,
                        library: calls.version(),
                    });
                }
                ToTool::ToolRequest { number, ask } if is_known => {
                    let (status, lines) = calls.carry_out(&ask)?;
                    answer(number, status, lines);
                }
                ToTool::Hello { .. } | ToTool::ToolRequest { .. } => {
                    bail!("the request is from another version of SDM")
                }
            }
        }
        match input
            .read(&mut bytes)
            .context("cannot read the request of sdm from standard input")?
        {
            0 => return Ok(()),
            count => frames.push(&bytes[..count]),
        }
    }
}

/// Sends an answer, in parts that fit into frames.
fn answer(number: u32, status: i32, lines: Vec<Line>) {
    let (mut part, mut size) = (Vec::new(), 0);
    for line in lines {
        size += LINE_BYTES + line.key.len();
        if let sdm_foreign::tool_protocol::Datum::Text(text) = &line.value {
            size += text.len();
        }
        part.push(line);
        if size >= PART_BYTES {
            let lines = std::mem::take(&mut part);
            tell(FromTool::Part { number, lines });
            size = 0;
        }
    }
    if !part.is_empty() {
        let lines = part;
        tell(FromTool::Part { number, lines });
    }
    tell(FromTool::Done { number, status });
}
