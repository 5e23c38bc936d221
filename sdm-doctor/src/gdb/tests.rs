//! Tests of versions, of the search for other gdbs, and of a trial with a real one.

use std::os::unix::fs::PermissionsExt;

use super::*;

/// A folder for one test. Drop removes it.
pub(crate) struct Root(pub(crate) PathBuf);

impl Root {
    pub(crate) fn new(name: &str) -> Self {
        let name = format!("sdm-doctor-{name}-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    pub(crate) fn plant(&self, path: &str, text: &str) -> PathBuf {
        let path = self.0.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    fn plant_gdb(&self, path: &str, version: &str) -> PathBuf {
        let text = format!("#!/bin/sh\necho 'GNU gdb (GDB) {version}'\n");
        let path = self.plant(path, &text);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }
}

impl Drop for Root {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn gdb_versions_of_all_distributors_are_parsed() {
    let check = |line: &str, text: &str, old: bool| {
        let printed = format!("SIGUSR1 No Yes\n{line}\nCopyright (C) Free Software Foundation\n");
        let version = Version::printed(&printed).unwrap();
        assert_eq!(
            (&*version.text, version.is_too_old()),
            (text, old),
            "{line}"
        );
    };
    check("GNU gdb (Debian 13.1-3) 13.1", "13.1", false);
    check(
        "GNU gdb (GDB) Red Hat Enterprise Linux 8.2-20.el8",
        "8.2-20.el8",
        true,
    );
    check(
        "GNU gdb (GDB) Red Hat Enterprise Linux 10.2-13.el9",
        "10.2-13.el9",
        false,
    );
    check("GNU gdb (GDB) 7.6", "7.6", true);
    check("GNU gdb (GDB; openSUSE Leap 15.5) 13.2", "13.2", false);
    for none in ["", "GNU gdb (GDB) today", "lldb version 14"] {
        assert_eq!(Version::printed(none), None, "{none}");
    }
}

#[test]
fn other_gdbs_are_found_in_usual_places() {
    let root = Root::new("candidates");
    let old = root.plant_gdb("usr/bin/gdb", "8.2");
    root.plant_gdb("opt/rh/gcc-toolset-13/root/usr/bin/gdb", "12.1");
    root.plant_gdb("opt/tools/gdb/bin/gdb", "14.2");
    root.plant_gdb("opt/old/bin/gdb", "7.6");
    root.plant_gdb("home/bin/gdb-15", "15.1");
    root.plant_gdb("home/bin/gdbserver", "15.1");
    let theirs = root.plant_gdb("opt/others/bin/gdb", "16.1");
    fs::set_permissions(&theirs, fs::Permissions::from_mode(0o777)).unwrap();
    root.plant("modules/gdb/14.1.lua", "");
    root.plant("modules/gdb/8.3", "");
    let places = Places {
        root: root.0.clone(),
        path: root.0.join("home/bin").into(),
        modules: root.0.join("modules").into(),
    };
    let said = other(&places.candidates(&old));
    let shown = said.replace(&*root.0.to_string_lossy(), "");
    assert_eq!(
        shown,
        "select another by --gdb, or load its module; installed here: /home/bin/gdb-15 (15.1), \
         /opt/rh/gcc-toolset-13/root/usr/bin/gdb (12.1), /opt/tools/gdb/bin/gdb (14.2), module load gdb/14.1"
    );
    let nothing = Places {
        root: root.0.join("modules"),
        path: OsString::new(),
        modules: OsString::new(),
    };
    assert!(other(&nothing.candidates(&old)).starts_with("install gdb 10 or later"));
}

#[test]
fn doctor_reports_no_fault_of_the_installed_gdb() {
    let Some(path) = files::search("gdb") else {
        println!("SKIP: no gdb");
        return;
    };
    let version = version_of(&path).unwrap();
    assert!(!version.is_too_old());
    let trial = Trial::new(&path).unwrap();
    for finding in trial.findings(&version) {
        assert_eq!(
            finding.verdict,
            crate::Verdict::Good,
            "{finding:?}\n{}",
            trial.said
        );
    }
}

#[test]
fn missing_gdb_abilities_are_reported() {
    let trial = |said: &str, path: &Path| Trial {
        path: path.to_owned(),
        said: said.to_owned(),
    };
    let script = Path::new("/nosuch");
    let version = Version::printed("GNU gdb (GDB) 13.1").unwrap();
    let said = "Could not attach to process.\nptrace: Operation not permitted.\n";
    let [python, registers, attach] = trial(said, script).findings(&version).try_into().unwrap();
    assert_eq!(attach.check, Check::Attach);
    assert!(attach.found.contains("Could not attach"), "{attach:?}");
    assert!(python.found.contains("no Python"), "{python:?}");
    assert_eq!(registers.verdict, crate::Verdict::Unknown);
    let said = "sdm-attached 1\nCouldn't write extended state status: Bad address.\n";
    let registers = trial(said, script).registers(&version);
    assert!(
        registers.found.contains("sdm-server completes"),
        "{registers:?}"
    );
    // An ELF file without a program header for the dynamic linker: a static program.
    let root = Root::new("static");
    let mut head = b"\x7fELF\x02\x01".to_vec();
    head.resize(256, 0);
    let path = root.0.join("gdb");
    fs::write(&path, head).unwrap();
    let registers = trial(said, &path).registers(&version);
    assert_eq!(registers.verdict, crate::Verdict::Bad);
    assert!(loads_libraries(&std::env::current_exe().unwrap()));
}

#[test]
fn unusable_gdb_is_reported_with_usable_ones() {
    let root = Root::new("old");
    let old = root.plant_gdb("old/gdb", "7.6");
    let strange = root.plant_gdb("strange/gdb", "of nobody");
    root.plant_gdb("opt/gdb/bin/gdb", "14.2");
    let places = Places {
        root: root.0.clone(),
        path: OsString::new(),
        modules: OsString::new(),
    };
    for (gdb, part) in [
        (old, "gdb 7.6 is too old: gdb 10 or later is required"),
        (strange, "does not identify itself as gdb"),
        (root.0.join("nosuch"), "no such gdb on this host"),
    ] {
        let [finding] = findings(Some(&gdb), &places).try_into().unwrap();
        assert_eq!(finding.verdict, crate::Verdict::Bad);
        assert!(finding.found.contains(part), "{finding:?}");
        assert!(
            finding.remedy.contains("opt/gdb/bin/gdb (14.2)"),
            "{finding:?}"
        );
    }
}
