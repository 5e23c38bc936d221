//! The PMIx library in the role of a server: loading, start, and registration of jobs and processes.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString, OsStr, c_char, c_int, c_void};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;

use anyhow::{Context, Result, anyhow};
use nix::unistd::{getegid, geteuid};
use sdm_foreign::{HostJob, SpawnedJob};
use sdm_idset::IdSet;
use sdm_text::printable_name;

use crate::ffi::{
    ByteObject, DEBUG_TARGET, Data, Info, Proc, SUCCESS, TYPE_PROC, TYPE_RANK, TYPE_UINT32, load,
    symbol, text,
};
use crate::host::control::on_told;
use crate::host::request::Waking;
use crate::host::upcalls::{Module, asked_for, on_put};

/// The libraries that are tried: by the names that the loader knows.
const LIBRARIES: [&str; 2] = ["libpmix.so.2", "libpmix.so"];
/// Environment variable with the path of the only library to use.
const LIBRARY_VARIABLE: &str = "SDM_PMIX_LIBRARY";
/// Standard output and standard error, as libpmix numbers them.
const STDOUT: u16 = 2;
const STDERR: u16 = 4;
const OPERATION_SUCCEEDED: c_int = -157;
/// Environment variable with a process's rank. It is left out of the variables that all processes share.
const RANK: &str = "PMIX_RANK";
/// Variable without which Open MPI 4 runs each process as a singleton, as if it had no launcher.
const FOR_OPEN_MPI_4: (&str, &str) = ("OMPI_MCA_schizo", "^orte");

type ServerInit = unsafe extern "C" fn(*mut Module, *mut Info, usize) -> c_int;
type RegisterNamespace = unsafe extern "C" fn(
    *const c_char,
    c_int,
    *mut Info,
    usize,
    *const c_void,
    *mut c_void,
) -> c_int;
type RegisterClient =
    unsafe extern "C" fn(*const Proc, u32, u32, *mut c_void, *const c_void, *mut c_void) -> c_int;
type ModexRequest = unsafe extern "C" fn(*const Proc, PutCallback, *mut c_void) -> c_int;
type PutCallback = unsafe extern "C" fn(c_int, *mut c_char, usize, *mut c_void);
type Callback = unsafe extern "C" fn(c_int, *mut c_void);
type Notify = unsafe extern "C" fn(
    c_int,
    *const Proc,
    u8,
    *const Info,
    usize,
    Callback,
    *mut c_void,
) -> c_int;
type Deliver = unsafe extern "C" fn(
    *const Proc,
    u16,
    *const ByteObject,
    *const Info,
    usize,
    Callback,
    *mut c_void,
) -> c_int;
type SetupFork = unsafe extern "C" fn(*const Proc, *mut *mut *mut c_char) -> c_int;
type Text = unsafe extern "C" fn() -> *const c_char;
type ErrorString = unsafe extern "C" fn(c_int) -> *const c_char;

/// A job, as it is registered with libpmix.
struct Registration<'a> {
    namespace: &'a str,
    /// The job's nodes, each with the job's ranks there.
    nodes: Vec<(&'a str, &'a IdSet)>,
    /// The job's ranks on this node; `None` if there are none.
    own: Option<&'a IdSet>,
    /// The process that started the job; `None` for a tool or the session.
    parent: Option<&'a Proc>,
    /// True if the job's processes wait in `PMIx_Init` for a debugger.
    is_held: bool,
    /// The processes that the job's processes debug; `None` if the job is no debugger's.
    target: Option<Proc>,
}

/// The PMIx server of this process, which has at most one.
pub(crate) struct Server {
    handle: *mut c_void,
    error: ErrorString,
    /// libpmix's own name and version.
    pub(crate) version: String,
}

impl Server {
    /// Loads libpmix, and does not start to serve.
    ///
    /// # Safety
    /// This process must have only one thread, as this sets environment variables.
    pub(crate) unsafe fn load() -> Result<Self> {
        let named = std::env::var_os(LIBRARY_VARIABLE);
        let (handle, loaded) = match &named {
            Some(path) => (load(Path::new(path))?, OsStr::new(path)),
            None => load_any()?,
        };
        // SAFETY: functions of these names have these signatures since version 2 of the standard.
        let (version, error) = unsafe {
            let version: Text = std::mem::transmute(symbol(handle, c"PMIx_Get_version")?);
            let error: ErrorString = std::mem::transmute(symbol(handle, c"PMIx_Error_string")?);
            (text(version()), error)
        };
        let name = loaded.to_string_lossy();
        let version = format!("{name}, {}", version.trim());
        // The security module is not munge, because other processes of the machine take part in that. The default store
        // of version 4 aborts over values of more than 4 MB.
        let mut settings = vec![("PMIX_MCA_psec", "native")];
        if version.contains("PMIx 4.") {
            settings.push(("PMIX_MCA_gds", "hash"));
        }
        for (name, value) in settings {
            // SAFETY: there is no other thread, the caller says.
            unsafe { std::env::set_var(name, value) };
        }
        Ok(Self {
            handle,
            error,
            version,
        })
    }

    /// Starts to serve this node of a job, with files in `folder`. Returns the environment variables for the job's
    /// processes.
    pub(crate) fn serve(&self, job: &HostJob, folder: &Path) -> Result<Vec<(String, String)>> {
        let string = |text: &str| {
            CString::new(text).context("the host name or the namespace contains a zero byte")
        };
        let own = job.own_node();
        let host = string(&own.name)?;
        let name = string(&format!("{}-server", job.namespace))?;
        let place = CString::new(folder.as_os_str().as_bytes())?;
        let mut infos = [
            Info::string(c"pmix.hname", &host),
            Info::string(c"pmix.srv.nspace", &name),
            Info::number(c"pmix.srv.rank", TYPE_RANK, 0),
            Info::string(c"pmix.srvr.tmpdir", &place),
            Info::string(c"pmix.sys.tmpdir", &place),
            Info::flag(c"pmix.srvr.tool", true),
            // See `system`: the file is in `place`, too, at first.
            Info::flag(c"pmix.srvr.sys", job.is_system),
            // With it on, delivering output is a crash in all versions.
            Info::flag(c"pmix.iof.local", false),
            // Tools of other users, which are allowed by default since version 5.
            Info::flag(c"pmix.srvr.ftools", false),
        ];
        // SAFETY: the signatures as in all versions; what is given lives across the calls, the table for ever.
        unsafe {
            let init: ServerInit = std::mem::transmute(self.symbol(c"PMIx_server_init")?);
            let module: &'static mut Module = Box::leak(Box::new(Module::new()));
            let status = init(module, infos.as_mut_ptr(), infos.len());
            self.check(status, "cannot start the PMIx server")?;
        }
        let nodes = job
            .nodes
            .iter()
            .map(|node| (node.name.as_str(), &node.ranks));
        let job = Registration {
            namespace: &job.namespace,
            nodes: nodes.collect(),
            own: Some(&own.ranks),
            parent: None,
            is_held: false,
            target: None,
        };
        self.register(&job, folder)?;
        self.environment(job.namespace, &own.ranks)
    }

    /// Registers a job that a process or a tool has spawned.
    pub(crate) fn adopt(
        &self,
        first: &HostJob,
        folder: &Path,
        job: &SpawnedJob,
        parent: Option<&Proc>,
    ) -> Result<()> {
        let mut places = Vec::new();
        for at in job.nodes() {
            let node = first.nodes.get(at as usize);
            let node = node.context("the spawned job refers to a node that does not exist")?;
            places.push((node.name.as_str(), job.ranks_on(at)));
        }
        let own = job.ranks_on(first.own);
        let target = job.target.as_ref();
        self.register(
            &Registration {
                namespace: &job.namespace,
                nodes: places.iter().map(|(name, ranks)| (*name, ranks)).collect(),
                own: (!own.is_empty()).then_some(&own),
                parent,
                is_held: job.is_held,
                target: target.map(|(namespace, rank)| Proc::new(namespace, *rank)),
            },
            folder,
        )
    }

    /// Asks libpmix for the data that a process of this node has put, for another node. libpmix answers by a request,
    /// once the process has put data.
    pub(crate) fn ask_put(&self, process: &Proc, to: u32, number: u64) -> Result<()> {
        let data = asked_for(to, number);
        // SAFETY: the signature as in all versions; the callback comes once where it is taken.
        unsafe {
            let ask: ModexRequest =
                std::mem::transmute(self.symbol(c"PMIx_server_dmodex_request")?);
            let status = ask(std::ptr::from_ref(process), on_put, data);
            let checked = self.check(
                status,
                "cannot get the data that a process has put (PMIx_Put)",
            );
            if checked.is_err() {
                // No callback will come that takes it.
                drop(Box::from_raw(data.cast::<(u32, u64)>()));
            }
            checked
        }
    }

    /// Delivers an event to the processes and tools that have registered for it.
    pub(crate) fn notify(&self, waking: Waking) -> Result<()> {
        let (code, range) = (waking.code, waking.range);
        let kept = Box::into_raw(Box::new(waking));
        // SAFETY: the signature as in all versions; what is given lives until the callback, or until it is taken back
        // below.
        unsafe {
            let notify: Notify = std::mem::transmute(self.symbol(c"PMIx_Notify_event")?);
            let (source, infos) = (&raw const *(*kept).source, &(*kept).infos);
            let (start, count) = (infos.as_ptr(), infos.len());
            let status = notify(code, source, range, start, count, on_told, kept.cast());
            self.passed_on(status, kept, "cannot notify PMIx clients of an event")
        }
    }

    /// Delivers the output of a process to the tools that have asked for it.
    pub(crate) fn deliver(&self, source: Proc, is_error: bool, bytes: Vec<u8>) -> Result<()> {
        let mut waking = Waking::new(SUCCESS, source, 0);
        waking.object = ByteObject {
            bytes: bytes.as_ptr().cast(),
            size: bytes.len(),
        };
        waking.bytes = bytes;
        let channel = if is_error { STDERR } else { STDOUT };
        let kept = Box::into_raw(Box::new(waking));
        // SAFETY: as above.
        unsafe {
            let deliver: Deliver = std::mem::transmute(self.symbol(c"PMIx_server_IOF_deliver")?);
            let (source, object) = (&raw const *(*kept).source, &raw const (*kept).object);
            let none = std::ptr::null();
            let status = deliver(source, channel, object, none, 0, on_told, kept.cast());
            self.passed_on(status, kept, "deliver output")
        }
    }

    /// Checks the status of a call that passes data to its callback. The data is freed here if the call failed, as its
    /// callback then does not come.
    ///
    /// # Safety
    /// `kept` must be the data of the call with this status.
    unsafe fn passed_on(&self, status: c_int, kept: *mut Waking, what: &str) -> Result<()> {
        if status != SUCCESS {
            // SAFETY: no callback comes that takes it.
            drop(unsafe { Box::from_raw(kept) });
        }
        self.check(status, what)
    }

    fn register(&self, job: &Registration<'_>, folder: &Path) -> Result<()> {
        let string = |text: String| {
            CString::new(text).context("a host name or the namespace contains a zero byte")
        };
        let names: Vec<_> = job.nodes.iter().map(|(name, _)| *name).collect();
        let ranks: Vec<_> = job.nodes.iter().map(|(_, ranks)| list(ranks)).collect();
        let nodes = string(format!("raw:{}", names.join(",")))?;
        let map = string(format!("raw:{}", ranks.join(";")))?;
        let namespace = string(job.namespace.to_owned())?;
        let none_here = IdSet::new();
        let own = job.own.unwrap_or(&none_here);
        let peers = string(list(own))?;
        let place = folder_of(job.namespace, folder)?;
        let count = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
        let all = job.nodes.iter().map(|(_, ranks)| ranks.len()).sum();
        let (all, here) = (count(all), count(own.len()));
        let number = |key, number| Info::number(key, TYPE_UINT32, number);
        let mut infos = vec![
            Info::string(c"pmix.nmap", &nodes),
            Info::string(c"pmix.pmap", &map),
            Info::string(c"pmix.jobid", &namespace),
            number(c"pmix.univ.size", all),
            number(c"pmix.job.size", all),
            number(c"pmix.max.size", all),
            number(c"pmix.job.napps", 1),
            number(c"pmix.num.nodes", count(job.nodes.len() as u64)),
            Info::string(c"pmix.tmpdir", &place),
            Info::string(c"pmix.nsdir", &place),
            Info::flag(c"pmix.tdir.rmclean", true),
        ];
        if let Some(leader) = own.first() {
            infos.extend([
                number(c"pmix.local.size", here),
                number(c"pmix.node.size", here),
                Info::string(c"pmix.lpeers", &peers),
                Info::number(c"pmix.lldr", TYPE_RANK, leader.0),
            ]);
        }
        if job.is_held {
            infos.push(Info::flag(c"pmix.dbg.init", true));
        }
        if let Some(target) = &job.target {
            let process = std::ptr::from_ref(target);
            infos.push(Info::new(DEBUG_TARGET, TYPE_PROC, Data { process }));
        }
        if let Some(parent) = job.parent {
            let process = std::ptr::from_ref(parent);
            infos.push(Info::flag(c"pmix.spawned", true));
            infos.push(Info::new(c"pmix.parent", TYPE_PROC, Data { process }));
        }
        let none = std::ptr::null();
        // SAFETY: the signatures as in all versions; without a callback both return when it is done.
        unsafe {
            let register: RegisterNamespace =
                std::mem::transmute(self.symbol(c"PMIx_server_register_nspace")?);
            let add: RegisterClient =
                std::mem::transmute(self.symbol(c"PMIx_server_register_client")?);
            let (start, length) = (infos.as_mut_ptr(), infos.len());
            let local = c_int::try_from(here).ok().with_context(|| {
                format!("{here} ranks on this node are more than PMIx can register")
            })?;
            let no_data = std::ptr::null_mut();
            let status = register(namespace.as_ptr(), local, start, length, none, no_data);
            self.check(status, "cannot register the job")?;
            for rank in own {
                let process = Proc::new(job.namespace, rank.0);
                let (uid, gid) = (geteuid().as_raw(), getegid().as_raw());
                let status = add(&raw const process, uid, gid, no_data, none, no_data);
                self.check(status, "cannot register a process")?;
            }
        }
        Ok(())
    }

    /// The environment variables for the processes of a registered job on this node. `own` is the set of the job's
    /// ranks here.
    pub(crate) fn environment(
        &self,
        namespace: &str,
        own: &IdSet,
    ) -> Result<Vec<(String, String)>> {
        let process = Proc::new(namespace, own.first().map_or(0, |first| first.0));
        let mut variables: *mut *mut c_char = std::ptr::null_mut();
        // SAFETY: the signature as in all versions; it makes an array that ends with null.
        let found = unsafe {
            let setup: SetupFork = std::mem::transmute(self.symbol(c"PMIx_server_setup_fork")?);
            let status = setup(&raw const process, &raw mut variables);
            self.check(status, "cannot get the environment of a process")?;
            strings(variables)
        };
        let pairs = found.iter().filter_map(|it| it.split_once('='));
        let mut pairs: Vec<_> = pairs
            .filter(|(name, _)| *name != RANK)
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        pairs.push((FOR_OPEN_MPI_4.0.to_owned(), FOR_OPEN_MPI_4.1.to_owned()));
        Ok(pairs)
    }

    fn symbol(&self, name: &CStr) -> Result<*mut c_void> {
        symbol(self.handle, name)
    }

    fn check(&self, status: c_int, what: &str) -> Result<()> {
        if status == SUCCESS || status == OPERATION_SUCCEEDED {
            return Ok(());
        }
        // SAFETY: the library gives a static string for any status.
        let why = unsafe { text((self.error)(status)) };
        Err(anyhow!("{}: {what}: {why} ({status})", self.version))
    }
}

/// Makes the folder for the files of a job's processes. It is below the server's own, since libpmix removes it when a
/// process of Open MPI leaves without finalizing.
fn folder_of(namespace: &str, folder: &Path) -> Result<CString> {
    let path = folder.join(namespace);
    let made = fs::DirBuilder::new().mode(0o700).create(&path);
    made.with_context(|| format!("cannot create the folder {}", printable_name(&path)))?;
    Ok(CString::new(path.as_os_str().as_bytes())?)
}

fn load_any() -> Result<(*mut c_void, &'static OsStr)> {
    let mut why = None;
    for name in LIBRARIES {
        match load(Path::new(name)) {
            Ok(handle) => return Ok((handle, OsStr::new(name))),
            Err(error) => why = why.or(Some(error)),
        }
    }
    Err(why.unwrap_or_else(|| anyhow!("no library")))
}

/// The strings of an array.
///
/// # Safety
/// `array` must be null or a null-terminated array of strings.
unsafe fn strings(mut array: *mut *mut c_char) -> Vec<String> {
    let mut found = Vec::new();
    while !array.is_null() {
        // SAFETY: not yet behind its end.
        let string = unsafe { *array };
        if string.is_null() {
            break;
        }
        // SAFETY: a string that ends.
        found.push(
            unsafe { CStr::from_ptr(string) }
                .to_string_lossy()
                .into_owned(),
        );
        // SAFETY: the null that ends it is not passed.
        array = unsafe { array.add(1) };
    }
    found
}

/// Ranks one by one, as libpmix reads them.
fn list(ranks: &IdSet) -> String {
    let texts: Vec<_> = ranks.iter().map(|rank| rank.0.to_string()).collect();
    texts.join(",")
}
