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
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or_else(|| Path::new("."));
    if !std::fs::metadata(folder)?.is_dir() {
        return Err(io::ErrorKind::NotADirectory.into());
    }
    Ok(access(folder, Access::WRITE_OK | Access::EXEC_OK)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_be_written_is_not_touched() {
        let folder = std::env::temp_dir();
        let new = folder.join(format!("bolide-writable-{}", std::process::id()));
        check(&new).unwrap();
        assert!(!new.exists());
        std::fs::write(&new, "text").unwrap();
        check(&new).unwrap();
        assert_eq!(std::fs::read_to_string(&new).unwrap(), "text");
        let kind = |path: &Path| check(path).unwrap_err().kind();
        assert_eq!(kind(&new.join("below")), io::ErrorKind::NotADirectory);
        std::fs::remove_file(&new).unwrap();
        assert_eq!(kind(&new.join("below")), io::ErrorKind::NotFound);
        assert_eq!(kind(&folder), io::ErrorKind::IsADirectory);
        check(Path::new("bolide-writable-beside")).unwrap();
    }
}
