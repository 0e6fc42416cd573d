import { describe, expect, it } from 'vitest'
import { shadowText } from '../../src/cli/replay-reports.ts'
import { parseShadowFlags } from '../../src/cli/shadow-flags.ts'
import { createTally } from '../../src/replay/tally.ts'

const TO = ['--to', 'http://127.0.0.1:9']

describe('The flags of `quipu shadow`', () => {
  it.each([
    [[], '--to is missing'],
    [TO, '--rate must be a rate such as 5/s'],
    [[...TO, '--rate', '0/s'], '--rate must be above 0/s'],
    [[...TO, '--rate', '5/s', '--duration', 'long'], '--duration must be a time such as 90s'],
    [[...TO, '--rate', '5/s', '--sample', '10'], '--sample must be a percentage such as 5%'],
    [[...TO, '--rate', '5/s', '--user-map', 'ann'], '--user-map ann: must be name=value'],
    [[...TO, '--rate', '5/s', '--source', 'quipu replay'], 'a shadow does not mirror replays'],
  ])('are refused if they are %j', (args, message) => {
    expect(() => parseShadowFlags(args)).toThrow(message)
  })

  it('have units, shares and maps of names', () => {
    const given = [
      '--rate',
      '0.5/s',
      '--duration',
      '8h',
      '--sample',
      '0.1',
      '--user-map',
      'ann=bob',
      '--baseline-rate',
      '0/s',
    ]
    expect(
      parseShadowFlags([...TO, ...given, '--from', 'http://127.0.0.1:8/log', '--catalog-map', 'A=b']),
    ).toMatchObject({
      rate: 0.5,
      baselineRate: 0,
      durationMs: 8 * 3_600_000,
      sample: 0.1,
      users: new Map([['ann', 'bob']]),
      catalogs: new Map([['a', 'b']]),
      statementTimeoutMs: 600_000,
    })
  })
})

it('the text of a shadow has no control characters of a message', () => {
  const tally = createTally()
  const there = { name: 'FAILED', message: 'no\n\u001b[2JSAME 9' }
  tally.add({ queryId: 'q', createdAt: '', verdict: 'FAILED_THERE', there, thereQueryId: 't' })
  const counts = { finished: 1, writes: 0, notSampled: 0, dropped: 0, ignored: 0, left: 0 }
  expect(shadowText(tally, counts)).toMatch(/^FAILED_THERE q, there t: FAILED: no \[2JSAME 9$/m)
})
