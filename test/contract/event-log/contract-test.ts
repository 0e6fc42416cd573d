import type { FixtureOptions, LogFixture } from '../../support/event-log/log-fixture.ts'

/** One promise of the port. A plain function, so that the suite can also show that a broken adapter fails it. */
export interface ContractTest {
  /** As numbered in docs/event-log.md. */
  readonly number: number
  readonly title: string
  /** Left out where only one technology can do this. */
  readonly only?: 'postgres' | 'kafka'
  readonly fixture?: FixtureOptions
  readonly run: (fixture: LogFixture) => Promise<void>
}
