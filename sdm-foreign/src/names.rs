//! Names of PMIx's numeric constants, as in the standard. A table of our own, so that the answer does not depend on
//! libpmix, and an unknown number has a name as well.

use std::borrow::Cow;

/// Status codes of calls and events.
const STATUSES: &[(i32, &str)] = &[
    (0, "PMIX_SUCCESS"),
    (-1, "PMIX_ERROR"),
    (-2, "PMIX_ERR_SILENT"),
    (-3, "PMIX_DEBUGGER_RELEASE"),
    (-4, "PMIX_ERR_PROC_RESTART"),
    (-5, "PMIX_ERR_PROC_CHECKPOINT"),
    (-6, "PMIX_ERR_PROC_MIGRATE"),
    (-7, "PMIX_ERR_PROC_ABORTED"),
    (-8, "PMIX_ERR_PROC_REQUESTED_ABORT"),
    (-9, "PMIX_ERR_PROC_ABORTING"),
    (-10, "PMIX_ERR_SERVER_FAILED_REQUEST"),
    (-11, "PMIX_ERR_EXISTS"),
    (-12, "PMIX_ERR_INVALID_CRED"),
    (-13, "PMIX_ERR_HANDSHAKE_FAILED"),
    (-14, "PMIX_ERR_READY_FOR_HANDSHAKE"),
    (-15, "PMIX_ERR_WOULD_BLOCK"),
    (-16, "PMIX_ERR_UNKNOWN_DATA_TYPE"),
    (-17, "PMIX_ERR_PROC_ENTRY_NOT_FOUND"),
    (-18, "PMIX_ERR_TYPE_MISMATCH"),
    (-19, "PMIX_ERR_UNPACK_INADEQUATE_SPACE"),
    (-20, "PMIX_ERR_UNPACK_FAILURE"),
    (-21, "PMIX_ERR_PACK_FAILURE"),
    (-22, "PMIX_ERR_PACK_MISMATCH"),
    (-23, "PMIX_ERR_NO_PERMISSIONS"),
    (-24, "PMIX_ERR_TIMEOUT"),
    (-25, "PMIX_ERR_UNREACH"),
    (-26, "PMIX_ERR_IN_ERRNO"),
    (-27, "PMIX_ERR_BAD_PARAM"),
    (-28, "PMIX_ERR_RESOURCE_BUSY"),
    (-29, "PMIX_ERR_OUT_OF_RESOURCE"),
    (-30, "PMIX_ERR_DATA_VALUE_NOT_FOUND"),
    (-31, "PMIX_ERR_INIT"),
    (-32, "PMIX_ERR_NOMEM"),
    (-33, "PMIX_ERR_INVALID_ARG"),
    (-34, "PMIX_ERR_INVALID_KEY"),
    (-35, "PMIX_ERR_INVALID_KEY_LENGTH"),
    (-36, "PMIX_ERR_INVALID_VAL"),
    (-37, "PMIX_ERR_INVALID_VAL_LENGTH"),
    (-38, "PMIX_ERR_INVALID_LENGTH"),
    (-39, "PMIX_ERR_INVALID_NUM_ARGS"),
    (-40, "PMIX_ERR_INVALID_ARGS"),
    (-41, "PMIX_ERR_INVALID_NUM_PARSED"),
    (-42, "PMIX_ERR_INVALID_KEYVALP"),
    (-43, "PMIX_ERR_INVALID_SIZE"),
    (-44, "PMIX_ERR_INVALID_NAMESPACE"),
    (-45, "PMIX_ERR_SERVER_NOT_AVAIL"),
    (-46, "PMIX_ERR_NOT_FOUND"),
    (-47, "PMIX_ERR_NOT_SUPPORTED"),
    (-48, "PMIX_ERR_NOT_IMPLEMENTED"),
    (-49, "PMIX_ERR_COMM_FAILURE"),
    (-50, "PMIX_ERR_UNPACK_READ_PAST_END_OF_BUFFER"),
    (-51, "PMIX_ERR_CONFLICTING_CLEANUP_DIRECTIVES"),
    (-52, "PMIX_ERR_PARTIAL_SUCCESS"),
    (-53, "PMIX_ERR_DUPLICATE_KEY"),
    (-55, "PMIX_PROCESS_SET_DEFINE"),
    (-56, "PMIX_PROCESS_SET_DELETE"),
    (-58, "PMIX_READY_FOR_DEBUG"),
    (-59, "PMIX_ERR_PARAM_VALUE_NOT_SUPPORTED"),
    (-60, "PMIX_ERR_EMPTY"),
    (-61, "PMIX_ERR_LOST_CONNECTION"),
    (-62, "PMIX_ERR_EXISTS_OUTSIDE_SCOPE"),
    (-63, "PMIX_ERR_FATAL"),
    (-64, "PMIX_ERR_NOT_AVAILABLE"),
    (-65, "PMIX_ERR_VALUE_OUT_OF_BOUNDS"),
    (-67, "PMIX_ERR_FILE_OPEN_FAILURE"),
    (-68, "PMIX_ERR_FILE_READ_FAILURE"),
    (-69, "PMIX_ERR_FILE_WRITE_FAILURE"),
    (-70, "PMIX_ERR_SYS_LIMITS_PIPES"),
    (-71, "PMIX_ERR_SYS_LIMITS_CHILDREN"),
    (-72, "PMIX_ERR_PIPE_SETUP_FAILURE"),
    (-73, "PMIX_ERR_EXE_NOT_ACCESSIBLE"),
    (-74, "PMIX_ERR_JOB_WDIR_NOT_ACCESSIBLE"),
    (-75, "PMIX_ERR_SYS_LIMITS_FILES"),
    (-101, "PMIX_ERR_LOST_CONNECTION_TO_SERVER"),
    (-102, "PMIX_ERR_LOST_PEER_CONNECTION"),
    (-103, "PMIX_ERR_LOST_CONNECTION_TO_CLIENT"),
    (-104, "PMIX_QUERY_PARTIAL_SUCCESS"),
    (-105, "PMIX_NOTIFY_ALLOC_COMPLETE"),
    (-106, "PMIX_JCTRL_CHECKPOINT"),
    (-107, "PMIX_JCTRL_CHECKPOINT_COMPLETE"),
    (-108, "PMIX_JCTRL_PREEMPT_ALERT"),
    (-109, "PMIX_MONITOR_HEARTBEAT_ALERT"),
    (-110, "PMIX_MONITOR_FILE_ALERT"),
    (-111, "PMIX_PROC_TERMINATED"),
    (-112, "PMIX_ERR_INVALID_TERMINATION"),
    (-113, "PMIX_FABRIC_UPDATE_ENDPOINTS"),
    (-144, "PMIX_ERR_EVENT_REGISTRATION"),
    (-145, "PMIX_EVENT_JOB_END"),
    (-146, "PMIX_ERR_UPDATE_ENDPOINTS"),
    (-147, "PMIX_MODEL_DECLARED"),
    (-148, "PMIX_GDS_ACTION_COMPLETE"),
    (-149, "PMIX_PROC_HAS_CONNECTED"),
    (-150, "PMIX_CONNECT_REQUESTED"),
    (-151, "PMIX_MODEL_RESOURCES"),
    (-152, "PMIX_OPENMP_PARALLEL_ENTERED"),
    (-153, "PMIX_OPENMP_PARALLEL_EXITED"),
    (-155, "PMIX_LAUNCHER_READY"),
    (-156, "PMIX_OPERATION_IN_PROGRESS"),
    (-157, "PMIX_OPERATION_SUCCEEDED"),
    (-158, "PMIX_ERR_INVALID_OPERATION"),
    (-159, "PMIX_GROUP_INVITED"),
    (-160, "PMIX_GROUP_LEFT"),
    (-161, "PMIX_GROUP_INVITE_ACCEPTED"),
    (-162, "PMIX_GROUP_INVITE_DECLINED"),
    (-163, "PMIX_GROUP_INVITE_FAILED"),
    (-164, "PMIX_GROUP_MEMBERSHIP_UPDATE"),
    (-165, "PMIX_GROUP_CONSTRUCT_ABORT"),
    (-166, "PMIX_GROUP_CONSTRUCT_COMPLETE"),
    (-167, "PMIX_GROUP_LEADER_SELECTED"),
    (-168, "PMIX_GROUP_LEADER_FAILED"),
    (-169, "PMIX_GROUP_CONTEXT_ID_ASSIGNED"),
    (-170, "PMIX_GROUP_MEMBER_FAILED"),
    (-171, "PMIX_ERR_REPEAT_ATTR_REGISTRATION"),
    (-172, "PMIX_ERR_IOF_FAILURE"),
    (-173, "PMIX_ERR_IOF_COMPLETE"),
    (-174, "PMIX_LAUNCH_COMPLETE"),
    (-175, "PMIX_FABRIC_UPDATED"),
    (-176, "PMIX_FABRIC_UPDATE_PENDING"),
    (-177, "PMIX_ERR_JOB_APP_NOT_EXECUTABLE"),
    (-178, "PMIX_ERR_JOB_NO_EXE_SPECIFIED"),
    (-179, "PMIX_ERR_JOB_FAILED_TO_MAP"),
    (-180, "PMIX_ERR_JOB_CANCELED"),
    (-181, "PMIX_ERR_JOB_FAILED_TO_LAUNCH"),
    (-182, "PMIX_ERR_JOB_ABORTED"),
    (-183, "PMIX_ERR_JOB_KILLED_BY_CMD"),
    (-184, "PMIX_ERR_JOB_ABORTED_BY_SIG"),
    (-185, "PMIX_ERR_JOB_TERM_WO_SYNC"),
    (-186, "PMIX_ERR_JOB_SENSOR_BOUND_EXCEEDED"),
    (-187, "PMIX_ERR_JOB_NON_ZERO_TERM"),
    (-188, "PMIX_ERR_JOB_ALLOC_FAILED"),
    (-189, "PMIX_ERR_JOB_ABORTED_BY_SYS_EVENT"),
    (-190, "PMIX_ERR_JOB_EXE_NOT_FOUND"),
    (-191, "PMIX_EVENT_JOB_START"),
    (-192, "PMIX_EVENT_SESSION_START"),
    (-193, "PMIX_EVENT_SESSION_END"),
    (-200, "PMIX_ERR_PROC_TERM_WO_SYNC"),
    (-201, "PMIX_EVENT_PROC_TERMINATED"),
    (-231, "PMIX_EVENT_NODE_DOWN"),
    (-232, "PMIX_EVENT_NODE_OFFLINE"),
    (-233, "PMIX_ERR_JOB_WDIR_NOT_FOUND"),
    (-234, "PMIX_ERR_JOB_INSUFFICIENT_RESOURCES"),
    (-235, "PMIX_ERR_JOB_SYS_OP_FAILED"),
    (-331, "PMIX_EVENT_NO_ACTION_TAKEN"),
    (-332, "PMIX_EVENT_PARTIAL_ACTION_TAKEN"),
    (-333, "PMIX_EVENT_ACTION_DEFERRED"),
    (-334, "PMIX_EVENT_ACTION_COMPLETE"),
    (-400, "PMIX_ERR_PROC_KILLED_BY_CMD"),
    (-401, "PMIX_ERR_PROC_FAILED_TO_START"),
    (-402, "PMIX_ERR_PROC_ABORTED_BY_SIG"),
    (-403, "PMIX_ERR_PROC_SENSOR_BOUND_EXCEEDED"),
    (-404, "PMIX_ERR_EXIT_NONZERO_TERM"),
];

/// Types of values.
const TYPES: &[(u16, &str)] = &[
    (0, "PMIX_UNDEF"),
    (1, "PMIX_BOOL"),
    (2, "PMIX_BYTE"),
    (3, "PMIX_STRING"),
    (4, "PMIX_SIZE"),
    (5, "PMIX_PID"),
    (6, "PMIX_INT"),
    (7, "PMIX_INT8"),
    (8, "PMIX_INT16"),
    (9, "PMIX_INT32"),
    (10, "PMIX_INT64"),
    (11, "PMIX_UINT"),
    (12, "PMIX_UINT8"),
    (13, "PMIX_UINT16"),
    (14, "PMIX_UINT32"),
    (15, "PMIX_UINT64"),
    (16, "PMIX_FLOAT"),
    (17, "PMIX_DOUBLE"),
    (18, "PMIX_TIMEVAL"),
    (19, "PMIX_TIME"),
    (20, "PMIX_STATUS"),
    (21, "PMIX_VALUE"),
    (22, "PMIX_PROC"),
    (23, "PMIX_APP"),
    (24, "PMIX_INFO"),
    (25, "PMIX_PDATA"),
    (27, "PMIX_BYTE_OBJECT"),
    (28, "PMIX_KVAL"),
    (30, "PMIX_PERSIST"),
    (31, "PMIX_POINTER"),
    (32, "PMIX_SCOPE"),
    (33, "PMIX_DATA_RANGE"),
    (34, "PMIX_COMMAND"),
    (35, "PMIX_INFO_DIRECTIVES"),
    (36, "PMIX_DATA_TYPE"),
    (37, "PMIX_PROC_STATE"),
    (38, "PMIX_PROC_INFO"),
    (39, "PMIX_DATA_ARRAY"),
    (40, "PMIX_PROC_RANK"),
    (41, "PMIX_QUERY"),
    (42, "PMIX_COMPRESSED_STRING"),
    (43, "PMIX_ALLOC_DIRECTIVE"),
    (45, "PMIX_IOF_CHANNEL"),
    (46, "PMIX_ENVAR"),
    (47, "PMIX_COORD"),
    (48, "PMIX_REGATTR"),
    (49, "PMIX_REGEX"),
    (50, "PMIX_JOB_STATE"),
    (51, "PMIX_LINK_STATE"),
    (52, "PMIX_PROC_CPUSET"),
    (53, "PMIX_GEOMETRY"),
    (54, "PMIX_DEVICE_DIST"),
    (55, "PMIX_ENDPOINT"),
    (56, "PMIX_TOPO"),
    (57, "PMIX_DEVTYPE"),
    (58, "PMIX_LOCTYPE"),
    (59, "PMIX_COMPRESSED_BYTE_OBJECT"),
    (60, "PMIX_PROC_NSPACE"),
    (61, "PMIX_PROC_STATS"),
    (62, "PMIX_DISK_STATS"),
    (63, "PMIX_NET_STATS"),
    (64, "PMIX_NODE_STATS"),
    (65, "PMIX_DATA_BUFFER"),
    (66, "PMIX_STOR_MEDIUM"),
    (67, "PMIX_STOR_ACCESS"),
    (68, "PMIX_STOR_PERSIST"),
    (69, "PMIX_STOR_ACCESS_TYPE"),
];

/// States of a process.
const PROCESS_STATES: &[(u8, &str)] = &[
    (0, "undefined"),
    (1, "prepared"),
    (2, "being launched"),
    (3, "to be restarted"),
    (4, "to be terminated"),
    (5, "running"),
    (6, "connected"),
    (15, "not terminated"),
    (20, "terminated"),
    (50, "failed"),
    (51, "killed by command"),
    (52, "aborted"),
    (53, "failed to start"),
    (54, "ended by a signal"),
    (55, "ended without finalize"),
    (56, "communication failed"),
    (57, "exceeded the limit of a sensor"),
    (58, "called abort"),
    (59, "no heartbeat"),
    (60, "migrating"),
    (61, "cannot be restarted"),
    (62, "ended with an error code"),
    (63, "failed to launch"),
];

/// States of a job.
const JOB_STATES: &[(u8, &str)] = &[
    (0, "undefined"),
    (1, "awaiting an allocation"),
    (2, "being launched"),
    (3, "running"),
    (4, "suspended"),
    (5, "connected"),
    (15, "not terminated"),
    (20, "terminated"),
    (50, "terminated with an error"),
];

/// Ranges: the receivers of an event or published value.
const RANGES: &[(u8, &str)] = &[
    (0, "undefined"),
    (1, "resource manager"),
    (2, "node"),
    (3, "namespace"),
    (4, "session"),
    (5, "global"),
    (6, "custom"),
    (7, "process"),
    (255, "invalid"),
];

/// Scopes: the processes that may read a put value.
const SCOPES: &[(u8, &str)] = &[
    (0, "undefined"),
    (1, "local"),
    (2, "remote"),
    (3, "global"),
    (4, "internal"),
];

/// Persistences: the lifetime of a published value.
const PERSISTENCES: &[(u8, &str)] = &[
    (0, "until deleted"),
    (1, "until first read"),
    (2, "process"),
    (3, "application"),
    (4, "session"),
    (255, "invalid"),
];

/// Directives of an allocation request.
const ALLOCATIONS: &[(u8, &str)] = &[
    (1, "new"),
    (2, "extend"),
    (3, "release"),
    (4, "reacquire"),
    (128, "external"),
];

/// States of a network link.
const LINKS: &[(u8, &str)] = &[(0, "unknown"), (1, "down"), (2, "up")];

/// Rank values with a special meaning in the PMIx standard.
const SPECIAL_RANKS: &[(u32, &str)] = &[
    (u32::MAX, "undefined"),
    (u32::MAX - 1, "all"),
    (u32::MAX - 2, "all on this node"),
    (u32::MAX - 3, "invalid"),
    (u32::MAX - 4, "all of this job on this node"),
];

/// Streams of a process, as bits.
const CHANNELS: &[(u32, &str)] = &[(1, "stdin"), (2, "stdout"), (4, "stderr"), (8, "stddiag")];

/// Flags of an attribute, as bits.
const DIRECTIVES: &[(u32, &str)] = &[
    (1, "required"),
    (2, "end of array"),
    (4, "processed"),
    (8, "qualifier"),
    (16, "persistent"),
];

/// Rank value that stands for all ranks of a job.
pub const RANK_ALL: u32 = u32::MAX - 1;

fn of<T: Copy + PartialEq + std::fmt::Display>(
    table: &'static [(T, &'static str)],
    what: &str,
    value: T,
) -> Cow<'static, str> {
    match table.iter().find(|(known, _)| *known == value) {
        Some((_, name)) => Cow::Borrowed(name),
        None => Cow::Owned(format!("{what} {value}")),
    }
}

fn of_bits(table: &'static [(u32, &'static str)], bits: u32) -> String {
    let known = table.iter().filter(|(bit, _)| bits & bit != 0);
    let mut names: Vec<String> = known.map(|(_, name)| (*name).to_owned()).collect();
    let rest = table.iter().fold(bits, |rest, (bit, _)| rest & !bit);
    if rest != 0 {
        names.push(format!("{rest:#x}"));
    }
    match names.is_empty() {
        true => "none".to_owned(),
        false => names.join("+"),
    }
}

/// The name of a PMIx status, the result of a call or the code of an event.
#[must_use]
pub fn status(value: i32) -> Cow<'static, str> {
    of(STATUSES, "status", value)
}

/// The name of a type of values.
#[must_use]
pub fn kind(value: u16) -> Cow<'static, str> {
    of(TYPES, "type", value)
}

/// The state of a process, in words.
#[must_use]
pub fn process_state(value: u8) -> Cow<'static, str> {
    of(PROCESS_STATES, "state", value)
}

/// The state of a job, in words.
#[must_use]
pub fn job_state(value: u8) -> Cow<'static, str> {
    of(JOB_STATES, "state", value)
}

/// Name of a range: the receivers of an event.
#[must_use]
pub fn range(value: u8) -> Cow<'static, str> {
    of(RANGES, "range", value)
}

/// Name of a scope: the processes that may read a put value.
#[must_use]
pub fn scope(value: u8) -> Cow<'static, str> {
    of(SCOPES, "scope", value)
}

/// Name of a persistence: the lifetime of a published value.
#[must_use]
pub fn persistence(value: u8) -> Cow<'static, str> {
    of(PERSISTENCES, "persistence", value)
}

/// Name of a directive of an allocation request.
#[must_use]
pub fn allocation(value: u8) -> Cow<'static, str> {
    of(ALLOCATIONS, "directive", value)
}

/// The state of a network link.
#[must_use]
pub fn link(value: u8) -> Cow<'static, str> {
    of(LINKS, "state", value)
}

/// A rank as text: its number, or the meaning of a special value.
#[must_use]
pub fn rank(value: u32) -> Cow<'static, str> {
    match SPECIAL_RANKS.iter().find(|(known, _)| *known == value) {
        Some((_, name)) => Cow::Borrowed(name),
        None => Cow::Owned(value.to_string()),
    }
}

/// Names of the streams of a process, from their bits.
#[must_use]
pub fn channels(bits: u16) -> String {
    of_bits(CHANNELS, u32::from(bits))
}

/// Names of the flags of an attribute.
#[must_use]
pub fn directives(bits: u32) -> String {
    of_bits(DIRECTIVES, bits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pmix_numbers_are_shown_by_name() {
        assert_eq!(status(0), "PMIX_SUCCESS");
        assert_eq!(status(-47), "PMIX_ERR_NOT_SUPPORTED");
        assert_eq!(status(-4711), "status -4711");
        assert_eq!(process_state(6), "connected");
        assert_eq!(process_state(99), "state 99");
        assert_eq!(job_state(3), "running");
        assert_eq!(kind(38), "PMIX_PROC_INFO");
        assert_eq!((&*rank(7), &*rank(RANK_ALL)), ("7", "all"));
        assert_eq!(channels(6), "stdout+stderr");
        assert_eq!(directives(0x0100_0001), "required+0x1000000");
        assert_eq!(directives(0), "none");
        let of_bytes = [range, scope, persistence, allocation, link];
        for name in of_bytes {
            assert!(!name(77).is_empty());
        }
    }
}
