import { describe, expect, it } from 'vitest'
import { parseGroupsFile } from '../../../src/security/authentication/groups-file.ts'
import { isTellable } from '../../../src/security/authentication/principal.ts'
import { escapeDn } from '../../../src/security/authentication/ldap-verifier.ts'
import { parseUserMapping, sameName, userMappingBy } from '../../../src/security/authentication/user-mapping.ts'

const rules = (...all: readonly unknown[]) => parseUserMapping(JSON.stringify({ rules: all }))

describe('a user mapping', () => {
  it('takes the whole name, and the first rule that fits', () => {
    const mapping = rules(
      { pattern: 'test@example\\.com', allow: false },
      { pattern: '(.*?)@example\\.com' },
      { pattern: 'CN=(?<name>[^,]+),OU=(.*)', user: '${name}_$2', case: 'LOWER' },
      { pattern: 'up (.*)', user: 'u\\$$1', case: 'upper' },
      { pattern: 'empty(.*)' },
    )
    expect(
      [
        'test@example.com',
        'alice@example.com',
        'alice@example.com.evil',
        'CN=Alice,OU=Ops',
        'up x',
        'empty',
        'bob',
        'a\nb@example.com',
      ].map((name) => mapping(name)),
    ).toEqual([undefined, 'alice', undefined, 'alice_ops', 'U$X', undefined, undefined, undefined])
  })

  it('may be one pattern, whose first group is the user', () => {
    expect(['alice/admin@REALM', 'x@OTHER'].map(userMappingBy('(\\w+)/.*@REALM'))).toEqual(['alice', undefined])
  })

  it('is not there', () => expect([sameName('alice'), sameName(' ')]).toEqual(['alice', undefined]))

  it.each([
    ['{}'],
    ['{"rules": []}'],
    ['{"rules": [{"user": "x"}]}'],
    ['{"rules": [{"pattern": "("}]}'],
    ['{"rules": [{"pattern": "x"}]}'],
    ['{"rules": [{"pattern": "(x)", "user": "$2"}]}'],
    ['{"rules": [{"pattern": "(x)", "user": "${n}"}]}'],
    ['{"rules": [{"pattern": "(x)", "user": "$"}]}'],
    ['{"rules": [{"pattern": "(x)", "case": "title"}]}'],
    ['{"rules": [{"pattern": "(x)", "alow": false}]}'],
  ])('is refused: %s', (text) => {
    expect(() => parseUserMapping(text)).toThrow()
  })
})

describe('a groups file', () => {
  it('gives each user his groups', () => {
    const groupsOf = parseGroupsFile('staff:alice, bob\r\n\n admin : alice,alice,\nnone:\n')
    expect(['alice', 'bob', 'constructor'].map(groupsOf)).toEqual([['staff', 'admin'], ['staff'], []])
  })

  it('is refused by its line', () => {
    expect(() => parseGroupsFile('a:x\nb')).toThrow('Line 2')
    expect(() => parseGroupsFile('a:x\na:y')).toThrow('Line 2')
    expect(() => parseGroupsFile(':x')).toThrow('Line 1')
  })
})

it('a name in a distinguished name is a name there', () => {
  expect(escapeDn('alice,ou=admins')).toBe('alice\\,ou\\=admins')
  expect(escapeDn('#a+b;c<d>e"f\\g ')).toBe('\\#a\\+b\\;c\\<d\\>e\\"f\\\\g\\ ')
  expect(escapeDn(' é#')).toBe('\\ é#')
})

it('a name that cannot be told as itself is none', () => {
  for (const name of ['alice', 'CN=Zoë, O=日本', 'a@b.example', ' x ', 'x'.repeat(1_000)])
    expect(isTellable(name)).toBe(true)
  for (const name of ['a\0', 'a\r\nSet-Cookie: x', '\u2028', '\ud800', '\u0085', 'x'.repeat(1_001)])
    expect([name, isTellable(name)]).toEqual([name, false])
})
