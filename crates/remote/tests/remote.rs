//! Files of a web server on the loopback interface, which answers as real ones do.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

use spile_core::format::Folder;
use spile_core::{ErrorKind, Limits, Source};

/// A server of one file, with any path that ends with `.bin`, and of an index page.
#[derive(Default)]
struct Server {
    content: Mutex<Vec<u8>>,
    version: AtomicU32,
    /// It sends the whole file.
    no_ranges: bool,
    /// It has no entity tags, but times.
    times: bool,
    /// Number of answers that end in the middle, and of those with the status 503.
    cuts: AtomicU32,
    busy: AtomicU32,
    requests: AtomicU64,
    bytes: AtomicU64,
}

fn take(left: &AtomicU32) -> bool {
    left.fetch_update(SeqCst, SeqCst, |n| n.checked_sub(1)).is_ok()
}

impl Server {
    fn start(self, content: Vec<u8>) -> (Arc<Self>, String) {
        spile_remote::install();
        *self.content.lock().unwrap() = content;
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = Arc::new(self);
        let served = server.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let server = served.clone();
                std::thread::spawn(move || server.serve(&stream.unwrap()));
            }
        });
        (server, format!("http://{address}"))
    }

    fn serve(&self, stream: &TcpStream) -> Option<()> {
        let mut lines = BufReader::new(stream).lines();
        loop {
            let path = lines.next()?.ok()?.split(' ').nth(1)?.to_string();
            let (mut range, mut condition) = (None, None);
            loop {
                let line = lines.next()?.ok()?.to_ascii_lowercase();
                if line.is_empty() {
                    break;
                }
                range = line.strip_prefix("range: bytes=").map(str::to_string).or(range);
                let own = line.strip_prefix("if-match: ");
                condition = own.map(str::to_string).or(condition);
                let own = line.strip_prefix("if-unmodified-since: ");
                condition = own.map(str::to_string).or(condition);
            }
            self.requests.fetch_add(1, SeqCst);
            let (head, body) = self.answer(&path, range, condition);
            let cut = body.len() > 1000 && take(&self.cuts);
            let sent = if cut { &body[..body.len() / 2] } else { &body };
            self.bytes.fetch_add(sent.len() as u64, SeqCst);
            let head = format!("HTTP/1.1 {head}\r\nContent-Length: {}\r\n\r\n", body.len());
            let mut stream = stream;
            stream.write_all(head.as_bytes()).ok()?;
            stream.write_all(sent).ok()?;
            if cut {
                stream.shutdown(std::net::Shutdown::Both).ok()?;
                return None;
            }
        }
    }

    fn answer(
        &self,
        path: &str,
        range: Option<String>,
        condition: Option<String>,
    ) -> (String, Vec<u8>) {
        if take(&self.busy) {
            return ("503 Service Unavailable".into(), Vec::new());
        }
        if path == "/run/" {
            let page = "<a href=\"../\">..</a><a href=\"b.bin\">b</a><a href=\"a.bin\">a</a>";
            return ("200 OK".into(), page.into());
        }
        if path.starts_with("/secret") {
            return ("403 Forbidden".into(), Vec::new());
        }
        if !path.contains(".bin") {
            return ("404 Not Found".into(), Vec::new());
        }
        let content = self.content.lock().unwrap();
        let version = self.version.load(SeqCst);
        let (field, tag) = if self.times {
            ("Last-Modified", format!("thu, 0{} nov 2026 00:00:00 gmt", version + 1))
        } else {
            ("ETag", format!("\"v{version}\""))
        };
        if condition.is_some_and(|condition| condition != tag) {
            return ("412 Precondition Failed".into(), Vec::new());
        }
        let Some(range) = range.filter(|_| !self.no_ranges) else {
            return (format!("200 OK\r\n{field}: {tag}"), content.clone());
        };
        let (first, last) = range.split_once('-').unwrap();
        let (first, last): (usize, usize) = (first.parse().unwrap(), last.parse().unwrap());
        let len = content.len();
        if first >= len {
            let head = format!("416 Range Not Satisfiable\r\nContent-Range: bytes */{len}");
            return (head, Vec::new());
        }
        let last = last.min(len - 1);
        let head = format!(
            "206 Partial Content\r\nContent-Range: bytes {first}-{last}/{len}\r\n{field}: {tag}"
        );
        (head, content[first..=last].to_vec())
    }
}

fn content(len: usize) -> Vec<u8> {
    (0..len as u64).map(|at| (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect()
}

#[test]
fn ranges_of_a_file_are_read() {
    let all = content(3_000_000);
    let (server, url) = Server::default().start(all.clone());
    let source = Source::open(format!("{url}/a.bin")).unwrap();
    assert_eq!((source.len(), source.requests(), source.bytes_read()), (3_000_000, 0, 32 << 10));
    assert_eq!(source.read_vec(100, 1000).unwrap(), all[100..1100]);
    assert_eq!(server.requests.load(SeqCst), 1);
    assert!(source.read_vec(1_000_000, 1_500_000).unwrap() == all[1_000_000..2_500_000]);
    assert_eq!(source.read_vec(2_999_990, 10).unwrap(), all[2_999_990..]);
    assert_eq!((server.requests.load(SeqCst), source.requests()), (3, 2));
    assert_eq!(source.bytes_read(), server.bytes.load(SeqCst));
    let ranges = [(2_000_000, 5), (10, 5), (1_000_000, 500_000)];
    let found = source.read_ranges(&ranges, &Limits::default()).unwrap();
    for ((offset, len), found) in ranges.into_iter().zip(found) {
        assert!(found == all[offset as usize..(offset + len) as usize]);
    }
    assert_eq!(source.read_vec(2_999_990, 11).unwrap_err().kind(), ErrorKind::Truncated);
}

#[test]
fn a_small_and_an_empty_file_are_read() {
    let (_, url) = Server::default().start(content(10));
    let source = Source::open(format!("{url}/a.bin")).unwrap();
    assert_eq!(source.read_vec(0, 10).unwrap(), content(10));
    let (_, url) = Server::default().start(Vec::new());
    assert!(Source::open(format!("{url}/a.bin")).unwrap().is_empty());
}

#[test]
fn answers_that_end_early_continue_and_busy_servers_are_asked_again() {
    let all = content(2_000_000);
    let cuts = AtomicU32::new(2);
    let (server, url) =
        Server { cuts, busy: AtomicU32::new(2), ..Server::default() }.start(all.clone());
    let source = Source::open(format!("{url}/a.bin")).unwrap();
    server.cuts.store(4, SeqCst);
    assert!(source.read_vec(1, 1_900_000).unwrap() == all[1..1_900_001]);
    assert_eq!((server.cuts.load(SeqCst), server.busy.load(SeqCst)), (0, 0));
    server.busy.store(u32::MAX, SeqCst);
    let error = source.read_vec(0, 1_000_000).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
    assert!(error.to_string().contains("503") && error.to_string().contains(&url), "{error}");
}

#[test]
fn a_file_that_changes_is_an_error() {
    for times in [false, true] {
        let (server, url) = Server { times, ..Server::default() }.start(content(2_000_000));
        let source = Source::open(format!("{url}/a.bin")).unwrap();
        source.read_vec(1_000_000, 10).unwrap();
        // The same length.
        server.content.lock().unwrap().reverse();
        server.version.store(1, SeqCst);
        let error = source.read_vec(1_900_000, 10).unwrap_err();
        assert_eq!((error.kind(), error.code()), (ErrorKind::Malformed, "remote-002"));
        assert!(error.suggestion().is_some());
    }
}

#[test]
fn a_server_without_ranges_sends_the_file_within_the_memory_limit() {
    let (_, url) = Server { no_ranges: true, ..Server::default() }.start(content(2_000_000));
    let path = format!("{url}/a.bin");
    assert!(
        Source::open(&path).unwrap().read_vec(5, 1_000_000).unwrap() == content(1_000_005)[5..]
    );
    let limits = Limits::default().with_memory(1 << 20);
    let error = Source::open_within(&path, &limits).err().unwrap();
    assert_eq!((error.kind(), error.code()), (ErrorKind::Limit, "remote-003"));
}

#[test]
fn errors_have_the_url_without_secrets() {
    let (_, url) = Server::default().start(content(10));
    let host = url.strip_prefix("http://").unwrap();
    let failed = |url: String| Source::open(url).err().unwrap();
    let error = failed(format!("http://user:hidden@{host}/none?signature=hidden"));
    assert_eq!(error.io_kind(), Some(std::io::ErrorKind::NotFound));
    assert_eq!(error.path().unwrap().to_str(), Some(format!("{url}/none").as_str()));
    assert!(!error.to_string().contains("hidden"), "{error}");
    let error = failed(format!("{url}/secret"));
    assert_eq!(error.code(), "remote-005");
    assert!(error.suggestion().is_some());
    let error = failed("http://127.0.0.1:1/a.bin".into());
    assert!(error.to_string().contains("http://127.0.0.1:1/a.bin"), "{error}");
    assert_eq!(failed("http:///".into()).code(), "remote-001");
    assert_eq!(failed("gopher://host/a".into()).code(), "core-scheme");
}

#[test]
fn a_folder_with_an_index_page_is_listed() {
    let (_, url) = Server::default().start(content(10));
    let folder = Folder::open(format!("{url}/run/")).unwrap();
    let expected = ["a", "b"].map(|name| std::path::PathBuf::from(format!("{url}/run/{name}.bin")));
    assert_eq!(folder.files(), expected);
    let joined = Source::joined(folder.path(), folder.files()).unwrap();
    assert_eq!(joined.read_vec(5, 10).unwrap(), [&content(10)[5..], &content(10)[..5]].concat());
}
