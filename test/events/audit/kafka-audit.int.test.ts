import { afterAll, beforeAll, expect, it } from 'vitest'
import { auditLog } from '../../../src/events/audit/audit-log.ts'
import type { Finding } from '../../../src/events/audit/finding.ts'
import type { StoredRecord } from '../../../src/events/record-store.ts'
import { withOtherData } from '../../contract/event-log/readers.ts'
import { kafkaAdapter } from '../../support/event-log/kafka-fixture.ts'
import type { LogFixture } from '../../support/event-log/log-fixture.ts'

let fixture: LogFixture
beforeAll(async () => void (fixture = await kafkaAdapter.fixture()))
afterAll(() => fixture.close())

async function audit(): Promise<{ findings: Finding[]; records: StoredRecord[]; events: number }> {
  const store = await fixture.store()
  const findings: Finding[] = []
  const onFinding = (finding: Finding): void => void findings.push(finding)
  const { events } = await auditLog({ store, partitions: fixture.partitions, onFinding })
  return { findings, events, records: await store.fetch(0, 0n, 1000) }
}

it('An audit of a topic ignores copies and foreign records, and finds altered and removed records', async () => {
  const log = await fixture.open()
  await log.claim({ address: 'http://127.0.0.1:8080', version: 'test' })
  for (let sequence = 0; sequence < 4; sequence++)
    for (const stream of ['a', 'b'])
      await log.append(stream, sequence, [
        { type: 'Happened', v: 1, time: '2026-01-02T03:04:05.000Z', data: { sequence } },
      ])
  await log.close()
  const { findings, records, events } = await audit()
  expect(findings).toEqual([])
  // The claim and its event come first.
  expect([records.length, events]).toEqual([10, 9])

  await fixture.restore([...records, records[4]!, records[7]!])
  await fixture.putForeign('not ours')
  expect(await audit()).toMatchObject({ findings: [], events: 9 })

  const altered = { ...records[5]!, text: withOtherData(records[5]!.text) }
  await fixture.restore(records.with(5, altered))
  expect((await audit()).findings).toMatchObject([{ kind: 'data', stream: 'b', sequence: 2, position: '0/5' }])

  await fixture.restore(records.toSpliced(5, 1))
  expect((await audit()).findings).toMatchObject([
    { kind: 'history', position: '0/5' },
    { kind: 'sequence', stream: 'b', sequence: 3, position: '0/6' },
  ])
})
