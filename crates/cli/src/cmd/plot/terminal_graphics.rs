//! Detection of the graphics protocol of the terminal from environment variables.
//!
//! Querying the terminal would mix its response with the input of the user.

/// Graphics protocols.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Graphics {
    Kitty,
    Sixel,
}

/// The graphics protocol according to environment variables. Konsole supports the kitty protocol since
/// version 22.04, which is `KONSOLE_VERSION` 220400.
pub(super) fn detect(variable: impl Fn(&str) -> Option<String>) -> Option<Graphics> {
    let set = |name: &str| variable(name).is_some_and(|value| !value.is_empty());
    let term = variable("TERM").unwrap_or_default();
    // Multiplexers inherit the variables of their terminal but do not pass graphics through.
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
    fn terminals_are_detected_and_multiplexers_have_no_graphics() {
        let detected = |variables: &[(&str, &str)]| {
            detect(|name| variables.iter().find(|v| v.0 == name).map(|v| v.1.to_string()))
        };
        let (kitty, sixel) = (Some(Graphics::Kitty), Some(Graphics::Sixel));
        for (variables, expected) in [
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
            assert_eq!(detected(variables), expected, "{variables:?}");
        }
    }
}
