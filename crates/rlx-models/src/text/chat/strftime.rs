//! The function `strftime_now`.

use std::fmt::Write;
use std::time::SystemTime;

use chrono::{DateTime, Local};
use minijinja::{Error, ErrorKind};

/// `now` in the local time zone, as `format` says.
pub(super) fn strftime(now: SystemTime, format: &str) -> Result<String, Error> {
    let now: DateTime<Local> = now.into();
    let mut out = String::new();
    match write!(out, "{}", now.format(format)) {
        Ok(()) => Ok(out),
        Err(_) => {
            Err(Error::new(ErrorKind::InvalidOperation, format!("strftime_now: unknown format {format:?}")))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn dates_follow_the_format() {
        // Noon in Greenwich: the same day in most of the world.
        let day = SystemTime::UNIX_EPOCH + Duration::from_secs(19_783 * 86_400 + 43_200);
        assert_eq!(strftime(day, "%Y").unwrap(), "2024");
        assert!(strftime(day, "%d %b %Y").unwrap().ends_with(" 2024"));
        assert_eq!(strftime(day, "%%").unwrap(), "%");
        assert!(strftime(day, "%!").unwrap_err().to_string().contains("%!"));
    }
}
