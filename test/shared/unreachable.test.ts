import { expect, it } from 'vitest'
import { unreachable } from '../../src/shared/unreachable.ts'

it('`unreachable` names the value that the types exclude', () => {
  expect(() => unreachable({ kind: 'new' } as never)).toThrow('{"kind":"new"}')
})
