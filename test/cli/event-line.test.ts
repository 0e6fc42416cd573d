import { describe, expect, it } from 'vitest'
import { eventLine } from '../../src/cli/event-line.ts'
import { nodeEventSchemas } from '../../src/coordinator/nodes/events.ts'
import { toCloudEvent } from '../../src/events/envelope.ts'
import { queryLife, testQueryId } from '../support/query-life.ts'

const queryId = testQueryId(1)

function lineOf(type: string, data: unknown, stream: string = queryId): string {
  const recorded = {
    stream,
    sequence: 1,
    epoch: 1,
    type,
    v: 1,
    time: '2026-03-01T10:00:00.000Z',
    data,
    prevhash: '',
    hash: '',
    digest: '',
    enc: 'none' as const,
    stored: '',
    position: { partition: 0, offset: 1n },
  }
  return eventLine(type, toCloudEvent(recorded, '/quipu/log'))
}

/** The part of the line after time, stream and type. */
function summary(type: string, data: unknown): string {
  return lineOf(type, data).split(/ {2,}/).slice(3).join('  ')
}

describe('A line of quipu tail', () => {
  it('has time, stream, type and a summary for each event of a query', () => {
    const lines = queryLife(queryId).map(({ type, data }) => lineOf(type, data))
    const head = `2026-03-01T10:00:00.000Z  ${queryId}  `
    expect(lines).toEqual([
      `${head}QueryCreated          alice: SELECT name FROM nation`,
      `${head}QueryPlanned          SELECT, 2 stages, tpch.tiny.nation`,
      `${head}TaskCreated           1.0 on worker-1, 7 splits`,
      `${head}TaskFinished          1.0 on worker-1, 23 rows out`,
      `${head}TaskFinished          0.0 on coordinator, 23 rows out`,
      `${head}ResultPagesPublished  1 page from 0, 23 rows, the last`,
      `${head}QueryFinished         23 rows, 1.0 kB in 0.300 s`,
    ])
  })

  it('shows why a query failed', () => {
    const failed = queryLife(queryId, { end: 'failed' }).at(-1)!
    expect(summary(failed.type, failed.data)).toBe('DIVISION_BY_ZERO after 0.300 s: Division by zero')
  })

  it('aligns streams with short names', () => {
    const node = { nodeId: 'w', url: 'http://w:1', version: '1', role: 'worker', cores: 1, memoryBytes: 1 }
    expect(nodeEventSchemas.NodeJoined.parse(node)).toEqual(node)
    expect(lineOf('NodeJoined', node, 'node/w')).toBe(
      `2026-03-01T10:00:00.000Z  ${'node/w'.padEnd(queryId.length)}  NodeJoined            worker http://w:1, 1 core`,
    )
  })

  it('is a single line of limited length without control characters, whatever the statement is', () => {
    const sql = `SELECT 1,\n\t  '\u001b[2J\u0007'\r\n${'x'.repeat(1000)}`
    const line = lineOf('QueryCreated', { session: { user: 'eve\u009b' }, sql })
    // oxlint-disable-next-line no-control-regex -- the line must not contain control characters
    expect(line).not.toMatch(/[\u0000-\u001f\u007f-\u009f]/)
    expect(line).toContain("eve\\u009b: SELECT 1, '\\u001b[2J\\u0007' xxx")
    expect(line.length).toBeLessThan(250)
    expect(line.endsWith('…')).toBe(true)
  })

  it('shows the raw data of unknown events, and marks forgotten events', () => {
    expect(summary('QueryReconsidered', { why: 'later version' })).toBe('{"why":"later version"}')
    expect(summary('QueryFinished', { rows: 3 })).toBe('{"rows":3}')
    expect(summary('QueryCreated', null)).toBe('(forgotten)')
  })
})
