import { describe, it } from 'vitest'
import type { LogAdapter } from '../support/event-log/log-fixture.ts'
import { appendTests } from './event-log/appends.ts'
import { claimTests } from './event-log/claims.ts'
import type { ContractTest } from './event-log/contract-test.ts'
import { faultTests } from './event-log/faults.ts'
import { forgettingTests } from './event-log/forgetting.ts'
import { readerTests } from './event-log/readers.ts'
import { resultPageTests } from './event-log/result-pages.ts'

export const contractTests: readonly ContractTest[] = [
  ...appendTests,
  ...faultTests,
  ...claimTests,
  ...readerTests,
  ...resultPageTests,
  ...forgettingTests,
].sort((a, b) => a.number - b.number)

/** Declares the tests that every event log must pass, on a real server with real faults. */
export function eventLogContract(
  adapter: LogAdapter,
  { partitions = 1, tests = contractTests }: { partitions?: number; tests?: readonly ContractTest[] } = {},
): void {
  const over = partitions === 1 ? adapter.technology : `${adapter.technology} with ${partitions} log partitions`
  describe(`The event log over ${over}`, () => {
    for (const test of tests) {
      if (test.only && test.only !== adapter.technology) continue
      it(`${test.number} ${test.title}`, { timeout: 300_000 }, async () => {
        const fixture = await adapter.fixture({ ...test.fixture, partitions })
        try {
          await test.run(fixture)
        } finally {
          await fixture.close()
        }
      })
    }
  })
}
