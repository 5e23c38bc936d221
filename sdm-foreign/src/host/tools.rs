//! PMIx tools that are connected to this server: their registration, their queries, and tables of the processes of all
//! nodes for them.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use sdm_foreign::peer_messages::{Note, Question, Reply};
use sdm_foreign::{FromHost, HostTable};

use super::answers::table_needed;
use super::peer_requests::{Requester, Unsigned};
use super::request::{Done, InfoCallback, LogTexts, QueryItem, ToolCallback};
use super::{Host, PARTIAL_SUCCESS, SUCCESS, Serving};
use crate::ffi::Proc;

/// Time limit for the answers of servers and other nodes; the table lacks processes whose answer comes later.
const TABLE_WAIT: Duration = Duration::from_secs(10);

/// The origin of a request for a table of processes.
enum Reader {
    /// A tool that is connected here.
    Tool(Vec<QueryItem>, Done<InfoCallback>),
    /// Another node: a rank of that node, which gets the answer, and the number of its message.
    Node(u32, u64),
}

/// A table of processes that is being gathered.
pub(crate) struct PartialTable {
    id: u64,
    reader: Reader,
    /// The servers of this node that have not answered.
    peers: BTreeSet<u64>,
    /// Number of other nodes that have not answered.
    nodes: usize,
    table: HostTable,
    due: Instant,
}

impl Host {
    /// Accepts a tool that has connected, under the name it asks for or one made here.
    pub(super) fn welcome(&mut self, name: Option<Proc>, done: Done<ToolCallback>) {
        self.next_tool += 1;
        let job = self.serving.as_ref().map_or("", |it| &it.job.namespace);
        let given = Proc::new(&format!("{job}-tool-{}", self.next_tool), 0);
        done.answer(name.unwrap_or(given));
    }

    /// Passes on what a process or a tool logs; the status says whether all channels have it.
    pub(super) fn log(&mut self, who: &Proc, texts: LogTexts) -> i32 {
        let rank = self.serving.as_ref().and_then(|it| it.task_of(who));
        for (is_error, bytes) in [(false, texts.out), (true, texts.err)] {
            if !bytes.is_empty() {
                self.tell_all(&FromHost::Log {
                    rank,
                    is_error,
                    bytes,
                });
            }
        }
        // libpmix reports success for `NOT_SUPPORTED`.
        match texts.is_refused {
            false => SUCCESS,
            true => PARTIAL_SUCCESS,
        }
    }

    /// Handles a tool's query: first about batch queues, then about the state of all processes.
    pub(super) fn query(&mut self, wanted: Vec<QueryItem>, done: Done<InfoCallback>) {
        if let Some((wanted, done)) = self.queues.hold(wanted, done) {
            self.query_processes(wanted, done);
        }
    }

    pub(super) fn query_processes(&mut self, wanted: Vec<QueryItem>, done: Done<InfoCallback>) {
        let needed: Vec<bool> = wanted.iter().filter_map(table_needed).collect();
        let (needs_table, is_local) = (!needed.is_empty(), needed.iter().all(|it| *it));
        let reader = Reader::Tool(wanted, done);
        match needs_table {
            true => self.gather(reader, is_local),
            false => self.tell_reader(reader, HostTable::default()),
        }
    }

    /// Collects the processes of this node for another node.
    pub(super) fn gather_for(&mut self, to: u32, number: u64) {
        self.gather(Reader::Node(to, number), true);
    }

    fn gather(&mut self, reader: Reader, is_local: bool) {
        let id = self.next_gathering;
        self.next_gathering += 1;
        let known = self.peers.iter().filter(|it| it.ranks.is_some());
        let peers = known.map(|it| it.id).collect();
        let firsts: Vec<u32> = match (&self.serving, is_local) {
            (Some(serving), false) => serving.first_ranks_elsewhere(),
            _ => Vec::new(),
        };
        self.gatherings.push(PartialTable {
            id,
            reader,
            peers,
            nodes: firsts.len(),
            table: HostTable::default(),
            due: Instant::now() + TABLE_WAIT,
        });
        self.tell_all(&FromHost::WantProcesses);
        for rank in firsts {
            self.ask(rank, Question::Processes, Requester::Table(id));
        }
        self.end_gatherings(Instant::now());
    }

    /// Adds the processes of one server of this node.
    pub(super) fn add_processes(&mut self, peer: u64, table: &HostTable) {
        for gathering in &mut self.gatherings {
            if gathering.peers.remove(&peer) {
                gathering.table.join(table);
            }
        }
        self.end_gatherings(Instant::now());
    }

    /// Adds processes of another node; `is_last` is true for the last ones.
    pub(super) fn add_node(&mut self, id: u64, table: &HostTable, is_last: bool) {
        if let Some(gathering) = self.gatherings.iter_mut().find(|it| it.id == id) {
            gathering.nodes = gathering.nodes.saturating_sub(usize::from(is_last));
            gathering.table.join(table);
        }
        self.end_gatherings(Instant::now());
    }

    /// Stops waiting for the processes of a server that has disconnected.
    pub(super) fn forget_teller(&mut self, peer: u64) {
        self.add_processes(peer, &HostTable::default());
    }

    /// Time at which the next gathering is ended without the missing answers; `None` while none is open.
    pub(super) fn gathering_deadline(&self) -> Option<Instant> {
        self.gatherings.iter().map(|it| it.due).min()
    }

    /// Answers the queries whose tables are complete, or whose time limit is reached.
    pub(super) fn end_gatherings(&mut self, now: Instant) {
        let is_over =
            |it: &mut PartialTable| (it.peers.is_empty() && it.nodes == 0) || it.due <= now;
        let over: Vec<_> = self.gatherings.extract_if(.., is_over).collect();
        for gathering in over {
            self.tell_reader(gathering.reader, gathering.table);
        }
    }

    fn tell_reader(&mut self, reader: Reader, mut table: HostTable) {
        table.processes.sort_by_key(|it| it.rank);
        match reader {
            Reader::Node(to, number) => {
                for reply in Reply::of_table(table) {
                    let reply: Unsigned = (to, number, Note::Reply(reply));
                    self.send_letter(reply);
                }
            }
            Reader::Tool(wanted, done) => {
                let (known, status) = self.answer_all(&wanted, &table);
                done.answer(status, known);
            }
        }
    }
}

impl Serving {
    /// The first rank of each other node.
    pub(super) fn first_ranks_elsewhere(&self) -> Vec<u32> {
        let nodes = self.nodes_elsewhere().into_iter();
        let firsts = nodes.filter_map(|at| self.job.nodes[at as usize].ranks.first());
        firsts.map(|rank| rank.0).collect()
    }

    /// The other nodes that have ranks.
    pub(super) fn nodes_elsewhere(&self) -> Vec<u32> {
        let others = (0..).zip(&self.job.nodes);
        let others = others.filter(|(at, node)| *at != self.job.own && !node.ranks.is_empty());
        others.map(|(at, _)| at).collect()
    }
}
