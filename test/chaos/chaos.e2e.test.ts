import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { temporaryFolder } from '../support/quipu-process.ts'
import { Harness } from './harness.ts'
import { clusterPlanOf, planOf } from './plan.ts'
import { runLine } from './report.ts'
import { representatives } from '../support/full-tests.ts'

describe('The plan of a seed', () => {
  const can = { log: 'mixed', disk: true, faults: 'all' } as const

  it('is the same for the same seed, and different for different seeds', () => {
    const plans = Array.from({ length: 50 }, (_, seed) => JSON.stringify(planOf(seed, 3000, can)))
    expect(Array.from({ length: 50 }, (_, seed) => JSON.stringify(planOf(seed, 3000, can)))).toEqual(plans)
    expect(new Set(plans).size).toBe(50)
  })

  it('is the same for the same seed, also with clusters', () => {
    const plans = () => Array.from({ length: 50 }, (_, seed) => JSON.stringify(clusterPlanOf(seed, 3000)))
    expect(plans()).toEqual(plans())
    expect(new Set(plans()).size).toBe(50)
  })

  it('has only faults that the abilities of the machine allow', () => {
    for (let seed = 0; seed < 200; seed++) {
      const plan = planOf(seed, 3000, { log: 'postgres', disk: false, faults: 'processes' })
      expect(plan.ownDisk).toBe(false)
      for (const { kind } of plan.faults) expect(kind).toMatch(/^(kill|stop) (coordinator|worker|engine)$/)
    }
  })
})

/** The short form of `npm run chaos`; a longer run finds more. */
describe.each([
  ['A server', { clusters: false, seeds: [33, 58] }],
  ['A server with clusters', { clusters: true, seeds: [56] }],
])('%s under faults', (_server, { clusters, seeds }) => {
  const kept = temporaryFolder()
  let harness: Harness

  beforeAll(async () => {
    harness = await Harness.open({
      log: 'postgres',
      faults: 'all',
      clients: 4,
      writers: 2,
      loadMs: 1_500,
      keepIn: join(kept.path, 'kept'),
      withoutPython: true,
      clusters,
    })
  }, 240_000)

  afterAll(async () => {
    expect(await harness.close()).toEqual([])
    await kept.remove()
  })

  it.each(representatives(seeds, 2))(
    'ends every statement with the right rows or a clean error for seed %i',
    { timeout: 240_000 },
    async (seed) => {
      const result = await harness.run(seed)
      console.log(runLine(result))
      expect(result.wrong).toEqual([])
      expect(result.outcomes.length).toBeGreaterThan(0)
    },
  )
})
