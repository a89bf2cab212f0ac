//! Attributes of a node: named values in file order, found by name in constant time.

use std::fmt;
use std::hash::BuildHasher as _;

use hashbrown::{DefaultHashBuilder, HashTable};

use super::Value;

/// Lists up to this length are searched from the front; longer ones have an index.
const LINEAR: usize = 8;

/// Named values in the order of the file. Names may repeat; look-ups return the first.
#[derive(Clone, Default)]
pub struct Attrs {
    list: Vec<(String, Value)>,
    index: Option<Box<Index>>,
}

#[derive(Clone, Debug, Default)]
struct Index {
    hasher: DefaultHashBuilder,
    /// Positions of the first attribute of each name.
    first: HashTable<u32>,
}

impl Index {
    fn of(list: &[(String, Value)]) -> Self {
        let mut index = Self::default();
        index.first.reserve(list.len(), |_| 0);
        for position in 0..list.len() {
            index.insert(list, position);
        }
        index
    }

    fn find(&self, list: &[(String, Value)], name: &str) -> Option<usize> {
        let found = self.first.find(self.hasher.hash_one(name), |k| list[*k as usize].0 == name);
        found.map(|k| *k as usize)
    }

    fn insert(&mut self, list: &[(String, Value)], position: usize) {
        let name = list[position].0.as_str();
        if self.find(list, name).is_none() {
            let hasher = &self.hasher;
            let rehash = |k: &u32| hasher.hash_one(list[*k as usize].0.as_str());
            self.first.insert_unique(hasher.hash_one(name), position as u32, rehash);
        }
    }
}

impl Attrs {
    /// An empty list.
    pub const fn new() -> Self {
        Self { list: Vec::new(), index: None }
    }

    /// Appends an attribute, whether or not the name exists.
    pub fn push(&mut self, name: impl Into<String>, value: impl Into<Value>) {
        self.list.push((name.into(), value.into()));
        match &mut self.index {
            Some(index) => index.insert(&self.list, self.list.len() - 1),
            None if self.list.len() > LINEAR => {
                self.index = Some(Box::new(Index::of(&self.list)));
            }
            None => {}
        }
    }

    /// Appends a text, unless it is empty.
    pub fn push_text(&mut self, name: &str, text: &str) {
        if !text.is_empty() {
            self.push(name, text);
        }
    }

    /// Replaces the first attribute called `name`, or appends it.
    pub fn set(&mut self, name: impl Into<String>, value: impl Into<Value>) {
        let name = name.into();
        match self.position(&name) {
            Some(k) => self.list[k].1 = value.into(),
            None => self.push(name, value),
        }
    }

    /// Removes every attribute called `name` and returns the value of the first.
    pub fn remove(&mut self, name: &str) -> Option<Value> {
        let value = self.get(name).cloned()?;
        self.retain(|own, _| own != name);
        Some(value)
    }

    /// Keeps the attributes for which `keep` holds.
    pub fn retain(&mut self, mut keep: impl FnMut(&str, &Value) -> bool) {
        self.list.retain(|(name, value)| keep(name, value));
        let indexed = self.list.len() > LINEAR;
        self.index = indexed.then(|| Box::new(Index::of(&self.list)));
    }

    fn position(&self, name: &str) -> Option<usize> {
        match &self.index {
            Some(index) => index.find(&self.list, name),
            None => self.list.iter().position(|(own, _)| own == name),
        }
    }

    /// The value called `name`.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.position(name).map(|k| &self.list[k].1)
    }

    /// The value called `name`, if it is text.
    pub fn get_str(&self, name: &str) -> Option<&str> {
        match self.get(name)? {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The value called `name`, if it is a number.
    pub fn get_f64(&self, name: &str) -> Option<f64> {
        f64::try_from(self.get(name)?).ok()
    }

    /// The value called `name`, if it is an integer that fits.
    pub fn get_i64(&self, name: &str) -> Option<i64> {
        i64::try_from(self.get(name)?).ok()
    }

    /// The value called `name`, if it is an integer that is not negative.
    pub fn get_u64(&self, name: &str) -> Option<u64> {
        u64::try_from(self.get(name)?).ok()
    }

    /// The value called `name`, if it is true or false.
    pub fn get_bool(&self, name: &str) -> Option<bool> {
        bool::try_from(self.get(name)?).ok()
    }

    /// There is an attribute called `name`.
    pub fn contains(&self, name: &str) -> bool {
        self.position(name).is_some()
    }

    /// All attributes in file order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&str, &Value)> + ExactSizeIterator {
        self.into_iter()
    }

    /// Number of attributes.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// No attributes.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Approximate memory in bytes.
    pub fn memory(&self) -> u64 {
        self.list.iter().map(|(name, value)| Self::cost(name, value)).sum()
    }

    /// Approximate memory in bytes of one attribute in a list.
    pub fn cost(name: &str, value: &Value) -> u64 {
        let slot = size_of::<(String, Value)>() + size_of::<u32>() + name.len();
        slot as u64 + value.memory()
    }
}

impl fmt::Debug for Attrs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl PartialEq for Attrs {
    fn eq(&self, other: &Self) -> bool {
        self.list == other.list
    }
}

impl From<Vec<(String, Value)>> for Attrs {
    fn from(list: Vec<(String, Value)>) -> Self {
        let index = (list.len() > LINEAR).then(|| Box::new(Index::of(&list)));
        Self { list, index }
    }
}

impl<const N: usize> From<[(&str, Value); N]> for Attrs {
    fn from(list: [(&str, Value); N]) -> Self {
        list.into_iter().collect()
    }
}

impl<S: Into<String>> FromIterator<(S, Value)> for Attrs {
    fn from_iter<I: IntoIterator<Item = (S, Value)>>(attrs: I) -> Self {
        let list: Vec<_> = attrs.into_iter().map(|(name, value)| (name.into(), value)).collect();
        list.into()
    }
}

impl<S: Into<String>> Extend<(S, Value)> for Attrs {
    fn extend<I: IntoIterator<Item = (S, Value)>>(&mut self, attrs: I) {
        for (name, value) in attrs {
            self.push(name, value);
        }
    }
}

impl IntoIterator for Attrs {
    type Item = (String, Value);
    type IntoIter = std::vec::IntoIter<(String, Value)>;

    fn into_iter(self) -> Self::IntoIter {
        self.list.into_iter()
    }
}

/// Iterator over attributes in file order.
pub type Iter<'a> = std::iter::Map<
    std::slice::Iter<'a, (String, Value)>,
    fn(&'a (String, Value)) -> (&'a str, &'a Value),
>;

impl<'a> IntoIterator for &'a Attrs {
    type Item = (&'a str, &'a Value);
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Iter<'a> {
        self.list.iter().map(|(name, value)| (name.as_str(), value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn look_ups_return_the_first_of_equal_names_in_short_and_long_lists() {
        let mut attrs = Attrs::new();
        for k in 0..3_u64 {
            attrs.push("units", k);
        }
        assert_eq!((attrs.get_u64("units"), attrs.len()), (Some(0), 3));
        for k in 0..100_u64 {
            attrs.push(format!("a{k}"), k);
            attrs.push("units", k);
        }
        assert_eq!((attrs.get_u64("units"), attrs.get_u64("a57")), (Some(0), Some(57)));
        attrs.set("a57", "changed");
        assert_eq!((attrs.get_str("a57"), attrs.get("b")), (Some("changed"), None));
        assert_eq!(attrs.remove("units"), Some(Value::UInt(0)));
        assert_eq!(
            (attrs.len(), attrs.contains("units"), attrs.get_u64("a99")),
            (100, false, Some(99))
        );
        assert_eq!(attrs.iter().map(|(name, _)| name).nth(1), Some("a1"));
    }

    #[test]
    fn a_million_attributes_are_found_at_once() {
        let attrs: Attrs = (0..1_000_000_u64).map(|k| (k.to_string(), Value::UInt(k))).collect();
        let found = (0..1_000_000).filter(|k| attrs.get_u64(&k.to_string()) == Some(*k)).count();
        assert_eq!(found, 1_000_000);
    }
}
