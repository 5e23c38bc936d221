//! The program of a batch job, as it is reported.

use sdm_runtime::attribute as id;

use crate::snapshot::{Attributes, set, set_items};

/// The program of a job with its arguments, and the environment that its submission sets, as they are reported.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Program {
    pub(crate) words: Vec<String>,
    pub(crate) environment: Vec<String>,
}

impl Program {
    /// Adds the program to the attributes of its job.
    pub(crate) fn tell(&self, attributes: &mut Attributes) {
        let program = self.words.first().map_or("", String::as_str);
        let (path, name) = program.rsplit_once('/').unwrap_or(("", program));
        set(attributes, id::EXEC_PATH, path);
        set(attributes, id::EXEC_NAME, name);
        set_items(attributes, id::PROG_ARGS, self.words.iter().skip(1));
        set_items(attributes, id::ENV, &self.environment);
    }
}
