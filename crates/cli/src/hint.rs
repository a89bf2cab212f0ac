//! Hints of errors and findings in the terms of the command line.

use spile::Hint;

/// The sentence shown after `hint:`.
pub(crate) fn render(hint: &Hint) -> String {
    match hint {
        Hint::ListObjects => "`spile ls FILE` lists the objects".into(),
        Hint::RaiseMemory => "raise the limit with --max-memory, or select less".into(),
        Hint::SelectArrays => "choose arrays with --select".into(),
        Hint::SelectFrames => "choose frames with --frames or --frame".into(),
        Hint::Overwrite => "--overwrite replaces it".into(),
        Hint::ChooseFormat(names) => format!("name the format with -t: {}", names.join(", ")),
        Hint::Operation { name, effect } => format!("`spile {name} FILE` {effect}"),
        other => other.to_string(),
    }
}
