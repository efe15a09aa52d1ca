//! What compilers and the simulator say of a user's code, in the user's lines.
//!
//! ```text
//!   GCC, Clang    user_5f…:2:12: error: 'foo' was not declared in this scope
//!   NVRTC         user_5f…(2): error: identifier "foo" is undefined
//!                     return foo;
//!                            ^
//!   simulator     thread 0 of block 0 trapped, user_5f…:2
//! ```

use std::sync::Arc;

use super::Definition;
use crate::error::{Error, ErrorKind};

/// What one of them says of a line.
#[derive(Debug, PartialEq, Eq)]
struct Remark {
    /// From 1, as the column; 0 where it is unknown.
    line: u64,
    column: u64,
    message: String,
}

/// The error with the user's lines, where a compiler or the simulator says that they are wrong.
pub(crate) fn in_users_words(error: Error, definitions: &[Arc<Definition>]) -> Error {
    let (log, is_compiler) = match error.kind() {
        ErrorKind::Compile { log, .. } => (log, true),
        ErrorKind::Simulation { report, .. } => (report, false),
        _ => return error,
    };
    for definition in definitions {
        for (at, body) in definition.bodies.iter().enumerate() {
            let function = definition.function(at);
            let lines: Vec<&str> = body.text.lines().collect();
            let remark = if is_compiler {
                of_compiler(log, &function, &lines)
            } else {
                of_simulator(log, &function)
            };
            let Some(Remark { line, column, message }) = remark else { continue };
            // Behind the body stands its brace.
            let line = line.min(lines.len().max(1) as u64);
            let text =
                line.checked_sub(1).and_then(|at| lines.get(at as usize)).map_or("", |line| *line);
            let (line, column) = match body.place {
                Some((first, before)) if line == 1 && column > 0 => (first, before + column - 1),
                Some((first, _)) if line > 0 => (first + line - 1, column),
                _ => (line, column),
            };
            let at = body.place.map(|_| (line, column.max(1))).filter(|_| line > 0);
            let (function, text) = (definition.name().to_string(), text.to_string());
            return Error::from(ErrorKind::UserCode { function, line, column, message, text })
                .at(at);
        }
        // In what is around it, as where a parameter has the name of a keyword.
        let said = log.lines().find_map(|line| line.split_once("error: ").filter(|_| is_compiler));
        if let Some((_, message)) = said.filter(|_| log.contains("generated")) {
            let (function, message) = (definition.name().to_string(), cleaned(message));
            return ErrorKind::UserCode {
                function,
                line: 0,
                column: 0,
                message,
                text: String::new(),
            }
            .into();
        }
    }
    error
}

/// The error of a whole kernel with the user's lines, where a compiler or the simulator says that
/// they are wrong. Compilers know the kernel by `marker`; `column` is the column in the user's line
/// of one in the compiler's.
pub(super) fn in_kernels_words(
    error: Error,
    kernel: &str,
    marker: &str,
    text: &str,
    column: impl Fn(u64, u64) -> u64,
) -> Error {
    let lines: Vec<&str> = text.lines().collect();
    let (remark, report) = match error.kind() {
        ErrorKind::Compile { log, .. } => (of_compiler(log, marker, &lines), log),
        ErrorKind::Simulation { report, .. } => (of_simulator(report, marker), report),
        _ => return error,
    };
    let Some(Remark { line, column: at, message }) = remark else {
        // As where threads wait for each other.
        let report = report.replace(marker, kernel);
        return match error.kind() {
            ErrorKind::Simulation { .. } => {
                ErrorKind::Simulation { kernel: kernel.into(), report }.into()
            }
            _ => ErrorKind::Compile { kernel: kernel.into(), log: report }.into(),
        };
    };
    let line = line.min(lines.len().max(1) as u64);
    let text = line.checked_sub(1).and_then(|at| lines.get(at as usize)).map_or("", |line| *line);
    let (function, text) = (kernel.to_string(), text.to_string());
    ErrorKind::UserCode { function, line, column: column(line, at), message, text }.into()
}

/// A compiler's first error in a function.
fn of_compiler(log: &str, function: &str, body: &[&str]) -> Option<Remark> {
    let lines: Vec<&str> = log.lines().collect();
    lines.iter().enumerate().find_map(|(at, line)| {
        let rest = line.strip_prefix(function).filter(|rest| rest.starts_with([':', '(']))?;
        let (place, said) = rest.split_once("error: ")?;
        let mut numbers =
            place.split(|c: char| !c.is_ascii_digit()).filter(|part| !part.is_empty());
        let number: u64 = numbers.next()?.parse().ok()?;
        let column = match rest.starts_with('(') {
            false => numbers.next().and_then(|column| column.parse().ok()),
            true => {
                let line = number.checked_sub(1).and_then(|at| body.get(at as usize));
                line.and_then(|line| under_caret(lines.get(at + 1..at + 3)?, line))
            }
        };
        Some(Remark { line: number, column: column.unwrap_or(0), message: cleaned(said) })
    })
}

/// The column that NVRTC points at. It shows the line with other blanks before it.
fn under_caret(shown: &[&str], line: &str) -> Option<u64> {
    let (shown, caret) = (shown.first()?, shown.get(1)?);
    let caret = caret.find('^').filter(|at| caret[..*at].trim().is_empty())?;
    let text = line.trim();
    let begin = shown.find(text).filter(|_| !text.is_empty())?;
    let before = line.len() - line.trim_start().len();
    Some((caret.checked_sub(begin)? + before + 1) as u64)
}

fn of_simulator(report: &str, function: &str) -> Option<Remark> {
    let of = |what: &str| Some(report.split_once(&format!("{what}, {function}:"))?.1);
    let (place, message) = match of("divided by zero") {
        Some(place) => (place, "an integer is divided by zero"),
        None => (
            of("trapped")?,
            "a call's loops have made more than 2147483648 turns: one of them does not end",
        ),
    };
    let mut numbers =
        place.split(|c: char| !c.is_ascii_digit()).map_while(|digits| digits.parse().ok());
    let line = numbers.next()?;
    Some(Remark { line, column: numbers.next().unwrap_or(0), message: message.into() })
}

/// Without what only those who call compilers understand.
fn cleaned(message: &str) -> String {
    let message = message.trim();
    let message = message.split(" [-W").next().unwrap_or(message);
    message.strip_suffix(" [-fpermissive]").unwrap_or(message).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compilers_are_understood() {
        let body = ["double y = x;", "    return foo;"];
        let remark = |log: &str| of_compiler(log, "user_1", &body);
        let expected =
            |column, message: &str| Some(Remark { line: 2, column, message: message.into() });
        assert_eq!(
            remark(
                "user_1: In function 'f64 wf::user_1(f64)':\nuser_1:2:12: error: 'foo' was not declared\n"
            ),
            expected(12, "'foo' was not declared")
        );
        assert_eq!(
            remark(
                "user_1(1): warning #177-D: variable\n\nuser_1(2): error: identifier \"foo\" is undefined\n      \
                 return foo;\n             ^\n\n1 error"
            ),
            expected(12, "identifier \"foo\" is undefined")
        );
        assert_eq!(
            remark("user_1:2:1: error: no return statement in function [-Werror=return-type]"),
            expected(1, "no return statement in function")
        );
        assert_eq!(remark("user_11:2:1: error: another's"), None);
        assert_eq!(
            of_simulator("thread 3 of block 0 trapped, user_1:7", "user_1")
                .map(|remark| remark.line),
            Some(7)
        );
        let divided = of_simulator("thread 0 of block 2 divided by zero, user_1:3:9", "user_1");
        let message = "an integer is divided by zero".into();
        assert_eq!(divided, Some(Remark { line: 3, column: 9, message }));
    }
}
