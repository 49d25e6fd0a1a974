//! An interrupted sweep goes on with nothing lost: its files are those of one that was not interrupted, byte for
//! byte.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Two axes, several replications, a precision: everything that a point may need to be restored from.
const SCENARIO: &str = r#"
name = "to be interrupted"
[engine]
name = "synthetic"
servers = 2
service_time = { exponential = { mean_s = 0.1 } }
[arrivals.poisson]
rate_per_s = 10
[[class]]
name = "all"
slo = { queue_p95_ms = 200 }
[run]
requests = 20000
replications = 3
[sweep]
"arrivals.poisson.rate_per_s" = { from = 2, to = 22, points = 11 }
"engine.servers" = [1, 2, 3, 4]
"#;
const POINTS: usize = 44;
const JOURNAL: &str = "sweep.journal";

struct Place {
    dir: PathBuf,
    scenario: PathBuf,
}

impl Place {
    fn new(name: &str) -> Self {
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("resume").join(name);
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir).expect("a folder");
        let scenario = dir.join("scenario.toml");
        fs::write(&scenario, SCENARIO).expect("a file");
        Self { dir, scenario }
    }

    fn knee(&self, out: &str, more: &[&str]) -> Command {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("knee"));
        let out = self.dir.join(out);
        command
            .arg("sweep")
            .arg(&self.scenario)
            .arg("--out")
            .arg(out)
            .args(["--precision", "10%"])
            .args(more);
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        command
    }

    fn files(&self, out: &str) -> BTreeMap<String, Vec<u8>> {
        let entries = fs::read_dir(self.dir.join(out)).expect("a folder");
        let file = |entry: std::io::Result<fs::DirEntry>| {
            let path = entry.expect("an entry").path();
            let name = path.file_name().expect("a name").to_string_lossy().into_owned();
            (name, fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display())))
        };
        entries.map(file).collect()
    }

    /// Starts a sweep and waits until about half of its journal is written.
    fn half_way(&self, out: &str, whole: u64) -> Child {
        let child = self.knee(out, &["--threads", "1"]).spawn().expect("it starts");
        let journal = self.dir.join(out).join(JOURNAL);
        let begun = Instant::now();
        while fs::metadata(&journal).map_or(0, |file| file.len()) < whole / 2 {
            assert!(begun.elapsed() < Duration::from_secs(120), "no journal");
            std::thread::sleep(Duration::from_millis(2));
        }
        child
    }
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Bytes of the journal of the whole sweep, which is left behind where its folder takes no files.
fn journal_bytes(place: &Place) -> u64 {
    let child = place.knee("length", &[]).spawn().expect("it starts");
    let journal = place.dir.join("length").join(JOURNAL);
    let mut most = 0;
    let mut child = child;
    while child.try_wait().expect("it runs").is_none() {
        most = most.max(fs::metadata(&journal).map_or(0, |file| file.len()));
        std::thread::sleep(Duration::from_millis(1));
    }
    most
}

#[test]
fn a_killed_sweep_goes_on_to_the_same_files() {
    let place = Place::new("killed");
    let whole = place.knee("whole", &[]).output().expect("it runs");
    assert!(whole.status.success(), "{}", said(&whole));
    let length = journal_bytes(&place);
    let mut child = place.half_way("killed", length);
    child.kill().expect("it still runs");
    assert!(!child.wait().expect("it ends").success());
    assert_eq!(place.files("killed").keys().collect::<Vec<_>>(), [JOURNAL]);
    let resumed = place.knee("killed", &["--resume"]).output().expect("it runs");
    assert!(resumed.status.success(), "{}", said(&resumed));
    let there: usize = said(&resumed)
        .lines()
        .find_map(|line| line.strip_suffix(&format!(" of {POINTS} points are there already"))?.parse().ok())
        .unwrap_or_else(|| panic!("{}", said(&resumed)));
    assert!((POINTS / 5..POINTS).contains(&there), "{there} of {POINTS}");
    assert!(place.files("killed") == place.files("whole"), "files differ");
}

#[cfg(unix)]
#[test]
fn ctrl_c_says_how_to_go_on_and_leaves_only_the_journal() {
    let place = Place::new("interrupted");
    let length = journal_bytes(&place);
    let child = place.half_way("out", length);
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().expect("kill").success());
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(130), "{}", said(&output));
    assert!(said(&output).contains("--resume"), "{}", said(&output));
    assert_eq!(place.files("out").keys().collect::<Vec<_>>(), [JOURNAL]);
}

#[test]
fn another_sweep_is_not_gone_on_with() {
    let place = Place::new("refused");
    // Beyond its head, which is less than 100 bytes: a point is finished.
    let mut child = place.half_way("out", 400);
    child.kill().expect("it still runs");
    child.wait().expect("it ends");
    let journal = fs::read(place.dir.join("out").join(JOURNAL)).unwrap();
    for change in [["--set", "engine.servers=3"], ["--seed", "2"], ["--set", "run.requests=20001"]] {
        for more in [&["--resume", change[0], change[1]][..], &change] {
            let refused = place.knee("out", more).output().expect("it runs");
            assert_eq!(refused.status.code(), Some(2), "{more:?}: {}", said(&refused));
            assert!(said(&refused).contains("belongs to another sweep"), "{}", said(&refused));
            assert!(said(&refused).contains("--restart"), "{}", said(&refused));
        }
    }
    // Nor is a sweep's work thrown away because its --resume was forgotten.
    let refused = place.knee("out", &[]).output().expect("it runs");
    assert_eq!(refused.status.code(), Some(2), "{}", said(&refused));
    for part in ["finished points of this sweep", "--resume", "--restart"] {
        assert!(said(&refused).contains(part), "{}", said(&refused));
    }
    assert_eq!(fs::read(place.dir.join("out").join(JOURNAL)).unwrap(), journal, "it is left as it was");
    for conflict in [["--resume", "--no-files"], ["--restart", "--no-files"], ["--resume", "--restart"]] {
        assert_eq!(place.knee("out", &conflict).output().expect("it runs").status.code(), Some(2));
    }
    let restarted = place.knee("out", &["--restart", "--seed", "2"]).output().expect("it runs");
    assert!(restarted.status.success(), "{}", said(&restarted));
}

#[test]
fn of_a_damaged_journal_it_is_said_what_is_kept() {
    let place = Place::new("damaged");
    let whole = place.knee("whole", &[]).output().expect("it runs");
    assert!(whole.status.success(), "{}", said(&whole));
    let length = journal_bytes(&place);
    let mut child = place.half_way("out", length);
    child.kill().expect("it still runs");
    child.wait().expect("it ends");
    let journal = place.dir.join("out").join(JOURNAL);
    let mut bytes = fs::read(&journal).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0xff;
    fs::write(&journal, bytes).unwrap();
    let resumed = place.knee("out", &["--resume"]).output().expect("it runs");
    assert!(resumed.status.success(), "{}", said(&resumed));
    assert!(said(&resumed).contains("damaged in part: "), "{}", said(&resumed));
    assert!(place.files("out") == place.files("whole"), "files differ");
}

#[test]
fn two_sweeps_do_not_write_into_one_folder_at_once() {
    let place = Place::new("twice");
    let mut first = place.half_way("out", 2);
    let second = place.knee("out", &["--restart"]).output().expect("it runs");
    assert_eq!(second.status.code(), Some(2), "{}", said(&second));
    assert!(said(&second).contains("another sweep is writing there"), "{}", said(&second));
    first.kill().expect("it still runs");
    first.wait().expect("it ends");
    // The lock went with its process.
    let third = place.knee("out", &["--restart", "--set", "run.requests=300"]).output().expect("it runs");
    assert!(third.status.success(), "{}", said(&third));
}

#[cfg(unix)]
#[test]
fn a_pipe_is_no_journal() {
    let place = Place::new("pipe");
    fs::create_dir_all(place.dir.join("out")).unwrap();
    let journal = place.dir.join("out").join(JOURNAL);
    assert!(Command::new("mkfifo").arg(&journal).status().expect("mkfifo").success());
    for more in [&[][..], &["--resume"], &["--restart"]] {
        let refused = place.knee("out", more).output().expect("it runs");
        assert_eq!(refused.status.code(), Some(2), "{}", said(&refused));
        assert!(said(&refused).contains("not a regular file"), "{}", said(&refused));
    }
}

#[test]
fn with_nothing_to_go_on_with_resume_starts_at_the_beginning() {
    let place = Place::new("nothing");
    let whole = place.knee("whole", &[]).output().expect("it runs");
    let resumed = place.knee("resumed", &["--resume"]).output().expect("it runs");
    assert!(whole.status.success() && resumed.status.success(), "{}", said(&resumed));
    assert!(place.files("resumed") == place.files("whole"), "files differ");
}
