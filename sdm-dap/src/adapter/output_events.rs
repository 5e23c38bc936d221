//! Sends the output of programs to the client.

use sdm_debug::event::Stream;
use serde_json::json;

use crate::connection::Connection;

/// Sends the programs' output that is due to the client; all of it if `all` is set.
pub(super) fn flush_output(connection: &mut Connection, all: bool) {
    let mut joined: Vec<(Stream, String)> = Vec::new();
    for (stream, text) in connection.output.poll(connection.now, all) {
        match joined.last_mut() {
            Some((last, before)) if *last == stream => before.push_str(&text),
            _ => joined.push((stream, text)),
        }
    }
    for (stream, text) in joined {
        let category = match stream {
            Stream::Stdout => "stdout",
            Stream::Stderr => "stderr",
        };
        connection.event("output", json!({"category": category, "output": text}));
    }
}
