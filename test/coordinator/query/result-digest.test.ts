import { describe, expect, it } from 'vitest'
import { resultDigest } from '../../../src/coordinator/query/results/result-digest.ts'
import { shownData } from '../../../src/coordinator/query/stream/shown-event.ts'
import { upcastQueryEvent } from '../../../src/coordinator/query/stream/upcasters.ts'

const page = (batch: number, sum: string, chain?: string) => ({
  batch,
  digest: { sum: sum.padStart(16, '0'), ...(chain !== undefined && { chain: chain.padStart(16, '0') }) },
})
const made = { version: 'sip24-1', key: 'k' }

describe('The digest of a result', () => {
  it('is the sum of its page digests modulo 2^64, in any order', () => {
    const pages = [page(0, 'f'.repeat(16)), page(1, '3'), page(0, '1')]
    expect(resultDigest(pages, false, 'k')).toEqual({ ...made, sum: '3'.padStart(16, '0') })
    expect(resultDigest(pages.toReversed(), false, 'k')).toEqual(resultDigest(pages, false, 'k'))
  })

  it('has the chain of its last page when the statement asks for an order', () => {
    const pages = [page(0, '1', 'a'), page(0, '2', 'b')]
    expect(resultDigest(pages, true, 'k')).toMatchObject({ chain: 'b'.padStart(16, '0') })
    expect(resultDigest(pages, false, 'k')).not.toHaveProperty('chain')
    // The chain is unknown when the result has several batches.
    expect(resultDigest([page(0, '1', 'a'), page(1, '2', 'b')], true, 'k')).not.toHaveProperty('chain')
    const none = '0'.repeat(16)
    expect(resultDigest([], true, 'k')).toEqual({ ...made, sum: none, chain: none })
  })

  it('is unknown when the digest of one page is unknown', () => {
    expect(resultDigest([page(0, '1'), { batch: 0, digest: undefined }], false, 'k')).toBeUndefined()
  })

  it('is hidden in shown events, and absent in upcast events of earlier versions', () => {
    const seesEnder = () => true
    const digest = { ...made, sum: '1' }
    expect(shownData({ type: 'QueryFinished', data: { rows: 1, digest } }, seesEnder)).toEqual({ rows: 1 })
    const pages = [{ rows: 1, sha256: 'ab', digest }]
    expect(shownData({ type: 'ResultPagesPublished', data: { batch: 0, pages } }, seesEnder)).toEqual({
      batch: 0,
      pages: [{ rows: 1 }],
    })
    const splits = [{ scan: 0, rows: 1, data: {}, columnBytes: { hidden: 50 } }]
    expect(shownData({ type: 'QueryPlanned', data: { stages: [{ id: 1, splits }] } }, seesEnder)).toEqual({
      stages: [{ id: 1, splits: [{ scan: 0, rows: 1 }] }],
    })
    const files = [{ path: 'a', footer: 'ab' }]
    expect(shownData({ type: 'WritePrepared', data: { rows: 1, prepared: { files } } }, seesEnder)).toEqual({
      rows: 1,
      prepared: { files: [{ path: 'a' }] },
    })
    const change = { kind: 'refreshMaterializedView', sources: [{ table: 'of_a_rule' }], query: 'ab' }
    expect(shownData({ type: 'WritePrepared', data: { prepared: { change } } }, seesEnder)).toEqual({
      prepared: { change: { kind: 'refreshMaterializedView' } },
    })
    expect(upcastQueryEvent('QueryFinished', 1, { rows: 1 })).toEqual({ rows: 1 })
    expect(upcastQueryEvent('ResultPagesPublished', 2, { pages: [{ rows: 1 }] })).toEqual({ pages: [{ rows: 1 }] })
  })
})
