//! From the source of a template to what the engine runs, with guards put in where a value could grow.

use std::collections::BTreeMap;

use minijinja::machinery::ast::{self, BinOpKind, CallArg, Expr, Spanned, Stmt};
use minijinja::machinery::{self, CodeGenerator, Instructions, Span};
use minijinja::value::Value;
use minijinja::{AutoEscape, Environment, Error};

use super::{environment, guards, nesting};

/// A template that can be rendered.
pub(super) struct Compiled<'s> {
    instructions: Instructions<'s>,
    blocks: BTreeMap<&'s str, Instructions<'s>>,
}

/// Parses a template.
pub(super) fn compile<'s>(name: &'s str, source: &'s str) -> Result<Compiled<'s>, Error> {
    let syntax = environment::syntax()?;
    nesting::check(source, syntax.clone())?;
    let template = guarded_stmt(&machinery::parse(source, name, syntax)?);
    let mut generator = CodeGenerator::new(name, source);
    generator.compile_stmt(&template);
    let (instructions, blocks) = generator.finish();
    Ok(Compiled { instructions, blocks })
}

impl<'s> Compiled<'s> {
    /// Renders the template with these variables.
    pub(super) fn render(&self, env: &'s Environment<'s>, variables: Value) -> Result<String, Error> {
        let mut text = String::new();
        let mut out = machinery::make_string_output(&mut text);
        machinery::eval(env, &self.instructions, variables, &self.blocks, &mut out, AutoEscape::None)?;
        Ok(text)
    }
}

/// `guard(value)`, where `guard` is a name that no template can define.
fn call<'s>(guard: &'static str, value: Expr<'s>, span: Span) -> Expr<'s> {
    let function = Expr::Var(Spanned::new(ast::Var { id: guard }, span));
    Expr::Call(Spanned::new(ast::Call { expr: function, args: vec![CallArg::Pos(value)] }, span))
}

fn stmts<'s>(all: &[Stmt<'s>]) -> Vec<Stmt<'s>> {
    all.iter().map(guarded_stmt).collect()
}

fn exprs<'s>(all: &[Expr<'s>]) -> Vec<Expr<'s>> {
    all.iter().map(guarded).collect()
}

fn optional<'s>(expr: Option<&Expr<'s>>) -> Option<Expr<'s>> {
    expr.map(guarded)
}

fn args<'s>(all: &[CallArg<'s>]) -> Vec<CallArg<'s>> {
    let arg = |arg: &CallArg<'s>| match arg {
        CallArg::Pos(e) => CallArg::Pos(guarded(e)),
        CallArg::Kwarg(name, e) => CallArg::Kwarg(name, guarded(e)),
        CallArg::PosSplat(e) => CallArg::PosSplat(guarded(e)),
        CallArg::KwargSplat(e) => CallArg::KwargSplat(guarded(e)),
    };
    all.iter().map(arg).collect()
}

fn guarded_call<'s>(call: &Spanned<ast::Call<'s>>) -> Spanned<ast::Call<'s>> {
    Spanned::new(ast::Call { expr: guarded(&call.expr), args: args(&call.args) }, call.span())
}

fn guarded_macro<'s>(of: &Spanned<ast::Macro<'s>>) -> Spanned<ast::Macro<'s>> {
    let ast::Macro { name, args, defaults, body } = &**of;
    let args = args.iter().map(target_of).collect();
    let new = ast::Macro { name, args, defaults: exprs(defaults), body: stmts(body) };
    Spanned::new(new, of.span())
}

fn guarded_stmt<'s>(stmt: &Stmt<'s>) -> Stmt<'s> {
    match stmt {
        Stmt::Template(s) => {
            Stmt::Template(Spanned::new(ast::Template { children: stmts(&s.children) }, s.span()))
        }
        Stmt::EmitExpr(s) => Stmt::EmitExpr(Spanned::new(ast::EmitExpr { expr: guarded(&s.expr) }, s.span())),
        Stmt::EmitRaw(s) => Stmt::EmitRaw(Spanned::new(ast::EmitRaw { raw: s.raw }, s.span())),
        Stmt::ForLoop(s) => {
            let new = ast::ForLoop {
                target: target_of(&s.target),
                iter: guarded(&s.iter),
                filter_expr: optional(s.filter_expr.as_ref()),
                recursive: s.recursive,
                body: stmts(&s.body),
                else_body: stmts(&s.else_body),
            };
            Stmt::ForLoop(Spanned::new(new, s.span()))
        }
        Stmt::IfCond(s) => {
            let (expr, true_body) = (guarded(&s.expr), stmts(&s.true_body));
            let new = ast::IfCond { expr, true_body, false_body: stmts(&s.false_body) };
            Stmt::IfCond(Spanned::new(new, s.span()))
        }
        Stmt::WithBlock(s) => {
            let assignments = s.assignments.iter().map(|(target, value)| {
                let value = call(guards::SET, guarded(value), value.span());
                (target_of(target), value)
            });
            let new = ast::WithBlock { assignments: assignments.collect(), body: stmts(&s.body) };
            Stmt::WithBlock(Spanned::new(new, s.span()))
        }
        Stmt::Set(s) => {
            let guard = if matches!(s.target, Expr::GetAttr(_)) { guards::SET_FIELD } else { guards::SET };
            let expr = call(guard, guarded(&s.expr), s.expr.span());
            Stmt::Set(Spanned::new(ast::Set { target: target_of(&s.target), expr }, s.span()))
        }
        Stmt::SetBlock(s) => {
            let (target, filter) = (target_of(&s.target), optional(s.filter.as_ref()));
            Stmt::SetBlock(Spanned::new(ast::SetBlock { target, filter, body: stmts(&s.body) }, s.span()))
        }
        Stmt::AutoEscape(s) => {
            let new = ast::AutoEscape { enabled: guarded(&s.enabled), body: stmts(&s.body) };
            Stmt::AutoEscape(Spanned::new(new, s.span()))
        }
        Stmt::FilterBlock(s) => {
            let (filter, filter_span) = (guarded(&s.filter), s.filter_span);
            let new = ast::FilterBlock { filter, filter_span, body: stmts(&s.body) };
            Stmt::FilterBlock(Spanned::new(new, s.span()))
        }
        Stmt::Block(s) => {
            let new = ast::Block { name: s.name, required: s.required, body: stmts(&s.body) };
            Stmt::Block(Spanned::new(new, s.span()))
        }
        Stmt::Import(s) => {
            let new = ast::Import { expr: guarded(&s.expr), name: target_of(&s.name) };
            Stmt::Import(Spanned::new(new, s.span()))
        }
        Stmt::FromImport(s) => {
            let names = s.names.iter().map(|(name, alias)| (target_of(name), alias.as_ref().map(target_of)));
            let new = ast::FromImport { expr: guarded(&s.expr), names: names.collect() };
            Stmt::FromImport(Spanned::new(new, s.span()))
        }
        Stmt::Extends(s) => Stmt::Extends(Spanned::new(ast::Extends { name: guarded(&s.name) }, s.span())),
        Stmt::Include(s) => {
            let new = ast::Include { name: guarded(&s.name), ignore_missing: s.ignore_missing };
            Stmt::Include(Spanned::new(new, s.span()))
        }
        Stmt::Macro(s) => Stmt::Macro(guarded_macro(s)),
        Stmt::CallBlock(s) => {
            let (call, macro_decl) = (guarded_call(&s.call), guarded_macro(&s.macro_decl));
            let new = ast::CallBlock { call, call_expr_span: s.call_expr_span, macro_decl };
            Stmt::CallBlock(Spanned::new(new, s.span()))
        }
        Stmt::Continue(s) => Stmt::Continue(Spanned::new(ast::Continue, s.span())),
        Stmt::Break(s) => Stmt::Break(Spanned::new(ast::Break, s.span())),
        Stmt::Do(s) => Stmt::Do(Spanned::new(ast::Do { call: guarded_call(&s.call) }, s.span())),
    }
}

/// What is assigned to: names, which hold nothing that grows.
fn target_of<'s>(target: &Expr<'s>) -> Expr<'s> {
    match target {
        Expr::List(s) => {
            let items = s.items.iter().map(target_of).collect();
            Expr::List(Spanned::new(ast::List { items }, s.span()))
        }
        Expr::Tuple(s) => {
            let items = s.items.iter().map(target_of).collect();
            Expr::Tuple(Spanned::new(ast::Tuple { items }, s.span()))
        }
        other => guarded(other),
    }
}

fn guarded<'s>(expr: &Expr<'s>) -> Expr<'s> {
    let span = expr.span();
    match expr {
        Expr::Var(s) => Expr::Var(Spanned::new(ast::Var { id: s.id }, span)),
        Expr::Const(s) => Expr::Const(Spanned::new(ast::Const { value: s.value.clone() }, span)),
        Expr::Slice(s) => {
            let new = ast::Slice {
                expr: guarded(&s.expr),
                start: optional(s.start.as_ref()),
                stop: optional(s.stop.as_ref()),
                step: optional(s.step.as_ref()),
            };
            Expr::Slice(Spanned::new(new, span))
        }
        Expr::UnaryOp(s) => {
            let not = matches!(s.op, ast::UnaryOpKind::Not);
            let op = if not { ast::UnaryOpKind::Not } else { ast::UnaryOpKind::Neg };
            Expr::UnaryOp(Spanned::new(ast::UnaryOp { op, expr: guarded(&s.expr) }, span))
        }
        Expr::BinOp(s) => {
            let guard = match s.op {
                BinOpKind::Add | BinOpKind::Mul => Some(guards::OPERAND),
                BinOpKind::Concat => Some(guards::TEXT),
                _ => None,
            };
            let side = |side: &Expr<'s>| match (guard, side) {
                (Some(guard), side) if !is_small(side) => call(guard, guarded(side), side.span()),
                (_, side) => guarded(side),
            };
            let new = ast::BinOp { op: s.op, left: side(&s.left), right: side(&s.right) };
            Expr::BinOp(Spanned::new(new, span))
        }
        Expr::Compare(s) => {
            let ops = s.ops.iter().map(|op| ast::CompareOp { op: op.op, expr: guarded(&op.expr) });
            Expr::Compare(Spanned::new(ast::Compare { expr: guarded(&s.expr), ops: ops.collect() }, span))
        }
        Expr::IfExpr(s) => {
            let (test_expr, true_expr) = (guarded(&s.test_expr), guarded(&s.true_expr));
            let new = ast::IfExpr { test_expr, true_expr, false_expr: optional(s.false_expr.as_ref()) };
            Expr::IfExpr(Spanned::new(new, span))
        }
        Expr::Filter(s) => {
            let new = ast::Filter { name: s.name, expr: optional(s.expr.as_ref()), args: args(&s.args) };
            Expr::Filter(Spanned::new(new, span))
        }
        Expr::Test(s) => {
            let new = ast::Test { name: s.name, expr: guarded(&s.expr), args: args(&s.args) };
            Expr::Test(Spanned::new(new, span))
        }
        Expr::GetAttr(s) => {
            Expr::GetAttr(Spanned::new(ast::GetAttr { expr: guarded(&s.expr), name: s.name }, span))
        }
        Expr::GetItem(s) => {
            let new = ast::GetItem { expr: guarded(&s.expr), subscript_expr: guarded(&s.subscript_expr) };
            Expr::GetItem(Spanned::new(new, span))
        }
        Expr::Call(s) => Expr::Call(guarded_call(s)),
        Expr::List(s) => {
            built(Expr::List(Spanned::new(ast::List { items: exprs(&s.items) }, span)), &s.items)
        }
        Expr::Tuple(s) => {
            built(Expr::Tuple(Spanned::new(ast::Tuple { items: exprs(&s.items) }, span)), &s.items)
        }
        Expr::Map(s) => {
            let new = ast::Map { keys: exprs(&s.keys), values: exprs(&s.values) };
            built(Expr::Map(Spanned::new(new, span)), &s.values)
        }
    }
}

/// A constant that is no container and is written alike by the engine and by Python.
fn is_small(expr: &Expr) -> bool {
    matches!(expr, Expr::Const(c) if c.value.as_str().is_some() || c.value.is_integer())
}

/// A container, looked at when it is built unless it holds nothing but constants.
fn built<'s>(container: Expr<'s>, items: &[Expr<'s>]) -> Expr<'s> {
    if items.iter().all(|item| matches!(item, Expr::Const(_))) {
        return container;
    }
    let span = container.span();
    call(guards::BUILT, container, span)
}
