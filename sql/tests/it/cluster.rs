//! `--cluster`: another program has the session.

use super::{Files, command, finish, warpframe};

#[test]
fn another_program_goes_on_with_the_words_of_the_command_line() {
    let files = Files::new();
    let program = files.write("warpframe-cluster", "#!/bin/sh\nprintf '%s\\n' \"$@\"\nexit 7\n");
    let made = std::process::Command::new("chmod").args(["+x", &program]).status();
    assert!(made.expect("chmod runs").success());
    let words = ["data/tpch", "--cluster", "df://h:1", "-c", "SELECT 1 AS one"];
    let mut command = command(&words);
    let path = std::env::var("PATH").expect("it is set");
    command.env("PATH", format!("{}:{path}", files.path("")));
    let run = finish(command, "");
    assert_eq!((run.code, run.messages.as_str()), (Some(7), ""));
    let expected: Vec<&str> = std::iter::once("shell").chain(words).collect();
    assert_eq!(run.out.lines().collect::<Vec<_>>(), expected);
}

#[test]
fn without_that_program_it_is_told_where_it_is_looked_for() {
    let mut command = command(&["--cluster", "df://h:1", "-c", "SELECT 1"]);
    command.env("PATH", "/nonexistent");
    let told = finish(command, "").failure(2);
    assert!(told.contains("df://h:1") && told.contains("neither beside"), "{told}");
    let told = warpframe(&["--cluster", "df://h:1", "--device", "cpu"]).failure(2);
    assert!(told.contains("cannot be used with"), "{told}");
}
