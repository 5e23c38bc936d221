//! The names of enum values in the format.

use sdm_debug::probe::{ArgumentRole, Known};

/// The roles of arguments, with their names.
pub(super) const ROLES: [(ArgumentRole, &str); 17] = [
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
    (ArgumentRole::Operation, "operation"),
    (ArgumentRole::Access, "access"),
    (ArgumentRole::Exposure, "exposure"),
];

/// The sources of an argument's value, with their names.
pub(super) const KNOWN: [(Known, &str); 3] = [
    (Known::Source, "source"),
    (Known::Callee, "callee"),
    (Known::Kept, "kept"),
];

/// The name of a value.
pub(super) fn word<T: PartialEq>(words: &[(T, &'static str)], value: &T) -> &'static str {
    let known = words.iter().find(|(known, _)| known == value);
    known.map_or("", |(_, word)| word)
}

/// The value with a name. None if the name is unknown.
pub(super) fn named<T: Copy>(words: &[(T, &'static str)], word: &str) -> Option<T> {
    let known = words.iter().find(|(_, known)| *known == word);
    known.map(|(value, _)| *value)
}
