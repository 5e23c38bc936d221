//! Search for the file with the debug information of a stripped file.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use object::Object;

use crate::elf::Image;
use crate::files::Opened;

/// Directory of the system's debug information.
const FOLDER: &str = "/usr/lib/debug";
/// Directory beside the stripped file.
const FOLDER_BESIDE: &str = ".debug";

/// A separate file with debug information.
pub(super) struct SeparateFile {
    pub(super) image: Image,
    pub(super) path: PathBuf,
}

impl SeparateFile {
    /// Finds the debug information of the file at a path, by the name in `.gnu_debuglink`. With `of_system` the
    /// system's directory is searched too, first by the build id. `None` if it is not found.
    pub(super) fn of(image: &Image, opened: &Opened, path: &Path, of_system: bool) -> Option<Self> {
        let by_number = image.build_id().and_then(numbered);
        let by_number = by_number.filter(|_| of_system);
        let by_name = named(image, path, of_system);
        let mut places = by_number.into_iter().chain(by_name);
        places.find_map(|place| Self::at(place, image, opened))
    }

    /// The supplementary file that a file with debug information names and shares with others; `None` if it names none
    /// or it is not found.
    pub(super) fn shared(image: &Image, opened: &Opened, path: &Path) -> Option<Self> {
        let (name, number) = image.file.gnu_debugaltlink().ok()??;
        let name = Path::new(OsStr::from_bytes(name));
        let beside = path.parent().map(|folder| folder.join(name));
        let mut places = beside.into_iter().chain(numbered(number));
        places.find_map(|place| {
            let image = Image::parse(opened.beside(&place).ok()?.bytes)?;
            let is_meant = image.build_id() == Some(number);
            is_meant.then_some(Self { image, path: place })
        })
    }

    fn at(path: PathBuf, of: &Image, opened: &Opened) -> Option<Self> {
        let bytes = opened.beside(&path).ok()?.bytes;
        let image = Image::parse(bytes)?;
        let is_meant = match of.build_id() {
            Some(number) => image.build_id() == Some(number),
            None => checksum(of) == Some(crc32fast::hash(bytes)),
        };
        is_meant.then_some(Self { image, path })
    }
}

/// The path of a debug file by its build id: `/usr/lib/debug/.build-id/ab/cdef.debug`. `None` for an empty id.
fn numbered(number: &[u8]) -> Option<PathBuf> {
    let (first, rest) = number.split_first()?;
    let rest: String = rest.iter().map(|byte| format!("{byte:02x}")).collect();
    let name = format!(".build-id/{first:02x}/{rest}.debug");
    Some(Path::new(FOLDER).join(name))
}

fn named(image: &Image, path: &Path, of_system: bool) -> Vec<PathBuf> {
    let name = image.file.gnu_debuglink().ok().flatten();
    let (Some((name, _)), Some(folder)) = (name, path.parent()) else {
        return Vec::new();
    };
    let name = OsStr::from_bytes(name);
    let below = folder.strip_prefix("/").unwrap_or(folder);
    let mut places = vec![folder.join(name), folder.join(FOLDER_BESIDE).join(name)];
    if of_system {
        places.push(Path::new(FOLDER).join(below).join(name));
    }
    places
}

fn checksum(image: &Image) -> Option<u32> {
    let (_, checksum) = image.file.gnu_debuglink().ok()??;
    Some(checksum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn build_id_becomes_a_path() {
        let path = numbered(&[0xab, 0xc0, 1]).unwrap();
        assert_eq!(path, Path::new("/usr/lib/debug/.build-id/ab/c001.debug"));
        assert_eq!(numbered(&[]), None);
    }

    #[test]
    fn debuglink_checksum_is_zip_crc32() {
        assert_eq!(crc32fast::hash(b"123456789"), 0xcbf4_3926);
    }
}
