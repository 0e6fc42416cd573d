import type { Identifier } from '../syntax/ast-node.ts'
import type {
  JsonTable,
  JsonTableColumn,
  JsonTableNestedColumns,
  JsonTablePlanLeaf,
  JsonTablePlanParentChild,
  JsonTableSpecificPlan,
} from '../syntax/ast-json.ts'
import { unreachable } from '../../shared/unreachable.ts'
import { errorAt, type AnalysisContext } from './context.ts'

/** The form in which names in a JSON_TABLE's plan, paths and columns are compared. */
export function canonical(name: Identifier): string {
  return name.quoted ? name.value : name.value.toUpperCase()
}

type PlannedPath = JsonTablePlanLeaf | JsonTablePlanParentChild

/**
 * Refuses specific plans that Trino refuses. A plan must begin with the root and name every path once, at its own
 * level.
 */
export function verifySpecificPlan(context: AnalysisContext, node: JsonTable, plan: JsonTableSpecificPlan): void {
  const { pathName } = node.pathInvocation
  if (pathName === undefined) {
    const message = 'All JSON paths must be named when specific plan is given'
    throw errorAt(context, node.pathInvocation, 'MISSING_PATH_NAME', message)
  }
  if (plan.kind === 'JsonTablePlanSiblings') {
    const message =
      'JSON_TABLE plan must either be a single path name or it must be rooted in parent-child relationship (OUTER or INNER)'
    throw errorAt(context, plan, 'INVALID_PLAN', message)
  }
  verifyLevel(context, plan, new Map([[canonical(pathName), node.columns]]), new Map([[nameOf(plan), plan]]))
}

function verifyLevel(
  context: AnalysisContext,
  root: JsonTableSpecificPlan,
  paths: ReadonlyMap<string, readonly JsonTableColumn[]>,
  planned: ReadonlyMap<string, PlannedPath>,
): void {
  const missing = [...paths.keys()].filter((name) => !planned.has(name))
  if (missing.length > 0) {
    const message = `JSON_TABLE plan should contain all JSON paths available at each level of nesting. Paths not included: ${missing.join(', ')}`
    throw errorAt(context, root, 'INVALID_PLAN', message)
  }
  const unknown = [...planned.keys()].filter((name) => !paths.has(name))
  if (unknown.length > 0) {
    const message = `JSON_TABLE plan includes unavailable JSON path names: ${unknown.join(', ')}`
    throw errorAt(context, root, 'INVALID_PLAN', message)
  }
  for (const [name, columns] of paths) {
    const nested = columns.filter(
      (column): column is JsonTableNestedColumns => column.kind === 'JsonTableNestedColumns',
    )
    const plan = planned.get(name)!
    const below = new Map<string, PlannedPath>()
    if (plan.kind === 'JsonTablePlanParentChild') addSiblings(context, plan.child, below)
    verifyLevel(context, root, new Map(nested.map((each) => [canonical(each.pathName!), each.columns])), below)
  }
}

function addSiblings(context: AnalysisContext, plan: JsonTableSpecificPlan, found: Map<string, PlannedPath>): void {
  switch (plan.kind) {
    case 'JsonTablePlanSiblings':
      plan.siblings.forEach((each) => addSiblings(context, each, found))
      return
    case 'JsonTablePlanLeaf':
    case 'JsonTablePlanParentChild':
      if (found.has(nameOf(plan))) {
        const message = `Duplicate reference to JSON path name in sibling plan: ${nameOf(plan)}`
        throw errorAt(context, plan, 'INVALID_PLAN', message)
      }
      found.set(nameOf(plan), plan)
      return
    default:
      unreachable(plan)
  }
}

function nameOf(plan: PlannedPath): string {
  return canonical(plan.kind === 'JsonTablePlanLeaf' ? plan.name : plan.parent.name)
}
