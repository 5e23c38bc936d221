//! Search for secrets in processes: in their memory and in `/proc`.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;

use sdm_system::proc::Mapping;

use crate::disturbed::Disturbed;
use crate::{leftovers, processes};

/// True if `bytes` contain `secret`.
#[must_use]
pub fn holds(bytes: &[u8], secret: &[u8]) -> bool {
    bytes.windows(secret.len()).any(|window| window == secret)
}

/// The names of the processes of this machine that have the secret in a file of their `/proc`.
#[must_use]
pub fn who_shows(secret: &str, file: &str) -> Vec<String> {
    leftovers::all_pids()
        .filter(|pid| {
            let bytes = fs::read(processes::of(*pid).path(file)).unwrap_or_default();
            holds(&bytes, secret.as_bytes())
        })
        .map(processes::name)
        .collect()
}

/// The contents of a process's writable memory, one part for each mapping; `None` if this user may not read it.
#[must_use]
pub fn memory(pid: u32) -> Option<Vec<Vec<u8>>> {
    let process = processes::of(pid);
    let mem = fs::File::open(process.path("mem")).ok()?;
    let part = |mapping: &Mapping| {
        let mut bytes = vec![0; usize::try_from(mapping.end - mapping.start).ok()?];
        mem.read_exact_at(&mut bytes, mapping.start).ok()?;
        Some(bytes)
    };
    let maps = process.maps().ok()?;
    let writable = maps.iter().filter(|it| it.rights.starts_with("rw"));
    Some(writable.filter_map(part).collect())
}

/// Shell lines for [`Disturbed`]: the servers report to the test from which place they get the key, and the key.
pub const TELLS: &str = r#"
umask 077
for word in "$@"; do [ "$before" = --handover ] && place=$word; before=$word; done
case $place in
unix://*) perl -MIO::Socket::UNIX -e 'print IO::Socket::UNIX->new(Peer => shift)->getlines' "${place#unix://}" ;;
*) cat "$place" ;;
esac >"$0.$$.told"
echo "$place" >"$0.$$.place"
mv "$0.$$.told" "$0.told"; mv "$0.$$.place" "$0.place"
"#;

/// The key and its place, as reported by servers that run [`TELLS`].
pub struct Told {
    /// The session's key, in hexadecimal.
    pub key: String,
    /// The place from which the key was to be fetched.
    pub place: String,
}

impl Told {
    /// Reads the report of the servers.
    ///
    /// # Panics
    /// If there is none.
    #[must_use]
    pub fn in_town(town: &Disturbed) -> Self {
        let read = |what: &str| {
            let path = town.folder().join(format!("sdm-server.{what}"));
            fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
        };
        let text = read("told");
        let key = text.lines().find_map(|line| line.strip_prefix("SDM_KEY="));
        let key = key.unwrap_or_else(|| panic!("no key in {text:?}"));
        assert_eq!(key.len(), 64, "32 bytes in hexadecimal");
        Self {
            key: key.to_owned(),
            place: read("place").trim().to_owned(),
        }
    }

    /// Checks that no command line or environment has the key, and that a process of one of these names has its place.
    ///
    /// # Panics
    /// If the key is visible, or no such process has its place.
    pub fn assert_carried_by(&self, names: &[&str]) {
        for file in ["cmdline", "environ"] {
            assert_eq!(who_shows(&self.key, file), [""; 0], "{file}");
        }
        let carries = who_shows(&self.place, "cmdline");
        let known = |name: &String| names.iter().any(|known| name.starts_with(known));
        assert!(carries.iter().any(known), "only {carries:?} have the place");
    }

    /// Checks that the folder of the key was removed.
    ///
    /// # Panics
    /// If the folder exists.
    pub fn assert_gone(&self) {
        let path = Path::new(self.place.trim_start_matches("unix://"));
        let folder = path.parent().expect("a folder");
        assert!(!folder.exists(), "{}", folder.display());
    }
}
