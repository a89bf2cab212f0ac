//! The embedded font: widths of text, and shortening to a width.

use std::collections::HashMap;
use std::sync::OnceLock;

use skrifa::instance::{LocationRef, Size};
use skrifa::{FontRef, MetadataProvider};

/// The font file; see the crate documentation.
pub(crate) static FONT: &[u8] = include_bytes!("../font/DejaVuSans-subset.ttf");

/// SVG font family: the embedded font, a similar one, any sans-serif.
pub(crate) const FAMILY: &str = "DejaVu Sans,Verdana,sans-serif";

/// Height of capitals and digits above the baseline, relative to the font size.
pub(crate) const ASCENT: f64 = 0.76;
/// Depth below the baseline, relative to the font size.
#[cfg(test)]
pub(crate) const DESCENT: f64 = 0.24;

/// Advance widths at size 1 of all characters of the font.
fn advances() -> &'static HashMap<char, f64> {
    static ADVANCES: OnceLock<HashMap<char, f64>> = OnceLock::new();
    ADVANCES.get_or_init(|| {
        let Ok(font) = FontRef::new(FONT) else { return HashMap::new() };
        let metrics = font.glyph_metrics(Size::new(1.0), LocationRef::default());
        font.charmap()
            .mappings()
            .filter_map(|(code, glyph)| {
                Some((char::from_u32(code)?, f64::from(metrics.advance_width(glyph)?)))
            })
            .collect()
    })
}

/// Advance width of a character at size 1. The font has no kerning, so widths add up.
fn advance(c: char) -> f64 {
    // Approximate width of the box for missing characters, or of the fallback font of a browser.
    const MISSING: f64 = 0.7;
    advances().get(&c).copied().unwrap_or(MISSING)
}

/// Whether the embedded font has a character.
pub(crate) fn is_in_font(c: char) -> bool {
    advances().contains_key(&c)
}

/// Width in pixels of `text` at font size `size`.
pub(crate) fn width(text: &str, size: f64) -> f64 {
    text.chars().map(advance).sum::<f64>() * size
}

/// Characters of `text` with line breaks replaced by spaces, and characters that are not allowed in XML or
/// that control a terminal replaced by U+FFFD.
pub(crate) fn clean(text: &str) -> impl Iterator<Item = char> {
    text.chars().map(|c| match c {
        '\t' | '\n' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}' => ' ',
        // Directional overrides, and two characters that are not allowed in XML.
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{fffe}' | '\u{ffff}' => '\u{fffd}',
        c if c.is_control() => '\u{fffd}',
        c => c,
    })
}

/// The cleaned `text`, shortened at the end with an ellipsis to at most `max_width` pixels.
pub(crate) fn fit(text: &str, size: f64, max_width: f64) -> String {
    shorten(text, max_width, at_size(size))
}

/// The cleaned `text`, shortened in the middle with an ellipsis to at most `max_width`, because paths often
/// differ only at the end. `char_width` gives the width of a character.
pub(crate) fn fit_middle(text: &str, max_width: f64, char_width: impl Fn(char) -> f64) -> String {
    let text: String = clean(text).collect();
    let total: f64 = text.chars().map(&char_width).sum();
    if total <= max_width {
        return text;
    }
    let mut used = 0.0;
    let mut tail = text.len();
    for (at, c) in text.char_indices().rev() {
        used += char_width(c);
        if used > max_width * 0.6 {
            break;
        }
        tail = at;
    }
    let used: f64 = text[tail..].chars().map(&char_width).sum();
    format!("{}{}", shorten(&text, max_width - used, char_width), &text[tail..])
}

/// Width in pixels of a character at font size `size`.
pub(crate) fn at_size(size: f64) -> impl Fn(char) -> f64 {
    move |c| advance(c) * size
}

/// The cleaned `text`, shortened at the end with an ellipsis to at most `max_width`. `char_width` gives the
/// width of a character.
pub(crate) fn shorten(text: &str, max_width: f64, char_width: impl Fn(char) -> f64) -> String {
    let ellipsis = char_width('…');
    let mut out = String::new();
    let mut used = 0.0;
    // Length of the text before the ellipsis if the text does not fit.
    let mut cut = 0;
    for c in clean(text) {
        used += char_width(c);
        if used > max_width {
            out.truncate(cut);
            if ellipsis <= max_width {
                out.push('…');
            }
            return out;
        }
        out.push(c);
        if used + ellipsis <= max_width {
            cut = out.len();
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_font_has_all_characters_of_the_labels() {
        for c in "0123456789.−×⁻⁰¹²³⁴⁵⁶⁷⁸⁹µΩ+…°αω√∞≤→₀Åħ\u{fffd}".chars()
        {
            assert!(advances().contains_key(&c), "{c} is missing");
        }
    }

    #[test]
    fn widths_come_from_the_font() {
        assert!(width("iiii", 10.0) < width("mmmm", 10.0));
        assert!((width("0000", 10.0) - 4.0 * width("0", 10.0)).abs() < 1e-9);
        assert_eq!(width("", 10.0), 0.0);
    }

    #[test]
    fn long_texts_are_shortened() {
        let long = "measurement ".repeat(1000);
        let cut = fit(&long, 12.0, 100.0);
        assert!(cut.ends_with('…') && width(&cut, 12.0) <= 100.0);
        assert_eq!(fit("short", 12.0, 100.0), "short");
        assert_eq!(fit("short", 12.0, 0.0), "");
        let [a, b] = ["a", "b"].map(|end| format!("Derived/Number_Density/electron_{end}"));
        let [a, b] = [a, b].map(|name| fit_middle(&name, 90.0, at_size(12.0)));
        assert!(a != b && a.contains('…') && width(&a, 12.0) <= 90.0, "{a} {b}");
        assert_eq!(fit("a\nb\u{1b}[31m\u{0}", 12.0, 1000.0), "a b\u{fffd}[31m\u{fffd}");
    }
}
