//! Which graphics the terminal offers, by the words it leaves in the environment.
//!
//! A terminal could also be asked, but its answer would come in between what the user is typing.

/// What a terminal can show besides characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Graphics {
    Kitty,
    Sixel,
}

/// The graphics that the variables of the environment promise. Konsole understands kitty's protocol since
/// version 22.04; it counts as 220400.
pub(super) fn graphics(variable: impl Fn(&str) -> Option<String>) -> Option<Graphics> {
    let set = |name: &str| variable(name).is_some_and(|value| !value.is_empty());
    let term = variable("TERM").unwrap_or_default();
    // Multiplexers hand on the variables of the terminal they were started in, but not its pictures.
    if set("TMUX") || set("STY") || term.starts_with("screen") || term.starts_with("tmux") {
        return None;
    }
    let program = variable("TERM_PROGRAM").unwrap_or_default().to_ascii_lowercase();
    let konsole = variable("KONSOLE_VERSION").and_then(|v| v.parse::<u32>().ok());
    let kitty = set("KITTY_WINDOW_ID")
        || matches!(term.as_str(), "xterm-kitty" | "xterm-ghostty")
        || matches!(program.as_str(), "kitty" | "ghostty" | "wezterm")
        || konsole.is_some_and(|version| version >= 220_400);
    let name = term.split('-').next().unwrap_or_default();
    let sixel = matches!(name, "foot" | "mlterm" | "contour" | "yaft")
        || term.contains("sixel")
        || set("MLTERM")
        || program == "iterm.app";
    match (kitty, sixel) {
        (true, _) => Some(Graphics::Kitty),
        (false, true) => Some(Graphics::Sixel),
        (false, false) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminals_are_known_by_their_words_and_multiplexers_hide_them() {
        let offered = |words: &[(&str, &str)]| {
            graphics(|name| words.iter().find(|w| w.0 == name).map(|w| w.1.to_string()))
        };
        let (kitty, sixel) = (Some(Graphics::Kitty), Some(Graphics::Sixel));
        for (words, expected) in [
            (&[("TERM", "xterm-kitty")][..], kitty),
            (&[("TERM", "xterm-256color"), ("TERM_PROGRAM", "WezTerm")], kitty),
            (&[("TERM", "xterm-256color"), ("KONSOLE_VERSION", "230800")], kitty),
            (&[("TERM", "xterm-256color"), ("KONSOLE_VERSION", "210400")], None),
            (&[("TERM", "xterm-256color"), ("KITTY_WINDOW_ID", "1")], kitty),
            (&[("TERM", "foot-extra")], sixel),
            (&[("TERM", "mlterm-256color")], sixel),
            (&[("TERM", "xterm-256color"), ("TERM_PROGRAM", "iTerm.app")], sixel),
            (&[("TERM", "xterm-256color")], None),
            (&[("TERM", "xterm-256color"), ("KITTY_WINDOW_ID", "")], None),
            (&[("TERM", "tmux-256color"), ("KITTY_WINDOW_ID", "1")], None),
            (&[("TERM", "xterm-kitty"), ("TMUX", "/tmp/tmux-0/default,1,0")], None),
            (&[("TERM", "screen.xterm-256color"), ("MLTERM", "3.9")], None),
            (&[], None),
        ] {
            assert_eq!(offered(words), expected, "{words:?}");
        }
    }
}
