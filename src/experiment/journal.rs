//! The finished points of a sweep on disk, so that an interrupted one goes on where it was.
//!
//! A text head that says whose journal it is, then binary records: length (u32), FNV-1a of the payload (u64),
//! payload (postcard: the point's index and its runs), little-endian. Floating point numbers stand there as
//! their bits, so that what is continued is what would have been. A record that an interruption cut short is
//! dropped, and its point is run again.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use crate::metrics::RunSummary;

const MAGIC: &str = "knee sweep journal\n";
/// Bytes of a record before its payload.
const RECORD_HEAD: usize = 12;

/// Why a journal cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    #[error("cannot keep finished points in {}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("{}: is no journal of a sweep; remove it, or leave out --resume to start over", .0.display())]
    NotAJournal(PathBuf),
    #[error(
        "{}: was written by knee {found}, this is {here}, and points of two versions do not belong into one \
         result; leave out --resume to start over",
        path.display()
    )]
    OtherVersion { path: PathBuf, found: String, here: &'static str },
    #[error(
        "{}: belongs to another sweep (the scenario, its overrides, --precision or the data it reads have \
         changed since); leave out --resume to start over, or name another folder with --out",
        .0.display()
    )]
    OtherSweep(PathBuf),
}

/// An open journal. Points are added from many threads.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    /// Points that were finished before, by index.
    finished: Mutex<BTreeMap<u64, Vec<RunSummary>>>,
    file: Mutex<File>,
    /// The first thing that went wrong while adding.
    fault: Mutex<Option<io::Error>>,
}

fn head(sweep: u64) -> String {
    format!("{MAGIC}{}\n{sweep:016x}\n", env!("CARGO_PKG_VERSION"))
}

impl Journal {
    /// A new journal of the sweep with this fingerprint, in place of any that is there.
    ///
    /// # Errors
    /// [`JournalError::Io`].
    pub fn begin(path: &Path, sweep: u64) -> Result<Self, JournalError> {
        let io = |source| JournalError::Io { path: path.to_path_buf(), source };
        if let Some(dir) = path.parent() {
            fs::create_dir_all(dir).map_err(io)?;
        }
        let mut file = File::create(path).map_err(io)?;
        file.write_all(head(sweep).as_bytes()).map_err(io)?;
        Ok(Self::with(path, file, BTreeMap::new()))
    }

    /// The journal of the same sweep that was interrupted; a new one where there is none.
    ///
    /// # Errors
    /// [`JournalError`].
    pub fn resume(path: &Path, sweep: u64) -> Result<Self, JournalError> {
        let io = |source| JournalError::Io { path: path.to_path_buf(), source };
        let bytes = match fs::read(path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Self::begin(path, sweep),
            Err(error) => return Err(io(error)),
        };
        let head = head(sweep);
        // Interrupted before there was anything.
        if head.as_bytes().starts_with(&bytes) && bytes.len() < head.len() {
            return Self::begin(path, sweep);
        }
        if !bytes.starts_with(head.as_bytes()) {
            return Err(not_ours(path, &bytes));
        }
        let (finished, read) = records(&bytes[head.len()..]);
        let file = OpenOptions::new().append(true).open(path).map_err(io)?;
        file.set_len((head.len() + read) as u64).map_err(io)?;
        Ok(Self::with(path, file, finished))
    }

    fn with(path: &Path, file: File, finished: BTreeMap<u64, Vec<RunSummary>>) -> Self {
        Self {
            path: path.to_path_buf(),
            finished: Mutex::new(finished),
            file: Mutex::new(file),
            fault: Mutex::new(None),
        }
    }

    /// How many points were finished before and not taken yet.
    #[must_use]
    pub fn finished(&self) -> usize {
        lock(&self.finished).len()
    }

    /// The runs of a point that was finished before.
    pub fn take(&self, point: usize) -> Option<Vec<RunSummary>> {
        lock(&self.finished).remove(&(point as u64))
    }

    /// Keeps a finished point. What goes wrong is said at the end ([`Journal::fault`]): it must not cost the
    /// result.
    pub fn add(&self, point: usize, runs: &[RunSummary]) {
        let written =
            postcard::to_allocvec(&(point as u64, runs)).map_err(io::Error::other).and_then(|payload| {
                let length = u32::try_from(payload.len()).map_err(io::Error::other)?;
                let mut record = Vec::with_capacity(RECORD_HEAD + payload.len());
                record.extend(length.to_le_bytes());
                record.extend(fnv1a64(&payload).to_le_bytes());
                record.extend(payload);
                lock(&self.file).write_all(&record)
            });
        if let Err(error) = written {
            lock(&self.fault).get_or_insert(error);
        }
    }

    /// What went wrong while points were added: not all of them are kept.
    #[must_use]
    pub fn fault(&self) -> Option<JournalError> {
        let source = lock(&self.fault).take()?;
        Some(JournalError::Io { path: self.path.clone(), source })
    }
}

/// A panic elsewhere leaves a journal that is as good as before.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn not_ours(path: &Path, bytes: &[u8]) -> JournalError {
    let Some(rest) = bytes.strip_prefix(MAGIC.as_bytes()) else {
        return JournalError::NotAJournal(path.to_path_buf());
    };
    let version = rest.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let (found, here) = (String::from_utf8_lossy(version).into_owned(), env!("CARGO_PKG_VERSION"));
    if found == here {
        JournalError::OtherSweep(path.to_path_buf())
    } else {
        JournalError::OtherVersion { path: path.to_path_buf(), found, here }
    }
}

/// The whole records at the start of `bytes`, and how many bytes they are.
fn records(bytes: &[u8]) -> (BTreeMap<u64, Vec<RunSummary>>, usize) {
    let (mut points, mut read) = (BTreeMap::new(), 0);
    while let Some((point, runs, length)) = record(&bytes[read..]) {
        points.insert(point, runs);
        read += length;
    }
    (points, read)
}

fn record(bytes: &[u8]) -> Option<(u64, Vec<RunSummary>, usize)> {
    let length = u32::from_le_bytes(bytes.get(..4)?.try_into().ok()?) as usize;
    let hash = u64::from_le_bytes(bytes.get(4..RECORD_HEAD)?.try_into().ok()?);
    let end = RECORD_HEAD.checked_add(length)?;
    let payload = bytes.get(RECORD_HEAD..end)?;
    let (point, runs) = (fnv1a64(payload) == hash).then(|| postcard::from_bytes(payload).ok()).flatten()?;
    Some((point, runs, end))
}

/// The 64-bit Fowler-Noll-Vo hash 1a: enough to see that two results had the same input, on any platform.
#[must_use]
pub fn fnv1a64(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::Catalog;
    use crate::experiment::run_point;
    use crate::scenario::{Document, Override};

    #[test]
    fn the_hash_is_the_published_one() {
        // Test vectors of the authors of FNV.
        assert_eq!(fnv1a64(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a64(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fnv1a64(b"foobar"), 0x8594_4171_f739_67e8);
    }

    fn runs() -> Vec<RunSummary> {
        let few = [Override::new("run.requests", "300"), Override::new("run.replications", "2")];
        let document = Document::load("two-classes").unwrap().with_overrides(&few).unwrap();
        run_point(&document.scenario(&Catalog::default()).unwrap()).unwrap().runs
    }

    fn file(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("knee-journal-{}-{name}", std::process::id()))
    }

    #[test]
    fn what_is_kept_comes_back_to_the_bit() {
        let (path, mut runs) = (file("bits"), runs());
        // Numbers that text would lose.
        runs[0].evidence.growth_per_s = f64::from_bits(0x7ff8_0000_0000_1234);
        runs[0].window.run_s = 0.1 + 0.2;
        runs[1].window.run_s = -0.0;
        let journal = Journal::begin(&path, 7).unwrap();
        journal.add(3, &runs);
        journal.add(0, &runs[..1]);
        assert!(journal.fault().is_none());
        let resumed = Journal::resume(&path, 7).unwrap();
        assert_eq!(resumed.finished(), 2);
        let back = resumed.take(3).unwrap();
        let bytes = |runs: &[RunSummary]| postcard::to_allocvec(runs).unwrap();
        assert_eq!(bytes(&back), bytes(&runs));
        assert_eq!(format!("{back:?}"), format!("{runs:?}"));
        assert!(resumed.take(3).is_none() && resumed.take(1).is_none());
        fs::remove_file(path).unwrap();
    }

    #[test]
    fn a_journal_cut_anywhere_loses_only_what_was_cut() {
        let (path, runs) = (file("cut"), runs());
        let journal = Journal::begin(&path, 7).unwrap();
        journal.add(0, &runs[..1]);
        let one = fs::metadata(&path).unwrap().len() as usize;
        journal.add(1, &runs);
        let whole = fs::read(&path).unwrap();
        for cut in (0..whole.len()).step_by(97).chain([one - 1, one, whole.len() - 1]) {
            fs::write(&path, &whole[..cut]).unwrap();
            let resumed = Journal::resume(&path, 7).unwrap();
            assert_eq!(resumed.finished(), usize::from(cut >= one), "cut at {cut}");
            // It goes on behind the last whole record.
            resumed.add(1, &runs);
            assert!(Journal::resume(&path, 7).unwrap().take(1).is_some());
        }
        let mut damaged = whole.clone();
        *damaged.last_mut().unwrap() ^= 1;
        fs::write(&path, damaged).unwrap();
        assert_eq!(Journal::resume(&path, 7).unwrap().finished(), 1);
        fs::remove_file(path).unwrap();
    }

    #[test]
    fn another_sweeps_journal_is_refused() {
        let path = file("other");
        Journal::begin(&path, 7).unwrap();
        assert!(matches!(Journal::resume(&path, 8), Err(JournalError::OtherSweep(_))));
        fs::write(&path, format!("{MAGIC}0.0.1\n0000000000000007\n")).unwrap();
        assert!(matches!(Journal::resume(&path, 7), Err(JournalError::OtherVersion { .. })));
        fs::write(&path, "load,ttft\n").unwrap();
        assert!(matches!(Journal::resume(&path, 7), Err(JournalError::NotAJournal(_))));
        fs::remove_file(path).unwrap();
    }
}
