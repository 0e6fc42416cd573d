import { tokenSet } from './keywords.ts'
import { scanToken, skipBlank, startScan } from './lexer.ts'

export interface RedactedText {
  readonly sql: string
  readonly redacted: boolean
}

const REPLACEMENT = "'***'"

/** Whether the text can hold anything to redact at all; most statements end here. */
const suspicious =
  /pass|pwd|secret|token|credential|key|identified|bearer|basic |authorization|AKIA|eyJ|:\/\/[^\s/?#'"@]*@/i

/** Names of secrets, as whole words of a name written in any style: `db_password`, `s3.aws-secret-key`, `apiToken`. */
const secretWords = tokenSet(`
  password passwd pwd passphrase passcode secret secrets token tokens credential credentials apikey secretkey accesskey
  privatekey authorization identified`)

/** Keys of data, not of doors. */
const plainKeys = /(?:^|_)(?:partition|primary|foreign|sort|group|join|row|order|cluster|hash|surrogate|natural)key$/

function isSecretName(name: string): boolean {
  const words = name
    .replace(/([a-z0-9])([A-Z])/g, '$1_$2')
    .toLowerCase()
    .split(/[^a-z0-9]+/)
  if (words.some((word) => secretWords.has(word))) return true
  if (words.some((word) => word.endsWith('password') || word.endsWith('secret') || word.endsWith('token'))) return true
  const last = words.at(-1)
  return last === 'pass' || (last === 'key' && !plainKeys.test(words.slice(-2).join('')))
}

/**
 * A name of a secret followed by a value, inside a literal or a comment: `"password": "x"`, `token=x`. All repetitions
 * are bounded: the time stays linear whatever the text.
 */
const assignment =
  /(?:pass(?:word|wd|phrase)?|pwd|secret|token|credentials?|(?:api|access|private|secret)[-_ ]?key|authorization)\w{0,40}["']{0,4}\s{0,20}[:=]|identified\s{1,20}by/i
const assignedValue =
  /((?:pass(?:word|wd|phrase)?|pwd|secret|token|credentials?|(?:api|access|private|secret)[-_ ]?key|authorization)["']?\s{0,20}(?::|=>?)\s{0,20})(?:(?:bearer|basic)\s{1,20})?[^\s,;]+/gi
const knownShapes = /^(?:bearer|basic)\s+\S|AKIA[0-9A-Z]{12}|eyJ[\w-]{8,}\.[\w-]+\.|-----BEGIN [A-Z ]{0,20}PRIVATE KEY/i
const userInfo = /(:\/\/)[^\s/?#'"@]+@/g

const literals: ReadonlySet<string> = new Set(['STRING_LITERAL', 'UNICODE_STRING', 'BINARY_LITERAL'])
const numbers: ReadonlySet<string> = new Set(['INTEGER_VALUE', 'DECIMAL_VALUE', 'DOUBLE_VALUE', 'DIGIT_IDENTIFIER'])

/** What may stand between a name and its literal. */
const connectors = tokenSet(`
  = <> < <= > >= => : ( [ , ) ] . || + - UNRECOGNIZED LIKE IN NOT IS BY TO AS VALUE VALUES ROW ARRAY CAST BETWEEN
  DISTINCT FROM`)

interface Edit {
  readonly start: number
  readonly end: number
  readonly text: string
}

/**
 * The text without what looks like a secret: literals next to names of secrets, literals that hold one, the user part
 * of URIs, and the same in comments. Works on tokens, so also on text that does not parse; where a quote is not closed
 * the rest of the text counts as one literal. The result parses where the text did.
 */
export function redactSecrets(sql: string): RedactedText {
  if (!suspicious.test(sql)) return { sql, redacted: false }
  let text = ''
  let from = 0
  for (const edit of findSecrets(sql)) {
    text += sql.slice(from, edit.start) + edit.text
    from = edit.end
  }
  text = (text + sql.slice(from)).replace(userInfo, '://***@')
  return { sql: text, redacted: text !== sql }
}

interface Seen {
  readonly type: string
  readonly start: number
  readonly end: number
}

function findSecrets(sql: string): Edit[] {
  const edits: Edit[] = []
  const scan = startScan()
  let previous: Seen | undefined
  let beforeThat: Seen | undefined
  /** Set after the name of a secret: how deep in parentheses it stood. */
  let armedAt: number | undefined
  let depth = 0
  let insertsSecret = false
  let isInsert = false
  let at = 0
  for (;;) {
    const blankEnd = skipBlank(sql, at, scan)
    editComment(sql, at, blankEnd, edits)
    at = blankEnd
    if (at >= sql.length) return edits
    let type = scanToken(sql, at, scan)
    if (type === 'UNRECOGNIZED' && sql.charAt(at) === "'") {
      type = 'STRING_LITERAL'
      scan.end = sql.length
    }
    const token: Seen = { type, start: at, end: scan.end }
    const text = sql.slice(at, scan.end)
    if (previous === undefined) isInsert = type === 'INSERT'
    if (literals.has(type)) {
      const isKeyOfObject = armedAt !== undefined && previous?.type === 'KEY'
      if ((armedAt !== undefined && !isKeyOfObject) || insertsSecret || holdsSecret(text)) edits.push(redaction(token))
    } else if (numbers.has(type)) {
      if (armedAt !== undefined && previous !== undefined && ['=', '<>', '=>', ':'].includes(previous.type)) {
        edits.push(redaction(token))
      }
    } else if (isName(type, text)) {
      if (isSecretName(type === 'QUOTED_IDENTIFIER' ? text.slice(1, -1) : text)) {
        armedAt = depth
        insertsSecret ||= isInsert
        if (beforeThat && literals.has(beforeThat.type) && (previous?.type === '=' || previous?.type === '<>')) {
          replaceLast(edits, redaction(beforeThat))
        }
      } else if (!connectors.has(type)) armedAt = undefined
    } else {
      if (type === '(' || type === '[') depth++
      if (type === ')' || type === ']') depth--
      if (!connectors.has(type) || (armedAt !== undefined && depth <= armedAt && (type === ',' || depth < armedAt))) {
        armedAt = undefined
      }
    }
    beforeThat = previous
    previous = token
    at = scan.end
  }
}

function isName(type: string, text: string): boolean {
  return type === 'QUOTED_IDENTIFIER' || type === 'BACKQUOTED_IDENTIFIER' || /^[A-Za-z_]/.test(text)
}

function holdsSecret(literal: string): boolean {
  const content = literal.slice(literal.indexOf("'") + 1)
  return knownShapes.test(content) || assignment.test(content)
}

function redaction(token: Seen): Edit {
  return { start: token.start, end: token.end, text: REPLACEMENT }
}

/** A literal before its name: its own edit, where it has one already, gives way. */
function replaceLast(edits: Edit[], edit: Edit): void {
  while (edits.length > 0 && edits.at(-1)!.start >= edit.start) edits.pop()
  edits.push(edit)
}

function editComment(sql: string, start: number, end: number, edits: Edit[]): void {
  if (end - start < 4) return
  const blank = sql.slice(start, end)
  if (!suspicious.test(blank)) return
  const clean = blank.replace(assignedValue, '$1***')
  // A value that ran into the comment's end took its closing with it: keep the comment closed.
  const closed = skipBlank(clean, 0, startScan()) === clean.length ? clean : ' '
  if (clean !== blank) edits.push({ start, end, text: closed })
}
