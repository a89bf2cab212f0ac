//! Images in a terminal: the kitty graphics protocol, and sixel.

use std::collections::HashMap;
use std::fmt::Write as _;

use base64_simd::STANDARD;
use resvg::tiny_skia::Pixmap;

use crate::colourmap::Rgb;

/// Encodes a PNG file for the kitty graphics protocol (transmit and display, format 100, chunks of at most
/// 4096 bytes), scaled to `columns` character columns if given, with a final newline.
#[must_use]
pub fn kitty(png: &[u8], columns: Option<usize>) -> String {
    let text = STANDARD.encode_to_string(png);
    let mut out = String::with_capacity(text.len() + text.len() / 256 + 64);
    let mut rest = text.as_str();
    let mut first = true;
    while first || !rest.is_empty() {
        let (chunk, after) = rest.split_at(rest.len().min(4096));
        let more = u8::from(!after.is_empty());
        let keys = match columns {
            _ if !first => String::new(),
            None => "a=T,f=100,".to_string(),
            Some(columns) => format!("a=T,f=100,c={columns},"),
        };
        let _ = write!(out, "\x1b_G{keys}m={more};{chunk}\x1b\\");
        (rest, first) = (after, false);
    }
    out.push('\n');
    out
}

/// Size of the sixel palette of most terminals.
const MAX_COLOURS: usize = 256;

/// Encodes an image as sixels: bands of six rows, with one pass per colour. The palette has the 256 most
/// frequent colours; other colours are replaced by the nearest one.
pub(crate) fn sixel(canvas: &Pixmap) -> String {
    let (width, height) = (canvas.width() as usize, canvas.height() as usize);
    // Figures have an opaque background, so premultiplied colours are the colours themselves.
    let pixels: Vec<Rgb> = canvas.pixels().iter().map(|p| [p.red(), p.green(), p.blue()]).collect();
    let (palette, numbers) = quantise(&pixels);
    let mut out = format!("\x1bPq\"1;1;{width};{height}");
    for (k, colour) in palette.iter().enumerate() {
        let [r, g, b] = colour.map(|v| (u32::from(v) * 100 + 127) / 255);
        let _ = write!(out, "#{k};2;{r};{g};{b}");
    }
    for band in numbers.chunks(6 * width.max(1)) {
        // Bits of each column, per colour.
        let mut used: HashMap<u8, Vec<u8>> = HashMap::new();
        for (at, number) in band.iter().enumerate() {
            let bits = used.entry(*number).or_insert_with(|| vec![0; width]);
            bits[at % width] |= 1 << (at / width);
        }
        let mut used: Vec<_> = used.into_iter().collect();
        used.sort_unstable_by_key(|u| u.0);
        for (number, bits) in used {
            let _ = write!(out, "#{number}");
            for run in bits.chunk_by(|a, b| a == b) {
                let symbol = char::from(63 + run[0]);
                match run.len() {
                    count @ 4.. => {
                        let _ = write!(out, "!{count}{symbol}");
                    }
                    count => out.extend(std::iter::repeat_n(symbol, count)),
                }
            }
            out.push('$');
        }
        out.push('-');
    }
    out.push_str("\x1b\\\n");
    out
}

/// Palette, and the palette index of each pixel.
fn quantise(pixels: &[Rgb]) -> (Vec<Rgb>, Vec<u8>) {
    // Group colours by their upper five or six bits.
    let key = |[r, g, b]: Rgb| u16::from(r >> 3) << 11 | u16::from(g >> 2) << 5 | u16::from(b >> 3);
    let mut groups: HashMap<u16, (u64, [u64; 3])> = HashMap::new();
    for pixel in pixels {
        let (count, sum) = groups.entry(key(*pixel)).or_default();
        *count += 1;
        sum.iter_mut().zip(pixel).for_each(|(s, p)| *s += u64::from(*p));
    }
    let mean = |(count, sum): (u64, [u64; 3])| sum.map(|s| ((s + count / 2) / count) as u8);
    let mut frequent: Vec<(u16, (u64, [u64; 3]))> = groups.into_iter().collect();
    frequent.sort_unstable_by_key(|(key, (count, _))| (std::cmp::Reverse(*count), *key));
    let colours: Vec<Rgb> = frequent.iter().map(|(_, group)| mean(*group)).collect();
    let palette = colours[..colours.len().min(MAX_COLOURS)].to_vec();
    let distance_squared = |a: Rgb, b: Rgb| -> i32 {
        a.iter().zip(b).map(|(x, y)| (i32::from(*x) - i32::from(y)).pow(2)).sum()
    };
    let nearest =
        |colour: Rgb| (0..palette.len()).min_by_key(|k| distance_squared(palette[*k], colour));
    let numbers: HashMap<u16, u8> = frequent
        .iter()
        .zip(&colours)
        .map(|((key, _), colour)| (*key, nearest(*colour).unwrap_or(0) as u8))
        .collect();
    let all = pixels.iter().map(|p| numbers.get(&key(*p)).copied().unwrap_or(0)).collect();
    (palette, all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kitty_chunks_are_the_encoded_image() {
        let png: Vec<u8> = (0..10_000_u32).map(|k| (k * 7) as u8).collect();
        let text = kitty(&png, None);
        let chunks: Vec<&str> = text.trim_end().split("\x1b\\").filter(|p| !p.is_empty()).collect();
        assert_eq!(chunks.len(), STANDARD.encode_to_string(&png).len().div_ceil(4096));
        assert!(chunks[0].starts_with("\x1b_Ga=T,f=100,m=1;"));
        assert!(chunks.last().unwrap().starts_with("\x1b_Gm=0;"));
        let body: String = chunks.iter().map(|p| p.split_once(';').unwrap().1).collect();
        assert_eq!(body, STANDARD.encode_to_string(&png));
        assert!(kitty(&[1], Some(80)).starts_with("\x1b_Ga=T,f=100,c=80,m=0;"));
    }

    /// Decodes sixels.
    fn decode(text: &str) -> (usize, usize, Vec<[u32; 3]>) {
        let body = text.strip_prefix("\x1bPq\"1;1;").unwrap().strip_suffix("\x1b\\\n").unwrap();
        let number = |s: &str| s.chars().take_while(char::is_ascii_digit).collect::<String>();
        let width: usize = number(body).parse().unwrap();
        let rest = &body[number(body).len() + 1..];
        let height: usize = number(rest).parse().unwrap();
        let mut rest = &rest[number(rest).len()..];
        let (mut palette, mut colour) = (HashMap::new(), 0);
        let (mut x, mut top) = (0, 0);
        let mut pixels = vec![[999; 3]; width * height];
        while let Some(symbol) = rest.chars().next() {
            rest = &rest[1..];
            let mut take = || {
                let digits = number(rest);
                rest = &rest[digits.len()..];
                digits.parse::<usize>().unwrap()
            };
            let (count, symbol) = match symbol {
                '#' => {
                    colour = take();
                    if rest.starts_with(";2;") {
                        let mut values = [0; 3];
                        rest = &rest[2..];
                        for value in &mut values {
                            let digits = number(&rest[1..]);
                            *value = digits.parse().unwrap();
                            rest = &rest[1 + digits.len()..];
                        }
                        palette.insert(colour, values);
                    }
                    continue;
                }
                '$' => {
                    x = 0;
                    continue;
                }
                '-' => {
                    (x, top) = (0, top + 6);
                    continue;
                }
                '!' => {
                    let count = take();
                    let symbol = rest.chars().next().unwrap();
                    rest = &rest[1..];
                    (count, symbol)
                }
                symbol => (1, symbol),
            };
            for _ in 0..count {
                for row in 0..6 {
                    if (symbol as u32 - 63) >> row & 1 == 1 {
                        pixels[(top + row) * width + x] = palette[&colour];
                    }
                }
                x += 1;
            }
        }
        (width, height, pixels)
    }

    #[test]
    fn sixels_restore_every_pixel() {
        let mut canvas = Pixmap::new(17, 20).unwrap();
        let colour = |k: usize| [(k % 5 * 60) as u8, (k % 3 * 120) as u8, (k % 7 * 40) as u8];
        for (k, bytes) in canvas.data_mut().chunks_exact_mut(4).enumerate() {
            bytes[..3].copy_from_slice(&colour(k));
            bytes[3] = 255;
        }
        let (width, height, pixels) = decode(&sixel(&canvas));
        assert_eq!((width, height), (17, 20));
        for (k, found) in pixels.iter().enumerate() {
            let expected = colour(k).map(|v| (u32::from(v) * 100 + 127) / 255);
            assert_eq!(*found, expected, "pixel {k}");
        }
    }
}
