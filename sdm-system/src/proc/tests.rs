//! Tests of the parsers of `/proc`.

use std::os::unix::ffi::{OsStrExt, OsStringExt};

use super::*;

/// A directory with the files of a process's directory in `/proc`.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let name = format!("sdm-proc-{name}-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    fn with(self, file: &str, bytes: &[u8]) -> Self {
        fs::write(self.0.join(file), bytes).unwrap();
        self
    }

    fn process(&self) -> Process {
        at(&self.0)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn process_name_with_parentheses_does_not_break_stat_parsing() {
    let stat = "7 (a b) R 9) t 1 7 8 0 -1 64 1 0 0 0 12 3 9 9 20 0 2 0 354214";
    let stat = Stat::parse(stat).unwrap();
    assert_eq!(stat.name, "a b) R 9");
    assert!(stat.state().is_held() && !stat.state().is_stopped());
    assert_eq!((stat.parent(), stat.session()), (Some(1), Some(8)));
    assert_eq!(stat.flags(), Some(64));
    assert_eq!(stat.cpu_ticks(), Some(15));
    assert_eq!(stat.began_ticks(), Some(354_214));
    assert_eq!(stat.field::<u64>(23), None);
    assert_eq!(stat.field::<u64>(3), None, "the state is no number");
    for none in ["", "7 (a", "7 (a)", "7 a) S 1", "nonsense"] {
        assert_eq!(Stat::parse(none), None, "{none:?}");
    }
    let short = Stat::parse("7 (a) Z").unwrap();
    assert!(short.state().has_ended());
    assert_eq!(short.parent(), None);
    assert_eq!(short.cpu_ticks(), None);
}

#[test]
fn non_utf8_proc_files_hide_no_process() {
    let folder = Folder::new("names")
        .with("stat", b"10 (\xff\xfe\n) S 1 0 0\n")
        .with("comm", b"\xff\xfe\n\n")
        .with("cmdline", b"/opt/ha\xfflo\0\0-v\0")
        .with("environ", b"A=1\0B=\xff=x\0nothing\0=y\0")
        .with("status", b"Name:\t\xff\nTracerPid:\t12\n")
        .with(
            "maps",
            b"1000-2000 r-xp 00000000 08:01 7   /opt/ha\xff lo\n",
        );
    let process = folder.process();
    assert_eq!(process.stat().unwrap().parent(), Some(1));
    assert_eq!(process.name().unwrap(), "\u{fffd}\u{fffd}\n");
    assert_eq!(process.words().unwrap(), ["/opt/ha\u{fffd}lo", "-v"]);
    let variables = process.environment().unwrap();
    let variables: Vec<(&[u8], &[u8])> = variables
        .iter()
        .map(|(name, value)| (name.as_bytes(), value.as_bytes()))
        .collect();
    assert_eq!(
        variables,
        [(&b"A"[..], &b"1"[..]), (b"B", b"\xff=x"), (b"", b"y"),]
    );
    assert_eq!(process.status().unwrap().tracer(), Some(12));
    let path = OsString::from_vec(b"/opt/ha\xff lo".to_vec());
    assert_eq!(
        process.maps().unwrap()[0].file(),
        Some(Path::new(&path)),
        "it can be opened by this path"
    );
}

#[test]
fn status_fields_are_found_by_their_full_names() {
    let text =
        "SigQ:\t1/2\nUid:\t1\t2\t3\t4\nVmRSS:\t  12 kB\nSigBlk:\t8000000000000005\nGid:\tx\n";
    let status = Status(text.to_owned());
    assert_eq!(status.field("Sig"), None);
    assert_eq!(status.field("SigQ"), Some("1/2"));
    assert_eq!(status.ids("Uid"), Some(vec![1, 2, 3, 4]));
    assert_eq!(status.ids("Gid"), None);
    assert_eq!(status.bytes("VmRSS"), Some(12 << 10));
    assert_eq!(status.bytes("SigQ"), None);
    assert_eq!(status.signals("SigBlk"), [1, 3, 64]);
    assert_eq!(status.signals("SigIgn"), [0; 0]);
    assert_eq!(status.tracer(), None);
}

#[test]
fn file_and_anonymous_mappings_are_parsed() {
    let lines = b"\
555555554000-555555555000 r-xp 00001000 08:01 11      /tmp/my prog (deleted)
555555556000-555555557000 rw-s 00000000 00:00 0 
7ffff7fc9000-7ffff7fcb000 r-xp 00000000 00:00 0                          [vdso]
ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0
zz-5557000 r-xp 00001000 08:01 11 /tmp/prog
1000 r-xp

";
    let found = mappings(lines);
    assert_eq!(found.len(), 4, "{found:?}");
    assert_eq!(found[0].offset, 0x1000);
    assert_eq!(found[0].file(), Some(Path::new("/tmp/my prog (deleted)")));
    assert!(found[0].is_executable() && found[0].is_private());
    assert!(found[0].holds(0x5555_5555_4000) && !found[0].holds(0x5555_5555_5000));
    assert_eq!((found[1].file(), found[1].name.len()), (None, 0));
    assert!(!found[1].is_executable() && !found[1].is_private());
    assert_eq!(
        (found[2].file(), found[2].name.to_str()),
        (None, Some("[vdso]"))
    );
    assert_eq!(found[3].end, 0xffff_ffff_ff60_1000);
}

#[test]
fn proc_files_are_read_up_to_a_bound() {
    let many = vec![b'x'; usize::try_from(COMMAND_BYTES_MAX).unwrap() + 1];
    let folder = Folder::new("bound").with("cmdline", &many);
    let words = folder.process().words().unwrap();
    assert_eq!(words[0].len() as u64, COMMAND_BYTES_MAX);
}

#[test]
fn proc_files_of_the_own_process_are_read() {
    const AT_PAGESZ: u64 = 6;
    let pid = std::process::id().cast_signed();
    let process = of(pid);
    assert!(pids().unwrap().any(|it| it == pid));
    let stat = process.stat().unwrap();
    assert_eq!(stat.parent(), Some(nix::unistd::getppid().as_raw()));
    assert_eq!(stat.name, process.name().unwrap());
    assert_eq!(own().stat().unwrap().began_ticks(), stat.began_ticks());
    assert!(!process.state().unwrap().has_ended());
    let status = process.status().unwrap();
    assert_eq!(
        status.ids("Uid").unwrap()[1],
        nix::unistd::geteuid().as_raw()
    );
    assert!(status.bytes("VmRSS").unwrap() > 0);
    let program = std::env::current_exe().unwrap();
    assert_eq!(process.program().unwrap(), program);
    let maps = process.maps().unwrap();
    let own_code = |it: &&Mapping| it.file() == Some(&program) && it.is_executable();
    let code = maps.iter().find(own_code).unwrap();
    assert!(code.holds(proc_files_of_the_own_process_are_read as *const () as usize as u64));
    let variables = process.environment().unwrap();
    assert!(variables.iter().any(|(name, _)| name == "PATH"));
    assert!(!process.words().unwrap().is_empty());
    assert!(process.descriptor_count().unwrap() > 0);
    let page = process.auxiliary_value(AT_PAGESZ).unwrap();
    assert!(page.is_power_of_two() && page >= 4096);
    assert_eq!(process.auxiliary_value(1 << 40), None);
    let thread = nix::unistd::gettid().as_raw();
    assert!(process.thread_ids().unwrap().any(|id| id == thread));
    // This thread queries its own state, and so is in a read of the answer.
    assert_eq!(
        process.thread(thread).system_call().map(|call| call.0),
        Some(nix::libc::SYS_read)
    );
    assert_eq!(own_thread().stat().unwrap().state(), State('R'));
    assert!(of_machine("sys/kernel/osrelease").unwrap().contains('.'));
}

#[test]
fn missing_process_has_no_values() {
    let nobody = of(-1);
    assert_eq!(nobody.state(), None);
    assert!(nobody.status().is_err() && nobody.maps().is_err() && nobody.name().is_err());
    assert!(nobody.thread_ids().is_err() && nobody.children_of_thread(1).is_err());
    assert_eq!(nobody.wait_channel(), "");
    assert_eq!(nobody.system_call(), None);
    assert_eq!(nobody.auxiliary_value(9), None);
}
