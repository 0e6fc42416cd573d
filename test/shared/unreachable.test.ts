import { expect, it } from 'vitest'
import { unreachable } from '../../src/shared/unreachable.ts'

it('a case that the types exclude says which value came', () => {
  expect(() => unreachable({ kind: 'new' } as never)).toThrow('{"kind":"new"}')
})
