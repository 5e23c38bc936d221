//! Adds the classes of an answer message, or the answers to another command, to the answers that a command has got so far.

use sdm_debug::{Class, ClassAnswer, Reply};

use crate::coalesce::{Distinct, hash_of, join};
use crate::item::Gathered;

impl Gathered {
    /// Adds the equal answers of one class of tasks; `replies` is the index of the distinct replies so far.
    pub fn add(&mut self, class: Class, replies: &mut Distinct) {
        let Class { tasks, answer } = class;
        match answer {
            ClassAnswer::Reply(reply) => {
                let (hash, known) = (telling(&reply), &mut self.ok);
                let is_it = |at: usize| known.get(at).is_some_and(|(_, other)| *other == reply);
                match replies.find(hash, is_it) {
                    Some(at) => known[at].0.union_with(&tasks),
                    None => {
                        replies.add(hash, known.len());
                        known.push((tasks, reply));
                    }
                }
            }
            ClassAnswer::Merged(merged) => self.merged.push((tasks, merged)),
            ClassAnswer::Failed(failure) => join(&mut self.failed, &tasks, failure),
            ClassAnswer::Others => self.others.union_with(&tasks),
        }
    }

    /// Adds further answers to the same command, or to another one.
    pub fn absorb(&mut self, more: Self) {
        if self.command.is_empty() {
            self.command = more.command;
        }
        self.to.union_with(&more.to);
        for (tasks, reply) in more.ok {
            join(&mut self.ok, &tasks, reply);
        }
        for (tasks, merged) in more.merged {
            join(&mut self.merged, &tasks, merged);
        }
        for (tasks, failure) in more.failed {
            join(&mut self.failed, &tasks, failure);
        }
        for (tasks, why) in more.missing {
            join(&mut self.missing, &tasks, why);
        }
        self.others.union_with(&more.others);
        self.lost.union_with(&more.lost);
    }
}

/// A hash of the parts in which frequent replies differ. Equal replies have equal hashes.
fn telling(reply: &Reply) -> u64 {
    match reply {
        Reply::Stopped(stop) => hash_of(stop),
        Reply::Backtrace(stack) => hash_of(&stack.frames),
        Reply::Variables(variables) => hash_of(variables),
        Reply::Value(value) => hash_of(value),
        Reply::VarObject(object) => hash_of(object),
        Reply::VarChildren { children, .. } => hash_of(children),
        Reply::Text(text) => hash_of(text),
        Reply::Mi { result, .. } => hash_of(result),
        Reply::Memory(blocks) => hash_of(blocks),
        Reply::Libraries(libraries) => hash_of(libraries),
        _ => 0,
    }
}
