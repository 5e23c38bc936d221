//! Messages between the PMIx servers of several nodes, carried by the tree.

use bytes::Bytes;
use sdm_core::message::{Datagram, ExchangeId};
use sdm_core::node::ExchangeFailure;
use sdm_debug::{Event, TaskState, wire};
use sdm_foreign::wire::PART_BYTES_MAX;
use sdm_foreign::{HostCommand, HostProcess, HostState, HostTable, PeerMessage, ToHost};
use sdm_idset::{IdSet, TaskId};
use sdm_system::proc;
use serde::{Deserialize, Serialize};

use super::Server;
use crate::pmix::{Fence, PmixEvent};

/// A message between servers.
#[derive(Serialize, Deserialize)]
enum ServerMessage {
    /// A message from the PMIx server of one node to that of another.
    Host(#[serde(with = "serde_bytes")] Vec<u8>),
    /// A process has aborted the job.
    Abort(Abort),
}

/// An abort of the job by a process.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Abort {
    /// The rank of the process.
    pub(super) by: u32,
    /// The status of the abort.
    pub(super) status: i32,
    /// The message of the abort.
    pub(super) text: String,
}

impl Server {
    /// Handles an event of this node's PMIx server that concerns other nodes.
    pub(super) fn meet_pmix(&mut self, heard: PmixEvent) {
        match heard {
            PmixEvent::FenceData(number, bytes) => {
                let given = self.hosted.given.entry(number).or_default();
                given.push(bytes.into());
            }
            PmixEvent::Fence(fence) => self.meet(fence),
            PmixEvent::Datagram(letter) => {
                let to = IdSet::single(TaskId(letter.to));
                let errand = ServerMessage::Host(letter.bytes);
                self.post(to, TaskId(letter.from), letter.number, &errand);
            }
            _ => {}
        }
    }

    fn post(&mut self, to: IdSet, from: TaskId, number: u64, errand: &ServerMessage) {
        let letter = Datagram {
            to,
            from,
            number,
            is_brought: true,
            bytes: wire::encode(errand).into(),
        };
        self.driver
            .with_member(|member, now| member.post(now, letter));
    }

    /// Reports the abort of a process to the other nodes, if it is a task of this server.
    pub(super) fn pass_on_abort(&mut self, abort: Abort) {
        let by = TaskId(abort.by);
        let others = self.hosted.others.clone();
        if !others.is_empty() && self.driver.member().node().local().contains(by) {
            self.post(others, by, 0, &ServerMessage::Abort(abort));
        }
    }

    fn meet(&mut self, fence: Fence) {
        let given = self.hosted.given.remove(&fence.number).unwrap_or_default();
        let id = ExchangeId {
            tasks: fence.ranks,
            number: fence.count,
        };
        if fence.is_speaker {
            self.hosted.spoken.push((id.clone(), fence.number));
        }
        if self.alone {
            return self.give_up_meeting();
        }
        self.driver
            .with_member(|member, now| member.exchange(now, &id, &given));
    }

    /// Gives up all fences at the end of the session. Detached programs cannot reach those of other hosts
    /// any more.
    pub(super) fn give_up_meeting(&mut self) {
        let Some(server) = &mut self.hosted.server else {
            return;
        };
        for (_, number) in self.hosted.spoken.drain(..) {
            let is_met = false;
            server.send(&ToHost::Fenced { number, is_met });
        }
        self.watch_pmix();
    }

    /// Handles the end of the exchange for a fence: its data, or its failure.
    pub(super) fn end_meeting(
        &mut self,
        id: &ExchangeId,
        outcome: Result<Vec<Bytes>, ExchangeFailure>,
    ) {
        let parts = match outcome {
            Ok(parts) => parts,
            Err(failure) => return self.end_unmet(&failure),
        };
        let spoken = self.hosted.spoken.iter().position(|(it, _)| it == id);
        let number = spoken.map(|at| self.hosted.spoken.swap_remove(at).1);
        if let (Some(number), Some(server)) = (number, &mut self.hosted.server) {
            for bytes in gathered(&parts) {
                server.send(&ToHost::FenceData { number, bytes });
            }
            let is_met = true;
            server.send(&ToHost::Fenced { number, is_met });
            self.watch_pmix();
        }
    }

    /// Ends the processes after a fence whose missing ranks cannot arrive. The ranks are not notified of the failure:
    /// they would exit while they are being ended, and gdb 13.1 sometimes misses an exit during a signal.
    fn end_unmet(&mut self, failure: &ExchangeFailure) {
        let text = format!("sdm ends these processes, because MPI cannot continue: {failure}");
        let tasks = self.own_tasks();
        self.send_event(&tasks, &Event::Notice { text });
        self.end_job(&IdSet::new());
    }

    /// Handles a datagram. It is a message of another node's PMIx server for that of this node, or one of this node's
    /// that returns undelivered. Or it is an abort of the job, which is carried out here.
    pub(super) fn take_letter(&mut self, letter: Datagram) {
        let bytes = match letter.is_brought {
            false => Vec::new(),
            true => match wire::decode(&letter.bytes) {
                Ok(ServerMessage::Host(bytes)) => bytes,
                Ok(ServerMessage::Abort(abort)) => return self.end_aborted(abort),
                Err(error) => {
                    let rank = letter.from;
                    return tracing::error!(
                        "dropped a PMIx datagram from the sdm-server of rank {rank}: cannot decode it: {error}"
                    );
                }
            },
        };
        if let (Some(server), Some(to)) = (&mut self.hosted.server, letter.to.first()) {
            server.send(&ToHost::Letter(PeerMessage {
                to: to.0,
                from: letter.from.0,
                number: letter.number,
                is_brought: letter.is_brought,
                bytes,
            }));
            self.watch_pmix();
        }
    }

    /// Sends the PMIx server the process table that a tool has requested.
    pub(super) fn tell_processes(&mut self) {
        let mut table = HostTable::default();
        let programs = self.backend.as_ref().map(|it| it.programs());
        for program in programs.unwrap_or_default() {
            let pid = program.pid.unwrap_or(0);
            let state = match program.state {
                TaskState::Absent => HostState::Absent,
                TaskState::Starting => HostState::Starting,
                TaskState::Exited(code) => HostState::Exited(code),
                TaskState::Signalled(_) => HostState::Signalled,
                _ => HostState::Running,
            };
            let running = program.pid.map(proc::of);
            let status = running.as_ref().and_then(|it| it.status().ok());
            let process = HostProcess {
                rank: program.task.0,
                pid,
                state,
                program: None,
                resident_bytes: status.and_then(|it| it.bytes("VmRSS")).unwrap_or(0),
            };
            table.add(process, running.and_then(|it| command_of(&it)));
        }
        if let Some(server) = &mut self.hosted.server {
            server.send(&ToHost::Processes(table));
            self.watch_pmix();
        }
    }

    /// Watches the connection to the PMIx server for input, and also for output while data is queued.
    pub(super) fn watch_pmix(&mut self) {
        if let Some(server) = &self.hosted.server {
            let (fd, writes) = server.wants_to_write();
            let sockets = self.driver.transport().inner().sockets();
            if let Err(error) = sockets.watch(fd, true, writes) {
                tracing::error!("cannot watch the PMIx server: {error}");
            }
        }
    }
}

fn command_of(process: &proc::Process) -> Option<HostCommand> {
    Some(HostCommand {
        program: process.program().ok()?.to_string_lossy().into_owned(),
        line: process.words().unwrap_or_default().join(" "),
    })
}

/// Combines small parts of data into larger ones.
fn gathered(parts: &[Bytes]) -> Vec<Vec<u8>> {
    let mut gathered: Vec<Vec<u8>> = Vec::new();
    for part in parts {
        match gathered.last_mut() {
            Some(last) if last.len() + part.len() <= PART_BYTES_MAX => {
                last.extend_from_slice(part);
            }
            _ => gathered.push(part.to_vec()),
        }
    }
    gathered
}
