//! Time from a command to the end of `MPI_Init`: under SDM with `mpirun` and without, and in a batch, compared with
//! `mpirun` with a plain gdb for each rank and with none.

use anyhow::{Result, anyhow};
use sdm_benches::launched::{BEHIND_INIT, By, Job};
use sdm_benches::program;
use sdm_benches::table::Table;

/// Jobs of Open MPI, started in five ways by turns.
#[derive(clap::Parser)]
struct Arguments {
    /// Numbers of ranks
    #[arg(long, value_delimiter = ',', default_value = "1,16,64")]
    sizes: Vec<u32>,
    /// Number of starts of each
    #[arg(long, default_value_t = 3)]
    starts: usize,
    /// The most ranks that a `mpirun` starts with gdbs: those that wait spin, and twice as many take four times as long
    #[arg(long, default_value_t = 32)]
    spinning_max: u32,
}

/// Ways to start a job, in the order of the table's columns.
const WAYS: [By; 5] = [By::SdmAlone, By::Sdm, By::PlainGdbs, By::Nobody, By::Batch];
/// Index of the way without a debugger, and of the batch, in [`WAYS`].
const NOBODY: usize = 3;
const BATCH: usize = 4;

fn main() -> Result<()> {
    let arguments: Arguments = clap::Parser::parse();
    let program = program::build("rounds-mpi", "rounds.c", "mpicc.openmpi", &["-DWITH_MPI"])?;
    let title = "From a command to behind `MPI_Init` on all ranks, ms, median";
    let head = [
        "ranks",
        "`sdm run --launcher local`",
        "`sdm run --launcher mpirun`",
        "`mpirun gdb`",
        "`mpirun`, not debugged",
        "`sdm run --batch --launcher mpirun`",
        "local / sdm under mpirun",
        "local / mpirun gdb",
        "local / mpirun",
        "batch / mpirun",
    ];
    let mut table = Table::new("mpi_init", title, &head);
    for &ranks in &arguments.sizes {
        let job = Job {
            program: &program,
            argument: "init",
            place: BEHIND_INIT,
            ranks,
        };
        let mut took = [const { Vec::new() }; WAYS.len()];
        for _ in 0..arguments.starts {
            for (way, took) in WAYS.into_iter().zip(&mut took) {
                if ranks <= arguments.spinning_max || !matches!(way, By::Sdm | By::PlainGdbs) {
                    took.push(job.reach(way)?.as_secs_f64() * 1000.0);
                }
            }
        }
        let medians = took.map(|mut took| {
            took.sort_by(f64::total_cmp);
            took.get(took.len() / 2).copied()
        });
        let alone = medians[0].ok_or_else(|| anyhow!("--starts is 0"))?;
        let mut row = vec![ranks.to_string()];
        row.extend(medians.map(|it| it.map_or_else(String::new, |it| format!("{it:.0}"))));
        let ratio =
            |it: &Option<f64>| it.map_or_else(String::new, |it| format!("{:.2}", alone / it));
        row.extend(medians[1..=NOBODY].iter().map(ratio));
        let batch = medians[BATCH].zip(medians[NOBODY]);
        row.push(batch.map_or_else(String::new, |(it, bare)| format!("{:.2}", it / bare)));
        table.row(row);
    }
    table.finish()
}
