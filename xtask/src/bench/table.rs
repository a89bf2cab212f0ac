//! A benchmark as data: `benches/NAME/bench.toml`. The method is described in `benches/NAME/method.md`.
//!
//! Text in braces is replaced: `{dir}` and `{disk}` are folders for files, in memory and on a disk; `{side}` is one of
//! the `sizes`; `{driver}` is one of the `programs`; `{length:a.sdf}` is the length of the file `a.sdf` in `{dir}`.
//! `{side / 2 * 8}` is computed from left to right. Tasks with `<name>` are repeated for each of the `variants`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::Result;
use crate::shell::root;

/// Values of the placeholders.
pub(super) type Values = BTreeMap<String, String>;

/// Values by implementations. A key is one or more names, separated by ` | `.
type ByName<T> = BTreeMap<String, T>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Table {
    /// Bytes of all files at scale 1.
    pub(super) files: f64,
    /// Columns of the results: implementations.
    pub(super) columns: Vec<String>,
    /// More columns: the speed of the first implementation relative to the second.
    pub(super) ratios: Vec<(String, String)>,
    /// The unit of the results, unless the task has another one.
    #[serde(default)]
    pub(super) unit: Unit,
    /// The implementation whose counts are used for rates; otherwise each uses its own.
    pub(super) count: Option<String>,
    /// Text below the results; `{memory; TASK; IMPLEMENTATION}` is replaced by a measured value.
    #[serde(default)]
    pub(super) note: String,
    #[serde(default)]
    pub(super) sizes: BTreeMap<String, Size>,
    /// Python packages.
    #[serde(default)]
    pub(super) packages: Vec<String>,
    /// Name, kind and arguments; see `programs.rs`.
    pub(super) programs: Vec<Vec<String>>,
    pub(super) implementations: Vec<Implementation>,
    /// How files are created: an implementation, its command, and optionally the name for the count of its reply.
    pub(super) make: Vec<Vec<String>>,
    pub(super) tasks: Vec<Task>,
}

/// A number that depends on the scale: `full`, times the root of the scale, rounded.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Size {
    full: f64,
    #[serde(default = "one")]
    root: usize,
    #[serde(default = "one")]
    least: usize,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Implementation {
    pub(super) name: String,
    /// The command line, separated by spaces.
    pub(super) run: String,
    /// Precedes every task.
    #[serde(default)]
    pub(super) prefix: String,
    pub(super) threads: Option<usize>,
    /// Whether the program is started for each task.
    #[serde(default)]
    pub(super) restarted: bool,
    /// Whether it is only measured in the first round.
    #[serde(default)]
    pub(super) once: bool,
    /// It is measured in one of so many repetitions.
    #[serde(default = "one")]
    pub(super) every: usize,
    /// Whether results are written without it.
    #[serde(default)]
    pub(super) optional: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Task {
    pub(super) name: String,
    /// Repetitions per round.
    #[serde(default = "one")]
    pub(super) repetitions: usize,
    /// Whether the first implementation of each round runs the task once before it is measured: the
    /// first access to a new file is slower.
    #[serde(default = "yes")]
    pub(super) warm_up: bool,
    commands: ByName<String>,
    /// Files whose data must be equal: name in `{dir}`, offset and length of the data.
    #[serde(default)]
    outputs: ByName<(String, String, String)>,
    pub(super) unit: Option<Unit>,
    /// The task whose count is used for the rate.
    pub(super) count: Option<String>,
    #[serde(default)]
    pub(super) targets: Vec<Goal>,
}

#[derive(Clone, Copy, Default, Deserialize)]
pub(super) enum Unit {
    #[default]
    #[serde(rename = "time")]
    Time,
    #[serde(rename = "GB/s")]
    Gigabytes,
    #[serde(rename = "MB/s")]
    Megabytes,
    /// Megabytes per second, without the unit.
    #[serde(rename = "MB")]
    PlainMegabytes,
    #[serde(rename = "frames/s")]
    Frames,
    /// Nanoseconds per count.
    #[serde(rename = "ns")]
    Nanoseconds,
}

/// A performance target of a task. The first string is the implementation.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Goal {
    /// At least so many times as fast as another implementation.
    Faster(String, String, f64),
    /// Takes less than so many seconds.
    Within(String, f64),
    /// Needs less than so many MiB; the count of the task is its peak memory in bytes.
    Memory(String, u64),
    /// At least so many frames per second.
    FramesPerSecond(String, f64),
    /// As fast as another task, on a smaller file.
    AsFastAs(String, String),
    /// Counts not more bytes than another implementation.
    NotLarger(String, String),
    /// At most so many nanoseconds per count.
    NanosecondsEach(String, f64),
    /// Counts no bytes, and takes less than a millisecond.
    ReadsNothing(String),
}

fn one() -> usize {
    1
}

fn yes() -> bool {
    true
}

impl Table {
    pub(super) fn load(name: &str) -> Result<Self> {
        let path = format!("benches/{name}/bench.toml");
        let fail = |why: &dyn std::fmt::Display| format!("{path}: {why}");
        let text = fs::read_to_string(root().join(&path)).map_err(|e| fail(&e))?;
        let mut table: Value = toml::from_str(&text).map_err(|e| fail(&e))?;
        let variants = table.as_object_mut().and_then(|table| table.remove("variants"));
        if let (Some(Value::Array(variants)), Value::Array(tasks)) = (variants, &mut table["tasks"])
        {
            let (repeated, others): (Vec<Value>, Vec<Value>) =
                tasks.drain(..).partition(|task| task["name"].to_string().contains('<'));
            for variant in variants.iter().filter_map(Value::as_object) {
                tasks.extend(repeated.iter().map(|task| with_variant(task, variant)));
            }
            tasks.extend(others);
        }
        serde_json::from_value(table).map_err(|e| fail(&e))
    }

    pub(super) fn task(&self, name: &str) -> Option<&Task> {
        self.tasks.iter().find(|task| task.name == name)
    }
}

/// The task with `<name>` replaced by the value of the variant; `"<name>"` may become a number.
fn with_variant(value: &Value, variant: &Map<String, Value>) -> Value {
    match value {
        Value::String(text) => {
            let name = text.strip_prefix('<').and_then(|text| text.strip_suffix('>'));
            if let Some(value) = name.and_then(|name| variant.get(name)) {
                return value.clone();
            }
            let replaced = variant.iter().fold(text.clone(), |text, (name, value)| {
                let value = value.as_str().map_or_else(|| value.to_string(), String::from);
                text.replace(&format!("<{name}>"), &value)
            });
            Value::String(replaced)
        }
        Value::Array(all) => all.iter().map(|value| with_variant(value, variant)).collect(),
        Value::Object(all) => {
            all.iter().map(|(name, value)| (name.clone(), with_variant(value, variant))).collect()
        }
        other => other.clone(),
    }
}

impl Size {
    pub(super) fn at(&self, scale: f64) -> String {
        let number = self.full * scale.powf(1.0 / self.root as f64);
        number.round().max(self.least as f64).to_string()
    }
}

impl Task {
    /// The command of an implementation; `None` if it does not have this task.
    pub(super) fn command(&self, name: &str) -> Option<&str> {
        by_name(&self.commands, name).map(String::as_str)
    }

    pub(super) fn output(&self, name: &str) -> Option<&(String, String, String)> {
        by_name(&self.outputs, name)
    }
}

fn by_name<'a, T>(all: &'a ByName<T>, name: &str) -> Option<&'a T> {
    all.iter().find(|(names, _)| names.split(" | ").any(|one| one == name)).map(|(_, value)| value)
}

/// Replaces text in braces.
pub(super) fn replace(text: &str, value: impl Fn(&str) -> Result<String>) -> Result<String> {
    let (mut out, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once('{') {
        let (inside, after) = after.split_once('}').ok_or("`}` is missing")?;
        out += before;
        out += &value(inside)?;
        rest = after;
    }
    Ok(out + rest)
}

/// Replaces all placeholders.
pub(super) fn fill_in(text: &str, values: &Values) -> Result<String> {
    replace(text, |expression| {
        let mut terms = expression.split(' ');
        let mut result = term(terms.next().unwrap_or_default(), values)?;
        while let (Some(operator), Some(other)) = (terms.next(), terms.next()) {
            let number =
                |text: &str| text.parse::<u64>().map_err(|_| format!("{text}: not a number"));
            let (a, b) = (number(&result)?, number(&term(other, values)?)?);
            let computed = match operator {
                "+" => a.checked_add(b),
                "-" => a.checked_sub(b),
                "*" => a.checked_mul(b),
                "/" => a.checked_div(b),
                _ => None,
            };
            result =
                computed.ok_or_else(|| format!("cannot compute {{{expression}}}"))?.to_string();
        }
        Ok(result)
    })
}

fn term(name: &str, values: &Values) -> Result<String> {
    if let (Some(file), Some(folder)) = (name.strip_prefix("length:"), values.get("dir")) {
        let path = Path::new(folder).join(file);
        let meta = fs::metadata(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        return Ok(meta.len().to_string());
    }
    if name.parse::<u64>().is_ok() {
        return Ok(name.into());
    }
    values.get(name).cloned().ok_or_else(|| format!("{{{name}}} is not available"))
}

#[cfg(test)]
mod tests {
    use super::super::BENCHES;
    use super::*;

    #[test]
    fn every_table_is_valid_and_names_only_what_it_defines() {
        for name in BENCHES {
            let table = Table::load(name).unwrap();
            let known = |one: &str| table.implementations.iter().any(|i| i.name == one);
            let mut values: Values =
                ["dir", "disk"].map(|folder| (folder.into(), "none".into())).into();
            values.extend(table.sizes.iter().map(|(size, full)| (size.clone(), full.at(1.0))));
            values.extend(table.programs.iter().map(|one| (one[0].clone(), "program".into())));
            values.extend(
                table.make.iter().filter_map(|one| Some((one.get(2)?.clone(), "1".into()))),
            );
            let check = |text: &str| {
                if !text.contains("{length:") {
                    fill_in(text, &values).unwrap_or_else(|why| panic!("{name}: {text}: {why}"));
                }
            };
            for one in &table.implementations {
                check(&one.run);
                check(&one.prefix);
            }
            for task in &table.tasks {
                for (names, command) in &task.commands {
                    assert!(names.split(" | ").all(known), "{name}: {names}");
                    check(command);
                }
                for names in task.outputs.keys() {
                    assert!(names.split(" | ").all(known), "{name}: {names}");
                }
                let measured = |one: &String| assert!(task.command(one).is_some(), "{name}: {one}");
                for goal in &task.targets {
                    match goal {
                        Goal::Faster(one, other, _) | Goal::NotLarger(one, other) => {
                            measured(one);
                            measured(other);
                        }
                        Goal::AsFastAs(one, other) => {
                            measured(one);
                            assert!(table.task(other).is_some(), "{name}: {other}");
                        }
                        Goal::Within(one, _)
                        | Goal::Memory(one, _)
                        | Goal::FramesPerSecond(one, _)
                        | Goal::NanosecondsEach(one, _)
                        | Goal::ReadsNothing(one) => measured(one),
                    }
                }
            }
            assert!(table.columns.iter().all(|column| known(column)), "{name}");
            assert!(table.ratios.iter().all(|(one, other)| known(one) && known(other)), "{name}");
            assert!(root().join(format!("benches/{name}/method.md")).is_file());
        }
    }

    #[test]
    fn placeholders_are_replaced_and_computed_from_left_to_right() {
        let values = Values::from([("side".into(), "10".into())]);
        assert_eq!(fill_in("a {side}: {side / 4 * 2 + 1}", &values).unwrap(), "a 10: 5");
        assert!(fill_in("{other}", &values).unwrap_err().contains("other"));
        assert!(fill_in("{side - 11}", &values).is_err());
        let size = Size { full: 256.0, root: 3, least: 8 };
        assert_eq!(
            (size.at(1.0), size.at(0.125), size.at(1e-9)),
            ("256".into(), "128".into(), "8".into())
        );
    }

    #[test]
    fn variants_replace_text_and_numbers() {
        let task = serde_json::json!({"name": "<n>: write", "repetitions": "<times>"});
        let variant = serde_json::json!({"n": 32, "times": 20});
        let expected = serde_json::json!({"name": "32: write", "repetitions": 20});
        assert_eq!(with_variant(&task, variant.as_object().unwrap()), expected);
    }
}
