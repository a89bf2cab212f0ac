//! Reads of one file, with retries.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use spile_core::source::ReadAt;

use crate::object::Object;
use crate::runtime::Runtime;
use crate::web::Page;

/// Attempts of a request before it fails.
pub(crate) const ATTEMPTS: u32 = 5;

/// Requests at the same time.
const CONCURRENCY: usize = 8;

/// What identifies the content of a file: all its requests must have the same.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Version {
    pub(crate) len: u64,
    /// Entity tag, with its quotes.
    pub(crate) tag: Option<String>,
    /// Time of the last change, as the server writes it.
    pub(crate) modified: Option<String>,
}

/// A failed request.
pub(crate) enum Failure {
    /// Another attempt may succeed.
    Again(io::Error),
    Final(io::Error),
}

/// Where the bytes are.
pub(crate) enum Place {
    Web(Page),
    Object(Object),
}

pub(crate) struct Reader {
    url: String,
    version: Version,
    /// The connections belong to a process.
    kept: Mutex<(Arc<Runtime>, Arc<Place>)>,
}

impl Reader {
    pub(crate) fn new(url: &str, version: Version, runtime: Arc<Runtime>, place: Place) -> Self {
        let kept = Mutex::new((runtime, Arc::new(place)));
        Self { url: url.to_string(), version, kept }
    }

    fn connected(&self) -> io::Result<(Arc<Runtime>, Arc<Place>)> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if !kept.0.is_current() {
            let runtime = Runtime::get()?;
            let place = match &*kept.1 {
                Place::Web(_) => Place::Web(Page::new(&self.url)?),
                Place::Object(_) => Place::Object(Object::new(&self.url)?),
            };
            std::mem::forget(std::mem::replace(&mut *kept, (runtime, Arc::new(place))));
        }
        Ok(kept.clone())
    }
}

impl ReadAt for Reader {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        let (runtime, place) = self.connected()?;
        runtime.wait(async {
            let mut done = 0;
            let mut attempt = 0;
            loop {
                let (at, rest) = (offset + done as u64, &mut buffer[done..]);
                let mut read = 0;
                let result = match &*place {
                    Place::Web(page) => {
                        page.read(&runtime.client, &self.version, at, rest, &mut read).await
                    }
                    Place::Object(object) => object.read(&self.version, at, rest, &mut read).await,
                };
                done += read;
                match result {
                    Ok(()) => return Ok(done),
                    Err(Failure::Final(error)) => return Err(error),
                    Err(Failure::Again(error)) => {
                        // An answer that ended early continues where it ended.
                        attempt = if read > 0 { 0 } else { attempt + 1 };
                        if attempt >= ATTEMPTS {
                            return Err(error);
                        }
                        Runtime::pause(attempt).await;
                    }
                }
            }
        })
    }

    fn concurrency(&self) -> usize {
        CONCURRENCY
    }
}
