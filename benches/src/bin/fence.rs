//! A PMIx fence over nodes that are only names on this machine: SDM's servers compared with PRRTE's daemons.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use sdm_benches::table::Table;
use sdm_benches::tree::binaries;

/// One rank on each of some nodes, which puts some bytes and meets the others.
#[derive(clap::Parser)]
struct Arguments {
    /// Number of nodes
    #[arg(long, default_value_t = 16)]
    nodes: u32,
    /// Number of bytes of each node
    #[arg(long, value_delimiter = ',', default_value = "1000,1000000")]
    sizes: Vec<u32>,
    /// Number of starts of each
    #[arg(long, default_value_t = 5)]
    starts: usize,
}

const HERE: &str = env!("CARGO_MANIFEST_DIR");

fn main() -> Result<()> {
    let arguments: Arguments = clap::Parser::parse();
    let prrte = openmpi5()?;
    let title = format!(
        "A fence that brings what all have to all, {} nodes with one rank each, ms at rank 0, median",
        arguments.nodes
    );
    let head = ["bytes of each node", "`sdm run`", "`prterun`", "ratio"];
    let mut table = Table::new("fence", &title, &head);
    for &size in &arguments.sizes {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..arguments.starts {
            ours.push(met_after(sdm(arguments.nodes)?, size)?);
            theirs.push(met_after(prterun(&prrte, arguments.nodes), size)?);
        }
        let (ours, theirs) = (median(ours), median(theirs));
        table.row(vec![
            size.to_string(),
            format!("{ours:.1}"),
            format!("{theirs:.1}"),
            format!("{:.2}", ours / theirs),
        ]);
    }
    table.finish()
}

/// The folder of Open MPI 5, which includes PRRTE.
fn openmpi5() -> Result<PathBuf> {
    let script = Path::new(HERE).join("../scripts/openmpi5");
    let said = Command::new(&script).stderr(Stdio::inherit()).output();
    let said = said.with_context(|| format!("start {}", script.display()))?;
    ensure!(said.status.success(), "scripts/openmpi5: {}", said.status);
    Ok(String::from_utf8_lossy(&said.stdout).trim().into())
}

fn names(nodes: u32, suffix: &str) -> String {
    let names: Vec<String> = (1..=nodes).map(|it| format!("n{it}{suffix}")).collect();
    names.join(",")
}

fn sdm(nodes: u32) -> Result<Command> {
    let mut command = Command::new(binaries()?.join("sdm"));
    command
        .args(["run", "-n", &nodes.to_string(), "--launcher", "loopback"])
        .args(["--host", &names(nodes, ""), "--pmix", "on"])
        .args(["--batch", "--no-report", "--"]);
    Ok(command)
}

fn prterun(prrte: &Path, nodes: u32) -> Command {
    let mut command = Command::new(prrte.join("bin/prterun"));
    let agent = Path::new(HERE).join("fixtures/here.sh");
    command
        .args(["--allow-run-as-root", "--prtemca", "plm_ssh_agent"])
        .arg(agent)
        .arg("--prefix")
        .arg(prrte)
        .args(["--host", &names(nodes, ":1"), "-n", &nodes.to_string()]);
    command
}

/// Time that rank 0 spent in the fence, in ms.
fn met_after(mut launcher: Command, size: u32) -> Result<f64> {
    let program = Path::new(HERE).join("fixtures/fence.py");
    launcher.arg("/usr/bin/python3").arg(program);
    let said = launcher.arg(size.to_string()).stdin(Stdio::null()).output();
    let who = launcher.get_program().to_string_lossy().into_owned();
    let said = said.with_context(|| format!("start {who}"))?;
    let text = String::from_utf8_lossy(&said.stdout);
    let took = text.split_once("met after ").map(|(_, rest)| rest);
    let took = took.and_then(|rest| rest.split(' ').next()?.parse().ok());
    took.with_context(|| {
        let complaints = String::from_utf8_lossy(&said.stderr);
        format!(
            "{who}: no rank was at the fence: {}: {text}{complaints}",
            said.status
        )
    })
}

fn median(mut took: Vec<f64>) -> f64 {
    took.sort_by(f64::total_cmp);
    took.get(took.len() / 2).copied().unwrap_or(f64::NAN)
}
