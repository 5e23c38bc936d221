//! An editor starts a job by Slurm: `launcher` of launch.json.

use sdm_tests::editor::Editor;
use sdm_tests::parts::Part;
use sdm_tests::place::{Compiler, Place};
use serde_json::json;

use crate::slurm;
use crate::ssh_editor::{break_at, end, stopped};

const _: () = sdm_tests::run::test_group("slurm", "one controller, and all its nodes");

#[test]
fn an_editor_starts_ranks_by_srun() {
    let Some(_slurm) = Part::slurm() else { return };
    let place = Place::new();
    let sum = place.compile("mpi_sum", Compiler::Mpich);
    let mut editor = Editor::with(&place, &[("SLURM_CONF", slurm::CONFIG)]);
    editor.launch(&json!({
        "program": sum, "ranks": 4, "threads": "classes", "launcher": "srun",
        "launcherOptions": ["--mpi=pmi2", "-N2"],
    }));
    break_at(&mut editor, "add_up");
    let thread = stopped(&mut editor);
    assert!(
        thread.starts_with("[0-3] 4 ranks: add_up mpi_sum.c:"),
        "{thread}"
    );
    let line = json!({"expression": "[all] print contribution", "context": "repl"});
    let body = editor.ask("evaluate", &line);
    assert_eq!(body["result"], "1 [0], 2 [1], 3 [2], 4 [3]");
    end(editor);
}
