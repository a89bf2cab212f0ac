//! Files that are named by URLs. The code that reads them is in another crate, which installs itself here, so that
//! everything that opens a path opens URLs.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use super::Source;
use crate::{Error, Limits, Result};

/// Access to files that are named by URLs: web servers, object stores.
pub trait RemoteStore: Send + Sync {
    /// The schemes, for example `https`.
    fn schemes(&self) -> &'static [&'static str];

    /// Opens the file at `url`. A file that can only be read as a whole is kept in memory, within the limit.
    fn open(&self, url: &str, limits: &Limits) -> Result<Source>;

    /// The URLs of the files directly in the folder `url`, which ends with a slash.
    fn list(&self, url: &str) -> Result<Vec<String>>;

    /// Stores the bytes of `content` at `url`: completely or not at all. Fails with `Exists` if there is an object and
    /// `replace` is false.
    fn upload(&self, url: &str, content: &mut dyn Read, replace: bool) -> Result<()>;
}

static STORE: OnceLock<&'static dyn RemoteStore> = OnceLock::new();

/// Opens URLs with `store` from now on. The first call decides.
pub fn install_remote_store(store: &'static dyn RemoteStore) {
    // A second call has the same store.
    let _ = STORE.set(store);
}

/// Whether the path is a URL, for example `https://host/file`. Nothing is read.
pub fn is_url(path: impl AsRef<Path>) -> bool {
    scheme(path.as_ref()).is_some()
}

/// Whether the path is a folder: a local one, or a URL that ends with a slash.
pub fn is_folder(path: impl AsRef<Path>) -> bool {
    let path = path.as_ref();
    match path.to_str().filter(|_| is_url(path)) {
        Some(url) => url.ends_with('/'),
        None => path.is_dir(),
    }
}

/// The path for messages: a URL of a web server without its password and its query, which may be a signature.
pub fn shown(path: &Path) -> PathBuf {
    let url = scheme(path)
        .filter(|scheme| scheme.get(..4).is_some_and(|s| s.eq_ignore_ascii_case("http")));
    let parts = url.and_then(|_| path.to_str()?.split_once("://"));
    let Some((scheme, rest)) = parts else { return path.to_path_buf() };
    let rest = rest.split(['?', '#']).next().unwrap_or(rest);
    let (host, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
    let host = host.rsplit('@').next().unwrap_or(host);
    format!("{scheme}://{host}{path}").into()
}

fn scheme(path: &Path) -> Option<&str> {
    let (scheme, _) = path.to_str()?.split_once("://")?;
    let letters = scheme.bytes().all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b));
    (letters && scheme.len() > 1).then_some(scheme)
}

/// The store that opens the URL `path`; `None` if it is not a URL. Fails if its scheme is not supported.
pub fn remote_store(path: &Path) -> Result<Option<(&'static dyn RemoteStore, &str)>> {
    let (Some(scheme), Some(url)) = (scheme(path), path.to_str()) else { return Ok(None) };
    let lower = scheme.to_ascii_lowercase();
    let Some(store) = STORE.get() else {
        let message = "URLs are not supported: spile was built without the feature `remote`";
        return Err(Error::unsupported("core-scheme", message).with_path(path));
    };
    if store.schemes().contains(&lower.as_str()) {
        return Ok(Some((*store, url)));
    }
    let known = store.schemes().join(", ");
    let message = format!("URLs with the scheme {scheme} are not supported (supported: {known})");
    Err(Error::unsupported("core-scheme", message).with_path(path))
}

/// The files directly in a folder that is a URL; `None` if `path` is not a URL.
pub(crate) fn list(path: &Path) -> Result<Option<Vec<PathBuf>>> {
    let Some((store, url)) = remote_store(path)? else { return Ok(None) };
    let mut files: Vec<PathBuf> = store.list(url)?.into_iter().map(PathBuf::from).collect();
    files.sort();
    Ok(Some(files))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_and_signatures_are_not_shown() {
        let cases = [
            ("https://user:secret@host:8080/a/b.sdf?X-Signature=c#d", "https://host:8080/a/b.sdf"),
            ("HTTP://user@host", "HTTP://host"),
            ("s3://bucket/a?b#c.sdf", "s3://bucket/a?b#c.sdf"),
            ("abfs://container@account/x", "abfs://container@account/x"),
            ("run/0001.sdf?x", "run/0001.sdf?x"),
        ];
        for (url, expected) in cases {
            assert_eq!(shown(Path::new(url)), Path::new(expected));
        }
    }

    #[test]
    fn a_url_has_a_scheme() {
        for url in ["https://host/x", "s3://bucket"] {
            assert!(is_url(url), "{url}");
        }
        for path in ["run/0001.sdf", "c://x", "://x", "a b://x", "/tmp/https://x", ""] {
            assert!(!is_url(path), "{path}");
        }
        assert!(is_folder("s3://bucket/run/") && !is_folder("s3://bucket/run"));
    }
}
