import { unreachable } from '../../shared/unreachable.ts'
import type { TableBelow, JsonTableValue, TablePath, TableProgram } from '../../duckdb/scripts/json-table.ts'
import type { StringLiteral } from '../syntax/ast.ts'
import type { Identifier } from '../syntax/ast-node.ts'
import type {
  JsonTable,
  JsonTableColumn,
  JsonTableNestedColumns,
  JsonTableSpecificPlan,
  JsonTableValueColumn,
} from '../syntax/ast-json.ts'
import { array, BIGINT, VARCHAR } from '../types/sql-type.ts'
import { castTo, columnOf } from './build.ts'
import { errorAt, newId, type AnalysisContext, type ExpressionState } from './context.ts'
import { typeOfPath } from './json-path-types.ts'
import { inScope } from './expressions.ts'
import { verifyScalar } from './expression-state.ts'
import { engineCall, invocation, output, returnedType, tableValue, textConstant, verifyPath } from './json-functions.ts'
import { canonical, verifySpecificPlan } from './json-table-plan.ts'
import type { Field, Scope } from './scope.ts'
import type { ComputedColumn, Expr, RelationNode } from './tree.ts'

/**
 * Analyzes JSON_TABLE. A function of the engine produces its rows, including plan and errors; the columns are read from
 * them.
 */
export function analyzeJsonTable(
  context: AnalysisContext,
  node: JsonTable,
  scope: Scope,
): { readonly node: RelationNode; readonly fields: readonly Field[] } {
  const state = inScope(context, scope)
  verifyNames(context, node)
  if (node.plan !== undefined && node.plan.kind !== 'JsonTableDefaultPlan') verifySpecificPlan(context, node, node.plan)
  const table = new TableColumns(state, node)
  const root = table.path(node.pathInvocation.jsonPath, node.columns, node.pathInvocation.pathName)
  const program: TableProgram = { width: table.width, root, errorOnError: node.errorBehavior === 'ERROR' }
  const [input, , passed] = invocation(state, node.pathInvocation).args
  verifyScalar(context, node.pathInvocation.inputExpression, state.found, 'JSON_TABLE input expression')
  const rows = engineCall('u_json_table', array(VARCHAR), [input, passed, textConstant(JSON.stringify(program))])
  const row = newId(context)
  const { fields, columns } = table.over(columnOf(row, VARCHAR))
  const unnest: RelationNode = { kind: 'unnest', arguments: [{ value: rows, columns: [row] }], ordinality: undefined }
  return { node: { kind: 'project', input: unnest, columns }, fields }
}

/** Checks that columns and paths have different names and that, with a plan, every nested path has a name. */
function verifyNames(context: AnalysisContext, node: JsonTable): void {
  const seen = new Set<string>()
  const add = (name: Identifier | undefined): void => {
    if (name === undefined) return
    if (seen.has(canonical(name))) {
      const message = 'All column and path names in JSON_TABLE invocation must be unique'
      throw errorAt(context, name, 'DUPLICATE_COLUMN_OR_PATH_NAME', message)
    }
    seen.add(canonical(name))
  }
  const visit = (column: JsonTableColumn): void => {
    if (column.kind !== 'JsonTableNestedColumns') return add(column.name)
    if (node.plan !== undefined && column.pathName === undefined) {
      const which = node.plan.kind === 'JsonTableDefaultPlan' ? 'default' : 'specific'
      const message = `All nested JSON paths must be named when ${which} plan is given`
      throw errorAt(context, column.jsonPath, 'MISSING_PATH_NAME', message)
    }
    add(column.pathName)
    column.columns.forEach(visit)
  }
  add(node.pathInvocation.pathName)
  node.columns.forEach(visit)
}

type ReadColumn = Exclude<JsonTableColumn, JsonTableNestedColumns>

class TableColumns {
  private readonly state: ExpressionState
  private readonly table: JsonTable
  private readonly columns: ReadColumn[] = []

  constructor(state: ExpressionState, table: JsonTable) {
    this.state = state
    this.table = table
  }

  get width(): number {
    return this.columns.length
  }

  path(path: StringLiteral, columns: readonly JsonTableColumn[], name: Identifier | undefined): TablePath {
    if (path !== this.table.pathInvocation.jsonPath) this.verifyOwn(path)
    const { plan } = this.table
    const own: JsonTableValue[] = []
    const below: TablePath[] = []
    const named = new Map<string, TablePath>()
    for (const column of columns) {
      if (column.kind === 'JsonTableNestedColumns') {
        const inner = this.path(column.jsonPath, column.columns, column.pathName)
        below.push(inner)
        if (column.pathName !== undefined) named.set(canonical(column.pathName), inner)
      } else own.push(this.read(column))
    }
    const specific = plan !== undefined && plan.kind !== 'JsonTableDefaultPlan' ? planOf(plan, name) : undefined
    if (specific !== undefined && below.length > 0) {
      const { child, outer } = specific
      return { path: path.value, columns: own, below: this.arranged(child, named), outer }
    }
    const siblings = plan?.kind === 'JsonTableDefaultPlan' && plan.siblings === 'CROSS' ? 'cross' : 'union'
    const outer = !(plan?.kind === 'JsonTableDefaultPlan' && plan.parentChild === 'INNER')
    const parts = below.map((inner): TableBelow => ({ kind: 'path', path: inner }))
    const under: TableBelow | undefined = parts.length > 1 ? { kind: siblings, parts } : parts[0]
    return { path: path.value, columns: own, below: under, outer }
  }

  /** The tables that a specific plan puts below a path, found by the names of nested paths. */
  private arranged(plan: JsonTableSpecificPlan, named: ReadonlyMap<string, TablePath>): TableBelow {
    switch (plan.kind) {
      case 'JsonTablePlanLeaf':
      case 'JsonTablePlanParentChild': {
        const name = plan.kind === 'JsonTablePlanLeaf' ? plan.name : plan.parent.name
        return { kind: 'path', path: named.get(canonical(name))! }
      }
      case 'JsonTablePlanSiblings':
        return {
          kind: plan.type === 'CROSS' ? 'cross' : 'union',
          parts: plan.siblings.map((each) => this.arranged(each, named)),
        }
      default:
        return unreachable(plan)
    }
  }

  /** Checks a path of a column or a nested path; these cannot use the parameters passed to the table's path. */
  private verifyOwn(path: StringLiteral): void {
    typeOfPath(verifyPath(this.state, path), [], (message) => {
      throw errorAt(this.state.context, path, 'INVALID_PATH', message)
    })
  }

  private read(column: ReadColumn): JsonTableValue {
    const at = this.columns.push(column) - 1
    if (column.kind === 'JsonTableOrdinalityColumn') return { at, kind: 'ordinality' }
    if (column.jsonPath !== undefined) this.verifyOwn(column.jsonPath)
    const path = column.jsonPath?.value ?? `lax $."${canonical(column.name).replaceAll('"', '""')}"`
    const otherwise = this.table.errorBehavior === 'ERROR' ? 'ERROR' : 'NULL'
    if (column.kind === 'JsonTableValueColumn') {
      const onEmpty = column.emptyBehavior?.behavior ?? 'NULL'
      return { at, kind: 'value', path, onEmpty, onError: column.errorBehavior?.behavior ?? otherwise }
    }
    const options = [
      column.wrapperBehavior ?? 'WITHOUT',
      column.quotesBehavior ?? 'KEEP',
      column.emptyBehavior ?? 'NULL',
      column.errorBehavior ?? otherwise,
    ]
    return { at, kind: 'query', path, options: options.join(',') }
  }

  /** The columns over a row that the engine produced. */
  over(row: Expr): { readonly fields: readonly Field[]; readonly columns: readonly ComputedColumn[] } {
    const columns = this.columns.map((column, i): ComputedColumn => {
      const cell = engineCall('json_extract_string', VARCHAR, [row, textConstant(`$[${i}]`)])
      return { id: newId(this.state.context), expression: this.value(column, cell) }
    })
    const fields = columns.map(({ id, expression }, i): Field => ({
      name: canonical(this.columns[i]!.name),
      relation: undefined,
      type: expression.type,
      column: id,
    }))
    return { fields, columns }
  }

  private value(column: ReadColumn, cell: Expr): Expr {
    if (column.kind === 'JsonTableOrdinalityColumn') return castTo(cell, BIGINT)
    const type = returnedType(this.state, column, column.type, VARCHAR)
    if (column.kind === 'JsonTableQueryColumn') return output(this.state, column, cell, type, column.format)
    return tableValue(this.state, cell, type, column.emptyBehavior, this.errorBehavior(column))
  }

  private errorBehavior({ errorBehavior }: JsonTableValueColumn): JsonTableValueColumn['errorBehavior'] {
    return errorBehavior ?? { behavior: this.table.errorBehavior === 'ERROR' ? 'ERROR' : 'NULL' }
  }
}

/** The part of a specific plan that concerns the named path. */
function planOf(
  plan: JsonTableSpecificPlan,
  name: Identifier | undefined,
): { readonly child: JsonTableSpecificPlan; readonly outer: boolean } | undefined {
  if (plan.kind === 'JsonTablePlanSiblings') {
    for (const each of plan.siblings) {
      const found = planOf(each, name)
      if (found !== undefined) return found
    }
    return undefined
  }
  if (plan.kind === 'JsonTablePlanLeaf') return undefined
  if (name !== undefined && canonical(plan.parent.name) === canonical(name)) {
    return { child: plan.child, outer: plan.type === 'OUTER' }
  }
  return planOf(plan.child, name)
}
