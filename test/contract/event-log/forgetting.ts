import { expect } from 'vitest'
import { audit, collect, events, expectKept, me, readAll } from '../../support/event-log/log-fixture.ts'
import type { ContractTest } from './contract-test.ts'

export const forgettingTests: readonly ContractTest[] = [
  {
    number: 45,
    title: 'forgets the data of one stream for every reader, and keeps later events and other streams',
    async run(fixture) {
      const log = await fixture.open()
      await log.claim(me)
      const acknowledged = [await log.append('s', 0, events(2)), await log.append('other', 0, events(1))]
      const long = log.append('s', 2, [{ ...events(1)[0]!, data: { text: 'x'.repeat(20_000) } }])
      // An event that is on its way at the time of the call may be in the result.
      const found = await log.forgettable('s')
      acknowledged.push(await long)
      expect(found.map(({ sequence }) => sequence)).toEqual([1, 2, 3].slice(0, found.length))
      const sequences = [1, 2, 3]
      expect((await log.forgettable('s')).map(({ sequence }) => sequence)).toEqual(sequences)
      acknowledged.push(await log.append('s', 3, events(1)))
      await log.forget('s', sequences)
      await log.forget('s', [])
      acknowledged.push(await log.append('s', 4, events(1)), await log.append('other', 1, events(1)))
      const other = await fixture.open()
      const seen = [await readAll(log), await readAll(other)]
      for (const reader of [log, other])
        seen.push([...(await collect(reader.readStream('s'))), ...(await collect(reader.readStream('other')))])
      for (const all of seen) {
        const own = all.filter(({ stream }) => stream === 's')
        expect(own.map(({ forgotten = false }) => forgotten)).toEqual([true, true, true, false, false])
        for (const event of own) expect(event.data === null).toBe(event.forgotten === true)
        expect(own.filter(({ forgotten }) => forgotten).map(({ stored }) => stored)).toEqual(['', '', ''])
        expect(all.some(({ stream, forgotten }) => stream === 'other' && forgotten)).toBe(false)
      }
      // The hashes and the acknowledged events stay valid.
      expectKept(await audit(fixture), acknowledged)
    },
  },
]
