import { expect, it } from 'vitest'
import { kafkaIsAvailable } from '../support/kafka.ts'
import { runSoak } from './soak.ts'
import { failuresWithoutFault, verdictOf } from './verdict.ts'
import { FULL_TESTS } from '../support/full-tests.ts'

/** Alerts that a slow machine alone never fires. */
const NEVER = ['QuipuAuditFinding', 'QuipuDeadLetters', 'QuipuProjectionStopped', 'QuipuEngineCrashing']

const available = await kafkaIsAvailable()

/** The faults of the run in CI: each part of the cluster fails once. The others have end-to-end tests of their own. */
const FAULTS_IN_CI = ['kill writer', 'kill worker', 'Postgres down', 'Kafka down'] as const

/**
 * The short form of `npm run soak`: in a full run each kind of fault once, and outages that are long enough for clients
 * to notice.
 */
it.runIf(available)(
  'the cluster answers every statement right, or with a documented error, through every kind of fault',
  { timeout: 1_500_000 },
  async () => {
    const record = await runSoak({
      seed: 1,
      durations: { outageMs: 8_000, diskFullMs: 4_000, busyMs: 6_000, calmMs: 0 },
      forMs: 0,
      // In CI the clients leave processor time to the tests that run beside them.
      ...(!FULL_TESTS && { only: FAULTS_IN_CI, pauseMs: 400 }),
      logLevel: 'warn',
      report: (line) => console.log(line),
    })
    const { table, wrong, falseAlerts } = verdictOf(record)
    console.log(table)
    expect(wrong).toEqual([])
    // A coordinator on a busy machine refuses statements without a fault too: it answers 503 while it hands over.
    if (FULL_TESTS) expect(failuresWithoutFault(record)).toEqual([])
    expect(falseAlerts.filter(({ name }) => NEVER.includes(name))).toEqual([])
  },
)
