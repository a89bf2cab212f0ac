//! Object stores: S3, Google Cloud Storage, Azure Blob Storage. Credentials come from the environment variables of
//! the vendors' own tools.

use std::io::{self, Read};
use std::path::Path as FilePath;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use object_store::aws::AmazonS3Builder;
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::path::Path;
use object_store::{
    Error as StoreError, GetOptions, GetRange, ObjectMeta, ObjectStore, ObjectStoreExt as _,
    PutMode, PutOptions, RetryConfig,
};
use spile_core::source::shown;
use spile_core::{Error, ErrorKind, Source};

use crate::reader::{Failure, Place, Reader, Version};
use crate::runtime::Runtime;
use crate::web::chain;
use crate::{HEAD, changed, denied, invalid, unexpected};

/// Bytes of one part of an upload. A store takes at most 10,000 parts.
const PART: u64 = 16 << 20;

/// Parts of an upload that are sent at the same time.
const PARTS: usize = 4;

/// An object of a store.
pub(crate) struct Object {
    store: Arc<dyn ObjectStore>,
    path: Path,
}

/// The store and the key of a URL.
fn split(url: &str) -> io::Result<(&str, &str, &str)> {
    let (scheme, rest) = url.split_once("://").ok_or_else(|| invalid(url))?;
    let (bucket, key) = rest.split_once('/').unwrap_or((rest, ""));
    if bucket.is_empty() { Err(invalid(url)) } else { Ok((scheme, bucket, key)) }
}

impl Object {
    pub(crate) fn new(url: &str) -> io::Result<Self> {
        let (scheme, bucket, key) = split(url)?;
        let retry = RetryConfig {
            max_retries: 4,
            retry_timeout: Duration::from_mins(1),
            ..RetryConfig::default()
        };
        let place = format!("{}://{bucket}", scheme.to_ascii_lowercase());
        let built = match scheme.to_ascii_lowercase().as_str() {
            "s3" | "s3a" => {
                let endpoint = ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"];
                let plain = endpoint.iter().find_map(|name| std::env::var(name).ok());
                let plain = plain.is_some_and(|url| url.starts_with("http://"));
                let mut builder = AmazonS3Builder::from_env().with_url(place).with_retry(retry);
                // The user named the endpoint.
                if plain {
                    builder = builder.with_allow_http(true);
                }
                builder.build().map(|store| Arc::new(store) as Arc<dyn ObjectStore>)
            }
            "gs" => {
                let builder = GoogleCloudStorageBuilder::from_env().with_url(place);
                builder.with_retry(retry).build().map(|store| Arc::new(store) as _)
            }
            _ => {
                let builder = MicrosoftAzureBuilder::from_env().with_url(place);
                builder.with_retry(retry).build().map(|store| Arc::new(store) as _)
            }
        };
        let store = built.map_err(|error| failed(&error).into_error())?;
        let path = Path::parse(key.trim_end_matches('/')).map_err(|_| invalid(url))?;
        Ok(Self { store, path })
    }

    /// Fills `buffer` from `offset`, and counts the bytes in `done` although it may fail.
    pub(crate) async fn read(
        &self,
        version: &Version,
        offset: u64,
        buffer: &mut [u8],
        done: &mut usize,
    ) -> Result<(), Failure> {
        let end = offset + buffer.len() as u64;
        let options = GetOptions {
            range: Some(GetRange::Bounded(offset..end)),
            if_match: version.tag.clone(),
            ..GetOptions::default()
        };
        let found =
            self.store.get_opts(&self.path, options).await.map_err(|error| match error {
                StoreError::Precondition { .. } | StoreError::NotFound { .. } => {
                    Failure::Final(changed())
                }
                error => failed(&error),
            })?;
        if version_of(&found.meta) != *version {
            return Err(Failure::Final(changed()));
        }
        if found.range != (offset..end) {
            let what =
                format!("expected bytes {offset} to {end}, the server sent {:?}", found.range);
            return Err(Failure::Final(unexpected(what)));
        }
        let mut stream = found.into_stream();
        while *done < buffer.len() {
            let Some(part) = stream.next().await else {
                let message = "the server closed the connection before the end of its answer";
                return Err(Failure::Again(io::Error::new(io::ErrorKind::UnexpectedEof, message)));
            };
            let part = part.map_err(|error| Failure::Again(failed(&error).into_error()))?;
            let count = part.len().min(buffer.len() - *done);
            buffer[*done..*done + count].copy_from_slice(&part[..count]);
            *done += count;
        }
        Ok(())
    }

    /// The version of the object and its first bytes.
    async fn begin(&self) -> Result<(Version, Vec<u8>), StoreError> {
        let range = Some(GetRange::Bounded(0..HEAD));
        let options = GetOptions { range, ..GetOptions::default() };
        let error = match self.store.get_opts(&self.path, options).await {
            Ok(found) => {
                let version = version_of(&found.meta);
                return Ok((version, found.bytes().await?.to_vec()));
            }
            Err(error) => error,
        };
        // An empty object has no range.
        match self.store.head(&self.path).await {
            Ok(meta) if meta.size == 0 => Ok((version_of(&meta), Vec::new())),
            _ => Err(error),
        }
    }
}

fn version_of(meta: &ObjectMeta) -> Version {
    let modified = Some(meta.last_modified.to_rfc2822());
    Version { len: meta.size, tag: meta.e_tag.clone(), modified }
}

impl Failure {
    pub(crate) fn into_error(self) -> io::Error {
        let (Self::Again(error) | Self::Final(error)) = self;
        error
    }
}

/// An error of the crate, which has made several attempts.
fn failed(error: &StoreError) -> Failure {
    let message = chain(error);
    Failure::Final(match error {
        StoreError::NotFound { .. } => {
            io::Error::new(io::ErrorKind::NotFound, "there is no such object")
        }
        StoreError::PermissionDenied { .. } | StoreError::Unauthenticated { .. } => denied(
            message,
            "set the environment variables with the credentials (AWS_ACCESS_KEY_ID and \
             AWS_SECRET_ACCESS_KEY, GOOGLE_APPLICATION_CREDENTIALS, AZURE_STORAGE_ACCOUNT_NAME and \
             AZURE_STORAGE_ACCOUNT_KEY), or AWS_SKIP_SIGNATURE=true for public objects",
        ),
        _ => io::Error::other(message),
    })
}

/// Opens an object.
pub(crate) fn open(url: &str) -> io::Result<Source> {
    let runtime = Runtime::get()?;
    let object = Object::new(url)?;
    let begun = runtime.wait(object.begin());
    let (version, head) = begun.map_err(|error| failed(&error).into_error())?;
    let (name, len) = (Some(shown(FilePath::new(url))), version.len);
    let reader = Reader::new(url, version, runtime, Place::Object(object));
    Ok(Source::remote(name, len, Box::new(reader), &head))
}

/// The objects directly in a folder, without hidden ones.
pub(crate) fn list(url: &str) -> io::Result<Vec<String>> {
    let runtime = Runtime::get()?;
    let Object { store, path } = Object::new(url)?;
    let (scheme, bucket, _) = split(url)?;
    let listed = runtime.wait(store.list_with_delimiter(Some(&path)));
    let listed = listed.map_err(|error| failed(&error).into_error())?;
    let files = listed.objects.into_iter().map(|object| object.location);
    let shown = files.filter(|file| file.filename().is_some_and(|name| !name.starts_with('.')));
    Ok(shown.map(|file| format!("{scheme}://{bucket}/{file}")).collect())
}

/// Writes an object. It appears when all its bytes are there.
pub(crate) fn upload(url: &str, content: &mut dyn Read, replace: bool) -> io::Result<()> {
    let runtime = Runtime::get()?;
    let Object { store, path } = Object::new(url)?;
    let mut part = next_part(content)?;
    runtime.wait(async {
        if (part.len() as u64) < PART {
            let mode = if replace { PutMode::Overwrite } else { PutMode::Create };
            let options = PutOptions { mode, ..PutOptions::default() };
            let put = store.put_opts(&path, part.into(), options).await;
            return put.map(|_| ()).map_err(refused);
        }
        if !replace {
            match store.head(&path).await {
                Ok(_) => return Err(exists()),
                Err(StoreError::NotFound { .. }) => {}
                // Otherwise an object that may not be looked at would be replaced.
                Err(error) => return Err(refused(error)),
            }
        }
        let mut upload = store.put_multipart(&path).await.map_err(refused)?;
        let done = async {
            while !part.is_empty() {
                let mut sent = Vec::with_capacity(PARTS);
                while sent.len() < PARTS && !part.is_empty() {
                    let full = std::mem::replace(&mut part, next_part(content)?);
                    sent.push(upload.put_part(full.into()));
                }
                for result in futures_util::future::join_all(sent).await {
                    result.map_err(refused)?;
                }
            }
            upload.complete().await.map_err(refused)
        };
        let done = done.await;
        if done.is_err() {
            // The parts are removed; the first error is reported.
            let _ = upload.abort().await;
        }
        done.map(|_| ())
    })
}

/// The next bytes of the content; empty at the end.
fn next_part(content: &mut dyn Read) -> io::Result<Vec<u8>> {
    let mut part = Vec::new();
    content.take(PART).read_to_end(&mut part)?;
    Ok(part)
}

fn refused(error: StoreError) -> io::Error {
    match error {
        StoreError::AlreadyExists { .. } => exists(),
        error => failed(&error).into_error(),
    }
}

fn exists() -> io::Error {
    io::Error::other(Error::new(ErrorKind::Exists, "", "the object exists"))
}
