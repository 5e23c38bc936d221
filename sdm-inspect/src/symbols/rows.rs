//! The source line at an address, as gdb chooses it from a unit's line table.
//!
//! Optimised code has several rows at one address, of several files, some of which are not statements. gdb keeps a
//! table for each file, and ends it where a row of another file begins. It skips rows that are not statements beside
//! one that is.

use std::collections::BTreeMap;
use std::path::PathBuf;

use gimli::{LineRow, UnitRef};

use crate::elf::Slice;

/// A row of the line table of one file; its line is 0 if another file begins.
struct Row {
    address: u64,
    line: u64,
    is_statement: bool,
}

/// The line tables of a range of addresses, by file.
#[derive(Default)]
struct Tables {
    files: BTreeMap<u64, Vec<Row>>,
    start: Option<u64>,
    file: Option<u64>,
    line: u64,
    address: Option<u64>,
    has_statement: bool,
    has_discriminator: bool,
}

/// The source file and line at an address; `None` if the table does not have it.
pub(super) fn line(unit: UnitRef<'_, Slice>, address: u64) -> Option<(String, u32)> {
    let mut rows = unit.line_program.clone()?.rows();
    let mut tables = Tables::default();
    let mut found = None;
    while let Ok(Some((_, row))) = rows.next_row() {
        if !row.end_sequence() {
            tables.add(row);
            continue;
        }
        let start = std::mem::take(&mut tables.start);
        if start.is_some_and(|start| (start..row.address()).contains(&address)) {
            found = tables.find(address);
            break;
        }
        tables = Tables::default();
    }
    let (file, line) = found?;
    Some((path(unit, file)?, u32::try_from(line).ok()?))
}

/// Path of a unit's source file: each part is relative to the part before. `None` if the unit does not have this file.
fn path(unit: UnitRef<'_, Slice>, file: u64) -> Option<String> {
    let header = unit.line_program.as_ref()?.header();
    let file = header.file(file)?;
    let text = |bytes: Slice| bytes.to_string_lossy().into_owned();
    let mut path = PathBuf::from(unit.comp_dir.map(text).unwrap_or_default());
    // Directory 0 is the compilation directory.
    let folder = file
        .directory(header)
        .filter(|_| file.directory_index() != 0);
    for part in folder.into_iter().chain([file.path_name()]) {
        path.push(text(unit.attr_string(part).ok()?));
    }
    Some(path.to_string_lossy().into_owned())
}

impl Tables {
    fn add(&mut self, row: &LineRow) {
        let (address, file) = (row.address(), row.file_index());
        let line = row.line().map_or(0, std::num::NonZero::get);
        self.start.get_or_insert(address);
        let is_new_file = self.file != Some(file);
        let is_beside = self.address == Some(address) && !row.is_stmt() && self.has_statement;
        if line != 0 && !(is_new_file && is_beside) {
            if is_new_file && let Some(before) = self.file.replace(file) {
                let before = self.files.entry(before).or_default();
                while before.last().is_some_and(|row| row.address == address) {
                    before.pop();
                }
                before.push(Row {
                    address,
                    line: 0,
                    is_statement: true,
                });
            }
            let has = row.discriminator() != 0 || line == self.line && self.has_discriminator;
            if is_new_file || line != self.line || !has {
                self.files.entry(file).or_default().push(Row {
                    address,
                    line,
                    is_statement: row.is_stmt(),
                });
            }
            self.has_discriminator = has;
            self.line = line;
        }
        if self.address.replace(address) != Some(address) {
            self.has_statement = false;
        }
        self.has_statement |= row.is_stmt();
    }

    fn find(&self, address: u64) -> Option<(u64, u64)> {
        let before = self.files.iter().filter_map(|(file, rows)| {
            let at = rows.partition_point(|row| row.address <= address);
            let last = rows[..at].last().filter(|row| row.line != 0)?;
            Some((last.address, *file, &rows[..at]))
        });
        let (address, file, rows) =
            before.max_by_key(|(address, file, _)| (*address, u64::MAX - file))?;
        let mut beside = rows
            .iter()
            .rev()
            .take_while(|row| row.address == address && row.line != 0);
        let row = beside.find(|row| row.is_statement).or(rows.last())?;
        Some((file, row.line))
    }
}
