//! The call by which a tool or a process asks for values (`PMIx_Query_info`).
#![allow(unsafe_code)]

use std::ffi::{CStr, CString, c_int, c_void};

use super::request::{Done, InfoCallback, NodeChoice, Qualifiers, QueryItem, Request, hand_over};
use super::upcalls::{RANK, RANK_WILDCARD, is_set, keys, slice};
use crate::ffi::{
    Info, NAMESPACE, Proc, QUEUE, Query, TYPE_PROC, TYPE_RANK, TYPE_STRING, TYPE_UINT, TYPE_UINT32,
    text,
};

/// Qualifiers of queries: a process, a node by its number and by its name, and the server's own node only.
pub(super) const PROCESS: &CStr = c"pmix.procid";
const NODE_NUMBER: &CStr = c"pmix.nodeid";
pub(super) const HOST_NAME: &CStr = c"pmix.hname";
const LOCAL_ONLY: &CStr = c"pmix.qry.local";
/// Directive of an attribute that must not be ignored (`PMIX_INFO_REQD`).
const REQUIRED: u32 = 1;

/// Reads the qualifiers of a query.
///
/// # Safety
/// `qualifiers` must come from libpmix.
unsafe fn narrowed_by(qualifiers: &[Info]) -> Qualifiers {
    let mut about = Qualifiers::default();
    for info in qualifiers {
        let data = &info.value.data;
        // SAFETY: the type says what it is; strings end, and a process may be null.
        unsafe {
            match info.value.kind {
                TYPE_STRING if info.is(NAMESPACE) => about.namespace = Some(text(data.string)),
                TYPE_STRING if info.is(QUEUE) => about.queue = Some(text(data.string)),
                TYPE_STRING if info.is(HOST_NAME) => {
                    about.nodes.push(NodeChoice::Name(text(data.string)));
                }
                TYPE_UINT | TYPE_UINT32 if info.is(NODE_NUMBER) => {
                    about.nodes.push(NodeChoice::Number(data.uint32));
                }
                TYPE_RANK if info.is(RANK) => about.ranks.push(data.uint32),
                TYPE_PROC if info.is(PROCESS) => {
                    if let Some(process) = data.process.as_ref() {
                        about.namespace = Some(process.name());
                        about.ranks.push(process.rank);
                    }
                }
                _ if info.is(LOCAL_ONLY) => about.is_local = is_set(&info.value),
                _ => about.needs_unknown |= info.flags & REQUIRED != 0,
            }
        }
    }
    about.namespace = about.namespace.filter(|it| !it.is_empty());
    // A special value stands for all ranks.
    if about.ranks.iter().any(|it| *it >= RANK_WILDCARD) {
        about.ranks.clear();
    }
    about
}

pub(super) unsafe extern "C" fn on_query(
    _: *const Proc,
    queries: *const Query,
    count: usize,
    callback: Option<InfoCallback>,
    data: *mut c_void,
) -> c_int {
    let mut wanted = Vec::new();
    // SAFETY: as the library's interface says.
    for query in unsafe { slice(queries, count) } {
        // SAFETY: the same.
        let (keys, qualifiers) = unsafe {
            (
                keys(query.keys.cast()),
                slice(query.qualifiers.cast_const(), query.qualifier_count),
            )
        };
        // SAFETY: values of the library's.
        let about = unsafe { narrowed_by(qualifiers) };
        wanted.extend(keys.into_iter().map(|key| QueryItem {
            key: CString::new(key).unwrap_or_default(),
            about: about.clone(),
        }));
    }
    let done = Done { callback, data };
    hand_over(Request::Query { wanted, done })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn query_with_unknown_required_qualifier_is_recognized() {
        let flagged = |key: &CStr, flags| {
            let info = Info {
                flags,
                ..Info::flag(key, true)
            };
            // SAFETY: the attribute has no pointers.
            unsafe { narrowed_by(&[info]) }
        };
        assert!(flagged(c"no.such.qualifier", REQUIRED).needs_unknown);
        assert!(!flagged(c"no.such.qualifier", 0).needs_unknown);
        let known = flagged(LOCAL_ONLY, REQUIRED);
        assert!(!known.needs_unknown && known.is_local);
    }
}
