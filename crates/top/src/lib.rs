//! The terminal view of a running switch: `millrace top`.
//!
//! [`run`] asks a switch once a second over HTTP ([`Client`]) and shows what it hears until a key ends it; [`once`] is one page
//! of it as text. A [`View`] has the words of two moments, a [`Screen`] draws them.
//!
//! It promises that names, which come from the switch, never control the terminal. It never links a switch: a client needs
//! neither a data path nor a code generator.

mod screen;
mod view;

pub use screen::Screen;
pub use view::{List, Order, View};

use millrace_observe_api::{Client, ClientError, Status};
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use std::fmt;
use std::io;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How often the view is refreshed.
const REFRESH: Duration = Duration::from_secs(1);

/// Why the view ended.
#[derive(Debug)]
pub enum TopError {
    /// The switch does not answer.
    Client(ClientError),
    /// The terminal does not work.
    Terminal(io::Error),
}

impl fmt::Display for TopError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TopError::Client(error) => error.fmt(f),
            TopError::Terminal(error) => write!(f, "the terminal: {error}"),
        }
    }
}

impl std::error::Error for TopError {}

impl From<ClientError> for TopError {
    fn from(error: ClientError) -> TopError {
        TopError::Client(error)
    }
}

/// One page as text, with the rates of one second.
///
/// # Errors
/// [`ClientError`].
pub fn once(client: &Client) -> Result<String, ClientError> {
    let before = client.status()?;
    sleep(REFRESH);
    let now = client.status()?;
    Ok(View::new(Some(&before), &now, Order::Number).to_text())
}

/// Shows the view until somebody ends it, or the switch does.
///
/// # Errors
/// [`TopError`]; the terminal is as before.
pub fn run(client: &Client) -> Result<(), TopError> {
    let first = client.status()?;
    let mut terminal = ratatui::try_init().map_err(TopError::Terminal)?;
    let done = show(client, first, &mut terminal);
    ratatui::restore();
    done
}

fn show(client: &Client, first: Status, terminal: &mut ratatui::DefaultTerminal) -> Result<(), TopError> {
    let mut screen = Screen::default();
    let (mut before, mut now) = (None, first);
    let mut due = Instant::now() + REFRESH;
    loop {
        let view = View::new(before.as_ref(), &now, screen.order());
        terminal.draw(|frame| screen.draw(frame, &view)).map_err(TopError::Terminal)?;
        let left = due.saturating_duration_since(Instant::now());
        if event::poll(left).map_err(TopError::Terminal)? {
            if let Event::Key(key) = event::read().map_err(TopError::Terminal)?
                && key.kind == KeyEventKind::Press
                && pressed(client, &mut screen, &view, key)
            {
                return Ok(());
            }
            continue;
        }
        due = Instant::now() + REFRESH;
        before = Some(std::mem::replace(&mut now, client.status()?));
    }
}

/// Does what a key asks for; says whether that is the end.
fn pressed(client: &Client, screen: &mut Screen, view: &View, key: KeyEvent) -> bool {
    match key.code {
        KeyCode::Char('q') | KeyCode::Esc => return true,
        KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => return true,
        KeyCode::Char('c') => {
            if let Some(port) = screen.selected_port(view) {
                let done = match port.captured {
                    true => client.stop_capture(port.number).map(|capture| ("off", capture)),
                    false => client.start_capture(port.number, None).map(|capture| ("on", capture)),
                };
                screen.say(match done {
                    Ok((word, capture)) => format!("capture {word}: {}", capture.incoming),
                    Err(error) => error.to_string(),
                });
            }
        }
        KeyCode::Char('s') => screen.sort(),
        KeyCode::Tab => screen.next_list(),
        KeyCode::Down | KeyCode::Char('j') => screen.move_by(1, view),
        KeyCode::Up | KeyCode::Char('k') => screen.move_by(-1, view),
        KeyCode::PageDown => screen.move_by(10, view),
        KeyCode::PageUp => screen.move_by(-10, view),
        _ => {}
    }
    false
}
