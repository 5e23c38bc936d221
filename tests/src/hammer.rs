//! Fuzzing of every decoder with almost valid bytes: a table of the fuzz entries of all crates,
//! and a mutator that starts from messages of real members.

mod arrays;
mod editors;
mod foreign;
mod pmix;
mod seeds;

use std::panic::{AssertUnwindSafe, catch_unwind};

use sdm_core::frame::{self, HEADER_BYTES};
use sdm_debug::wire;
use sdm_sim::Rng;

use arrays::arrays;
use editors::editor_lines;
use pmix::{pmix_frames, queue_frames};
use seeds::{
    agents, expressions, failures, framed, handshakes, invoke_lines, keeper_frames, lives,
    manager_answers, manager_lines, messages, mi_lines, payloads, proxy_messages, set_texts, sets,
    slices,
};

use foreign::{
    core_files, first_words, host_lists, kernel_tables, memories, objects, page_requests, scenarios,
};

/// A decoder, and valid inputs for it.
pub struct Target {
    /// Its name in test messages.
    pub name: &'static str,
    /// The entry point, which panics where an invariant is violated.
    pub run: fn(&[u8]),
    /// Inputs to begin with.
    pub seeds: Vec<Vec<u8>>,
    /// Number of executions in a test run. It is small where a few bytes can be a set of millions, or where the
    /// work is mostly cryptography, as in a handshake.
    pub quick: u64,
}

/// All targets.
#[must_use]
pub fn targets() -> Vec<Target> {
    let messages: Vec<Vec<u8>> = messages().iter().map(framed).collect();
    let bodies = messages.iter().map(|m| m[HEADER_BYTES..].to_vec());
    let target = |name, run, seeds| Target {
        name,
        run,
        seeds,
        quick: match name {
            "handshake" => 10,
            "set" | "set-text" | "model" | "hosts" | "walkers" => 100,
            _ => 2_000,
        },
    };
    vec![
        target("set", sdm_idset::fuzz::fuzz_set, sets()),
        target("set-text", sdm_idset::fuzz::fuzz_set_text, set_texts()),
        target("message", frame::fuzz_message, bodies.collect()),
        target("frame", frame::fuzz_frame, messages),
        target("slice", sdm_core::node::fuzz_slice, slices()),
        target("member", sdm_core::node::fuzz_member, lives()),
        target("front-end", sdm_core::node::fuzz_front_end, lives()),
        target(
            "claim",
            sdm_core::transport::reversed::fuzz_claim,
            handshakes(),
        ),
        target("handshake", sdm_core::link::fuzz_handshake, handshakes()),
        target("failure", sdm_debug::outcome::fuzz_failure, failures()),
        target("debug", wire::fuzz_payload, payloads()),
        target("merge", sdm_debug::rules::fuzz_rules, payloads()),
        target("array", sdm_debug::rules::fuzz_array, arrays()),
        target("mi", sdm_mi::fuzz_mi, mi_lines()),
        target(
            "set-grammar",
            sdm_shell::commands::fuzz_set_expr,
            expressions(),
        ),
        target("pmix", fuzz_pmix, pmix_frames()),
        target("pmix-tool", sdm_foreign::tool_protocol::fuzz_tool, pmix_frames()),
        target("queues", sdm_foreign::queues::fuzz_queues, queue_frames()),
        target(
            "pmix-rendezvous",
            sdm_hosts::pmix::fuzz_rendezvous,
            vec![b"a@0.0;tcp4://127.0.0.1:4\n5.0.11\n7\n0:0\n".to_vec()],
        ),
        target(
            "doctor",
            sdm_doctor::fuzz_told,
            vec![b"sdm-doctor-version\t0.1.0\t7\nsdm-doctor-listens\t10.0.0.1:7000\nsdm-doctor\tgdb\tbad\told\ttake another\n".to_vec()],
        ),
        target("keeper", sdm_keep::fuzz_frames, keeper_frames()),
        target(
            "proxy",
            sdm_runtime::wire::fuzz::fuzz_messages,
            proxy_messages(),
        ),
        target("editor", sdm_dap::fuzz_client, editor_lines()),
        target("rm", sdm_rm::fuzz_lines, manager_lines()),
        target("answers", sdm_agent::fuzz_answers, manager_answers()),
        target("invoke", sdm_agent::invoke::fuzz_requests, invoke_lines()),
        target("first-words", sdm_bootstrap::announce::fuzz_words, first_words()),
        target("shim", sdm_child::fuzz_shim, sdm_child::shim_examples()),
        target("objects", sdm_hosts::fuzz_objects, objects()),
        target("core", sdm_hosts::job::core_file::fuzz_core, core_files()),
        target("walkers", sdm_inspect::fuzz::fuzz_walkers, memories()),
        target("kernel", sdm_system::tcp_peer::fuzz_kernel, kernel_tables()),
        target("hosts", sdm_hosts::fuzz_hosts, host_lists()),
        target("page", sdm_web::fuzz_request, page_requests()),
        target("scenario", sdm_fake::fuzz_scenario, scenarios()),
        target("model", sdm_runtime::model::fuzz::fuzz_model, agents()),
    ]
}

/// Runs a target on `executions` mutated inputs; the same seed gives the same inputs.
///
/// # Errors
/// The input on which it panicked.
pub fn hammer(target: &Target, executions: u64, seed: u64) -> Result<(), Vec<u8>> {
    let mut mutator = Mutator(Rng::new(seed));
    for _ in 0..executions {
        let input = mutator.input(&target.seeds);
        if catch_unwind(AssertUnwindSafe(|| (target.run)(&input))).is_err() {
            return Err(input);
        }
    }
    Ok(())
}

/// Generator of inputs, which need to be varied, not unpredictable.
struct Mutator(Rng);

impl Mutator {
    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.0.below(bound as u64)).expect("below a usize")
    }

    fn byte(&mut self) -> u8 {
        // Bytes that are typical for lengths and tags are more frequent.
        match self.below(4) {
            0 => [0, 1, 0x7f, 0x80, 0xff, b'"', b'\\', b'\n'][self.below(8)],
            _ => self.0.word().to_le_bytes()[3],
        }
    }

    fn input(&mut self, seeds: &[Vec<u8>]) -> Vec<u8> {
        if seeds.is_empty() || self.below(16) == 0 {
            let length = self.below(64);
            return (0..length).map(|_| self.byte()).collect();
        }
        let mut input = seeds[self.below(seeds.len())].clone();
        for _ in 0..self.below(5) {
            self.change(&mut input, seeds);
        }
        input
    }

    fn change(&mut self, input: &mut Vec<u8>, seeds: &[Vec<u8>]) {
        let at = self.below(input.len() + 1);
        match self.below(7) {
            0 => input.truncate(at),
            1 => input.insert(at, self.byte()),
            2 if at < input.len() => {
                input.remove(at);
            }
            3 if at < input.len() => input[at] ^= 1 << self.below(8),
            4 if at < input.len() => input[at] = self.byte(),
            5 => {
                let other = &seeds[self.below(seeds.len())];
                let from = self.below(other.len() + 1);
                input.truncate(at);
                input.extend_from_slice(&other[from..]);
            }
            _ => {
                let end = at + self.below(input.len() + 1 - at).min(64);
                let part = input[at..end].to_vec();
                input.splice(at..at, part);
            }
        }
    }
}

/// Feeds bytes to the decoders of messages between a session's servers and PMIx servers, and between PMIx servers of
/// different hosts.
fn fuzz_pmix(bytes: &[u8]) {
    sdm_foreign::wire::fuzz_frames(bytes);
    sdm_foreign::peer_messages::fuzz_notes(bytes);
}

#[cfg(test)]
mod tests {
    use sdm_core::frame::Frame;

    use super::*;
    use bytes::Bytes;

    #[test]
    fn fuzz_seeds_decode_to_their_messages() {
        for message in messages() {
            let bytes = framed(&message);
            let read = frame::decode(&Bytes::from(bytes).slice(HEADER_BYTES..));
            assert_eq!(read, Ok(Frame::Message(message)));
        }
    }

    #[test]
    fn input_that_violates_an_invariant_is_found() {
        let target = Target {
            name: "planted",
            run: |bytes| assert!(!bytes.starts_with(b"\x01\x80")),
            seeds: vec![b"\x01\x02\x03".to_vec()],
            quick: 0,
        };
        let found = hammer(&target, 100_000, 1).expect_err("it is planted");
        assert!(found.starts_with(b"\x01\x80"));
    }
}
