//! Published and put values (`PMIx_Publish`, `PMIx_Put`): requests to other nodes, and their requests to this one.

use std::ffi::CString;

use sdm_foreign::peer_messages::{Entry, Note, Question, Reply};
use sdm_foreign::{FromHost, PeerMessage};
use sdm_idset::{IdSet, TaskId};

use super::peer::Peer;
use super::peer_requests::{Requester, Unsigned};
use super::publications::{Found, Looker};
use super::request::{Done, LookupCallback, Request};
use super::{Host, NOT_FOUND, OUT_OF_RESOURCE, SUCCESS, Serving, value};
use crate::ffi::{Proc, Published, key_of};

/// The node of this rank stores the published values of the whole job.
const BOARD_RANK: u32 = 0;

impl Host {
    /// Handles a request to publish, look up or remove values.
    pub(super) fn answer_board(&mut self, request: Request) {
        match request {
            Request::Publish {
                process,
                entries,
                done,
            } => {
                let owner = self.task_of(&process);
                let named = entries.into_iter();
                let entries = named.map(|(key, value)| Entry { owner, key, value });
                let entries: Vec<_> = entries.collect();
                if !self.keeps_board() {
                    let question = Question::Publish(entries);
                    return self.ask(BOARD_RANK, question, Requester::Op(done));
                }
                let (status, found) = self.board.publish(entries);
                done.answer(status);
                found.into_iter().for_each(|it| self.tell_found(it));
            }
            Request::Lookup { keys, waits, done } => {
                if !self.keeps_board() {
                    let question = Question::LookUp { keys, waits };
                    return self.ask(BOARD_RANK, question, Requester::LookUp(done));
                }
                let found = self.board.look_up(keys, waits, Looker::Here(done));
                found.into_iter().for_each(|it| self.tell_found(it));
            }
            Request::Unpublish {
                process,
                keys,
                done,
            } => {
                let owner = self.task_of(&process);
                if !self.keeps_board() {
                    let question = Question::Unpublish { owner, keys };
                    return self.ask(BOARD_RANK, question, Requester::Op(done));
                }
                self.board.unpublish(owner, &keys);
                done.answer(SUCCESS);
            }
            _ => {}
        }
    }

    fn keeps_board(&self) -> bool {
        let own = self.serving.as_ref().map(|it| it.job.own_node());
        own.is_none_or(|own| own.ranks.contains(TaskId(BOARD_RANK)))
    }

    fn tell_found(&mut self, found: Found) {
        let (status, entries) = (found.status, found.entries);
        match found.to {
            Looker::Here(done) => self.tell_looker(done, status, &entries),
            Looker::There(to, number) => {
                let reply = Reply::Found { status, entries };
                self.send_letter((to, number, Note::Reply(reply)));
            }
        }
    }

    fn tell_looker(&self, done: Done<LookupCallback>, status: i32, entries: &[Entry]) {
        tell_looker(self.serving.as_ref(), done, status, entries);
    }

    pub(super) fn ask(&mut self, rank: u32, question: Question, asker: Requester) {
        self.try_ask(rank, question, asker);
    }

    /// Sends a request to the node of a rank. Returns false if the request is too long for a peer message; its
    /// requester has then received the error.
    pub(super) fn try_ask(&mut self, rank: u32, question: Question, asker: Requester) -> bool {
        let letter = self.post.ask(rank, question, asker);
        let is_asked = letter.is_some();
        letter.into_iter().for_each(|it| self.send_letter(it));
        is_asked
    }

    /// Sends the data that a process of this node has put to the node that asked for it.
    pub(super) fn put(&mut self, to: u32, number: u64, status: i32, bytes: Vec<u8>) {
        let reply = match status {
            SUCCESS => {
                self.post.keep(to, number, bytes);
                self.post.part(to, number, 0)
            }
            _ => None,
        };
        let reply = reply.unwrap_or(Reply::Modex {
            status: if status == SUCCESS { NOT_FOUND } else { status },
            total: 0,
            offset: 0,
            bytes: Vec::new(),
        });
        self.send_letter((to, number, Note::Reply(reply)));
    }

    pub(super) fn read_letter(&mut self, letter: &PeerMessage) {
        let (from, number) = (letter.from, letter.number);
        if !letter.is_brought {
            if let Some((spawn, node)) = self.post.is_back(number) {
                self.hear_of_spawn(spawn, node, None);
            }
            return;
        }
        match Note::read(&letter.bytes) {
            Some(Note::Question(question)) => self.answer_question(from, number, question),
            Some(Note::Reply(Reply::Processes { table, is_last })) => {
                if let Some(id) = self.post.take_table(number, is_last) {
                    self.add_node(id, &table, is_last);
                }
            }
            Some(Note::Reply(reply)) => {
                if let Some((spawn, node)) = self.post.take_spawn(number) {
                    return self.hear_of_spawn(spawn, node, Some(reply));
                }
                let serving = self.serving.as_ref();
                let tell = |done: Done<LookupCallback>, status, entries: &[Entry]| {
                    tell_looker(serving, done, status, entries);
                };
                if let Some(letter) = self.post.answered(number, reply, tell) {
                    self.send_letter(letter);
                }
            }
            None => crate::messages::say(&format!(
                "the node of rank {from} sent an invalid peer message"
            )),
        }
    }

    fn answer_question(&mut self, from: u32, number: u64, question: Question) {
        let reply = match question {
            Question::Modex { rank, offset } => {
                if offset > 0
                    && let Some(reply) = self.post.part(from, number, offset)
                {
                    return self.send_letter((from, number, Note::Reply(reply)));
                }
                return self.ask_put(rank, from, number);
            }
            Question::Processes => return self.gather_for(from, number),
            Question::Publish(entries) => {
                let (status, found) = self.board.publish(entries);
                found.into_iter().for_each(|it| self.tell_found(it));
                Reply::Done { status }
            }
            Question::LookUp { keys, waits } => {
                let looker = Looker::There(from, number);
                let found = self.board.look_up(keys, waits, looker);
                return found.into_iter().for_each(|it| self.tell_found(it));
            }
            Question::Unpublish { owner, keys } => {
                self.board.unpublish(owner, &keys);
                Reply::Done { status: SUCCESS }
            }
            question @ (Question::WantOutput(_)
            | Question::Printed { .. }
            | Question::Input { .. }
            | Question::Signal { .. }
            | Question::PeerEvent(_)
            | Question::NodeEnded { .. }
            | Question::JobEnded { .. }) => return self.hear_elsewhere(question),
            Question::Know(offspring) => {
                let status = self.know(&offspring);
                Reply::Done { status }
            }
            Question::Reserve { count } => Reply::Reserved {
                first: self.reserve(count),
            },
            Question::Start {
                namespace,
                by,
                programs,
            } => return self.start_for((from, number), &namespace, by, programs),
        };
        self.send_letter((from, number, Note::Reply(reply)));
    }

    /// Asks libpmix for the data that a process of this node has put.
    fn ask_put(&mut self, rank: u32, to: u32, number: u64) {
        let asked = self.serving.as_ref().map(|serving| {
            let process = serving.process_of(rank);
            serving.library.ask_put(&process, to, number)
        });
        if let Some(Err(error)) = asked {
            crate::messages::say(&format!("{error:#}"));
            self.put(to, number, NOT_FOUND, Vec::new());
        }
    }

    /// Sends a peer message by a server of this node. The message's sender is a rank that this server owns.
    pub(super) fn send_letter(&mut self, (to, number, note): Unsigned) {
        let Some(bytes) = note.bytes() else {
            // Published values may be too large for one message.
            let Note::Reply(_) = note else { return };
            let entries = Vec::new();
            let status = OUT_OF_RESOURCE;
            let reply = Note::Reply(Reply::Found { status, entries });
            return self.send_letter((to, number, reply));
        };
        if self.serving.as_ref().is_some_and(|it| it.is_own(to)) {
            return;
        }
        let first = |it: &Peer| it.ranks.as_ref().and_then(IdSet::first);
        let Some((peer, from)) = self
            .peers
            .iter_mut()
            .find_map(|it| first(it).map(|rank| (it, rank.0)))
        else {
            return;
        };
        let letter = FromHost::Letter(PeerMessage {
            to,
            from,
            number,
            is_brought: true,
            bytes,
        });
        if !peer.send_all(&[letter]) {
            let id = peer.id;
            self.forget(id);
        }
    }
}

/// Sends the result of a lookup to a process of this node.
fn tell_looker(
    serving: Option<&Serving>,
    done: Done<LookupCallback>,
    status: i32,
    entries: &[Entry],
) {
    let owner = |task| serving.map_or_else(|| Proc::new("", task), |it| it.process_of(task));
    let found: Vec<_> = entries
        .iter()
        .map(|entry| Published {
            owner: owner(entry.owner),
            key: key_of(&CString::new(entry.key.as_str()).unwrap_or_default()),
            value: value::value(&entry.value),
        })
        .collect();
    done.answer(status, &found);
}
