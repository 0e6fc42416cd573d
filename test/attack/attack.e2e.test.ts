import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { kafkaIsAvailable } from '../support/kafka.ts'
import { auditCases, largeAudit, smallAudit, startAuditBed, type AuditBed } from './audit-cases.ts'
import { startBed, type AttackBed } from './bed.ts'
import { familyOf, families, runCampaign, shownBytes, type CampaignResult } from './campaign.ts'
import { auditLog } from './checks.ts'
import { closeLogAttacks } from './log-attacks.ts'
import { parseResponses } from './raw-response.ts'
import { FULL_TESTS } from '../support/full-tests.ts'

/** The short form of `npm run attack`; a longer run finds more. */
async function attack(bed: AttackBed, seed: number, cases: number): Promise<CampaignResult> {
  const numbers = Array.from({ length: cases }, (_, index) => index)
  return runCampaign({
    bed,
    seed,
    cases: numbers,
    lanes: 4,
    onFault: ({ index, family, message, sent }) =>
      console.log(`seed ${seed}, case ${index} (${family}): ${message}\n${shownBytes(sent.slice(-4))}`),
  })
}

describe.each([
  { log: 'postgres', seed: 7, cases: FULL_TESTS ? 220 : 120, guarded: false },
  { log: 'kafka', seed: 2, cases: FULL_TESTS ? 100 : 60, guarded: true },
] as const)('Processes under attack with the log in $log', ({ log, seed, cases, guarded }) => {
  let bed: AttackBed | undefined

  beforeAll(async () => {
    if (log === 'kafka' && !(await kafkaIsAvailable())) return
    bed = await startBed({ log, guarded, sharedBroker: true })
  }, 240_000)

  afterAll(async () => {
    if (!bed) return
    await closeLogAttacks(bed)
    expect(await bed.stop()).toEqual([])
  })

  it(
    `answer all cases of seed ${seed} without a fault, and stay healthy with a valid log`,
    { timeout: 600_000 },
    async (context) => {
      if (!bed) return context.skip()
      const { faults, sick } = await attack(bed, seed, cases)
      expect(faults.map(({ index, message }) => `case ${index}: ${message}`)).toEqual([])
      expect(sick).toEqual([])
      expect(await auditLog(bed)).toEqual([])
    },
  )
})

describe('Attacks that once succeeded', () => {
  let bed: AuditBed
  beforeAll(async () => {
    bed = await startAuditBed(FULL_TESTS ? largeAudit : smallAudit)
  }, 240_000)
  afterAll(() => bed?.stop())

  it.each(auditCases.map((one) => [one.name, one] as const))(
    'have no effect now: %s',
    { timeout: 240_000 },
    (_name, one) => one.run(bed),
  )
})

describe('`familyOf`', () => {
  it('returns the same families for the same seed and numbers, and others for another seed', () => {
    const names = (seed: number): string[] =>
      Array.from({ length: 300 }, (_, index) => familyOf(seed, index, families).name)
    expect(names(7)).toEqual(names(7))
    expect(names(8)).not.toEqual(names(7))
    expect(new Set(Array.from({ length: 20 }, (_, seed) => names(seed)).flat()).size).toBe(families.length)
  })
})

describe('`parseResponses`', () => {
  it.each([
    ['HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n', [200, 404]],
    ['HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n', [200]],
    ['HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n', [100, 204]],
  ])('reads the responses %j', (bytes, statuses) => {
    const { responses, wrong } = parseResponses(Buffer.from(bytes))
    expect(wrong).toBeUndefined()
    expect(responses.map(({ status }) => status)).toEqual(statuses)
  })

  it.each([
    ['HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n'],
    ['HTTP/1.1 500 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n'],
    ['HTTP/1.1 200 OK\r\nX: a\rb\r\n\r\n'],
    ['HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok, and more'],
    ['nothing of the kind\r\n\r\n'],
  ])('reports invalid HTTP in %j', (bytes) => {
    expect(parseResponses(Buffer.from(bytes)).wrong).toBeDefined()
  })
})
