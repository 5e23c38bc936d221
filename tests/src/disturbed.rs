//! Servers that misbehave: a script in place of `sdm-server` disturbs chosen servers.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{OpenOptionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use sdm_session::SessionConfig;

use crate::binaries;
use crate::run::fake;

/// A folder with a script `sdm-server`, which makes chosen servers misbehave.
pub struct Disturbed {
    folder: PathBuf,
}

impl Disturbed {
    /// Creates a script in place of the server. `lines` are shell commands; `$0` is in the test's folder, `$id` is
    /// the server's number. After the lines the script executes the real server.
    ///
    /// # Panics
    /// If the folder cannot be made.
    #[must_use]
    pub fn new(lines: &str) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("sdm-startup-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(&folder).expect("a folder of the test's own");
        crate::ordinary::give(&folder);
        let real = binaries::folder();
        symlink(real.join("sdm-master"), folder.join("sdm-master")).expect("a link");
        let script = format!(
            "#!/bin/sh\nid=$SDM_SERVER_ID\n{lines}\nexec {}/sdm-server \"$@\"\n",
            real.display()
        );
        let mut options = fs::OpenOptions::new();
        let mut file = options
            .create_new(true)
            .write(true)
            .mode(0o755)
            .open(folder.join("sdm-server"))
            .expect("a script of the test's own");
        file.write_all(script.as_bytes()).expect("written");
        Self { folder }
    }

    /// The folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The configuration of a session of such servers with scripted tasks. `wait` is the time limit for their start.
    #[must_use]
    pub fn config(&self, servers: u32, wait: Duration) -> SessionConfig {
        let mut config = fake(servers, "");
        config.binaries = Some(self.folder.clone());
        config.config.start_wait = wait;
        config
    }
}

impl Drop for Disturbed {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}
