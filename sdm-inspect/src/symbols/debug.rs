//! The debug information of a file.

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use addr2line::{Context, LookupContinuation, LookupResult, SplitDwarfLoad};
use gimli::{
    Dwarf, DwarfFileType, DwarfPackage, EndianSlice, Expression, NativeEndian, SectionId, Unit,
    UnitHeader, UnitOffset, UnitRef,
};

use super::calls::Function;
use super::debug_file::SeparateFile;
use super::line::Line;
use super::names::Names;
use super::rows;
use crate::elf::{Image, Slice};
use crate::files::Opened;

/// Maximum number of functions at one address.
const INLINED_MAX: usize = 256;

/// The debug sections of a file, and the parts parsed so far.
pub(super) struct Debug {
    context: Context<Slice>,
    /// Headers of the units by ascending offset: of the file, and of the supplementary file that it shares with others
    /// (`dwz`).
    units: OnceCell<[Vec<UnitHeader<Slice>>; 2]>,
    dwarf: Arc<Dwarf<Slice>>,
    /// Skeleton units of split units, which the linker has kept in the file, by their ids.
    parts: OnceCell<HashMap<u64, Unit<Slice>>>,
    pieces: Pieces,
}

/// The debug information entry of a function.
pub(crate) struct FunctionEntry<'a> {
    pub(crate) unit: UnitRef<'a, Slice>,
    pub(crate) offset: UnitOffset,
    /// The expression for the frame base by which the function, or the function that it is inlined into, finds its
    /// variables; `None` if it has none.
    pub(crate) frame_base: Option<Expression<Slice>>,
}

/// The split debug information (`.dwo` and `.dwp` files) that the linker has left out of a file.
struct Pieces {
    opened: Opened,
    package: OnceCell<Option<DwarfPackage<Slice>>>,
    path: PathBuf,
    known: RefCell<HashMap<u64, Option<Arc<Dwarf<Slice>>>>>,
}

impl Debug {
    /// The debug information of a file at a path; `None` if it has none.
    pub(super) fn of(image: &Image, opened: &Opened, path: &Path) -> Option<Self> {
        if image.section(".debug_info").is_empty() {
            return None;
        }
        let mut dwarf = load(image).ok()?;
        if let Some(shared) = SeparateFile::shared(image, opened, path) {
            dwarf
                .load_sup(|id| section(&shared.image, id.name()))
                .ok()?;
        }
        let dwarf = Arc::new(dwarf);
        Some(Self {
            context: Context::from_arc_dwarf(Arc::clone(&dwarf)).ok()?,
            units: OnceCell::new(),
            dwarf,
            parts: OnceCell::new(),
            pieces: Pieces {
                opened: *opened,
                package: OnceCell::new(),
                path: path.to_owned(),
                known: RefCell::default(),
            },
        })
    }

    /// The functions at an address, innermost first; empty if nothing is known of the address.
    pub(super) fn lines(&self, address: u64) -> Vec<Line> {
        let unit = self.whole(self.context.find_dwarf_and_unit(address));
        let Ok(mut frames) = self.whole(self.context.find_frames(address)) else {
            return Vec::new();
        };
        let names = unit.map(|unit| {
            let units = self.units.get_or_init(|| {
                let shared = self.dwarf.sup().map(units_of);
                [units_of(&self.dwarf), shared.unwrap_or_default()]
            });
            Names { unit, units }
        });
        let mut lines: Vec<Line> = Vec::new();
        while let Ok(Some(frame)) = frames.next() {
            let by_entry = frame.dw_die_offset.zip(names.as_ref());
            let function = by_entry.and_then(|(offset, names)| names.of(offset));
            let raw = || Some(frame.function.as_ref()?.raw_name().ok()?.into_owned());
            let location = frame.location.as_ref();
            let path = location.and_then(|it| it.file);
            lines.push(Line {
                function: function.or_else(raw),
                path: path.map(str::to_owned),
                line: location.and_then(|it| it.line).unwrap_or(0),
                is_inlined: true,
            });
            if lines.len() >= INLINED_MAX {
                break;
            }
        }
        if let Some(innermost) = lines.first_mut()
            && let Some((path, line)) = unit.and_then(|unit| self.row(unit, address))
        {
            innermost.path = Some(path);
            innermost.line = line;
        }
        if let Some(outermost) = lines.last_mut() {
            outermost.is_inlined = false;
        }
        lines
    }

    /// The function at an address, with its calls; `None` if not known.
    pub(super) fn function(&self, address: u64) -> Option<Function> {
        let unit = self.whole(self.context.find_dwarf_and_unit(address))?;
        let mut frames = self.whole(self.context.find_frames(address)).ok()?;
        let mut outermost = None;
        while let Ok(Some(frame)) = frames.next() {
            outermost = frame.dw_die_offset;
        }
        Function::read(unit, outermost?)
    }

    /// The debug information entry of the function at an address; `None` if there is none. `inlined` is the number of
    /// inlined functions at the address that are skipped.
    pub(super) fn entry(&self, address: u64, inlined: usize) -> Option<FunctionEntry<'_>> {
        let unit = self.whole(self.context.find_dwarf_and_unit(address))?;
        let mut frames = self.whole(self.context.find_frames(address)).ok()?;
        let mut offsets = Vec::new();
        while let Ok(Some(frame)) = frames.next() {
            offsets.push(frame.dw_die_offset?);
        }
        let holder = unit.entry(*offsets.last()?).ok()?;
        let base = holder.attr_value(gimli::DW_AT_frame_base);
        Some(FunctionEntry {
            unit,
            offset: *offsets.get(inlined)?,
            frame_base: base.and_then(|base| base.exprloc_value()),
        })
    }

    /// The source file and line at an address; from the skeleton unit if the debug information is split. `None` if
    /// there is none.
    fn row(&self, unit: UnitRef<'_, Slice>, address: u64) -> Option<(String, u32)> {
        if unit.dwarf.file_type == DwarfFileType::Main {
            return rows::line(unit, address);
        }
        let wanted = unit.dwo_id?;
        let parts = self.parts.get_or_init(|| {
            let units = units_of(&self.dwarf).into_iter();
            let units = units.filter_map(|header| self.dwarf.unit(header).ok());
            units
                .filter_map(|unit| Some((unit.dwo_id?.0, unit)))
                .collect()
        });
        rows::line(parts.get(&wanted.0)?.unit_ref(&self.dwarf), address)
    }

    /// The result of a lookup, after loading the split units that it asks for.
    fn whole<L>(&self, mut result: LookupResult<L>) -> L::Output
    where
        L: LookupContinuation<Buf = Slice>,
    {
        loop {
            result = match result {
                LookupResult::Output(output) => return output,
                LookupResult::Load { load, continuation } => {
                    continuation.resume(self.pieces.load(&load))
                }
            };
        }
    }
}

impl Pieces {
    fn load(&self, wanted: &SplitDwarfLoad<Slice>) -> Option<Arc<Dwarf<Slice>>> {
        let mut known = self.known.borrow_mut();
        let piece = known.entry(wanted.dwo_id.0).or_insert_with(|| {
            let piece = self.packed(wanted).or_else(|| self.alone(wanted));
            piece.map(Arc::new)
        });
        piece.clone()
    }

    /// A split unit in the package file of a program (`.dwp`); `None` if it is not there.
    fn packed(&self, wanted: &SplitDwarfLoad<Slice>) -> Option<Dwarf<Slice>> {
        let package = self.package.get_or_init(|| {
            let mut path = self.path.clone().into_os_string();
            path.push(".dwp");
            let image = self.image(Path::new(&path))?;
            let empty = EndianSlice::new(&[], NativeEndian);
            DwarfPackage::load(
                |id| section(&image, id.dwo_name().unwrap_or_default()),
                empty,
            )
            .ok()
        });
        package
            .as_ref()?
            .find_cu(wanted.dwo_id, &wanted.parent)
            .ok()?
    }

    /// A split unit in a file of its own (`.dwo`); `None` if there is no such file.
    fn alone(&self, wanted: &SplitDwarfLoad<Slice>) -> Option<Dwarf<Slice>> {
        let path = |bytes: Option<Slice>| {
            let bytes = bytes?.slice();
            Some(Path::new(OsStr::from_bytes(bytes)))
        };
        let folder = path(wanted.comp_dir).unwrap_or(Path::new(""));
        let path = folder.join(path(wanted.path)?);
        let beside = self.path.parent()?.join(path.file_name()?);
        let image = self.image(&path).or_else(|| self.image(&beside))?;
        let load = |id: SectionId| section(&image, id.dwo_name().unwrap_or_default());
        let mut dwarf = Dwarf::load(load).ok()?;
        dwarf.make_dwo(&wanted.parent);
        let header = dwarf.units().next().ok()??;
        let unit = dwarf.unit(header).ok()?;
        // A file that was compiled again does not belong to this unit.
        (unit.dwo_id == Some(wanted.dwo_id)).then_some(dwarf)
    }

    fn image(&self, path: &Path) -> Option<Image> {
        Image::parse(self.opened.beside(path).ok()?.bytes)
    }
}

fn load(image: &Image) -> Result<Dwarf<Slice>, gimli::Error> {
    Dwarf::load(|id| section(image, id.name()))
}

/// Returns a section. There is no error: a missing section is empty.
fn section(image: &Image, name: &str) -> Result<Slice, gimli::Error> {
    Ok(image.section(name))
}

fn units_of(dwarf: &Dwarf<Slice>) -> Vec<UnitHeader<Slice>> {
    let mut headers = dwarf.units();
    std::iter::from_fn(|| headers.next().ok().flatten()).collect()
}
