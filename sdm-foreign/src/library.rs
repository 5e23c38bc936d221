//! A connection to a foreign PMIx server.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::ffi::{
    Data, Info, NAMESPACE, NAMESPACE_CHARS, NAMESPACES, PROCESS_TABLE, Proc, ProcInfo, Query,
    SERVER_PID, SUCCESS, TYPE_DATA_ARRAY, TYPE_PID, TYPE_PROC_INFO, TYPE_RANK, TYPE_STRING, Value,
    load, symbol, text,
};
use crate::{connection_holder, sys};

const ATTACHMENT_FILE: &CStr = c"pmix.tool.attach";
const TOOL_NAMESPACE: &CStr = c"pmix.tool.nspace";
const TOOL_RANK: &CStr = c"pmix.tool.rank";
/// The namespace that every tool of SDM gives itself at a `prterun`, always with rank 0. `prterun` waits for the end of
/// each namespace, so a separate name for each tool would keep it alive after the user's job (Open MPI 5.0.11).
///
/// Any other server (`prte`) gets no name from the tool. Such a server chooses a different name for each tool, and
/// sends output only to such names.
const OWN_NAMESPACE: &CStr = c"sdm-pmix";
/// Name of the launcher whose server ends with its job.
const OF_ONE_JOB: &str = "prterun";
/// Interval between checks whether a server that ends with its job has begun the job.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// Time limit for the server's job to start. While another tool keeps a server running, a server whose job is over
/// looks the same. Such a server must not wait for this tool for ever.
const START_WAIT: Duration = Duration::from_secs(300);
/// Maximum accepted number of processes in one table.
const PROCESSES_MAX: usize = 1 << 20;

type ToolInit = unsafe extern "C" fn(*mut Proc, *mut Info, usize) -> c_int;
type QueryInfo = unsafe extern "C" fn(*mut Query, usize, *mut *mut Info, *mut usize) -> c_int;
type ErrorString = unsafe extern "C" fn(c_int) -> *const c_char;
type ToolFinalize = unsafe extern "C" fn() -> c_int;

/// One process of a job.
pub(crate) struct Process {
    pub(crate) rank: u32,
    pub(crate) pid: i32,
    pub(crate) host: String,
    pub(crate) program: String,
}

/// A call that has failed.
#[derive(Debug, thiserror::Error)]
#[error("{text}")]
pub(crate) struct CallError {
    pub(crate) status: c_int,
    text: String,
}

/// A connection to a server.
pub(crate) struct Tool {
    /// The server's pid, if the server ends with its job as `prterun` does; `None` for any other.
    of_one_job: Option<i32>,
    handle: *mut c_void,
    query: QueryInfo,
    error: ErrorString,
    finalize: ToolFinalize,
}

impl Tool {
    /// Loads libpmix and connects to the server in process `server`, by its rendezvous file where that is known.
    pub(crate) fn connect(library: &Path, server: i32, file: Option<&CStr>) -> Result<Self> {
        let handle = load(library)?;
        let ends_with_job = ends_with_job(server);
        // SAFETY: the names are those of functions with these signatures since version 2 of the
        // standard, and the library is never unloaded.
        let (init, tool) = unsafe {
            let init: ToolInit = std::mem::transmute(symbol(handle, c"PMIx_tool_init")?);
            let query = symbol(handle, c"PMIx_Query_info")?;
            let error = symbol(handle, c"PMIx_Error_string")?;
            let finalize = symbol(handle, c"PMIx_tool_finalize")?;
            let tool = Self {
                of_one_job: ends_with_job.then_some(server),
                handle,
                query: std::mem::transmute::<*mut c_void, QueryInfo>(query),
                error: std::mem::transmute::<*mut c_void, ErrorString>(error),
                finalize: std::mem::transmute::<*mut c_void, ToolFinalize>(finalize),
            };
            (init, tool)
        };
        let mut me = Proc {
            namespace: [0; NAMESPACE_CHARS],
            rank: 0,
        };
        let mut infos = [
            match file {
                Some(file) => Info::string(ATTACHMENT_FILE, file),
                None => Info::new(SERVER_PID, TYPE_PID, Data { pid: server }),
            },
            Info::string(TOOL_NAMESPACE, OWN_NAMESPACE),
            Info::number(TOOL_RANK, TYPE_RANK, 0),
        ];
        let count = match ends_with_job {
            true => infos.len(),
            false => 1,
        };
        // SAFETY: both live across the call and are laid out as the library expects.
        let status = unsafe { init(&raw mut me, infos.as_mut_ptr(), count) };
        tool.check(status)
            .with_context(|| format!("cannot connect to the PMIx server in process {server}"))?;
        Ok(tool)
    }

    /// Waits until a server that ends with its job has begun that job, for five minutes at most. `stays` is called if
    /// there is a wait.
    ///
    /// A `prterun` that still starts its daemons has no job yet. When its last tool leaves, it takes that for the end
    /// of all its work. It ends a second later, and the user's job with it (Open MPI 5.0.11).
    pub(crate) fn wait_for_job(&self, stays: impl FnOnce()) {
        let Some(server) = self.of_one_job else {
            return;
        };
        let is_on_its_way = || self.namespaces().is_ok_and(|it| it.is_empty()) && starts(server);
        if !is_on_its_way() {
            return;
        }
        // From now on this process outlives its parent. Setting the signal has worked before, so this cannot fail.
        let _ = nix::sys::prctl::set_pdeathsig(None);
        stays();
        let deadline = Instant::now() + START_WAIT;
        while is_on_its_way() && Instant::now() < deadline {
            std::thread::sleep(LOOK_EVERY);
        }
    }

    /// The names of all jobs, other tools and servers that the server knows.
    pub(crate) fn namespaces(&self) -> Result<Vec<String>> {
        let results = self
            .ask(NAMESPACES, None)
            .context("cannot query the namespaces of the PMIx server")?;
        let mut names = Vec::new();
        for value in results {
            if value.kind == TYPE_STRING {
                // SAFETY: the type says that it is a string, which the library never frees here.
                let list = unsafe { text(value.data.string) };
                names.extend(list.split(',').map(str::to_owned));
            }
        }
        names.retain(|name| !name.is_empty() && name.as_bytes() != OWN_NAMESPACE.to_bytes());
        Ok(names)
    }

    /// The processes of a job.
    pub(crate) fn processes(&self, namespace: &str) -> Result<Vec<Process>> {
        let name =
            CString::new(namespace).context("the name of a namespace contains a zero byte")?;
        let results = self.ask(PROCESS_TABLE, Some(&name));
        let mut processes = Vec::new();
        for value in results.context("cannot query the processes of the namespace")? {
            if value.kind != TYPE_DATA_ARRAY {
                continue;
            }
            // SAFETY: the type says that it points to an array, which the library never frees here.
            let Some(array) = (unsafe { value.data.array.as_ref() }) else {
                continue;
            };
            if array.kind != TYPE_PROC_INFO || array.size > PROCESSES_MAX || array.array.is_null() {
                continue;
            }
            // SAFETY: the array's type says that it holds as many of these.
            let found =
                unsafe { std::slice::from_raw_parts(array.array.cast::<ProcInfo>(), array.size) };
            // SAFETY: strings of the library, or null.
            processes.extend(found.iter().map(|it| unsafe {
                Process {
                    rank: it.process.rank,
                    pid: it.pid,
                    host: text(it.host),
                    program: text(it.program),
                }
            }));
        }
        Ok(processes)
    }

    fn ask(&self, key: &CStr, namespace: Option<&CStr>) -> Result<Vec<Value>> {
        let mut keys = [key.as_ptr().cast_mut(), std::ptr::null_mut()];
        let mut qualifier = namespace.map(|name| {
            let string = name.as_ptr();
            Info::new(NAMESPACE, TYPE_STRING, Data { string })
        });
        let mut query = Query {
            keys: keys.as_mut_ptr(),
            qualifier_count: usize::from(qualifier.is_some()),
            qualifiers: qualifier
                .as_mut()
                .map_or(std::ptr::null_mut(), |it| &raw mut *it),
        };
        let (mut results, mut count) = (std::ptr::null_mut::<Info>(), 0);
        // SAFETY: the query and what it points to live across the call; the library writes where its
        // results are, and how many.
        let status = unsafe { (self.query)(&raw mut query, 1, &raw mut results, &raw mut count) };
        self.check(status)?;
        if results.is_null() {
            return Ok(Vec::new());
        }
        // SAFETY: that many results, which are ours and never freed: this process ends soon.
        let values = (0..count)
            .map(|index| unsafe { std::ptr::read(&raw const (*results.add(index)).value) });
        Ok(values.collect())
    }

    fn check(&self, status: c_int) -> Result<()> {
        if status == SUCCESS {
            return Ok(());
        }
        // SAFETY: the library gives a static string for any status.
        let text = unsafe { text((self.error)(status)) };
        Err(CallError { status, text }.into())
    }

    /// A function of libpmix.
    pub(crate) fn function(&self, name: &CStr) -> Result<*mut c_void> {
        symbol(self.handle, name)
    }

    /// Disconnects from the server. The keeper of this process notices when the server has removed the tool.
    pub(crate) fn finish(self) {
        let connections = connection_holder::watch_connections();
        // SAFETY: it was initialised, and nobody uses it any more.
        unsafe {
            (self.finalize)();
        }
        // The duplicated descriptors must not keep the connections open.
        connections.into_iter().for_each(sys::leave);
    }
}

/// True if a server ends with its job. Such a server has to know all of SDM's tools by one name.
pub(crate) fn ends_with_job(server: i32) -> bool {
    let program = sdm_system::proc::of(server).program().unwrap_or_default();
    program.file_name().is_some_and(|name| name == OF_ONE_JOB)
}

/// True if a server has child processes, which start its daemons. A server that ends has none, and would wait for its
/// last tool.
fn starts(server: i32) -> bool {
    let stat = |pid| sdm_system::proc::of(pid).stat().ok();
    let pids = sdm_system::proc::pids().into_iter().flatten();
    pids.filter_map(stat)
        .any(|stat| stat.parent() == Some(server) && !stat.state().has_ended())
}
