//! Fonts for characters that the embedded font does not have: those of the system, or else a transliteration.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

use resvg::usvg::fontdb::{Database, FaceInfo, ID, Source, Stretch, Style, Weight};
use skrifa::{FontRef, MetadataProvider};

use crate::font::{FONT, is_in_font};

/// The text of a figure and the fonts that have all of its characters. Characters that no font has are replaced by
/// Latin letters.
pub(super) fn prepared(svg: &str) -> (Cow<'_, str>, Arc<Database>) {
    let missing: BTreeSet<char> =
        svg.chars().filter(|c| !is_in_font(*c) && !c.is_control()).collect();
    if missing.is_empty() {
        return (svg.into(), embedded());
    }
    let fonts = with_system_fonts();
    let lacking = without_glyph(&fonts, missing);
    if lacking.is_empty() {
        return (svg.into(), fonts);
    }
    let mut out = String::with_capacity(svg.len());
    for c in svg.chars() {
        match lacking.contains(&c).then(|| deunicode::deunicode_char(c)) {
            None => out.push(c),
            // Markup is never transliterated, and no transliteration may become markup.
            Some(Some(latin)) => out.extend(latin.chars().filter(|c| !"<>&\"".contains(*c))),
            Some(None) => out.push('\u{fffd}'),
        }
    }
    (out.into(), fonts)
}

/// A font for a character that the fonts in `used` do not have: an upright one of normal weight and width if there is
/// one.
pub(super) fn face(c: char, used: &[ID], fonts: &mut Arc<Database>) -> Option<ID> {
    let has = |face: &&FaceInfo| {
        let mapped = fonts.with_face_data(face.id, |data, index| {
            FontRef::from_index(data, index).is_ok_and(|font| font.charmap().map(c).is_some())
        });
        !used.contains(&face.id) && mapped == Some(true)
    };
    let unlike = |face: &&FaceInfo| {
        let regular = face.style == Style::Normal && face.weight == Weight::NORMAL;
        (!regular, face.stretch != Stretch::Normal, face.monospaced)
    };
    fonts.faces().filter(has).min_by_key(unlike).map(|face| face.id)
}

/// The embedded font as default for all text.
fn embedded() -> Arc<Database> {
    static FONTS: OnceLock<Arc<Database>> = OnceLock::new();
    Arc::clone(FONTS.get_or_init(|| Arc::new(database())))
}

fn database() -> Database {
    let mut fonts = Database::new();
    fonts.load_font_source(Source::Binary(Arc::new(FONT)));
    fonts.set_sans_serif_family("DejaVu Sans");
    fonts.set_serif_family("DejaVu Sans");
    fonts
}

/// The embedded font and all fonts of the system.
fn with_system_fonts() -> Arc<Database> {
    static FONTS: OnceLock<Arc<Database>> = OnceLock::new();
    let load = || {
        let mut fonts = database();
        fonts.load_system_fonts();
        Arc::new(fonts)
    };
    Arc::clone(FONTS.get_or_init(load))
}

/// The characters that no font has.
fn without_glyph(fonts: &Database, mut characters: BTreeSet<char>) -> BTreeSet<char> {
    for face in fonts.faces() {
        if characters.is_empty() {
            break;
        }
        fonts.with_face_data(face.id, |data, index| {
            if let Ok(font) = FontRef::from_index(data, index) {
                let known = font.charmap();
                characters.retain(|c| known.map(*c).is_none());
            }
        });
    }
    characters
}
