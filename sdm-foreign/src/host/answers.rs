//! Answers to the queries of tools and processes.

use std::ffi::{CStr, CString, c_void};

use sdm_foreign::{HostProcess, HostState, HostTable};
use sdm_idset::{IdSet, TaskId};

use super::app::{DEBUG_ATTRIBUTES, SPAWN_ATTRIBUTES};
use super::query::{HOST_NAME, PROCESS};
use super::queues::{QUEUE_LIST, QUEUE_STATUS};
use super::request::{Known, NodeChoice, Qualifiers, QueryItem};
use super::system::address_in;
use super::upcalls::FUNCTIONS;
use super::{Host, NOT_FOUND, NOT_SUPPORTED, PARTIAL_SUCCESS, SUCCESS, Serving};
use crate::ffi::{
    Data, DataArray, Info, NAMESPACE, NAMESPACES, PROCESS_TABLE, Proc, ProcInfo, TYPE_DATA_ARRAY,
    TYPE_INFO, TYPE_PROC, TYPE_PROC_INFO, TYPE_STATUS, TYPE_STRING, TYPE_UINT32,
};

/// Key of the attributes of a job, and of those of a process.
const JOB_ARRAY: &CStr = c"pmix.job.arr";
const PROCESS_ARRAY: &CStr = c"pmix.pdata";
const COMMAND_LINE: &CStr = c"pmix.cmd.line";
/// Memory of processes, in MiB. The standard has no other key for it.
const MEMORY: &CStr = c"pmix.cl.mem.avg";

#[derive(Clone, Copy, PartialEq, Eq)]
enum QueryKey {
    Supported,
    Namespaces,
    Jobs,
    JobStatus,
    Queues,
    Table,
    LocalTable,
    SpawnSupport,
    DebugSupport,
    Functions,
    ProcessSetCount,
    ProcessSets,
    Memory,
    Address,
    FreeSlots,
    JobId,
    JobSize,
    LocalSize,
    LocalPeers,
    LocalProcesses,
}

/// The keys that are answered.
const KEYS: [(&CStr, QueryKey); 23] = [
    (c"pmix.qry.keys", QueryKey::Supported),
    (NAMESPACES, QueryKey::Namespaces),
    (c"pmix.qry.nsinfo", QueryKey::Jobs),
    (c"pmix.qry.jst", QueryKey::JobStatus),
    (QUEUE_LIST, QueryKey::Queues),
    (QUEUE_STATUS, QueryKey::Queues),
    (PROCESS_TABLE, QueryKey::Table),
    (c"pmix.qry.lptable", QueryKey::LocalTable),
    (c"pmix.qry.spawn", QueryKey::SpawnSupport),
    (c"pmix.qry.debug", QueryKey::DebugSupport),
    (c"pmix.host.fns", QueryKey::Functions),
    (c"pmix.qry.psetnum", QueryKey::ProcessSetCount),
    (c"pmix.qry.psets", QueryKey::ProcessSets),
    (c"pmix.qry.mem", QueryKey::Memory),
    (c"pmix.srvr.uri", QueryKey::Address),
    (c"pmix.qry.aslots", QueryKey::FreeSlots),
    (c"pmix.jobid", QueryKey::JobId),
    (NAMESPACE, QueryKey::JobId),
    (c"pmix.job.size", QueryKey::JobSize),
    (c"pmix.univ.size", QueryKey::JobSize),
    (c"pmix.local.size", QueryKey::LocalSize),
    (c"pmix.lpeers", QueryKey::LocalPeers),
    (c"pmix.lprocs", QueryKey::LocalProcesses),
];

fn key_of(item: &QueryItem) -> Option<QueryKey> {
    let mut keys = KEYS.iter();
    let found = keys.find(|(name, _)| *name == item.key.as_c_str());
    found.map(|(_, key)| *key)
}

/// True if a query needs the processes of this node only; `None` if it needs none.
pub(super) fn table_needed(item: &QueryItem) -> Option<bool> {
    let is_local = item.about.is_local;
    match key_of(item)? {
        QueryKey::Jobs | QueryKey::Table | QueryKey::Memory => Some(is_local),
        QueryKey::LocalTable => Some(is_local || item.about.nodes.is_empty()),
        _ => None,
    }
}

/// The number of a process's state in PMIx, and its exit code; 0 if it has not exited.
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

impl Host {
    /// The values that a tool asks for, and the status of the whole query.
    pub(super) fn answer_all(&self, wanted: &[QueryItem], table: &HostTable) -> (Known, i32) {
        let mut known = Known::default();
        let answer = |it| self.answer_query(it, table, &mut known);
        let statuses: Vec<i32> = wanted.iter().map(answer).collect();
        let failed: Vec<i32> = statuses.into_iter().filter(|it| *it != SUCCESS).collect();
        let status = match failed.first() {
            None => SUCCESS,
            Some(first) if failed.len() == wanted.len() => *first,
            Some(_) => PARTIAL_SUCCESS,
        };
        (known, status)
    }

    /// Adds the value that a tool asks for; the status says where there is none.
    fn answer_query(&self, item: &QueryItem, table: &HostTable, known: &mut Known) -> i32 {
        let name = item.key.as_c_str();
        let Some(key) = key_of(item).filter(|_| !item.about.needs_unknown) else {
            return NOT_SUPPORTED;
        };
        let Some(serving) = &self.serving else {
            return NOT_FOUND;
        };
        let text = match key {
            QueryKey::Supported => joined(KEYS.iter().map(|(name, _)| *name)),
            QueryKey::SpawnSupport => joined(SPAWN_ATTRIBUTES.into_iter()),
            QueryKey::DebugSupport => joined(DEBUG_ATTRIBUTES.into_iter()),
            QueryKey::Functions => FUNCTIONS.join(","),
            // No host of ours defines a set of processes.
            QueryKey::ProcessSets => String::new(),
            QueryKey::ProcessSetCount => {
                known.infos.push(Info::size(name, 0));
                return SUCCESS;
            }
            QueryKey::Namespaces => serving.namespaces().join(","),
            QueryKey::Address => match serving.address(&item.about) {
                Some(address) => address,
                None => return NOT_FOUND,
            },
            QueryKey::FreeSlots => {
                let slots = Info::number(name, TYPE_UINT32, serving.free_slots());
                known.infos.push(slots);
                return SUCCESS;
            }
            QueryKey::Queues => {
                let is_known = self.queues.answer_query(item, known);
                return if is_known { SUCCESS } else { NOT_SUPPORTED };
            }
            _ => return self.answer_of_jobs((name, key), serving, &item.about, table, known),
        };
        known.add_string(name, &text);
        SUCCESS
    }

    /// Adds a value of jobs or of their processes.
    fn answer_of_jobs(
        &self,
        (name, key): (&CStr, QueryKey),
        serving: &Serving,
        about: &Qualifiers,
        table: &HostTable,
        known: &mut Known,
    ) -> i32 {
        let jobs = match (&about.namespace, key) {
            (Some(named), _) => vec![named.clone()],
            (None, QueryKey::Jobs | QueryKey::Memory | QueryKey::LocalProcesses) => {
                serving.namespaces()
            }
            (None, _) => vec![serving.job.namespace.clone()],
        };
        let is_local = matches!(
            key,
            QueryKey::LocalTable
                | QueryKey::LocalSize
                | QueryKey::LocalPeers
                | QueryKey::LocalProcesses
        );
        let Some(tasks) = serving.narrowed(&jobs, about, is_local) else {
            return NOT_FOUND;
        };
        let is_meant = |it: &&HostProcess| tasks.contains(TaskId(it.rank));
        let rows = || table.processes.iter().filter(is_meant);
        let count = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
        let processes = || tasks.iter().map(|it| serving.process_of(it.0));
        let info = match key {
            QueryKey::Jobs => known.jobs(name, serving, &jobs, table),
            QueryKey::Memory => known.memory(name, serving, rows()),
            QueryKey::JobStatus => Info::number(name, TYPE_STATUS, 0),
            QueryKey::JobSize => {
                let whole = jobs.iter().filter_map(|it| serving.tasks_of_job(it));
                Info::number(name, TYPE_UINT32, count(whole.map(|it| it.len()).sum()))
            }
            QueryKey::LocalSize => Info::number(name, TYPE_UINT32, count(tasks.len())),
            QueryKey::LocalPeers => {
                let ranks = processes().map(|it| it.rank.to_string());
                known.text(name, &ranks.collect::<Vec<_>>().join(","))
            }
            QueryKey::LocalProcesses => {
                let members = processes().collect();
                known.processes(name, members)
            }
            QueryKey::Table | QueryKey::LocalTable => {
                let row = |it: &HostProcess| {
                    let is_connected = self.connected.contains(&it.rank);
                    known.row(serving, it, table, is_connected)
                };
                let rows = rows().map(row).collect();
                known.table(name, rows)
            }
            _ => known.text(name, &jobs.join(",")),
        };
        known.infos.push(info);
        SUCCESS
    }
}

fn joined<'a>(keys: impl Iterator<Item = &'a CStr>) -> String {
    let texts: Vec<_> = keys.map(CStr::to_string_lossy).collect();
    texts.join(",")
}

impl Serving {
    /// The address of this server; `None` for the server of another node.
    fn address(&self, about: &Qualifiers) -> Option<String> {
        let mut nodes = about.nodes.iter();
        let is_own = |node| self.node_of(node, None) == Some(self.job.own);
        nodes.all(is_own).then(|| address_in(&self.folder.path))?
    }

    /// Number of processors of this node for which the session has no process.
    fn free_slots(&self) -> u32 {
        let all = std::thread::available_parallelism().map_or(1, usize::from);
        let used = usize::try_from(self.own_tasks().len()).unwrap_or(all);
        u32::try_from(all.saturating_sub(used)).unwrap_or(u32::MAX)
    }

    /// The tasks of these jobs that a query is about; `None` if a job, node or rank is not known.
    fn narrowed(&self, jobs: &[String], about: &Qualifiers, is_local: bool) -> Option<IdSet> {
        let mut tasks = IdSet::new();
        for job in jobs {
            let all = self.tasks_of_job(job)?;
            if about.ranks.is_empty() {
                tasks.union_with(&all);
            }
            for rank in &about.ranks {
                let task = self.task_of(&Proc::new(job, *rank)).map(TaskId);
                tasks.insert(task.filter(|it| all.contains(*it))?);
            }
        }
        if about.nodes.is_empty() {
            let here = is_local || about.is_local;
            return Some(match here {
                true => tasks.intersection(&self.own_tasks()),
                false => tasks,
            });
        }
        let mut there = IdSet::new();
        for node in &about.nodes {
            let at = self.node_of(node, about.namespace.as_deref())?;
            there.union_with(&self.tasks_on(at));
        }
        Some(tasks.intersection(&there))
    }

    /// The index of a node among those of the first job; `None` for an unknown node. A number counts the nodes of the
    /// named job, as libpmix does for its processes.
    fn node_of(&self, node: &NodeChoice, namespace: Option<&str>) -> Option<u32> {
        let all = 0..u32::try_from(self.job.nodes.len()).ok()?;
        match node {
            NodeChoice::Name(name) => {
                let mut places = all.zip(&self.job.nodes);
                places.find_map(|(at, node)| (node.name == *name).then_some(at))
            }
            NodeChoice::Number(number) => {
                let mut offspring = self.offspring.iter();
                match offspring.find(|it| Some(&*it.namespace) == namespace) {
                    Some(job) => job.nodes().into_iter().nth(*number as usize),
                    None => all.contains(number).then_some(*number),
                }
            }
        }
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
    /// A copy of a text as a C string, which lives as long as this answer.
    fn string(&mut self, text: &str) -> *const std::ffi::c_char {
        self.strings.push(CString::new(text).unwrap_or_default());
        self.strings
            .last()
            .map_or(std::ptr::null(), |it| it.as_ptr())
    }

    fn text(&mut self, key: &CStr, text: &str) -> Info {
        let string = self.string(text);
        Info::new(key, TYPE_STRING, Data { string })
    }

    pub(super) fn add_string(&mut self, key: &CStr, text: &str) {
        let info = self.text(key, text);
        self.infos.push(info);
    }

    /// An attribute with an array of values. The caller keeps `items` as long as the attribute.
    fn array<T>(&mut self, key: &CStr, kind: u16, items: &[T]) -> Info {
        let array = Box::new(DataArray {
            kind,
            size: items.len(),
            array: items.as_ptr().cast::<c_void>(),
        });
        let data = Data {
            array: &raw const *array,
        };
        self.arrays.push(array);
        Info::new(key, TYPE_DATA_ARRAY, data)
    }

    fn infos(&mut self, key: &CStr, infos: Vec<Info>) -> Info {
        let info = self.array(key, TYPE_INFO, &infos);
        self.elements.push(infos);
        info
    }

    fn processes(&mut self, key: &CStr, processes: Vec<Proc>) -> Info {
        let info = self.array(key, TYPE_PROC, &processes);
        self.processes.push(processes);
        info
    }

    fn table(&mut self, key: &CStr, rows: Vec<ProcInfo>) -> Info {
        let info = self.array(key, TYPE_PROC_INFO, &rows);
        self.tables.push(rows);
        info
    }

    /// Adds the members of a group to the answer.
    pub(crate) fn add_members(&mut self, members: Vec<Proc>) {
        let info = self.processes(c"pmix.grp.mbrs", members);
        self.infos.push(info);
    }

    fn row(
        &mut self,
        serving: &Serving,
        process: &HostProcess,
        table: &HostTable,
        is_connected: bool,
    ) -> ProcInfo {
        let (state, exit_code) = number_of(process.state, is_connected);
        let program = table.program_of(process);
        ProcInfo {
            process: serving.process_of(process.rank),
            host: self.string(serving.host_of(process.rank)),
            program: self.string(program.map_or("", |it| &it.program)),
            pid: process.pid,
            exit_code,
            state,
        }
    }

    /// The jobs with their names and command lines. A job of several programs has one line of each.
    fn jobs(&mut self, key: &CStr, serving: &Serving, jobs: &[String], table: &HostTable) -> Info {
        let mut elements = Vec::new();
        for job in jobs {
            let tasks = serving.tasks_of_job(job).unwrap_or_default();
            let rows = table.processes.iter();
            let rows = rows.filter(|it| tasks.contains(TaskId(it.rank)));
            let mut commands: Vec<&sdm_foreign::HostCommand> = Vec::new();
            for command in rows.filter_map(|it| table.program_of(it)) {
                if commands.iter().all(|it| it.program != command.program) {
                    commands.push(command);
                }
            }
            let lines = commands.iter().map(|it| match it.line.is_empty() {
                true => it.program.as_str(),
                false => it.line.as_str(),
            });
            let line = lines.collect::<Vec<_>>().join(" : ");
            let fields = vec![self.text(NAMESPACE, job), self.text(COMMAND_LINE, &line)];
            elements.push(self.infos(JOB_ARRAY, fields));
        }
        self.infos(key, elements)
    }

    /// The memory of processes, as far as it is known.
    fn memory<'a>(
        &mut self,
        key: &CStr,
        serving: &Serving,
        rows: impl Iterator<Item = &'a HostProcess>,
    ) -> Info {
        let mut elements = Vec::new();
        for row in rows.filter(|it| it.resident_bytes > 0) {
            let process = vec![serving.process_of(row.rank)];
            let data = Data {
                process: process.as_ptr(),
            };
            self.processes.push(process);
            let fields = vec![
                Info::new(PROCESS, TYPE_PROC, data),
                self.text(HOST_NAME, serving.host_of(row.rank)),
                Info::float(MEMORY, (row.resident_bytes >> 10) as f32 / 1024.0),
            ];
            elements.push(self.infos(PROCESS_ARRAY, fields));
        }
        self.infos(key, elements)
    }
}
