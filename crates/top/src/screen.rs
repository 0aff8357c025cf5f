//! The view on a terminal.

use crate::view::{List, Order, ShownPort, View};
use millrace_printable::printable_line;
use ratatui::Frame;
use ratatui::layout::{Alignment, Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Text};
use ratatui::widgets::{Block, Cell, Paragraph, Row, Table, TableState};

/// What its user has chosen.
#[derive(Debug, Default)]
pub struct Screen {
    order: Order,
    /// Whether keys move in the list of tables, not of ports.
    in_tables: bool,
    ports: TableState,
    tables: TableState,
    said: String,
}

const KEYS: &str = "q quit  s sort  Tab ports/tables  Up/Down move  c capture of the port on/off";

impl Screen {
    /// The order in which lists are to be shown.
    pub fn order(&self) -> Order {
        self.order
    }

    /// The other order.
    pub fn sort(&mut self) {
        self.order = match self.order {
            Order::Number => Order::Rate,
            Order::Rate => Order::Number,
        };
    }

    /// Keys move in the other list.
    pub fn next_list(&mut self) {
        self.in_tables = !self.in_tables;
    }

    /// Moves by so many rows, not beyond the ends.
    pub fn move_by(&mut self, rows: isize, view: &View) {
        let (state, list) = match self.in_tables {
            true => (&mut self.tables, &view.tables),
            false => (&mut self.ports, &view.ports),
        };
        let last = list.rows.len().saturating_sub(1);
        let at = state.selected().unwrap_or(0).saturating_add_signed(rows);
        state.select(Some(at.min(last)));
    }

    /// The port that is chosen; the first one if none is.
    pub fn selected_port(&self, view: &View) -> Option<ShownPort> {
        view.shown_ports.get(self.ports.selected().unwrap_or(0)).copied()
    }

    /// Shows a line at the bottom, in place of the keys.
    pub fn say(&mut self, line: String) {
        // It comes from the switch.
        self.said = printable_line(&line).into_owned();
    }

    /// Draws a view.
    pub fn draw(&mut self, frame: &mut Frame<'_>, view: &View) {
        let height = |list: &List, most: u16| (list.rows.len() as u16).saturating_add(2).min(most);
        let whole = frame.area();
        let [summary, ports, tables, below, keys] = Layout::vertical([
            Constraint::Length(view.summary.len() as u16),
            Constraint::Max(height(&view.ports, u16::MAX)),
            Constraint::Max(height(&view.tables, u16::MAX)),
            Constraint::Min(3),
            Constraint::Length(1),
        ])
        .areas(whole);
        let [drops, queues] = Layout::horizontal([Constraint::Fill(1); 2]).areas(below);
        let lines: Vec<Line<'_>> = view.summary.iter().map(|line| Line::from(line.as_str())).collect();
        frame.render_widget(Paragraph::new(Text::from(lines)), summary);
        draw_list(frame, ports, &view.ports, &mut self.ports, !self.in_tables);
        draw_list(frame, tables, &view.tables, &mut self.tables, self.in_tables);
        draw_list(frame, drops, &view.drops, &mut TableState::default(), false);
        draw_list(frame, queues, &view.queues, &mut TableState::default(), false);
        let bottom = if self.said.is_empty() { KEYS } else { &self.said };
        frame.render_widget(Paragraph::new(bottom), keys);
    }
}

/// Between two columns.
const SPACING: u16 = 2;

fn draw_list(frame: &mut Frame<'_>, area: Rect, list: &List, state: &mut TableState, has_keys: bool) {
    // Columns that find no room are left out, the last ones first: all of them cut short would say nothing.
    let mut room = usize::from(area.width);
    let fits = |width: &usize| {
        let is_there = *width <= room;
        room = room.saturating_sub(width + usize::from(SPACING));
        is_there
    };
    let widths: Vec<usize> = list.widths().into_iter().take_while(fits).collect();
    let columns = widths.len().max(1);
    let widths = widths.into_iter().map(|width| Constraint::Length(width as u16));
    let cell = |at: usize, word: &str| {
        let alignment = if at == 0 { Alignment::Left } else { Alignment::Right };
        Cell::from(Text::from(word.to_owned()).alignment(alignment))
    };
    let row =
        |words: &[&str]| Row::new(words.iter().take(columns).enumerate().map(|(at, word)| cell(at, word)));
    let rows = list.rows.iter().map(|words| row(&words.iter().map(String::as_str).collect::<Vec<_>>()));
    let bold = Style::new().add_modifier(Modifier::BOLD);
    let title = if has_keys { bold } else { Style::new() };
    let table = Table::new(rows, widths)
        .header(row(list.columns).style(bold))
        .column_spacing(SPACING)
        .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED))
        .block(Block::new().title(Line::styled(list.title, title)));
    frame.render_stateful_widget(table, area, state);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::tests::status;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    fn shown(screen: &mut Screen, view: &View, width: u16, height: u16) -> Vec<String> {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| screen.draw(frame, view)).unwrap();
        let cells = terminal.backend().buffer().content();
        let line = |cells: &[ratatui::buffer::Cell]| -> String {
            cells.iter().map(ratatui::buffer::Cell::symbol).collect::<String>().trim_end().to_owned()
        };
        cells.chunks(width.into()).map(line).collect()
    }

    #[test]
    fn everything_is_on_the_screen() {
        let (before, now) = (status(60), status(62));
        let view = View::new(Some(&before), &now, Order::Number);
        let mut screen = Screen::default();
        let lines = shown(&mut screen, &view, 150, 20);
        assert_eq!(lines[0], "millrace 1.2.3  router (jit)  up 0:01:02");
        assert_eq!(lines[2], "ports");
        assert!(
            lines[3].starts_with("port  interface  link  speed  rx pps  rx bit/s  tx pps"),
            "{}",
            lines[3]
        );
        assert!(
            lines[5].starts_with("1             -  down      -   1.23M      988M   2.47M"),
            "{}",
            lines[5]
        );
        assert_eq!(lines[6], "tables");
        assert!(lines[8].starts_with("ingress.routes       12  1024      4.50k       500"), "{}", lines[8]);
        assert!(lines[9].starts_with("drops") && lines[9].ends_with("queues"), "{}", lines[9]);
        assert!(lines[11].starts_with("ingress_drop             3      186"), "{}", lines[11]);
        assert!(lines[11].ends_with("1/2          5    64      9"), "{}", lines[11]);
        assert_eq!(lines[19], KEYS);
        assert!(lines[4].ends_with("02:00:00:00:00:01"), "{}", lines[4]);
        // What has no room is left out, not cut.
        let narrow = shown(&mut screen, &view, 60, 20);
        assert_eq!(narrow[3], "port  interface  link  speed  rx pps  rx bit/s  tx pps");
    }

    #[test]
    fn keys_move_sort_and_choose() {
        let now = status(10);
        let view = View::new(None, &now, Order::Number);
        let mut screen = Screen::default();
        assert_eq!(screen.selected_port(&view).unwrap().number, 0);
        screen.move_by(1, &view);
        screen.move_by(1, &view);
        assert_eq!(screen.selected_port(&view).unwrap().number, 1);
        screen.move_by(-10, &view);
        assert_eq!(screen.selected_port(&view).unwrap().number, 0);
        screen.sort();
        assert_eq!(screen.order(), Order::Rate);
        let by_rate = View::new(None, &now, screen.order());
        assert_eq!(screen.selected_port(&by_rate).unwrap().number, 1);
        screen.say("capture on: eth0_in.pcap".into());
        assert_eq!(shown(&mut screen, &by_rate, 80, 12)[11], "capture on: eth0_in.pcap");
    }

    #[test]
    fn names_cannot_control_the_terminal() {
        let mut now = status(10);
        now.program = "evil\x1b]0;title\x07".into();
        now.tables[0].table = "evil\x1b[2J\u{9b}m".into();
        now.ports[0].interface = Some("evil\r".into());
        now.drops.insert("evil\u{202e}".into(), 5);
        let view = View::new(None, &now, Order::Number);
        let mut screen = Screen::default();
        screen.say("evil\x1b[2J".into());
        let shown = shown(&mut screen, &view, 200, 24).join("\n") + &view.to_text();
        assert!(!shown.chars().any(|c| c.is_control() && c != '\n' || c == '\u{202e}'), "{shown:?}");
        assert_eq!(shown.matches("evil\\u001b[2J").count(), 3, "{shown}");
    }

    #[test]
    fn a_small_terminal_shows_less_and_does_not_fail() {
        let view = View::new(None, &status(10), Order::Number);
        for (width, height) in [(1, 1), (20, 3), (80, 6), (300, 100)] {
            assert_eq!(shown(&mut Screen::default(), &view, width, height).len(), usize::from(height));
        }
    }
}
