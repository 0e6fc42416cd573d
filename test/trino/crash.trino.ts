import { setTimeout as sleep } from 'node:timers/promises'
import { createHash } from 'node:crypto'
import { beforeAll, describe, expect, it } from 'vitest'
import { killAll, processesOf } from '../support/quipu-process.ts'
import { post, raw, run, type StatementJson } from '../support/statement-client.ts'
import { gatewayOfFile, headers, trinoUrl, untilHealthy } from './gateway.ts'

const gateway = gatewayOfFile()
beforeAll(() => untilHealthy(gateway))

/** 1,000,000 rows, about 37 MB. */
const MILLION = `SELECT orderkey, linenumber, extendedprice, shipdate FROM tpch.sf1.lineitem
  ORDER BY orderkey, linenumber LIMIT 1000000`

interface Read {
  readonly count: number
  /** SHA-256 of the rows in their order. */
  readonly digest: string
  readonly error: StatementJson['error']
  readonly kills: number
}

/** Reads a statement as a patient client does. @param kill called with each answer before the next request */
async function read(base: string, sql: string, kill: (answer: StatementJson, count: number) => boolean): Promise<Read> {
  const digest = createHash('sha256')
  let { json } = await post(base, sql, headers)
  let count = 0
  let kills = 0
  for (;;) {
    for (const row of json.data ?? []) digest.update(JSON.stringify(row))
    count += json.data?.length ?? 0
    if (kill(json, count)) {
      kills++
      killCoordinator()
    }
    if (json.nextUri === undefined) return { count, digest: digest.digest('hex'), error: json.error, kills }
    json = await untilAnswered(json.nextUri)
  }
}

/** Repeats a request while the server is away, as Trino's clients do. */
async function untilAnswered(uri: string): Promise<StatementJson> {
  for (;;) {
    const answer = await raw(uri).catch(() => undefined)
    if (answer?.status === 200) return answer.json
    if (answer && answer.status < 500) throw new Error(`HTTP ${answer.status}: ${answer.text}`)
    await sleep(100)
  }
}

function killCoordinator(): void {
  killAll(processesOf(gateway.data).children.slice(0, 1))
}

describe('A gateway that is killed', () => {
  it('loses and repeats no row of a million, whenever it is killed', { timeout: 600_000 }, async () => {
    const direct = await read(trinoUrl, MILLION, () => false)
    expect(direct).toMatchObject({ count: 1_000_000, error: undefined })
    let [began, middle, late] = [false, false, false]
    const through = await read(gateway.url, MILLION, (answer, count) => {
      if (!began && answer.stats.state === 'RUNNING' && count === 0) return (began = true)
      if (!middle && count > 400_000) return (middle = true)
      if (!late && count === 1_000_000) return (late = true)
      return false
    })
    expect(through).toEqual({ ...direct, kills: 3 })
  })

  it('gives the last answer again', { timeout: 300_000 }, async () => {
    let { json } = await post(gateway.url, 'SELECT * FROM nation ORDER BY nationkey', headers)
    let uri = json.nextUri!
    while (json.nextUri !== undefined) {
      uri = json.nextUri
      json = (await raw(uri)).json
    }
    killCoordinator()
    const again = await untilAnswered(uri)
    expect(again.nextUri).toBeUndefined()
    expect([again.data, again.error, again.columns]).toEqual([json.data, json.error, json.columns])
  })

  it('runs a change once', { timeout: 300_000 }, async () => {
    for (const sql of ['CREATE SCHEMA IF NOT EXISTS memory.crash', 'CREATE TABLE memory.crash.t (a bigint)'])
      expect((await run(trinoUrl, sql)).error).toBeUndefined()
    for (const at of [0, 1, 2, 3]) {
      const before = (await run(trinoUrl, 'SELECT count(*) FROM memory.crash.t')).rows[0]![0] as number
      let answers = 0
      const { error } = await read(
        gateway.url,
        'INSERT INTO memory.crash.t SELECT nationkey FROM tpch.tiny.nation',
        () => {
          return answers++ === at
        },
      )
      const after = (await run(trinoUrl, 'SELECT count(*) FROM memory.crash.t')).rows[0]![0] as number
      expect([0, 25], `killed after answer ${at}: ${error?.message}`).toContain(after - before)
      if (error === undefined) expect(after - before).toBe(25)
    }
  })
})
