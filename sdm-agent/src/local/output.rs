//! The output files of a job. Each of several processes has files of its own, `out.0`, `err.0` and so on; the runner
//! appends their text to `out` and `err`, whole lines while the job runs.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// The names of the job's own files.
const NAMES: [&str; 2] = ["out", "err"];
/// Number of bytes copied at a time.
const PIECE: u64 = 64 << 10;

/// The two output files of one of `copies` processes.
pub(super) fn paths(folder: &Path, index: u32, copies: u32) -> [PathBuf; 2] {
    NAMES.map(|name| match copies {
        0 | 1 => folder.join(name),
        _ => folder.join(format!("{name}.{index}")),
    })
}

/// Opens a file to append to it.
pub(super) fn open(path: &Path) -> io::Result<File> {
    File::options().append(true).create(true).open(path)
}

/// The collection of the processes' output in the job's own two files.
pub(super) struct Collector {
    folder: PathBuf,
    copies: u32,
    /// Number of bytes that were copied of each file.
    copied: BTreeMap<PathBuf, u64>,
}

impl Collector {
    pub(super) fn new(folder: &Path, copies: u32) -> Self {
        Self {
            folder: folder.to_owned(),
            copies,
            copied: BTreeMap::new(),
        }
    }

    /// Copies what was written since the last call; a line without its end waits, unless it is `last` or very long.
    pub(super) fn collect(&mut self, last: bool) -> io::Result<()> {
        for index in 0..self.copies {
            let files = paths(&self.folder, index, self.copies);
            for (path, name) in files.into_iter().zip(NAMES) {
                let copied = self.copied.entry(path.clone()).or_default();
                while fs::metadata(&path)?.len() > *copied {
                    let mut file = File::open(&path)?;
                    file.seek(SeekFrom::Start(*copied))?;
                    let mut piece = Vec::new();
                    let count = file.take(PIECE).read_to_end(&mut piece)?;
                    if !last && count < usize::try_from(PIECE).unwrap_or(usize::MAX) {
                        let end = piece.iter().rposition(|byte| *byte == b'\n');
                        piece.truncate(end.map_or(0, |at| at + 1));
                    }
                    if piece.is_empty() {
                        break;
                    }
                    open(&self.folder.join(name))?.write_all(&piece)?;
                    *copied += u64::try_from(piece.len()).unwrap_or(0);
                }
            }
        }
        Ok(())
    }
}
