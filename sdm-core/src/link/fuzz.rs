//! Entry point for fuzzers: bytes of unauthenticated peers at both ends of a handshake.

use std::time::Instant;

use super::{Link, LinkConfig};
use crate::ids::{Epoch, ServerId, SessionId};
use crate::secure::{Hello, Role, SessionKey};

/// Maximum memory that a link holds for an unauthenticated peer, in bytes.
const HELD_BYTES_MAX: usize = 128 << 10;

/// Passes arbitrary bytes to a link that waits for a handshake, and to one that began it. A peer without the key never
/// establishes a link, however the bytes are split.
///
/// # Panics
/// If that property does not hold.
pub fn fuzz_handshake(bytes: &[u8]) {
    let config = LinkConfig::new(SessionKey::from_bytes([7; 32]), SessionId([1; 8]));
    let hello = Hello {
        role: Role::Child,
        id: ServerId(3),
        expect: None,
        epoch: Epoch(1),
        incarnation: 0,
        build: String::new(),
        features: 0,
    };
    let now = Instant::now();
    // One way to cut an input: to make the keys of a link costs far more than to read the bytes.
    let step = [1, 5, bytes.len().max(1)][bytes.len() % 3];
    let ends = [
        Link::respond(now, &config, hello.clone()),
        Link::initiate(now, &config, hello.clone()),
    ];
    for mut link in ends {
        // After an error the owner closes the connection.
        let _ = bytes
            .to_vec()
            .chunks_mut(step)
            .try_for_each(|part| link.handle_bytes(now, part));
        assert!(!link.is_up(), "a stranger is never let in");
        let mut out = Vec::new();
        link.poll_transmit(&mut out);
        assert!(out.len() <= HELD_BYTES_MAX, "nor makes a link talk");
    }
}
