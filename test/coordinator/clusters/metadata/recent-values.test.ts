import fc from 'fast-check'
import { expect, it } from 'vitest'
import { createRecentValues } from '../../../../src/coordinator/clusters/metadata/recent-values.ts'

it('recent values take bounded memory: the values that were used longest ago are forgotten', async () => {
  const weights = fc.constantFrom(0, 1_000, 90_000, 150_000, 500_000)
  const uses = fc.array(fc.tuple(fc.constantFrom('a', 'b', 'c', 'd', 'e'), weights), { maxLength: 40 })
  await fc.assert(
    fc.asyncProperty(uses, async (all) => {
      const values = createRecentValues<number>({ weightOf: (value) => value, now: () => 0 })
      /** The model: in the order of use, the last at the end. */
      let kept: { readonly schema: string; readonly weight: number }[] = []
      for (const [schema, weight] of all) {
        let isRead = false
        const value = await values.get({ catalog: 'hive', schema }, async () => {
          isRead = true
          return weight
        })
        const known = kept.find((one) => one.schema === schema)
        expect({ isRead, value }).toEqual({ isRead: known === undefined, value: known?.weight ?? weight })
        kept = [...kept.filter((one) => one !== known), known ?? { schema, weight }]
        while (kept.length > 1 && kept.reduce((sum, one) => sum + 1 + one.weight, 0) > 200_000) kept.shift()
      }
    }),
  )
})
