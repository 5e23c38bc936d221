//! Fingerprints of the variables of Python frames, by which a changed variable is noticed.

use xxhash_rust::xxh3::Xxh3;

use super::{Reader, TEXT_MAX};
use crate::memory::read_u64;

/// Maximum number of variables of a frame that are read.
const VARIABLES_MAX: u64 = 64;
/// Number of innermost frames in which the values of numbers are read. A new number object often has the address of an
/// earlier one, so that its address does not show the change.
const FRAMES_WITH_NUMBERS: usize = 16;
/// Offsets: of the type in an object, of the value in a number object, and of the name in a type.
pub(super) const TYPE: u64 = 8;
pub(super) const NUMBER: u64 = 16;
pub(super) const TYPE_NAME: u64 = 24;
/// Offset of the number that changes with each change of a dictionary.
const DICTIONARY_VERSION: u64 = 24;

impl Reader<'_> {
    /// Fingerprint of the `count` variables of a frame; `depth` is the number of frames inside it.
    pub(super) fn variables(&mut self, frame: u64, count: u64, depth: usize) -> u64 {
        let layout = self.layout.frame;
        let mut hash = Xxh3::new();
        for number in 0..count.min(VARIABLES_MAX) {
            let Some(object) = self.address(frame + layout.variables + 8 * number) else {
                break;
            };
            hash.update(&object.to_ne_bytes());
            if object != 0 && depth < FRAMES_WITH_NUMBERS && self.is_number(object) == Some(true) {
                let mut bytes = [0; 16];
                let read = self.memory.read(object + NUMBER, &mut bytes);
                hash.update(read.map_or(&[], |()| &bytes));
            }
        }
        // Every function of a module can change the module's variables, but the innermost frame itself runs.
        let dictionary = layout.dictionary.filter(|_| depth == 0);
        let dictionary = dictionary.and_then(|at| self.address(frame + at));
        let version = dictionary
            .filter(|at| *at != 0)
            .and_then(|at| read_u64(self.memory, at + DICTIONARY_VERSION));
        hash.update(&version.unwrap_or(0).to_ne_bytes());
        hash.digest()
    }

    /// True for an `int` or a `float`, whose value is in the object; `None` if its type cannot be read.
    fn is_number(&mut self, object: u64) -> Option<bool> {
        let class = self.address(object + TYPE)?;
        if let Some(known) = self.numbers.get(&class) {
            return *known;
        }
        let is_number = self.names_number(class);
        if self.numbers.len() < usize::try_from(TEXT_MAX).unwrap_or(0) {
            self.numbers.insert(class, is_number);
        }
        is_number
    }

    fn names_number(&self, class: u64) -> Option<bool> {
        let name = self.address(class + TYPE_NAME)?;
        let mut bytes = [0; 6];
        self.memory.read(name, &mut bytes)?;
        Some(bytes.starts_with(b"int\0") || &bytes == b"float\0")
    }
}
