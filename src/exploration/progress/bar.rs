//! The bars on the terminal: each of several concurrent explorations has a line.

use std::sync::LazyLock;

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

static BARS: LazyLock<MultiProgress> = LazyLock::new(MultiProgress::new);

/// Whether the bars are hidden. This does not change, and asking the bars takes a lock.
static HIDDEN: LazyLock<bool> = LazyLock::new(|| BARS.is_hidden());

/// The least number of columns for a bar. With fewer there is room for its text only.
const ROOMY: u16 = 75;

/// One of the bars.
pub(super) struct Bar(ProgressBar);

impl Bar {
    /// Adds a bar below the others.
    pub(super) fn add() -> Bar {
        Bar(BARS.add(ProgressBar::no_length()))
    }

    /// Draws the bar with a text, and with this percentage if it is known.
    pub(super) fn draw(&self, text: String, percent: Option<u64>) {
        let columns = console::Term::stderr().size().1;
        draw(&self.0, text, percent, columns);
    }

    pub(super) fn remove(self) {
        self.0.finish_and_clear();
        BARS.remove(&self.0);
    }
}

/// Whether standard error shows no bars.
pub(super) fn hidden() -> bool {
    *HIDDEN
}

/// Prints above the bars, if there are any.
pub(super) fn above(print: impl FnOnce()) {
    BARS.suspend(print);
}

/// Draws a bar on a terminal of this width.
fn draw(bar: &ProgressBar, text: String, percent: Option<u64>, columns: u16) {
    let percent = percent.filter(|_| columns >= ROOMY);
    let template = match percent {
        Some(_) => "dpor: [{bar:20}] {wide_msg}",
        None => "dpor: {wide_msg}",
    };
    // The templates are constant and well-formed.
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style.progress_chars("#>-"));
    }
    bar.set_message(text);
    bar.update(|state| {
        state.set_pos(percent.unwrap_or_default());
        state.set_len(100);
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use indicatif::{InMemoryTerm, ProgressDrawTarget};

    /// Returns the text on a terminal of this width after a bar was drawn there, at 1 % and then at
    /// 25 %, and the text after the bar is removed.
    fn drawn(columns: u16) -> (String, String) {
        let terminal = InMemoryTerm::new(5, columns);
        let target = ProgressDrawTarget::term_like(Box::new(terminal.clone()));
        let bars = MultiProgress::with_draw_target(target);
        let mut bar = Some(bars.add(ProgressBar::no_length()));
        for percent in [1, 25] {
            let text = format!(
                "{} executions ({percent} % of about 1000), 1 s",
                10 * percent
            );
            let bar = bar.as_ref().expect("not gone yet");
            draw(bar, text, Some(percent), columns);
        }
        let seen = terminal.contents();
        if let Some(bar) = bar.take() {
            bar.finish_and_clear();
        }
        (seen, terminal.contents())
    }

    #[test]
    fn a_bar_has_one_line_on_any_terminal_and_none_at_the_end() {
        let wide = "dpor: [#####>--------------] 250 executions (25 % of about 1000), 1 s";
        assert_eq!(drawn(100), (wide.to_owned(), String::new()));
        let narrow = "dpor: 250 executions (25 % of";
        assert_eq!(drawn(30), (narrow.to_owned(), String::new()));
    }
}
