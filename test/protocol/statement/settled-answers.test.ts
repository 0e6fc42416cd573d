import { expect, it } from 'vitest'
import { createSettledAnswers } from '../../../src/protocol/statement/settled-answers.ts'
import { QUERY_ID } from '../../support/query-events.ts'

it('the cache of settled answers keeps the newest answers within its limits of count and length', () => {
  const settled = createSettledAnswers({ answers: 3, characters: 20 })
  let made = 0
  const ask = (token: number, length = 1): string =>
    settled.of({ queryId: QUERY_ID, token }, token + 1, () => ({ head: 'x'.repeat(length), tail: `${++made}` })).tail
  expect([ask(0), ask(1), ask(2), ask(0)]).toEqual(['1', '2', '3', '1'])
  // The fourth answer replaces the oldest.
  expect([ask(3), ask(1), ask(0)]).toEqual(['4', '2', '5'])
  // A long answer replaces all earlier answers.
  expect([ask(4, 19), ask(3), ask(4)]).toEqual(['6', '7', '8'])
})
