import type { ResolvedFunction } from '../functions/resolve-function.ts'
import type {
  Expression,
  FrameBound,
  FunctionCall,
  Listagg,
  Window,
  WindowDefinition,
  WindowFrame,
  WindowSpecification,
} from '../syntax/ast.ts'
import type { Identifier, Node } from '../syntax/ast-node.ts'
import type { Span } from '../syntax/span.ts'
import { isComparable, isDateTime, isInteger, isNumeric, isOrderable, type SqlType } from '../types/sql-type.ts'
import { typeName } from '../types/type-text.ts'
import { resolveArithmetic } from '../functions/operators.ts'
import { castTo, columnOf } from './build.ts'
import { refuseCaptured } from './aggregation.ts'
import { errorAt, newId, type AnalysisContext, type ExpressionState, type FoundParts } from './context.ts'
import { nothingFound } from './expression-state.ts'
import type { Scope } from './scope.ts'
import type { ColumnId, Expr, ExprSortKey, BoundFrame, FrameEnd, WindowExpr } from './tree.ts'
import { exprKey, mapChildren } from './walk.ts'

/** The windows of the WINDOW clause, with their grouping and order expressions over FROM, used or not. */
export interface DefinedWindows {
  /** By `windowKey`. */
  readonly windows: ReadonlyMap<string, WindowSpecification>
  readonly parts: readonly { readonly node: Expression; readonly expr: Expr }[]
}

/** @param state creates the state for analyzing an expression over FROM */
export function analyzeWindowDefinitions(
  context: AnalysisContext,
  definitions: readonly WindowDefinition[],
  state: () => ExpressionState,
): DefinedWindows {
  const windows = new Map<string, WindowSpecification>()
  const parts: { readonly node: Expression; readonly expr: Expr }[] = []
  for (const { name, window, ...node } of definitions) {
    const key = windowKey(name)
    if (windows.has(key)) {
      throw errorAt(context, node, 'DUPLICATE_WINDOW_NAME', `WINDOW name '${name.value}' specified more than once`)
    }
    const specification = resolveSpecification(context, windows, window)
    windows.set(key, specification)
    const over = state()
    const { partitionBy, orderBy, frame } = analyzeSpecificationParts(over, specification)
    verifyNesting(context, nothingFound(), over.found, specification)
    for (const expr of [...partitionBy, ...orderBy.map((item) => item.value), frame?.start.value, frame?.end.value]) {
      const node = expr && context.origins.get(expr)
      if (node !== undefined) parts.push({ node, expr: expr! })
    }
  }
  return { windows, parts }
}

/** The key of a window name. Only window names are case-sensitive if quoted; unquoted names become upper case. */
function windowKey({ quoted, value }: Identifier): string {
  return quoted ? value : value.toUpperCase()
}

function namedWindow(
  context: AnalysisContext,
  windows: ReadonlyMap<string, WindowSpecification>,
  name: Identifier,
): WindowSpecification {
  const found = windows.get(windowKey(name))
  if (found === undefined) {
    throw errorAt(context, name, 'INVALID_WINDOW_REFERENCE', `Cannot resolve WINDOW name ${name.value}`)
  }
  return found
}

/** A specification combined with the window that it names. */
function resolveSpecification(
  context: AnalysisContext,
  windows: ReadonlyMap<string, WindowSpecification>,
  specification: WindowSpecification,
): WindowSpecification {
  const name = specification.existingWindowName
  if (name === undefined) return specification
  const base = namedWindow(context, windows, name)
  const [partition] = specification.partitionBy
  if (partition !== undefined) {
    throw errorAt(
      context,
      partition,
      'INVALID_PARTITION_BY',
      'WINDOW specification with named WINDOW reference cannot specify PARTITION BY',
    )
  }
  if (specification.orderBy !== undefined && base.orderBy !== undefined) {
    throw errorAt(
      context,
      specification.orderBy,
      'INVALID_ORDER_BY',
      'Cannot specify ORDER BY if referenced named WINDOW specifies ORDER BY',
    )
  }
  if (base.frame !== undefined) {
    throw errorAt(
      context,
      name,
      'INVALID_WINDOW_REFERENCE',
      'Cannot reference named WINDOW containing frame specification',
    )
  }
  return {
    ...specification,
    existingWindowName: undefined,
    partitionBy: base.partitionBy,
    orderBy: specification.orderBy ?? base.orderBy,
  }
}

/** The scope of the WINDOW clause. */
function scopeOfWindows(scope: Scope): Scope {
  for (let at: Scope | undefined = scope; at !== undefined; at = at.parent) {
    if (at.windows !== undefined) return at
    if (at.boundary) break
  }
  return scope
}

/** The SELECT of an expression; some errors in windows are reported at it. */
function selectAround(scope: Scope | undefined): { readonly span: Span } {
  if (scope === undefined) return { span: { start: 0, end: 0, at: 0 } }
  return scope.select ?? selectAround(scope.parent)
}

/** A call with OVER, fully analyzed except for its window. */
export interface CallOverWindow {
  readonly node: FunctionCall | Listagg
  readonly window: Window
  /** The parts found in its arguments. */
  readonly inner: FoundParts
  readonly resolved: ResolvedFunction
  readonly args: readonly Expr[]
  readonly argumentOrder: readonly ExprSortKey[]
  readonly filter: Expr | undefined
}

export function analyzeWindowCall(state: ExpressionState, over: CallOverWindow): Expr {
  const { node, window, inner, resolved, args, argumentOrder, filter } = over
  const { context } = state
  const scope = scopeOfWindows(state.scope)
  const windows = scope.windows ?? new Map<string, WindowSpecification>()
  const specification =
    window.kind === 'WindowReference'
      ? namedWindow(context, windows, window.name)
      : resolveSpecification(context, windows, window)
  // Names in the WINDOW clause mean columns of FROM, even in ORDER BY, where select-list names otherwise come first.
  const defined = state.within({ scope, lambda: undefined, found: state.found })
  const { partitionBy, orderBy, frame } = analyzeSpecificationParts(state, specification, (part) =>
    window.kind !== 'WindowReference' && window[part] === specification[part] ? state : defined,
  )

  verifyNesting(context, inner, state.found, specification)
  verifyCall(state, node, specification, resolved, filter)
  state.found.aggregates.push(...inner.aggregates)
  state.found.groupings.push(...inner.groupings)
  state.found.subqueries.push(...inner.subqueries)
  state.found.windows.push(node)
  const call: WindowExpr = {
    kind: 'window',
    type: resolved.resultType,
    function: resolved,
    arguments: args,
    ignoreNulls: node.kind === 'FunctionCall' && node.nullTreatment === 'IGNORE',
    distinct: node.distinct,
    filter,
    argumentOrder,
    partitionBy,
    orderBy,
    frame,
  }
  refuseCaptured(context, node, call)
  return call
}

/** @param stateOf the state in which the names of a part are resolved */
function analyzeSpecificationParts(
  state: ExpressionState,
  specification: WindowSpecification,
  stateOf: (part: 'partitionBy' | 'orderBy' | 'frame') => ExpressionState = () => state,
): Pick<WindowExpr, 'partitionBy' | 'orderBy' | 'frame'> {
  const { context } = state
  const partitionBy = specification.partitionBy.map((expression) => {
    const expr = stateOf('partitionBy').analyze(expression)
    if (!isComparable(expr.type)) {
      throw errorAt(
        context,
        expression,
        'TYPE_MISMATCH',
        `${typeName(expr.type)} is not comparable, and therefore cannot be used in window function PARTITION BY`,
      )
    }
    return noted(context, expression, expr)
  })
  const orderBy = (specification.orderBy?.sortItems ?? []).map((item): ExprSortKey => {
    const expr = stateOf('orderBy').analyze(item.sortKey)
    if (!isOrderable(expr.type)) {
      throw errorAt(
        context,
        item.sortKey,
        'TYPE_MISMATCH',
        `${typeName(expr.type)} is not orderable, and therefore cannot be used in window function ORDER BY`,
      )
    }
    return {
      value: noted(context, item.sortKey, expr),
      descending: item.ordering === 'DESCENDING',
      nullsFirst: item.nullOrdering === 'FIRST',
    }
  })
  const frame =
    specification.frame === undefined
      ? undefined
      : analyzeFrame(stateOf('frame'), specification.frame, specification, orderBy)
  return { partitionBy, orderBy, frame }
}

/** Records the syntax node of a part of a window; errors about it have messages of their own. */
function noted(context: AnalysisContext, node: Expression, expr: Expr): Expr {
  const copy = { ...expr }
  context.origins.set(copy, node)
  return copy
}

function verifyNesting(
  context: AnalysisContext,
  inner: FoundParts,
  around: FoundParts,
  specification: WindowSpecification,
): void {
  const nested = inner.windows[0]
  if (nested !== undefined) {
    throw errorAt(
      context,
      nested,
      'NESTED_WINDOW',
      'Cannot nest window functions or row pattern measures inside window function arguments',
    )
  }
  const { start, end } = specification.span
  const inside = around.windows.find((node: Node<string>) => node.span.start >= start && node.span.end <= end)
  if (inside !== undefined) {
    throw errorAt(
      context,
      inside,
      'NESTED_WINDOW',
      'Cannot nest window functions or row pattern measures inside window specification',
    )
  }
}

function verifyCall(
  { context, scope }: ExpressionState,
  node: FunctionCall | Listagg,
  specification: WindowSpecification,
  resolved: ResolvedFunction,
  filter: Expr | undefined,
): void {
  const { name, kind } = resolved
  if (node.distinct && kind !== 'aggregate') {
    throw errorAt(
      context,
      selectAround(scope),
      'NOT_SUPPORTED',
      `Only aggregation window functions with DISTINCT are supported: ${context.print(node)}`,
    )
  }
  if (filter !== undefined) {
    throw errorAt(
      context,
      selectAround(scope),
      'NOT_SUPPORTED',
      `FILTER is not yet supported for window functions: ${context.print(node)}`,
    )
  }
  if (kind === 'scalar') {
    const at =
      context.functions?.has(name) === true ? { span: { ...node.span, at: node.span.start } } : selectAround(scope)
    throw errorAt(context, at, 'FUNCTION_NOT_WINDOW', `Not a window function: ${name}`)
  }
  if (node.orderBy !== undefined && kind !== 'aggregate') {
    throw errorAt(context, node, 'NOT_SUPPORTED', 'Only aggregation window functions with ORDER BY are supported')
  }
  const clauses = resolved.kind === 'window' ? resolved.clauses : undefined
  if (node.kind === 'FunctionCall' && node.nullTreatment !== undefined && clauses?.nullTreatment !== true) {
    throw errorAt(
      context,
      node,
      'NULL_TREATMENT_NOT_ALLOWED',
      `Cannot specify null treatment clause for ${name} function`,
    )
  }
  if (clauses?.order === 'required' && specification.orderBy === undefined) {
    const message = `${name} function requires an ORDER BY window clause`
    throw errorAt(context, contentOf(node.window!), 'MISSING_ORDER_BY', message)
  }
  if (clauses?.frame === false && specification.frame !== undefined) {
    const message = `Cannot specify window frame for ${name} function`
    throw errorAt(context, specification.frame, 'INVALID_WINDOW_FRAME', message)
  }
}

/** The position of a specification is that of its first clause; for an empty one, its closing parenthesis. */
function contentOf(window: Window): { readonly span: Span } {
  if (window.kind === 'WindowReference') return window
  const first = window.existingWindowName ?? window.partitionBy[0] ?? window.orderBy ?? window.frame
  const at = first === undefined ? window.span.end - 1 : window.span.start + 1
  return { span: { ...window.span, at } }
}

function analyzeFrame(
  state: ExpressionState,
  frame: WindowFrame,
  specification: WindowSpecification,
  orderBy: readonly ExprSortKey[],
): BoundFrame {
  const { context } = state
  if (frame.pattern !== undefined) throw errorAt(context, frame, 'NOT_SUPPORTED', 'Row patterns are not supported')
  verifyPatternless(context, frame)
  const { start, end, type } = frame
  const bad = (message: string): Error => errorAt(context, frame, 'INVALID_WINDOW_FRAME', message)
  const words = { PRECEDING: 'PRECEDING', CURRENT_ROW: 'CURRENT ROW', FOLLOWING: 'FOLLOWING' }
  const endType = end?.type ?? 'CURRENT_ROW'
  if (start.type === 'UNBOUNDED_FOLLOWING') throw bad('Window frame start cannot be UNBOUNDED FOLLOWING')
  if (endType === 'UNBOUNDED_PRECEDING') throw bad('Window frame end cannot be UNBOUNDED PRECEDING')
  const backwards =
    (start.type === 'CURRENT_ROW' && endType === 'PRECEDING') ||
    (start.type === 'FOLLOWING' && (endType === 'PRECEDING' || endType === 'CURRENT_ROW'))
  if (backwards) {
    const [from, to] = [words[start.type as 'FOLLOWING'], words[endType as 'PRECEDING']]
    throw bad(`Window frame starting from ${from} cannot end with ${to}`)
  }
  const bounds = [start, end].filter((bound) => bound?.value !== undefined) as FrameBound[]
  const values = new Map(bounds.map((bound) => [bound, state.analyze(bound.value!)]))
  if (type === 'ROWS') {
    for (const bound of bounds) verifyExactInteger(context, 'ROWS', bound, values.get(bound)!, bound === start)
  } else if (bounds.length > 0 || type === 'GROUPS') {
    verifyOrdered(context, frame, specification, orderBy)
    for (const bound of bounds) {
      const value = values.get(bound)!
      if (type === 'GROUPS') verifyExactInteger(context, 'GROUPS', bound, value, bound === start)
      else values.set(bound, rangeValue(context, bound, value, orderBy[0]!.value.type))
    }
  }
  const endOf = (bound: FrameBound | undefined): FrameEnd => {
    const value = bound && values.get(bound)
    return { type: bound?.type ?? 'CURRENT_ROW', value: value && noted(context, bound!.value!, value) }
  }
  return { type, start: endOf(start), end: endOf(end) }
}

/** Refuses clauses that have no meaning without PATTERN. */
function verifyPatternless(context: AnalysisContext, frame: WindowFrame): void {
  const mode = frame.patternSearchMode
  const clauses = [
    [frame.measures[0], 'Row pattern measures require'],
    [frame.afterMatchSkipTo, 'AFTER MATCH SKIP clause requires'],
    [mode && frame, `${mode} modifier requires`],
    [frame.subsets[0], 'Union variable definitions require'],
    [frame.variableDefinitions[0], 'Primary pattern variable definitions require'],
  ] as const
  for (const [clause, what] of clauses) {
    if (clause !== undefined) throw errorAt(context, clause, 'MISSING_ROW_PATTERN', `${what} PATTERN clause`)
  }
}

function verifyExactInteger(
  context: AnalysisContext,
  frame: string,
  bound: FrameBound,
  value: Expr,
  isStart: boolean,
): void {
  const { type } = value
  if (isInteger(type) || (type.kind === 'decimal' && type.scale === 0)) return
  throw errorAt(
    context,
    bound.value!,
    'TYPE_MISMATCH',
    `Window frame ${frame} ${isStart ? 'start' : 'end'} value type must be exact numeric type with scale 0 (actual ${typeName(type)})`,
  )
}

function verifyOrdered(
  context: AnalysisContext,
  frame: WindowFrame,
  specification: WindowSpecification,
  orderBy: readonly ExprSortKey[],
): void {
  const what = `Window frame of type ${frame.type} PRECEDING or FOLLOWING`
  if (specification.orderBy === undefined) {
    throw errorAt(context, frame, 'MISSING_ORDER_BY', `${what} requires ORDER BY`)
  }
  if (frame.type !== 'RANGE') return
  if (orderBy.length !== 1) {
    throw errorAt(
      context,
      specification.orderBy,
      'INVALID_ORDER_BY',
      `${what} requires single sort item in ORDER BY (actual: ${orderBy.length})`,
    )
  }
  const { type } = orderBy[0]!.value
  if (isNumeric(type) || isDateTime(type) || type.kind.startsWith('interval')) return
  throw errorAt(
    context,
    specification.orderBy.sortItems[0]!.sortKey,
    'TYPE_MISMATCH',
    `${what} requires that sort item type be numeric, datetime or interval (actual: ${typeName(type)})`,
  )
}

/** Checks that a value can be added to and subtracted from the sort key. */
function rangeValue(context: AnalysisContext, bound: FrameBound, value: Expr, sortType: SqlType): Expr {
  const fits = isNumeric(sortType) ? isNumeric(value.type) : value.type.kind.startsWith('interval')
  if (fits) {
    try {
      const operator = resolveArithmetic('-', sortType, value.type)
      return isNumeric(sortType) ? castTo(value, operator.right) : value
    } catch {
      // Reported below.
    }
  }
  throw errorAt(
    context,
    bound.value!,
    'TYPE_MISMATCH',
    `Window frame RANGE value type (${typeName(value.type)}) not compatible with sort item type (${typeName(sortType)})`,
  )
}

/** Collects the window calls of expressions; each becomes a column. */
export function extractWindows(context: AnalysisContext): {
  readonly columns: readonly { readonly id: ColumnId; readonly call: WindowExpr }[]
  readonly rewrite: (expr: Expr) => Expr
} {
  const columns: { readonly id: ColumnId; readonly call: WindowExpr }[] = []
  const byKey = new Map<string, ColumnId>()
  const rewrite = (expr: Expr): Expr => {
    if (expr.kind === 'constant' || expr.kind === 'column') return expr
    if (expr.kind !== 'window') return mapChildren(expr, rewrite)
    const key = exprKey(expr)
    let id = byKey.get(key)
    if (id === undefined) {
      id = newId(context)
      byKey.set(key, id)
      columns.push({ id, call: expr })
    }
    return columnOf(id, expr.type)
  }
  return { columns, rewrite }
}
