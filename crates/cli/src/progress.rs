//! A bar on standard error while a long file is read, if somebody watches.
//!
//! Nobody has to report progress: every source counts the bytes that are read from it, and a thread
//! of its own looks at the count. What is printed on standard output takes the bar away first.

use std::sync::{Mutex, MutexGuard, Once, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use spile::error::human_bytes;
use spile::source::Source;

/// What takes less needs no bar.
const PATIENCE: Duration = Duration::from_millis(700);

/// How often the bar moves.
const TICK: Duration = Duration::from_millis(150);

struct Watched {
    source: Source,
    since: Instant,
    /// Which of how many files it is.
    many: Option<(u64, u64)>,
    bar: Option<ProgressBar>,
}

/// Which of how many files is read, and since when they are.
static MANY: Mutex<Option<(u64, u64, Instant)>> = Mutex::new(None);

/// Tells that file `number` of `count` comes next.
pub(crate) fn of_many(number: u64, count: u64) {
    let mut many = MANY.lock().unwrap_or_else(PoisonError::into_inner);
    let since = many.map_or_else(Instant::now, |(_, _, since)| since);
    *many = Some((number, count, since));
}

static WATCHED: Mutex<Option<Watched>> = Mutex::new(None);

/// Shows how much of `source` has been read, instead of any other.
pub(crate) fn watch(source: &Source) {
    static START: Once = Once::new();
    hide();
    let many = *MANY.lock().unwrap_or_else(PoisonError::into_inner);
    let since = many.map_or_else(Instant::now, |(_, _, since)| since);
    let many = many.map(|(number, count, _)| (number, count));
    *watched() = Some(Watched { source: source.clone(), since, many, bar: None });
    START.call_once(|| {
        // Without the thread there is no bar; nothing depends on it.
        let _ = std::thread::Builder::new().name("progress".into()).spawn(|| {
            loop {
                std::thread::sleep(TICK);
                if let Some(watched) = &mut *watched() {
                    watched.show();
                }
            }
        });
    });
}

/// Takes the bar away; it comes back when there is more to tell.
pub(crate) fn hide() {
    if let Some(bar) = watched().as_mut().and_then(|watched| watched.bar.take()) {
        bar.finish_and_clear();
    }
}

fn watched() -> MutexGuard<'static, Option<Watched>> {
    WATCHED.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Watched {
    fn show(&mut self) {
        let (read, len) = (self.source.bytes_read(), self.source.len());
        if let Some((number, count)) = self.many {
            if self.since.elapsed() >= PATIENCE {
                let within = read.min(len) * 1000 / len.max(1);
                let bar = self.bar(count * 1000);
                bar.set_message(format!("file {} of {count}", number + 1));
                bar.set_position(number * 1000 + within);
            }
            return;
        }
        // A file may be read more than once; how often is not known beforehand.
        if self.since.elapsed() < PATIENCE || read == 0 || read >= len {
            return;
        }
        let rate = read as f64 / self.since.elapsed().as_secs_f64();
        let bar = self.bar(len);
        bar.set_message(format!("{}/s", human_bytes(rate as u64)));
        bar.set_position(read);
    }

    fn bar(&mut self, len: u64) -> &ProgressBar {
        self.bar.get_or_insert_with(|| {
            let bar = ProgressBar::with_draw_target(Some(len), ProgressDrawTarget::stderr());
            let style = ProgressStyle::with_template("{prefix} {bar:30} {percent:>3} %  {msg}");
            if let Ok(style) = style {
                bar.set_style(style.progress_chars("=> "));
            }
            let name = self.source.path().and_then(|path| path.file_name()).unwrap_or_default();
            bar.with_prefix(name.to_string_lossy().into_owned())
        })
    }
}
