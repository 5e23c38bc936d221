//! Several programs in one job: who runs which.

use std::path::Path;

use sdm_debug::FailureCode;
use sdm_debug::command::StartSpec;
use sdm_idset::IdSet;
use sdm_session::Debug;
use sdm_view::item::RankRow;

use super::Shell;
use super::gather::join;
use super::open::Open;

impl<D: Debug> Shell<D> {
    /// The programs by the names of their files, where there are several.
    pub(super) fn several_programs(&self) -> Vec<(String, IdSet)> {
        let mut named = Vec::new();
        for (tasks, start) in &self.programs {
            join(&mut named, tasks, name_of(start));
        }
        if named.len() < 2 {
            return Vec::new();
        }
        named
            .into_iter()
            .map(|(tasks, name)| (name, tasks))
            .collect()
    }

    /// The rows of `ranks`: tasks of different programs apart.
    pub(super) fn rank_rows(&self, among: &IdSet) -> Vec<RankRow> {
        let programs = self.several_programs();
        if programs.is_empty() {
            return self.tasks.rank_rows(among);
        }
        let rows_of = |(program, tasks): &(String, IdSet)| {
            let rows = self.tasks.rank_rows(&among.intersection(tasks));
            let program = program.clone();
            rows.into_iter().map(move |row| RankRow {
                program: program.clone(),
                ..row
            })
        };
        programs.iter().flat_map(rows_of).collect()
    }

    /// True where a program as a whole has not what a command is about, and another one has it: that
    /// is how programs differ, and no failure.
    pub(super) fn only_programs_differ(&self, open: &Open) -> bool {
        let gathered = &open.gathered;
        let refused = gathered.failed.iter();
        let plain = refused
            .clone()
            .all(|(_, failure)| failure.code == FailureCode::Gdb);
        let refused = IdSet::union_all(refused.map(|(tasks, _)| tasks));
        let done = open.done();
        let programs = self.several_programs();
        let whole = programs
            .iter()
            .filter(|(_, tasks)| tasks.is_disjoint(&done));
        let lacking = IdSet::union_all(whole.map(|(_, tasks)| tasks));
        plain
            && !done.is_empty()
            && refused.is_subset(&lacking)
            && gathered.missing.is_empty()
            && gathered.lost.is_empty()
    }
}

fn name_of(start: &StartSpec) -> String {
    let path = String::from_utf8_lossy(&start.program);
    let name = Path::new(&*path).file_name();
    name.map_or_else(
        || path.to_string(),
        |name| name.to_string_lossy().into_owned(),
    )
}

/// Those who run a program whose file has this name.
pub(super) fn program_called(programs: &[(IdSet, StartSpec)], name: &str) -> Option<IdSet> {
    let found = programs.iter().filter(|(_, start)| name_of(start) == name);
    let found = IdSet::union_all(found.map(|(tasks, _)| tasks));
    (!found.is_empty()).then_some(found)
}
