import type { FixtureOptions, LogFixture } from '../../support/event-log/log-fixture.ts'

/** One promise of the port. A plain function, so that the suite can also show that a broken adapter fails it. */
export interface ContractTest {
  /** The number of the test in docs/event-log.md. */
  readonly number: number
  readonly title: string
  /** The only technology for which the test runs; all if undefined. */
  readonly only?: 'postgres' | 'kafka'
  readonly fixture?: FixtureOptions
  readonly run: (fixture: LogFixture) => Promise<void>
}
