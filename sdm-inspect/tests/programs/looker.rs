//! A looker as a separate executable: the mode of a server's executable that inspects processes.

use std::process::ExitCode;

use sdm_debug::command::ProbeSpec;
use sdm_debug::fold::FoldRules;
use sdm_debug::reply::TaskStacks;
use sdm_debug::{Failure, FailureCode};
use sdm_inspect::looker::{ProbeResult, Prober};
use sdm_inspect::stack::Inspection;

/// A prober that is never used, as only stacks are inspected here.
struct NoProber;

impl Prober for NoProber {
    fn probe(
        &mut self,
        _: &Inspection,
        _: ProbeSpec,
        _: &FoldRules,
    ) -> Result<ProbeResult, Failure> {
        Err(Failure::new(FailureCode::Unsupported, "stacks alone"))
    }

    fn take_back(&mut self, _: i32) {}

    fn woven(&mut self, _: &Inspection, _: &FoldRules) -> Option<Result<TaskStacks, Failure>> {
        None
    }
}

fn main() -> ExitCode {
    match sdm_inspect::looker::run(&mut NoProber) {
        Some(Ok(())) => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}
