//! Encoded sets of tasks of any shape and density: time and size compared with `roaring`'s for the same bitmap.

use std::hint::black_box;
use std::time::Instant;

use anyhow::{Result, ensure};
use roaring::RoaringBitmap;
use sdm_benches::table::Table;
use sdm_idset::{IdSet, Stride, TaskId};

/// Encodes and decodes sets of many shapes, in turns with `roaring` (its layout the smallest, checked when it is read).
#[derive(clap::Parser)]
struct Arguments {
    /// Number of turns; the smallest time counts
    #[arg(long, default_value_t = 15)]
    turns: u32,
    /// Duration of a turn, which repeats one operation, in microseconds
    #[arg(long, default_value_t = 200)]
    turn_us: u64,
}

/// A million tasks.
const TASKS: u32 = 1_000_000;

fn main() -> Result<()> {
    let arguments: Arguments = clap::Parser::parse();
    let title = "Sets as bytes, beside the same bitmaps as roaring writes and reads them";
    let head = [
        "set",
        "ids",
        "bytes",
        "of roaring",
        "encode ns",
        "of roaring",
        "decode ns",
        "of roaring",
    ];
    let mut table = Table::new("set-forms", title, &head);
    let mut worst = [0.0_f64; 3];
    for (name, set) in shapes() {
        let measured = OursAndTheirs::of(&set, &arguments)?;
        let ratios = measured.ratios();
        for (worst, ratio) in worst.iter_mut().zip(ratios) {
            *worst = worst.max(ratio);
        }
        let [bytes, encode, decode] = ratios.map(two_digits);
        table.row(vec![
            name,
            set.len().to_string(),
            measured.bytes[0].to_string(),
            bytes,
            format!("{:.0}", measured.encode[0]),
            encode,
            format!("{:.0}", measured.decode[0]),
            decode,
        ]);
    }
    let [bytes, encode, decode] = worst.map(two_digits);
    let none = String::new;
    table.row(vec![
        "worst".into(),
        none(),
        none(),
        bytes,
        none(),
        encode,
        none(),
        decode,
    ]);
    table.finish()
}

fn two_digits(ratio: f64) -> String {
    format!("{ratio:.2}")
}

/// Size and times of one set. Each array has first SDM's figure, then roaring's.
struct OursAndTheirs {
    bytes: [usize; 2],
    /// Time to encode the set, in nanoseconds.
    encode: [f64; 2],
    decode: [f64; 2],
}

impl OursAndTheirs {
    fn of(set: &IdSet, arguments: &Arguments) -> Result<Self> {
        let mut bits: RoaringBitmap = set.iter().map(|id| id.0).collect();
        bits.optimize();
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        set.encode(0, &mut ours);
        bits.serialize_into(&mut theirs)?;
        ensure!(IdSet::decode(0, &ours)?.0 == *set, "another set came back");
        let mut out = Vec::new();
        let encode = arguments.compare(
            &mut || {
                out.clear();
                black_box(set).encode(0, &mut out);
            },
            &mut {
                let mut out = Vec::new();
                let bits = &bits;
                move || {
                    out.clear();
                    black_box(bits)
                        .serialize_into(&mut out)
                        .expect("a Vec takes all");
                }
            },
        );
        let decode = arguments.compare(
            &mut || drop(black_box(IdSet::decode(0, black_box(&ours)))),
            &mut || {
                drop(black_box(RoaringBitmap::deserialize_from(black_box(
                    &theirs[..],
                ))))
            },
        );
        Ok(Self {
            bytes: [ours.len(), theirs.len()],
            encode,
            decode,
        })
    }

    fn ratios(&self) -> [f64; 3] {
        let bytes = self.bytes.map(|bytes| bytes as f64);
        [bytes, self.encode, self.decode].map(|[ours, theirs]| ours / theirs)
    }
}

impl Arguments {
    /// The nanoseconds that each takes, the smallest of some turns.
    fn compare(&self, ours: &mut dyn FnMut(), theirs: &mut dyn FnMut()) -> [f64; 2] {
        let mut best = [f64::INFINITY; 2];
        for _ in 0..self.turns {
            best[0] = best[0].min(self.turn(ours));
            best[1] = best[1].min(self.turn(theirs));
        }
        best
    }

    fn turn(&self, what: &mut dyn FnMut()) -> f64 {
        let mut count = 0_u32;
        let began = Instant::now();
        loop {
            for _ in 0..4 {
                what();
            }
            count += 4;
            let took = began.elapsed();
            if took.as_micros() >= u128::from(self.turn_us) {
                return took.as_nanos() as f64 / f64::from(count);
            }
        }
    }
}

type Shape = (String, IdSet);

/// The measured sets, each with its name.
fn shapes() -> Vec<Shape> {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut shapes = even();
    shapes.extend(runs(&mut random));
    shapes.extend(scattered(&mut random));
    shapes.extend(mixed(&mut random));
    shapes.retain(|(_, set)| !set.is_empty());
    shapes
}

/// Sets of evenly spaced ids, some with a few ids missing, and sets made of several evenly spaced pieces.
fn even() -> Vec<Shape> {
    let mut most = IdSet::all_below(TASKS);
    most.subtract(&"17,500000,999998".parse().expect("a set"));
    let mut odd = strided(1, TASKS - 1, 2);
    for id in [5001, 300_001, 999_999] {
        odd.remove(TaskId(id));
    }
    let halves = &strided(0, TASKS / 2, 2) | &strided(TASKS / 2 + 1, TASKS - 1, 3);
    let mut many = IdSet::new();
    for at in 0..1000 {
        let (first, step) = (1000 * at, 2 + at % 5);
        many.insert_stride(Stride::new(TaskId(first), TaskId(first + 900), step).expect("ids"));
    }
    let steps = [2, 3, 7, 15, 16, 17, 40, 100, 1000, 50_000];
    let strides = steps.map(|step| (format!("one in {step}"), strided(3, TASKS - 1, step)));
    let others = [
        ("all", IdSet::all_below(TASKS)),
        ("all but three", compact(most)),
        ("one in 2 but three", compact(odd)),
        ("one in 2, then one in 3", halves),
        ("1000 pieces, one in 2 to 6", compact(many)),
        (
            "one in each block of all ids",
            (0..256).map(|at| TaskId(at * 65_536 + at)).collect(),
        ),
    ];
    let others = others.map(|(name, set)| (name.to_owned(), set));
    strides.into_iter().chain(others).collect()
}

/// Sets of runs of ids with gaps between them, of a fixed length or of random lengths.
fn runs(random: &mut Random) -> Vec<Shape> {
    let of = |run: u32, gap: u32| {
        let mut set = IdSet::new();
        for first in (0..TASKS / (run + gap)).map(|at| at * (run + gap)) {
            set.insert_range(first..=first + run - 1);
        }
        (format!("runs of {run}, gaps of {gap}"), compact(set))
    };
    let lengths = [
        (1, 1),
        (2, 1),
        (2, 2),
        (3, 5),
        (8, 8),
        (16, 16),
        (30, 34),
        (64, 64),
        (500, 500),
        (5000, 5000),
    ];
    let mut shapes: Vec<Shape> = lengths.into_iter().map(|(run, gap)| of(run, gap)).collect();
    for most in [2, 5, 20, 100, 1000, 20_000] {
        let mut set = IdSet::new();
        let mut at = 0;
        while at < TASKS {
            let end = at + random.below(most);
            set.insert_range(at..=end.min(TASKS - 1));
            at = end + 2 + random.below(most);
        }
        let name = format!("runs and gaps of at most {most}, at random");
        shapes.push((name, compact(set)));
    }
    shapes
}

/// Sets of random ids, of several sizes and densities.
fn scattered(random: &mut Random) -> Vec<Shape> {
    let million = [
        0.0001, 0.01, 0.1, 1.0, 5.0, 6.2, 6.3, 10.0, 25.0, 50.0, 75.0, 90.0, 99.0, 99.9,
    ];
    let densities: [(u32, &[f64]); 6] = [
        (TASKS, &million),
        (100_000, &[1.0, 50.0]),
        (10_000, &[1.0, 20.0, 50.0, 95.0]),
        (1000, &[1.0, 10.0, 50.0, 95.0]),
        (100, &[10.0, 50.0]),
        (16, &[50.0]),
    ];
    let mut shapes = Vec::new();
    for (tasks, percents) in densities {
        for percent in percents {
            let ids = (0..tasks).filter(|_| random.percent(*percent));
            let name = format!("{percent} % of {tasks}, at random");
            shapes.push((name, ids.map(TaskId).collect()));
        }
    }
    for ids in [1, 2, 3, 5, 9, 20, 40] {
        let set = (0..ids).map(|_| TaskId(random.below(1024))).collect();
        shapes.push((format!("{ids} of 1024, at random"), set));
    }
    shapes
}

/// Sets in which stretches of random ids and of evenly spaced ids follow each other in turns.
fn mixed(random: &mut Random) -> Vec<Shape> {
    let mut of = |stretch: u32, step: u32| {
        let ids = (0..TASKS).filter(|id| match id / stretch % 2 {
            0 => random.percent(50.0),
            _ => id % step == 0,
        });
        let name = format!("{stretch} ids 50 % at random, {stretch} one in {step}, in turns");
        (name, ids.map(TaskId).collect())
    };
    vec![of(30_000, 100), of(32_768, 40)]
}

fn strided(first: u32, last: u32, step: u32) -> IdSet {
    let mut set = IdSet::new();
    set.insert_stride(Stride::new(TaskId(first), TaskId(last), step).expect("ids"));
    compact(set)
}

fn compact(mut set: IdSet) -> IdSet {
    set.compact();
    set
}

/// Xorshift: the same in each run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, end: u32) -> u32 {
        u32::try_from(self.next() % u64::from(end)).expect("below a u32")
    }

    fn percent(&mut self, percent: f64) -> bool {
        (self.next() >> 11) as f64 / ((1_u64 << 53) as f64) * 100.0 < percent
    }
}
