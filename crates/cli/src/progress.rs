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
    bar: Option<ProgressBar>,
}

static WATCHED: Mutex<Option<Watched>> = Mutex::new(None);

/// Shows how much of `source` has been read, instead of any other.
pub(crate) fn watch(source: &Source) {
    static START: Once = Once::new();
    hide();
    *watched() = Some(Watched { source: source.clone(), since: Instant::now(), bar: None });
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
        // A file may be read more than once; how often is not known beforehand.
        if self.since.elapsed() < PATIENCE || read == 0 || read >= len {
            return;
        }
        let bar = self.bar.get_or_insert_with(|| {
            let bar = ProgressBar::with_draw_target(Some(len), ProgressDrawTarget::stderr());
            let style = ProgressStyle::with_template("{prefix} {bar:30} {percent:>3} %  {msg}");
            if let Ok(style) = style {
                bar.set_style(style.progress_chars("=> "));
            }
            let name = self.source.path().and_then(|path| path.file_name()).unwrap_or_default();
            bar.with_prefix(name.to_string_lossy().into_owned())
        });
        let rate = read as f64 / self.since.elapsed().as_secs_f64();
        bar.set_message(format!("{}/s", human_bytes(rate as u64)));
        bar.set_position(read);
    }
}
