//! Removal of a file with the session's key also where this process is killed.

use std::io;
use std::path::Path;
use std::process::Stdio;

use sdm_system::attendant::Attendant;
use sdm_system::programs;

/// Waits for the end of its input, which comes with that of this process, however that ends, and removes the file and the
/// folders that are named. What ends all processes of a terminal or of a user is to leave it the time to do so.
const REMOVE: &str = "trap '' HUP INT TERM; read -r line; rm -f -- \"$1\"; shift; rmdir -- \"$@\"";

/// Starts a shell that removes what holds a key as soon as this process is gone; to be called before the file is made.
/// The folders, the innermost first, are removed where they are empty then. The shell goes with what is given: what is
/// still there then stays.
///
/// # Errors
/// There is no room for one more process or descriptor.
pub(super) fn prepare(file: &Path, folders: &[&Path]) -> io::Result<Attendant> {
    let mut command = programs::shell(REMOVE);
    command.arg("sdm-key-removal").arg(file);
    command.args(folders).stdin(Stdio::piped());
    command.stdout(Stdio::null()).stderr(Stdio::null());
    Attendant::start(&mut command)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn what_is_to_go_goes_with_the_input_and_not_before() {
        let folder = std::env::temp_dir().join(format!("sdm-removal-{}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        let file = folder.join("-key");
        let removal = prepare(&file, &[&folder]).unwrap();
        fs::write(&file, "").unwrap();
        drop(removal);
        assert!(file.exists());
        let removal = prepare(&file, &[&folder]).unwrap();
        removal.dismiss().unwrap();
        assert!(!folder.exists());
    }
}
