//! The finished points of a sweep on disk, so that an interrupted one goes on where it was.
//!
//! A text head that says whose journal it is, then binary records: length (u32), FNV-1a of the payload (u64),
//! payload (postcard: the point's index and its runs), little-endian. Floating point numbers stand there as
//! their bits, so that what is continued is what would have been. A record that an interruption cut short, or
//! that is damaged, is dropped, and its point is run again. Whoever has a journal open has locked it.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use crate::disk;
use crate::metrics::RunSummary;

const MAGIC: &str = "knee sweep journal\n";
/// Bytes of a record before its payload.
const RECORD_HEAD: usize = 12;
/// Lines of the head: magic, version, fingerprint.
const HEAD_LINES: usize = 3;

/// What is done with a journal that is there already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Start {
    /// It is left alone, unless no point in it is finished.
    #[default]
    New,
    /// Its finished points are gone on with.
    Resume,
    /// Its finished points are discarded.
    Restart,
}

/// Why a journal cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    #[error("cannot keep finished points in {}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("{}: is no journal of a sweep; remove it, or name another folder with --out", .0.display())]
    NotAJournal(PathBuf),
    #[error(
        "{}: holds {finished} finished points of this sweep, which was interrupted; --resume goes on with them, \
         --restart discards them",
        path.display()
    )]
    Unfinished { path: PathBuf, finished: usize },
    #[error(
        "{}: was written by knee {found}, this is {here}, and points of two versions do not belong into one \
         result; discard them with --restart, or name another folder with --out",
        path.display()
    )]
    OtherVersion { path: PathBuf, found: String, here: &'static str },
    #[error(
        "{}: belongs to another sweep (the scenario, its overrides, --precision or the data it reads have \
         changed since); discard its finished points with --restart, or name another folder with --out",
        .0.display()
    )]
    OtherSweep(PathBuf),
    #[error("{}: another sweep is writing there; name another folder with --out", .0.display())]
    InUse(PathBuf),
}

/// An open journal. Points are added from many threads.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    /// Points that were finished before, by index.
    finished: Mutex<BTreeMap<u64, Vec<RunSummary>>>,
    is_damaged: bool,
    file: Mutex<File>,
    /// The first thing that went wrong while adding.
    fault: Mutex<Option<io::Error>>,
}

fn head(sweep: u64) -> String {
    format!("{MAGIC}{}\n{sweep:016x}\n", env!("CARGO_PKG_VERSION"))
}

impl Journal {
    /// The journal at `path` of the sweep with this fingerprint; a new one where there is none.
    ///
    /// # Errors
    /// [`JournalError`]; the file is then left as it was.
    pub fn open(path: &Path, sweep: u64, start: Start) -> Result<Self, JournalError> {
        let io = |source| JournalError::Io { path: path.to_path_buf(), source };
        if let Some(dir) = path.parent() {
            fs::create_dir_all(dir).map_err(io)?;
        }
        // A named pipe would be waited for.
        match disk::must_be_regular(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(io(error)),
            _ => {}
        }
        let open = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path);
        let mut file = open.map_err(io)?;
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => return Err(JournalError::InUse(path.to_path_buf())),
            // Some file systems know no locks: then nothing is known of others.
            Ok(()) | Err(TryLockError::Error(_)) => {}
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(io)?;
        let head = head(sweep);
        if !bytes.starts_with(head.as_bytes()) {
            if !is_head_alone(&bytes) {
                let error = not_ours(path, &bytes);
                if start != Start::Restart || matches!(error, JournalError::NotAJournal(_)) {
                    return Err(error);
                }
            }
            return Self::begun(path, file, &head).map_err(io);
        }
        let records = records(&bytes[head.len()..]);
        match (start, records.points.len()) {
            (Start::New, finished @ 1..) => {
                return Err(JournalError::Unfinished { path: path.to_path_buf(), finished });
            }
            (Start::New | Start::Restart, _) => return Self::begun(path, file, &head).map_err(io),
            (Start::Resume, _) => {}
        }
        let end = (head.len() + records.read) as u64;
        file.set_len(end).and_then(|()| file.seek(SeekFrom::Start(end))).map_err(io)?;
        Ok(Self { is_damaged: records.is_damaged, ..Self::with(path, file, records.points) })
    }

    /// A journal without points in place of what the file holds.
    fn begun(path: &Path, mut file: File, head: &str) -> io::Result<Self> {
        file.set_len(0)?;
        file.rewind()?;
        file.write_all(head.as_bytes())?;
        Ok(Self::with(path, file, BTreeMap::new()))
    }

    fn with(path: &Path, file: File, finished: BTreeMap<u64, Vec<RunSummary>>) -> Self {
        Self {
            path: path.to_path_buf(),
            finished: Mutex::new(finished),
            is_damaged: false,
            file: Mutex::new(file),
            fault: Mutex::new(None),
        }
    }

    /// How many points were finished before and not taken yet.
    #[must_use]
    pub fn finished(&self) -> usize {
        lock(&self.finished).len()
    }

    /// Whether a part of it could not be read: the points there are run again.
    #[must_use]
    pub const fn is_damaged(&self) -> bool {
        self.is_damaged
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

    /// Removes the file, when the result is kept elsewhere. One that cannot be removed is found to be complete
    /// the next time.
    pub fn remove(&self) {
        let _ = fs::remove_file(&self.path);
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

/// Whether there is no more than the head of some journal, or a part of one: nothing is lost with it.
fn is_head_alone(bytes: &[u8]) -> bool {
    if MAGIC.as_bytes().starts_with(bytes) {
        return true;
    }
    let mut lines = bytes.split_inclusive(|byte| *byte == b'\n');
    let head: usize = lines.by_ref().take(HEAD_LINES).map(<[u8]>::len).sum();
    bytes.starts_with(MAGIC.as_bytes()) && head == bytes.len()
}

/// What stands behind the head of a journal.
struct Records {
    points: BTreeMap<u64, Vec<RunSummary>>,
    /// Bytes up to where nothing more can be told apart.
    read: usize,
    is_damaged: bool,
}

fn records(bytes: &[u8]) -> Records {
    let mut records = Records { points: BTreeMap::new(), read: 0, is_damaged: false };
    while let Some((payload, hash, length)) = record(&bytes[records.read..]) {
        let kept = (fnv1a64(payload) == hash).then(|| postcard::from_bytes(payload).ok()).flatten();
        match kept {
            Some((point, runs)) => {
                records.points.insert(point, runs);
            }
            None => records.is_damaged = true,
        }
        records.read += length;
    }
    records.is_damaged |= records.read < bytes.len();
    records
}

/// The payload of the first record, its hash as written and the bytes of the record.
fn record(bytes: &[u8]) -> Option<(&[u8], u64, usize)> {
    let length = u32::from_le_bytes(bytes.get(..4)?.try_into().ok()?) as usize;
    let hash = u64::from_le_bytes(bytes.get(4..RECORD_HEAD)?.try_into().ok()?);
    let end = RECORD_HEAD.checked_add(length)?;
    Some((bytes.get(RECORD_HEAD..end)?, hash, end))
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
        let journal = Journal::open(&path, 7, Start::New).unwrap();
        journal.add(3, &runs);
        journal.add(0, &runs[..1]);
        assert!(journal.fault().is_none());
        drop(journal);
        let resumed = Journal::open(&path, 7, Start::Resume).unwrap();
        assert_eq!((resumed.finished(), resumed.is_damaged()), (2, false));
        let back = resumed.take(3).unwrap();
        let bytes = |runs: &[RunSummary]| postcard::to_allocvec(runs).unwrap();
        assert_eq!(bytes(&back), bytes(&runs));
        assert_eq!(format!("{back:?}"), format!("{runs:?}"));
        assert!(resumed.take(3).is_none() && resumed.take(1).is_none());
        resumed.remove();
        assert!(!path.exists());
    }

    #[test]
    fn a_journal_cut_or_damaged_anywhere_loses_only_what_was() {
        let (path, runs) = (file("cut"), runs());
        let journal = Journal::open(&path, 7, Start::New).unwrap();
        let head = fs::metadata(&path).unwrap().len() as usize;
        journal.add(0, &runs[..1]);
        let one = fs::metadata(&path).unwrap().len() as usize;
        journal.add(1, &runs);
        drop(journal);
        let resume = || Journal::open(&path, 7, Start::Resume).unwrap();
        let whole = fs::read(&path).unwrap();
        for cut in (0..whole.len()).step_by(97).chain([head, one - 1, one, whole.len() - 1]) {
            fs::write(&path, &whole[..cut]).unwrap();
            let resumed = resume();
            assert_eq!(resumed.finished(), usize::from(cut >= one), "cut at {cut}");
            assert_eq!(resumed.is_damaged(), cut > head && cut != one, "cut at {cut}");
            // It goes on behind the last whole record.
            resumed.add(1, &runs);
            drop(resumed);
            assert!(resume().take(1).is_some());
        }
        // Of damage within a record only that record is lost, also when there is more behind it.
        for (at, left) in [(whole.len() - 1, 0), (one - 1, 1), (head + 4, 1)] {
            let mut damaged = whole.clone();
            damaged[at] ^= 1;
            fs::write(&path, damaged).unwrap();
            let resumed = resume();
            assert!(resumed.is_damaged() && resumed.finished() == 1 && resumed.take(left).is_some(), "{at}");
            resumed.add(2, &runs);
            drop(resumed);
            assert_eq!(resume().finished(), 2, "{at}");
        }
        fs::remove_file(path).unwrap();
    }

    #[test]
    fn finished_points_are_not_lost_unasked() {
        let (path, runs) = (file("unasked"), runs());
        let open = |sweep, start| Journal::open(&path, sweep, start);
        // A head alone is nothing to lose, whosever it is.
        drop(open(7, Start::New).unwrap());
        drop(open(8, Start::New).unwrap());
        drop(open(7, Start::Resume).unwrap());
        open(7, Start::New).unwrap().add(0, &runs);
        let kept = fs::read(&path).unwrap();
        assert!(matches!(open(7, Start::New), Err(JournalError::Unfinished { finished: 1, .. })));
        for start in [Start::New, Start::Resume] {
            assert!(matches!(open(8, start), Err(JournalError::OtherSweep(_))));
        }
        assert_eq!(fs::read(&path).unwrap(), kept);
        assert_eq!(open(8, Start::Restart).unwrap().finished(), 0);
        fs::write(&path, format!("{MAGIC}0.0.1\n0000000000000007\nrecords")).unwrap();
        assert!(matches!(open(7, Start::Resume), Err(JournalError::OtherVersion { .. })));
        // Whatever is asked for, a file that is something else is not overwritten.
        fs::write(&path, "load,ttft\n").unwrap();
        for start in [Start::New, Start::Resume, Start::Restart] {
            assert!(matches!(open(7, start), Err(JournalError::NotAJournal(_))));
        }
        fs::remove_file(path).unwrap();
    }

    #[test]
    fn two_sweeps_do_not_share_a_journal() {
        let path = file("lock");
        let first = Journal::open(&path, 7, Start::New).unwrap();
        for start in [Start::New, Start::Resume, Start::Restart] {
            assert!(matches!(Journal::open(&path, 7, start), Err(JournalError::InUse(_))));
        }
        drop(first);
        Journal::open(&path, 7, Start::New).unwrap().remove();
    }
}
