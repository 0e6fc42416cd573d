import { hash } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import {
  clusterEventSchemas,
  clusterEventVersions,
  type ClusterEventType,
} from '../../../src/coordinator/clusters/events.ts'
import { nodeEventSchemas } from '../../../src/coordinator/nodes/events.ts'
import {
  queryEventSchemas,
  queryEventVersions,
  type QueryEventType,
} from '../../../src/coordinator/query/stream/events.ts'
import { queryEventUpcasters, upcastQueryEvent } from '../../../src/coordinator/query/stream/upcasters.ts'
import { systemEventData, systemEventUpcasters } from '../../../src/coordinator/system/decode-event.ts'
import {
  systemEventSchemas,
  systemEventVersions,
  type SystemEventType,
} from '../../../src/coordinator/system/events.ts'
import { toRecorded } from '../../../src/events/envelope.ts'
import { foldedOf, readRecordedLogs } from '../../support/recorded-logs.ts'

const logs = readRecordedLogs()

describe('Streams that earlier versions recorded', () => {
  it('include each kind of query and event', () => {
    expect(logs.map((log) => log.name)).toEqual(
      expect.arrayContaining([
        'canceled',
        'create-table-as',
        'create-view',
        'failed',
        'insert',
        'recovered',
        'select-1',
        'set-session',
        'withheld',
        'worker-pages',
      ]),
    )
    const types = new Set(logs.flatMap((log) => log.events.map((event) => event.type)))
    expect([...types]).toEqual(
      expect.arrayContaining([
        'TaskFinished',
        'ResultPagesPublished',
        'QueryRecovered',
        'WritePrepared',
        'WriteCommitted',
        'QueryFinished',
        'QueryFailed',
      ]),
    )
  })

  it.each(logs)(
    '$name: its hash chain is valid, and its events decode and fold to the recorded state',
    ({ events, state }) => {
      let prevhash = ''
      const recorded = events.map((event, index) => {
        expect(event).toMatchObject({ sequence: index + 1, prevhash })
        prevhash = event.hash
        const { stored, stream, ...header } = event
        return toRecorded(stream, { ...header, data: stored }, { partition: 0, offset: BigInt(index) })
      })
      expect(foldedOf(recorded)).toEqual(state)
    },
  )
})

const DIGESTS = new URL('../../fixtures/event-schemas.json', import.meta.url)

/** The digest of each event schema by `Type@version`: a hash of its JSON Schema without descriptions. */
function digestsOfToday(): Record<string, string> {
  const versioned = [
    ...Object.entries(queryEventSchemas).map(([type, schema]) => ({
      type,
      schema,
      v: queryEventVersions[type as QueryEventType],
    })),
    ...Object.entries(nodeEventSchemas).map(([type, schema]) => ({ type, schema, v: 1 })),
    ...Object.entries(clusterEventSchemas).map(([type, schema]) => ({
      type,
      schema,
      v: clusterEventVersions[type as ClusterEventType],
    })),
    ...Object.entries(systemEventSchemas).map(([type, schema]) => ({
      type,
      schema,
      v: systemEventVersions[type as SystemEventType],
    })),
  ]
  return Object.fromEntries(
    versioned.map(({ type, schema, v }) => [
      `${type}@${v}`,
      hash('sha256', digestible(z.toJSONSchema(schema, { io: 'input' }))),
    ]),
  )
}

/** A text of the schema that depends neither on descriptions nor on the order of keys. */
function digestible(schema: unknown): string {
  return JSON.stringify(schema, (key, value: unknown) => {
    if (key === 'description' && typeof value === 'string') return undefined
    if (value === null || typeof value !== 'object' || Array.isArray(value)) return value
    return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
  })
}

describe('The schemas of events', () => {
  const today = digestsOfToday()
  const kept = JSON.parse(readFileSync(DIGESTS, 'utf8')) as Record<string, string>
  // `npm run record:logs` adds new schemas. It never overwrites a version, because logs may contain it.
  if (process.env['QUIPU_RECORD_LOGS'] === '1')
    writeFileSync(DIGESTS, `${JSON.stringify({ ...today, ...kept }, null, 2)}\n`)

  it('do not change without a new version: raise it, add an upcaster and run `npm run record:logs`', () => {
    const unchanged = Object.fromEntries(Object.keys(today).map((key) => [key, kept[key]]))
    expect(today).toEqual(process.env['QUIPU_RECORD_LOGS'] === '1' ? { ...today, ...definedOf(unchanged) } : unchanged)
  })

  it('have an upcaster for each earlier version', () => {
    const missing = Object.keys(kept).filter((key) => {
      const [type, version] = key.split('@') as [QueryEventType & SystemEventType, string]
      const current = queryEventVersions[type] ?? systemEventVersions[type] ?? 1
      const upcasters = queryEventUpcasters[type] ?? systemEventUpcasters[type]
      return Number(version) < current && !upcasters?.[Number(version)]
    })
    expect(missing).toEqual([])
  })

  it('accept WritePrepared and WriteCommitted of version 1 after the upcast', () => {
    const past = {
      WritePrepared: {
        catalog: 'lake',
        schema: 's',
        table: 't',
        operation: 'insert',
        baseVersion: '3',
        files: [{ path: 'a/rows.parquet', rows: 2, bytes: 100, sha256: 'ab' }],
      },
      WriteCommitted: { version: '4', outcome: 'committed' },
    } as const
    for (const [type, data] of Object.entries(past) as [keyof typeof past, unknown][]) {
      const upcast = queryEventSchemas[type].parse(upcastQueryEvent(type, 1, data))
      expect(upcast).toMatchObject(
        type === 'WritePrepared'
          ? { operation: 'insert', rows: 2, bytes: 100, prepared: { baseVersion: 3, files: [{ footer: 'ab' }] } }
          : { version: 4, outcome: 'committed' },
      )
    }
  })

  it('accept AccessDenied and QueryKilled of version 1 after the upcast, without a loss of data', () => {
    const denied = { user: 'ada', action: 'view', object: 'query of bob, as eve', count: 2, minute: '2026-03-02T00:00' }
    expect(systemEventData('AccessDenied', 1, denied)).toEqual(denied)
    const killed = { queryId: 'q', by: 'root', remoteAddress: '10.0.0.1' }
    expect(systemEventData('QueryKilled', 1, killed)).toEqual({ ...killed, how: 'canceled' })
    expect(() => systemEventData('AccessDenied', 0, denied)).toThrow('There is no upcaster for AccessDenied version 0')
    expect(() => systemEventData('AccessDenied', 2, { ...denied, count: 'two' })).toThrow()
  })

  it('are reached one version at a time, and a version without an upcaster is an error', () => {
    expect(() => upcastQueryEvent('QueryQueued', 0, {})).toThrow('There is no upcaster for QueryQueued version 0')
    const upcasters = { QueryQueued: { 0: (data: unknown) => ({ ...(data as object), position: 1 }) } }
    expect(upcastQueryEvent('QueryQueued', 0, { reason: 'full' }, upcasters)).toEqual({ reason: 'full', position: 1 })
  })
})

function definedOf(record: Record<string, string | undefined>): Record<string, string | undefined> {
  return Object.fromEntries(Object.entries(record).filter(([, value]) => value !== undefined))
}
