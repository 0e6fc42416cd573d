import { hash } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import fc from 'fast-check'
import {
  fold,
  formatHeader,
  parseHeader,
  zeroState,
  type LogRecord,
  type RecordHeader,
  type State,
  type Verdict,
} from '../../src/events/fold.ts'

const seen = { offset: 0n, state: zeroState }
const claim = (epoch: number, writer: string): LogRecord => ({
  header: { kind: 'epoch', epoch, writer, number: 0, seen },
  hash: '',
})
const event = (epoch: number, writer: string, number: number): LogRecord => ({
  header: { kind: 'event', epoch, writer, number, seen },
  hash: `${epoch}${writer}${number}`,
})
const foreign: LogRecord = { header: undefined, hash: '' }

function verdicts(records: readonly LogRecord[]): Verdict[] {
  let state = zeroState
  return records.map((record) => {
    const folded = fold(state, record)
    state = folded.state
    return folded.verdict
  })
}

describe('`fold`', () => {
  it.each<[string, LogRecord[], Verdict[]]>([
    [
      'accepts events of the writer with the current claim',
      [claim(1, 'a'), event(1, 'a', 1), event(1, 'a', 2)],
      ['epoch', 'valid', 'valid'],
    ],
    ['drops a late copy', [claim(1, 'a'), event(1, 'a', 1), event(1, 'a', 1)], ['epoch', 'valid', 'duplicate']],
    [
      'drops an event that overtook a lost event',
      [claim(1, 'a'), event(1, 'a', 2), event(1, 'a', 1)],
      ['epoch', 'gap', 'valid'],
    ],
    [
      'drops events of a replaced writer',
      [claim(1, 'a'), claim(2, 'b'), event(1, 'a', 1)],
      ['epoch', 'epoch', 'stale'],
    ],
    [
      'lets the first of two claims of an epoch win',
      [claim(1, 'a'), claim(1, 'b'), event(1, 'b', 1)],
      ['epoch', 'stale', 'stale'],
    ],
    ['drops a late claim', [claim(6, 'b'), claim(5, 'a'), event(6, 'b', 1)], ['epoch', 'stale', 'valid']],
    [
      'restarts the numbers with each epoch',
      [claim(1, 'a'), event(1, 'a', 1), claim(2, 'a'), event(2, 'a', 1)],
      ['epoch', 'valid', 'epoch', 'valid'],
    ],
    [
      'ignores foreign records',
      [foreign, claim(1, 'a'), foreign, event(1, 'a', 1)],
      ['foreign', 'epoch', 'foreign', 'valid'],
    ],
    ['drops events before the first claim', [event(1, 'a', 1), claim(1, 'a')], ['stale', 'epoch']],
  ])('%s', (_, records, expected) => {
    expect(verdicts(records)).toEqual(expected)
  })

  it('chains the hashes of valid events, and counts them over all epochs', () => {
    let state: State = zeroState
    for (const record of [claim(1, 'a'), event(1, 'a', 1), event(1, 'a', 1), claim(2, 'b'), event(2, 'b', 1)])
      state = fold(state, record).state
    const first = hash('sha256', '1a1').slice(0, 32)
    expect(state).toEqual({
      epoch: 2,
      writer: 'b',
      number: 1,
      count: 2,
      hash: hash('sha256', `${first}2b1`).slice(0, 32),
    })
  })

  it('accepts each number once and in order, among any repeated and reordered records', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.integer({ min: 1, max: 3 }), fc.integer({ min: 1, max: 6 }))), (sent) => {
        const records = [
          claim(1, 'w'),
          ...sent.map(([epoch, number]) => (number === 6 ? claim(epoch, 'w') : event(epoch, 'w', number))),
        ]
        const all = verdicts(records)
        let epoch = 0
        let number = 0
        records.forEach((record, index) => {
          if (all[index] === 'epoch') {
            expect(record.header!.epoch).toBeGreaterThan(epoch)
            epoch = record.header!.epoch
            number = 0
          } else if (all[index] === 'valid') {
            expect(record.header!.epoch).toBe(epoch)
            expect(record.header!.number).toBe(++number)
          }
        })
      }),
    )
  })
})

describe('The header of a record', () => {
  it('survives a round trip through its text', () => {
    const header: RecordHeader = {
      kind: 'event',
      epoch: 7,
      writer: 'f3c1',
      number: 42,
      seen: { offset: 123_456_789_012n, state: { epoch: 7, writer: 'f3c1', number: 41, count: 99, hash: 'ab' } },
    }
    expect(parseHeader(formatHeader(header))).toEqual(header)
  })

  it.each([
    '',
    'event',
    'event|1|w|1|0|0||0|0',
    'other|1|w|1|0|0||0|0|',
    'event|x|w|1|0|0||0|0|',
    'event|1||1|0|0||0|0|',
    'event|1|w|1|-1|0||0|0|',
  ])('is undefined for the invalid text %j', (text) => expect(parseHeader(text)).toBeUndefined())
})
