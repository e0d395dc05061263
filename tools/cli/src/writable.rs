//! Test of whether a file could be written, without writing it.

use std::io;
use std::path::Path;

use rustix::fs::{Access, access};

/// Checks whether this process may write the file, or make it in its directory.
pub(crate) fn check(path: &Path) -> io::Result<()> {
    match std::fs::metadata(path) {
        Ok(file) if file.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
        Ok(_) => return Ok(access(path, Access::WRITE_OK)?),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let directory = path.parent().filter(|directory| !directory.as_os_str().is_empty());
    let directory = directory.unwrap_or_else(|| Path::new("."));
    if !std::fs::metadata(directory)?.is_dir() {
        return Err(io::ErrorKind::NotADirectory.into());
    }
    Ok(access(directory, Access::WRITE_OK | Access::EXEC_OK)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_be_written_is_not_touched() {
        let directory = std::env::temp_dir();
        let new = directory.join(format!("bolide-writable-{}", std::process::id()));
        check(&new).unwrap();
        assert!(!new.exists());
        std::fs::write(&new, "text").unwrap();
        check(&new).unwrap();
        assert_eq!(std::fs::read_to_string(&new).unwrap(), "text");
        let kind = |path: &Path| check(path).unwrap_err().kind();
        assert_eq!(kind(&new.join("below")), io::ErrorKind::NotADirectory);
        std::fs::remove_file(&new).unwrap();
        assert_eq!(kind(&new.join("below")), io::ErrorKind::NotFound);
        assert_eq!(kind(&directory), io::ErrorKind::IsADirectory);
        check(Path::new("bolide-writable-beside")).unwrap();
    }
}
