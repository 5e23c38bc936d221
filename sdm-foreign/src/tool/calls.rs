//! The functions of libpmix that a tool calls.
#![allow(unsafe_code)]

use std::ffi::{CString, c_char, c_int, c_void};
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use anyhow::{Context, Result};
use sdm_foreign::tool_protocol::{
    Attribute, AttributeValue, Datum, FromTool, JobPart, Line, ToolRequest,
};

use super::decode;
use super::out::tell;
use crate::ffi::{
    App, ByteObject, Info, Proc, Query, SUCCESS, TYPE_RANK, TYPE_UINT32, Value, text,
};
use crate::library::Tool;

/// Key for the attributes that the functions of a library support.
const ATTRIBUTE_SUPPORT: &str = "pmix.qry.attrs";
/// Status of a query that is not answered.
const NOT_SUPPORTED: c_int = -47;
/// The type of a C `int`.
const TYPE_INT: u16 = 6;
/// Flag of an info: a server that does not know it must fail the call.
const REQUIRED: u32 = 1;
/// Status of PMIx: the operation is done, and no callback follows.
const OPERATION_SUCCEEDED: c_int = -157;
/// Time limit for a callback of libpmix.
const CALLBACK_WAIT: Duration = Duration::from_secs(60);
/// Status that stands for a callback that has not come in time.
const TIMED_OUT: c_int = -24;
/// Standard output and standard error.
const OUTPUTS: u16 = 2 | 4;
/// Status of PMIx with which an event handler reports that the event is handled.
const ACTION_COMPLETE: c_int = -334;

type QueryInfo = unsafe extern "C" fn(*mut Query, usize, *mut *mut Info, *mut usize) -> c_int;
type Get =
    unsafe extern "C" fn(*const Proc, *const c_char, *const Info, usize, *mut *mut Value) -> c_int;
type OpCallback = unsafe extern "C" fn(c_int, *mut c_void);
type Registered = unsafe extern "C" fn(c_int, usize, *mut c_void);
type Log =
    unsafe extern "C" fn(*const Info, usize, *const Info, usize, OpCallback, *mut c_void) -> c_int;
type Done = Option<
    unsafe extern "C" fn(c_int, *mut Info, usize, Option<OpCallback>, *mut c_void, *mut c_void),
>;
type Notified = unsafe extern "C" fn(
    usize,
    c_int,
    *const Proc,
    *const Info,
    usize,
    *mut Info,
    usize,
    Done,
    *mut c_void,
);
type Register = unsafe extern "C" fn(
    *const c_int,
    usize,
    *const Info,
    usize,
    Notified,
    Registered,
    *mut c_void,
) -> c_int;
type Spawn = unsafe extern "C" fn(*const Info, usize, *const App, usize, *mut c_char) -> c_int;
type Written = unsafe extern "C" fn(usize, u16, *const Proc, *const ByteObject, *const Info, usize);
type Pull = unsafe extern "C" fn(
    *const Proc,
    usize,
    *const Info,
    usize,
    u16,
    Written,
    Registered,
    *mut c_void,
) -> c_int;
type Push = unsafe extern "C" fn(
    *const Proc,
    usize,
    *const ByteObject,
    *const Info,
    usize,
    OpCallback,
    *mut c_void,
) -> c_int;
type Control = unsafe extern "C" fn(
    *const Proc,
    usize,
    *const Info,
    usize,
    *mut *mut Info,
    *mut usize,
) -> c_int;
type Version = unsafe extern "C" fn() -> *const c_char;

/// libpmix's functions for the calls of a tool. Other functions are looked up when they are needed, and a missing one
/// fails the call.
pub(super) struct Calls<'a> {
    tool: &'a Tool,
    query: QueryInfo,
    version: Version,
}

/// Infos, and the texts that they point to.
struct Infos {
    infos: Vec<Info>,
    _texts: Vec<CString>,
}

impl Infos {
    fn of(attributes: &[Attribute]) -> Result<Self> {
        let (mut infos, mut texts) = (Vec::new(), Vec::new());
        for attribute in attributes {
            let key = c_text(&attribute.key)?;
            let mut info = match &attribute.value {
                AttributeValue::Flag(flag) => Info::flag(&key, *flag),
                AttributeValue::Number(number) => {
                    Info::number(&key, TYPE_INT, number.cast_unsigned())
                }
                AttributeValue::Unsigned(number) => Info::number(&key, TYPE_UINT32, *number),
                AttributeValue::Rank(rank) => Info::number(&key, TYPE_RANK, *rank),
                AttributeValue::Text(text) => {
                    // The bytes of a `CString` stay where they are.
                    texts.push(c_text(text)?);
                    Info::string(&key, texts.last().context("the value is missing")?)
                }
            };
            if attribute.is_required {
                info.flags = REQUIRED;
            }
            infos.push(info);
        }
        Ok(Self {
            infos,
            _texts: texts,
        })
    }
}

fn c_text(text: &str) -> Result<CString> {
    CString::new(text)
        .context("a key, value, argument or environment variable contains a zero byte")
}

fn process(of: &JobPart) -> Proc {
    Proc::new(&of.namespace, of.rank)
}

/// An array of C strings: the pointers, and a terminating null pointer.
fn pointers(texts: &[CString]) -> Vec<*const c_char> {
    let all = texts.iter().map(|text| text.as_ptr());
    all.chain([std::ptr::null()]).collect()
}

fn c_texts(texts: &[String]) -> Result<Vec<CString>> {
    texts.iter().map(|text| c_text(text)).collect()
}

impl<'a> Calls<'a> {
    pub(super) fn of(tool: &'a Tool) -> Result<Self> {
        // SAFETY: the names are those of functions with these signatures since version 2 of the standard.
        unsafe {
            Ok(Self {
                tool,
                query: std::mem::transmute::<*mut c_void, QueryInfo>(
                    tool.function(c"PMIx_Query_info")?,
                ),
                version: std::mem::transmute::<*mut c_void, Version>(
                    tool.function(c"PMIx_Get_version")?,
                ),
            })
        }
    }

    /// libpmix's own version text.
    pub(super) fn version(&self) -> String {
        // SAFETY: a string of the library's that lives as long as it.
        unsafe { text((self.version)()) }
    }

    /// Executes a request. Returns the status of the call and the lines of its result.
    pub(super) fn carry_out(&self, ask: &ToolRequest) -> Result<(c_int, Vec<Line>)> {
        let none = |status| (status, Vec::new());
        match ask {
            ToolRequest::Query { key, attributes } => self.query(key, attributes),
            ToolRequest::Get { of, key } => self.get(of, key),
            ToolRequest::Log {
                channel,
                text,
                is_required,
            } => self.log(channel, text, *is_required).map(none),
            ToolRequest::Events { codes } => self.events(codes).map(none),
            ToolRequest::Spawn { .. } => self.spawn(ask),
            ToolRequest::Pull { of } => self.pull(of).map(none),
            ToolRequest::Push { to, bytes } => self.push(to, bytes).map(none),
            ToolRequest::Control { of, attributes } => self.control(of, attributes),
        }
    }

    fn query(&self, key: &str, attributes: &[Attribute]) -> Result<(c_int, Vec<Line>)> {
        // libpmix 4.2.2 crashes when it answers this itself.
        if key == ATTRIBUTE_SUPPORT {
            return Ok((NOT_SUPPORTED, Vec::new()));
        }
        let key = c_text(key)?;
        let mut keys = [key.as_ptr().cast_mut(), std::ptr::null_mut()];
        let mut qualifiers = Infos::of(attributes)?;
        let mut query = Query {
            keys: keys.as_mut_ptr(),
            qualifier_count: qualifiers.infos.len(),
            qualifiers: match qualifiers.infos.is_empty() {
                true => std::ptr::null_mut(),
                false => qualifiers.infos.as_mut_ptr(),
            },
        };
        let (mut results, mut count) = (std::ptr::null_mut::<Info>(), 0);
        // SAFETY: the query and what it points to live across the call; the library writes where its results are, and
        // how many.
        let status = unsafe { (self.query)(&raw mut query, 1, &raw mut results, &raw mut count) };
        // SAFETY: that many results, which are never freed: this process is short-lived.
        let lines = unsafe { decode::infos(results, count) };
        Ok((status, lines))
    }

    fn get(&self, of: &JobPart, key: &str) -> Result<(c_int, Vec<Line>)> {
        // SAFETY: the signature is the standard's.
        let get: Get = unsafe { std::mem::transmute(self.tool.function(c"PMIx_Get")?) };
        let (of, text) = (process(of), c_text(key)?);
        let mut value = std::ptr::null_mut::<Value>();
        // SAFETY: all live across the call; the library writes where the value is.
        let status = unsafe {
            get(
                &raw const of,
                text.as_ptr(),
                std::ptr::null(),
                0,
                &raw mut value,
            )
        };
        if status != SUCCESS {
            return Ok((status, Vec::new()));
        }
        // SAFETY: a value of the library's, or null.
        let lines = unsafe { value.as_ref().map(|it| decode::value(key, it)) };
        Ok((status, lines.unwrap_or_default()))
    }

    fn log(&self, channel: &str, text: &str, is_required: bool) -> Result<c_int> {
        // SAFETY: the signature is the standard's.
        let log: Log = unsafe { std::mem::transmute(self.tool.function(c"PMIx_Log_nb")?) };
        let data = Infos::of(&[Attribute {
            key: channel.to_owned(),
            value: AttributeValue::Text(text.to_owned()),
            is_required,
        }])?;
        wait_for(data, |data, waiter| {
            let infos = data.infos.as_ptr();
            // SAFETY: what is given lives until the callback has come.
            unsafe { log(infos, 1, std::ptr::null(), 0, op_done, waiter) }
        })
    }

    fn events(&self, codes: &[i32]) -> Result<c_int> {
        let name = c"PMIx_Register_event_handler";
        // SAFETY: the signature is the standard's.
        let register: Register = unsafe { std::mem::transmute(self.tool.function(name)?) };
        wait_for(codes.to_vec(), |codes, waiter| {
            let none = std::ptr::null();
            // SAFETY: what is given lives until the callback has come.
            unsafe {
                register(
                    codes.as_ptr(),
                    codes.len(),
                    none,
                    0,
                    notified,
                    registered,
                    waiter,
                )
            }
        })
    }

    fn spawn(&self, ask: &ToolRequest) -> Result<(c_int, Vec<Line>)> {
        let ToolRequest::Spawn {
            count,
            words,
            folder,
            environment,
            attributes,
        } = ask
        else {
            return Ok((SUCCESS, Vec::new()));
        };
        // SAFETY: the signature is the standard's.
        let spawn: Spawn = unsafe { std::mem::transmute(self.tool.function(c"PMIx_Spawn")?) };
        let (words, environment) = (c_texts(words)?, c_texts(environment)?);
        let (folder, infos) = (c_text(folder)?, Infos::of(attributes)?);
        let (word_list, variables) = (pointers(&words), pointers(&environment));
        let app = App {
            command: word_list[0],
            arguments: word_list.as_ptr(),
            environment: variables.as_ptr(),
            directory: folder.as_ptr(),
            count: c_int::try_from(*count).context("the number of processes is out of range")?,
            infos: std::ptr::null(),
            info_count: 0,
        };
        let mut name = Proc::new("", 0).namespace;
        let (all, all_count) = (infos.infos.as_ptr(), infos.infos.len());
        // SAFETY: all live across the call; the library writes a name of that length.
        let status = unsafe { spawn(all, all_count, &raw const app, 1, name.as_mut_ptr()) };
        let status = match status {
            OPERATION_SUCCEEDED => SUCCESS,
            other => other,
        };
        // SAFETY: the library ends what it writes; it was all zeros before.
        let namespace = unsafe { text(name.as_ptr()) };
        let line = Line {
            depth: 0,
            key: "pmix.nspace".to_owned(),
            value: Datum::Text(namespace),
        };
        Ok((status, vec![line]))
    }

    fn pull(&self, of: &JobPart) -> Result<c_int> {
        // SAFETY: the signature is the standard's.
        let pull: Pull = unsafe { std::mem::transmute(self.tool.function(c"PMIx_IOF_pull")?) };
        wait_for(process(of), |of, waiter| {
            let none = std::ptr::null();
            // SAFETY: what is given lives until the callback has come.
            unsafe {
                pull(
                    &raw const *of,
                    1,
                    none,
                    0,
                    OUTPUTS,
                    written,
                    registered,
                    waiter,
                )
            }
        })
    }

    fn push(&self, to: &JobPart, bytes: &[u8]) -> Result<c_int> {
        // SAFETY: the signature is the standard's.
        let push: Push = unsafe { std::mem::transmute(self.tool.function(c"PMIx_IOF_push")?) };
        let flag = match bytes.is_empty() {
            true => c"pmix.iof.cmp",
            false => c"pmix.iof.stdin",
        };
        let kept = (process(to), bytes.to_vec(), Info::flag(flag, true));
        wait_for(kept, |(to, bytes, info), waiter| {
            let bytes = leak(ByteObject {
                bytes: bytes.as_ptr().cast(),
                size: bytes.len(),
            });
            // SAFETY: what is given lives until the callback has come, and longer.
            unsafe {
                push(
                    &raw const *to,
                    1,
                    &raw const *bytes,
                    &raw const *info,
                    1,
                    op_done,
                    waiter,
                )
            }
        })
    }

    fn control(&self, of: &JobPart, attributes: &[Attribute]) -> Result<(c_int, Vec<Line>)> {
        let name = c"PMIx_Job_control";
        // SAFETY: the signature is the standard's since version 4.
        let control: Control = unsafe { std::mem::transmute(self.tool.function(name)?) };
        let (of, directives) = (process(of), Infos::of(attributes)?);
        let (mut results, mut count) = (std::ptr::null_mut::<Info>(), 0);
        let (all, all_count) = (directives.infos.as_ptr(), directives.infos.len());
        // SAFETY: all live across the call; the library writes where its results are, and how many.
        let status = unsafe {
            control(
                &raw const of,
                1,
                all,
                all_count,
                &raw mut results,
                &raw mut count,
            )
        };
        // SAFETY: that many results, which are never freed.
        let lines = unsafe { decode::infos(results, count) };
        Ok((status, lines))
    }
}

/// Makes a call with a callback, and returns the callback's status. The arguments and the waiting end are never
/// freed: a callback may still come after the time limit.
fn wait_for<T: 'static>(kept: T, call: impl FnOnce(&T, *mut c_void) -> c_int) -> Result<c_int> {
    let (sender, receiver) = channel::<c_int>();
    let kept: &'static T = leak(kept);
    let waiter: &'static Sender<c_int> = leak(sender);
    match call(kept, (&raw const *waiter).cast_mut().cast()) {
        SUCCESS => Ok(receiver.recv_timeout(CALLBACK_WAIT).unwrap_or(TIMED_OUT)),
        OPERATION_SUCCEEDED => Ok(SUCCESS),
        status => Ok(status),
    }
}

fn leak<T: 'static>(value: T) -> &'static T {
    // SAFETY: what is leaked lives for ever, and nobody changes it.
    unsafe { &*Box::into_raw(Box::new(value)) }
}

unsafe extern "C" fn op_done(status: c_int, waiter: *mut c_void) {
    // SAFETY: the pointer that was given with the call, which is never freed.
    if let Some(waiter) = unsafe { waiter.cast::<Sender<c_int>>().as_ref() } {
        let _ = waiter.send(status);
    }
}

unsafe extern "C" fn registered(status: c_int, _number: usize, waiter: *mut c_void) {
    // SAFETY: as for the other.
    unsafe { op_done(status, waiter) };
}

unsafe extern "C" fn notified(
    _handler: usize,
    status: c_int,
    source: *const Proc,
    infos: *const Info,
    count: usize,
    _results: *mut Info,
    _result_count: usize,
    done: Done,
    data: *mut c_void,
) {
    // SAFETY: a process of the library's, or null.
    let source = unsafe { source.as_ref() };
    let source = source.map_or_else(
        || JobPart {
            namespace: String::new(),
            rank: u32::MAX,
        },
        decode::among,
    );
    // SAFETY: that many infos.
    let lines = unsafe { decode::infos(infos, count) };
    tell(FromTool::Event {
        status,
        source,
        lines,
    });
    if let Some(done) = done {
        let null = std::ptr::null_mut();
        // SAFETY: the library's own function, with its own pointer.
        unsafe { done(ACTION_COMPLETE, std::ptr::null_mut(), 0, None, null, data) };
    }
}

unsafe extern "C" fn written(
    _handler: usize,
    channel: u16,
    source: *const Proc,
    payload: *const ByteObject,
    _infos: *const Info,
    _count: usize,
) {
    // SAFETY: a process and bytes of the library's, or null.
    let (source, payload) = unsafe { (source.as_ref(), payload.as_ref()) };
    let Some(source) = source else { return };
    let bytes = match payload {
        Some(it) if !it.bytes.is_null() => {
            // SAFETY: that many bytes.
            unsafe { std::slice::from_raw_parts(it.bytes.cast::<u8>(), it.size) }
        }
        _ => &[],
    };
    for part in bytes.chunks(sdm_foreign::tool_protocol::INPUT_BYTES_MAX) {
        tell(FromTool::Output {
            of: decode::among(source),
            channel,
            bytes: part.to_vec(),
        });
    }
}
