//! Files with many objects: memory stays within the limits, and time is linear.

#[path = "../../../crates/core/tests/support/meter.rs"]
mod meter;

use std::time::{Duration, Instant};

use spile_core::Dataset;
use spile_core::error::ErrorKind;
use spile_core::format::{Checker as _, Salvager as _};
use spile_core::limits::Limits;
use spile_core::sink::{Overwrite, Sink};
use spile_core::source::Source;
use spile_iotk::{Iotk, Style, Target, convert};

const MEMORY: u64 = 64 << 20;

fn many(count: usize, object: &str) -> String {
    format!("<R>{}</R>", object.repeat(count))
}

#[test]
fn many_objects_fit_the_memory_limit_or_are_refused() {
    let limits = Limits::default().with_memory(MEMORY);
    let attributes = |count: usize, attribute: &str| format!("<R {}/>", attribute.repeat(count));
    for (name, text) in [
        ("arrays", many(300_000, "<a type='real' size='1'>1.0</a>")),
        ("arrays that fit", many(30_000, "<a type='real' size='1'>1.0</a>")),
        ("integers", many(300_000, "<a type='integer' size='1'>1</a>")),
        ("strings", many(40_000, "<a type='character' size='1' len='3'>\nabc\n</a>")),
        ("bad counts", many(40_000, "<a type='real' size='9'>1</a>")),
        ("groups", many(300_000, "<a/>")),
        ("groups that fit", many(50_000, "<a/>")),
        ("nested groups", many(20_000, "<a><b x='1.0'/></a>")),
        ("pieces of text", many(200_000, "t<a/>")),
        ("pieces that fit", many(30_000, "t<a/>")),
        ("comments", many(200_000, "<!--c-->")),
        ("comments that fit", many(140_000, "<!--c-->")),
        (
            "comments in data",
            format!("<R type='real' size='1'>{}1.0</R>", "<!--c-->".repeat(300_000)),
        ),
        ("instructions", many(200_000, "<?c?>")),
        ("head", "<?iotk a=\"1\"?>".repeat(300_000) + "<R/>"),
        ("head that fits", "<?iotk a=\"1\"?>".repeat(90_000) + "<R/>"),
        ("attributes", attributes(400_000, "a='1' ")),
        ("attributes that fit", attributes(250_000, "a='1' ")),
        ("spelled attributes", attributes(200_000, "a=' 1.00' ")),
        ("bare attributes", attributes(1_000_000, "a ")),
        ("bare attributes that fit", attributes(300_000, "a ")),
        ("lists", attributes(20_000, "a='1 2 3 4 5 6 7 8 9 10' ")),
        ("data outside", format!("<R/>{}", "x<R/>".repeat(300_000))),
        ("unquoted", many(200_000, "<a b=1/>")),
    ] {
        for binary in [false, true] {
            let mut bytes = text.clone().into_bytes();
            if binary {
                let source = Source::memory(std::mem::take(&mut bytes));
                let large = Limits::default().with_memory(4 << 30);
                if convert(&source, Target::default(), Style::Exact, &mut bytes, &large).is_err() {
                    continue;
                }
            }
            let source = Source::memory(bytes);
            (meter::METER.reset)();
            let opened = Dataset::open(&Iotk, source, &(&limits).into());
            let peak = (meter::METER.peak)();
            eprintln!("{name}, binary {binary}: opened {}, {} MiB", opened.is_ok(), peak >> 20);
            if let Err(error) = &opened {
                assert_eq!(error.kind(), ErrorKind::Limit, "{name}: {error}");
            }
            assert_eq!(
                opened.is_ok(),
                opened.is_ok() && peak <= MEMORY,
                "{name}: {} MiB",
                peak >> 20
            );
            assert!(peak <= MEMORY, "{name}, binary {binary}: {} MiB", peak >> 20);
            assert!(opened.is_ok() || !name.contains("fit"), "{name}");
        }
    }
}

#[test]
fn salvage_of_repeated_delimiters_takes_linear_time() {
    let folder = tempfile::tempdir().unwrap();
    let start = "<R><a type='real' size='1'>1.0</a>";
    for (k, unit) in [
        "<!--",
        "<![CDATA[",
        "<?x ",
        "<!D [>",
        "<a x='/>' ",
        "<a <",
        "<a x='<b y=\"",
        "< ",
        "<a>",
        "</a>",
        "<f type='real' fmt='(f3.1)'>",
    ]
    .iter()
    .enumerate()
    {
        for end in ["", "'>", "\">", "-->", "</R>"] {
            let text = format!("{start}{}{end}", unit.repeat((2 << 20) / unit.len()));
            let path = folder.path().join(format!("{k}"));
            let mut sink = Sink::create(&path, Overwrite::Replace).unwrap();
            let begin = Instant::now();
            let source = Source::memory(text);
            let _ = Iotk.salvage(&source, &mut sink, &Limits::default());
            let _ = Iotk.check(&source, &Limits::default(), false);
            let time = begin.elapsed();
            eprintln!("{unit} {end}: {time:?}");
            assert!(time < Duration::from_secs(15), "{unit} {end}: {time:?}");
        }
    }
}
