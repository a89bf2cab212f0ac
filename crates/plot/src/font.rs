//! The embedded font: how wide a text is, and how to make it fit.

use std::collections::HashMap;
use std::sync::OnceLock;

use skrifa::instance::{LocationRef, Size};
use skrifa::{FontRef, MetadataProvider};

/// The font file itself; see the crate documentation for what it is.
pub(crate) static FONT: &[u8] = include_bytes!("../font/DejaVuSans-subset.ttf");

/// What SVG text asks for: the embedded family, then a close relative, then anything plain.
pub(crate) const FAMILY: &str = "DejaVu Sans,Verdana,sans-serif";

/// Height above the baseline as a part of the font size, enough for capitals and digits.
pub(crate) const ASCENT: f64 = 0.76;
/// Depth below the baseline as a part of the font size.
#[cfg(test)]
pub(crate) const DESCENT: f64 = 0.24;

/// Advances at size 1 of every character the font has.
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

/// Advance of one character at size 1. The subset has no kerning, so widths simply add up.
fn advance(c: char) -> f64 {
    // What the font lacks is drawn as its box for missing characters, or by a browser in some
    // other font; this is about as wide as either.
    const MISSING: f64 = 0.7;
    advances().get(&c).copied().unwrap_or(MISSING)
}

/// Width in pixels of `text` set at `size`.
pub(crate) fn width(text: &str, size: f64) -> f64 {
    text.chars().map(advance).sum::<f64>() * size
}

/// `text` on one line and without characters that XML or a terminal would choke on.
pub(crate) fn clean(text: &str) -> impl Iterator<Item = char> {
    text.chars().map(|c| match c {
        '\t' | '\n' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}' => ' ',
        // Directional overrides would rearrange what follows; the last two are not allowed in XML.
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{fffe}' | '\u{ffff}' => '\u{fffd}',
        c if c.is_control() => '\u{fffd}',
        c => c,
    })
}

/// The cleaned `text`, shortened with an ellipsis where it is wider than `room` pixels.
pub(crate) fn fit(text: &str, size: f64, room: f64) -> String {
    shorten(text, room, at_size(size))
}

/// The cleaned `text`, shortened in the middle: names that share a long beginning, as paths do,
/// differ at their end.
pub(crate) fn fit_middle(text: &str, room: f64, wide: impl Fn(char) -> f64) -> String {
    let text: String = clean(text).collect();
    let whole: f64 = text.chars().map(&wide).sum();
    if whole <= room {
        return text;
    }
    let mut used = 0.0;
    let mut tail = text.len();
    for (at, c) in text.char_indices().rev() {
        used += wide(c);
        if used > room * 0.6 {
            break;
        }
        tail = at;
    }
    let used: f64 = text[tail..].chars().map(&wide).sum();
    format!("{}{}", shorten(&text, room - used, wide), &text[tail..])
}

/// The measure of characters set at `size`.
pub(crate) fn at_size(size: f64) -> impl Fn(char) -> f64 {
    move |c| advance(c) * size
}

/// The longest beginning of the cleaned `text` that fits into `room` by the measure `wide`.
pub(crate) fn shorten(text: &str, room: f64, wide: impl Fn(char) -> f64) -> String {
    let ellipsis = wide('…');
    let mut out = String::new();
    let mut used = 0.0;
    // Where to cut if the rest turns out not to fit: the last place with room for the ellipsis.
    let mut cut = 0;
    for c in clean(text) {
        used += wide(c);
        if used > room {
            out.truncate(cut);
            if ellipsis <= room {
                out.push('…');
            }
            return out;
        }
        out.push(c);
        if used + ellipsis <= room {
            cut = out.len();
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_font_has_every_sign_the_labels_use() {
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
    fn long_texts_are_cut_to_fit() {
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
