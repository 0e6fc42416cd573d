import { describe, expect, it } from 'vitest'
import { createQueryFinder, type FindQueryDeps } from '../../../src/protocol/query/find-query.ts'
import { HttpProblem } from '../../../src/protocol/edge/problem.ts'

/** A finder whose wait for the read models calls `barrier`. It has nothing else. */
const finderWith = (barrier: () => boolean) =>
  createQueryFinder({ projection: { barrier: async () => barrier() }, ownWritesWaitMs: 1 } as unknown as FindQueryDeps)

describe('The search of a finder', () => {
  it('finds what the read models get while it waits for them', async () => {
    let act: string | undefined
    const { look } = finderWith(() => {
      act = 'a'
      return true
    })
    expect(await look('act', async () => act)).toBe('a')
  })

  it('finds nothing if the read models have the whole log', async () => {
    expect(await finderWith(() => true).look('act', async () => undefined)).toBeUndefined()
  })

  it('answers 503 if the read models may lack the newest events', async () => {
    const refused: unknown = await finderWith(() => false)
      .look('act', async () => undefined)
      .catch((error: unknown) => error)
    expect(refused).toBeInstanceOf(HttpProblem)
    expect(refused).toMatchObject({ status: 503, message: expect.stringContaining('this act exists') as unknown })
  })

  it('does not wait for the read models if they have it', async () => {
    const { look } = finderWith(() => {
      throw new Error('waits')
    })
    expect(await look('act', async () => 'a')).toBe('a')
  })
})
