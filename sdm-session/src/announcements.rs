//! Receiving the announcements of all servers during the start of a session.

use std::os::fd::RawFd;
use std::time::{Duration, Instant};

use sdm_bootstrap::announce::{Announcement, Refusal};
use sdm_bootstrap::joined::Joined;
use sdm_bootstrap::log::LogWriter;
use sdm_core::driver::DriverEvent;
use sdm_core::ids::ServerId;
use sdm_idset::{IdSet, TaskId};
use sdm_launch::{Launch, LaunchEvent};

use super::config::StartProgress;
use super::error::SessionError;
use super::master::Master;
use super::start::Starting;

/// Advice for a server that does not find the key file. None for other reasons.
fn unseen(why: &str) -> Option<&'static str> {
    let unseen = why.starts_with("handover from ") && why.contains("No such file");
    unseen.then_some(
        "the file is not visible on that host: use --key-handover file:FOLDER with a folder that all hosts share, or --key-handover env",
    )
}

impl Starting<'_> {
    /// Waits until every server has announced itself. With `partial`, it is enough that one has, and that the others
    /// have ended or timed out.
    pub(super) fn hear_all(
        &mut self,
        launch: &mut Launch,
        master: &mut Master,
    ) -> Result<(), SessionError> {
        let wait = self.config.config.start_wait;
        let deadline = Instant::now() + wait;
        self.progress("launched", self.arrived(), None);
        self.take_events(launch)?;
        while self.arrived() as u64 + self.ended.len() < u64::from(self.config.servers) {
            match self.next(deadline)? {
                Some(DriverEvent::Ready(fd)) if fd == master.end_fd() => {
                    return Err(master.gone());
                }
                Some(DriverEvent::Ready(fd)) if self.hand_over(fd) => {}
                Some(DriverEvent::Ready(fd)) => self.hear(launch, fd)?,
                Some(_) => {}
                None => break,
            }
        }
        let absent = self.absent();
        if absent.is_empty() {
            return Ok(());
        }
        if !self.config.config.partial || self.arrived() == 0 {
            return Err(self.too_slow(wait, &absent));
        }
        let note = format!("the session starts without servers {absent}, which did not connect");
        self.progress("launched", self.arrived(), Some(note));
        Ok(())
    }

    /// Number of launched processes that have arrived.
    pub(super) fn arrived(&self) -> usize {
        match &self.joined {
            Some(joined) => usize::try_from(joined.count()).unwrap_or(usize::MAX),
            None => self.heard.len(),
        }
    }

    /// True if the server with this number has arrived. Where servers have several ranks, the number is that of a rank.
    fn has_arrived(&self, id: u32) -> bool {
        match &self.joined {
            Some(joined) => joined.contains(id),
            None => self.heard.contains_key(&id),
        }
    }

    /// The numbers of the servers that have not arrived. Where servers have several ranks, the numbers are those of
    /// ranks.
    fn absent(&self) -> IdSet {
        let all = 0..self.config.servers;
        let absent = all.filter(|id| !self.has_arrived(*id));
        absent.map(TaskId).collect()
    }

    fn too_slow(&self, wait: Duration, absent: &IdSet) -> SessionError {
        SessionError::TooSlow {
            missing: usize::try_from(absent.len()).unwrap_or(usize::MAX),
            total: self.config.servers,
            wait,
            names: format!("servers {absent}"),
        }
    }

    /// Reads a descriptor of the launcher.
    pub(super) fn hear(&mut self, launch: &mut Launch, fd: RawFd) -> Result<(), SessionError> {
        loop {
            let more = launch.handle_ready(fd);
            self.take_events(launch)?;
            if !more {
                return Ok(());
            }
        }
    }

    fn take_events(&mut self, launch: &mut Launch) -> Result<(), SessionError> {
        while let Some(event) = launch.poll_event() {
            self.heard_event(event)?;
        }
        Ok(())
    }

    fn heard_event(&mut self, event: LaunchEvent) -> Result<(), SessionError> {
        match event {
            LaunchEvent::Announced(announcement) => self.announced(announcement)?,
            LaunchEvent::Joined(joined) => self.joined(joined)?,
            LaunchEvent::Note(note) => {
                self.progress("launched", self.arrived(), Some(note));
            }
            LaunchEvent::Refused {
                refusal: Refusal { server, why },
                last_words,
                advice,
            } => {
                let error = SessionError::Refused {
                    advice: advice.or_else(|| unseen(&why)),
                    why,
                    last_words,
                };
                self.refused(server, error)?;
            }
            LaunchEvent::Log(line) => LogWriter::pass_on(&line),
            LaunchEvent::Text { .. } | LaunchEvent::Bytes { .. } => {}
            LaunchEvent::Ended {
                who,
                servers,
                status,
                last_words,
                advice,
                ..
            } => {
                let all = servers.len() == self.config.servers as usize;
                let ended = SessionError::LauncherEnded {
                    launcher: who,
                    status,
                    last_words,
                    advice,
                };
                if !self.config.config.partial || all {
                    return Err(ended);
                }
                // The tree itself names the lost servers that had arrived.
                let absent = servers.filter(|server| !self.has_arrived(*server));
                let absent: IdSet = absent.map(TaskId).collect();
                let before = self.ended.len();
                self.ended.union_with(&absent);
                if self.ended.len() > before {
                    self.progress("launched", self.arrived(), Some(ended.to_string()));
                }
            }
        }
        Ok(())
    }

    fn refused(&mut self, server: u32, error: SessionError) -> Result<(), SessionError> {
        if !self.config.config.partial {
            return Err(error);
        }
        if server < self.config.servers && !self.has_arrived(server) {
            self.ended.extend([TaskId(server)]);
            self.progress("launched", self.arrived(), Some(error.to_string()));
        }
        Ok(())
    }

    fn announced(&mut self, announcement: Announcement) -> Result<(), SessionError> {
        let (id, total) = (announcement.server, self.config.servers);
        if id >= total {
            return Err(SessionError::Unexpected {
                id: ServerId(id),
                total,
            });
        }
        let (host, port, pid) = (&announcement.host, announcement.port, announcement.pid);
        tracing::info!(server = id, %host, port, pid, "server came");
        let second = announcement.pid;
        if let Some(first) = self.heard.insert(id, announcement) {
            return Err(SessionError::Twice {
                id: ServerId(id),
                first: first.pid,
                second,
            });
        }
        if let Some(joined) = &mut self.joined {
            joined.serve(id);
        }
        self.progress("launched", self.arrived(), None);
        Ok(())
    }

    fn joined(&mut self, joined: Joined) -> Result<(), SessionError> {
        let Joined { rank, server, pid } = joined;
        let total = self.config.servers;
        tracing::info!(rank, server, pid, "rank came");
        let is_known = self.heard.contains_key(&server);
        match &mut self.joined {
            Some(ranks) if rank < total && server < total => {
                if !ranks.join(joined, is_known) {
                    return Err(SessionError::RankTwice { rank, pid });
                }
            }
            _ => {
                let id = ServerId(rank.max(server));
                return Err(SessionError::Unexpected { id, total });
            }
        }
        self.progress("launched", self.arrived(), None);
        Ok(())
    }

    pub(super) fn progress(&mut self, phase: &'static str, done: usize, note: Option<String>) {
        self.far = (phase, done);
        // Servers announce themselves, and each of their tasks is ready.
        let total = match phase {
            "launched" => self.config.servers,
            _ => u32::try_from(self.tasks.len()).unwrap_or(u32::MAX),
        };
        let slowest = match phase {
            "launched" => {
                while self.has_arrived(self.heard_below) {
                    self.heard_below += 1;
                }
                let what = match self.joined {
                    Some(_) => "rank",
                    None => "server",
                };
                (self.heard_below < total).then(|| format!("{what} {}", self.heard_below))
            }
            _ => {
                let waiting = self.tasks.difference(&self.ready);
                waiting.first().map(|task| self.name_of_task(task))
            }
        };
        let done = u32::try_from(done).unwrap_or(u32::MAX);
        (self.tell)(StartProgress {
            phase,
            done,
            total,
            slowest,
            note,
        });
    }

    /// The name of a rank in messages, with its host if each server has a single rank.
    fn name_of_task(&self, task: TaskId) -> String {
        let alone = self.tasks.len() == u64::from(self.config.servers);
        match self.heard.get(&task.0).filter(|_| alone) {
            Some(heard) => format!("rank {task} on {}", heard.host),
            None => format!("rank {task}"),
        }
    }
}
