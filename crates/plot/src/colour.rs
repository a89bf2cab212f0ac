//! Colours: one ink per series, one theme per background.

/// How one series is told from the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ink {
    /// The colour as SVG writes it.
    pub(crate) hex: &'static str,
    /// SVG dash pattern; empty for a solid line.
    pub(crate) dash: &'static str,
}

/// The colours of everything that is not data.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Theme {
    pub(crate) paper: &'static str,
    pub(crate) text: &'static str,
    pub(crate) frame: &'static str,
    pub(crate) grid: &'static str,
    /// A missing value among coloured ones.
    pub(crate) gap: [u8; 3],
    inks: &'static [&'static str; 7],
}

// Both sets follow Okabe and Ito's palette, which stays distinct under the common forms of colour
// blindness. Its yellow cannot be read on white and its black cannot be read on black, so each
// theme leaves one of them out.
const ON_WHITE: [&str; 7] =
    ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#404040"];
const ON_BLACK: [&str; 7] =
    ["#56b4e9", "#e69f00", "#1fc79a", "#d98cb8", "#f0e442", "#f27533", "#e8e8e8"];

// The same hues out of the 256 that terminals know, of a middle brightness because nobody can tell
// what the background is.
const TERMINAL: [u8; 7] = [33, 208, 36, 170, 44, 178, 244];

/// The terminal colour of the series at `index`.
pub(crate) fn ansi(index: usize) -> u8 {
    TERMINAL[index % TERMINAL.len()]
}

// A colour comes round again with another dash, so 28 lines remain distinct.
const DASHES: [&str; 4] = ["", "6 3", "2 2.5", "8 3 2 3"];

const LIGHT: Theme = Theme {
    paper: "#fff",
    text: "#222",
    frame: "#7a7a7a",
    grid: "#e4e4e4",
    gap: [0xc4; 3],
    inks: &ON_WHITE,
};
const DARK: Theme = Theme {
    paper: "#15181c",
    text: "#dcdcdc",
    frame: "#8a8a8a",
    grid: "#2d3238",
    gap: [0x5a; 3],
    inks: &ON_BLACK,
};

impl Theme {
    pub(crate) fn of(dark: bool) -> Self {
        if dark { DARK } else { LIGHT }
    }

    /// The ink of the series at `index`; repeats only after every colour has had every dash.
    pub(crate) fn ink(&self, index: usize) -> Ink {
        let hex = self.inks[index % self.inks.len()];
        Ink { hex, dash: DASHES[index / self.inks.len() % DASHES.len()] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn twenty_eight_series_are_all_told_apart() {
        for dark in [false, true] {
            let theme = Theme::of(dark);
            let inks: Vec<Ink> = (0..28).map(|i| theme.ink(i)).collect();
            for (i, a) in inks.iter().enumerate() {
                assert!(inks[i + 1..].iter().all(|b| (a.hex, a.dash) != (b.hex, b.dash)));
            }
            assert_eq!(theme.ink(28), theme.ink(0));
        }
    }
}
