import { expect, it } from 'vitest'
import { createSettledAnswers } from '../../../src/protocol/statement/settled-answers.ts'
import { QUERY_ID } from '../../support/query-events.ts'

it('keeps the newest answers, as many and as long as it may', () => {
  const settled = createSettledAnswers({ answers: 3, characters: 20 })
  let made = 0
  const ask = (token: number, length = 1): string =>
    settled.of({ queryId: QUERY_ID, token }, token + 1, () => ({ head: 'x'.repeat(length), tail: `${++made}` })).tail
  expect([ask(0), ask(1), ask(2), ask(0)]).toEqual(['1', '2', '3', '1'])
  // A fourth: the oldest goes.
  expect([ask(3), ask(1), ask(0)]).toEqual(['4', '2', '5'])
  // A long one: all before it go.
  expect([ask(4, 19), ask(3), ask(4)]).toEqual(['6', '7', '8'])
})
