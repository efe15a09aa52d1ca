//! The expressions of a part of a statement that stand outside of its subqueries.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{Expr, Query, Visit, VisitMut, Visitor, VisitorMut};

/// Goes through them, those around others first, until `work` breaks off.
pub(super) fn each_outside<B>(
    of: &impl Visit,
    work: impl FnMut(&Expr) -> ControlFlow<B>,
) -> ControlFlow<B> {
    Visit::visit(of, &mut Outside { depth: 0, work, breaks: std::marker::PhantomData })
}

/// Goes through them as [`each_outside`] does, to change them.
pub(super) fn each_outside_mut<B>(
    of: &mut impl VisitMut,
    work: impl FnMut(&mut Expr) -> ControlFlow<B>,
) -> ControlFlow<B> {
    VisitMut::visit(of, &mut Outside { depth: 0, work, breaks: std::marker::PhantomData })
}

/// Whether one of them is such a one.
pub(super) fn any_outside(of: &impl Visit, is_such: impl Fn(&Expr) -> bool) -> bool {
    let found = each_outside(of, |expr| match is_such(expr) {
        true => ControlFlow::Break(()),
        false => ControlFlow::Continue(()),
    });
    found.is_break()
}

struct Outside<F, B> {
    /// Queries around the expression, within the part.
    depth: usize,
    work: F,
    breaks: std::marker::PhantomData<B>,
}

impl<B, F: FnMut(&Expr) -> ControlFlow<B>> Visitor for Outside<F, B> {
    type Break = B;

    fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<B> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &Query) -> ControlFlow<B> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<B> {
        if self.depth == 0 { (self.work)(expr) } else { ControlFlow::Continue(()) }
    }
}

impl<B, F: FnMut(&mut Expr) -> ControlFlow<B>> VisitorMut for Outside<F, B> {
    type Break = B;

    fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<B> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<B> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<B> {
        if self.depth == 0 { (self.work)(expr) } else { ControlFlow::Continue(()) }
    }
}
