//! Files on web servers and object stores: `https://host/0042.sdf`, `s3://bucket/run/0042.sdf`, `gs://`, `az://`.
//!
//! [`install`] makes everything that opens a path open URLs, too: [`Source::open`] and the folders of
//! [`Folder::open`](spile_core::format::Folder::open). Blocks are cached by core, which also plans the requests for
//! arrays.
//!
//! ```no_run
//! spile_remote::install();
//! let source = spile_core::Source::open("https://host/0042.sdf")?;
//! assert_eq!(source.read_vec(0, 4)?, b"SDF1");
//! # Ok::<(), spile_core::Error>(())
//! ```
//!
//! | module | content |
//! |---|---|
//! | `reader` | reads of one file, with retries; the file must not change |
//! | `web` | `http`, `https`: range requests; servers without ranges; folders that have an index page |
//! | `object` | `s3`, `gs`, `az` and their aliases, through the crate `object_store` |
//! | `runtime` | the threads that wait for answers |
//!
//! | code | problem |
//! |---|---|
//! | `remote-001` | not a valid URL |
//! | `remote-002` | the file changed while it was read |
//! | `remote-003` | the server does not support range requests, and the file is larger than the memory limit |
//! | `remote-004` | the answer of the server violates HTTP, for example other bytes than requested |
//! | `remote-005` | no access |
//! | `remote-006` | a folder without files, or without an index |
//! | `remote-007` | the URL cannot be written to |
#![forbid(unsafe_code)]

mod object;
mod reader;
mod runtime;
mod web;

use std::io::{self, Read};

use spile_core::source::{RemoteStore, install_remote_store};
use spile_core::{Error, Limits, Result, Source};

/// Bytes that opening a file fetches: the block of the cache that the format is recognised by.
const HEAD: u64 = 32 << 10;

/// Schemes of web servers.
const WEB: [&str; 2] = ["http", "https"];

/// All schemes.
pub const SCHEMES: &[&str] = &["http", "https", "s3", "s3a", "gs", "az", "azure", "abfs", "abfss"];

/// From now on, paths that are URLs are opened by this crate.
pub fn install() {
    install_remote_store(&Stores);
}

struct Stores;

impl RemoteStore for Stores {
    fn schemes(&self) -> &'static [&'static str] {
        SCHEMES
    }

    fn open(&self, url: &str, limits: &Limits) -> Result<Source> {
        let opened = if is_web(url) { web::open(url, limits) } else { object::open(url) };
        opened.map_err(|error| located(error, url))
    }

    fn list(&self, url: &str) -> Result<Vec<String>> {
        let found = if is_web(url) { web::list(url) } else { object::list(url) };
        let found = found.map_err(|error| located(error, url))?;
        if found.is_empty() {
            let error = Error::not_this_format("remote-006", "the folder has no files");
            return Err(error.with_path(url));
        }
        Ok(found)
    }

    fn upload(&self, url: &str, content: &mut dyn Read, replace: bool) -> Result<()> {
        if is_web(url) {
            let message = "web servers are read only; object stores can be written to";
            return Err(Error::unsupported("remote-007", message).with_path(url));
        }
        object::upload(url, content, replace).map_err(|error| located(error, url))
    }
}

fn is_web(url: &str) -> bool {
    let scheme = url.split_once("://").map_or("", |(scheme, _)| scheme);
    WEB.iter().any(|web| web.eq_ignore_ascii_case(scheme))
}

/// The error with its URL: an error of this crate that was passed through `io::Error`, or an error of the system.
fn located(error: io::Error, url: &str) -> Error {
    let error = error.downcast::<Error>().unwrap_or_else(Error::from);
    error.with_path(url)
}

/// The file is not the one that was opened.
fn changed() -> io::Error {
    let message = "the file has changed since it was opened";
    io::Error::other(Error::malformed("remote-002", message).hint("open it again"))
}

/// An answer that is not one to the request.
fn unexpected(what: impl Into<String>) -> io::Error {
    io::Error::other(Error::malformed("remote-004", what))
}

/// The server refuses access.
fn denied(message: String, hint: &'static str) -> io::Error {
    io::Error::other(Error::new(spile_core::ErrorKind::Io, "remote-005", message).hint(hint))
}

fn invalid(url: &str) -> io::Error {
    let message = "not a valid URL";
    io::Error::other(
        Error::new(spile_core::ErrorKind::Argument, "remote-001", message).with_path(url),
    )
}
