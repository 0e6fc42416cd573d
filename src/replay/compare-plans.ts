import { z } from 'zod'
import type { PlanOutline } from '../coordinator/query/stream/events.ts'
import type { Explain } from '../sql/syntax/ast-statements.ts'
import { parseStatement } from '../sql/syntax/parser.ts'
import { printStatement } from '../sql/syntax/printer.ts'
import type { RecordedStatement } from './recorded-statement.ts'
import type { ReplaySides } from './replay-statement.ts'
import type { Replayed } from './replayed.ts'
import type { CatalogMap } from './replayed-text.ts'
import type { ReplayVerdict } from './verdict.ts'

/** The compared fields of a node of EXPLAIN's JSON. Estimates depend on the data and are not compared. */
interface PlanReportNode {
  readonly name: string
  readonly descriptor: Readonly<Record<string, unknown>>
  readonly outputs: readonly { readonly symbol: string; readonly type: string }[]
  readonly children: readonly PlanReportNode[]
}
const planReportNodeSchema: z.ZodType<PlanReportNode> = z.lazy(() =>
  z.object({
    name: z.string(),
    descriptor: z.record(z.string(), z.unknown()),
    outputs: z.array(z.object({ symbol: z.string(), type: z.string() })),
    children: z.array(planReportNodeSchema),
  }),
)
const answerSchema = z.object({ data: z.tuple([z.tuple([z.string()])]) })

const EXPLAIN = parseStatement('EXPLAIN (TYPE LOGICAL, FORMAT JSON) SELECT 1') as Explain

/**
 * Compares the recorded plan of a statement with the plan that another server makes. Runs nothing.
 * @throws Error when the server cannot be reached
 */
export async function comparePlans(statement: RecordedStatement, sides: PlanSides): Promise<Replayed> {
  return { verdict: await verdictOf(statement, sides), examples: [] }
}

type PlanSides = Pick<ReplaySides, 'there' | 'catalogs' | 'signal'>

async function verdictOf(statement: RecordedStatement, { there, catalogs, signal }: PlanSides): Promise<ReplayVerdict> {
  const { outline } = statement
  const sql = explained(statement.sql)
  if (!outline || sql === undefined) return { verdict: 'SKIPPED', reason: 'noPlan' }
  let text: string | undefined
  for await (const answer of there.run(sql, statement, signal)) {
    if (answer.error) return { verdict: 'FAILED_THERE', there: answer.error }
    if (answer.hasRows) text = answer.text
  }
  const plan = planIn(text)
  if (!plan) return { verdict: 'SKIPPED', reason: 'noPlan' }
  const [here, other] = [linesOf(calledThere(outline, catalogs)), linesOf(outlineOf(plan))]
  if (here.join('\n') === other.join('\n')) return { verdict: 'SAME' }
  return { verdict: 'DIFFERENT', difference: { kind: 'plan', here, there: other } }
}

/** The text with EXPLAIN; undefined for a text of another dialect. */
function explained(sql: string): string | undefined {
  try {
    return printStatement({ ...EXPLAIN, statement: parseStatement(sql) })
  } catch {
    return undefined
  }
}

/** The plan in an answer; undefined for a plan of another form, such as Trino's. */
function planIn(answer: string | undefined): PlanReportNode | undefined {
  try {
    const { data } = answerSchema.parse(JSON.parse(answer ?? ''))
    return planReportNodeSchema.parse(JSON.parse(data[0][0]))
  } catch {
    return undefined
  }
}

function outlineOf({ name, descriptor, outputs, children }: PlanReportNode): PlanOutline {
  return {
    name,
    details: Object.fromEntries(Object.entries(descriptor).map(([key, value]) => [key, String(value)])),
    layout: outputs.map(({ symbol, type }) => `${symbol}:${type}`),
    children: children.map(outlineOf),
  }
}

/** Renames the catalogs in a plan. Scans name a table `catalog:schema:table`. */
function calledThere(node: PlanOutline, catalogs: CatalogMap): PlanOutline {
  const [catalog = '', ...rest] = node.details['table']?.split(':') ?? []
  const other = catalogs.get(catalog)
  const details = other === undefined ? node.details : { ...node.details, table: [other, ...rest].join(':') }
  return { ...node, details, children: node.children.map((child) => calledThere(child, catalogs)) }
}

function linesOf(node: PlanOutline, depth = 0): string[] {
  const details = Object.entries(node.details)
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, value]) => ` ${name} = ${value}`)
  const line = `${'  '.repeat(depth)}${node.name}${details.join(',')} [${node.layout.join(', ')}]`
  return [line, ...node.children.flatMap((child) => linesOf(child, depth + 1))]
}
