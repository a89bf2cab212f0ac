//! Conversion by several processes, for formats whose values are in files that are written independently.
//!
//! The files are in a folder `.NAME.incomplete` next to the output. One process [prepares](Parallel::prepare)
//! it, all processes [write](Parallel::write) their files, each atomically, and one process
//! [publishes](Parallel::finish) the folder under the name of the output. If the processes are killed, the
//! same conversion continues with the files that are missing.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde_json::json;
use spile_core::format::{
    RegionFile, Regions, WriteOptions, Writer, ensure_replaceable, writer_of,
};
use spile_core::os::Stamp;
use spile_core::sink::FolderSink;
use spile_core::{Dataset, Error, ErrorKind, Format, Hint, Overwrite, Result, Sink};

/// File in the incomplete folder that identifies the conversion.
const IDENTITY: &str = ".conversion.json";

/// A conversion by several processes.
pub struct Parallel {
    regions: Box<dyn Regions>,
    content: Dataset,
    format: &'static dyn Format,
    path: PathBuf,
    folder: PathBuf,
    overwrite: Overwrite,
}

impl Parallel {
    /// Describes the conversion of `content` to `path`, in every process. Reads no values and writes nothing.
    /// Fails if the format cannot be written by several processes.
    pub fn new(
        format: &'static dyn Format,
        content: &Dataset,
        path: &Path,
        options: &WriteOptions,
        overwrite: Overwrite,
    ) -> Result<Self> {
        let name = format.info().name;
        let writer = writer_of(format)?;
        let content = writer.prepare(content, options);
        let regions = match writer {
            Writer::Folder(writer) => writer.regions(&content, options)?,
            Writer::File(_) => None,
        };
        let regions = regions.ok_or_else(|| {
            Error::argument(format!("{name} files cannot be written by several processes"))
                .hint("a Zarr store can")
        })?;
        let file_name = path.file_name();
        let file_name =
            file_name.ok_or_else(|| Error::argument("the path has no name").with_path(path))?;
        let folder = path.with_file_name(format!(".{}.incomplete", file_name.to_string_lossy()));
        Ok(Self { regions, content, format, path: path.to_path_buf(), folder, overwrite })
    }

    /// Writes metadata and everything else that is not a file of its own, unless an earlier run of the same
    /// conversion did. `request` describes the conversion. Returns the numbers of the files that are missing.
    pub fn prepare(&mut self, request: &str) -> Result<Vec<usize>> {
        self.check_target()?;
        let identity = self.identity(request)?;
        let folder = FolderSink::create(&self.folder, Overwrite::Replace)?;
        self.regions.write_layout(&folder)?;
        folder.file(IDENTITY)?.write_all(&identity)?;
        if fs::read(self.folder.join(IDENTITY)).is_ok_and(|old| old == identity) {
            return Ok(self.missing());
        }
        folder.commit()?;
        Ok(self.missing())
    }

    /// The files, in the same order in all processes.
    pub fn files(&self) -> &[RegionFile] {
        self.regions.files()
    }

    /// Numbers of the files that do not exist.
    pub fn missing(&self) -> Vec<usize> {
        let exists = |file: &RegionFile| self.folder.join(&file.name).exists();
        let files = self.files().iter().enumerate();
        files.filter(|(_, file)| !exists(file)).map(|(number, _)| number).collect()
    }

    /// Writes the file with this number, unless it exists. The write is atomic.
    pub fn write(&self, number: usize) -> Result<()> {
        let path = self.folder.join(&self.files()[number].name);
        if path.exists() {
            return Ok(());
        }
        if let Some(above) = path.parent() {
            fs::create_dir_all(above).map_err(|e| Error::io(above, e))?;
        }
        let mut sink = Sink::create(&path, Overwrite::Replace)?;
        self.regions.write_region(number, &mut sink)?;
        sink.commit()
    }

    /// Publishes the folder under the name of the output. Fails if a file is missing.
    pub fn finish(&self) -> Result<()> {
        if let Some(number) = self.missing().first() {
            let name = &self.files()[*number].name;
            let message = format!("\"{name}\" was not written");
            return Err(Error::new(ErrorKind::Io, "", message)
                .with_path(&self.folder)
                .hint("run the same conversion again; it continues with the missing files"));
        }
        self.check_target()?;
        let identity = self.folder.join(IDENTITY);
        fs::remove_file(&identity).map_err(|e| Error::io(&identity, e))?;
        let folder = FolderSink::create(&self.path, self.overwrite)?;
        folder.adopt(&self.folder)?;
        folder.commit()
    }

    fn check_target(&self) -> Result<()> {
        match self.overwrite {
            Overwrite::Never if self.path.symlink_metadata().is_ok() => {
                Err(Error::new(ErrorKind::Exists, "", "already exists; nothing was written")
                    .with_path(&self.path)
                    .hint(Hint::Overwrite))
            }
            Overwrite::Replace if self.path.is_dir() => {
                ensure_replaceable(self.format, &self.path, self.content.limits())
            }
            _ => Ok(()),
        }
    }

    /// Identifies the conversion: the request, and size and modification time of the source files.
    fn identity(&self, request: &str) -> Result<Vec<u8>> {
        let source = self.content.source();
        let parts = source.parts().iter().map(spile_core::source::Part::path);
        let files: Vec<&Path> = match source.path() {
            Some(path) if source.parts().is_empty() => vec![path],
            _ => parts.collect(),
        };
        let mut rows = Vec::new();
        for file in files {
            let meta = fs::metadata(file).map_err(|e| Error::io(file, e))?;
            let Stamp { len, modified, .. } = Stamp::from(&meta);
            let modified = modified.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
            let (seconds, rest) = (modified.as_secs(), modified.subsec_nanos());
            rows.push(json!([file.to_string_lossy(), len, seconds, rest]));
        }
        let version = env!("CARGO_PKG_VERSION");
        let identity = json!({ "request": request, "version": version, "files": rows });
        Ok(identity.to_string().into_bytes())
    }
}

#[cfg(test)]
mod tests {

    use spile_core::format::{
        Abilities, FolderWriter, FormatInfo, Grade, Head, Loss, OpenOptions, Parsed, Score,
    };
    use spile_core::source::Source;

    use super::*;

    /// A format with three files and a header.
    struct Three;

    static INFO: FormatInfo = FormatInfo {
        name: "three",
        title: "",
        users: "",
        specification: "",
        extensions: &[],
        read: Grade::None,
        write: Grade::Complete,
        check: Grade::None,
        salvage: Grade::None,
    };

    impl Format for Three {
        fn info(&self) -> &'static FormatInfo {
            &INFO
        }

        fn probe(&self, _: Head<'_>) -> Score {
            0
        }

        fn open(&self, _: Source, _: &OpenOptions) -> Result<Parsed> {
            Err(Error::argument("not readable"))
        }

        fn abilities(&self) -> Abilities<'_> {
            Abilities::default().folder_writer(self)
        }
    }

    impl FolderWriter for Three {
        fn losses(&self, _: &Dataset, _: &Path) -> Result<Vec<Loss>> {
            Ok(Vec::new())
        }

        fn write_folder(&self, _: &Dataset, _: &FolderSink, _: &WriteOptions) -> Result<Vec<Loss>> {
            Ok(Vec::new())
        }

        fn regions(&self, _: &Dataset, _: &WriteOptions) -> Result<Option<Box<dyn Regions>>> {
            let file = |k: usize| RegionFile { name: format!("c/{k}"), bytes: 1 };
            Ok(Some(Box::new(Files((0..3).map(file).collect()))))
        }
    }

    struct Files(Vec<RegionFile>);

    impl Regions for Files {
        fn write_layout(&mut self, folder: &FolderSink) -> Result<()> {
            Ok(folder.file("head")?.write_all(b"head")?)
        }

        fn files(&self) -> &[RegionFile] {
            &self.0
        }

        fn write_region(&self, number: usize, sink: &mut Sink) -> Result<()> {
            Ok(sink.write_all(&[number as u8])?)
        }
    }

    fn job(path: &Path, overwrite: Overwrite) -> Parallel {
        let content = Dataset::of_bytes(Source::memory([]), &spile_core::limits::Limits::default());
        Parallel::new(&Three, &content, path, &WriteOptions::default(), overwrite).unwrap()
    }

    #[test]
    fn a_killed_conversion_continues_with_the_missing_files() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        let mut first = job(&path, Overwrite::Never);
        assert_eq!(first.prepare("a").unwrap(), [0, 1, 2]);
        first.write(1).unwrap();
        assert!(first.finish().is_err() && !path.exists());
        let mut second = job(&path, Overwrite::Never);
        assert_eq!(second.prepare("a").unwrap(), [0, 2]);
        // Another conversion does not use the files of this one.
        assert_eq!(job(&path, Overwrite::Never).prepare("b").unwrap(), [0, 1, 2]);
        for number in 0..3 {
            second.write(number).unwrap();
        }
        second.finish().unwrap();
        assert_eq!(fs::read(path.join("c/2")).unwrap(), [2]);
        assert_eq!(fs::read(path.join("head")).unwrap(), b"head");
        let names = |path: &Path| fs::read_dir(path).unwrap().count();
        assert_eq!((names(dir.path()), names(&path)), (1, 2));
        let error = job(&path, Overwrite::Never).prepare("a").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Exists);
    }

    #[test]
    fn another_folder_is_not_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        fs::create_dir(&path).unwrap();
        fs::write(path.join("thesis.tex"), b"").unwrap();
        assert!(job(&path, Overwrite::Replace).prepare("a").is_err());
        assert!(path.join("thesis.tex").exists());
    }
}
