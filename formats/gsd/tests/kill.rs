//! A child process writes and is ended by `SIGKILL` at a random time; the file must contain every
//! committed frame, complete, and nothing else.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use spile_core::limits::Limits;
use spile_core::sink::Overwrite;
use spile_gsd::wire::{About, Type};
use spile_gsd::{Commit, File, Mode, Version, Writer};

/// Total number of kills [override: `SPILE_KILLS`].
const KILLS: u64 = 1000;

/// Makes the test program the child process.
const CHILD: &str = "SPILE_GSD_CHILD";

const CASES: [Case; 10] = [
    Case { version: Version::V2_1, chunks: 3, rows: 10, commit: Commit::Frames(1), names: false },
    Case { version: Version::V2_1, chunks: 40, rows: 100, commit: Commit::Frames(1), names: true },
    Case { version: Version::V2_1, chunks: 300, rows: 1, commit: Commit::Frames(1), names: true },
    Case { version: Version::V2_1, chunks: 7, rows: 3, commit: Commit::Frames(64), names: true },
    Case {
        version: Version::V2_1,
        chunks: 5,
        rows: 60_000,
        commit: Commit::Frames(1),
        names: false,
    },
    Case { version: Version::V2_0, chunks: 1, rows: 1, commit: Commit::Frames(1), names: true },
    Case { version: Version::V2_1, chunks: 9, rows: 20, commit: Commit::OnFlush, names: true },
    Case { version: Version::V1_0, chunks: 20, rows: 50, commit: Commit::Frames(1), names: false },
    Case { version: Version::V0_0_1, chunks: 6, rows: 5, commit: Commit::Frames(1), names: true },
    Case { version: Version::V0_0_1, chunks: 80, rows: 5, commit: Commit::Frames(3), names: true },
];

struct Case {
    version: Version,
    /// Chunks per frame.
    chunks: u64,
    /// Rows per chunk.
    rows: u64,
    commit: Commit,
    /// Every frame has a new name.
    names: bool,
}

impl Case {
    fn name(&self, frame: u64, k: u64) -> String {
        // More names than the initial list can store.
        if self.names && k == 0 { format!("new/{}", frame % 3000) } else { format!("chunk/{k}") }
    }

    fn bytes(&self, frame: u64, k: u64) -> Vec<u8> {
        let value = (frame * 1000 + k) as u32;
        (0..self.rows).flat_map(|row| (value ^ (row as u32) << 20).to_le_bytes()).collect()
    }

    fn write_frame(&self, file: &mut Writer) {
        let frame = file.nframes();
        for k in 0..self.chunks {
            let (name, bytes) = (self.name(frame, k), self.bytes(frame, k));
            file.write_chunk(&name, Type::UInt32, self.rows, 1, &bytes).unwrap();
        }
        file.end_frame().unwrap();
    }

    /// Checks that all frames are complete and returns their number.
    fn examine(&self, path: &Path) -> u64 {
        let file = File::open(path, &Limits::default()).unwrap();
        let frames = file.nframes().unwrap();
        assert_eq!(file.nchunks(), frames * self.chunks, "incomplete frame");
        // The last frames and some others.
        let some = (0..frames).filter(|f| f + 3 > frames || f % (1 + frames / 50) == 0);
        for frame in some {
            for k in 0..self.chunks {
                let chunk = file.find_chunk(frame, &self.name(frame, k)).unwrap().unwrap();
                assert!(file.read_chunk(&chunk).unwrap() == self.bytes(frame, k), "frame {frame}");
            }
        }
        frames
    }
}

/// The child process: writes until it is killed.
#[test]
fn child() {
    let Ok(task) = std::env::var(CHILD) else { return };
    let (number, path) = task.split_once(' ').unwrap();
    let case = &CASES[number.parse::<usize>().unwrap()];
    let mode = Mode { commit: case.commit, durable: false };
    let mut file = Writer::append(path, mode, &Limits::default()).unwrap();
    let mut out = std::io::stdout();
    let every = if let Commit::Frames(n) = case.commit { n } else { 10 };
    for number in 1_u64.. {
        case.write_frame(&mut file);
        let committed = number % every == 0;
        if committed {
            if case.commit == Commit::OnFlush {
                file.flush().unwrap();
            }
            // The parent process relies on this number.
            writeln!(out, "committed {}", file.nframes()).unwrap();
            out.flush().unwrap();
        }
    }
}

#[test]
fn kills_at_any_moment_lose_no_committed_frame_and_show_no_half_one() {
    let kills = std::env::var("SPILE_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(KILLS);
    // Files in memory are faster.
    let temp = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    let (mut committed_frames, mut torn) = (0, 0);
    for (number, case) in CASES.iter().enumerate() {
        let path = temp.path().join(format!("{number}.gsd"));
        let about =
            About { application: "kill".into(), schema: "test".into(), schema_version: 1 << 16 };
        let make = || {
            let mode = Mode::default();
            Writer::create(&path, Overwrite::Replace, case.version, &about, mode).unwrap().close()
        };
        make().unwrap();
        let mut known = 0;
        for kill in 0..kills / CASES.len() as u64 {
            let mut child = Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "child", "--nocapture", "--test-threads=1"])
                .env(CHILD, format!("{number} {}", path.display()))
                .stdout(Stdio::piped())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
            let count = |line: &str| {
                line.split_once("committed ").map_or(0, |(_, n)| n.trim().parse().unwrap())
            };
            // Wait for the first commit, then a short time.
            let first =
                lines.by_ref().map_while(Result::ok).map(|line| count(&line)).find(|n| *n > 0);
            known = first.expect("the child exited").max(known);
            std::thread::sleep(Duration::from_micros((kill * 7919 + 13) % 4000));
            child.kill().unwrap();
            child.wait().unwrap();
            // Frames that it reported are committed.
            for line in lines.map_while(Result::ok) {
                known = count(&line).max(known);
            }
            torn += u64::from(File::open(&path, &Limits::default()).unwrap().has_torn_commit());
            let frames = case.examine(&path);
            assert!(frames >= known, "case {number}: {known} committed, {frames} found");
            // The file can be appended to.
            let mode = Mode::default();
            let mut file = Writer::append(&path, mode, &Limits::default()).unwrap();
            assert_eq!(file.nframes(), frames);
            case.write_frame(&mut file);
            file.close().unwrap();
            committed_frames += frames;
            known = frames + 1;
            if file_is_large(&path) {
                assert_eq!(case.examine(&path), known);
                make().unwrap();
                known = 0;
            }
        }
    }
    println!("{committed_frames} frames survived, {torn} interrupted commits");
    assert!(committed_frames > kills);
}

fn file_is_large(path: &Path) -> bool {
    std::fs::metadata(path).unwrap().len() > 30 << 20
}
