import { expect, it } from 'vitest'
import { exportedNames } from './support/exported-names.ts'

const all = exportedNames()

it('`exportedNames` finds exports with their uses', () => {
  expect(all.length).toBeGreaterThan(1_500)
  expect(all).toContainEqual({
    name: 'loadConfig',
    file: 'src/config/load-config.ts',
    isType: false,
    usedAtHome: false,
    imported: true,
  })
})

it('every exported name is imported somewhere', () => {
  const dead = all.filter((one) => !one.imported && !(one.isType && one.usedAtHome))
  expect(dead.map(({ file, name }) => `${file}: ${name}`)).toEqual([])
})

it('an exported name is declared in only one file', () => {
  const files = new Map<string, Set<string>>()
  for (const { name, file } of all) files.set(name, (files.get(name) ?? new Set()).add(file))
  const twice = [...files].filter(([, of]) => of.size > 1).map(([name]) => name)
  expect(twice.toSorted()).toEqual([])
})
