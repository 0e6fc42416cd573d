import { mkdtempSync, readdirSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, describe, expect, it } from 'vitest'
import { lakeConnector } from '../../../src/connectors/lake/lake-connector.ts'
import type { CommitStep } from '../../../src/connectors/lake/version-chain.ts'
import type { PreparedWrite, TableChange } from '../../../src/connectors/spi/table-writer.ts'
import { createCommitters, type Commit, type Fate } from '../../support/committers.ts'
import { column } from '../../support/table-writes.ts'
import { parseQueryId } from '../../../src/shared/ids.ts'
import { connectorContext } from '../../support/connector-context.ts'

/** For a longer search use more runs and another seed: `COMMIT_RUNS=300 COMMIT_SEED=7`. */
const runs = Number(process.env['COMMIT_RUNS'] ?? 20)
const seed = Number(process.env['COMMIT_SEED'] ?? 20241121)

const root = realpathSync(mkdtempSync(join(tmpdir(), 'quipu-commits-')))
const connector = lakeConnector.create(
  'lake',
  { connector: 'lake', location: root },
  connectorContext(root, () => Promise.reject(new Error('manifests say it all'))),
)
const writer = connector.writer!
const committers = createCommitters(root)
afterAll(() => {
  committers.stop()
  rmSync(root, { recursive: true })
})

const steps: readonly CommitStep[] = [
  'read',
  'beforeWrite',
  'beforeSync',
  'beforeLink',
  'afterLink',
  'beforeFolderSync',
  'afterFolderSync',
]

const schema = 's'
let counter = 0

/** The number of files of one write: a reader must see all of them or none. */
const FILES = 2

async function prepare(change: TableChange): Promise<PreparedWrite> {
  const queryId = parseQueryId(`20260101_000000_${String(counter++).padStart(5, '0')}_crash`)
  const target = await writer.begin(queryId, change)
  if (change.kind !== 'insert' && change.kind !== 'createTable') return writer.prepare(target, [])
  const attempt = `${queryId}.1.0.1`
  const folder = await writer.openAttempt(target, attempt)
  const files = Array.from({ length: FILES }, (_, index) => {
    const path = join(folder, `${index}.parquet`)
    writeFileSync(path, queryId)
    return { path, rows: 1, bytes: queryId.length }
  })
  return writer.prepare(target, await writer.sealAttempt(target, attempt, files))
}

/** Returns the queries whose rows a reader sees now, in order; undefined if there is no table. */
async function queriesRead(table: string): Promise<string[] | undefined> {
  const found = await connector.getTable(schema, table)
  if (!found) return undefined
  const splits = await connector.listSplits(found.handle)
  await connector.verifySplits(splits)
  const files = splits.filter(({ data }) => data['file'] !== undefined).map(({ data }) => String(data['file']))
  expect(new Set(files).size).toBe(files.length)
  const queries = new Map<string, number>()
  for (const file of files) {
    const queryId = file.split('/')[3]!
    queries.set(queryId, (queries.get(queryId) ?? 0) + 1)
  }
  for (const count of queries.values()) expect(count).toBe(FILES)
  return [...queries.keys()].sort()
}

const fateArbitrary: fc.Arbitrary<Fate | undefined> = fc.option(
  fc.record({
    step: fc.constantFrom(...steps),
    nth: fc.constantFrom(1, 1, 1, 2, 3),
    signal: fc.constantFrom('SIGSTOP' as const, 'SIGSTOP' as const, 'SIGKILL' as const),
  }),
  { nil: undefined, freq: 4 },
)

/** Changes that are prepared and committed concurrently. The state of the table determines which change is possible. */
const roundArbitrary = fc.record({
  kind: fc.constantFrom('insert', 'insert', 'insert', 'drop', 'replace'),
  fates: fc.array(fateArbitrary, { minLength: 1, maxLength: 3 }),
  /** Whether stopped committers of earlier rounds continue during this round. */
  wakes: fc.boolean(),
})

describe('Commits by processes that are killed, stopped and continued', () => {
  it(
    'leave a table with each committed write exactly once, and readers see only whole versions',
    async () => {
      await writer.commit(await prepare({ kind: 'createSchema', schema }))
      await fc.assert(
        fc.asyncProperty(fc.array(roundArbitrary, { minLength: 2, maxLength: 4 }), async (rounds) => {
          const table = `t${counter}`
          /** The expected queries of the table; undefined if there is no table. */
          let model: string[] | undefined
          const asleep: { readonly commit: Commit; readonly prepared: PreparedWrite }[] = []

          const wakeAll = async (): Promise<void> => {
            for (const { commit } of asleep.splice(0)) expect(await commit.wake()).toBeUndefined()
          }

          for (const { kind, fates, wakes } of rounds) {
            const change: TableChange =
              model === undefined || kind === 'replace'
                ? { kind: 'createTable', schema, table, columns: [column('a', 'bigint')], replace: model !== undefined }
                : { kind: kind === 'drop' ? 'dropTable' : 'insert', schema, table }
            // Only inserts are prepared concurrently: the coordinator serializes all other changes.
            const together = change.kind === 'insert' ? fates : fates.slice(0, 1)
            const before: string[] | undefined = model && [...model]
            const prepared = await Promise.all(together.map(() => prepare(change)))
            const waking = wakes ? wakeAll() : undefined
            const started = prepared.map((one, index) => ({
              prepared: one,
              commit: committers.commit(one, together[index]),
            }))

            const mine = prepared.map(({ queryId }) => queryId)
            if (change.kind === 'dropTable') model = undefined
            else if (change.kind === 'insert') model = [...model!, ...mine].sort()
            else model = mine

            // A concurrent reader sees everything committed before, and a part of this round.
            let running = true
            const reading = (async () => {
              let last = -1
              while (running) {
                const seen = await queriesRead(table)
                if (change.kind === 'insert') {
                  expect(seen).toEqual(expect.arrayContaining(before!))
                  expect(model).toEqual(expect.arrayContaining(seen!))
                  expect(seen!.length).toBeGreaterThanOrEqual(last)
                  last = seen!.length
                } else expect([before, model]).toContainEqual(seen)
                await new Promise((resolve) => setTimeout(resolve, 1))
              }
            })()
            const outcomes = await Promise.all(started.map(({ commit }) => commit.settled))
            await waking
            // The recovery rolls the queries forward, and does not change those that are done.
            for (const [index, outcome] of outcomes.entries()) {
              if (outcome !== 'done') await writer.commit(prepared[index]!)
              if (outcome === 'stopped') asleep.push(started[index]!)
            }
            running = false
            await reading
            expect(await queriesRead(table)).toEqual(model)
          }

          // Another insert is committed, then the last stopped committers continue.
          if (model) {
            const between = await prepare({ kind: 'insert', schema, table })
            await writer.commit(between)
            model = [...model, between.queryId].sort()
          }
          await wakeAll()
          expect(await queriesRead(table)).toEqual(model)
          const versions = readdirSync(join(root, schema, table, '_manifest')).filter((name) => name.startsWith('v'))
          expect(versions.sort()).toEqual(versions.map((_, index) => `v${String(index + 1).padStart(8, '0')}.json`))
        }),
        { numRuns: runs, seed, endOnFailure: true },
      )
    },
    120_000 + runs * 2000,
  )
})
