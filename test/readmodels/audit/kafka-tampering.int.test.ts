import { generateKeyPairSync } from 'node:crypto'
import kafkajs from 'kafkajs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startAnchorer } from '../../../src/coordinator/system/anchorer.ts'
import { createSystemJournal } from '../../../src/coordinator/system/system-journal.ts'
import type { ExportedAnchor } from '../../../src/events/audit/anchor.ts'
import type { Finding } from '../../../src/events/audit/finding.ts'
import type { StoredEnvelope } from '../../../src/events/envelope.ts'
import { formatHeader } from '../../../src/events/fold.ts'
import { createKafkaEventLog } from '../../../src/events/kafka-beside-postgres.ts'
import { ensureTopics } from '../../../src/events/kafka/topic.ts'
import type { StoredRecord } from '../../../src/events/record-store.ts'
import type { VerifyOptions } from '../../../src/readmodels/audit/verify-options.ts'
import { systemClock } from '../../../src/shared/clock.ts'
import { me } from '../../support/event-log/log-fixture.ts'
import { openKafkaAuditBed, type KafkaAuditBed } from '../../support/kafka-audit-bed.ts'
import { kafkaIsAvailable } from '../../support/kafka.ts'
import { appendLives, queryLife, testQueryId } from '../../support/query-life.ts'
import { waitUntil } from '../../support/quipu-process.ts'
import { rewriteRecords, type Rewriting } from '../../support/rewrite-log.ts'

const streams = [0, 1, 2, 3].map(testQueryId)
const victim = streams[1]!

/** Returns the Base64 text with a different first byte. */
function exchanged(data: string): string {
  return `${data.startsWith('A') ? 'B' : 'A'}${data.slice(1)}`
}

describe.runIf(await kafkaIsAvailable())('An audit of a log in Kafka', () => {
  const anchorKey = generateKeyPairSync('ed25519')
  const exported: ExportedAnchor[] = []
  let bed: KafkaAuditBed
  let records: StoredRecord[]

  /** Appends four queries with seven events each, with an anchor after each query and a last one for the rest. */
  beforeAll(async () => {
    bed = await openKafkaAuditBed()
    const log = createKafkaEventLog(bed.optionsOf('tampered.jsonl'))
    await log.open()
    await log.claim(me)
    const anchoring = startAnchorer({
      log,
      partitions: 1,
      journal: createSystemJournal(log, systemClock),
      key: { private: anchorKey.privateKey, public: anchorKey.publicKey },
      previous: undefined,
      everyMs: 60_000,
      everyEvents: 7,
      onAnchored: (anchor) => exported.push(anchor),
      onEnd: (error) => {
        throw error
      },
    })
    for (const [index, queryId] of streams.entries()) {
      await appendLives(log, [{ queryId, events: queryLife(queryId) }])
      await waitUntil('an anchor is made', () => exported.length > index)
    }
    await anchoring.stop()
    await log.close()
    records = await bed.recordsOf()
  })
  afterAll(() => bed.close())

  async function produce(topic: string, records: readonly StoredRecord[]): Promise<void> {
    const producer = bed.kafka.producer({ createPartitioner: kafkajs.Partitioners.DefaultPartitioner })
    await producer.connect()
    const messages = records.map(({ stream, text, header }) => ({
      partition: 0,
      key: stream,
      value: text,
      headers: { quipu: formatHeader(header!) },
    }))
    await producer.send({ topic, acks: -1, messages })
    await producer.disconnect()
  }

  /** Audits a new topic with these records, by default with the exported anchors. */
  async function findingsIn(
    made: readonly StoredRecord[],
    known: Pick<VerifyOptions, 'exported' | 'keys'> = { exported },
  ): Promise<Finding[]> {
    const copy = bed.newTopic()
    await ensureTopics(bed.kafka, [{ topic: copy, holds: 'events', partitions: 1 }])
    await produce(copy, made)
    return bed.audit(known, copy)
  }

  const indexOf = (stream: string, sequence: number): number =>
    records.findIndex(
      (record) => record.stream === stream && (JSON.parse(record.text) as StoredEnvelope).sequence === sequence,
    )
  const kinds = (findings: readonly Finding[]): string[] => [...new Set(findings.map(({ kind }) => kind))]

  it('finds nothing in an exact copy of the log', async () => {
    expect(await findingsIn(records)).toEqual([])
    expect(await findingsIn(records, { keys: [anchorKey.publicKey] })).toEqual([])
    expect(exported.length).toBeGreaterThan(3)
  })

  it('finds an event with altered data or an altered header', async () => {
    const at = indexOf(victim, 3)
    const altered = (change: (envelope: StoredEnvelope) => StoredEnvelope): StoredRecord[] =>
      records.with(at, { ...records[at]!, text: JSON.stringify(change(JSON.parse(records[at]!.text))) })
    const where = { stream: victim, sequence: 3, position: `0/${at}` }
    const data = await findingsIn(
      altered((envelope) => ({ ...envelope, data: exchanged(envelope.data) })),
      {},
    )
    expect(data[0]).toMatchObject({ kind: 'data', ...where })
    const header = await findingsIn(
      altered((envelope) => ({ ...envelope, type: 'TaskFailed' })),
      {},
    )
    expect(header[0]).toMatchObject({ kind: 'header', ...where })
  })

  it('finds removed, exchanged, moved and inserted events, without anchors', async () => {
    const at = indexOf(victim, 3)
    const [one, two] = [indexOf(victim, 3), indexOf(victim, 5)]
    for (const [what, made] of [
      ['removed', records.toSpliced(at, 1)],
      ['exchanged', records.with(one, records[two]!).with(two, records[one]!)],
      ['moved', records.toSpliced(at, 1).toSpliced(at + 9, 0, records[at]!)],
      ['put in', records.toSpliced(at + 1, 0, records[at]!)],
    ] as const)
      // The hashes of the records are enough to find this, without any anchor.
      expect((await findingsIn(made, {})).length, what).toBeGreaterThan(0)
    // A copy or an event of a foreign writer at the end is not valid for any reader, so it changes nothing.
    const foreign = { ...records[at]!, header: { ...records[at]!.header!, writer: 'mallory' } }
    for (const more of [records[at]!, foreign]) expect(await findingsIn([...records, more])).toEqual([])
  })

  describe('An audit of a log in Kafka that was rewritten with valid hashes', () => {
    const rewritten = (change: Rewriting['change'], anchors: Rewriting['anchors']): StoredRecord[] =>
      rewriteRecords(records, { change, ...(anchors && { anchors }) })
    const toClear = (stream: string, envelope: StoredEnvelope): StoredEnvelope =>
      stream === victim && envelope.sequence === 1
        ? { ...envelope, enc: 'none', data: JSON.stringify({ sql: 'SELECT 1', user: 'mallory' }) }
        : envelope
    const toFailed = (stream: string, envelope: StoredEnvelope): StoredEnvelope =>
      stream === victim && envelope.sequence === 4 ? { ...envelope, type: 'TaskFailed' } : envelope

    it.each<[string, Rewriting['change'], string[]]>([
      ['data replaced', toClear, ['data']],
      ['an event with another type', toFailed, ['data']],
      [
        'an event removed',
        (stream, envelope) => (stream === victim && envelope.sequence === 4 ? undefined : envelope),
        ['data'],
      ],
      ['a query removed', (stream, envelope) => (stream === victim ? undefined : envelope), []],
    ])('finds a change by the exported anchors, and changed data also without them: %s', async (_, change, kindsOf) => {
      const made = rewritten(change, 'drop')
      expect(kinds(await findingsIn(made, {}))).toEqual(kindsOf)
      const findings = await findingsIn(made)
      expect(findings).toContainEqual(
        expect.objectContaining({
          kind: 'anchor',
          what: expect.stringMatching(/^Below anchor 2: \d+ events differ from the \d+ events that it signed$/),
        }),
      )
    })

    it('finds a contradiction to anchors left in the log, and anchors that are signed with an unknown key', async () => {
      const change: Rewriting['change'] = (stream, envelope) => (stream === victim ? undefined : envelope)
      const left = await findingsIn(rewritten(change, 'keep'), {})
      expect(kinds(left)).toEqual(['anchor'])
      const signed = rewritten(change, 'sign')
      expect(await findingsIn(signed, {})).toEqual([])
      const byKey = await findingsIn(signed, { keys: [anchorKey.publicKey] })
      expect(kinds(byKey)).toEqual(['unknown-key', 'anchor'])
      const byFile = await findingsIn(signed)
      expect(byFile.map(({ what }) => what).join('\n')).toContain('is not in the log')
    })

    it('finds a cut end of the log, by the exported anchors', async () => {
      const made = records.slice(0, Number(exported.at(-2)!.at[0]!.offset))
      expect(await findingsIn(made, { keys: [anchorKey.publicKey] })).toEqual([])
      const findings = await findingsIn(made)
      expect(findings.map(({ what }) => what).join('\n')).toContain('the log ends before offset')
    })

    it('finds an event that was added in the name of the writer', async () => {
      const { header } = records.at(-1)!
      const more = { ...records[indexOf(victim, 7)]!, offset: BigInt(records.length), header }
      const forged = rewriteRecords([...records, more], { change: (_stream, envelope) => envelope })
      expect(forged.slice(0, -1).map(({ text }) => text)).toEqual(records.map(({ text }) => text))
      const findings = await findingsIn(forged, {})
      expect(findings).toContainEqual(expect.objectContaining({ kind: 'data', stream: victim, sequence: 8 }))
      expect(findings).toContainEqual(expect.objectContaining({ kind: 'query-with-two-ends', stream: victim }))
    })
  })
})
