import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parseGroupsFile } from '../../../src/security/authentication/groups-file.ts'
import { isTellable } from '../../../src/security/authentication/principal.ts'
import { escapeDn } from '../../../src/security/authentication/ldap-verifier.ts'
import { comparedName, isUserName, lowerName } from '../../../src/security/authentication/user-name.ts'
import { parseUserMapping, sameName, userMappingBy } from '../../../src/security/authentication/user-mapping.ts'

const rules = (...all: readonly unknown[]) => parseUserMapping(JSON.stringify({ rules: all }))

describe('A user mapping', () => {
  it('matches the whole name, and uses the first matching rule', () => {
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

  it('can be a single pattern whose first group is the user', () => {
    expect(['alice/admin@REALM', 'x@OTHER'].map(userMappingBy('(\\w+)/.*@REALM'))).toEqual(['alice', undefined])
  })

  it('is optional: without it the name is the user', () =>
    expect([sameName('alice'), sameName(' ')]).toEqual(['alice', undefined]))

  it('refuses a result with white space or invisible characters, and does not trim it', () => {
    const mapping = rules({ pattern: 'CN=([^,]*),.*' })
    expect(['CN=alice,OU=x', 'CN=alice ,OU=x', 'CN=\u00a0alice,OU=x', 'CN=al\u00adice,OU=x'].map(mapping)).toEqual([
      'alice',
      undefined,
      undefined,
      undefined,
    ])
  })

  it('refuses to change the case of a name whose case mapping is ambiguous', () => {
    const lower = rules({ pattern: '(.*)', case: 'lower' })
    const upper = rules({ pattern: '(.*)', case: 'upper' })
    expect(['Straße', 'ALICE', 'alıce', 'ΣΑΣ', 'ΐ'].map(lower)).toEqual([undefined, 'alice', undefined, 'σας', 'ΐ'])
    expect(['straße', 'alice', 'alıce'].map(upper)).toEqual([undefined, 'ALICE', undefined])
  })

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
  ])('is invalid: %s', (text) => {
    expect(() => parseUserMapping(text)).toThrow()
  })
})

describe('A groups file', () => {
  it('gives each user their groups', () => {
    const groupsOf = parseGroupsFile('staff:alice, bob\r\n\n admin : alice,alice,\nnone:\n')
    expect(['alice', 'bob', 'constructor'].map(groupsOf)).toEqual([['staff', 'admin'], ['staff'], []])
  })

  it('is refused with the number of the wrong line', () => {
    expect(() => parseGroupsFile('a:x\nb')).toThrow('Line 2')
    expect(() => parseGroupsFile('a:x\na:y')).toThrow('Line 2')
    expect(() => parseGroupsFile(':x')).toThrow('Line 1')
    expect(() => parseGroupsFile('a:x\nb:\u00a0alice')).toThrow('Line 2')
  })

  it('is refused for Unicode white space in a name, and may begin with a byte order mark', () => {
    expect(() => parseGroupsFile('admins:alice\u2003')).toThrow('Line 1: "alice\u2003" is not a user name')
    expect(parseGroupsFile('\ufeffadmins:\talice \r\n')('alice')).toEqual(['admins'])
  })
})

describe('The name of a user', () => {
  const others = [
    '\u00a0',
    '\ufeff',
    '\u2003',
    '\u3000',
    '\u1680',
    '\u200b',
    '\u00ad',
    '\u2060',
    '\ufe0f',
    '\ufffc',
    '\ufffd',
  ]

  it('has a single spelling: names with invisible, composed or compatibility characters are invalid', () => {
    for (const name of ['alice', 'Alice', 'doe, jane', 'Zoë', '日本', 'a@b.example', 'CN=alice,O=x', "o'neil"])
      expect([name, isUserName(name)]).toEqual([name, true])
    for (const other of others)
      for (const name of [`${other}alice`, `alice${other}`, `al${other}ice`]) {
        expect([name, isUserName(name)]).toEqual([name, false])
        expect(sameName(name)).toBeUndefined()
      }
    for (const name of ['', ' alice', 'alice ', 'a  b', '\uff41lice', 'Zoe\u0308', 'ﬁnn', '\u212a', 'a\tb'])
      expect([name, isUserName(name)]).toEqual([name, false])
  })

  it('is compared in the way of a directory', () => {
    for (const name of ['ALICE', ' alice ', 'al\u00adice', '\uff41lice', 'alice\u200b', '\u3000alice', 'ａＬice'])
      expect(comparedName(name)).toBe('alice')
    expect(comparedName('doe,\u00a0 jane')).toBe('doe, jane')
    expect(comparedName('bob')).not.toBe('alice')
  })

  it('is stable when it is lowered or prepared for comparison again (drawn)', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', maxLength: 12 }), (text) => {
        const lower = lowerName(text)
        if (lower !== undefined) {
          expect(isUserName(lower)).toBe(true)
          expect(lowerName(lower)).toBe(lower)
        }
        expect(comparedName(comparedName(text))).toBe(comparedName(text))
      }),
      { numRuns: 2_000 },
    )
  })
})

it('`escapeDn` escapes the special characters of a distinguished name', () => {
  expect(escapeDn('alice,ou=admins')).toBe('alice\\,ou\\=admins')
  expect(escapeDn('#a+b;c<d>e"f\\g ')).toBe('\\#a\\+b\\;c\\<d\\>e\\"f\\\\g\\ ')
  expect(escapeDn(' é#')).toBe('\\ é#')
})

it('`isTellable` refuses control characters, lone surrogates and names above 1,000 characters', () => {
  for (const name of ['alice', 'CN=Zoë, O=日本', 'a@b.example', ' x ', 'x'.repeat(1_000)])
    expect(isTellable(name)).toBe(true)
  for (const name of ['a\0', 'a\r\nSet-Cookie: x', '\u2028', '\ud800', '\u0085', 'x'.repeat(1_001)])
    expect([name, isTellable(name)]).toEqual([name, false])
})
