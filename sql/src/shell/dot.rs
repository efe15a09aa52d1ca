//! The commands that begin with a dot.

use std::io::ErrorKind;
use std::path::Path;
use std::process::Command;

use warpframe::{FileKind, Session};

use super::{Next, device_lines, edit, memory_of_all, plot, script};
use crate::interrupt::{Lent, Running};
use crate::outlet::{FileFormat, Outlet};
use crate::pager::Paging;
use crate::report::{Failure, Source, nearest, shown};
use crate::run::{Runner, count, formats, switch};
use crate::stages::stage_table;

/// A command: its name, what it takes, and what it does.
type Known = (&'static str, &'static str, &'static str);

const COMMANDS: [Known; 33] = [
    ("bail", "on|off", "whether the first failure ends a file of statements"),
    ("cd", "DIR", "go to a folder"),
    ("device", "", "what runs queries"),
    ("echo", "on|off", "whether statements are written before they run"),
    ("edit", "", "change the last statement in VISUAL or EDITOR, and run what was saved"),
    ("exit", "", "leave"),
    ("format", "[FORMAT]", "how results are written (.mode)"),
    ("functions", "[PATTERN]", "names of functions"),
    ("headers", "on|off", "whether the columns' names are written"),
    ("help", "[COMMAND]", "this text"),
    ("highlight", "on|off", "whether what is typed has colours, and NULL is dim"),
    ("import", "FILE TABLE", "put a file's rows behind a table's, or make the table"),
    ("maxrows", "[N]", "most rows that a table shows; 0 shows all, auto what suits a terminal"),
    ("maxwidth", "[N]", "most characters of a table's line; 0 is any number, auto the terminal's"),
    ("memory", "", "use of the device's memory"),
    (
        "mode",
        "[FORMAT]",
        "table, box, markdown, csv, tsv, json, ndjson, line, html or insert [TABLE]",
    ),
    ("nullvalue", "TEXT", "what stands for NULL"),
    ("once", "FILE", "write the next result into a file, as its name tells (x.csv, x.parquet)"),
    ("open", "DIR", "open a database: a folder whose tables, views and functions stay"),
    (
        "output",
        "[FILE]",
        "write results into a file, or to a program (|less); on the terminal again without one",
    ),
    (
        "pager",
        "[on|off|auto]",
        "whether PAGER shows results: all, none, those longer than the terminal",
    ),
    (
        "plot",
        "[bar|line|point] [WIDTH HEIGHT] [QUERY]",
        "draw the columns of a query, or of the last one",
    ),
    ("print", "TEXT", "write a text"),
    ("prompt", "TEXT", "what stands before what is typed"),
    ("quit", "", "leave (as does Ctrl-D)"),
    ("read", "FILE", "run a file of statements and commands"),
    ("schema", "[PATTERN]", "columns of tables"),
    ("settings", "", "all options (SHOW ALL)"),
    ("shell", "COMMAND", "run a command of the system's"),
    ("show", "", "the options of the shell"),
    ("stages", "", "what the last query did on a cluster: its stages, and who ran them"),
    ("tables", "[PATTERN]", "names of tables"),
    ("timer", "on|off", "whether to tell how long statements take"),
];

/// What runs queries, a line for each device.
fn devices(session: &Session) -> String {
    let devices = session.devices();
    match (devices.is_empty(), session.cluster()) {
        (false, _) => device_lines(&devices),
        (true, Some(cluster)) => cluster.into(),
        (true, None) => session.notice().unwrap_or("the CPU, as was asked for").into(),
    }
}

/// The commands with their dots.
pub fn names() -> impl Iterator<Item = String> {
    COMMANDS.iter().map(|(name, ..)| format!(".{name}"))
}

/// The commands with what they take, and what they do.
pub fn all() -> impl Iterator<Item = (String, String)> {
    COMMANDS
        .iter()
        .map(|(name, takes, what)| (format!(".{name} {takes}").trim_end().into(), (*what).into()))
}

/// What may follow a command, for completion.
pub fn choices(command: &str) -> Vec<String> {
    match command {
        ".bail" | ".echo" | ".headers" | ".highlight" | ".timer" => vec!["on".into(), "off".into()],
        ".pager" => ["on", "off", "auto"].map(String::from).to_vec(),
        ".plot" => ["bar", "line", "point"].map(String::from).to_vec(),
        ".mode" | ".format" => formats().collect(),
        ".help" => COMMANDS.iter().map(|(name, ..)| name.to_string()).collect(),
        _ => vec![],
    }
}

/// Does what a line that began with a dot asks for.
pub fn obey(runner: &mut Runner<'_>, line: &str) -> Result<Next, Failure> {
    let line = line.trim().trim_end_matches(';').trim_end();
    let (command, argument) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let (command, argument) = (command.to_lowercase(), argument.trim());
    let refused = |message: String| Failure::sql(message, None);
    let Some((name, takes, _)) = COMMANDS.iter().find(|(name, ..)| *name == command) else {
        let known: Vec<String> = COMMANDS.iter().map(|(name, ..)| name.to_string()).collect();
        let help = match nearest(&command, &known) {
            Some(meant) => format!("did you mean .{meant}?"),
            None => ".help lists them".into(),
        };
        return Err(refused(format!("no command .{command}; {help}")));
    };
    if takes.is_empty() && !argument.is_empty() {
        return Err(refused(format!(".{command} takes nothing, not {argument:?}")));
    }
    if argument.is_empty() && !takes.is_empty() && !takes.starts_with('[') {
        return Err(refused(format!(".{command} takes {takes}")));
    }
    let of_switch = || {
        switch(argument)
            .ok_or_else(|| refused(format!(".{command} is on or off, not {argument:?}")))
    };
    let number = || match argument {
        "auto" => Ok(None),
        text => text
            .parse()
            .map(Some)
            .map_err(|_| refused(format!(".{command} takes a number, not {argument:?}"))),
    };
    if ["cd", "import", "once", "open", "output", "read", "shell"].contains(name) {
        runner.allow_files(&format!(".{name} is not there"))?;
    }
    let words = || words(argument).map_err(|message| refused(format!(".{command}: {message}")));
    match *name {
        "bail" => runner.settings.bail = of_switch()?,
        "open" => runner.session.open(one(&command, words()?)?)?,
        "cd" => {
            let folder = one(&command, words()?)?;
            std::env::set_current_dir(&folder).map_err(|error| match error.kind() {
                ErrorKind::NotFound => refused(format!("{folder}: there is no such folder")),
                _ => Failure::file(Path::new(&folder), error),
            })?;
        }
        "device" | "devices" => {
            let text = devices(&runner.session);
            runner.print(&format!("{text}\n"))?;
        }
        "echo" => runner.settings.echo = of_switch()?,
        "edit" => {
            let last = runner.last.clone();
            return edit(runner, &last);
        }
        "exit" | "quit" => return Ok(Next::Quit),
        "format" | "mode" if argument.is_empty() => {
            let text = format!("{}\n", runner.format_name());
            runner.print(&text)?;
        }
        "format" | "mode" => runner.set_format(argument).map_err(refused)?,
        "functions" => {
            let pattern = pattern(argument).replace('\'', "''");
            let text = format!("SHOW FUNCTIONS LIKE '{pattern}'");
            return runner
                .run(&Source { name: None, text })
                .map(|()| Next::Entry)
                .map_err(reported);
        }
        "headers" => runner.settings.style.headers = of_switch()?,
        "help" => help(runner, argument)?,
        "highlight" => runner.settings.colour = of_switch()?,
        "import" => import(runner, &words()?)?,
        "maxrows" if argument.is_empty() => {
            let rows = or_auto(runner.settings.max_rows);
            runner.print(&format!("{rows}\n"))?;
        }
        "maxrows" => runner.settings.max_rows = number()?,
        "maxwidth" if argument.is_empty() => {
            let width = or_auto(runner.settings.style.max_width);
            runner.print(&format!("{width}\n"))?;
        }
        "maxwidth" => runner.settings.style.max_width = number()?,
        "memory" => {
            let text = memory_of_all(&runner.session.devices());
            runner.print(&text)?;
        }
        "nullvalue" => runner.settings.style.null = Some(one(&command, words()?)?),
        "once" | "output" => {
            // What results went to is whole before the next is begun, which may be the same.
            runner.send(None)?;
            let outlet = match argument.strip_prefix('|') {
                _ if argument.is_empty() => None,
                Some(program) => Some(piped(runner, name, program)?),
                None => Some(outlet(runner, &one(&command, words()?)?)?),
            };
            runner.send(outlet.map(|outlet| outlet.once(*name == "once")))?;
        }
        "pager" if argument.is_empty() => {
            let text = format!("{}\n", runner.settings.pager.name());
            runner.print(&text)?;
        }
        "pager" => {
            let paging = Paging::named(argument);
            let message = || refused(format!(".pager is on, off or auto, not {argument:?}"));
            runner.settings.pager = paging.ok_or_else(message)?;
        }
        "plot" => plot::obey(runner, argument)?,
        "print" => {
            let text = words()?.join(" ");
            runner.print(&format!("{text}\n"))?;
        }
        "prompt" => runner.settings.prompt = one(&command, words()?)?,
        "read" => {
            let path = one(&command, words()?)?;
            let text = std::fs::read_to_string(&path)
                .map_err(|error| Failure::file(Path::new(&path), error))?;
            return script::run(runner, &Source { name: Some(path), text }).map_err(reported);
        }
        "schema" => {
            let texts = statements(&runner.session, argument)?;
            runner.print_long(&texts)?;
        }
        "settings" => {
            let source = Source { name: None, text: "SHOW ALL".into() };
            return runner.run(&source).map(|()| Next::Entry).map_err(reported);
        }
        "shell" => shell(runner, argument)?,
        "stages" => runner.print_long(&stage_table(&runner.stages.clone()))?,
        "show" => {
            let settings = &runner.settings;
            let on = |on: bool| if on { "on" } else { "off" };
            let text = format!(
                "bail       {}\necho       {}\nheaders    {}\nhighlight  {}\nmaxrows    {}\nmaxwidth   {}\n\
                 mode       {}\nnullvalue  {}\npager      {}\ntimer      {}\n",
                on(settings.bail),
                on(settings.echo),
                on(settings.style.headers),
                on(settings.colour),
                or_auto(settings.max_rows),
                or_auto(settings.style.max_width),
                runner.format_name(),
                settings.style.null.as_deref().unwrap_or("as the format has it"),
                settings.pager.name(),
                on(settings.timer)
            );
            runner.print(&text)?;
        }
        "tables" => {
            let names = match argument.is_empty() {
                true => runner.session.all_table_names(),
                false => matching(&runner.session, argument)?,
            };
            runner.print_long(
                &names.iter().map(|name| format!("{}\n", shown(name))).collect::<String>(),
            )?;
        }
        "timer" => runner.set_timer(argument).map_err(refused)?,
        other => return Err(refused(format!("nothing does .{other}"))),
    }
    Ok(Next::Entry)
}

fn or_auto(number: Option<usize>) -> String {
    number.map_or_else(|| "auto".into(), |number| number.to_string())
}

/// Has a person change a text, and runs what was saved.
///
/// # Errors
/// There is no terminal, or the editor fails; the failure of what was saved, already reported.
pub fn edit(runner: &mut Runner<'_>, text: &str) -> Result<Next, Failure> {
    runner.allow_files(".edit is not there")?;
    if !runner.settings.programs {
        return Err(Failure::sql(".edit is not there: --no-user-code forbids it".into(), None));
    }
    if !runner.on_terminal() {
        return Err(Failure::sql(".edit is for a terminal".into(), None));
    }
    let Some(edited) = edit::edit(text)? else {
        runner.tell("nothing new was saved: nothing runs\n")?;
        return Ok(Next::Entry);
    };
    runner.tell(&format!("{edited}\n"))?;
    runner.edited = Some(edited.clone());
    script::run(runner, &Source { name: None, text: edited }).map_err(reported)
}

/// A failure that was told already is none to be told again.
fn reported(failure: Failure) -> Failure {
    failure.told()
}

fn help(runner: &mut Runner<'_>, command: &str) -> Result<(), Failure> {
    let command = command.trim_start_matches('.');
    let known: Vec<&Known> =
        COMMANDS.iter().filter(|(name, ..)| command.is_empty() || *name == command).collect();
    if known.is_empty() {
        return Err(Failure::sql(format!("no command .{command}; .help lists them"), None));
    }
    let mut text = String::new();
    if command.is_empty() {
        text.push_str(
            "Statements end in ';': queries, CREATE TABLE and VIEW, INSERT, UPDATE, DELETE, ALTER TABLE, COPY,\n\
             SHOW, DESCRIBE, SUMMARIZE, EXPLAIN [ANALYZE], SET, PREPARE and EXECUTE. Ctrl-C stops a statement.\n\n",
        );
    }
    for (name, takes, what) in known {
        let command = format!(".{name} {takes}");
        // A long one has a line of its own.
        let between = if command.len() > 22 { format!("\n{:<22} ", "") } else { " ".into() };
        text.push_str(&format!("{command:<22}{between}{what}\n"));
    }
    runner.print_long(&text)
}

fn import(runner: &mut Runner<'_>, words: &[String]) -> Result<(), Failure> {
    let [file, table] = words else {
        return Err(Failure::sql(".import takes FILE TABLE".into(), None));
    };
    let Some(kind) = FileKind::of(file) else {
        let message = format!(
            "{file}: not a kind of file that is known by its extension; COPY … FROM takes a FORMAT"
        );
        return Err(Failure::sql(message, None));
    };
    let _running = Running::begin();
    if runner.session.schema(table).is_ok() {
        let rows = runner.session.append_files(table, file, kind)?;
        return runner.done(format!("{} into {table}", count(rows)));
    }
    let text = format!("FROM '{}'", file.replace('\'', "''"));
    let rows = runner.session.sql(&text)?.collect()?;
    runner.session.register_table(table, &rows)?;
    runner.done(format!("table {table}: {}", count(rows.num_rows())))
}

/// A file that results go to.
fn outlet(runner: &Runner<'_>, path: &str) -> Result<Outlet, Failure> {
    let path = Path::new(path);
    let format = match FileFormat::of(path) {
        Err(_) if runner.settings.format_said => None,
        format => format.map_err(|message| {
            Failure::sql(format!("{message}, and .mode names one for other files"), None)
        })?,
    };
    Outlet::file(path, format)
}

/// A program that results go to.
fn piped(runner: &Runner<'_>, command: &str, program: &str) -> Result<Outlet, Failure> {
    if runner.settings.programs {
        return Outlet::program(program.trim());
    }
    let message = format!(".{command} to a program is not there: --no-user-code forbids it");
    Err(Failure::sql(message, None))
}

fn shell(runner: &mut Runner<'_>, command: &str) -> Result<(), Failure> {
    if !runner.settings.programs {
        return Err(Failure::sql(".shell is not there: --no-user-code forbids it".into(), None));
    }
    let path = Path::new("sh");
    let _lent = Lent::begin();
    let done = Command::new(path)
        .arg("-c")
        .arg(command)
        .output()
        .map_err(|error| Failure::file(path, error))?;
    runner.print(&String::from_utf8_lossy(&done.stdout))?;
    let said = String::from_utf8_lossy(&done.stderr);
    match done.status.success() {
        true if said.is_empty() => Ok(()),
        true => runner.print(&said),
        false => {
            let said = if said.trim().is_empty() { "" } else { &format!(": {}", said.trim()) };
            Err(Failure::sql(format!("the command failed ({}){said}", done.status), None))
        }
    }
}

/// The statements that make the tables whose names are like a pattern.
fn statements(session: &Session, argument: &str) -> Result<String, Failure> {
    let mut texts = String::new();
    for table in matching(session, argument)? {
        let lines = session.create_statement(&table)?;
        lines.lines().for_each(|line| texts.extend([&shown(line), "\n"]));
    }
    Ok(texts)
}

/// The tables whose names are like a pattern of LIKE; all without one.
fn matching(session: &Session, argument: &str) -> Result<Vec<String>, Failure> {
    let name = argument.trim_matches('"');
    if argument.is_empty() {
        return Ok(session.all_table_names());
    }
    if !name.contains(['%', '*']) {
        session.schema(name)?;
        return Ok(vec![name.into()]);
    }
    let text = format!("SHOW TABLES LIKE '{}'", pattern(name).replace('\'', "''"));
    let found = session.sql(&text)?.collect()?;
    Ok(found.column("table")?.to_vec::<String>()?)
}

/// A pattern of LIKE, of one that may have the wildcard of files.
fn pattern(text: &str) -> String {
    if text.is_empty() { "%".into() } else { text.trim_matches('\'').replace('*', "%") }
}

fn one(command: &str, mut words: Vec<String>) -> Result<String, Failure> {
    match (words.pop(), words.is_empty()) {
        (Some(word), true) => Ok(word),
        _ => Err(Failure::sql(format!(".{command} takes one word; blanks stand in quotes"), None)),
    }
}

/// Words between blanks, which single or double quotes hold together.
fn words(text: &str) -> Result<Vec<String>, String> {
    let (mut words, mut word, mut quote) = (vec![], None::<String>, None);
    for c in text.chars() {
        match quote {
            Some(open) if c == open => quote = None,
            Some(_) => word.get_or_insert_default().push(c),
            None if c == '\'' || c == '"' => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            None if c.is_whitespace() => words.extend(word.take()),
            None => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    if quote.is_some() { Err("a quote is not closed".into()) } else { Ok(words) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_hold_words_together() {
        let of = |text: &str| words(text).unwrap();
        assert_eq!(of("a  'b c' \"d\"e ''"), ["a", "b c", "de", ""]);
        assert!(words("'a").is_err());
    }
}
