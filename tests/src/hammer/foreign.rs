//! Seeds of the hammer: texts and bytes of the system, of programs, files and people.

use std::fs;
use std::path::Path;

/// The first lines of servers, with and without a launcher's tag.
pub(super) fn first_words() -> Vec<Vec<u8>> {
    [
        "[1,3]<stdout>:SDM1 server=3 host=node7 port=40311 pid=1234 addresses=10.0.0.7,::1\r\n",
        "SDM1 failed=3 why=listen at tcp://[::]:7000: everything up to 7100 is in use\n",
        "unfinished SDM1 rank=5 server=4 pid=1234\n",
    ]
    .map(|text| text.as_bytes().to_vec())
    .into()
}

/// The beginning of a file; empty if it does not exist.
fn beginning(path: impl AsRef<Path>, bytes_max: usize) -> Vec<u8> {
    let mut bytes = fs::read(path).unwrap_or_default();
    bytes.truncate(bytes_max);
    bytes
}

/// An ELF file as small as the linker makes one; parts that the readers ignore are left out.
fn elf(kind: u16, parts: &[(u32, Vec<u8>)]) -> Vec<u8> {
    const HEAD: usize = 64;
    const PART: usize = 56;
    let mut head = b"\x7fELF\x02\x01\x01".to_vec();
    head.resize(16, 0);
    let count = u16::try_from(parts.len()).expect("few");
    for half in [kind, 62] {
        head.extend(half.to_le_bytes());
    }
    head.extend(1_u32.to_le_bytes());
    for word in [0, HEAD as u64, 0] {
        head.extend(word.to_le_bytes());
    }
    head.extend(0_u32.to_le_bytes());
    for half in [64, 56, count, 64, 0, 0] {
        head.extend(half.to_le_bytes());
    }
    let mut at = HEAD + PART * parts.len();
    let mut body = Vec::new();
    for (part, bytes) in parts {
        head.extend(part.to_le_bytes());
        head.extend(4_u32.to_le_bytes());
        let length = bytes.len() as u64;
        for word in [at as u64, at as u64, 0, length, length, 4] {
            head.extend(word.to_le_bytes());
        }
        at += bytes.len();
        body.extend_from_slice(bytes);
    }
    [head, body].concat()
}

/// A note of a core file.
fn note(kind: u32, bytes: &[u8]) -> Vec<u8> {
    let length = u32::try_from(bytes.len()).expect("it is short");
    let mut note = Vec::new();
    for word in [5, length, kind] {
        note.extend(word.to_le_bytes());
    }
    note.extend(b"CORE\0\0\0\0");
    note.extend_from_slice(bytes);
    note.resize(note.len().next_multiple_of(4), 0);
    note
}

/// Core files of a process with its rank in the environment.
pub(super) fn core_files() -> Vec<Vec<u8>> {
    let stack = b"./halo\0OMPI_COMM_WORLD_RANK=3\0OMPI_COMM_WORLD_SIZE=4\0A=b\0/opt/halo\0";
    let mut process = vec![0; 24];
    process.extend(4711_u32.to_le_bytes());
    process.resize(136, 0);
    let path_in_stack = (stack.len() - 10) as u64;
    let core = |at: u64| {
        let vector = [31_u64.to_le_bytes(), at.to_le_bytes()].concat();
        let notes = [note(3, &process), note(6, &vector)].concat();
        elf(4, &[(4, notes), (1, stack.to_vec())])
    };
    // The offset of the stack is known once the rest is built.
    let begin = (core(0).len() - stack.len()) as u64;
    vec![core(begin + path_in_stack), core(0)]
}

/// Programs, the dynamic loader's cache, and the MPIR process table of a launcher.
pub(super) fn objects() -> Vec<Vec<u8>> {
    let entry = |tag: u64, value: u64| [tag.to_le_bytes(), value.to_le_bytes()].concat();
    let names = b"\0libmpi.so.40\0MPIR_proctable\0MPIR_proctable_size\0/opt/lib:/lib\0";
    let dynamic = |at: u64| {
        [
            entry(5, at),
            entry(10, names.len() as u64),
            entry(1, 1),
            entry(15, 49),
            entry(0, 0),
        ]
        .concat()
    };
    let program = |at: u64| elf(3, &[(2, dynamic(at)), (1, names.to_vec())]);
    let begin = (program(0).len() - names.len()) as u64;
    let mut table = 2_i32.to_ne_bytes().to_vec();
    for word in [64_u64, 70, 41, 64, 70, 42, 0, 0] {
        table.extend(word.to_ne_bytes());
    }
    table.extend(b"node7\0/opt/solver\0");
    vec![
        program(begin),
        table,
        beginning("/etc/ld.so.cache", 4096),
        beginning("/bin/true", 4096),
    ]
}

/// Memory of an interpreter and of MPI libraries, whose beginning has the form that the reader looks for.
pub(super) fn memories() -> Vec<Vec<u8>> {
    const BEGIN: u64 = 1 << 20;
    let memory = |words: &[(usize, u64)]| {
        let mut bytes = vec![0; 1024];
        for (at, word) in words {
            bytes[*at..at + 8].copy_from_slice(&word.to_ne_bytes());
        }
        bytes
    };
    // 3.11: the version, an interpreter, a thread with a number, its frame and its code.
    let frames = [
        (8, 0x030b_02f0),
        (40, BEGIN + 64),
        (80, BEGIN + 128),
        (128 + 160, 4711),
        (128 + 56, BEGIN + 300),
        (308, BEGIN + 400),
        (432, BEGIN + 512),
        (456, BEGIN + 700),
        (468, 1),
        (624, BEGIN + 800),
        (640, BEGIN + 800),
        (648, BEGIN + 900),
        (816, 5),
        (832, 0x64),
    ];
    let told = |index: usize, value: u64| (8 * index, value);
    let newest = [
        told(0, u64::from_ne_bytes(*b"xdebugpy")),
        told(1, 0x030d_02f0),
        told(5, 40),
        told(9, 16),
        told(25, 160),
    ];
    let mut world = memory(&[(256, 2), (264, BEGIN + 512)]);
    world[64..79].copy_from_slice(b"MPI_COMM_WORLD\0");
    vec![memory(&frames), memory(&newest), world, vec![0x60; 256]]
}

/// Files of `/proc` and answers of the kernel about processes and sockets.
pub(super) fn kernel_tables() -> Vec<Vec<u8>> {
    let tcp = "head\n 0: 0100007F:1F90 0100007F:1F91 01 0:0 0:0 0 1000 0 17\n \
               1: 00000000000000000000000001000000:1F90 00000000000000000000000000000000:0000 0A 0:0 0:0 0 0 0 18\n";
    let answer = {
        let mut bytes = vec![0; 88];
        bytes[4] = 20;
        bytes[17] = 1;
        bytes
    };
    vec![
        tcp.as_bytes().to_vec(),
        b"7f0000000000-7f0000001000 r-xp 00002000 08:01 42  /opt/a b (deleted)\n7ffe-7fff rw-p 0 00:00 0 [stack]\n".to_vec(),
        b"4711 (a) b) S 1 4711 4711 0 -1 4194560 1 0 0 0 3 4 0 0 20 0 1 0 5555 1 1".to_vec(),
        b"Name:\twork\nTracerPid:\t7\nUid:\t1\t1\t1\t1\nVmRSS:\t  12 kB\nSigPnd:\t0000000000040000\n".to_vec(),
        answer,
    ]
}

/// Lists and files of hosts.
pub(super) fn host_lists() -> Vec<Vec<u8>> {
    [
        "n[1-3,07],rack[1-2]n[01-16],login1",
        "node7:4,[::1]:2,10.0.0.1",
        "node7 slots=4 # mine\nnode8:2\n\nnode7\n",
        "n[1-999]x",
    ]
    .map(|text| text.as_bytes().to_vec())
    .into()
}

/// Scenarios of simulated tasks: those in `docs/simulator.md`, and one more.
pub(super) fn scenarios() -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
    let guide = fs::read_to_string(folder.join("simulator.md")).unwrap_or_default();
    let blocks = guide.split("\n\n").filter(|block| block.contains(" = "));
    let unindent = |block: &str| {
        let lines = block.lines().map(str::trim);
        lines.collect::<Vec<_>>().join("\n").into_bytes()
    };
    let mut all: Vec<_> = blocks.map(unindent).collect();
    all.push(b"seed = 7\nrun = 10ms\n[0-3]\nstack = main a.c:3; f\ndelay = 1ms-2ms\n".to_vec());
    all
}

/// Requests to the page of a session, as browsers write them.
pub(super) fn page_requests() -> Vec<Vec<u8>> {
    let own =
        "Host: 127.0.0.1:8080\r\nOrigin: http://127.0.0.1:8080\r\nSec-Fetch-Site: same-origin\r\n";
    let cookie = "Cookie: sdm-0123456789abcdef=00; theme=dark\r\n";
    let line = format!("POST /line HTTP/1.1\r\n{own}{cookie}Content-Length: 2\r\n\r\nbt");
    let events = format!("GET /events HTTP/1.1\r\n{own}{cookie}Last-Event-ID: 7\r\n\r\n");
    let enter = format!("GET /enter/00ff?a=b HTTP/1.1\r\n{own}Connection: close\r\n\r\n");
    let several = [&events[..], &line, &enter].concat();
    [line, events, enter, several]
        .map(String::into_bytes)
        .into()
}
