import type { StatementJson } from '../support/statement-client.ts'
import { Fault, type CaseContext } from './attack-case.ts'

export interface EndedStatement {
  readonly id: string
  readonly rows: readonly (readonly unknown[])[]
  readonly columns: readonly { readonly name: string }[]
  readonly error: StatementJson['error']
}

/** Errors that no text of a client may cause. */
const NEVER = new Set(['GENERIC_INTERNAL_ERROR', 'SERVER_SHUTTING_DOWN', 'COORDINATOR_RESTARTED', 'REMOTE_TASK_ERROR'])
const ENGINE = /DuckDB|Binder Error|Catalog Error|Parser Error|INTERNAL Error|Conversion Error|Invalid Input/

export const sessionHeaders = {
  'x-trino-user': 'attack',
  'x-trino-catalog': 'tpch',
  'x-trino-schema': 'tiny',
  'x-trino-transaction-id': 'NONE',
} as const

/**
 * Posts a statement and follows it to its end.
 * @returns undefined when the statement was refused before it had an id
 * @throws Fault when it ends with a forbidden error or a wrong status
 */
export async function runStatement(
  { wire, random, bed }: Pick<CaseContext, 'wire' | 'random' | 'bed'>,
  sql: string | Buffer,
  headers: Readonly<Record<string, string>> = sessionHeaders,
): Promise<EndedStatement | undefined> {
  const base = random.pick(bed.coordinators).url
  const first = await wire.ask(`${base}/v1/statement`, { method: 'POST', body: sql, headers })
  if (first.status !== 200) {
    if (first.status < 400) throw new Fault(`POST of a statement: ${first.status}`)
    return undefined
  }
  const rows: (readonly unknown[])[] = []
  let answer = jsonOf(first.text)
  let columns = answer.columns ?? []
  const { id } = answer
  for (let next = answer.nextUri; next !== undefined; next = answer.nextUri) {
    const credential = 'authorization' in headers ? { authorization: headers['authorization']! } : {}
    const { status, text } = await wire.ask(next, { headers: credential })
    if (status !== 200) throw new Fault(`GET of nextUri of ${id}: ${status}`)
    answer = jsonOf(text)
    columns = answer.columns ?? columns
    for (const row of answer.data ?? []) rows.push(row)
  }
  const { error } = answer
  if (error && NEVER.has(error.errorName)) throw new Fault(`a statement ends with ${error.errorName}: ${error.message}`)
  if (error && ENGINE.test(error.message)) throw new Fault(`an error tells of the engine: ${error.message}`)
  return { id, rows, columns, error }
}

function jsonOf(text: string): StatementJson {
  try {
    return JSON.parse(text) as StatementJson
  } catch {
    throw new Fault(`the answer of a statement is no JSON: ${text.slice(0, 200)}`)
  }
}

/** A text as a literal of the dialect: in quotes, or with each character by its number. */
export function literalOf(text: string, { random }: Pick<CaseContext, 'random'>): string {
  if (random.chance(0.8) || text.length > 10_000) return `'${text.replaceAll("'", "''")}'`
  const numbered = [...text].map((one) => `\\+${one.codePointAt(0)!.toString(16).padStart(6, '0')}`)
  return `U&'${numbered.join('')}'`
}

export function identifierOf(text: string): string {
  return `"${text.replaceAll('"', '""')}"`
}
