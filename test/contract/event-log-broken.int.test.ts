import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { brokenAdapters } from '../support/event-log/broken-adapters.ts'
import { kafkaAdapter } from '../support/event-log/kafka-fixture.ts'
import { patience, within, type Broken, type LogAdapter } from '../support/event-log/log-fixture.ts'
import { postgresAdapter } from '../support/event-log/postgres-fixture.ts'
import { kafkaIsAvailable } from '../support/kafka.ts'
import { representatives } from '../support/full-tests.ts'
import { contractTests } from './event-log.contract.ts'
import type { ContractTest } from './event-log/contract-test.ts'
import { projectOnce } from './event-log/readers.ts'

const kafka = await kafkaIsAvailable()
const adapters = [postgresAdapter, ...(kafka ? [kafkaAdapter] : [])]

describe('The contract suite', () => {
  const before = patience.ms
  beforeAll(() => void (patience.ms = 3000))
  afterAll(() => void (patience.ms = before))

  for (const { name, what, technologies, broken, caughtBy } of brokenAdapters)
    for (const adapter of adapters.filter((each) => technologies.includes(each.technology)))
      // In CI a defect of both technologies is shown with one of them for each test, in turns.
      it.each(
        technologies.length === 1 ? caughtBy : representatives(caughtBy, 2, technologies.indexOf(adapter.technology)),
      )(`fails in test %i for an adapter that ${what} (${name}, ${adapter.technology})`, async (number) => {
        const test = contractTests.find((each) => each.number === number)!
        await expectFailure(adapter, broken, test)
      })

  it('fails in test 20 for a reader that stores its checkpoint in a transaction of its own (B13)', async () => {
    const run = (fixture: Parameters<ContractTest['run']>[0]): Promise<void> => projectOnce(fixture, 'apart')
    await expectFailure(postgresAdapter, {}, { number: 20, title: '', run })
  })
})

/** A defect shows only when two actions overlap. On a busy machine a try may miss the overlap. */
const TRIES = 3

async function expectFailure(adapter: LogAdapter, broken: Broken, test: ContractTest): Promise<void> {
  let failure: unknown
  for (let tried = 0; failure === undefined && tried < TRIES; tried++) failure = await failureOf(adapter, broken, test)
  expect(failure, `test ${test.number} passes with an adapter that is broken`).toBeDefined()
  if (process.env['QUIPU_TEST_SHOW_FAILURES']) console.log(test.number, String(failure).split('\n', 2).join(' '))
}

async function failureOf(adapter: LogAdapter, broken: Broken, test: ContractTest): Promise<unknown> {
  const fixture = await adapter.fixture(test.fixture, broken)
  try {
    return await within(25_000, test.run(fixture)).then(
      () => undefined,
      (error: unknown) => error,
    )
  } finally {
    await fixture.close()
  }
}
