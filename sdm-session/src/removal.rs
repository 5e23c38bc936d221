//! Removal of a file with the session's key also where this process is killed.

use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Waits for the end of its input, which comes with that of this process, however that ends, and removes the file and the
/// folders that are named. What ends all processes of a terminal or of a user is to leave it the time to do so.
const REMOVE: &str = "trap '' HUP INT TERM; read -r line; rm -f -- \"$1\"; shift; rmdir -- \"$@\"";

/// A shell that removes what holds a key as soon as this process is gone. It goes with this: what is still there then
/// stays.
pub(super) struct Removal {
    child: Child,
}

impl Removal {
    /// To be called before the file is made. The folders, the innermost first, are removed where they are empty then.
    ///
    /// # Errors
    /// There is no room for one more process or descriptor.
    pub(super) fn prepare(file: &Path, folders: &[&Path]) -> io::Result<Self> {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", REMOVE, "sdm-key-removal"]).arg(file);
        command.args(folders).stdin(Stdio::piped());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.process_group(0).spawn()?;
        Ok(Self { child })
    }
}

impl Drop for Removal {
    fn drop(&mut self) {
        // Killed while its input is open it has removed nothing.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
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
        let removal = Removal::prepare(&file, &[&folder]).unwrap();
        fs::write(&file, "").unwrap();
        drop(removal);
        assert!(file.exists());
        let mut removal = Removal::prepare(&file, &[&folder]).unwrap();
        drop(removal.child.stdin.take());
        removal.child.wait().unwrap();
        assert!(!folder.exists());
    }
}
