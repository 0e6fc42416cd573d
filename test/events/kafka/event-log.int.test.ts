import { describe } from 'vitest'
import { contractTests, eventLogContract } from '../../contract/event-log.contract.ts'
import { kafkaAdapter } from '../../support/event-log/kafka-fixture.ts'
import { kafkaIsAvailable } from '../../support/kafka.ts'
import { FULL_TESTS } from '../../support/full-tests.ts'

describe.runIf(await kafkaIsAvailable())('The Kafka event log', () => {
  eventLogContract(kafkaAdapter)
  // The tests that depend on the number of log partitions also run with three of them; in CI some of these.
  const numbers = FULL_TESTS ? [1, 2, 9, 12, 13, 19, 29] : [12, 19]
  eventLogContract(kafkaAdapter, {
    partitions: 3,
    tests: contractTests.filter((test) => numbers.includes(test.number)),
  })
})
