import { z } from 'zod'
import type { Expression } from '../sql/syntax/ast.ts'
import { parseExpressionText, parseStatement } from '../sql/syntax/parser.ts'
import { printStatement } from '../sql/syntax/printer.ts'
import { withNodes } from '../sql/syntax/tree.ts'
import { isMeant, type ListedQuery, type ReplayFilter } from './replay-source.ts'

/**
 * Runs SQL on the server as the replay's user and yields the rows as they arrive. @throws Error with one line when it
 * fails
 */
export type AskInSql = (sql: string) => AsyncIterable<readonly unknown[]>

/** The statement that lists queries. The condition and the times replace its literals. */
const LISTING = parseStatement(`
  SELECT query_id, created, source, user, fingerprint, cpu_ms FROM system.history.queries
  WHERE true AND created <= TIMESTAMP '9999-12-31 00:00:00.000 UTC' AND created >= TIMESTAMP '1970-01-01 00:00:00.000 UTC'
  ORDER BY created DESC, query_id DESC LIMIT 10000`)

/** Rows of one statement, which is also the most that is held in memory. */
const PAGE = 10_000

const rowSchema = z.tuple([
  z.string(),
  z.string().transform((time) => new Date(time.replace(' UTC', 'Z').replace(' ', 'T')).toISOString()),
  z.string().nullable(),
  z.string(),
  z.string().nullable(),
  z.number().nullable(),
])

/** A condition over the columns of `system.history.queries`. @throws EngineError SYNTAX_ERROR */
export function parseCondition(text: string): Expression {
  return parseExpressionText(text)
}

/**
 * The queries of the history that satisfy a condition, newest first, one page per statement.
 * @param where SQL over `system.history.queries`; the rest of the filter applies too
 */
export async function* listWhere(ask: AskInSql, where: string, filter: ReplayFilter): AsyncGenerator<ListedQuery> {
  yield* listMeeting(ask, parseCondition(where), filter)
}

/** The queries of which a sample is drawn: reads that finished, and that the filter selects. Newest first. */
export function listSampled(ask: AskInSql, filter: ReplayFilter): AsyncGenerator<ListedQuery> {
  const { where } = filter
  const read = parseExpressionText(`query_type = 'SELECT' AND state = 'FINISHED'`)
  const condition: Expression =
    where === undefined
      ? read
      : { kind: 'LogicalExpression', span: read.span, operator: 'AND', terms: [read, parseCondition(where)] }
  return listMeeting(ask, condition, filter)
}

async function* listMeeting(ask: AskInSql, condition: Expression, filter: ReplayFilter): AsyncGenerator<ListedQuery> {
  let until = filter.until
  let seen = new Set<string>()
  for (let most = PAGE; ;) {
    const rows: ListedQuery[] = []
    const fresh: ListedQuery[] = []
    for await (const row of ask(listingOf(condition, { since: filter.since, until }, most))) {
      const [queryId, createdAt, source, user, fingerprint, cpuMs] = rowSchema.parse(row)
      const listed = { queryId, createdAt, fingerprint: fingerprint ?? undefined, cpuMs: cpuMs ?? undefined }
      rows.push(listed)
      if (seen.has(queryId)) continue
      fresh.push(listed)
      if (filter.user !== undefined && user !== filter.user) continue
      if (isMeant(listed, source ?? undefined, filter)) yield listed
    }
    if (rows.length < most) return
    // There may be more queries with the last time, so that time is asked for again.
    const last = rows.at(-1)!.createdAt
    if (fresh.length === 0) most *= 2
    until = last
    seen = new Set(rows.filter(({ createdAt }) => createdAt === last).map(({ queryId }) => queryId))
  }
}

function listingOf(condition: Expression, times: Pick<ReplayFilter, 'since' | 'until'>, most: number): string {
  const limited = withNodes(LISTING, (node) => {
    switch (node.kind) {
      case 'BooleanLiteral':
        return condition
      case 'GenericLiteral': {
        const { value } = node as Expression & { readonly kind: 'GenericLiteral' }
        const time = value.startsWith('9999') ? times.until : times.since
        return time === undefined ? undefined : { ...node, value: timeText(time) }
      }
      case 'LongLiteral':
        return { ...node, value: String(most), text: String(most) }
      default:
        return undefined
    }
  })
  return printStatement(limited)
}

function timeText(time: string): string {
  return `${new Date(time).toISOString().replace('T', ' ').replace('Z', '')} UTC`
}
