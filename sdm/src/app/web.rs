//! `--web`: serves the session on a page for a browser, besides the prompt if there is one. Each connection is read in
//! a thread of its own. Requests of pages reach the session in the same way as typed lines.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use sdm_shell::commands;
use sdm_shell::exit_codes::NOT_STARTED;
use sdm_shell::{Control, LineSource, ScriptLine};
use sdm_system::listener::{self, Refusals, SocketFile};
use sdm_system::secret::SecretFile;
use sdm_system::{files, programs};
use sdm_view::escape::shown;
use sdm_view::item::View;
use sdm_view::render::Names;
use sdm_web::{Gate, News, PageAction, Site, WebView};

use super::opener::Refused;
use super::queue::Queue;
use super::wake::Wake;
use super::words;
use crate::cli::{CommandArgs, Listen};
use crate::sink::complain;

/// Maximum number of connections at once. A browser opens up to six for a page.
const CONNECTIONS_MAX: usize = 64;
/// Maximum number of lines from pages that wait for execution.
const LINES_MAX: usize = 256;
/// Maximum number of partly typed lines that wait for words to complete them.
const COMPLETIONS_MAX: usize = 4;
/// Time limit for a read: a connection that sends nothing for this time is closed.
const IDLE: Duration = Duration::from_secs(120);
/// Time limit for a write to a browser that does not read.
const WRITE_WAIT: Duration = Duration::from_secs(30);
/// The local port in the suggested `ssh -L` command, which forwards it to the Unix socket of the page.
const PORT_HERE: u16 = 8080;

/// The server of `--web`: its listener, its address, and the records for its pages.
pub(super) struct Web {
    news: Arc<News>,
    /// Number of lines that pages have given since the shell last requested a line.
    waiting: Arc<AtomicUsize>,
    door: Mutex<Option<Door>>,
    /// The file of the Unix socket, removed on drop. The accepting thread never ends, so it cannot own the file.
    _file: Option<SocketFile>,
    place: PageAddress,
    opens_browser: bool,
}

/// Wraps a view so that its items are also shown on live web pages, and begins to accept browsers. Returns `view`
/// unchanged without `--web`.
///
/// # Errors
/// No random numbers could be generated, or no thread could be started.
pub(super) fn shown_on_pages(
    web: Option<&Arc<Web>>,
    view: Box<dyn View>,
    names: Names,
    (controls, wake, queue): (&Sender<Control>, &Wake, Option<&Arc<Queue>>),
) -> Result<Box<dyn View>, Refused> {
    let Some(web) = web else { return Ok(view) };
    let view = Box::new(WebView::new(view, names, Arc::clone(&web.news)));
    let served = web.serve(controls.clone(), Arc::clone(wake), queue.cloned());
    served.map_err(|error| (NOT_STARTED, format!("--web: {error}")))?;
    Ok(view)
}

/// A listener for browsers.
enum Door {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl Web {
    /// Listens at the address of `--web`. None without the option.
    ///
    /// # Errors
    /// The address cannot be listened on.
    pub(super) fn new(args: &CommandArgs) -> Result<Option<Arc<Self>>, Refused> {
        let Some(address) = &args.web else {
            return Ok(None);
        };
        let (door, file, place) =
            Door::at(address).map_err(|error| (NOT_STARTED, format!("--web: {error}")))?;
        Ok(Some(Arc::new(Self {
            news: Arc::default(),
            waiting: Arc::default(),
            door: Mutex::new(Some(door)),
            _file: file,
            place,
            opens_browser: args.browser,
        })))
    }

    /// A source of the lines that pages give and, with a prompt, of those that the user types.
    pub(super) fn lines(&self, prompt: Option<Box<dyn LineSource>>) -> Box<dyn LineSource> {
        Box::new(WebLines {
            news: Arc::clone(&self.news),
            waiting: Arc::clone(&self.waiting),
            is_question: false,
            prompt,
        })
    }

    /// Prints the address of the page, and begins to accept browsers in a thread of its own. Later calls do nothing.
    ///
    /// # Errors
    /// No random numbers could be generated, or no thread could be started.
    fn serve(
        &self,
        controls: Sender<Control>,
        wake: Wake,
        queue: Option<Arc<Queue>>,
    ) -> io::Result<()> {
        let mut door = self.door.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(door) = door.take() else {
            return Ok(());
        };
        let gate = Gate::draw().map_err(io::Error::other)?;
        let place = self.place.clone();
        place.tell(&gate.path());
        let mut browser = match self.opens_browser {
            true => open_browser(&place.address(&gate.path())),
            false => None,
        };
        let (news, waiting) = (Arc::clone(&self.news), Arc::clone(&self.waiting));
        let completions = Arc::<AtomicUsize>::default();
        let deeds = Mutex::new(move |deed| {
            let control = match deed {
                PageAction::Line(text) => {
                    if waiting.fetch_add(1, Ordering::SeqCst) >= LINES_MAX {
                        return false;
                    }
                    let typed = format!("(sdm) {text}\n");
                    news.take_line(&typed);
                    if let Some(queue) = &queue {
                        // If no line is edited, only the effect of the line is visible.
                        let _ = queue.offer(&shown(&typed));
                    }
                    let origin = String::new();
                    Some(Control::Line(ScriptLine { text, origin }))
                }
                PageAction::Complete(typed) => {
                    let session = (controls.clone(), Arc::clone(&wake));
                    return complete(typed, session, &news, &completions);
                }
                PageAction::Interrupt => Some(Control::Interrupt),
                PageAction::Suspend => Some(Control::Suspend),
                PageAction::Enter { next } => {
                    browser.take();
                    let address = place.address(&next);
                    let line = format!("[web] address for another browser: {address}");
                    let is_shown = queue
                        .as_ref()
                        .is_some_and(|it| it.offer(&format!("{line}\n")));
                    if !is_shown {
                        complain(line);
                    }
                    None
                }
                // A page that begins to listen only needs the state of the session, which the wake-up brings.
                PageAction::Listen => None,
            };
            // The receiver is gone once the session is over.
            let _ = control.map(|control| controls.send(control));
            wake();
            true
        });
        let site = Arc::new(Site::new(gate, Arc::clone(&self.news), move |deed| {
            let mut deeds = deeds.lock().unwrap_or_else(PoisonError::into_inner);
            deeds(deed)
        }));
        thread::Builder::new()
            .name("web".to_owned())
            .spawn(move || door.let_in(&site))?;
        Ok(())
    }
}

/// Finds words to complete a line in the background, and offers them to the pages. Returns false if too many lines wait.
fn complete(
    typed: String,
    (controls, wake): (Sender<Control>, Wake),
    news: &Arc<News>,
    waiting: &Arc<AtomicUsize>,
) -> bool {
    if waiting.fetch_add(1, Ordering::SeqCst) >= COMPLETIONS_MAX {
        waiting.fetch_sub(1, Ordering::SeqCst);
        return false;
    }
    let (news, under_way) = (Arc::clone(news), Arc::clone(waiting));
    let thread = thread::Builder::new().name("completion".to_owned());
    let started = thread.spawn(move || {
        let found = words::find(&typed, &controls, &wake);
        let (from, words) = found.unwrap_or((typed.len(), Vec::new()));
        news.offer(&typed, (from, &commands::completed(&words)));
        under_way.fetch_sub(1, Ordering::SeqCst);
    });
    if started.is_err() {
        waiting.fetch_sub(1, Ordering::SeqCst);
    }
    started.is_ok()
}

/// The host and port of the page, as a person types them.
#[derive(Clone)]
struct PageAddress {
    /// The host and port in the page's address: `127.0.0.1:41234`.
    host: String,
    /// The `ssh -L` command that forwards the page to another machine. None if the browser can run on this machine.
    tunnel: Option<String>,
}

impl PageAddress {
    fn of_port(address: SocketAddr) -> Self {
        let is_remote = std::env::var_os("SSH_CONNECTION").is_some();
        let line = || format!("ssh -N -L {}:{address} {}", address.port(), this_host());
        Self {
            host: address.to_string(),
            tunnel: is_remote.then(line),
        }
    }

    fn of_socket(path: &Path) -> io::Result<Self> {
        let path = std::path::absolute(path)?;
        let path = sdm_text::shell_word(&path.to_string_lossy());
        Ok(Self {
            host: format!("127.0.0.1:{PORT_HERE}"),
            tunnel: Some(format!("ssh -N -L {PORT_HERE}:{path} {}", this_host())),
        })
    }

    fn address(&self, path: &str) -> String {
        format!("http://{}{path}", self.host)
    }

    /// Prints the page's address and, if there is one, the `ssh` command that the user needs first.
    fn tell(&self, path: &str) {
        let address = self.address(path);
        match &self.tunnel {
            None => complain(format_args!("[web] open {address}")),
            Some(line) => {
                complain(format_args!("[web] run on your machine: {line}"));
                complain(format_args!("[web] then open {address}"));
            }
        }
    }
}

fn this_host() -> String {
    sdm_text::printable_name(nix::unistd::gethostname().unwrap_or_default())
}

/// Opens the page in a browser through a private file that redirects to `address`. A command line would show the
/// address to all users of the machine. Returns the file, which is removed on drop; None on failure.
fn open_browser(address: &str) -> Option<SecretFile> {
    let shown = || {
        let name = format!("web-{}.html", std::process::id());
        let mut file = SecretFile::at(files::runtime_folder()?.join(name));
        let page = format!("<meta http-equiv=\"refresh\" content=\"0;url={address}\">\n");
        file.write(page.as_bytes())?;
        let mut command = programs::helper("xdg-open")?;
        let command = command.arg(file.path()).stdin(Stdio::null());
        let mut child = command
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        // The thread waits for the browser, so that it leaves no zombie.
        let waits = thread::Builder::new().name("browser".to_owned());
        waits.spawn(move || match child.wait() {
            Ok(status) if !status.success() => {
                complain(format_args!(
                    "[web] --browser: xdg-open found no browser ({status})"
                ));
            }
            _ => {}
        })?;
        Ok(file)
    };
    let file: io::Result<SecretFile> = shown();
    file.map_err(|error| complain(format_args!("[web] --browser: {error}")))
        .ok()
}

/// A function that answers a browser's requests on one connection, until the connection ends.
type Served = Box<dyn FnOnce(&Site) + Send>;

impl Door {
    /// A listener at this address, the file of its Unix socket if it has one, and the address of its pages.
    fn at(address: &Listen) -> io::Result<(Self, Option<SocketFile>, PageAddress)> {
        match address {
            Listen::Tcp(address) => {
                let listener = listener::listen_at_loopback(*address)?;
                let place = PageAddress::of_port(listener.local_addr()?);
                Ok((Self::Tcp(listener), None, place))
            }
            Listen::Unix(path) => {
                let (listener, file) = listener::listen_at_path(path)?;
                let place = PageAddress::of_socket(file.path())?;
                Ok((Self::Unix(listener), Some(file), place))
            }
        }
    }

    /// Waits for the next connection from a browser of this user. The reason of each refused connection goes to
    /// `refused`.
    fn next(&self, refused: &mut dyn FnMut(io::Error)) -> io::Result<Served> {
        match self {
            Self::Tcp(listener) => {
                let stream = listener::next_at_loopback(listener, refused)?;
                stream.set_read_timeout(Some(IDLE))?;
                stream.set_write_timeout(Some(WRITE_WAIT))?;
                stream.set_nodelay(true)?;
                // A browser that disconnects in the middle of an answer is no error.
                Ok(Box::new(move |site| {
                    drop(sdm_web::serve(site, &stream, &stream))
                }))
            }
            Self::Unix(listener) => {
                let stream = listener::next_at_path(listener, refused)?;
                stream.set_read_timeout(Some(IDLE))?;
                stream.set_write_timeout(Some(WRITE_WAIT))?;
                Ok(Box::new(move |site| {
                    drop(sdm_web::serve(site, &stream, &stream))
                }))
            }
        }
    }

    /// Accepts browsers until that fails, and serves each connection in a thread of its own.
    fn let_in(&self, site: &Arc<Site>) {
        let mut refusals = Refusals::default();
        let open = Arc::<AtomicUsize>::default();
        let mut refused = |why: io::Error| {
            if let Some(why) = refusals.line(Instant::now(), &why) {
                complain(format_args!("[web] a client was disconnected: {why}"));
            }
        };
        loop {
            let serve = match self.next(&mut refused) {
                Ok(serve) => serve,
                Err(error) => {
                    return complain(format_args!(
                        "[web] cannot accept further browsers: {error}"
                    ));
                }
            };
            if open.fetch_add(1, Ordering::SeqCst) >= CONNECTIONS_MAX {
                open.fetch_sub(1, Ordering::SeqCst);
                continue;
            }
            let (site, connections) = (Arc::clone(site), Arc::clone(&open));
            let thread = thread::Builder::new().name("page".to_owned());
            let started = thread.spawn(move || {
                serve(&site);
                connections.fetch_sub(1, Ordering::SeqCst);
            });
            if started.is_err() {
                open.fetch_sub(1, Ordering::SeqCst);
            }
        }
    }
}

/// A line source that combines the lines of pages with those of a prompt.
struct WebLines {
    news: Arc<News>,
    waiting: Arc<AtomicUsize>,
    is_question: bool,
    prompt: Option<Box<dyn LineSource>>,
}

impl LineSource for WebLines {
    fn request(&mut self, prompt: &str, question: bool) {
        self.waiting.store(0, Ordering::SeqCst);
        self.is_question = question;
        self.news.ask(prompt, question);
        if let Some(source) = &mut self.prompt {
            source.request(prompt, question);
        }
    }

    fn set_prompt(&mut self, prompt: &str) {
        self.news.ask(prompt, self.is_question);
        if let Some(source) = &mut self.prompt {
            source.set_prompt(prompt);
        }
    }
}
