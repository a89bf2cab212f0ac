//! Progress bar on standard error, if that is a terminal.
//!
//! Operations do not report progress: every source counts the bytes read from it, and a background thread
//! polls the count. The bar is removed before anything is printed on standard output.

use std::sync::{Mutex, MutexGuard, Once, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use spile::error::human_bytes;
use spile::source::Source;

/// Time before the bar is shown.
const DELAY: Duration = Duration::from_millis(700);

/// Interval between updates of the bar.
const INTERVAL: Duration = Duration::from_millis(150);

struct Watched {
    source: Source,
    since: Instant,
    /// Number of the file and number of files.
    many: Option<(u64, u64)>,
    bar: Option<ProgressBar>,
}

/// Number of the current file, number of files, and start of the first.
static FILES: Mutex<Option<(u64, u64, Instant)>> = Mutex::new(None);

/// Sets the number of the next file, counted from 0, and the number of files.
pub(crate) fn set_file_number(number: u64, count: u64) {
    let mut many = FILES.lock().unwrap_or_else(PoisonError::into_inner);
    let since = many.map_or_else(Instant::now, |(_, _, since)| since);
    *many = Some((number, count, since));
}

static WATCHED: Mutex<Option<Watched>> = Mutex::new(None);

/// Shows the progress of reading `source`, replacing any other source.
pub(crate) fn watch(source: &Source) {
    static START: Once = Once::new();
    hide();
    let many = *FILES.lock().unwrap_or_else(PoisonError::into_inner);
    let since = many.map_or_else(Instant::now, |(_, _, since)| since);
    let many = many.map(|(number, count, _)| (number, count));
    *watched() = Some(Watched { source: source.clone(), since, many, bar: None });
    START.call_once(|| {
        // If the thread cannot be started, no bar is shown.
        let _ = std::thread::Builder::new().name("progress".into()).spawn(|| {
            loop {
                std::thread::sleep(INTERVAL);
                if let Some(watched) = &mut *watched() {
                    watched.show();
                }
            }
        });
    });
}

/// Removes the bar until the next update.
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
            if self.since.elapsed() >= DELAY {
                let within = read.min(len) * 1000 / len.max(1);
                let bar = self.bar(count * 1000);
                bar.set_message(format!("file {} of {count}", number + 1));
                bar.set_position(number * 1000 + within);
            }
            return;
        }
        // A file may be read more than once; then the fraction is unknown.
        if self.since.elapsed() < DELAY || read == 0 || read >= len {
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
