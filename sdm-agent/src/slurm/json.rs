//! Values of Slurm's JSON, whose shape has changed from version to version.

use serde_json::Value;

/// A number, as it stands or as `{"set": true, "infinite": false, "number": 4}` (from version 23.02); none where it is not set.
pub(super) fn number(value: &Value) -> Option<i64> {
    let flag = |name| value.get(name).and_then(Value::as_bool);
    if flag("set") == Some(false) || flag("infinite") == Some(true) {
        return None;
    }
    value.get("number").unwrap_or(value).as_i64()
}

/// A moment in seconds of Unix time; 0 stands for none.
pub(super) fn moment(value: &Value) -> Option<i64> {
    number(value).filter(|&seconds| seconds > 0)
}

/// True where a value is one of no bound.
pub(super) fn is_infinite(value: &Value) -> bool {
    value.get("infinite").and_then(Value::as_bool) == Some(true)
}

/// A text; empty where there is none.
pub(super) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Words: one text, or a list of them (states are lists from version 23.02).
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
