//! Compressed core files, as systemd stores them. Programs of the system unpack them.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::path::Path;

use sdm_system::secret::SecretFile;
use sdm_system::{files, poured, programs};
use sdm_text::printable_name;

/// The largest core file that is unpacked, in bytes.
const CORE_BYTES_MAX: u64 = 1 << 40;

/// A compression format of core files.
#[derive(Debug)]
struct Compression {
    /// The first bytes of a file in this format.
    begins: &'static [u8],
    /// The program that unpacks its standard input, with its arguments.
    program: &'static str,
    arguments: &'static [&'static str],
    /// The suffix of the names of files in this format, without the dot.
    suffix: &'static str,
}

const WAYS: [Compression; 4] = [
    Compression {
        begins: b"\x28\xb5\x2f\xfd",
        program: "zstd",
        arguments: &["-dcq"],
        suffix: "zst",
    },
    Compression {
        begins: b"\xfd7zXZ\0",
        program: "xz",
        // The dictionary of a file may ask for four times as much.
        arguments: &["-dcq", "--memlimit-decompress=1GiB"],
        suffix: "xz",
    },
    Compression {
        begins: b"\x1f\x8b",
        program: "gzip",
        arguments: &["-dcq"],
        suffix: "gz",
    },
    Compression {
        begins: b"\x04\x22\x4d\x18",
        program: "lz4",
        arguments: &["-dcq"],
        suffix: "lz4",
    },
];

/// A compressed file, open at its beginning.
#[derive(Debug)]
pub(super) struct Packed {
    file: File,
    way: &'static Compression,
}

impl Packed {
    /// Opens a file; `None` if its first bytes are not those of a compression format.
    pub(super) fn open(path: &Path) -> io::Result<Option<Self>> {
        let mut file = files::open(path)?;
        let mut first = Vec::new();
        (&mut file).take(8).read_to_end(&mut first)?;
        file.rewind()?;
        let way = WAYS.iter().find(|way| first.starts_with(way.begins));
        Ok(way.map(|way| Self { file, way }))
    }

    /// The error for a compressed core file that processes on other hosts read. It names the program that decompresses it.
    pub(super) fn refusal(&self) -> io::Error {
        let program = self.way.program;
        let text = format!(
            "the core file is compressed: decompress it with `{program} -d` on the hosts that read it"
        );
        io::Error::new(io::ErrorKind::InvalidInput, text)
    }

    /// Unpacks the file to a file of this user alone. The new name lacks the suffix of the format.
    pub(super) fn unpack(self, path: &Path) -> io::Result<SecretFile> {
        let folder = files::temporary_folder();
        let program = self.way.program;
        let failed = |error: io::Error| {
            let place = printable_name(&folder);
            let text = match error.kind() {
                io::ErrorKind::StorageFull => {
                    format!(
                        "the core file is compressed, and cannot be decompressed to {place} (TMPDIR): {error}"
                    )
                }
                _ => format!(
                    "the core file is compressed, and {program} cannot decompress it: {error}"
                ),
            };
            io::Error::new(error.kind(), text)
        };
        let mut command = programs::helper(program).map_err(failed)?;
        let own = folder.join(format!("sdm-core-{}", files::random_word()?));
        let suffix = path.extension().is_some_and(|it| it == self.way.suffix);
        let name = if suffix {
            path.file_stem()
        } else {
            path.file_name()
        };
        let name = name.unwrap_or_default().to_string_lossy();
        let mut to = SecretFile::in_new_folder(&own, &name).map_err(failed)?;
        let mut file = to.create().map_err(failed)?;
        let command = command.args(self.way.arguments);
        poured::pour(command, self.file, &mut file, CORE_BYTES_MAX).map_err(failed)?;
        Ok(to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packed(bytes: &[u8]) -> Option<&'static str> {
        let at = files::temporary_folder().join(files::random_word().unwrap());
        std::fs::write(&at, bytes).unwrap();
        let found = Packed::open(&at).unwrap();
        std::fs::remove_file(at).unwrap();
        found.map(|it| it.way.program)
    }

    #[test]
    fn a_compressed_file_is_known_by_its_first_bytes() {
        for (bytes, program) in [
            (&b"\x28\xb5\x2f\xfd\x04\0"[..], Some("zstd")),
            (b"\xfd7zXZ\0\0\x04", Some("xz")),
            (b"\x1f\x8b\x08\0", Some("gzip")),
            (b"\x04\x22\x4d\x18", Some("lz4")),
            (b"\x1f", None),
            (b"\x7fELF\x02", None),
            (b"", None),
        ] {
            assert_eq!(packed(bytes), program, "{bytes:?}");
        }
    }
}
