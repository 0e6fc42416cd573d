import { estimateJson, estimatePlan, estimateText, type PlanEstimate } from '../statistics/plan-estimates.ts'
import type { PlannedStatement, PlanNode } from '../../../planner/planned-statement.ts'
import type { Stage } from '../../../planner/query-plan.ts'
import { unreachable } from '../../../shared/unreachable.ts'
import type { ResultColumn } from '../../../sql/front-end.ts'
import { outlineOf } from './write-outline.ts'

type Explained = Extract<PlannedStatement, { kind: 'explain' }>

/**
 * The one row of EXPLAIN, in Trino's forms: fragments with their nodes (DISTRIBUTED), the nodes alone (LOGICAL), the
 * tables read (IO), or `true` (VALIDATE).
 */
export function explainText(analyzed: Explained, stages: readonly Stage[]): string | boolean {
  const { statement } = analyzed
  switch (analyzed.planType) {
    case 'VALIDATE':
      return true
    case 'IO':
      if (analyzed.definition !== undefined) return analyzed.definition
      return JSON.stringify(ioPlan(statement), undefined, 2)
    case 'LOGICAL':
    case 'DISTRIBUTED':
      break
    default:
      return unreachable(analyzed.planType)
  }
  if (analyzed.definition !== undefined) return analyzed.definition
  const outline = outlineOf(statement)
  if (!outline) return `${'updateType' in statement ? statement.updateType : statement.queryType}\n`
  const estimates = estimatePlan(outline, stages)
  switch (analyzed.format) {
    case 'JSON':
      return JSON.stringify(
        analyzed.planType === 'LOGICAL'
          ? jsonNode(outline, counter(), estimates)
          : fragmentsJson(outline, stages, estimates),
        undefined,
        3,
      )
    case 'GRAPHVIZ':
      return graphviz(outline)
    case 'TEXT':
      return analyzed.planType === 'LOGICAL'
        ? textNode(outline, estimates, '')
        : fragmentsText(outline, stages, estimates)
    default:
      return unreachable(analyzed.format)
  }
}

/** The column of EXPLAIN with Trino's name and type: a varchar of the text's length. */
export function explainColumn(column: ResultColumn, text: string | boolean): ResultColumn {
  if (typeof text === 'boolean') return column
  const length = [...text].length
  return {
    ...column,
    type: `varchar(${length})`,
    typeSignature: { rawType: 'varchar', arguments: [{ kind: 'LONG', value: length }] },
  }
}

function detailsOf(node: PlanNode): string {
  const details = Object.entries(node.details).map(([name, value]) => `${name} = ${value}`)
  return details.length > 0 ? `[${details.join(', ')}]` : ''
}

type Estimates = ReadonlyMap<PlanNode, PlanEstimate>

/**
 * @param lead stands before the node's name
 * @param rest stands before every line below it
 */
function textNode(node: PlanNode, estimates: Estimates, lead: string, rest = lead): string {
  const branch = node.children.length > 0 ? '│  ' : '   '
  const lines = [
    `${lead}${node.name}${detailsOf(node)}`,
    `${rest}${branch} Layout: [${node.layout.join(', ')}]`,
    `${rest}${branch} ${estimateText(estimates.get(node) ?? {})}`,
  ]
  for (const [index, child] of node.children.entries()) {
    const last = index === node.children.length - 1
    lines.push(textNode(child, estimates, `${rest}${last ? '└─ ' : '├─ '}`, `${rest}${last ? '   ' : '│  '}`))
  }
  return lines.join('\n')
}

/** Each stage shows its own operators; a stage that only relays shows which stages it reads. */
function fragmentsText(outline: PlanNode, stages: readonly Stage[], estimates: Estimates): string {
  const blocks = stages.map((stage) => {
    const head = `Fragment ${stage.id} [${stage.distribution === 'coordinator' ? 'COORDINATOR_ONLY' : 'SINGLE'}]`
    const { layout: columns } = stage.outline ?? outline
    const layout = `    Output layout: [${columns.join(', ')}]\n    Output partitioning: SINGLE []`
    const body = stage.outline
      ? textNode(stage.outline, estimates, '    ')
      : `    Output[columnNames = [${outline.layout.map((column) => column.split(':')[0]).join(', ')}]]\n` +
        `    └─ RemoteSource[sourceFragmentIds = [${stage.inputs.join(', ')}]]\n` +
        `           Layout: [${outline.layout.join(', ')}]`
    return `${head}\n${layout}\n${body}\n`
  })
  return blocks.join('\n')
}

function counter(): () => string {
  let next = 0
  return () => String(next++)
}

function jsonNode(node: PlanNode, nextId: () => string, estimates: Estimates): Record<string, unknown> {
  const id = nextId()
  return {
    id,
    name: node.name,
    descriptor: node.details,
    outputs: node.layout.map((column) => {
      const at = column.indexOf(':')
      return { symbol: column.slice(0, at), type: column.slice(at + 1) }
    }),
    details: [],
    estimates: [estimateJson(estimates.get(node) ?? {})],
    children: node.children.map((child) => jsonNode(child, nextId, estimates)),
  }
}

function fragmentsJson(outline: PlanNode, stages: readonly Stage[], estimates: Estimates): Record<string, unknown> {
  const nextId = counter()
  return Object.fromEntries(
    stages.map((stage) => [
      String(stage.id),
      stage.outline
        ? jsonNode(stage.outline, nextId, estimates)
        : jsonNode(
            {
              name: 'RemoteSource',
              details: { sourceFragmentIds: `[${stage.inputs.join(', ')}]` },
              layout: outline.layout,
              children: [],
            },
            nextId,
            estimates,
          ),
    ]),
  )
}

function graphviz(outline: PlanNode): string {
  const lines = ['digraph logical_plan {', 'subgraph cluster_graphviz_plan {', 'label = "SINGLE"']
  let next = 0
  const draw = (node: PlanNode): string => {
    const id = `plannode_${++next}`
    lines.push(
      `${id}[label="{${node.name}|${detailsOf(node).replaceAll(/["{}|<>\\]/g, ' ')}}", style="rounded, filled", shape=record];`,
    )
    for (const child of node.children) lines.push(`${id} -> ${draw(child)};`)
    return id
  }
  draw(outline)
  return [...lines, '}', '}'].join('\n')
}

/** The tables that the statement reads, and the one whose rows it writes. Source: Trino 476, IoPlanPrinter. */
function ioPlan(statement: PlannedStatement): Record<string, unknown> {
  const source = statement.kind === 'write' ? statement.source : statement.kind === 'query' ? statement : undefined
  const written = statement.kind === 'write' && statement.source ? statement : undefined
  return {
    inputTableColumnInfos: (source?.query.reads ?? []).map((read) => ({
      table: tableJson(read.catalog, read),
      constraint: { none: false, columnConstraints: [] },
      estimate: {},
    })),
    ...(written && 'table' in written.change && { outputTable: tableJson(written.catalog, written.change) }),
    estimate: {},
  }
}

function tableJson(
  catalog: string,
  { schema, table }: { readonly schema: string; readonly table: string },
): Record<string, unknown> {
  return { catalog, schemaTable: { schema, table } }
}
