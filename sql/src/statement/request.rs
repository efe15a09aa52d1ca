//! What a statement may ask for.

use warpframe::ExplainFormat;

use crate::report::Place;

/// What a statement asks for.
#[derive(Debug, PartialEq)]
pub enum Request {
    /// Rows.
    Query(Sql),
    /// `EXPLAIN [ANALYZE] [FORMAT format] query`, or the options in parentheses.
    Explain {
        /// Whether the query shall run.
        analyze: bool,
        /// How its plan is shown.
        format: ExplainFormat,
        /// The query.
        query: Sql,
    },
    /// `CREATE [OR REPLACE] TABLE [IF NOT EXISTS] table AS query`.
    CreateTable {
        /// Its name.
        table: Name,
        /// What to do where there is one of this name.
        existing: Existing,
        /// What its rows are.
        query: Sql,
    },
    /// `DROP FUNCTION [IF EXISTS] name`, or `DROP AGGREGATE`.
    DropFunction {
        /// Its name.
        function: Name,
        /// Whether it may be missing.
        if_exists: bool,
    },
    /// `DROP TABLE [IF EXISTS] table`.
    DropTable {
        /// Its name.
        table: Name,
        /// Whether it may be missing.
        if_exists: bool,
        /// The statement.
        text: Sql,
    },
    /// `SHOW TABLES`.
    ShowTables,
    /// `DESCRIBE table`, or a query.
    Describe(RowSource),
    /// `COPY table|(query) TO 'file' [FORMAT format] [PARTITIONED BY (column, …)] [(option value,
    /// …)]`.
    Copy {
        /// What to write.
        rows: RowSource,
        /// The path of the file, and where it stands.
        file: Name,
        /// The format by name, where given.
        format: Option<Name>,
        /// How it is written.
        options: Vec<(Name, String)>,
        /// The columns by whose values rows go to folders.
        partition_by: Vec<Name>,
    },
    /// `COPY table FROM 'file' [FORMAT format] [(option value, …)]`.
    CopyFrom {
        /// Which table gets the rows.
        table: Name,
        /// The path of the file, and where it stands.
        file: Name,
        /// The format by name, where given.
        format: Option<Name>,
        /// How it is read.
        options: Vec<(Name, String)>,
    },
    /// `PREPARE name [(type, …)] AS query`, which is the engine's to read.
    Prepare {
        /// The query, whose names can be looked at before it runs.
        query: Sql,
        /// The statement.
        text: Sql,
    },
    /// Another statement, which is the engine's to read: `INSERT …`, `CREATE VIEW …`, `SHOW …`.
    Execute(Sql),
    /// `SHOW ALL`, or one option of the command's.
    ShowSettings(Option<Name>),
    /// `RESET option`.
    Reset(Name),
    /// `SET option = value`.
    Set {
        /// The option, in lower case.
        option: Name,
        /// The value, as text.
        value: String,
    },
}

/// What a new table does to one of its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Existing {
    /// Nothing: that is an error.
    Refuse,
    /// It takes its place.
    Replace,
    /// It leaves it.
    Keep,
}

/// Rows by table name or by query.
#[derive(Debug, PartialEq)]
pub enum RowSource {
    /// Those of a table.
    Table(Name),
    /// Those that a query yields.
    Query(Sql),
}

/// A query's text. White space before it stands for the text before the query, so that places in it
/// are places in the whole text.
#[derive(Debug, PartialEq)]
pub struct Sql(pub String);

impl Sql {
    /// The place behind the last character.
    pub fn end(&self) -> Place {
        let last = self.0.rsplit('\n').next().unwrap_or_default();
        Place {
            line: self.0.matches('\n').count() as u64 + 1,
            column: last.chars().count() as u64 + 1,
        }
    }
}

/// A name, folded as SQL does: as written within quotes, otherwise in lower case.
#[derive(Debug, Clone, PartialEq)]
pub struct Name {
    /// The folded name.
    pub text: String,
    /// Where it stands.
    pub place: Place,
}
