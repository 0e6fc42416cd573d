import type { FixtureOptions, LogFixture } from '../../support/event-log/log-fixture.ts'

/** A test of one promise of the port. It is a plain function, so that a suite can run it with a broken adapter. */
export interface ContractTest {
  /** The number of the test in docs/event-log.md. */
  readonly number: number
  readonly title: string
  /** The only technology for which the test runs; all if undefined. */
  readonly only?: 'postgres' | 'kafka'
  readonly fixture?: FixtureOptions
  readonly run: (fixture: LogFixture) => Promise<void>
}
