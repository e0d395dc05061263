//! `bolide completions`: scripts by which shells complete arguments, from the same source as `--help`.

use std::io::{self, Write};
use std::process::ExitCode;

use clap::{Command, ValueEnum};
use clap_complete::aot::{Shell as Script, generate};

const EXAMPLES: &str = "Examples:
  bolide completions bash > /etc/bash_completion.d/bolide
  bolide completions zsh > /usr/local/share/zsh/site-functions/_bolide
  bolide completions fish > ~/.config/fish/completions/bolide.fish";

/// The arguments of `bolide completions`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Shell.
    #[arg(value_enum)]
    shell: Shell,
}

/// A shell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Shell {
    Bash,
    Zsh,
    Fish,
}

/// Prints the script.
pub(crate) fn run(arguments: &Arguments, command: Command) -> ExitCode {
    match io::stdout().lock().write_all(&script(arguments.shell, command)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bolide: can't print the script: {error}");
            ExitCode::FAILURE
        }
    }
}

fn script(shell: Shell, mut command: Command) -> Vec<u8> {
    let shell = match shell {
        Shell::Bash => Script::Bash,
        Shell::Zsh => Script::Zsh,
        Shell::Fish => Script::Fish,
    };
    let mut script = Vec::new();
    generate(shell, &mut command, "bolide", &mut script);
    script
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn scripts_know_every_command_and_option_of_a_server() {
        let command = crate::Arguments::command();
        let serve = command.find_subcommand("serve").expect("it is a command");
        let options: Vec<_> =
            serve.get_arguments().filter_map(|option| option.get_long()).collect();
        assert!(options.len() > 30, "{options:?}");
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let script = String::from_utf8(script(shell, command.clone())).unwrap();
            for name in command.get_subcommands().map(Command::get_name) {
                assert!(script.contains(name), "{shell:?} lacks {name}");
            }
            for option in &options {
                assert!(script.contains(option), "{shell:?} lacks --{option}");
            }
        }
    }
}
