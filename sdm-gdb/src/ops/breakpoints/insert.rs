//! Breakpoints in code: at a line, in a function, or in every function that matches a regular expression.

use sdm_debug::command::{BreakSpec, PointSpec};
use sdm_debug::reply::BreakpointPlace;
use sdm_debug::{Failure, FailureCode, Reply};

use super::given::{GivenCondition, give};
use super::hit::judge_here;
use super::make::{made_in, refusal, set_ignore};
use crate::gdb::Gdb;
use crate::guards::NewBreakpoints;
use crate::ops::frames::is_c;
use crate::ops::lines::check;
use crate::state::breakpoints::place_of;
use crate::wording::about_a_place;
use sdm_mi::{Results, quote};

/// Maximum number of functions that one regular expression may match.
const MATCHES_MAX: usize = 256;

/// The location of a `break` without an argument: the current instruction of the selected frame. MI has no form for it.
const CURRENT: &str = "*$pc";

/// Inserts a breakpoint; a number that the task uses already is refused.
pub(crate) async fn insert(gdb: &Gdb, spec: BreakSpec) -> Result<Reply, Failure> {
    if let Some(failure) = refusal(gdb, spec.number) {
        return Err(failure);
    }
    check(&spec.commands)?;
    if let Some(thread) = spec.thread {
        // gdb itself accepts any thread number.
        if !crate::ops::stack::has_thread(gdb, thread).await? {
            let text = format!("no thread {thread}");
            return Err(Failure::new(FailureCode::NoSuchThing, text));
        }
    }
    let (place, made, given) = if spec.regex {
        insert_matching(gdb, &spec).await?
    } else {
        let location = match &*spec.location {
            "" => CURRENT,
            location => location,
        };
        let inserted = insert_one(gdb, &spec, &quote(location.as_bytes())).await;
        inserted.map_err(about_a_place)?
    };
    let pending = place.pending;
    let numbers = made.keep();
    let mut state = gdb.edit();
    state
        .breakpoints
        .add(PointSpec::Break(spec), numbers, pending);
    if let Some(point) = state.breakpoints.user.last_mut() {
        given.note(&mut point.judged);
    }
    drop(state);
    Ok(Reply::Breakpoint(place))
}

/// The place of a new breakpoint, its guard, and the form in which gdb has its condition.
type Inserted = (BreakpointPlace, NewBreakpoints, GivenCondition);

async fn insert_one(gdb: &Gdb, asked: &BreakSpec, location: &str) -> Result<Inserted, Failure> {
    let mut spec = asked.clone();
    restrict(gdb, &mut spec);
    let line = insert_line(&spec, location);
    let (made, results) = made_in(gdb, line, number_in_answer).await?;
    gdb.edit().breakpoints.note_counts(in_answer(&results));
    judge_here(gdb, &made, asked.condition.as_deref()).await?;
    let place = place_of(spec.number, in_answer(&results), gdb.get().origin.scope());
    let is_alone = gdb.get().origin.scope().is_none();
    let condition = asked.condition.as_deref().filter(|_| is_alone);
    let (Some(condition), Some(number)) = (condition, made.first()) else {
        return Ok((place, made, GivenCondition::Whole));
    };
    let is_c = !place.pending && place.places.iter().all(|(_, file, _)| is_c(file));
    let given = match is_c {
        true => GivenCondition::Whole,
        false => give(gdb, number, condition, place.pending).await?,
    };
    if given != GivenCondition::Whole && spec.ignore > 0 {
        set_ignore(gdb, number, 0).await?;
    }
    Ok((place, made, given))
}

fn number_in_answer(results: &Results) -> Option<u32> {
    in_answer(results).number("number")
}

fn in_answer(results: &Results) -> &Results {
    results.tuple("bkpt").unwrap_or(results)
}

/// Restricts a breakpoint to this task, as a gdb of several tasks inserts it in all of them.
fn restrict(gdb: &Gdb, spec: &mut BreakSpec) {
    // gdb deletes a temporary one even if it cannot evaluate the condition.
    spec.temporary &= spec.condition.is_none();
    let state = gdb.get();
    let Some(scope) = state.origin.scope() else {
        return;
    };
    if spec.condition.is_some() {
        // The driver applies the ignore count when it evaluates the condition.
        spec.ignore = 0;
    }
    spec.condition = Some(scope.restrict(spec.condition.as_deref()));
    spec.thread = spec.thread.and_then(|number| scope.id_of(number));
}

/// Inserts a breakpoint in each function with debug information whose name matches.
async fn insert_matching(gdb: &Gdb, spec: &BreakSpec) -> Result<Inserted, Failure> {
    let (file, pattern) = match spec.location.rsplit_once(':') {
        Some((file, pattern)) if !file.ends_with(':') => (Some(file), pattern),
        _ => (None, spec.location.as_str()),
    };
    let line = format!(
        "-symbol-info-functions --name {}",
        quote(pattern.as_bytes())
    );
    let results = gdb.mi(line).await?;
    let mut locations = matching(&results, file);
    locations.sort_unstable();
    locations.dedup();
    if locations.is_empty() {
        let text = format!("no function matches {}", spec.location);
        return Err(Failure::new(FailureCode::Gdb, text));
    }
    if locations.len() > MATCHES_MAX {
        let count = locations.len();
        let text = format!(
            "{} matches {count} functions: at most {MATCHES_MAX} are allowed",
            spec.location
        );
        return Err(Failure::new(FailureCode::Limit, text));
    }
    let mut whole = BreakpointPlace {
        number: spec.number,
        pending: false,
        places: Vec::new(),
    };
    let (mut made, mut given) = (NewBreakpoints::new(gdb, []), GivenCondition::Whole);
    for location in locations {
        // A function without a breakable location (inlined everywhere) is left out, and the others are kept.
        let Ok((place, more, one)) = insert_one(gdb, spec, &location).await else {
            continue;
        };
        made.join(more);
        if one != GivenCondition::Whole {
            given = one;
        }
        whole.places.extend(place.places);
    }
    if made.first().is_none() {
        let text = format!("no function that matches {} has a location", spec.location);
        return Err(Failure::new(FailureCode::Gdb, text));
    }
    Ok((whole, made, given))
}

/// The locations of functions in an answer to `-symbol-info-functions`.
fn matching(results: &Results, file: Option<&str>) -> Vec<String> {
    let debug = results.tuple("symbols").into_iter();
    let mut locations = Vec::new();
    for source in debug.flat_map(|symbols| symbols.tuples("debug")) {
        let name = source.text("filename").unwrap_or_default();
        let wanted = file.is_none_or(|file| name == file || name.ends_with(&format!("/{file}")));
        if !wanted {
            continue;
        }
        for symbol in source.tuples("symbols") {
            let function = symbol.text("name").unwrap_or_default();
            let (name, function) = (quote(name.as_bytes()), quote(function.as_bytes()));
            locations.push(format!("--source {name} --function {function}"));
        }
    }
    locations
}

fn insert_line(spec: &BreakSpec, location: &str) -> String {
    let mut line = String::from("-break-insert");
    for (wanted, option) in [
        (spec.temporary, " -t"),
        (spec.hardware, " -h"),
        (spec.pending, " -f"),
    ] {
        if wanted {
            line.push_str(option);
        }
    }
    if let Some(condition) = &spec.condition {
        line.push_str(" -c ");
        line.push_str(&quote(condition.as_bytes()));
    }
    if spec.ignore > 0 {
        line.push_str(&format!(" -i {}", spec.ignore));
    }
    if let Some(thread) = spec.thread {
        line.push_str(&format!(" -p {thread}"));
    }
    line.push(' ');
    line.push_str(location);
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn break_insert_line_has_all_options() {
        let spec = BreakSpec {
            number: 1,
            location: "a b.c:3".to_owned(),
            condition: Some("n == \"x\"".to_owned()),
            temporary: true,
            pending: true,
            ignore: 2,
            hardware: true,
            thread: Some(3),
            ..BreakSpec::default()
        };
        assert_eq!(
            insert_line(&spec, &quote(spec.location.as_bytes())),
            r#"-break-insert -t -h -f -c "n == \"x\"" -i 2 -p 3 "a b.c:3""#
        );
    }
}
