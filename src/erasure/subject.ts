import { createHmac } from 'node:crypto'
import { gunzipSync } from 'node:zlib'
import { z } from 'zod'
import { storableText } from '../events/storable-text.ts'

/** Shortest text that may be searched for, in characters: shorter ones occur in the data of most queries. */
const SHORTEST = 3
const LONGEST = 1000

const searched = z
  .string()
  .max(LONGEST, `At most ${LONGEST} characters can be searched for`)
  .refine((text) => [...text.matchAll(/[\p{L}\p{N}]/gu)].length >= SHORTEST, {
    error: `The text must have at least ${SHORTEST} letters or digits`,
  })

/** The subject of an erasure: all data of a user, or all data that contains a value. */
export const subjectSchema = z.union([
  z.strictObject({ user: z.string().min(1).max(LONGEST) }),
  z.strictObject({ value: searched }),
])
export type Subject = Readonly<z.infer<typeof subjectSchema>>

export type SubjectKind = 'user' | 'value'

export function subjectKind(subject: Subject): SubjectKind {
  return 'user' in subject ? 'user' : 'value'
}

function subjectText(subject: Subject): string {
  return 'user' in subject ? subject.user : subject.value
}

/** Hash of a subject: it says whether two erasures had the same subject, and nothing to a reader without the key. */
export function subjectHash(subject: Subject, key: Buffer): string {
  return createHmac('sha256', key)
    .update(`${subjectKind(subject)}\n${subjectText(subject)}`)
    .digest('hex')
}

/** Finds a subject in texts. */
export interface SubjectSearch {
  readonly subject: Subject
  /** The spellings that are searched for. A text without any of them does not contain the subject. */
  readonly spellings: readonly string[]
  /** Whether a text, or a packed text in it, contains the subject. A user's name must be a whole word. */
  isIn(text: string): boolean
}

/** How often a text may be quoted as JSON inside JSON: the line of an archive holds a record, an envelope and its data. */
const JSON_LEVELS = 4

export function searchFor(subject: Subject): SubjectSearch {
  const spellings = spellingsOf(subjectText(subject))
  const isUser = 'user' in subject
  const contains = (text: string): boolean =>
    spellings.some((spelling) => (isUser ? hasWord(text, spelling) : text.includes(spelling)))
  const isInPlain = (text: string): boolean => contains(text) || decodedTexts(text).some(contains)
  return {
    subject,
    spellings,
    isIn(text) {
      if (isInPlain(text)) return true
      for (const unpacked of packedTexts(text)) if (isInPlain(unpacked)) return true
      return false
    },
  }
}

/**
 * Spellings of a value in SQL, in JSON, in addresses, in the read models, and in both normal forms of Unicode. Programs
 * differ in which characters they replace by codes: `decodedTexts` finds the other spellings.
 */
function spellingsOf(value: string): readonly string[] {
  const spellings = new Set<string>()
  for (const form of [value, value.normalize('NFC'), value.normalize('NFD'), storableText(value)]) {
    const percent = encodeURIComponent(Buffer.from(form).toString())
    for (const quoted of [form, form.replaceAll("'", "''"), form.replaceAll('"', '""'), form.replaceAll('/', '\\/')]) {
      let text = quoted
      for (let level = 0; level <= JSON_LEVELS; level++) {
        spellings.add(text)
        text = JSON.stringify(text).slice(1, -1)
      }
    }
    for (const address of [percent, percent.replaceAll('%20', '+')]) {
      spellings.add(address)
      spellings.add(address.replaceAll(/%[0-9A-F]{2}/g, (code) => code.toLowerCase()))
    }
  }
  // Neither JSON nor a text in Postgres can contain the character 0 itself.
  return [...spellings].filter((spelling) => !spelling.includes('\0'))
}

/** Matches codes of characters in addresses and in JSON. Valid in JavaScript, in Postgres and in DuckDB. */
export const CODED = String.raw`%[0-9A-Fa-f]{2}|\\u[0-9A-Fa-f]{4}`
/** Matches from the first of several backslashes only: a match from each of them would take quadratic time. */
const CODES_OF_JSON = /(?<!\\)\\+u([0-9A-Fa-f]{4})/g
const CODES_OF_ADDRESSES = /(?:%[0-9A-Fa-f]{2})+/g
const IS_CODED = new RegExp(CODED)

/** The text with codes of characters replaced by the characters, also where `+` stands for a blank. */
function decodedTexts(text: string): readonly string[] {
  if (!IS_CODED.test(text)) return []
  const decoded = text
    .replaceAll(CODES_OF_JSON, (_, code: string) => String.fromCharCode(Number.parseInt(code, 16)))
    .replaceAll(CODES_OF_ADDRESSES, (codes) => Buffer.from(codes.replaceAll('%', ''), 'hex').toString())
  return decoded.includes('+') ? [decoded, decoded.replaceAll('+', ' ')] : [decoded]
}

const PART_OF_WORD = /[\p{L}\p{N}\p{M}_]/u

/** Whether a text contains a word that is not part of a longer word. */
function hasWord(text: string, word: string): boolean {
  for (let at = text.indexOf(word); at >= 0; at = text.indexOf(word, at + 1)) {
    const before = text.slice(Math.max(0, at - 2), at)
    // In JSON, the letter after a backslash belongs to the code of a control character.
    const begins = /\\[nrtbf]$/.test(before) || !PART_OF_WORD.test(lastCharacter(before))
    const after = text.codePointAt(at + word.length)
    if (begins && (after === undefined || !PART_OF_WORD.test(String.fromCodePoint(after)))) return true
  }
  return false
}

function lastCharacter(text: string): string {
  return [...text].at(-1) ?? ''
}

/** The beginning of gzip data in base64, as large data of events is stored. */
export const PACKED = 'H4sI'
const END_OF_PACKED = /[^A-Za-z0-9+/]/g
/** Limit of one unpacked text. */
const MAX_UNPACKED_BYTES = 256 << 20

/** Unpacks one text at a time: each may have hundreds of megabytes. */
function* packedTexts(text: string): Generator<string> {
  for (let at = text.indexOf(PACKED); at >= 0;) {
    // An expression for the whole data would overflow its stack at some megabytes.
    END_OF_PACKED.lastIndex = at
    const end = END_OF_PACKED.exec(text)?.index ?? text.length
    const unpacked = unpackedText(text.slice(at, end))
    if (unpacked !== undefined) yield unpacked
    at = text.indexOf(PACKED, end)
  }
}

/** @returns undefined for letters that only look like packed data */
function unpackedText(packed: string): string | undefined {
  try {
    return gunzipSync(Buffer.from(packed, 'base64'), { maxOutputLength: MAX_UNPACKED_BYTES }).toString()
  } catch {
    return undefined
  }
}
