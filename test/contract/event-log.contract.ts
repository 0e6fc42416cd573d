import { describe, it } from 'vitest'
import type { LogAdapter } from '../support/event-log/log-fixture.ts'
import { appendTests } from './event-log/appends.ts'
import { claimTests } from './event-log/claims.ts'
import type { ContractTest } from './event-log/contract-test.ts'
import { faultTests } from './event-log/faults.ts'
import { readerTests } from './event-log/readers.ts'

export const contractTests: readonly ContractTest[] = [
  ...appendTests,
  ...faultTests,
  ...claimTests,
  ...readerTests,
].sort((a, b) => a.number - b.number)

/** What every event log promises, on a real server with real faults. */
export function eventLogContract(adapter: LogAdapter): void {
  describe(`the event log over ${adapter.technology} keeps its contract`, () => {
    for (const test of contractTests) {
      if (test.only && test.only !== adapter.technology) continue
      it(`${test.number} ${test.title}`, { timeout: 90_000 }, async () => {
        const fixture = await adapter.fixture(test.fixture)
        try {
          await test.run(fixture)
        } finally {
          await fixture.close()
        }
      })
    }
  })
}
