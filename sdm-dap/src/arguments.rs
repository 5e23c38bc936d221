//! Arguments of requests, as far as the adapter uses them. Every field may be absent: a required one is checked where
//! it is used.

use serde::Deserialize;

use crate::launch::{Configuration, Scope};

/// Arguments of `initialize`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct InitializeArguments {
    #[serde(rename = "clientID")]
    pub(crate) client_id: String,
    pub(crate) lines_start_at1: bool,
    pub(crate) columns_start_at1: bool,
    pub(crate) supports_progress_reporting: bool,
    pub(crate) supports_invalidated_event: bool,
    pub(crate) supports_start_debugging_request: bool,
    pub(crate) supports_variable_type: bool,
}

impl Default for InitializeArguments {
    fn default() -> Self {
        Self {
            client_id: String::new(),
            lines_start_at1: true,
            columns_start_at1: true,
            supports_progress_reporting: false,
            supports_invalidated_event: false,
            supports_start_debugging_request: false,
            supports_variable_type: false,
        }
    }
}

/// A source file as named by a client.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct SourceArgument {
    pub(crate) path: Option<String>,
    pub(crate) name: Option<String>,
}

/// A breakpoint as requested by the client: at a line, in a function, at an instruction or on data.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct PointArgument {
    pub(crate) line: i64,
    pub(crate) name: String,
    pub(crate) instruction_reference: String,
    pub(crate) offset: i64,
    pub(crate) condition: Option<String>,
    pub(crate) hit_condition: Option<String>,
    pub(crate) log_message: Option<String>,
    pub(crate) data_id: String,
    pub(crate) access_type: Option<String>,
}

/// Arguments of `setBreakpoints`, `setFunctionBreakpoints`, `setInstructionBreakpoints` and `setDataBreakpoints`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct SetPointsArguments {
    pub(crate) source: SourceArgument,
    pub(crate) breakpoints: Vec<PointArgument>,
    /// The deprecated form of `breakpoints`: line numbers only.
    pub(crate) lines: Vec<i64>,
}

/// Arguments of `continue`, `next`, `stepIn`, `stepOut`, `pause`, `stackTrace` and `exceptionInfo`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ThreadArguments {
    pub(crate) thread_id: i64,
    pub(crate) single_thread: bool,
    pub(crate) granularity: Option<String>,
    pub(crate) start_frame: Option<i64>,
    pub(crate) levels: Option<i64>,
}

/// Arguments of requests that name only a frame, such as `scopes`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct FrameArguments {
    pub(crate) frame_id: i64,
}

/// Arguments of `variables`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct VariablesArguments {
    pub(crate) variables_reference: i64,
    pub(crate) filter: Option<String>,
    pub(crate) start: Option<i64>,
    pub(crate) count: Option<i64>,
}

/// Arguments of `evaluate`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct EvaluateArguments {
    pub(crate) expression: String,
    pub(crate) frame_id: Option<i64>,
    pub(crate) context: Option<String>,
}

/// Arguments of `disconnect`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct DisconnectArguments {
    pub(crate) terminate_debuggee: Option<bool>,
}

/// Arguments of `dataBreakpointInfo`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct DataInfoArguments {
    pub(crate) variables_reference: Option<i64>,
    pub(crate) name: String,
    pub(crate) frame_id: Option<i64>,
}

/// Arguments of `setExceptionBreakpoints`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ExceptionArguments {
    pub(crate) filters: Vec<String>,
    pub(crate) filter_options: Vec<ExceptionOption>,
}

/// An exception filter with a condition.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ExceptionOption {
    pub(crate) filter_id: String,
    pub(crate) condition: Option<String>,
}

/// Arguments of `setVariable` and `setExpression`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct AssignArguments {
    pub(crate) variables_reference: i64,
    pub(crate) name: String,
    pub(crate) expression: String,
    pub(crate) frame_id: Option<i64>,
    pub(crate) value: String,
}

/// Arguments of `readMemory`, `writeMemory` and `disassemble`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct MemoryArguments {
    pub(crate) memory_reference: String,
    pub(crate) offset: i64,
    pub(crate) count: i64,
    pub(crate) data: String,
    pub(crate) instruction_offset: i64,
    pub(crate) instruction_count: i64,
}

/// Arguments of `completions`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct CompletionsArguments {
    pub(crate) text: String,
    pub(crate) column: i64,
}

/// Arguments of `sdm/scope`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ScopeArguments {
    pub(crate) scope: Scope,
}

/// Arguments of `gotoTargets` and `goto`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct GotoArguments {
    pub(crate) source: SourceArgument,
    pub(crate) line: i64,
    pub(crate) thread_id: i64,
    pub(crate) target_id: i64,
}

/// Arguments of `restart`: the present launch.json.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct RestartArguments {
    pub(crate) arguments: Option<Configuration>,
}

/// Arguments of `sdm/focus`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct RankArguments {
    pub(crate) rank: u32,
}
