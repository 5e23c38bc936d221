//! Tests of the project's own rules and documents, and of every decoder: no debugger is started.

mod arrows;
#[cfg(feature = "full")]
mod bolero;
mod circles;
mod cited;
mod decoders;
mod error_index;
mod errors;
mod groups;
mod limits;
mod messages;
mod names;
mod new_files;
mod newcomer;
mod observations;
mod options;
mod pages;
mod proc_reader;
mod programs;
mod prose;
mod questions;
mod requirements;
mod rooms;
mod runs;
mod settings;
mod sink;
mod skips;
mod sources;
mod supervise;
mod test_names;
mod vocabulary;
mod wire;
mod wording;
mod words;
