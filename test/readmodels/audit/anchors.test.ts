import { generateKeyPairSync, type KeyObject } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { startAnchorer } from '../../../src/coordinator/system/anchorer.ts'
import { createSystemJournal } from '../../../src/coordinator/system/system-journal.ts'
import { fingerprint, type AnchorKey, type ExportedAnchor } from '../../../src/events/audit/anchor.ts'
import { vouchFor, type AnchorKeyRecord } from '../../../src/events/audit/anchor-keys.ts'
import type { Finding } from '../../../src/events/audit/finding.ts'
import { PostgresRecordStore } from '../../../src/events/postgres/postgres-record-store.ts'
import { verifyLog, type AuditSummary } from '../../../src/readmodels/audit/verify-log.ts'
import { systemClock } from '../../../src/shared/clock.ts'
import { appendLives, queryLife, testQueryId } from '../../support/query-life.ts'
import { openReadModelBed, type ReadModelBed } from '../../support/read-models.ts'
import { rewriteLog } from '../../support/rewrite-log.ts'
import { waitUntil } from '../../support/quipu-process.ts'

let bed: ReadModelBed
let exported: ExportedAnchor[]
const key = newKey()
const streams = [0, 1, 2, 3].map(testQueryId)
const victim = streams[1]!

beforeEach(async () => {
  bed = await openReadModelBed()
  exported = []
})
afterEach(() => bed.close())

function newKey(): AnchorKey {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519')
  return { private: privateKey, public: publicKey }
}

function anchorer(by: AnchorKey = key, previous?: ExportedAnchor) {
  return startAnchorer({
    log: bed.log,
    partitions: 1,
    journal: createSystemJournal(bed.log, systemClock),
    key: by,
    previous,
    everyMs: 60_000,
    everyEvents: 7,
    onAnchored: (anchor) => exported.push(anchor),
    onEnd: (error) => {
      throw error
    },
  })
}

/** Appends four queries with seven events each, with an anchor after each query and a last one for the rest. */
async function fill(): Promise<void> {
  const running = anchorer()
  for (const [index, queryId] of streams.entries()) {
    await appendLives(bed.log, [{ queryId, events: queryLife(queryId) }])
    await waitUntil('an anchor is made', () => exported.length > index)
  }
  await running.stop()
}

interface Known {
  readonly exported?: readonly ExportedAnchor[]
  readonly keys?: readonly KeyObject[]
}

async function audit(known: Known = { exported }): Promise<{ summary: AuditSummary; findings: Finding[] }> {
  const store = new PostgresRecordStore(bed.config)
  const findings: Finding[] = []
  try {
    const { partitions } = await store.open()
    const summary = await verifyLog({
      store,
      partitions,
      database: bed.config,
      onFinding: (finding) => findings.push(finding),
      ...known,
    })
    return { summary, findings }
  } finally {
    await store.close()
  }
}

describe('The anchors of a log', () => {
  it('are made after changes, extend the previous anchor, and are verified by an audit', async () => {
    await fill()
    const counts = exported.map(({ number }) => number)
    expect(counts).toEqual(counts.map((_, index) => index + 1))
    expect(exported.at(-1)!.at[0]!.count).toBeGreaterThanOrEqual(29)
    for (const known of [{ exported }, { keys: [key.public] }, {}]) {
      const { findings, summary } = await audit(known)
      expect(findings).toEqual([])
      expect(summary).toMatchObject({
        anchors: counts.length,
        signatures: 'keys' in known || 'exported' in known ? counts.length : 0,
      })
    }
    // Since the last anchor the log has only anchors, so there is nothing new to sign.
    await anchorer(key, exported.at(-1)).stop()
    expect(exported).toHaveLength(counts.length)
  })

  it('continue after a restart, also with another key', async () => {
    await fill()
    const before = exported.length
    const other = newKey()
    const next = anchorer(other, exported.at(-1))
    await appendLives(bed.log, [{ queryId: testQueryId(9), events: queryLife(testQueryId(9)) }])
    await waitUntil('an anchor is made', () => exported.length > before)
    await next.stop()
    expect((await audit()).findings).toEqual([])
    expect((await audit({ keys: [key.public, other.public] })).findings).toEqual([])
    const { findings } = await audit({ keys: [key.public] })
    expect(findings).toEqual([
      {
        kind: 'unknown-key',
        what: expect.stringMatching(/^Key [0-9a-f]{32} is unknown: .* it signed anchors \d+ to \d+ /),
      },
    ])
  })

  describe('The anchors of two coordinators', () => {
    const other = newKey()
    const vouch = (data: AnchorKeyRecord) => createSystemJournal(bed.log, systemClock).record('AnchorKeyVouched', data)

    /** Lets the first coordinator write, then the other one. */
    async function takeOver(): Promise<void> {
      await fill()
      const before = exported.length
      const next = anchorer(other, exported.at(-1))
      await appendLives(bed.log, [{ queryId: testQueryId(9), events: queryLife(testQueryId(9)) }])
      await waitUntil('an anchor is made', () => exported.length > before)
      await next.stop()
    }
    const logId = () => exported[0]!.logId

    it('are verified with either key if the keys vouch for each other', async () => {
      await takeOver()
      await vouch(vouchFor(key.public, logId(), key))
      await vouch(vouchFor(other.public, logId(), key))
      await vouch(vouchFor(key.public, logId(), other))
      for (const keys of [[key.public], [other.public], undefined]) {
        const { findings, summary } = await audit({ ...(keys && { keys }) })
        expect(findings).toEqual([])
        expect(summary.signatures).toBe(exported.length)
      }
    })

    it('are verified with the anchor files of both coordinators', async () => {
      await takeOver()
      const ofKey = (own: AnchorKey) => exported.filter((anchor) => anchor.key === fingerprint(own.public))
      expect((await audit({ exported: [...ofKey(other), ...ofKey(key)] })).findings).toEqual([])
      const forged = ofKey(key).map((anchor) => ({ ...anchor, heads: anchor.heads + 1 }))
      const { findings } = await audit({ exported: [...ofKey(key), ...forged], keys: [key.public, other.public] })
      expect(findings[0]!.what).toBe('Exported anchor 1 occurs twice with different content')
    })

    it.each([
      ['vouches for itself', () => vouchFor(other.public, logId(), other), ['unknown-key']],
      [
        'claims that a known key vouches for it',
        () => ({ ...vouchFor(other.public, logId(), other), signedBy: fingerprint(key.public) }),
        ['anchor', 'unknown-key'],
      ],
      [
        'has a signature for another log',
        () => ({ ...vouchFor(other.public, 'elsewhere', key), logId: logId() }),
        ['anchor', 'unknown-key'],
      ],
      [
        'reuses the signature for a known key',
        () => ({ ...vouchFor(key.public, logId(), key), key: fingerprint(other.public) }),
        ['anchor', 'unknown-key'],
      ],
      [
        'uses the name of a known key',
        () => ({
          ...vouchFor(other.public, logId(), other),
          key: fingerprint(key.public),
          signedBy: fingerprint(key.public),
        }),
        ['anchor', 'unknown-key'],
      ],
      ['is not a key', () => ({ ...vouchFor(other.public, logId(), other), publicKey: 'AAAA' }), ['unknown-key']],
    ])('are not verified by a key that %s', async (_what, record, kinds) => {
      await takeOver()
      await vouch(vouchFor(key.public, logId(), key))
      await vouch(record())
      expect((await audit({ keys: [key.public] })).findings.map(({ kind }) => kind)).toEqual(kinds)
    })
  })

  it('are not made on a log that differs from the log of the last anchor', async () => {
    await fill()
    await bed.query(`update quipu_log.events set position = position + 1000000 where position >= 20`)
    await bed.query(`update quipu_log.events set position = position - 1000001 where position >= 1000021`)
    let ended: unknown
    const running = startAnchorer({
      log: bed.log,
      partitions: 1,
      journal: createSystemJournal(bed.log, systemClock),
      key,
      previous: { ...exported.at(-1)!, logId: 'another' },
      everyMs: 60_000,
      everyEvents: 1,
      onAnchored: () => {},
      onEnd: (error) => (ended = error),
    })
    await waitUntil('it ends', () => ended !== undefined)
    expect(String(ended)).toContain('LogChanged')
    await running.stop()
  })
})

describe('An audit of a log that was rewritten with valid hashes', () => {
  const toMallory = (stream: string, envelope: { data: string }) =>
    stream === victim ? { ...envelope, data: envelope.data.replaceAll('alice', 'mallory') } : envelope

  it.each([
    ['an event altered', toMallory],
    [
      'an event removed',
      (stream: string, e: { sequence: number }) => (stream === victim && e.sequence === 4 ? undefined : e),
    ],
    ['a query removed', (stream: string, e: object) => (stream === victim ? undefined : e)],
  ])('finds a contradiction only to the exported anchors: %s', async (_what, change) => {
    await fill()
    await rewriteLog(bed, { change: change as never, anchors: 'drop' })
    const without = await audit({})
    expect(without.findings.filter(({ kind }) => kind !== 'query-without-end')).toEqual([])
    const { findings } = await audit()
    expect(findings.map(({ kind }) => kind)).toContain('anchor')
    expect(findings).toContainEqual(
      expect.objectContaining({
        what: expect.stringMatching(/^Below anchor 2: \d+ events differ from the \d+ events that it signed$/),
      }),
    )
  })

  it('finds a contradiction to anchors that are left in the log, without any key', async () => {
    await fill()
    await rewriteLog(bed, { change: toMallory as never })
    const { findings } = await audit({})
    expect(findings).toContainEqual(
      expect.objectContaining({
        kind: 'anchor',
        what: expect.stringMatching(/^The log has other heads of the \d+ streams than anchor 2 signed$/),
      }),
    )
  })

  it('finds anchors that are signed again with an unknown key', async () => {
    await fill()
    await rewriteLog(bed, { change: toMallory as never, anchors: 'sign' })
    expect((await audit({})).findings).toEqual([])
    const byKey = await audit({ keys: [key.public] })
    expect(byKey.findings.map(({ kind }) => kind)).toEqual(['unknown-key', 'anchor'])
    expect(byKey.findings[1]!.what).toMatch(/^No anchor is signed with a known key/)
    const byFile = await audit()
    expect(byFile.findings.map(({ what }) => what).join('\n')).toContain('is not in the log')
  })

  it('finds a cut end of the log, by the exported anchors', async () => {
    await fill()
    const cut = Number(exported.at(-2)!.at[0]!.offset)
    await bed.query('delete from quipu_log.events where position >= $1', [cut])
    expect((await audit({ keys: [key.public] })).findings).toEqual([])
    expect((await audit()).findings.map(({ what }) => what).join('\n')).toContain('the log ends before offset')
  })

  it('finds another log in place of the original one', async () => {
    await fill()
    const other = await openReadModelBed()
    try {
      await bed.query('delete from quipu_log.events')
      for (const row of await other.query<Record<string, unknown>>('select * from quipu_log.events order by position'))
        await bed.query(
          'insert into quipu_log.events values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)',
          Object.values(row),
        )
      expect((await audit()).findings[0]!.what).toContain('belongs to another log')
    } finally {
      await other.close()
    }
  })
})

it('An audit refuses an exported anchor that was altered', async () => {
  await fill()
  const forged = exported.map((one) => (one.number === 2 ? { ...one, heads: one.heads + 1 } : one))
  expect((await audit({ exported: forged })).findings[0]!.what).toBe('Anchor 2 differs from what its key signed')
})
