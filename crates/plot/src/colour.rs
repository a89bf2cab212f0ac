//! Line styles of series, and themes.

/// Line style of a series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Style {
    /// SVG colour.
    pub(crate) hex: &'static str,
    /// SVG dash pattern; empty for a solid line.
    pub(crate) dash: &'static str,
}

/// Colours and line styles of a figure.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Theme {
    /// White background.
    #[default]
    Light,
    /// Dark background.
    Dark,
    /// White background without a grid, lines in black and grey: for print.
    Print,
}

/// Colours of a theme.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Colours {
    pub(crate) background: &'static str,
    pub(crate) text: &'static str,
    pub(crate) frame: &'static str,
    pub(crate) grid: &'static str,
    /// Missing values of a heat map.
    pub(crate) gap: [u8; 3],
    lines: &'static [&'static str],
}

// Both sets follow the palette of Okabe and Ito, which is distinct under the common forms of colour
// blindness. Yellow has no contrast on white and black none on black, so each theme omits one.
const ON_WHITE: [&str; 7] =
    ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#404040"];
const ON_BLACK: [&str; 7] =
    ["#56b4e9", "#e69f00", "#1fc79a", "#d98cb8", "#f0e442", "#f27533", "#e8e8e8"];

// Similar hues of the 256 ANSI colours with medium brightness, because the background is unknown.
const TERMINAL: [u8; 7] = [33, 208, 36, 170, 44, 178, 244];

/// ANSI colour of the series at `index`.
pub(crate) fn ansi(index: usize) -> u8 {
    TERMINAL[index % TERMINAL.len()]
}

// Colours repeat with another dash pattern, so 28 lines are distinct.
const DASHES: [&str; 4] = ["", "6 3", "2 2.5", "8 3 2 3"];

const LIGHT: Colours = Colours {
    background: "#fff",
    text: "#222",
    frame: "#7a7a7a",
    grid: "#e4e4e4",
    gap: [0xc4; 3],
    lines: &ON_WHITE,
};
const DARK: Colours = Colours {
    background: "#15181c",
    text: "#dcdcdc",
    frame: "#8a8a8a",
    grid: "#2d3238",
    gap: [0x5a; 3],
    lines: &ON_BLACK,
};

const PRINT: Colours = Colours {
    background: "#fff",
    text: "#000",
    frame: "#000",
    grid: "none",
    gap: [0xe0; 3],
    lines: &["#000", "#8a8a8a"],
};

impl Theme {
    pub(crate) fn colours(self) -> Colours {
        match self {
            Self::Light => LIGHT,
            Self::Dark => DARK,
            Self::Print => PRINT,
        }
    }
}

impl Colours {
    /// Style of the series at `index`; repeats after four times the number of colours.
    pub(crate) fn style(&self, index: usize) -> Style {
        let hex = self.lines[index % self.lines.len()];
        Style { hex, dash: DASHES[index / self.lines.len() % DASHES.len()] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_styles_of_28_series_are_distinct() {
        for theme in [Theme::Light, Theme::Dark] {
            let theme = theme.colours();
            let colours: Vec<Style> = (0..28).map(|i| theme.style(i)).collect();
            for (i, a) in colours.iter().enumerate() {
                assert!(colours[i + 1..].iter().all(|b| (a.hex, a.dash) != (b.hex, b.dash)));
            }
            assert_eq!(theme.style(28), theme.style(0));
        }
    }
}
