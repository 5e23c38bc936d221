//! Lines of source files for the tasks of one server: each file is read once for all of them.

use std::cell::RefCell;
use std::io::Read;

use sdm_system::files;

/// Maximum size of a source file that is read, in bytes.
const SOURCE_BYTES_MAX: u64 = 8 << 20;
/// Maximum number of source files in the cache.
const SOURCES_MAX: usize = 8;
/// Maximum length of a shown source line, in bytes.
const LINE_BYTES_MAX: usize = 512;

/// A cache of the most recently used source files.
#[derive(Default)]
pub(crate) struct Sources {
    /// The files, most recently used last.
    files: RefCell<Vec<SourceFile>>,
}

struct SourceFile {
    path: String,
    /// The contents of the file; empty if it cannot be read.
    bytes: Vec<u8>,
    /// Start of each line, in bytes, and the end of the last line.
    starts: Vec<usize>,
}

impl Sources {
    /// One line of a file, counted from 1; `None` if there is no such line.
    pub(crate) fn line(&self, path: &str, line: u32) -> Option<String> {
        let mut files = self.files.borrow_mut();
        match files.iter().rposition(|known| known.path == path) {
            Some(at) => files[at..].rotate_left(1),
            None => {
                if files.len() == SOURCES_MAX {
                    files.remove(0);
                }
                files.push(SourceFile::read(path));
            }
        }
        files.last()?.line(line)
    }

    /// Drops all cached files. Called when a gdb is started for a task, since the program's sources can have changed.
    pub(crate) fn forget(&self) {
        self.files.borrow_mut().clear();
    }
}

impl SourceFile {
    fn read(path: &str) -> Self {
        let bytes = read(path).unwrap_or_default();
        let ends = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
        let behind = ends.map(|(at, _)| at + 1);
        let starts = std::iter::once(0).chain(behind).chain([bytes.len() + 1]);
        Self {
            path: path.to_owned(),
            starts: starts.collect(),
            bytes,
        }
    }

    fn line(&self, line: u32) -> Option<String> {
        if self.bytes.is_empty() {
            return None;
        }
        let index = usize::try_from(line.checked_sub(1)?).ok()?;
        let (start, next) = (*self.starts.get(index)?, *self.starts.get(index + 1)?);
        let line = self.bytes.get(start..next - 1)?;
        let line = &line[..line.len().min(LINE_BYTES_MAX)];
        Some(String::from_utf8_lossy(line).trim_end().to_owned())
    }
}

fn read(path: &str) -> Option<Vec<u8>> {
    let file = files::open(path.as_ref()).ok()?;
    if file.metadata().ok()?.len() > SOURCE_BYTES_MAX {
        return None;
    }
    let mut bytes = Vec::new();
    file.take(SOURCE_BYTES_MAX).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn source_lines_are_read_by_number() {
        let sources = Sources::default();
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/lib.rs");
        let first = sources.line(path, 1).unwrap();
        assert!(first.starts_with("//!"), "{first}");
        assert_eq!(sources.line(path, 0), None);
        assert_eq!(sources.line(path, 1_000_000), None);
        assert_eq!(sources.line("/nosuch", 1), None);
        assert_eq!(sources.line(path, 1), Some(first));
    }

    #[test]
    fn source_file_is_read_again_after_forget() {
        let name = format!("sdm-sources-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let named = path.to_str().unwrap();
        let sources = Sources::default();
        let line = |number| sources.line(named, number);
        std::fs::write(&path, "one\n\n  three \r\nfour").unwrap();
        let all: Vec<_> = (1..=5).map(line).collect();
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(
            all,
            [text("one"), text(""), text("  three"), text("four"), None]
        );
        std::fs::write(&path, "other\n").unwrap();
        assert_eq!(line(1), text("one"));
        sources.forget();
        assert_eq!([line(1), line(2), line(3)], [text("other"), text(""), None]);
        std::fs::remove_file(&path).unwrap();
    }
}
