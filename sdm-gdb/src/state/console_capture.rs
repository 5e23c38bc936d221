//! gdb's output for one command. Its length is bounded; two outputs that are cut are compared by the hash of the whole.

use std::ops::Deref;

use xxhash_rust::xxh3::{Xxh3Default, xxh3_64};

/// Maximum number of bytes of output that are kept for one command.
pub(crate) const PRINTED_BYTES_MAX: usize = 1 << 20;

/// The beginning of gdb's output, and the length and hash of the whole output.
#[derive(Default)]
pub(crate) struct CapturedOutput {
    text: String,
    bytes: u64,
    /// Hash of the whole output; `None` while the output is not cut.
    hash: Option<Box<Xxh3Default>>,
    /// True if lines that are not MI are output too: those of a shell that gdb has started.
    pub(crate) takes_lines: bool,
    /// True if gdb's warnings are output too. They stand in front of values, which tasks compare.
    pub(crate) takes_warnings: bool,
}

impl CapturedOutput {
    /// Appends output.
    pub(crate) fn push(&mut self, text: &str) {
        // gdb 18 prints this about the cancelled command before, after this one has begun.
        if self.bytes == 0 && text == "Quit\n" {
            return;
        }
        self.bytes += text.len() as u64;
        if self.hash.is_none() && self.text.len() + text.len() <= PRINTED_BYTES_MAX {
            self.text.push_str(text);
            return;
        }
        let hash = self.hash.get_or_insert_with(|| {
            let mut hash = Box::new(Xxh3Default::new());
            hash.update(self.text.as_bytes());
            hash
        });
        hash.update(text.as_bytes());
    }

    /// Number of bytes printed, including those not kept.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// True if a part of the output was dropped.
    pub(crate) fn is_cut(&self) -> bool {
        self.hash.is_some()
    }

    /// Length in bytes and hash of the whole output.
    pub(crate) fn length_and_hash(&self) -> (u64, u64) {
        let whole = || xxh3_64(self.text.as_bytes());
        let hash = self.hash.as_ref().map_or_else(whole, |hash| hash.digest());
        (self.bytes, hash)
    }

    /// The kept text. If the output was cut, a last line says so, with length and hash of the whole.
    pub(crate) fn into_text(mut self) -> String {
        if let Some(hash) = self.hash {
            let (bytes, hash) = (self.bytes, hash.digest());
            let mark = format!("\n... (cut: {bytes} bytes in all, xxh3 {hash:016x})\n");
            self.text.push_str(&mark);
        }
        self.text
    }
}

/// The kept text.
impl Deref for CapturedOutput {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn truncated_output_differs_if_its_hidden_text_differs() {
        let print = |parts: &[&str]| {
            let mut printed = CapturedOutput::default();
            parts.iter().for_each(|part| printed.push(part));
            printed
        };
        assert_eq!(print(&["a", "b"]).into_text(), "ab");
        let long = "x".repeat(PRINTED_BYTES_MAX);
        assert!(!print(&[&long]).is_cut());
        let [one, same, other] =
            [&["y", "z"][..], &["yz"], &["zz"]].map(|rest| print(&[&[&long[..]], rest].concat()));
        assert!(one.is_cut() && one.bytes() == PRINTED_BYTES_MAX as u64 + 2);
        let (one, same, other) = (one.into_text(), same.into_text(), other.into_text());
        assert_eq!(one, same);
        assert_ne!(one, other);
    }
}
