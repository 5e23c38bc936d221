//! Tests that files with which other users could have interfered are recognised.

use std::fs::Permissions;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;

use nix::sys::stat::Mode;

use super::*;

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("sdm-files-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn fifo(&self, name: &str) -> PathBuf {
        let path = self.0.join(name);
        nix::unistd::mkfifo(&path, Mode::S_IRWXU).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().mode() & 0o7777
}

#[test]
fn fifo_device_and_folder_are_refused_as_files() {
    let folder = Folder::new("open");
    let file = folder.0.join("file");
    fs::write(&file, "text").unwrap();
    assert_eq!(read_text(&file).unwrap(), "text");
    // No process writes to the FIFO, so an open of it would wait for ever.
    let fifo = folder.fifo("fifo");
    for read in [open, open_own] {
        let error = read(&fifo).unwrap_err().to_string();
        assert!(error.starts_with("is a FIFO of "), "{error}");
    }
    let link = folder.0.join("link");
    std::os::unix::fs::symlink(&fifo, &link).unwrap();
    assert!(open(&link).is_err());
    assert_eq!(
        open(&folder.0).unwrap_err().kind(),
        io::ErrorKind::IsADirectory
    );
    assert_eq!(
        open(Path::new("/no")).unwrap_err().kind(),
        io::ErrorKind::NotFound
    );
    assert!(
        open(Path::new("/dev/zero"))
            .unwrap_err()
            .to_string()
            .contains("a device")
    );
    assert_eq!(read_text(Path::new("/dev/null")).unwrap(), "");
    let (reader, mut writer) = io::pipe().unwrap();
    writer.write_all(b"handed").unwrap();
    drop(writer);
    let name = format!("/dev/fd/{}", reader.as_raw_fd());
    assert_eq!(read_text(Path::new(&name)).unwrap(), "handed");
}

#[test]
fn too_long_or_non_utf8_text_file_is_refused() {
    let folder = Folder::new("bound");
    let file = folder.0.join("file");
    fs::write(&file, b"12345").unwrap();
    assert_eq!(text_of(open(&file).unwrap(), 5).unwrap(), "12345");
    assert!(text_of(open(&file).unwrap(), 4).is_err());
    fs::write(&file, b"a\xffb").unwrap();
    assert!(read_text(&file).is_err());
}

#[test]
fn file_writable_by_others_is_not_trusted() {
    let folder = Folder::new("own");
    let file = folder.0.join("file");
    fs::write(&file, "").unwrap();
    let allow = |mode| fs::set_permissions(&file, Permissions::from_mode(mode)).unwrap();
    allow(0o644);
    assert!(open_own(&file).is_ok());
    allow(0o646);
    let error = open_own(&file).unwrap_err().to_string();
    assert!(error.contains("chmod go-w"), "{error}");
    assert!(open_own(Path::new("/etc/passwd")).is_ok());
    assert!(open_own(Path::new("/dev/null")).is_ok());
}

#[test]
fn written_file_is_private_and_follows_no_link() {
    let folder = Folder::new("replace");
    let file = folder.0.join("report");
    replace(&file, b"one").unwrap();
    assert_eq!(
        (mode(&file), &*fs::read(&file).unwrap()),
        (0o600, &b"one"[..])
    );
    // Permissions that were set by the user stay.
    fs::set_permissions(&file, Permissions::from_mode(0o640)).unwrap();
    replace(&file, b"two").unwrap();
    assert_eq!(
        (mode(&file), &*fs::read(&file).unwrap()),
        (0o640, &b"two"[..])
    );
    let link = folder.0.join("link");
    std::os::unix::fs::symlink(&file, &link).unwrap();
    replace(&link, b"three").unwrap();
    assert_eq!(fs::read(&file).unwrap(), b"two");
    assert_eq!(
        (mode(&link), &*fs::read(&link).unwrap()),
        (0o600, &b"three"[..])
    );
    for no_file in [
        folder.fifo("fifo"),
        folder.0.clone(),
        folder.0.join("none/x"),
    ] {
        assert!(replace(&no_file, b"").is_err(), "{}", no_file.display());
    }
    assert!(create_new(&link).is_err());
    drop(NewFile::beside(&file).unwrap());
    // A failed attempt leaves no file behind.
    assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 3);
    assert!(replace(Path::new("/dev/null"), b"handed over").is_ok());
}

#[test]
fn file_behind_a_link_in_a_shared_folder_is_not_opened() {
    let folder = Folder::new("write");
    fs::set_permissions(&folder.0, Permissions::from_mode(0o755)).unwrap();
    let [file, link, second] = ["log", "link", "second"].map(|name| folder.0.join(name));
    let write = |path: &Path, writing, text: &[u8]| {
        open_to_write(path, writing).and_then(|mut file| file.write_all(text))
    };
    write(&file, Writing::Behind, b"one").unwrap();
    assert_eq!(mode(&file), 0o600);
    write(&file, Writing::Behind, b"two").unwrap();
    std::os::unix::fs::symlink(&file, &link).unwrap();
    fs::hard_link(&file, &second).unwrap();
    write(&link, Writing::Behind, b"three").unwrap();
    assert_eq!(fs::read(&file).unwrap(), b"onetwothree");
    write(&second, Writing::Anew, b"new").unwrap();
    assert_eq!(fs::read(&file).unwrap(), b"new");
    // The same in a folder in which other users could have made the links.
    fs::set_permissions(&folder.0, Permissions::from_mode(0o777)).unwrap();
    for path in [&link, &second, &file] {
        let error = write(path, Writing::Anew, b"theirs").unwrap_err();
        assert!(error.to_string().contains("is a symbolic link"), "{error}");
    }
    assert_eq!(fs::read(&file).unwrap(), b"new");
    assert!(write(&folder.fifo("fifo"), Writing::Behind, b"").is_err());
}

#[test]
fn new_file_takes_the_lines_of_all_that_open_it_at_once() {
    let folder = Folder::new("at-once");
    for round in 0..200 {
        let path = folder.0.join(round.to_string());
        let together = std::sync::Barrier::new(4);
        let open = || {
            together.wait();
            open_to_write(&path, Writing::Behind)
        };
        let opened = std::thread::scope(|scope| {
            let threads = [(); 4].map(|()| scope.spawn(open));
            threads.map(|thread| thread.join().unwrap())
        });
        for file in opened {
            file.unwrap().write_all(b"line\n").unwrap();
        }
        assert_eq!(fs::read(&path).unwrap(), b"line\n".repeat(4));
    }
}

#[test]
fn private_folder_is_created_and_unsafe_one_is_refused() {
    let folder = Folder::new("private");
    let own = folder.0.join("own");
    for _ in 0..2 {
        private_folder(&own).unwrap();
        assert_eq!(mode(&own), 0o700);
    }
    let link = folder.0.join("link");
    std::os::unix::fs::symlink(&own, &link).unwrap();
    let refused = |path: &Path| private_folder(path).unwrap_err().to_string();
    assert!(refused(&link).contains("is not a folder"));
    fs::set_permissions(&own, Permissions::from_mode(0o750)).unwrap();
    assert!(refused(&own).contains("chmod 700"));
    fs::set_permissions(&folder.0, Permissions::from_mode(0o777)).unwrap();
    assert!(refused(&folder.0.join("new")).contains("chmod +t"));
}

#[test]
fn relative_folders_are_ignored() {
    let check = |given: &str, expect: &str| {
        assert_eq!(
            whole_names(OsStr::new(given)),
            OsStr::new(expect),
            "{given}"
        );
    };
    check("/usr/bin:/bin", "/usr/bin:/bin");
    check(":/a:.::b:../c:/d e:", "/a:/d e");
    check("", "");
    check(".", "");
}
