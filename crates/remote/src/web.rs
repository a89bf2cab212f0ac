//! Web servers: requests for ranges of bytes.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;

use percent_encoding::percent_decode_str;
use reqwest::header::{
    CONTENT_LENGTH, CONTENT_RANGE, ETAG, HeaderMap, HeaderName, IF_MATCH, IF_UNMODIFIED_SINCE,
    LAST_MODIFIED, RANGE,
};
use reqwest::{Client, RequestBuilder, Response, StatusCode};
use spile_core::source::{ReadAt, shown};
use spile_core::{Error, Limits, Source};
use url::Url;

use crate::reader::{ATTEMPTS, Failure, Place, Reader, Version};
use crate::runtime::Runtime;
use crate::{HEAD, changed, denied, invalid, unexpected};

/// Most bytes of an index page.
const INDEX: usize = 16 << 20;

/// A file of a web server.
pub(crate) struct Page {
    url: Url,
}

impl Page {
    pub(crate) fn new(url: &str) -> io::Result<Self> {
        Ok(Self { url: Url::parse(url).map_err(|_| invalid(url))? })
    }

    /// Fills `buffer` from `offset`, and counts the bytes in `done` although it may fail.
    pub(crate) async fn read(
        &self,
        client: &Client,
        version: &Version,
        offset: u64,
        buffer: &mut [u8],
        done: &mut usize,
    ) -> Result<(), Failure> {
        let end = offset + buffer.len() as u64;
        let mut request = range(client.get(self.url.clone()), offset, end);
        match (&version.tag, &version.modified) {
            // Weak tags never match.
            (Some(tag), _) if !tag.starts_with("W/") => request = request.header(IF_MATCH, tag),
            (None, Some(time)) => request = request.header(IF_UNMODIFIED_SINCE, time),
            _ => {}
        }
        let mut response = send(request).await?;
        match response.status() {
            StatusCode::PARTIAL_CONTENT => {}
            StatusCode::PRECONDITION_FAILED
            | StatusCode::NOT_FOUND
            | StatusCode::GONE
            | StatusCode::RANGE_NOT_SATISFIABLE => return Err(Failure::Final(changed())),
            _ => return Err(refused(&response)),
        }
        let headers = response.headers();
        let tag = text(headers, &ETAG);
        let Some((first, last, total)) = content_range(headers) else {
            let what = "the answer of the server has no valid Content-Range";
            return Err(Failure::Final(unexpected(what)));
        };
        if total.is_some_and(|total| total != version.len) || tag != version.tag {
            return Err(Failure::Final(changed()));
        }
        if first != offset || last + 1 != end {
            let what =
                format!("expected bytes {offset} to {end}, the server sent {first} to {last}");
            return Err(Failure::Final(unexpected(what)));
        }
        fill(&mut response, buffer, done).await
    }
}

/// The error of an answer that is not the file.
fn refused(response: &Response) -> Failure {
    let status = response.status();
    let message = format!("the server answers {status}");
    if status.is_server_error() || matches!(status.as_u16(), 408 | 429) {
        return Failure::Again(io::Error::other(message));
    }
    Failure::Final(match status {
        StatusCode::NOT_FOUND | StatusCode::GONE => {
            io::Error::new(io::ErrorKind::NotFound, message)
        }
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => denied(
            message,
            "web servers: put the user and the password or the signature into the URL",
        ),
        _ => io::Error::other(message),
    })
}

/// Adds the header for the bytes `offset..end`.
fn range(request: RequestBuilder, offset: u64, end: u64) -> RequestBuilder {
    request.header(RANGE, format!("bytes={offset}-{}", end - 1))
}

async fn send(request: RequestBuilder) -> Result<Response, Failure> {
    request.send().await.map_err(|error| {
        let again = error.is_connect() || error.is_timeout() || error.is_request();
        // The URL may have a password, and is added later.
        let error = io::Error::other(chain(&error.without_url()));
        if again { Failure::Again(error) } else { Failure::Final(error) }
    })
}

/// An error with its causes, which say more than it.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut message = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let text = error.to_string();
        if !message.contains(&text) {
            message = format!("{message}: {text}");
        }
        cause = error.source();
    }
    message
}

/// Fills `buffer` with the body.
async fn fill(response: &mut Response, buffer: &mut [u8], done: &mut usize) -> Result<(), Failure> {
    while *done < buffer.len() {
        let part = response
            .chunk()
            .await
            .map_err(|error| Failure::Again(io::Error::other(chain(&error.without_url()))))?;
        let Some(part) = part else {
            let message = "the server closed the connection before the end of its answer";
            return Err(Failure::Again(io::Error::new(io::ErrorKind::UnexpectedEof, message)));
        };
        let count = part.len().min(buffer.len() - *done);
        buffer[*done..*done + count].copy_from_slice(&part[..count]);
        *done += count;
    }
    Ok(())
}

fn text(headers: &HeaderMap, name: &HeaderName) -> Option<String> {
    Some(headers.get(name)?.to_str().ok()?.to_string())
}

/// First byte, last byte and length of the file.
fn content_range(headers: &HeaderMap) -> Option<(u64, u64, Option<u64>)> {
    let range = text(headers, &CONTENT_RANGE)?;
    let (bytes, total) = range.strip_prefix("bytes ")?.split_once('/')?;
    let (first, last) = bytes.split_once('-')?;
    let (first, last): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
    let total = if total == "*" { None } else { Some(total.parse().ok()?) };
    let most = i64::MAX as u64;
    (first <= last && last < most && total.is_none_or(|n| last < n && n <= most))
        .then_some((first, last, total))
}

/// What opening a file found.
enum Opened {
    /// The server supports ranges: the version, and the first bytes.
    Ranges(Version, Vec<u8>),
    /// The whole file.
    Whole(Vec<u8>),
}

/// Opens a file. A server without ranges sends the whole file, if it fits the memory limit.
pub(crate) fn open(url: &str, limits: &Limits) -> io::Result<Source> {
    let page = Page::new(url)?;
    let runtime = Runtime::get()?;
    let opened = runtime.wait(async {
        let mut attempt = 0;
        loop {
            match open_page(&runtime.client, &page, limits).await {
                Ok(opened) => return Ok(opened),
                Err(Failure::Final(error)) => return Err(error),
                Err(Failure::Again(error)) => {
                    attempt += 1;
                    if attempt >= ATTEMPTS {
                        return Err(error);
                    }
                    Runtime::pause(attempt).await;
                }
            }
        }
    })?;
    let name = Some(shown(Path::new(url)));
    Ok(match opened {
        Opened::Ranges(version, head) => {
            let len = version.len;
            let reader = Reader::new(url, version, runtime, Place::Web(page));
            Source::remote(name, len, Box::new(reader), &head)
        }
        Opened::Whole(bytes) => {
            Source::foreign(name, bytes.len() as u64, Box::new(Downloaded(bytes)))
        }
    })
}

async fn open_page(client: &Client, page: &Page, limits: &Limits) -> Result<Opened, Failure> {
    let mut response = send(range(client.get(page.url.clone()), 0, HEAD)).await?;
    let headers = response.headers();
    let (tag, modified) = (text(headers, &ETAG), text(headers, &LAST_MODIFIED));
    match response.status() {
        StatusCode::PARTIAL_CONTENT => {
            let Some((0, last, Some(len))) = content_range(headers) else {
                let what = "the answer of the server has no valid Content-Range";
                return Err(Failure::Final(unexpected(what)));
            };
            let mut head = vec![0; (last + 1).min(HEAD) as usize];
            fill(&mut response, &mut head, &mut 0).await?;
            Ok(Opened::Ranges(Version { len, tag, modified }, head))
        }
        // An empty file has no range.
        StatusCode::RANGE_NOT_SATISFIABLE
            if text(headers, &CONTENT_RANGE).as_deref() == Some("bytes */0") =>
        {
            Ok(Opened::Whole(Vec::new()))
        }
        StatusCode::OK => read_whole(response, limits).await.map(Opened::Whole),
        _ => Err(refused(&response)),
    }
}

/// The body, within the memory limit.
async fn read_whole(mut response: Response, limits: &Limits) -> Result<Vec<u8>, Failure> {
    let announced = text(response.headers(), &CONTENT_LENGTH).and_then(|len| len.parse().ok());
    let allow = |len: u64| {
        limits.allow(len, "the file").map_err(|error| {
            let message =
                format!("the server does not support range requests, and {}", error.message());
            let error = Error::new(spile_core::ErrorKind::Limit, "remote-003", message);
            Failure::Final(io::Error::other(error.hint(spile_core::Hint::RaiseMemory)))
        })
    };
    allow(announced.unwrap_or(0))?;
    let mut bytes = Vec::new();
    loop {
        let part = response
            .chunk()
            .await
            .map_err(|error| Failure::Again(io::Error::other(chain(&error.without_url()))))?;
        let Some(part) = part else { break };
        // A vector may double when it grows.
        allow((bytes.len() + part.len()) as u64)?;
        bytes.extend_from_slice(&part);
    }
    if announced.is_some_and(|len: u64| len != bytes.len() as u64) {
        let message = "the server closed the connection before the end of its answer";
        return Err(Failure::Again(io::Error::new(io::ErrorKind::UnexpectedEof, message)));
    }
    Ok(bytes)
}

/// A file in memory, which has a name.
struct Downloaded(Vec<u8>);

impl ReadAt for Downloaded {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let rest = usize::try_from(offset).ok().and_then(|at| self.0.get(at..)).unwrap_or(&[]);
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }
}

/// The files of a folder that has an index page: the links to files directly in it.
pub(crate) fn list(url: &str) -> io::Result<Vec<String>> {
    let page = Page::new(url)?;
    let runtime = Runtime::get()?;
    let index = runtime.wait(async {
        let mut response = send(runtime.client.get(page.url.clone())).await?;
        if response.status() != StatusCode::OK {
            return Err(refused(&response));
        }
        let mut bytes = Vec::new();
        loop {
            let part = response
                .chunk()
                .await
                .map_err(|error| Failure::Final(io::Error::other(chain(&error.without_url()))))?;
            let Some(part) = part else { break };
            bytes.extend_from_slice(&part);
            if bytes.len() > INDEX {
                let message = format!("the index page has more than {INDEX} bytes");
                return Err(Failure::Final(io::Error::other(message)));
            }
        }
        Ok(bytes)
    });
    let index = index.map_err(|(Failure::Again(error) | Failure::Final(error))| error)?;
    Ok(links(&page.url, &String::from_utf8_lossy(&index)))
}

/// The files directly in `folder` that a page links to.
fn links(folder: &Url, page: &str) -> Vec<String> {
    let mut found = BTreeSet::new();
    let lower = page.to_ascii_lowercase();
    for (at, _) in lower.match_indices("href=") {
        let rest = &page[at + 5..];
        let Some(quote) = rest.chars().next().filter(|c| matches!(c, '"' | '\'')) else { continue };
        let Some((target, _)) = rest[1..].split_once(quote) else { continue };
        let Ok(mut url) = folder.join(&target.replace("&amp;", "&")) else { continue };
        if url.query().is_some() || url.fragment().is_some() || url.host() != folder.host() {
            continue;
        }
        let Some(name) = url.path().strip_prefix(folder.path()) else { continue };
        let hidden = percent_decode_str(name).next().is_none_or(|first| first == b'.');
        if !hidden && !name.contains('/') {
            url.set_query(folder.query());
            found.insert(url.to_string());
        }
    }
    found.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_page_lists_the_files_directly_in_the_folder() {
        let folder = Url::parse("http://host/run/").unwrap();
        let page = r#"<a href="../">..</a><a href="sub/">sub/</a><A HREF='0001.sdf'>0001.sdf</A>
            <a href="/run/0000.sdf">0</a><a href="?C=M">sort</a><a href=".hidden">h</a>
            <a href="http://other/run/0002.sdf">other</a><a href="a%20b.sdf">a b</a>"#;
        let expected =
            ["0000.sdf", "0001.sdf", "a%20b.sdf"].map(|n| format!("http://host/run/{n}"));
        assert_eq!(links(&folder, page), expected);
    }

    #[test]
    fn content_ranges_that_are_not_valid_are_refused() {
        let parse = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(CONTENT_RANGE, text.parse().unwrap());
            content_range(&headers)
        };
        assert_eq!(parse("bytes 0-99/1000"), Some((0, 99, Some(1000))));
        assert_eq!(parse("bytes 5-5/*"), Some((5, 5, None)));
        for text in ["bytes 5-4/10", "bytes 0-10/10", "0-9/10", "bytes */10", "bytes 0-x/10"] {
            assert_eq!(parse(text), None, "{text}");
        }
        let most = u64::MAX;
        assert_eq!(parse(&format!("bytes 0-{most}/*")), None);
    }
}
