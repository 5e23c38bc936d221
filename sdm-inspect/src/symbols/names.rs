//! Names of functions as gdb shows them: the name of the entry in the debug information, qualified by its enclosing
//! entries.

use gimli::{
    AttributeValue, DebugInfoOffset, DebuggingInformationEntry, DwLang, DwTag, Dwarf,
    DwarfFileType, Unit, UnitHeader, UnitOffset, UnitRef, UnitSectionOffset,
};

use super::demangle::{NAME_BYTES_MAX, without_parameters};
use crate::elf::Slice;

/// Maximum number of references that are followed from an entry to the entry with its name.
const HOPS_MAX: usize = 16;
/// Maximum nesting depth of entries.
const DEPTH_MAX: usize = 256;

type Entry = DebuggingInformationEntry<Slice>;

/// The unit of an entry, and the headers of all units: of its file, and of the supplementary file.
pub(super) struct Names<'a> {
    pub(super) unit: UnitRef<'a, Slice>,
    pub(super) units: &'a [Vec<UnitHeader<Slice>>; 2],
}

/// The unit that contains an entry.
enum Home<'a> {
    Same(UnitRef<'a, Slice>),
    Other(&'a Dwarf<Slice>, Box<Unit<Slice>>),
}

impl Home<'_> {
    fn unit(&self) -> UnitRef<'_, Slice> {
        match self {
            Self::Same(unit) => *unit,
            Self::Other(dwarf, unit) => unit.unit_ref(dwarf),
        }
    }
}

impl Names<'_> {
    /// The name of the function that an entry describes; `None` if it has none.
    pub(super) fn of(&self, offset: UnitOffset) -> Option<String> {
        let language = self.language();
        let mut home = Home::Same(self.unit);
        let mut offset = offset;
        let mut own: Option<String> = None;
        let mut linkage: Option<String> = None;
        let mut tag = None;
        for _ in 0..HOPS_MAX {
            let unit = home.unit();
            let entry = unit.entry(offset).ok()?;
            tag.get_or_insert(entry.tag());
            own = own.or_else(|| text(unit, &entry, gimli::DW_AT_name));
            linkage = linkage.or_else(|| text(unit, &entry, gimli::DW_AT_linkage_name));
            let specification = entry.attr_value(gimli::DW_AT_specification);
            let next = specification.or_else(|| entry.attr_value(gimli::DW_AT_abstract_origin));
            let Some(found) = next.and_then(|next| self.follow(&home, next)) else {
                break;
            };
            (home, offset) = found;
        }
        if !has_scopes(language) {
            return linkage.or(own);
        }
        if language != Some(gimli::DW_LANG_Rust)
            && let Some(name) = linkage.as_deref().and_then(without_parameters)
        {
            return Some(name);
        }
        let own = own.or(linkage)?;
        // gdb omits the host of a contained procedure that was inlined.
        let is_inlined = tag == Some(gimli::DW_TAG_inlined_subroutine);
        Some(self.scoped(home.unit(), offset, own, language, is_inlined))
    }

    fn language(&self) -> Option<DwLang> {
        let root = self.unit.entry(self.unit.header.root_offset()).ok()?;
        match root.attr_value(gimli::DW_AT_language)? {
            AttributeValue::Language(language) => Some(language),
            _ => None,
        }
    }

    /// The entry to which an attribute of an entry in `home` refers; `None` if it is not found.
    fn follow<'a>(
        &'a self,
        home: &Home<'a>,
        to: AttributeValue<Slice>,
    ) -> Option<(Home<'a>, UnitOffset)> {
        let (dwarf, known, offset) = match (to, home) {
            (AttributeValue::UnitRef(offset), Home::Same(unit)) => {
                return Some((Home::Same(*unit), offset));
            }
            (AttributeValue::UnitRef(offset), Home::Other(dwarf, unit)) => {
                let unit = dwarf.unit(unit.header).ok()?;
                return Some((Home::Other(dwarf, Box::new(unit)), offset));
            }
            (AttributeValue::DebugInfoRef(offset), Home::Other(dwarf, _)) => {
                let is_shared = self
                    .unit
                    .dwarf
                    .sup()
                    .is_some_and(|it| std::ptr::eq(it, *dwarf));
                (*dwarf, &self.units[usize::from(is_shared)], offset)
            }
            // A split file of debug information has only one unit.
            (AttributeValue::DebugInfoRef(offset), Home::Same(unit))
                if unit.dwarf.file_type == DwarfFileType::Main =>
            {
                (unit.dwarf, &self.units[0], offset)
            }
            (AttributeValue::DebugInfoRefSup(offset), _) => {
                (self.unit.dwarf.sup()?, &self.units[1], offset)
            }
            _ => return None,
        };
        let header = holder(known, offset)?;
        let within = offset.to_unit_offset(&header)?;
        let unit = dwarf.unit(header).ok()?;
        Some((Home::Other(dwarf, Box::new(unit)), within))
    }

    /// A name qualified by the scopes of its entry.
    fn scoped(
        &self,
        unit: UnitRef<'_, Slice>,
        offset: UnitOffset,
        own: String,
        language: Option<DwLang>,
        is_inlined: bool,
    ) -> String {
        let mut name = own;
        for scope in scopes(unit, offset).unwrap_or_default().into_iter().rev() {
            let Ok(entry) = unit.entry(scope) else { break };
            let called = text(unit, &entry, gimli::DW_AT_name);
            let called = match entry.tag() {
                gimli::DW_TAG_namespace => called.unwrap_or("(anonymous namespace)".to_owned()),
                // The host of a contained procedure is the only prefix of its name.
                gimli::DW_TAG_subprogram if is_fortran(language) && !is_inlined => match called {
                    Some(called) => return format!("{called}::{name}"),
                    None => break,
                },
                gimli::DW_TAG_subprogram => break,
                tag if is_scope(tag) => match called {
                    Some(called) => called,
                    None => break,
                },
                _ => continue,
            };
            if name.len() > NAME_BYTES_MAX {
                break;
            }
            name = format!("{called}::{name}");
        }
        name
    }
}

/// The header of the unit that contains an offset; `None` if none does.
fn holder(known: &[UnitHeader<Slice>], offset: DebugInfoOffset) -> Option<UnitHeader<Slice>> {
    let UnitSectionOffset(offset) = UnitSectionOffset(offset.0);
    let before = known.partition_point(|header| header.offset().0 <= offset);
    known.get(before.checked_sub(1)?).copied()
}

/// The entries that enclose an entry of a unit, outermost first.
fn scopes(unit: UnitRef<'_, Slice>, offset: UnitOffset) -> gimli::Result<Vec<UnitOffset>> {
    let mut open: Vec<(isize, UnitOffset)> = Vec::new();
    let mut entries = unit.entries_raw(None)?;
    while !entries.is_empty() {
        let (at, depth) = (entries.next_offset(), entries.next_depth());
        while open.last().is_some_and(|(above, _)| *above >= depth) {
            open.pop();
        }
        if at >= offset {
            break;
        }
        let Some(abbreviation) = entries.read_abbreviation()? else {
            continue;
        };
        entries.skip_attributes(abbreviation.attributes())?;
        if abbreviation.has_children() && open.len() < DEPTH_MAX {
            open.push((depth, at));
        }
    }
    Ok(open.into_iter().map(|(_, at)| at).collect())
}

pub(crate) fn text(unit: UnitRef<'_, Slice>, entry: &Entry, name: gimli::DwAt) -> Option<String> {
    let value = entry.attr_value(name)?;
    let bytes = unit.attr_string(value).ok()?;
    Some(bytes.to_string_lossy().into_owned())
}

fn is_scope(tag: DwTag) -> bool {
    matches!(
        tag,
        gimli::DW_TAG_class_type
            | gimli::DW_TAG_structure_type
            | gimli::DW_TAG_union_type
            | gimli::DW_TAG_enumeration_type
            | gimli::DW_TAG_interface_type
            | gimli::DW_TAG_module
    )
}

pub(crate) fn is_c(language: Option<DwLang>) -> bool {
    matches!(
        language,
        Some(
            gimli::DW_LANG_C
                | gimli::DW_LANG_C89
                | gimli::DW_LANG_C99
                | gimli::DW_LANG_C11
                | gimli::DW_LANG_C17
                | gimli::DW_LANG_C_plus_plus
                | gimli::DW_LANG_C_plus_plus_03
                | gimli::DW_LANG_C_plus_plus_11
                | gimli::DW_LANG_C_plus_plus_14
                | gimli::DW_LANG_C_plus_plus_17
        )
    )
}

pub(crate) fn is_fortran(language: Option<DwLang>) -> bool {
    matches!(
        language,
        Some(
            gimli::DW_LANG_Fortran77
                | gimli::DW_LANG_Fortran90
                | gimli::DW_LANG_Fortran95
                | gimli::DW_LANG_Fortran03
                | gimli::DW_LANG_Fortran08
                | gimli::DW_LANG_Fortran18
        )
    )
}

fn has_scopes(language: Option<DwLang>) -> bool {
    let is_cplus = matches!(
        language,
        Some(
            gimli::DW_LANG_C_plus_plus
                | gimli::DW_LANG_C_plus_plus_03
                | gimli::DW_LANG_C_plus_plus_11
                | gimli::DW_LANG_C_plus_plus_14
                | gimli::DW_LANG_C_plus_plus_17
                | gimli::DW_LANG_C_plus_plus_20
                | gimli::DW_LANG_Rust
                | gimli::DW_LANG_D
        )
    );
    is_cplus || is_fortran(language)
}
