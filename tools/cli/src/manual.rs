//! `bolide man`: manual pages, from the same source as `--help`.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Command;
use clap_mangen::Man;

const EXAMPLES: &str = "Examples:
  bolide man | man -l -
  bolide man /usr/local/share/man/man1";

/// The arguments of `bolide man`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Write the pages of the program and of each command into this directory, which must exist: bolide.1,
    /// bolide-serve.1 and so on. Default: print bolide.1.
    #[arg(value_name = "DIR")]
    directory: Option<PathBuf>,
}

/// Prints or writes the pages.
pub(crate) fn run(arguments: &Arguments, mut command: Command) -> ExitCode {
    command.build();
    let result = match &arguments.directory {
        None => page(&command)
            .and_then(|page| io::stdout().lock().write_all(&page))
            .map_err(|error| format!("can't print the page: {error}")),
        Some(directory) if !directory.is_dir() => {
            eprintln!("bolide: {}: directory doesn't exist (create it first)", directory.display());
            return ExitCode::from(2);
        }
        Some(directory) => write(&command, directory),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(what) => {
            eprintln!("bolide: {what}");
            ExitCode::FAILURE
        }
    }
}

fn page(command: &Command) -> io::Result<Vec<u8>> {
    let mut page = Vec::new();
    Man::new(command.clone()).render(&mut page)?;
    Ok(page)
}

/// One page for a command, and those of the commands in it.
fn write(command: &Command, directory: &Path) -> Result<(), String> {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name());
    let path = directory.join(format!("{name}.1"));
    page(command)
        .and_then(|page| fs::write(&path, page))
        .map_err(|error| format!("{}: can't be written: {error}", path.display()))?;
    let inner = command.get_subcommands().filter(|inner| !inner.is_hide_set());
    inner.filter(|inner| inner.get_name() != "help").try_for_each(|inner| write(inner, directory))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn every_command_has_a_page_that_names_its_options() {
        let directory = std::env::temp_dir().join(format!("bolide-man-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let mut command = crate::Arguments::command();
        command.build();
        write(&command, &directory).unwrap();
        for inner in command.get_subcommands().filter(|inner| inner.get_name() != "help") {
            let path = directory.join(format!("bolide-{}.1", inner.get_name()));
            let page = fs::read_to_string(&path).unwrap();
            let shown = inner.get_arguments().filter(|option| !option.is_hide_set());
            for option in shown.filter_map(|option| option.get_long()) {
                let escaped = option.replace('-', "\\-");
                assert!(page.contains(&escaped), "{} lacks --{option}", path.display());
            }
        }
        assert!(
            fs::read_to_string(directory.join("bolide.1")).unwrap().contains("bolide\\-serve(1)")
        );
        fs::remove_dir_all(&directory).unwrap();
    }
}
