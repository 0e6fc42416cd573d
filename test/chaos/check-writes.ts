import { setTimeout as sleep } from 'node:timers/promises'
import { run } from '../support/statement-client.ts'
import { cleanErrors } from './outcome.ts'
import { LEDGER, SCHEMA, type WriteOutcome } from './writing-client.ts'

const PATIENCE_MS = 45_000

/**
 * The tables against what the clients were told: every write that is done is there once and whole, one that is not done
 * is not there, one that nobody knows of is whole or not there. What is wrong, a line each.
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
        break
    }
  }
  for (const batch of batches.keys()) if (!known.has(batch)) wrong.push(`rows of ${String(batch)}, which nobody wrote`)
  return wrong
}

function right(end: WriteOutcome['end'], whole: boolean, absent: boolean): boolean {
  return end === 'done' ? whole : end === 'not done' ? absent : whole || absent
}

/** How the one attempt to drop it ended; undefined when there was none. */
function endOf(outcomes: readonly WriteOutcome[], kind: 'drop table' | 'drop view', name: string) {
  return outcomes.find(({ write }) => write.kind === kind && ('table' in write ? write.table : viewOf(write)) === name)
    ?.end
}

function viewOf(write: WriteOutcome['write']): string | undefined {
  return 'view' in write ? write.view : undefined
}

function describe({ write }: WriteOutcome): string {
  return `${write.kind} ${'batch' in write ? write.batch : 'table' in write ? write.table : write.view}`
}

/** What was killed last may be starting yet: a read that is told so is asked again. */
async function rowsOf(base: string, sql: string): Promise<[unknown, unknown][]> {
  for (const until = performance.now() + PATIENCE_MS; ; await sleep(200)) {
    const { rows, error } = await run(base, sql)
    if (!error) return rows as unknown as [unknown, unknown][]
    if (!cleanErrors.has(error.errorName) || performance.now() > until) throw new Error(`${sql}: ${error.message}`)
  }
}
