//! The threads that wait for answers of servers. There is one set per process: threads and connections do not survive
//! a fork.

use std::future::Future;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Longest time to connect, and between two parts of an answer.
const CONNECT: Duration = Duration::from_secs(10);
const SILENCE: Duration = Duration::from_secs(30);

pub(crate) struct Runtime {
    process: u32,
    tokio: tokio::runtime::Runtime,
    /// For web servers.
    pub(crate) client: reqwest::Client,
}

static RUNTIME: Mutex<Option<Arc<Runtime>>> = Mutex::new(None);

impl Runtime {
    /// The runtime of this process.
    pub(crate) fn get() -> io::Result<Arc<Self>> {
        let process = std::process::id();
        let mut kept = RUNTIME.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(runtime) = kept.as_ref().filter(|runtime| runtime.process == process) {
            return Ok(runtime.clone());
        }
        // A second installation has the same provider.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let tokio = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name("spile-remote")
            .enable_all()
            .build()?;
        let builder = || {
            reqwest::Client::builder()
                .user_agent(concat!("spile/", env!("CARGO_PKG_VERSION")))
                .connect_timeout(CONNECT)
                .read_timeout(SILENCE)
        };
        // A system without certificates reads http only.
        let client = builder().build().or_else(|_| builder().tls_certs_only([]).build());
        let client = client.map_err(io::Error::other)?;
        let runtime = Arc::new(Self { process, tokio, client });
        // The threads of the other process do not exist in this one: they cannot be joined.
        std::mem::forget(kept.replace(runtime.clone()));
        Ok(runtime)
    }

    /// Whether this is still the process that created it.
    pub(crate) fn is_current(&self) -> bool {
        self.process == std::process::id()
    }

    /// Waits for the result on the calling thread.
    pub(crate) fn wait<T>(&self, future: impl Future<Output = T>) -> T {
        self.tokio.block_on(future)
    }

    /// Waits before another attempt: longer each time.
    pub(crate) async fn pause(attempt: u32) {
        tokio::time::sleep(Duration::from_millis(100 << attempt.min(5))).await;
    }
}
