//! Parsing of values in Slurm's JSON, whose form differs between versions.

use serde_json::Value;

/// A number, plain or as `{"set": true, "infinite": false, "number": 4}` (from version 23.02); `None` if it is unset or
/// infinite.
pub(super) fn number(value: &Value) -> Option<i64> {
    let flag = |name| value.get(name).and_then(Value::as_bool);
    if flag("set") == Some(false) || flag("infinite") == Some(true) {
        return None;
    }
    value.get("number").unwrap_or(value).as_i64()
}

/// A time in seconds of Unix time; `None` for 0 or less, and for a value without a number.
pub(super) fn moment(value: &Value) -> Option<i64> {
    number(value).filter(|&seconds| seconds > 0)
}

/// True for a number that is marked as infinite.
pub(super) fn is_infinite(value: &Value) -> bool {
    value.get("infinite").and_then(Value::as_bool) == Some(true)
}

/// The text of a JSON string; empty if the value is not a string.
pub(super) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Words in upper case, from one text or a list of texts (states are lists from version 23.02).
pub(super) fn words(value: &Value) -> Vec<String> {
    match value {
        Value::String(word) => vec![word.to_uppercase()],
        Value::Array(words) => words
            .iter()
            .filter_map(Value::as_str)
            .map(str::to_uppercase)
            .collect(),
        _ => Vec::new(),
    }
}
