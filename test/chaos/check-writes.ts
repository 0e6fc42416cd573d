import { setTimeout as sleep } from 'node:timers/promises'
import { run } from '../support/statement-client.ts'
import { checkChanges } from './check-changes.ts'
import { ownerOf, textOfChange } from './drawn-changes.ts'
import { cleanErrors } from './outcome.ts'
import { LEDGER, SCHEMA, type WriteOutcome } from './writing-client.ts'

const PATIENCE_MS = 90_000

/**
 * Compares the tables with the outcomes of the clients. A write that is done exists once and complete; a write that is
 * not done does not exist; an unknown write is complete or does not exist. Returns one line for each violation.
 */
export async function checkWrites(base: string, outcomes: readonly WriteOutcome[]): Promise<string[]> {
  const wrong = outcomes
    .filter((one) => one.wrong)
    .map((one) => `${one.client} (${one.behaviour}) ${describe(one)} ${one.id ?? ''}: ${one.why}`)
  const batches = new Map(await rowsOf(base, `SELECT batch, count(*) FROM ${LEDGER} GROUP BY batch`))
  const names = new Set((await rowsOf(base, `SHOW TABLES FROM ${SCHEMA}`)).map(([name]) => String(name)))
  const known = new Set<unknown>()
  for (const outcome of outcomes) {
    const { write, end } = outcome
    const say = (what: string): void => {
      wrong.push(`${describe(outcome)} (${outcome.behaviour}) ${outcome.id ?? ''} is ${end}: ${what}`)
    }
    switch (write.kind) {
      case 'insert': {
        known.add(write.batch)
        const count = batches.get(write.batch) ?? 0
        if (!right(end, count === write.rows, count === 0)) say(`${String(count)} rows of ${write.rows}`)
        break
      }
      case 'create table': {
        const dropped = endOf(outcomes, 'drop table', write.table)
        const there = names.has(write.table)
        if (dropped === undefined && !right(end, there, !there)) say(there ? 'it is there' : 'it is missing')
        if (dropped !== undefined && dropped !== 'unknown' && there !== (dropped === 'not done')) {
          say(`its DROP is ${dropped}, and it is ${there ? 'there' : 'gone'}`)
        }
        if (there) {
          const [[count] = []] = await rowsOf(base, `SELECT count(*) FROM ${SCHEMA}.${write.table}`)
          if (count !== write.rows) say(`${String(count)} rows of ${write.rows}`)
        }
        break
      }
      case 'create view': {
        const dropped = endOf(outcomes, 'drop view', write.view)
        const there = names.has(write.view)
        if (dropped === undefined && !right(end, there, !there)) say(there ? 'it is there' : 'it is missing')
        if (dropped !== undefined && dropped !== 'unknown' && there !== (dropped === 'not done')) {
          say(`its DROP is ${dropped}, and it is ${there ? 'there' : 'gone'}`)
        }
        break
      }
      case 'drop table':
      case 'drop view':
      case 'change':
        break
    }
  }
  if (outcomes.some(({ write }) => write.kind === 'change')) {
    wrong.push(
      ...(await checkChanges(outcomes, async (table, owner) => {
        if (!names.has(table)) return undefined
        const sql = `SELECT k, v FROM ${SCHEMA}.${table} WHERE w = '${owner}' ORDER BY k, v`
        return (await rowsOf(base, sql)).map((row) => JSON.stringify(row))
      })),
    )
  }
  for (const batch of batches.keys()) if (!known.has(batch)) wrong.push(`rows of ${String(batch)}, which nobody wrote`)
  return wrong
}

function right(end: WriteOutcome['end'], whole: boolean, absent: boolean): boolean {
  return end === 'done' ? whole : end === 'not done' ? absent : whole || absent
}

/** The end of the only attempt to drop the object; undefined without an attempt. */
function endOf(outcomes: readonly WriteOutcome[], kind: 'drop table' | 'drop view', name: string) {
  return outcomes.find(({ write }) => write.kind === kind && ('table' in write ? write.table : viewOf(write)) === name)
    ?.end
}

function viewOf(write: WriteOutcome['write']): string | undefined {
  return 'view' in write ? write.view : undefined
}

function describe({ client, write }: WriteOutcome): string {
  if (write.kind === 'change') return textOfChange(write.change, ownerOf(client), '')
  return `${write.kind} ${'batch' in write ? write.batch : 'table' in write ? write.table : write.view}`
}

/** Runs a read. A killed process may still be starting, so a read that fails with a clean error is repeated. */
async function rowsOf(base: string, sql: string): Promise<[unknown, unknown][]> {
  for (const until = performance.now() + PATIENCE_MS; ; await sleep(200)) {
    const { rows, error } = await run(base, sql)
    if (!error) return rows as unknown as [unknown, unknown][]
    if (!cleanErrors.has(error.errorName) || performance.now() > until) throw new Error(`${sql}: ${error.message}`)
  }
}
