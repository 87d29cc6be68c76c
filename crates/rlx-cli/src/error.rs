//! The error of the command line, and how errors are shown.
//!
//! The kind `Cancelled` stands for one thing here: the reader of stdout has gone.

use std::io::Write;

use clap::CommandFactory;
use clap::error::ErrorKind as UsageKind;
use rlx::ir::ErrorKind;

rlx::ir::define_error!(
    Error,
    from: [
        rlx::Error,
        rlx::ir::Error,
        rlx::compile::Error,
        rlx::gguf::Error,
        rlx::runtime::Error,
        rlx::models::Error
    ]
);

/// Why a file or stream cannot be read or written.
pub fn io(place: impl std::fmt::Display, e: &std::io::Error) -> Error {
    let kind = if e.kind() == std::io::ErrorKind::NotFound { ErrorKind::NotFound } else { ErrorKind::Io };
    Error::new(kind, format!("{place}: {e}"))
}

/// Prints an error as one or two lines.
pub fn report(message: &str) {
    let _ = writeln!(std::io::stderr(), "error: {}", printable(message));
}

/// Prints what clap found in the command line, and returns the exit code.
pub fn report_usage(e: &clap::Error) -> u8 {
    if matches!(e.kind(), UsageKind::DisplayHelp | UsageKind::DisplayVersion) {
        let printed = e.print().and_then(|()| std::io::stdout().flush());
        return match printed {
            Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => {
                report(&format!("stdout: {e}"));
                ErrorKind::Io.exit_code()
            }
            _ => 0,
        };
    }
    if e.kind() == UsageKind::DisplayHelpOnMissingArgumentOrSubcommand {
        let command = command_of(words());
        report(&format!("a command is missing\nfor the list of commands try '{command} --help'"));
        return ErrorKind::InvalidArgument.exit_code();
    }
    let text = e.render().to_string();
    let mut parts = Vec::new();
    // What was meant, as far as it was understood.
    let mut help = format!("for all options try '{} --help'", command_of(words()));
    for line in text.lines().map(str::trim).filter(|l| !l.is_empty()) {
        if let Some(usage) = line.strip_prefix("Usage: ") {
            // The words before the first option are the command.
            let command: Vec<&str> =
                usage.split(' ').take_while(|w| w.chars().all(|c| c.is_ascii_lowercase())).collect();
            help = format!("for all options try '{} --help'", command.join(" "));
        } else if !line.starts_with("For more information") {
            let aside = if line.starts_with("tip: ") { "- " } else { "" };
            parts.push(format!("{aside}{}", line.strip_prefix("error: ").unwrap_or(line)));
        }
    }
    report(&format!("{}\n{help}", parts.join(" ")));
    ErrorKind::InvalidArgument.exit_code()
}

/// The words of this command line; what is not UTF-8 in them is no command.
fn words() -> impl Iterator<Item = String> {
    std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned())
}

/// The command that the words of a command line begin, or `rlx` alone.
fn command_of(words: impl Iterator<Item = String>) -> String {
    let root = crate::Cli::command();
    let (mut name, mut command) = ("rlx".to_owned(), &root);
    // The word after an option may be its value.
    let mut may_be_value = false;
    for word in words {
        if let Some(found) = command.find_subcommand(&word) {
            name += " ";
            name += &word;
            command = found;
        } else if !word.starts_with('-') && !may_be_value {
            break;
        }
        may_be_value = word.starts_with('-');
    }
    name
}

/// The message as at most two lines without control characters: names in it may come from hostile files.
fn printable(message: &str) -> String {
    let mut lines = message.trim_end().splitn(2, '\n').map(|line| {
        let shown = |c: char| match c {
            '\n' => " ".to_owned(),
            c if c.is_control() => c.escape_default().to_string(),
            c => c.to_string(),
        };
        line.chars().map(shown).collect::<String>()
    });
    let first = lines.next().unwrap_or_default();
    lines.next().map_or(first.clone(), |second| format!("{first}\n{second}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_two_lines_without_control_characters() {
        assert_eq!(printable("a\n"), "a");
        assert_eq!(printable("a\u{1b}[2J\nb\nc\n"), "a\\u{1b}[2J\nb c");
    }

    #[test]
    fn the_help_is_that_of_the_command() {
        let of = |line: &str| command_of(line.split_whitespace().map(str::to_owned));
        assert_eq!(of("quantize a b --type q9"), "rlx quantize");
        assert_eq!(of("-q bench encode --iters x"), "rlx bench encode");
        assert_eq!(of("--threads 2 embed --pooling z"), "rlx embed");
        assert_eq!((of("--devic"), of("nothing embed")), ("rlx".into(), "rlx".into()));
    }

    #[test]
    fn a_missing_file_is_not_a_failed_one() {
        let missing = std::io::Error::from(std::io::ErrorKind::NotFound);
        assert_eq!(io("a.txt", &missing).kind(), ErrorKind::NotFound);
        let denied = std::io::Error::from(std::io::ErrorKind::PermissionDenied);
        assert_eq!(io("a.txt", &denied).kind(), ErrorKind::Io);
    }
}
