import { randomBytes } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { KeyTree, type Secrets } from '../../../src/events/data-keys/key-tree.ts'

const DEPTH = 5
const SIZE = 2 ** DEPTH
const all = Array.from({ length: SIZE }, (_, index) => index)
const root = (): Secrets => new Map([['', randomBytes(32)]])
const keysOf = (tree: KeyTree): (string | undefined)[] => all.map((index) => tree.key(index)?.toString('hex'))

describe('A key tree', () => {
  it('has a different key at each leaf, and returns the same key in any order of calls', () => {
    const secrets = root()
    const keys = keysOf(new KeyTree(DEPTH, secrets))
    expect(new Set(keys).size).toBe(SIZE)
    for (const key of keys) expect(key).toMatch(/^[0-9a-f]{64}$/)
    const tree = new KeyTree(DEPTH, secrets)
    for (const index of [17, 3, 31, 30, 0, 16, 3]) expect(tree.key(index)?.toString('hex')).toBe(keys[index])
  })

  it('forgets exactly the given keys, in any order', () => {
    const tree = new KeyTree(DEPTH, root())
    const before = keysOf(tree)
    const gone = new Set<number>()
    for (const index of all.toSorted((a, b) => ((a * 7) % SIZE) - ((b * 7) % SIZE))) {
      expect(tree.forget(index)).toBeDefined()
      expect(tree.forget(index)).toBeUndefined()
      gone.add(index)
      const expected = before.map((key, at) => (gone.has(at) ? undefined : key))
      expect(keysOf(tree)).toEqual(expected)
      // A tree that is read from the kept secrets has exactly these keys, too.
      expect(keysOf(new KeyTree(DEPTH, tree.secrets))).toEqual(expected)
      expect(tree.forgotten.toSorted((a, b) => a - b)).toEqual([...gone].sort((a, b) => a - b))
    }
    expect([...tree.secrets.values()].filter((secret) => secret !== null)).toEqual([])
  })

  it('returns the changes that the table must store for a forgotten key', () => {
    const tree = new KeyTree(3, root())
    const kept = new Map(tree.secrets)
    for (const index of [5, 4, 0]) {
      const { removed, added } = tree.forget(index)!
      expect(kept.delete(removed)).toBe(true)
      for (const [path, secret] of added) kept.set(path, secret)
      expect(new Map(kept)).toEqual(tree.secrets)
    }
    expect([...kept.keys()].sort()).toEqual(['000', '001', '01', '100', '101', '11'])
  })
})
