//! PMIx tools, which find this server as they find any other, and the answers to their queries.

use std::collections::BTreeSet;
use std::ffi::{CStr, CString, c_void};
use std::time::{Duration, Instant};

use sdm_foreign::peer_messages::{Question, Reply};
use sdm_foreign::{FromHost, HostProcess, HostState, HostTable};
use sdm_idset::TaskId;

use super::peer_requests::{Requester, Unsigned};
use super::request::{Done, InfoCallback, Known, QueryItem, ToolCallback};
use super::{Host, NOT_FOUND, NOT_SUPPORTED, PARTIAL_SUCCESS, SUCCESS, Serving};
use crate::ffi::{
    Data, DataArray, Info, NAMESPACE, NAMESPACES, PROCESS_TABLE, Proc, ProcInfo, TYPE_DATA_ARRAY,
    TYPE_PROC, TYPE_PROC_INFO, TYPE_STATUS, TYPE_UINT32,
};
use sdm_foreign::peer_messages::Note;

/// Query key of PMIx: the table of the processes of the server's own node.
const LOCAL_TABLE: &CStr = c"pmix.qry.lptable";
const JOB_STATUS: &CStr = c"pmix.qry.jst";
const JOB_SIZE: &CStr = c"pmix.job.size";
const UNIVERSE_SIZE: &CStr = c"pmix.univ.size";
const JOB_ID: &CStr = c"pmix.jobid";
const PROCESS_COUNT: &CStr = c"pmix.local.size";
/// Time limit for the answers of servers and other nodes; the table lacks processes whose answer comes later.
const TABLE_WAIT: Duration = Duration::from_secs(10);

/// The states of processes as PMIx numbers them.
fn number_of(state: HostState, is_connected: bool) -> (u8, i32) {
    match state {
        HostState::Absent => (0, 0),
        HostState::Starting => (2, 0),
        HostState::Running if is_connected => (6, 0),
        HostState::Running => (5, 0),
        HostState::Exited(code) => (20, code),
        HostState::Signalled => (54, 0),
    }
}

/// The origin of a request for a table of processes.
enum Reader {
    /// A tool that is connected here.
    Tool(Vec<QueryItem>, Done<InfoCallback>),
    /// Another node: a rank of that node, which gets the answer, and the number of its letter.
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

    /// Handles a tool's query: first about batch queues, then about the state of all processes.
    pub(super) fn query(&mut self, wanted: Vec<QueryItem>, done: Done<InfoCallback>) {
        if let Some((wanted, done)) = self.queues.hold(wanted, done) {
            self.query_processes(wanted, done);
        }
    }

    pub(super) fn query_processes(&mut self, wanted: Vec<QueryItem>, done: Done<InfoCallback>) {
        let reads = |it: &QueryItem| [PROCESS_TABLE, LOCAL_TABLE].contains(&it.key.as_c_str());
        let needs_table = wanted.iter().any(reads);
        let is_local = !wanted.iter().any(|it| it.key.as_c_str() == PROCESS_TABLE);
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

    /// Adds the processes of another node; the table is empty where the node does not answer.
    pub(super) fn add_node(&mut self, id: u64, table: &HostTable) {
        if let Some(gathering) = self.gatherings.iter_mut().find(|it| it.id == id) {
            gathering.nodes = gathering.nodes.saturating_sub(1);
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
                let reply: Unsigned = (to, number, Note::Reply(Reply::Processes(table)));
                self.send_letter(reply);
            }
            Reader::Tool(wanted, done) => {
                let mut known = Known::default();
                let told = wanted
                    .iter()
                    .filter(|it| self.answer_query(it, &table, &mut known));
                let status = match (told.count(), wanted.len()) {
                    (0, _) if wanted.iter().any(|it| it.key.as_c_str() == PROCESS_TABLE) => {
                        NOT_FOUND
                    }
                    (0, _) => NOT_SUPPORTED,
                    (told, all) if told < all => PARTIAL_SUCCESS,
                    _ => SUCCESS,
                };
                done.answer(status, known);
            }
        }
    }

    /// Adds the value that a tool asks for; false where it is unknown here.
    fn answer_query(&self, wanted: &QueryItem, table: &HostTable, known: &mut Known) -> bool {
        let Some(serving) = &self.serving else {
            return false;
        };
        let job = &serving.job;
        let named = wanted.namespace.as_deref().filter(|it| !it.is_empty());
        let namespace = named.unwrap_or(&job.namespace);
        let Some(tasks) = serving.tasks_of_job(namespace) else {
            return false;
        };
        let count = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
        let own = serving.own_tasks().intersection(&tasks);
        let key = wanted.key.as_c_str();
        if key == NAMESPACES {
            let offspring = serving.offspring.iter().map(|it| it.namespace.as_str());
            let all: Vec<_> = std::iter::once(job.namespace.as_str())
                .chain(offspring)
                .collect();
            known.add_string(key, &all.join(","));
        } else if key == JOB_ID || key == NAMESPACE {
            known.add_string(key, namespace);
        } else if key == JOB_SIZE || key == UNIVERSE_SIZE {
            known
                .infos
                .push(Info::number(key, TYPE_UINT32, count(tasks.len())));
        } else if key == PROCESS_COUNT {
            known
                .infos
                .push(Info::number(key, TYPE_UINT32, count(own.len())));
        } else if key == JOB_STATUS {
            known.infos.push(Info::number(key, TYPE_STATUS, 0));
        } else if key == PROCESS_TABLE || key == LOCAL_TABLE {
            let wanted = if key == PROCESS_TABLE { &tasks } else { &own };
            let is_wanted = |it: &&HostProcess| wanted.contains(TaskId(it.rank));
            let rows = table.processes.iter().filter(is_wanted).map(|process| {
                let program = table.program_of(process).unwrap_or("");
                let is_connected = self.connected.contains(&process.rank);
                let host = serving.host_of(process.rank);
                let name = serving.process_of(process.rank);
                known.row(name, process, (host, program), is_connected)
            });
            let rows: Vec<_> = rows.collect();
            known.add_table(key, rows);
        } else {
            return self.queues.answer_query(wanted, known);
        }
        true
    }
}

impl Serving {
    /// A rank of each other node.
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

    fn host_of(&self, rank: u32) -> &str {
        let started = self.offspring.iter().find_map(|it| it.rank_of(rank));
        let node = match started {
            Some((_, node)) => self.job.nodes.get(node as usize),
            None => {
                let mut nodes = self.job.nodes.iter();
                nodes.find(|it| it.ranks.contains(TaskId(rank)))
            }
        };
        node.map_or("", |node| &node.name)
    }
}

impl Known {
    /// A string that lives as long as this.
    fn string(&mut self, text: &str) -> *const std::ffi::c_char {
        self.strings.push(CString::new(text).unwrap_or_default());
        self.strings
            .last()
            .map_or(std::ptr::null(), |it| it.as_ptr())
    }

    pub(super) fn add_string(&mut self, key: &CStr, text: &str) {
        let string = self.string(text);
        self.infos
            .push(Info::new(key, crate::ffi::TYPE_STRING, Data { string }));
    }

    fn row(
        &mut self,
        name: Proc,
        process: &HostProcess,
        (host, program): (&str, &str),
        is_connected: bool,
    ) -> ProcInfo {
        let (state, exit_code) = number_of(process.state, is_connected);
        ProcInfo {
            process: name,
            host: self.string(host),
            program: self.string(program),
            pid: process.pid,
            exit_code,
            state,
        }
    }

    /// Adds the members of a group to the answer.
    pub(crate) fn add_members(&mut self, members: Vec<Proc>) {
        let array = Box::new(DataArray {
            kind: TYPE_PROC,
            size: members.len(),
            array: members.as_ptr().cast::<c_void>(),
        });
        let data = Data {
            array: &raw const *array,
        };
        self.infos
            .push(Info::new(c"pmix.grp.mbrs", TYPE_DATA_ARRAY, data));
        self.processes.push(members);
        self.arrays.push(array);
    }

    fn add_table(&mut self, key: &CStr, rows: Vec<ProcInfo>) {
        let array = Box::new(DataArray {
            kind: TYPE_PROC_INFO,
            size: rows.len(),
            array: rows.as_ptr().cast::<c_void>(),
        });
        let data = Data {
            array: &raw const *array,
        };
        self.infos.push(Info::new(key, TYPE_DATA_ARRAY, data));
        self.tables.push(rows);
        self.arrays.push(array);
    }
}
