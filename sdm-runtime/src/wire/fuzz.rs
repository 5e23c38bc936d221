//! Entry point for fuzzers of the wire protocol: it accepts any bytes, and panics if an invariant is violated.

use super::{Dialect, command::Command, event::Event, frame::Decoder};

/// Decodes messages in both dialects as commands and events. Checks that a decoded message survives encoding and
/// decoding; INIT is only encoded.
pub fn fuzz_messages(bytes: &[u8]) {
    let mut decoder = Decoder::default();
    decoder.push(bytes);
    while let Ok(Some(message)) = decoder.poll() {
        for dialect in [Dialect::Document, Dialect::Ptp] {
            if let Ok(event) = Event::decode(dialect, message.clone()) {
                let again = event.encode(dialect, message.tid).expect("it was read");
                assert_eq!(Event::decode(dialect, again), Ok(event));
            }
            // INIT determines the dialect itself.
            if let Ok(command) = Command::decode(dialect, message.clone()) {
                let again = command.encode(dialect, message.tid).expect("it was read");
                assert!(message.id == 1 || Command::decode(dialect, again) == Ok(command));
            }
        }
    }
}
