//! Names of coded values.

/// Name of a `RECORD_TYPE`; the number itself if unknown.
pub(crate) fn record_type(number: i16) -> String {
    const NAMES: [&str; 10] = [
        "single sweep",
        "interleaved",
        "histogram",
        "graph",
        "filter coefficients",
        "complex",
        "extrema",
        "sequence",
        "centred RIS",
        "peak detect",
    ];
    let name = usize::try_from(number).ok().and_then(|k| NAMES.get(k));
    name.map_or_else(|| number.to_string(), ToString::to_string)
}
