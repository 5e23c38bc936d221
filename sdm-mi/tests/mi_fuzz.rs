//! The MI reader against mutated transcripts of real gdbs.
//!
//! `SDM_FUZZ_RUNS` sets the number of inputs (20,000), and `SDM_SEED` the first seed.

use sdm_mi::fuzz_mi;

/// A small deterministic random number generator.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound as u64).expect("below a usize")
    }
}

/// Bytes that are significant to the parser.
const TELLING: &[u8] = b"\"\\{}[],=^*~@&+\n\r0179abc-\x00\xff\xc3";

fn mutate(random: &mut Random, lines: &[&[u8]]) -> Vec<u8> {
    let mut bytes = lines[random.below(lines.len())].to_vec();
    bytes.push(b'\n');
    for _ in 0..random.below(6) {
        let at = random.below(bytes.len() + 1);
        let telling = TELLING[random.below(TELLING.len())];
        match random.below(6) {
            0 => bytes.insert(at, telling),
            1 if at < bytes.len() => drop(bytes.remove(at)),
            2 if at < bytes.len() => bytes[at] = telling,
            3 => bytes.truncate(at),
            4 => {
                let other = lines[random.below(lines.len())];
                let from = random.below(other.len() + 1);
                bytes.truncate(at);
                bytes.extend_from_slice(&other[from..]);
            }
            _ => {
                let byte = u8::try_from(random.below(256)).expect("below 256");
                bytes.insert(at, byte);
            }
        }
    }
    bytes
}

#[test]
fn mi_parser_never_panics_on_mutated_transcripts() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let runs: u64 = number("SDM_FUZZ_RUNS").unwrap_or(20_000);
    let seed: u64 = number("SDM_SEED").unwrap_or(0x5eed);
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../sdm-gdb/tests/golden");
    let mut transcripts = Vec::new();
    for version in ["gdb13", "gdb18"] {
        for entry in std::fs::read_dir(format!("{folder}/{version}")).unwrap() {
            let path = entry.unwrap().path();
            transcripts.push((path.clone(), std::fs::read(path).unwrap()));
        }
    }
    transcripts.sort();
    let lines: Vec<&[u8]> = transcripts
        .iter()
        .flat_map(|(_, bytes)| bytes.split(|&byte| byte == b'\n'))
        .filter_map(|line| line.strip_prefix(b"< "))
        .collect();
    let mut random = Random(seed.max(1));
    for run in 0..runs {
        let bytes = mutate(&mut random, &lines);
        let read = std::panic::catch_unwind(|| fuzz_mi(&bytes));
        assert!(read.is_ok(), "run {run} of SDM_SEED={seed}: {bytes:?}");
    }
    println!("{runs} inputs, seed {seed}");
}
