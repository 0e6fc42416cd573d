import { randomBytes } from 'node:crypto'
import fc from 'fast-check'
import pg from 'pg'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Appended, Event } from '../../../src/events/event-log.ts'
import { anEvent, audit, events, expectKept, me, type LogFixture } from '../../support/event-log/log-fixture.ts'
import { postgresAdapter } from '../../support/event-log/postgres-fixture.ts'

/*
 * A refused or slow append fails or succeeds alone: appends beside and behind it continue, and the head of a stream is
 * its last accepted event.
 */

let fixture: LogFixture
let client: pg.Client

beforeEach(async () => {
  fixture = await postgresAdapter.fixture()
  client = new pg.Client(fixture.details['url'])
  await client.connect()
})
afterEach(async () => {
  await client.end()
  await fixture.close()
})

/** Makes the server run `does` for every insert of an event whose data contains the word. */
async function onWord(word: string, does: string): Promise<void> {
  await client.query(
    `create function public.on_${word}() returns trigger language plpgsql as
     $$ begin if position('${word}' in new.data) > 0 then ${does} end if; return new; end $$`,
  )
  await client.query(
    `create trigger on_${word} before insert on quipu_log.events for each row execute function public.on_${word}()`,
  )
}

describe('An append to Postgres', () => {
  it.each(['54000', '22021', '23502', '21000'])(
    'fails alone if Postgres always refuses it: SQLSTATE %s',
    async (state) => {
      await onWord('poison', `raise exception 'no' using errcode = '${state}';`)
      const log = await fixture.open()
      await log.claim(me)
      await log.append('known', 0, events(2))
      // All appends are sent together. The append behind the bad one in the same stream depends on it.
      const good = Array.from({ length: 20 }, (_, index) => log.append(`s${index}`, 0, events(2)))
      const bad = log.append('known', 2, [anEvent(), anEvent('poison')])
      const onBad = log.append('known', 4, events(1))
      const badNew = log.append('new', 0, [anEvent('poison')])
      const more = Array.from({ length: 20 }, (_, index) => log.append(`s${index}`, 2, events(1)))
      await Promise.all([
        expect(bad).rejects.toMatchObject({ name: 'Unstorable', message: expect.stringContaining(state) }),
        expect(onBad).rejects.toMatchObject({ name: 'SequenceConflict', actual: 2 }),
        expect(badNew).rejects.toMatchObject({ name: 'Unstorable' }),
      ])
      const kept = await Promise.all([...good, ...more])
      kept.push(await log.append('known', 2, events(1)), await log.append('new', 0, events(1)))
      expectKept(await audit(fixture), kept)
    },
  )

  it('succeeds after several seconds, and later appends follow it', async () => {
    await onWord('slow', 'perform pg_sleep(4);')
    const log = await fixture.open()
    await log.claim(me)
    const kept = await Promise.all([
      log.append('a', 0, events(1)),
      log.append('b', 0, [anEvent('slow')]),
      log.append('c', 0, events(1)),
      log.append('b', 1, events(1)),
    ])
    expectKept(await audit(fixture), kept)
  })

  it('gets a longer transaction timeout with each attempt after Postgres canceled it', async () => {
    await onWord(
      'slow',
      `if current_setting('transaction_timeout')::interval < '20 s' then raise exception 'cut' using errcode = '25P04'; end if;`,
    )
    const log = await fixture.open()
    await log.claim(me)
    const kept = [await log.append('b', 0, [anEvent('slow')])]
    expectKept(await audit(fixture), kept)
  })

  it('is refused before it is sent if its text cannot be stored unchanged', async () => {
    const log = await fixture.open()
    await log.claim(me)
    for (const stream of ['node/\ud800', 'a\nb', 'a\0', 'x'.repeat(256), ''])
      await expect(log.append(stream, 0, events(1))).rejects.toMatchObject({ name: 'Unstorable' })
    const deep: unknown[] = []
    for (let at = deep, level = 0; level < 100_000; level++) at.push((at = []))
    await expect(log.append('s', 0, [anEvent(deep)])).rejects.toMatchObject({ name: 'Unstorable' })
    await expect(log.append('s', 0, [anEvent({ n: 1n })])).rejects.toMatchObject({ name: 'Unstorable' })
    await expect(log.append('s', 0, [{ ...anEvent(), traceparent: 'a\0b' }])).rejects.toMatchObject({
      name: 'Unstorable',
    })
    const kept = [await log.append('s', 0, events(1))]
    expectKept(await audit(fixture), kept)
  })
})

it('The Postgres log accepts a stream name of 255 characters with four bytes each', async () => {
  const log = await fixture.open()
  await log.claim(me)
  const stream = Array.from({ length: 255 }, (_, index) =>
    String.fromCodePoint(0x1f300 + ((index * 7919) % 1000)),
  ).join('')
  const kept = [await log.append(stream, 0, events(1))]
  expectKept(await audit(fixture), kept)
})

it('The sequence of a stream advances only with accepted appends, among any refused ones', async () => {
  await onWord('poison', `raise exception 'no' using errcode = '54000';`)
  const log = await fixture.open()
  await log.claim(me)
  const kinds = fc.constantFrom<'good' | 'poison' | 'large' | 'deep' | 'wrong'>(
    'good',
    'good',
    'good',
    'poison',
    'large',
    'deep',
    'wrong',
  )
  const large = randomBytes(7 << 20).toString('base64')
  const of = (kind: string): Event => anEvent(kind === 'large' ? { large } : kind === 'deep' ? { n: 1n } : kind)
  const at = new Map<string, number>()
  const kept: Appended[] = []
  await fc.assert(
    fc.asyncProperty(fc.array(fc.tuple(fc.integer({ min: 0, max: 3 }), kinds), { maxLength: 12 }), async (steps) => {
      // Each append waits for the previous one of its stream, as in an aggregate; the streams run concurrently.
      await Promise.all(
        [0, 1, 2, 3].map(async (number) => {
          const stream = `s${number}`
          for (const [, kind] of steps.filter(([one]) => one === number)) {
            const expected = at.get(stream) ?? 0
            const appended = log.append(stream, kind === 'wrong' ? expected + 1 : expected, [anEvent(), of(kind)])
            const done = await appended.then(
              (one) => kept.push(one),
              () => undefined,
            )
            expect(done !== undefined).toBe(kind === 'good')
            if (kind === 'good') at.set(stream, expected + 2)
          }
        }),
      )
    }),
    { numRuns: 15 },
  )
  expectKept(await audit(fixture), kept)
})
