//! The bytes of everything that members, or a terminal and a keeper, send each other. They are stored in files, so that
//! no change goes unnoticed.
//!
//! `tests/golden/wire` has a file for each kind of bytes, with an entry for each variant. An entry may be added
//! without raising [`WIRE_VERSION`]: an older member answers `bad_command` to an unknown command. Bytes that have
//! changed or disappeared need a raised version, as two members would misread each other otherwise. [`kept::judge`]
//! is the rule. A file that is missing or was edited by hand (its last line is a hash of it) must be restored
//! first: without its old contents nothing can be judged.

mod commands;
mod keep;
mod kept;
mod merged;
mod messages;
mod replies;

use sdm_core::frame::WIRE_VERSION;
use sdm_debug::wire;
use sdm_idset::IdSet;
use serde::Serialize;
use serde::de::DeserializeOwned;

use kept::{Entry, check};

/// One value of each variant of an enum, by the variant's name. A variant that has none does not compile.
macro_rules! every {
    ($type:ident: $($pattern:pat => $value:expr,)*) => {{
        let variant = |value: &$type| match value { $($pattern => stringify!($pattern),)* };
        let mut every: Vec<(String, $type)> = Vec::new();
        $(
            let value = $value;
            assert_eq!(variant(&value), stringify!($pattern), "the value is of its variant");
            every.push((crate::wire::name_of(stringify!($type), stringify!($pattern)), value));
        )*
        every
    }};
}
use every;

/// `Type::Variant` of a pattern, without a path before it and fields after it.
fn name_of(of: &str, pattern: &str) -> String {
    let path = pattern.split(['(', '{', ' ']).next().unwrap_or(pattern);
    let variant = path.rsplit("::").next().unwrap_or(path);
    format!("{of}::{variant}")
}

/// The encoded payloads of values. Each is decoded again, which must give an equal value.
fn payloads<T>(values: Vec<(String, T)>) -> Vec<Entry>
where
    T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug,
{
    let entry = |(name, value): (String, T)| {
        let bytes = wire::encode(&value);
        assert_eq!(wire::decode(&bytes), Ok(value), "{name} comes back");
        Entry { name, bytes }
    };
    values.into_iter().map(entry).collect()
}

fn set(text: &str) -> IdSet {
    text.parse().expect("a set")
}

#[test]
fn encoded_sets_match_recorded_bytes() {
    let of = |ids: &mut dyn Iterator<Item = u32>| ids.map(sdm_idset::TaskId).collect();
    let sets = [
        ("set: empty", IdSet::new()),
        ("set: all below", set("0-999999")),
        ("set: pieces", set("9-40,77,4000-4100/7")),
        (
            "set: dense",
            of(&mut (1003..20_000).filter(|id| id * id % 1021 < 510)),
        ),
        ("set: portable", of(&mut (0..4000).map(|id| id * id))),
        (
            "set: portable with runs",
            of(&mut (0..500).flat_map(|at| at * 40 + at % 3..at * 40 + 20)),
        ),
    ];
    let mut tags = Vec::new();
    let entries = sets.map(|(name, set)| {
        let mut bytes = Vec::new();
        set.encode(0, &mut bytes);
        assert_eq!(IdSet::decode(0, &bytes), Ok((set, bytes.len())), "{name}");
        tags.push(bytes[0]);
        // The beginning shows the form; the rest of a large entry is repetitive.
        bytes.truncate(512);
        Entry {
            name: name.to_owned(),
            bytes,
        }
    });
    assert_eq!(tags, [0, 1, 2, 3, 58, 59], "each form is there once");
    check("sets", &entries);
}

#[test]
fn encoded_messages_match_recorded_bytes() {
    check("messages", &messages::entries());
}

#[test]
fn encoded_keeper_frames_match_recorded_bytes() {
    check("keep", &keep::entries());
}

#[test]
fn encoded_commands_match_recorded_bytes() {
    check("commands", &commands::entries());
}

#[test]
fn encoded_replies_match_recorded_bytes() {
    check("replies", &replies::entries());
}

#[test]
fn encoded_merged_answers_match_recorded_bytes() {
    check("merged", &merged::entries());
}
