//! The dialect that SQL is parsed in: sqlparser's generic one, as DataFusion's, with the operators'
//! precedence of PostgreSQL.
//!
//! In sqlparser (0.62) the right operand of `IS DISTINCT FROM` took in all that follows, so that `a
//! IS DISTINCT FROM b AND c` was `a IS DISTINCT FROM (b AND c)`
//! (<https://github.com/apache/datafusion-sqlparser-rs/pull/2436>), and its generic dialect has a
//! table of its own, after which `a @> b = c` is `a @> (b = c)`, `a LIKE b = c` is `a LIKE (b = c)`
//! and `1 + 2 || 'x'` is `1 + (2 || 'x')`. PostgreSQL's
//! (<https://www.postgresql.org/docs/current/sql-syntax-lexical.html#SQL-PRECEDENCE>), from the
//! tightest:
//!
//! ```text
//!   .    ::  [ ]    unary + −    AT TIME ZONE    * / %    + −
//!   any other operator: || & | # << >> ~ -> @> …
//!   BETWEEN IN LIKE ILIKE SIMILAR    < > = <= >= <>    IS    NOT    AND    OR
//! ```
//!
//! `^` is no power here but DataFusion's exclusive or, another name of `#`, with the precedence of
//! that.
//!
//! As in DuckDB, `x -> x + 1`, `(a, b) -> a + b` and `lambda x : x + 1` are lambdas, `a ** b` is a
//! power, which binds tighter than `*`, `~a` turns all bits, and `s GLOB 'a*'` and `x IN l`, of a list, are conditions
//! (`operators.rs`).

use std::any::TypeId;

use datafusion::sql::sqlparser::ast::{BinaryOperator, Expr, UnaryOperator};
use datafusion::sql::sqlparser::dialect::{Dialect, GenericDialect, Precedence};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::Token;

use super::operators::{self, GLOB, IN_LIST};

/// Whether two stars stand next, with nothing between them.
fn is_power(parser: &Parser) -> bool {
    let (first, second) = (parser.peek_token_ref(), parser.peek_nth_token_ref(1));
    first.token == Token::Mul && second.token == Token::Mul && first.span.end == second.span.start
}

/// Whether GLOB or NOT GLOB stands next, before a value; whether with NOT. Elsewhere it is a name.
fn glob(parser: &Parser) -> Option<bool> {
    let word = |at: usize| match &parser.peek_nth_token_ref(at).token {
        Token::Word(word) if word.quote_style.is_none() => word.value.to_uppercase(),
        _ => String::new(),
    };
    let negated = word(0) == "NOT";
    let at = usize::from(negated);
    let value = match &parser.peek_nth_token_ref(at + 1).token {
        Token::SingleQuotedString(_) | Token::LParen => true,
        Token::Word(word) => word.keyword == Keyword::NoKeyword || word.keyword == Keyword::NULL,
        _ => false,
    };
    (word(at) == "GLOB" && value).then_some(negated)
}

/// Whether IN or NOT IN stands next, before a list and not a parenthesis; whether with NOT.
fn in_list(parser: &Parser) -> Option<bool> {
    let keyword = |at: usize| match &parser.peek_nth_token_ref(at).token {
        Token::Word(word) if word.quote_style.is_none() => Some(word.keyword),
        _ => None,
    };
    let negated = keyword(0) == Some(Keyword::NOT);
    let at = usize::from(negated);
    let is_list = match &parser.peek_nth_token_ref(at + 1).token {
        Token::LBracket => true,
        Token::Word(word) => word.keyword != Keyword::UNNEST,
        _ => false,
    };
    (keyword(at) == Some(Keyword::IN) && is_list).then_some(negated)
}

/// `left op right`, negated or not, of an operator that the parser has none for.
fn condition(left: &Expr, op: &str, right: Expr, negated: bool) -> Expr {
    let op = BinaryOperator::Custom(op.into());
    let holds = Expr::BinaryOp { left: Box::new(left.clone()), op, right: Box::new(right) };
    match negated {
        true => {
            Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(Expr::Nested(Box::new(holds))) }
        }
        false => holds,
    }
}

/// The generic dialect but for precedence and lambdas.
#[derive(Debug)]
pub(super) struct Ours;

/// Methods that answer what the generic dialect does.
macro_rules! as_generic {
    ($($method:ident)*) => {
        $(fn $method(&self) -> bool {
            GenericDialect.$method()
        })*
    };
}

impl Dialect for Ours {
    /// What the parser asks for where it decides by dialect.
    fn dialect(&self) -> TypeId {
        TypeId::of::<GenericDialect>()
    }

    fn is_delimited_identifier_start(&self, ch: char) -> bool {
        GenericDialect.is_delimited_identifier_start(ch)
    }

    fn is_identifier_start(&self, ch: char) -> bool {
        GenericDialect.is_identifier_start(ch)
    }

    fn is_identifier_part(&self, ch: char) -> bool {
        GenericDialect.is_identifier_part(ch)
    }

    /// Besides those of the generic dialect, words that are no names in PostgreSQL and DuckDB either.
    /// Where what stands behind such a word is wrong, the parser would read it again as the arguments
    /// of a function, and so all that is nested in it, by the power of two.
    fn is_reserved_for_identifier(&self, keyword: Keyword) -> bool {
        matches!(keyword, Keyword::NOT | Keyword::CASE | Keyword::CAST)
            || GenericDialect.is_reserved_for_identifier(keyword)
    }

    fn supports_lambda_functions(&self) -> bool {
        true
    }

    fn prec_value(&self, precedence: Precedence) -> u8 {
        match precedence {
            Precedence::Period => 100,
            Precedence::DoubleColon => 90,
            Precedence::AtTz => 80,
            Precedence::MulDivModOp => 70,
            Precedence::PlusMinus => 60,
            Precedence::PgOther => OTHER,
            Precedence::Ampersand | Precedence::Pipe | Precedence::Caret => OTHER,
            Precedence::Between | Precedence::Like => 40,
            Precedence::Eq => 35,
            Precedence::Is => 30,
            Precedence::UnaryNot => 25,
            Precedence::And => 20,
            Precedence::Xor => 15,
            Precedence::Or => 10,
            // Between the bounds of a slice, which may be any expression.
            Precedence::Colon => 5,
        }
    }

    fn get_next_precedence(&self, parser: &Parser) -> Option<Result<u8, ParserError>> {
        match &parser.peek_token_ref().token {
            Token::StringConcat
            | Token::Tilde
            | Token::TildeAsterisk
            | Token::ExclamationMarkTilde
            | Token::ExclamationMarkTildeAsterisk
            | Token::DoubleTilde
            | Token::DoubleTildeAsterisk
            | Token::ExclamationMarkDoubleTilde
            | Token::ExclamationMarkDoubleTildeAsterisk
            | Token::CaretAt => Some(Ok(OTHER)),
            Token::Word(word) if word.keyword == Keyword::OPERATOR => Some(Ok(OTHER)),
            Token::Word(_) if glob(parser).is_some() => Some(Ok(self.prec_value(Precedence::Like))),
            _ => None,
        }
    }

    /// `~` takes in what binds tighter than other operators: `~1 + 1` is `~(1 + 1)`.
    fn parse_prefix(&self, parser: &mut Parser) -> Option<Result<Expr, ParserError>> {
        if !parser.consume_token(&Token::Tilde) {
            return None;
        }
        let value = parser.parse_subexpr(OTHER);
        Some(
            value.map(|value| Expr::UnaryOp {
                op: UnaryOperator::BitwiseNot,
                expr: Box::new(value),
            }),
        )
    }

    /// DuckDB's.
    fn supports_order_by_all(&self) -> bool {
        true
    }

    fn parse_infix(
        &self,
        parser: &mut Parser,
        left: &Expr,
        _: u8,
    ) -> Option<Result<Expr, ParserError>> {
        if is_power(parser) {
            parser.advance_token();
            parser.advance_token();
            // The parser has one precedence for `*` and this, so that `-a ** 2` is `(-a) ** 2`.
            let right = parser.parse_subexpr(self.prec_value(Precedence::MulDivModOp));
            return Some(right.map(|right| operators::power(left.clone(), right)));
        }
        if let Some(negated) = glob(parser) {
            (0..=usize::from(negated)).for_each(|_| parser.advance_token());
            let right = parser.parse_subexpr(self.prec_value(Precedence::Like));
            return Some(right.map(|right| condition(left, GLOB, right, negated)));
        }
        if let Some(negated) = in_list(parser) {
            (0..=usize::from(negated)).for_each(|_| parser.advance_token());
            let right = parser.parse_subexpr(self.prec_value(Precedence::Between));
            return Some(right.map(|right| condition(left, IN_LIST, right, negated)));
        }
        let same = match parser.parse_keywords(&[
            Keyword::IS,
            Keyword::NOT,
            Keyword::DISTINCT,
            Keyword::FROM,
        ]) {
            true => true,
            false if parser.parse_keywords(&[Keyword::IS, Keyword::DISTINCT, Keyword::FROM]) => {
                false
            }
            false => return None,
        };
        let operator = if same { Expr::IsNotDistinctFrom } else { Expr::IsDistinctFrom };
        let right = parser.parse_subexpr(self.prec_value(Precedence::Is));
        Some(right.map(|right| operator(Box::new(left.clone()), Box::new(right))))
    }

    as_generic! {
        supports_unicode_string_literal
        supports_partition_by_after_order_by
        supports_array_join_syntax
        supports_group_by_expr
        supports_group_by_with_modifier
        supports_left_associative_joins_without_parens
        supports_connect_by
        supports_match_recognize
        supports_pipe_operator
        supports_start_transaction_modifier
        supports_window_function_null_treatment_arg
        supports_dictionary_syntax
        supports_window_clause_named_window_reference
        supports_parenthesized_set_variables
        supports_select_wildcard_except
        support_map_literal_syntax
        allow_extract_custom
        allow_extract_single_quotes
        supports_extract_comma_syntax
        supports_create_view_comment_syntax
        supports_parens_around_table_factor
        supports_values_as_table_factor
        supports_create_index_with_clause
        supports_explain_with_utility_options
        supports_limit_comma
        supports_update_order_by
        supports_from_first_select
        supports_projection_trailing_commas
        supports_asc_desc_in_column_definition
        supports_try_convert
        supports_bitwise_shift_operators
        supports_comment_on
        supports_load_extension
        supports_named_fn_args_with_assignment_operator
        supports_struct_literal
        supports_empty_projections
        supports_nested_comments
        supports_multiline_comment_hints
        supports_user_host_grantee
        supports_string_escape_constant
        supports_array_typedef_with_brackets
        supports_match_against
        supports_set_names
        supports_comma_separated_set_assignments
        supports_filter_during_aggregation
        supports_select_wildcard_exclude
        supports_data_type_signed_suffix
        supports_interval_options
        supports_quote_delimited_string
        supports_select_wildcard_replace
        supports_select_wildcard_ilike
        supports_select_wildcard_rename
        supports_optimize_table
        supports_install
        supports_detach
        supports_prewhere
        supports_with_fill
        supports_limit_by
        supports_interpolate
        supports_settings
        supports_select_format
        supports_comment_optimizer_hint
        supports_constraint_keyword_without_name
        supports_key_column_option
        supports_comma_separated_trim
        supports_cte_without_as
        supports_select_item_multi_column_alias
        supports_xml_expressions
    }
}

/// The precedence of operators that have no row of their own.
const OTHER: u8 = 50;
