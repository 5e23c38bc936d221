//! Sample records of a page.

use std::collections::BTreeMap;
use std::sync::Arc;

use sdm_idset::IdSet;
use serde_json::Value;

use super::samples::{frame, items};
use crate::item::Item;
use crate::json::page;
use crate::overview::{Named, Overview, Sight, SourceSight};

/// Every record that only pages get and that a view writes, by its kind.
pub(super) fn records() -> BTreeMap<String, Value> {
    let tasks = IdSet::all_below(2);
    let named = |name: &str| Named {
        name: name.to_owned(),
        values: vec![(tasks.clone(), "1".to_owned())],
    };
    let sight = Sight {
        source: Some(SourceSight {
            path: "/src/halo.c".to_owned(),
            first: 1,
            lines: Arc::new(vec!["x = 1;".to_owned()]),
            line: 1,
            tasks: tasks.clone(),
            ..SourceSight::default()
        }),
        frames: vec![(tasks.clone(), frame())],
        locals: vec![named("step")],
        watched: vec![named("2 * step")],
        ..Sight::default()
    };
    let mut board = Overview::default();
    for item in items() {
        match item {
            Item::Ranks(rows) => board.ranks = rows,
            Item::Breakpoints(rows) => board.breakpoints = rows,
            _ => {}
        }
    }
    let lines = [
        page::board(&board),
        page::sight(&sight),
        page::prompt("[all] ", (true, false)),
        page::status(Some("waits")),
        page::said("total 6"),
        page::typed("continue"),
        page::completion("outl", "", &["outliers ".to_owned()]),
    ];
    let record = |line: &String| {
        let mut fields: Value = serde_json::from_str(line).expect("JSON");
        let fields = fields.as_object_mut().expect("a record");
        fields.remove("v").expect("the version");
        let kind = fields.remove("kind").expect("a kind");
        let kind = kind.as_str().expect("a text").to_owned();
        (kind, Value::Object(std::mem::take(fields)))
    };
    lines.iter().map(record).collect()
}
