//! Results of the steps of `cargo xtask test`, and their summary.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use crate::Result;

/// Numbers of tests in a step. A step without tests counts as one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    pub(crate) skipped: u64,
}

/// The result of a step.
#[derive(Clone, Debug)]
pub(crate) enum Outcome {
    Passed,
    /// The reason.
    Failed(String),
    /// The reason why it cannot run on this machine.
    Skipped(String),
    /// Its tests, and whether the program that ran them succeeded.
    Tests(Counts, bool),
}

impl Outcome {
    /// The result of a check that prints its findings.
    pub(crate) fn from_check(result: Result<bool>) -> Self {
        match result {
            Ok(true) => Self::Passed,
            Ok(false) => Self::Failed("see above".into()),
            Err(why) => Self::Failed(why),
        }
    }

    pub(crate) fn failed(&self) -> bool {
        self.counts().failed > 0
    }

    fn counts(&self) -> Counts {
        match self {
            Self::Passed => Counts { passed: 1, ..Counts::default() },
            Self::Failed(_) => Counts { failed: 1, ..Counts::default() },
            Self::Skipped(_) => Counts { skipped: 1, ..Counts::default() },
            // A failure outside of the tests, for example in the build.
            Self::Tests(counts, false) => Counts { failed: counts.failed.max(1), ..*counts },
            Self::Tests(counts, true) => *counts,
        }
    }

    fn text(&self) -> String {
        match self {
            Self::Passed => "ok".into(),
            Self::Failed(why) => format!("FAILED: {}", first_line(why)),
            Self::Skipped(why) => format!("skipped: {}", first_line(why)),
            Self::Tests(Counts { failed: 0, .. }, false) => "FAILED: see above".into(),
            Self::Tests(counts, _) => {
                let word = if counts.failed > 0 { "FAILED" } else { "ok" };
                format!("{word}: {}", counts.text())
            }
        }
    }
}

impl Counts {
    /// Adds the numbers of a list such as `5 passed; 0 failed; 1 ignored`.
    pub(crate) fn with(mut self, list: &str) -> Self {
        for item in list.split([',', ';']) {
            let mut fields = item.split_whitespace();
            let number = fields.next().and_then(|n| n.parse::<u64>().ok()).unwrap_or(0);
            match fields.next() {
                Some("passed") => self.passed += number,
                Some("failed" | "timed" | "error" | "errors") => self.failed += number,
                Some("skipped" | "ignored") => self.skipped += number,
                _ => {}
            }
        }
        self
    }

    fn text(self) -> String {
        format!("{} passed, {} failed, {} skipped", self.passed, self.failed, self.skipped)
    }
}

/// The completed steps.
#[derive(Default)]
pub(crate) struct Steps(Vec<(&'static str, Outcome, Duration)>);

impl Steps {
    /// Runs a step and prints its name and result.
    pub(crate) fn run(&mut self, name: &'static str, step: impl FnOnce() -> Outcome) {
        println!("\n=== {name}");
        let start = Instant::now();
        let outcome = step();
        let time = start.elapsed();
        if let Outcome::Failed(why) = &outcome {
            println!("{why}");
        }
        println!("=== {name}: {} ({:.1} s)", outcome.text(), time.as_secs_f64());
        self.0.push((name, outcome, time));
    }

    /// Whether a step has failed.
    pub(crate) fn failed(&self) -> bool {
        self.0.iter().any(|(_, outcome, _)| outcome.failed())
    }

    /// A table of the steps, and a line with the total numbers of tests.
    pub(crate) fn summary(&self) -> String {
        let mut text = String::new();
        let mut sum = Counts::default();
        for (name, outcome, time) in &self.0 {
            let (time, text_of_step) = (time.as_secs_f64(), outcome.text());
            let _ = writeln!(text, "{name:<10} {time:>7.1} s  {text_of_step}");
            let counts = outcome.counts();
            sum.passed += counts.passed;
            sum.failed += counts.failed;
            sum.skipped += counts.skipped;
        }
        text + "\n" + &sum.text() + "\n"
    }
}

/// The numbers in the summary of nextest, or the sum over the standard test programs.
pub(crate) fn count_tests(text: &str) -> Counts {
    let summary = text.lines().rfind(|line| line.trim_start().starts_with("Summary ["));
    if let Some((_, list)) = summary.and_then(|line| line.split_once("run: ")) {
        // Failed tests have also printed the result of their own program.
        return Counts::default().with(list);
    }
    let results = text.lines().filter_map(|line| line.trim_start().strip_prefix("test result: "));
    results.fold(Counts::default(), |sum, list| {
        sum.with(list.split_once(". ").map_or(list, |(_, list)| list))
    })
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_of_both_test_programs_are_parsed() {
        let nextest = "     Summary [   0.1s] 9 tests run: 7 passed (1 slow), 1 failed, 1 timed out, 2 skipped";
        assert_eq!(count_tests(nextest), Counts { passed: 7, failed: 2, skipped: 2 });
        let plain = "test result: ok. 5 passed; 0 failed; 1 ignored; 0 measured; 3 filtered out\n\
                     noise: 8 passed\n\
                     test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out";
        assert_eq!(count_tests(plain), Counts { passed: 6, failed: 2, skipped: 1 });
    }

    #[test]
    fn a_failure_reported_by_nextest_is_counted_once() {
        let text = "        FAIL [   0.012s] (2/2) demo tests::it_fails\n\
                    \x20 stdout ───\n\
                    \x20   running 1 test\n\
                    \x20   test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 1 filtered out\n\
                    ────────────\n\
                    \x20    Summary [   0.013s] 2 tests run: 1 passed, 1 failed, 0 skipped\n\
                    \x20       FAIL [   0.012s] (2/2) demo tests::it_fails\n\
                    error: test run failed\n";
        assert_eq!(count_tests(text), Counts { passed: 1, failed: 1, skipped: 0 });
    }

    #[test]
    fn a_failed_build_is_never_counted_as_passed() {
        let mut steps = Steps::default();
        steps.run("build", || Outcome::Tests(count_tests("error: no"), false));
        steps.run("skip", || Outcome::Skipped("no compiler".into()));
        assert!(steps.failed());
        let summary = steps.summary();
        assert!(summary.contains("skipped: no compiler"));
        assert!(summary.lines().any(|line| line == "0 passed, 1 failed, 1 skipped"), "{summary}");
    }
}
