//! The words of the format for values of ours that are one of several.

use sdm_debug::probe::{ArgumentRole, Known};

/// Each role of an argument, and its word.
pub(super) const ROLES: [(ArgumentRole, &str); 14] = [
    (ArgumentRole::Count, "count"),
    (ArgumentRole::Destination, "destination"),
    (ArgumentRole::Tag, "tag"),
    (ArgumentRole::Source, "source"),
    (ArgumentRole::ReceiveTag, "receive_tag"),
    (ArgumentRole::Communicator, "communicator"),
    (ArgumentRole::File, "file"),
    (ArgumentRole::Root, "root"),
    (ArgumentRole::Requests, "requests"),
    (ArgumentRole::Target, "target"),
    (ArgumentRole::Context, "context"),
    (ArgumentRole::OtherJobs, "other_jobs"),
    (ArgumentRole::Handle, "handle"),
    (ArgumentRole::Window, "window"),
];

/// Each way to know the value of an argument, and its word.
pub(super) const KNOWN: [(Known, &str); 3] = [
    (Known::Source, "source"),
    (Known::Callee, "callee"),
    (Known::Kept, "kept"),
];

/// The word of a value.
pub(super) fn word<T: PartialEq>(words: &[(T, &'static str)], value: &T) -> &'static str {
    let known = words.iter().find(|(known, _)| known == value);
    known.map_or("", |(_, word)| word)
}

/// The value that a word stands for.
pub(super) fn named<T: Copy>(words: &[(T, &'static str)], word: &str) -> Option<T> {
    let known = words.iter().find(|(_, known)| *known == word);
    known.map(|(value, _)| *value)
}
