//! Messages of `scripts/install-deps` on a machine that lacks something that it cannot install.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use sdm_tests::place::script;

/// Tools that the script itself needs.
const TOOLS: [&str; 4] = ["sh", "sed", "dirname", "echo"];

/// A folder as `PATH`, with programs that give prescribed answers.
struct Machine {
    path: PathBuf,
}

impl Machine {
    fn new(name: &str, programs: &[(&str, &str)]) -> Self {
        let folder = format!("sdm-newcomer-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(folder);
        fs::create_dir_all(&path).expect("there is room");
        for tool in TOOLS {
            let found = ["/bin", "/usr/bin"].map(|it| Path::new(it).join(tool));
            let found = found
                .iter()
                .find(|it| it.exists())
                .expect("every system has it");
            symlink(found, path.join(tool)).expect("there is room");
        }
        for (program, line) in programs {
            script(&path, program, line);
        }
        Self { path }
    }

    /// Runs the script; returns its exit code and its output.
    fn install(&self, what: &[&str]) -> (Option<i32>, String) {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts/install-deps");
        let mut command = Command::new("/bin/sh");
        let command = command
            .arg(script)
            .args(what)
            .env("PATH", &self.path)
            .stdin(Stdio::null());
        let output = command.output().expect("a shell");
        let said = [output.stdout, output.stderr].concat();
        (
            output.status.code(),
            String::from_utf8_lossy(&said).into_owned(),
        )
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

#[test]
#[expect(clippy::too_many_lines, reason = "it is one table")]
fn missing_packages_are_named_to_a_newcomer() {
    let rust = [
        ("cargo", ""),
        ("rustc", "echo 'rustc 1.95.0 (abc 2026-01-01)'"),
    ];
    let old = [("cargo", ""), ("rustc", "echo 'rustc 1.63.0'")];
    let ordinary = ("id", "echo 1000");
    // Nothing is installed, or only packages that tests do not need.
    let nothing = [
        ("dpkg-query", "echo not-installed"),
        ("apt-get", "exit 100"),
        ordinary,
    ];
    let optional =
        "for it do :; done; case $it in *qemu*) echo not-installed ;; *) echo installed ;; esac";
    let enough = [("dpkg-query", optional), ("apt-get", "exit 100"), ordinary];
    let refused = ("sudo", "exit 1");
    let install =
        "as root, run: apt-get update && apt-get install --no-install-recommends gdb gcc ";
    type Case<'a> = (
        &'a str,
        Vec<(&'a str, &'a str)>,
        &'a str,
        i32,
        &'a [&'a str],
    );
    let cases: [Case<'_>; 10] = [
        (
            "no-rust",
            vec![],
            "demo",
            1,
            &["no cargo on PATH", "https://rustup.rs"],
        ),
        (
            "old-rust",
            old.to_vec(),
            "demo",
            1,
            &["rustc 1.63.0 is too old: install 1.9"],
        ),
        (
            "elsewhere",
            rust.to_vec(),
            "demo",
            0,
            &["no Debian or Ubuntu", "gdb gcc"],
        ),
        (
            "no-sudo",
            [&rust[..], &nothing].concat(),
            "demo",
            1,
            &["there is no sudo", install],
        ),
        (
            "no-leave",
            [&rust[..], &nothing, &[refused]].concat(),
            "demo",
            1,
            &["does not know this user", install],
        ),
        (
            "no-net",
            [&rust[..], &nothing[..2], &[("id", "echo 0")]].concat(),
            "demo",
            1,
            &["apt-get update failed", install],
        ),
        (
            "no-linker",
            [&rust[..], &nothing].concat(),
            "build",
            1,
            &["missing: gcc libc6-dev; this is not root"],
        ),
        (
            "optional",
            [&rust[..], &enough].concat(),
            "release",
            0,
            &["missing: qemu-user-static", "going on without"],
        ),
        (
            "all",
            [
                &rust[..],
                &[("dpkg-query", "echo installed"), ("apt-get", "exit 1")],
            ]
            .concat(),
            "demo",
            0,
            &["nothing is missing"],
        ),
        // The demo asks for a linker first, and says once that nothing is missing.
        (
            "linker",
            [
                &rust[..],
                &[("dpkg-query", "echo installed"), ("apt-get", "exit 1")],
            ]
            .concat(),
            "build",
            0,
            &[],
        ),
    ];
    for (name, programs, what, code, parts) in cases {
        let machine = Machine::new(name, &programs);
        let (ended, said) = machine.install(&[what]);
        assert_eq!(ended, Some(code), "{name}: {said}");
        for part in parts {
            assert!(said.contains(part), "{name}: no {part:?} in {said}");
        }
        assert_eq!(said.is_empty(), parts.is_empty(), "{name}: {said}");
    }
}
