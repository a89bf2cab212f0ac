//! Expressions of particle variables, such as `sqrt(1 + (px^2 + py^2) / (m_e * c)^2)`.

use spile_core::computed::{Function, store_f64};
use spile_core::{Array, Axes, DType, Error, Hint, Result, Selection, Slice, tree};

/// Maximum nesting of an expression.
const MAX_DEPTH: usize = 64;

/// Maximum length of an expression in bytes.
const MAX_LENGTH: usize = 4096;

/// Physical constants in SI units (CODATA 2018).
const CONSTANTS: [(&str, f64); 7] = [
    ("pi", std::f64::consts::PI),
    ("c", 299_792_458.0),
    ("q_e", 1.602_176_634e-19),
    ("m_e", 9.109_383_701_5e-31),
    ("m_p", 1.672_621_923_69e-27),
    ("epsilon_0", 8.854_187_812_8e-12),
    ("mu_0", 1.256_637_062_12e-6),
];

/// A function of one number.
type Unary = fn(f64) -> f64;

/// A function of two numbers.
type Binary = fn(f64, f64) -> f64;

/// Functions of one argument.
const FUNCTIONS: [(&str, Unary); 10] = [
    ("sqrt", f64::sqrt),
    ("abs", f64::abs),
    ("exp", f64::exp),
    ("log", f64::ln),
    ("log10", f64::log10),
    ("sin", f64::sin),
    ("cos", f64::cos),
    ("tan", f64::tan),
    ("atan", f64::atan),
    ("floor", f64::floor),
];

/// Functions of two arguments.
const BINARY_FUNCTIONS: [(&str, Binary); 4] =
    [("atan2", f64::atan2), ("hypot", f64::hypot), ("min", f64::min), ("max", f64::max)];

/// Comparisons; true is 1.
const COMPARE: [Binary; 6] = [
    |a, b| f64::from(a <= b),
    |a, b| f64::from(a >= b),
    |a, b| f64::from(a == b),
    |a, b| f64::from(a != b),
    |a, b| f64::from(a < b),
    |a, b| f64::from(a > b),
];

/// An expression whose variables are numbered in the order in which they occur.
#[derive(Clone, Debug)]
pub struct Expression {
    root: Term,
    variables: Vec<String>,
    /// Number of operations.
    terms: u64,
}

#[derive(Clone, Debug)]
enum Term {
    Number(f64),
    Variable(usize),
    Unary(Unary, Box<Term>),
    Binary(Binary, Box<Term>, Box<Term>),
}

impl Expression {
    /// Parses an expression of numbers, `variables`, constants and functions. Names are compared without case; fails
    /// with the position of what is not understood.
    pub fn parse(text: &str, variables: &[String]) -> Result<Self> {
        if text.len() > MAX_LENGTH {
            return Err(Error::argument(format!(
                "an expression has at most {MAX_LENGTH} characters"
            )));
        }
        let mut parser =
            Parser { text, at: 0, depth: 0, known: variables, used: Vec::new(), terms: 0 };
        let root = parser.comparison()?;
        parser.skip_space();
        if parser.at < text.len() {
            return Err(parser.error("expected an operator"));
        }
        Ok(Self { root, variables: parser.used, terms: parser.terms })
    }

    /// The names of the variables, as given to [`Expression::parse`].
    pub fn variables(&self) -> &[String] {
        &self.variables
    }
}

impl Function for Expression {
    fn name(&self) -> &'static str {
        "expression"
    }

    fn memory(&self, count: u64) -> u64 {
        count.saturating_mul(8 * (self.variables.len() as u64 + self.terms + 1))
    }

    fn compute(&self, inputs: &[Array], first: u64, out: &mut [u8]) -> Result<()> {
        let count = (out.len() / DType::F64.size()) as u64;
        let rows = Selection(vec![Slice::range(first, first + count)]);
        let columns = inputs
            .iter()
            .map(|array| array.read_f64(&rows, Axes::Stored))
            .collect::<Result<Vec<_>>>()?;
        store_f64(DType::F64, &self.root.values(&columns, count as usize), out)
    }
}

impl Term {
    fn values(&self, columns: &[Vec<f64>], count: usize) -> Vec<f64> {
        match self {
            Self::Number(value) => vec![*value; count],
            Self::Variable(k) => columns.get(*k).cloned().unwrap_or_default(),
            Self::Unary(function, term) => {
                let mut values = term.values(columns, count);
                for value in &mut values {
                    *value = function(*value);
                }
                values
            }
            Self::Binary(function, left, right) => {
                let mut values = left.values(columns, count);
                let right = right.values(columns, count);
                for (a, b) in values.iter_mut().zip(&right) {
                    *a = function(*a, *b);
                }
                values
            }
        }
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    known: &'a [String],
    used: Vec<String>,
    terms: u64,
}

impl<'a> Parser<'a> {
    fn error(&self, message: &str) -> Error {
        let message = format!("{message} at character {} of \"{}\"", self.at + 1, self.text);
        Error::argument(message)
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn skip_space(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
    }

    /// Skips one of `symbols`, of which longer ones come first, and returns its number.
    fn symbol(&mut self, symbols: &[&str]) -> Option<usize> {
        self.skip_space();
        let found = symbols.iter().position(|symbol| self.rest().starts_with(symbol))?;
        self.at += symbols[found].len();
        Some(found)
    }

    fn binary(&mut self, function: Binary, left: Term, right: Term) -> Term {
        self.terms += 1;
        Term::Binary(function, Box::new(left), Box::new(right))
    }

    fn comparison(&mut self) -> Result<Term> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.error("nested too deeply"));
        }
        let left = self.sum()?;
        let found = self.symbol(&["<=", ">=", "==", "!=", "<", ">"]);
        let term = match found {
            Some(k) => {
                let right = self.sum()?;
                self.binary(COMPARE[k], left, right)
            }
            None => left,
        };
        self.depth -= 1;
        Ok(term)
    }

    fn sum(&mut self) -> Result<Term> {
        let mut left = self.product()?;
        while let Some(k) = self.symbol(&["+", "-"]) {
            let right = self.product()?;
            let function: Binary = if k == 0 { |a, b| a + b } else { |a, b| a - b };
            left = self.binary(function, left, right);
        }
        Ok(left)
    }

    fn product(&mut self) -> Result<Term> {
        let mut left = self.sign()?;
        loop {
            self.skip_space();
            let is_power = self.rest().starts_with("**");
            let Some(k) = self.symbol(&["*", "/"]).filter(|_| !is_power) else { return Ok(left) };
            let right = self.sign()?;
            let function: Binary = if k == 0 { |a, b| a * b } else { |a, b| a / b };
            left = self.binary(function, left, right);
        }
    }

    fn sign(&mut self) -> Result<Term> {
        let mut negative = false;
        while let Some(k) = self.symbol(&["-", "+"]) {
            negative ^= k == 0;
        }
        let term = self.power()?;
        if !negative {
            return Ok(term);
        }
        self.terms += 1;
        Ok(Term::Unary(|v| -v, Box::new(term)))
    }

    fn power(&mut self) -> Result<Term> {
        let base = self.atom()?;
        if self.symbol(&["**", "^"]).is_none() {
            return Ok(base);
        }
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.error("nested too deeply"));
        }
        let exponent = self.sign()?;
        self.depth -= 1;
        Ok(self.binary(f64::powf, base, exponent))
    }

    fn atom(&mut self) -> Result<Term> {
        if self.symbol(&["("]).is_some() {
            let term = self.comparison()?;
            return self.closed(term);
        }
        self.skip_space();
        let rest = self.rest();
        let is_name = |c: char| c.is_alphanumeric() || c == '_';
        let name = &rest[..rest.find(|c| !is_name(c)).unwrap_or(rest.len())];
        if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
            return self.number();
        }
        let start = self.at;
        self.at += name.len();
        if self.symbol(&["("]).is_some() {
            return self.call(name, start);
        }
        let same = |known: &str| known.eq_ignore_ascii_case(name);
        if let Some(known) = self.known.iter().find(|known| same(known)) {
            self.terms += 1;
            let k = self.used.iter().position(|used| used == known).unwrap_or(self.used.len());
            if k == self.used.len() {
                self.used.push(known.clone());
            }
            return Ok(Term::Variable(k));
        }
        if let Some((_, value)) = CONSTANTS.iter().find(|(constant, _)| same(constant)) {
            self.terms += 1;
            return Ok(Term::Number(*value));
        }
        self.at = start;
        let error = self.error(&format!("unknown variable \"{name}\""));
        let close = tree::closest(name, self.known.iter().map(String::as_str));
        let names = if close.is_empty() { self.known.to_vec() } else { close };
        Err(error.hint(Hint::DidYouMean(names)))
    }

    fn number(&mut self) -> Result<Term> {
        let rest = self.rest().as_bytes();
        let digits = |from: usize| rest[from..].iter().take_while(|b| b.is_ascii_digit()).count();
        let mut end = digits(0);
        if rest.get(end) == Some(&b'.') {
            end += 1 + digits(end + 1);
        }
        if matches!(rest.get(end), Some(b'e' | b'E')) {
            let sign = usize::from(matches!(rest.get(end + 1), Some(b'+' | b'-')));
            let exponent = if end + 1 + sign <= rest.len() { digits(end + 1 + sign) } else { 0 };
            if exponent > 0 {
                end += 1 + sign + exponent;
            }
        }
        let value = self.rest().get(..end).and_then(|text| text.parse().ok());
        let Some(value) = value else { return Err(self.error("expected a number or a name")) };
        self.at += end;
        self.terms += 1;
        Ok(Term::Number(value))
    }

    /// A function call after its opening parenthesis.
    fn call(&mut self, name: &str, start: usize) -> Result<Term> {
        let first = self.comparison()?;
        self.terms += 1;
        if let Some((_, function)) = FUNCTIONS.iter().find(|(known, _)| *known == name) {
            return self.closed(Term::Unary(*function, Box::new(first)));
        }
        if let Some((_, function)) = BINARY_FUNCTIONS.iter().find(|(known, _)| *known == name) {
            if self.symbol(&[","]).is_none() {
                return Err(self.error(&format!("{name} needs two arguments")));
            }
            let second = self.comparison()?;
            let term = self.binary(*function, first, second);
            return self.closed(term);
        }
        self.at = start;
        Err(self.error(&format!("unknown function \"{name}\"")))
    }

    fn closed(&mut self, term: Term) -> Result<Term> {
        match self.symbol(&[")"]) {
            Some(_) => Ok(term),
            None => Err(self.error("expected )")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Result<f64> {
        let names = ["Px".to_string(), "y".to_string()];
        let expression = Expression::parse(text, &names)?;
        let columns: Vec<Vec<f64>> = expression
            .variables()
            .iter()
            .map(|name| vec![if name == "Px" { 3.0 } else { 4.0 }])
            .collect();
        Ok(expression.root.values(&columns, 1)[0])
    }

    #[test]
    fn expressions_have_the_usual_precedence() {
        let cases = [
            ("1 + 2 * px", 7.0),
            ("-px^2", -9.0),
            ("2^-1^2", 0.5),
            ("2 ** 3 ** 2", 512.0),
            ("(1+2)*-y", -12.0),
            ("hypot(px, y) / 2e-1", 25.0),
            ("sqrt(px*px + Y*y) >= 5", 1.0),
            ("max(px, y) - min(px, y)", 1.0),
            ("1.5e3*.5", 750.0),
            ("8 / 4 / 2", 1.0),
        ];
        for (text, expected) in cases {
            assert_eq!(value(text).unwrap(), expected, "{text}");
        }
        assert!((value("c").unwrap() - 299_792_458.0).abs() < 1e-6);
    }

    #[test]
    fn errors_name_the_position() {
        for (text, part) in [
            ("1 +", "at character 4"),
            ("pz * 2", "unknown variable \"pz\" at character 1"),
            ("(px", "expected ) at character 4"),
            ("px py", "expected an operator at character 4"),
            ("what(1)", "unknown function \"what\""),
            ("atan2(1)", "needs two arguments"),
            ("", "expected a number or a name at character 1"),
            ("1e", "expected an operator at character 2"),
        ] {
            let error = value(text).unwrap_err();
            assert!(error.message().contains(part), "{text}: {}", error.message());
        }
        let deep = format!("{}1{}", "(".repeat(1000), ")".repeat(1000));
        assert!(value(&deep).unwrap_err().message().contains("nested too deeply"));
        let powers = format!("1{}", "^1".repeat(1000));
        assert!(value(&powers).unwrap_err().message().contains("nested too deeply"));
        assert!(value(&"-".repeat(4000)).is_err());
        assert_eq!(value(&format!("1{}", "+1".repeat(2000))).unwrap(), 2001.0);
        assert!(value(&"1+".repeat(100_000)).unwrap_err().message().contains("at most 4096"));
    }
}
