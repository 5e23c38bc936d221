//! Runs every decoder on many slightly invalid inputs; `scripts/fuzz` calls it.
//!
//! usage: `hammer [--executions N] [--seed S] [TARGET...]`, `hammer --input FILE TARGET`

use std::process::ExitCode;
use std::time::Instant;

use sdm_tests::hammer::{Target, hammer, targets};

fn main() -> ExitCode {
    match run(std::env::args().skip(1)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(why) => {
            eprintln!("hammer: {why}");
            ExitCode::from(2)
        }
    }
}

fn run(mut args: impl Iterator<Item = String>) -> Result<bool, String> {
    let (mut executions, mut seed, mut input, mut names) = (1_000_000, 1, None, Vec::new());
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or(format!("{arg} takes a value"));
        let number = |text: String| text.parse::<u64>().map_err(|e| format!("{text}: {e}"));
        match arg.as_str() {
            "--executions" => executions = number(value()?)?,
            "--seed" => seed = number(value()?)?,
            "--input" => input = Some(value()?),
            _ => names.push(arg),
        }
    }
    let mut chosen = targets();
    for name in &names {
        if !chosen.iter().any(|target| target.name == name) {
            let known: Vec<_> = chosen.iter().map(|target| target.name).collect();
            return Err(format!("no target {name}: there are {}", known.join(", ")));
        }
    }
    chosen.retain(|target| names.is_empty() || names.iter().any(|name| name == target.name));
    if let Some(file) = input {
        let bytes = std::fs::read(&file).map_err(|error| format!("read {file}: {error}"))?;
        chosen.iter().for_each(|target| (target.run)(&bytes));
        println!("{file}: no law is broken");
        return Ok(true);
    }
    // A broken target does not prevent the run of the others.
    let broken = chosen
        .iter()
        .filter(|target| !report(target, executions, seed))
        .count();
    Ok(broken == 0)
}

fn report(target: &Target, executions: u64, seed: u64) -> bool {
    let began = Instant::now();
    let found = hammer(target, executions, seed);
    let seconds = began.elapsed().as_secs_f64();
    let name = target.name;
    match found {
        Ok(()) => {
            println!("{name:12} {executions:>12} executions, {seconds:8.1} s, no law broken");
            true
        }
        Err(input) => {
            let file = std::env::temp_dir().join(format!("sdm-fuzz-{name}"));
            // If the file cannot be written, the input is on the screen.
            let _ = std::fs::write(&file, &input);
            println!("{name:12} BROKEN by {input:?}");
            println!("replay: scripts/fuzz --input {} {name}", file.display());
            false
        }
    }
}
