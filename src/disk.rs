//! Files and folders that somebody names: read only if reading them comes to an end, and tried before work is
//! put into what they are to hold.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;

/// The whole of a file.
///
/// # Errors
/// As [`fs::read`]; and for what is no regular file, such as a named pipe, which would be waited for.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    must_be_readable(path)?;
    fs::read(path)
}

/// The whole of a text file.
///
/// # Errors
/// As [`read`]; and for what is no text in UTF-8, with the line. A byte order mark is left out.
pub fn read_to_string(path: &Path) -> io::Result<String> {
    let wrong = |what: String| io::Error::new(ErrorKind::InvalidData, what);
    let bytes = read(path)?;
    if [[0xff, 0xfe], [0xfe, 0xff]].iter().any(|mark| bytes.starts_with(mark)) {
        return Err(wrong("it is in UTF-16; expected text in UTF-8".to_owned()));
    }
    let line = |at: usize, bytes: &[u8]| bytes[..at].iter().filter(|byte| **byte == b'\n').count() + 1;
    let text = String::from_utf8(bytes).map_err(|error| {
        let (at, bytes) = (error.utf8_error().valid_up_to(), error.as_bytes());
        wrong(format!(
            "line {}: a byte {:#04x} that is not UTF-8; expected text in UTF-8",
            line(at, bytes),
            bytes[at]
        ))
    })?;
    if let Some(at) = text.find('\0') {
        let line = line(at, text.as_bytes());
        return Err(wrong(format!("line {line}: a byte 0, which no text has; expected text in UTF-8")));
    }
    Ok(match text.strip_prefix('\u{feff}') {
        Some(rest) => rest.to_owned(),
        None => text,
    })
}

/// The line, from 1, of a quote that opens a cell of a CSV text and that nothing closes: the rest of the file is in it.
#[must_use]
pub fn open_quote(csv: &str) -> Option<usize> {
    let mut open: Option<usize> = None;
    let (mut line, mut before) = (1, ',');
    for c in csv.chars() {
        match c {
            '"' if open.is_some() => open = None,
            // One that was closed and goes on is an escaped quote.
            '"' if [',', '\n', '"'].contains(&before) => open = Some(line),
            _ => {}
        }
        line += usize::from(c == '\n');
        before = if c == ' ' || c == '\r' { before } else { c };
    }
    open
}

/// Streams that are open already, such as `/dev/stdin` or a shell's `<(command)`: somebody writes them.
const OPEN_STREAMS: [&str; 3] = ["/dev/stdin", "/dev/fd", "/proc/self/fd"];

/// # Errors
/// If nothing is there, or nothing of which reading comes to an end.
pub fn must_be_readable(path: &Path) -> io::Result<()> {
    let is_open = OPEN_STREAMS.iter().any(|stream| path.starts_with(stream));
    if is_open { Ok(()) } else { must_be_regular(path) }
}

/// # Errors
/// If nothing is there, or no regular file (links are followed).
pub fn must_be_regular(path: &Path) -> io::Result<()> {
    let found = fs::metadata(path)?;
    if found.is_file() {
        return Ok(());
    }
    let what = if found.is_dir() { "it is a folder" } else { "it is not a regular file" };
    Err(io::Error::new(ErrorKind::InvalidInput, what))
}

/// Whether files can be made in a folder, which need not be there yet. Leaves nothing behind.
///
/// # Errors
/// What would keep a file from being made.
pub fn must_take_files(dir: &Path) -> io::Result<()> {
    let mut place = dir;
    loop {
        let here = if place.as_os_str().is_empty() { Path::new(".") } else { place };
        match fs::metadata(here) {
            Ok(found) if found.is_dir() => return try_in(here),
            Ok(_) => {
                let what = format!("{} is not a folder", here.display());
                return Err(io::Error::new(ErrorKind::NotADirectory, what));
            }
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            Err(_) if fs::symlink_metadata(here).is_ok() => {
                let what = format!("{} is a link to nothing", here.display());
                return Err(io::Error::new(ErrorKind::NotFound, what));
            }
            Err(error) => place = place.parent().ok_or(error)?,
        }
    }
}

fn try_in(dir: &Path) -> io::Result<()> {
    let probe = dir.join(format!(".partial-{}-probe", std::process::id()));
    fs::create_dir(&probe)?;
    fs::remove_dir(&probe)
}

/// Whether a file can be made, or replaced, at `path`.
///
/// # Errors
/// What would keep it from being made.
pub fn must_be_writable(path: &Path) -> io::Result<()> {
    let (Some(dir), Some(_)) = (path.parent(), path.file_name()) else {
        return Err(io::Error::new(ErrorKind::InvalidInput, "it is not a file's path"));
    };
    match must_be_regular(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => must_take_files(dir),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quote_that_nothing_closes() {
        for closed in ["", "a,b\n1,2\n", "a,\"b\"\n\"x\"\"y\",2", "5\" disk,1", "\"a\nb\",1"] {
            assert_eq!(open_quote(closed), None, "{closed}");
        }
        for open in ["a,b\n1,\"\n", "a\n\"x,2\n3,4", "a\n \"x"] {
            assert_eq!(open_quote(open), Some(2), "{open}");
        }
    }

    #[test]
    fn what_can_be_written_is_found_out_without_a_trace() {
        let dir = std::env::temp_dir().join(format!("knee-disk-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        let file = dir.join("file");
        fs::write(&file, "x").unwrap();
        must_take_files(&dir).unwrap();
        must_take_files(&dir.join("new/er")).unwrap();
        must_take_files(Path::new("")).unwrap();
        must_be_writable(&file).unwrap();
        must_be_writable(&dir.join("new/file")).unwrap();
        must_be_writable(Path::new("a-file-here")).unwrap();
        for wrong in [file.clone(), file.join("below")] {
            assert!(must_take_files(&wrong).is_err(), "{}", wrong.display());
        }
        for wrong in [dir.as_path(), Path::new("/"), Path::new(".."), Path::new("")] {
            assert!(must_be_writable(wrong).is_err(), "{}", wrong.display());
        }
        assert_eq!(fs::read_dir(&dir).unwrap().count(), 1, "nothing is left behind");
        assert!(read(&dir).unwrap_err().to_string().contains("folder"));
        assert_eq!(read_to_string(&file).unwrap(), "x");
        for (bytes, said) in [
            (&b"a\n\xe9"[..], Err("line 2: a byte 0xe9 that is not UTF-8; expected text in UTF-8")),
            (b"\xff\xfea\0", Err("it is in UTF-16; expected text in UTF-8")),
            (b"a\0b\0", Err("line 1: a byte 0, which no text has; expected text in UTF-8")),
            (b"\xef\xbb\xbfa = 1", Ok("a = 1")),
        ] {
            fs::write(&file, bytes).unwrap();
            let read = read_to_string(&file).map_err(|error| error.to_string());
            assert_eq!(read.as_deref().map_err(String::as_str), said);
        }
        fs::remove_dir_all(dir).unwrap();
    }
}
