//! `info nodes|tree|links`: the hosts and servers of the session, and the links between them; `info sharedlibrary`.
use std::collections::BTreeMap;

use sdm_debug::Command;
use sdm_idset::IdSet;
use sdm_session::SessionMember;
use sdm_view::item::{Item, LinkRow, NodeRow, TreeRow};

use super::invocation::Invocation;
use super::{SessionHandle, Verdict, sets};
use crate::commands::Topic;

/// Carries out `info nodes|tree|links|sets`.
pub(super) async fn show_topic(session: &SessionHandle, topic: Topic) -> Verdict {
    if topic == Topic::Sets {
        return sets::show_sets(session).await;
    }
    let members = session.members();
    if members.is_empty() {
        return session.complain("the servers of this session are unknown", "");
    }
    let item = match topic {
        Topic::Nodes => Item::Nodes(nodes(session, &members)),
        Topic::Tree => Item::Tree(tree(&members)),
        Topic::Links | Topic::Sets => Item::Links(links(session, &members)),
    };
    session.show(&item);
    Verdict::Done
}

/// `info sharedlibrary`: gdb's own table where it distinguishes no more ranks than the libraries' names.
pub(super) async fn show_libraries(session: &SessionHandle, said: &Invocation<'_>) -> Verdict {
    let asked = session.ask_quietly(said.line, &said.to, &Command::Libraries);
    let (verdict, Some(mut open)) = asked.await else {
        return Verdict::Failed;
    };
    let named = open.gathered.done();
    let line = "info sharedlibrary".to_owned();
    let command = Command::Console { line };
    let tables = session.answers(said.line, &named, &command).await;
    let of_all = IdSet::union_all(tables.iter().map(|(tasks, _)| tasks)) == named;
    let is_merged = of_all && tables.len() <= open.gathered.ok.len();
    if is_merged {
        open.gathered.ok = tables;
    }
    session.show(&Item::Answer(open.gathered));
    if let Some(first) = named.first().filter(|_| !is_merged) {
        session.say(&format!(
            "the addresses differ between ranks; `[{}] info sharedlibrary` shows those of one rank",
            first.0
        ));
    }
    verdict
}

fn nodes(session: &SessionHandle, members: &[SessionMember]) -> Vec<NodeRow> {
    let mut hosts: BTreeMap<&str, (u64, IdSet)> = BTreeMap::new();
    for member in members.iter().filter(|member| member.server.is_some()) {
        let (servers, tasks) = hosts.entry(&member.host).or_default();
        *servers += 1;
        tasks.union_with(&member.tasks);
    }
    let mut rows: Vec<_> = hosts
        .into_iter()
        .map(|(host, (servers, tasks))| NodeRow {
            host: host.to_owned(),
            servers,
            states: session.read(|model| model.tasks.summary(&tasks, &model.job.unattached)),
            tasks,
        })
        .collect();
    rows.sort_by_key(|row| row.tasks.first());
    rows
}

fn links(session: &SessionHandle, members: &[SessionMember]) -> Vec<LinkRow> {
    let reaches = reaches(members);
    let (lost, silent) =
        session.read(|model| (model.tasks.cut_off().clone(), model.tasks.silent().clone()));
    let health = |tasks: &IdSet| match () {
        () if tasks.is_empty() => "reachable",
        () if tasks.is_subset(&lost) => "lost",
        () if !tasks.is_disjoint(&silent) => "silent",
        () => "reachable",
    };
    let links = members.iter().zip(reaches).filter_map(|(member, reach)| {
        let parent = &members[member.parent?];
        Some(LinkRow {
            parent: parent.server,
            child: member.server?,
            hosts: (parent.host.clone(), member.host.clone()),
            reach,
            health: health(&member.tasks),
        })
    });
    let mut rows: Vec<_> = links.collect();
    rows.sort_by_key(|row| row.health == "reachable");
    rows
}

fn tree(members: &[SessionMember]) -> Vec<TreeRow> {
    let mut depths: Vec<u32> = Vec::with_capacity(members.len());
    let mut children = vec![0; members.len()];
    for member in members {
        depths.push(member.parent.map_or(0, |parent| depths[parent] + 1));
        if let Some(parent) = member.parent {
            children[parent] += 1;
        }
    }
    let rows = members.iter().zip(reaches(members)).enumerate();
    rows.map(|(index, (member, reach))| TreeRow {
        server: member.server,
        host: member.host.clone(),
        depth: depths[index],
        tasks: member.tasks.clone(),
        reach,
        children: children[index],
    })
    .collect()
}

/// The tasks of each member and of all below it.
fn reaches(members: &[SessionMember]) -> Vec<IdSet> {
    let mut reaches: Vec<_> = members.iter().map(|member| member.tasks.clone()).collect();
    // Parents come before their children.
    for (index, member) in members.iter().enumerate().rev() {
        if let Some(parent) = member.parent {
            let below = reaches[index].clone();
            reaches[parent].union_with(&below);
        }
    }
    reaches
}
