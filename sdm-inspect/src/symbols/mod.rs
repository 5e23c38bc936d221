//! Names and source lines of a file's addresses.

mod calls;
mod debug;
mod debug_file;
mod demangle;
mod line;
mod names;
mod rows;
mod table;

use std::cell::OnceCell;
use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;

pub(crate) use self::calls::{Function, Target};
use self::debug::Debug;
pub(crate) use self::debug::FunctionEntry;
use self::debug_file::SeparateFile;
pub(crate) use self::line::Line;
pub(crate) use self::names::{is_c, is_fortran, text};
use self::table::{Table, Variables};
use crate::elf::Image;
use crate::files::Opened;

/// The symbols of a file.
pub(crate) struct Symbols {
    /// The separate file with symbols and debug information; `None` if there is none.
    other: Option<SeparateFile>,
    table: Table,
    imports: HashMap<u64, &'static str>,
    debug: Option<Debug>,
    variables: OnceCell<Variables>,
}

impl Symbols {
    /// Reads the symbols of the file at `path`. If `of_system` is set, separate debug information installed on the
    /// system is read too.
    pub(crate) fn of(image: &Image, opened: &Opened, path: &Path, of_system: bool) -> Self {
        let is_stripped = image.section(".debug_info").is_empty();
        let other = is_stripped
            .then(|| SeparateFile::of(image, opened, path, of_system))
            .flatten();
        let (debug_image, debug_path) = match &other {
            Some(other) => (&other.image, other.path.as_path()),
            None => (image, path),
        };
        let debug = Debug::of(debug_image, opened, debug_path);
        let packed = match (is_stripped, &other) {
            (true, None) => image.packed_symbols(),
            _ => None,
        };
        let second = other.as_ref().map(|other| &other.image);
        let images = [Some(image), second, packed.as_ref()];
        Self {
            table: Table::of(images.into_iter().flatten()),
            imports: table::imports(image),
            debug,
            variables: OnceCell::new(),
            other,
        }
    }

    fn variables(&self, image: &Image) -> &Variables {
        let images = [Some(image), self.debug_image()];
        self.variables
            .get_or_init(|| Variables::of(images.into_iter().flatten()))
    }

    /// Address of a variable of this file; `None` if it has no variable of this name. `image` is the file itself.
    pub(crate) fn variable(&self, image: &Image, name: &str) -> Option<u64> {
        self.variables(image).address_of(name)
    }

    /// The variable that contains an address, and the offset in the variable; `None` if no variable does.
    pub(crate) fn variable_at(&self, image: &Image, address: u64) -> Option<(&'static str, u64)> {
        self.variables(image).at(address)
    }

    /// The file with the separate debug information; `None` if there is none.
    pub(crate) fn debug_image(&self) -> Option<&Image> {
        self.other.as_ref().map(|other| &other.image)
    }

    /// The functions at an address, innermost first; at least one.
    pub(crate) fn lines(&self, address: u64) -> Vec<Line> {
        let mut lines = match &self.debug {
            Some(debug) => debug.lines(address),
            None => Vec::new(),
        };
        if lines.is_empty() {
            lines.push(Line::default());
        }
        if let Some(outermost) = lines.last_mut().filter(|it| it.function.is_none()) {
            outermost.function = self.table.name(address);
        }
        lines
    }

    /// The function at an address, with its calls; `None` if the debug information does not have it.
    pub(crate) fn function(&self, address: u64) -> Option<Function> {
        self.debug.as_ref()?.function(address)
    }

    /// The debug information entry of the function at an address, with its frame base; `None` if there is none.
    /// `inlined` is the number of inlined functions at the address that are skipped.
    pub(crate) fn entry(&self, address: u64, inlined: usize) -> Option<FunctionEntry<'_>> {
        self.debug.as_ref()?.entry(address, inlined)
    }

    /// Start of the function of this name; `None` if there is none.
    pub(crate) fn address_of(&self, name: &str) -> Option<u64> {
        self.table.address_of(name)
    }

    /// Start and end of the function that contains an address; `None` if no symbol covers it.
    pub(crate) fn range(&self, address: u64) -> Option<Range<u64>> {
        self.table.range(address)
    }

    /// The function of another file whose address the loader writes to this slot; `None` for other slots.
    pub(crate) fn imported(&self, slot: u64) -> Option<&'static str> {
        self.imports.get(&slot).copied()
    }

    /// The linker name of the function that begins at an address; `None` if none does.
    pub(crate) fn begins(&self, address: u64) -> Option<&'static str> {
        self.table.begins(address)
    }
}
