//! The published schemas of the Debug Adapter Protocol, against which every message of every test is held, and of
//! speedscope's files.
//!
//! The validator is compiled in by the feature `full`, for the part `editors` of `scripts/test --full`; without it
//! every message passes.

#[cfg(feature = "full")]
use std::collections::BTreeMap;
#[cfg(feature = "full")]
use std::fs;
#[cfg(feature = "full")]
use std::path::Path;

#[cfg(feature = "full")]
use jsonschema::Validator;
use serde_json::Value;
#[cfg(feature = "full")]
use serde_json::json;

/// The JSON schema, and the validators that have been made from it so far.
pub struct Schema {
    #[cfg(feature = "full")]
    schema: Value,
    #[cfg(feature = "full")]
    validators: BTreeMap<String, Validator>,
}

#[cfg(not(feature = "full"))]
impl Schema {
    /// Reads nothing.
    #[must_use]
    pub fn read() -> Self {
        Self {}
    }

    /// Accepts the message.
    pub fn check(&mut self, _message: &Value) {}

    /// Accepts the file.
    pub fn check_speedscope(_file: &Value) {}
}

#[cfg(feature = "full")]
impl Schema {
    /// Reads the schema.
    ///
    /// # Panics
    /// If it is not there.
    #[must_use]
    pub fn read() -> Self {
        let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/dap");
        let text = fs::read_to_string(fixtures.join("debugProtocol.json"));
        let schema = serde_json::from_str(&text.expect("the schema")).expect("JSON");
        Self {
            schema,
            validators: BTreeMap::new(),
        }
    }

    /// Checks a file in speedscope's format.
    ///
    /// # Panics
    /// If the file does not match speedscope's schema.
    pub fn check_speedscope(file: &Value) {
        let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/speedscope");
        let text = fs::read_to_string(fixtures.join("file-format-schema.json"));
        let schema = serde_json::from_str(&text.expect("the schema")).expect("JSON");
        let validator = jsonschema::validator_for(&schema).expect("a schema");
        let errors: Vec<String> = validator
            .iter_errors(file)
            .map(|error| format!("{} at {}", error, error.instance_path()))
            .collect();
        assert!(errors.is_empty(), "{errors:?}: {file}");
    }

    /// Checks a message of an adapter's.
    ///
    /// # Panics
    /// If it is not what the schema says.
    pub fn check(&mut self, message: &Value) {
        let name = definition(message);
        // Requests of our own are in no schema; they are responses all the same.
        let known = &self.schema["definitions"][&name];
        let name = match known {
            Value::Null if name.starts_with("Sdm/") => "Response".to_owned(),
            _ => name,
        };
        let schema = &self.schema;
        let validator = self.validators.entry(name.clone()).or_insert_with(|| {
            let one = json!({
                "$schema": schema["$schema"],
                "definitions": schema["definitions"],
                "allOf": [{"$ref": format!("#/definitions/{name}")}],
            });
            jsonschema::validator_for(&one).unwrap_or_else(|error| panic!("{name}: {error}"))
        });
        let errors: Vec<String> = validator
            .iter_errors(message)
            .map(|error| format!("{} at {}", error, error.instance_path()))
            .collect();
        assert!(errors.is_empty(), "{name}: {errors:?}: {message}");
        if name == "InitializeResponse" {
            let known = &self.schema["definitions"]["Capabilities"]["properties"];
            let said = message["body"].as_object().expect("capabilities");
            for capability in said.keys() {
                assert!(
                    known.get(capability).is_some(),
                    "no capability {capability}"
                );
            }
        }
    }
}

/// Name of the schema's definition for a message: `StackTraceResponse`, `StoppedEvent`.
#[cfg(feature = "full")]
fn definition(message: &Value) -> String {
    let capitalised = |name: &Value| {
        let name = name.as_str().unwrap_or_default();
        let (first, rest) = name.split_at(name.len().min(1));
        format!("{}{rest}", first.to_uppercase())
    };
    match message["type"].as_str() {
        Some("event") => format!("{}Event", capitalised(&message["event"])),
        Some("request") => format!("{}Request", capitalised(&message["command"])),
        Some("response") if message["success"] == false => "ErrorResponse".to_owned(),
        Some("response") => format!("{}Response", capitalised(&message["command"])),
        _ => "ProtocolMessage".to_owned(),
    }
}

#[cfg(all(test, feature = "full"))]
mod tests {
    use super::*;

    #[test]
    fn dap_message_that_violates_the_schema_is_detected() {
        let mut schema = Schema::read();
        let event =
            json!({"seq": 1, "type": "event", "event": "stopped", "body": {"reason": "step"}});
        schema.check(&event);
        let event =
            json!({"seq": 1, "type": "event", "event": "stopped", "body": {"threadId": "1"}});
        let checked =
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| schema.check(&event)));
        assert!(checked.is_err());
    }
}
