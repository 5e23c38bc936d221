//! Listing of the front-end's breakpoints in their present state in gdb.

use sdm_debug::command::PointSpec;
use sdm_debug::reply::{BreakpointPlace, BreakpointView};
use sdm_debug::{Failure, Reply};

use super::catch;
use crate::gdb::Gdb;
use crate::state::breakpoints::{Point, is_pending, place_of};
use crate::state::scope::Scope;
use sdm_mi::Results;

/// Lists the front-end's breakpoints in their present state in gdb.
pub(crate) async fn list(gdb: &Gdb) -> Result<Reply, Failure> {
    let results = gdb.mi("-break-list").await?;
    let table = results.tuple("BreakpointTable");
    let rows: Vec<&Results> = table
        .into_iter()
        .flat_map(|table| table.tuples("body"))
        .collect();
    let state = gdb.get();
    let mut views: Vec<BreakpointView> = state
        .breakpoints
        .user
        .iter()
        .map(|point| view(point, &rows, state.origin.scope()))
        .collect();
    views.sort_by_key(|view| view.place.number);
    Ok(Reply::Breakpoints(views))
}

fn view(point: &Point, rows: &[&Results], scope: Option<&Scope>) -> BreakpointView {
    let number = point.kept.spec.number();
    let is_ours = |row: &&&Results| {
        let known: Option<u32> = row.number("number");
        known.is_some_and(|known| point.numbers.contains(&known))
    };
    let mut view = BreakpointView {
        place: BreakpointPlace {
            number,
            pending: false,
            places: Vec::new(),
        },
        kind: String::new(),
        what: what(&point.kept.spec),
        condition: None,
        enabled: point.kept.enabled,
        temporary: false,
        hits: 0,
        ignore: 0,
    };
    for row in rows.iter().filter(is_ours) {
        view.kind = row.text("type").unwrap_or_default().to_owned();
        view.condition = point.kept.spec.condition().map(str::to_owned);
        view.temporary = point.kept.spec.is_temporary();
        view.hits += row.number::<u64>("times").unwrap_or(0);
        view.ignore = view.ignore.max(row.number("ignore").unwrap_or(0));
        let is_watch = matches!(point.kept.spec, PointSpec::Watch(_));
        let is_judged = scope.is_some() && !is_watch || point.judged.is_guarded;
        if is_judged && view.condition.is_some() {
            view.hits = point.judged.hits;
            view.ignore = u32::try_from(point.judged.ignore).unwrap_or(u32::MAX);
        }
        if let PointSpec::Break(_) = point.kept.spec {
            view.place.pending |= is_pending(row);
            view.place
                .places
                .extend(place_of(number, row, scope).places);
        }
    }
    view.hits = view.hits.saturating_sub(point.judged.untested);
    view
}

fn what(spec: &PointSpec) -> String {
    match spec {
        PointSpec::Break(spec) => spec.location.clone(),
        PointSpec::Watch(spec) => spec.expression.clone(),
        PointSpec::Catch(spec) => catch::words(&spec.event).unwrap_or_default(),
    }
}
