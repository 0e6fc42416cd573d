import { randomBytes } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import { expect, it } from 'vitest'
import { checkOrder } from '../../src/erasure/check-order.ts'
import { storableText } from '../../src/events/storable-text.ts'
import { searchFor, subjectHash, subjectSchema } from '../../src/erasure/subject.ts'

const value = searchFor({ value: `O'Brien "Eva" \\ é@example.com` })

it.each([
  ['as it is', `x O'Brien "Eva" \\ é@example.com y`],
  ['as a literal of SQL', `WHERE a = 'O''Brien "Eva" \\ é@example.com'`],
  ['in JSON', JSON.stringify({ sql: `x O'Brien "Eva" \\ é@example.com y` })],
  ['in JSON in JSON', JSON.stringify({ data: JSON.stringify({ sql: `O'Brien "Eva" \\ é@example.com` }) })],
  ['in an address', `https://x/?q=${encodeURIComponent(`O'Brien "Eva" \\ é@example.com`)}`],
  ['in another normal form', `O'Brien "Eva" \\ é@example.com`.normalize('NFD')],
  [
    'in JSON of a program that replaces all but ASCII',
    `{"sql":"/* {\\"user\\": \\"O'Brien \\\\\\"Eva\\\\\\" \\\\\\\\ \\\\u00e9@example.com\\"} */"}`,
  ],
  ['in an address with more codes', `user='O%27Brien%20%22Eva%22%20%5C%20%C3%A9%40example%2Ecom'`],
  ['in an address with fewer codes', `https://x/?q=O'Brien+"Eva"+%5C+%c3%a9@example.com`],
  [
    'in packed data',
    `{"data":"${gzipSync(JSON.stringify({ sql: `O'Brien "Eva" \\ é@example.com` })).toString('base64')}"}`,
  ],
])('a search for a value finds it %s', (_, text) => {
  expect(value.isIn(text)).toBe(true)
})

it('a search for a value does not find a part of it', () => {
  expect(value.isIn(`O'Brien "Eva"`)).toBe(false)
  expect(value.isIn('H4sIAAAAAAAAAAAAAAAAAAAAAAAAAAAA')).toBe(false)
})

it.each([
  ['"user":"eva"', true],
  ['SELECT 1 -- eva', true],
  [String.raw`{"sql":"a\neva\tb"}`, true],
  ["user = 'eva'", true],
  ['evaluate', false],
  ['medieva', false],
  ['eva_2', false],
  ['évaeva', false],
  ['evaluate eva', true],
])('a search for the user eva in %s returns %s', (text, found) => {
  expect(searchFor({ user: 'eva' }).isIn(text)).toBe(found)
})

it.each([[{}], [{ user: 'a', value: 'abc' }], [{ value: 'a-1' }], [{ value: '%__%' }], [{ user: '' }]])(
  'a subject cannot be %j',
  (given) => {
    expect(subjectSchema.safeParse(given).success).toBe(false)
  },
)

it('the hash of a subject depends on the key and on its kind', () => {
  const key = Buffer.alloc(32, 1)
  const hash = subjectHash({ user: 'eva' }, key)
  expect(hash).toMatch(/^[0-9a-f]{64}$/)
  expect(subjectHash({ value: 'eva' }, key)).not.toBe(hash)
  expect(subjectHash({ user: 'eva' }, Buffer.alloc(32, 2))).not.toBe(hash)
})

it.each([
  [{ value: 'session' }, false],
  [{ value: 'FINISHED' }, false],
  [{ value: 'preparedState' }, false],
  [{ user: 'session' }, true],
  [{ value: 'QueryCreated' }, false],
  [{ value: 'ClusterStateAsked' }, false],
  [{ value: 'prevhash' }, false],
  [{ value: 'true' }, false],
])('an order for %j is refused, because all events contain the text', (subject, mentions) => {
  expect(() => checkOrder({ subject, mentions })).toThrow('field name')
})

it.each([
  [{ value: 'eva.lund@example.com' }, true],
  [{ user: 'session' }, false],
  [{ user: 'eva' }, true],
  [{ user: '4711' }, true],
])('an order for %j is accepted', (subject, mentions) => {
  checkOrder({ subject, mentions, reason: 'request 7' })
})

it.each(['*', ',', ' ', '1', '42', '.*'])('an order for the mentions of user %j is refused', (user) => {
  expect(() => checkOrder({ subject: { user }, mentions: true })).toThrow('without a letter or three digits')
  checkOrder({ subject: { user }, mentions: false })
})

it('an order whose reason names the subject is refused', () => {
  const order = { subject: { value: 'eva.lund@example.com' }, mentions: false, reason: 'for eva.lund@example.com' }
  expect(() => checkOrder(order)).toThrow('The reason is recorded')
})

it('a search for a user finds a name that follows the code of a character, and a name with such a code', () => {
  expect(searchFor({ user: 'eva' }).isIn(`user='x%20eva'`)).toBe(true)
  expect(searchFor({ user: 'éva' }).isIn(String.raw`{"user": "\u00e9va"}`)).toBe(true)
  expect(searchFor({ user: 'eva' }).isIn('x%C3%A9eva')).toBe(false)
})

it('a search finds an address with the slashes of PHP', () => {
  expect(searchFor({ value: 'https://x.example/eva' }).isIn(String.raw`{"url":"https:\/\/x.example\/eva"}`)).toBe(true)
})

it.each(['asked by Eva.Lund@Example.com', 'eva.lund%40example.com', 'EVA.LUND@EXAMPLE.COM'])(
  'an order with the reason %s is refused',
  (reason) => {
    const subject = { value: 'eva.lund@Example.com' }
    expect(() => checkOrder({ subject, mentions: false, reason })).toThrow('must not contain')
  },
)

it('a search finds a value in packed data of some megabytes', () => {
  const sql = `${randomBytes(8 << 20).toString('hex')} eva.lund`
  const packed = gzipSync(JSON.stringify({ sql })).toString('base64')
  expect(searchFor({ value: 'eva.lund' }).isIn(JSON.stringify({ data: packed }))).toBe(true)
  expect(searchFor({ value: 'olga.berg' }).isIn(JSON.stringify({ data: packed }))).toBe(false)
})

it('a search passes a long row of backslashes once', { timeout: 20_000 }, () => {
  const text = JSON.stringify({ sql: `${'\\'.repeat(150_000)} %41 \\\\u00e9va` })
  expect(searchFor({ user: 'éva' }).isIn(text)).toBe(true)
  expect(searchFor({ user: 'eva' }).isIn(text)).toBe(false)
})

it.each([
  ['a line separator', 'eva\u2028lund'],
  ['a paragraph separator', 'eva\u2029lund'],
  ['half of a pair', 'eva\ud83dlund'],
  ['the character 0', 'eva\u0000lund'],
  ['a line feed', 'eva\nlund'],
  ['signs of a pattern', 'e.*[a](lund)+?$'],
])('a search for a value with %s finds it in JSON, in JSON in JSON and in the read models', (_, given) => {
  const search = searchFor({ value: given })
  const json = JSON.stringify({ sql: `SELECT '${given}'` })
  expect([json, JSON.stringify({ data: json })].map((text) => search.isIn(text))).toEqual([true, true])
  expect(search.isIn(storableText(`SELECT '${given}'`))).toBe(true)
  expect(search.isIn(JSON.stringify({ sql: 'SELECT evalund, e, a, lund' }))).toBe(false)
})
