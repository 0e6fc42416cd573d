import { createCpuBudget, HoldsLoop, type CpuBudget } from '../../shared/cpu-budget.ts'
import { StatementText, type ParsedStatement, type PreparedTexts } from '../parsed-statement.ts'
import type { Insert, Merge } from './ast-statements.ts'
import { reservedWords, tokenSet } from './keywords.ts'
import { scanToken, skipBlank, startScan } from './lexer.ts'
import { secretNodes, type ParameterSecrets, type SecretNodes } from './secret-literals.ts'
import { writesLiterals } from './values-of-rows.ts'
import { childrenOf, type AnyNode } from './tree.ts'
import { holdsSecret, isSecretName, isSuspicious, redactComment, withoutUserInfo } from './secret-names.ts'
import { createSecretValues, REDACTED } from './secret-values.ts'
import { Signal } from '../../shared/quipu-error.ts'

export interface RedactedText {
  readonly sql: string
  readonly redacted: boolean
}

/** A statement without its secrets, and the values that were removed. */
export interface RedactedStatement extends RedactedText {
  /** The contents of the removed literals and comments: other records must not contain them either. */
  readonly values: readonly string[]
  /** The quoted names that held a secret. */
  readonly names: readonly string[]
  /** Whether a `?` stands at the position of a secret. The arguments of EXECUTE are then secrets. */
  readonly parameters: boolean
}

const REPLACEMENT = "'***'"
const NAME_REPLACEMENT = '"***"'

/**
 * The text without anything that looks like a secret: literals in the same term as a secret's name (see `secretNodes`),
 * literals and quoted names that contain a secret, the user part of URIs, and the same in comments. Then every other
 * literal and comment that contains one of these secrets is removed. The result parses if the input did. If the text
 * does not parse and names a secret, all literals are removed.
 */
export function redactSecrets(sql: string, prepared: PreparedTexts = {}): RedactedText {
  const { sql: text, redacted } = redactStatement(new StatementText(sql, prepared))
  return { sql: text, redacted }
}

/**
 * The CPU time that parsing one text may take. A text that takes longer is parsed again when it runs, with a budget of
 * its own.
 */
const REDACTION_CPU_MS = 1_000

/** Same as `redactSecrets`; also returns the removed values. Parses the text only where it may hold a secret. */
export function redactStatement(
  text: StatementText,
  { cpuMs = REDACTION_CPU_MS, intoSecrets = false, holdMs }: RedactionOptions = {},
): RedactedStatement {
  return take(text, { depth: 0, intoSecrets, cpu: createCpuBudget(cpuMs, () => new TooSlow(), { holdMs }) })
}

export interface RedactionOptions {
  /** CPU time that parsing may take, milliseconds. */
  readonly cpuMs?: number
  /** Whether an INSERT without a column list targets a table with a secret's name among its columns. @default false */
  readonly intoSecrets?: boolean
  /** Parsing that blocks the event loop for this many milliseconds throws `HoldsLoop`. @default no limit */
  readonly holdMs?: number | undefined
}

/**
 * The targets of INSERTs of literals without a column list, also of those in MERGE, as written. The caller must look up whether such a table
 * has a column with a secret's name. If the text contains EXECUTE, the prepared statements are searched too.
 * @returns names in lower case, from the catalog to the table as far as they are given
 */
export function tablesOfBareInserts(
  text: StatementText,
  { holdMs }: Pick<RedactionOptions, 'holdMs'> = {},
): readonly (readonly string[])[] {
  const runsAnother = /execute/i.test(text.sql)
  const texts = [text, ...(runsAnother ? text.prepared.texts.values() : [])].filter(({ sql }) => /insert/i.test(sql))
  if (texts.length === 0) return []
  const cpu = createCpuBudget(REDACTION_CPU_MS, () => new TooSlow(), { holdMs })
  const found: string[][] = []
  const visit = (node: AnyNode, inner: StatementText | undefined): void => {
    if (node.kind === 'Insert') {
      const { target, columns, query } = node as Insert
      if (columns === undefined && writesLiterals(query))
        found.push(target.parts.map(({ value }) => value.toLowerCase()))
    } else if (node.kind === 'Merge') {
      const { target, cases } = node as Merge
      if (cases.some((one) => one.kind === 'MergeInsert' && one.columns.length === 0))
        found.push(target.parts.map(({ value }) => value.toLowerCase()))
    } else if (node.kind === 'ExecuteImmediate') {
      if (inner) visitText(inner)
    } else if (wrapping.has(node.kind)) for (const child of childrenOf(node)) visit(child, inner)
  }
  const visitText = (inserting: StatementText): void => {
    try {
      const parsed = cpu.run(() => inserting.parse())
      // A text that does not parse inserts nothing; running the statement reports the error.
      if (parsed.kind === 'valid') visit(parsed.tree, parsed.inner)
    } catch (error) {
      if (error instanceof HoldsLoop) throw error
      // A text that takes too long loses all its literals anyway.
    }
  }
  for (const each of texts) visitText(each)
  return found
}

/** Statements that contain another statement. */
const wrapping: ReadonlySet<string> = new Set(['Explain', 'ExplainAnalyze', 'Prepare'])

/** The state that a text shares with the texts inside it. */
interface Taking {
  readonly depth: number
  readonly intoSecrets: boolean
  readonly cpu: CpuBudget
}

function take(text: StatementText, taking: Taking): RedactedStatement {
  const { sql } = text
  // EXECUTE itself names no secret: the prepared text decides which arguments are secret.
  if (!isSuspicious(sql) && !/execute/i.test(sql) && !(taking.intoSecrets && /insert/i.test(sql)))
    return { sql, redacted: false, values: [], names: [], parameters: false }
  const found: Found = { edits: [], values: [], names: [], parameters: false }
  const parsed = findInTree(text, found, taking)
  findInTokens(sql, found, parsed)
  findAgain(sql, found)
  const parts: string[] = []
  let from = 0
  for (const edit of found.edits.toSorted((a, b) => a.start - b.start)) {
    // Two adjacent literals would merge into another literal.
    if (edit.start > from || from === 0) parts.push(sql.slice(from, edit.start), edit.text)
    from = Math.max(from, edit.end)
  }
  parts.push(sql.slice(from))
  const rest = withoutUserInfo(parts.join(''), found.values)
  const { values, names, parameters } = found
  return { sql: rest, redacted: rest !== sql, values, names, parameters }
}

interface Edit {
  readonly start: number
  readonly end: number
  readonly text: string
}

interface Found {
  readonly edits: Edit[]
  readonly values: string[]
  readonly names: string[]
  parameters: boolean
}

/** A text that is nested deeper than this is treated as a secret as a whole. */
const MAX_DEPTH = 3

function parametersOf(
  { prepared }: StatementText,
  inner: StatementText | undefined,
  { depth, intoSecrets, cpu }: Taking,
): ParameterSecrets {
  const known = new Map<string, RedactedStatement>()
  const taken = (text: StatementText): RedactedStatement => {
    const before = known.get(text.sql)
    if (before) return before
    const now = take(text, { depth: depth + 1, intoSecrets, cpu })
    known.set(text.sql, now)
    return now
  }
  return {
    intoSecrets,
    ofPrepared(name) {
      const text = prepared.find(name)
      return text === undefined || depth >= MAX_DEPTH || taken(text).parameters
    },
    ofText(sql) {
      if (depth >= MAX_DEPTH) return { text: true, parameters: true }
      // The arguments of EXECUTE IMMEDIATE may be texts of statements too.
      const { redacted, parameters } = taken(inner?.sql === sql ? inner : new StatementText(sql, prepared))
      return { text: redacted, parameters }
    },
  }
}

/** Thrown when parsing exceeds its CPU budget. */
class TooSlow extends Signal {}

/** Whether the text was parsed. After `slow`, the role of its literals is unknown. */
type Parsed = 'yes' | 'no' | 'slow'

function findInTree(text: StatementText, found: Found, taking: Taking): Parsed {
  const { sql } = text
  try {
    const secrets = taking.cpu.run(() => secretsIn(text, text.parse(), taking))
    // The error is reported when the statement runs, not here.
    if (secrets === undefined) return 'no'
    for (const { kind, start, end, value } of secrets.nodes) {
      found.edits.push({ start, end, text: kind === 'name' ? NAME_REPLACEMENT : REPLACEMENT })
      if (kind === 'name') found.names.push(value)
      else addValue(found, sql.slice(start, end), value)
    }
    found.parameters = secrets.parameters
    return 'yes'
  } catch (error) {
    if (error instanceof HoldsLoop) throw error
    if (error instanceof TooSlow) found.parameters = true
    // Other errors are reported when the statement runs.
    return error instanceof TooSlow ? 'slow' : 'no'
  }
}

function secretsIn(text: StatementText, parsed: ParsedStatement, taking: Taking): SecretNodes | undefined {
  return parsed.kind === 'valid' ? secretNodes(parsed.tree, parametersOf(text, parsed.inner, taking)) : undefined
}

/** @param raw the text as written, @param value the literal's value */
function addValue({ values }: Found, raw: string, value: string): void {
  const open = raw.indexOf("'")
  const inner = open < 0 ? raw : raw.slice(open + 1, raw.endsWith("'") && raw.length > open + 1 ? -1 : undefined)
  withoutUserInfo(value, values)
  values.push(value)
  if (inner !== value) values.push(inner)
}

const literals: ReadonlySet<string> = new Set(['STRING_LITERAL', 'UNICODE_STRING', 'BINARY_LITERAL'])
const numbers: ReadonlySet<string> = new Set(['INTEGER_VALUE', 'DECIMAL_VALUE', 'DOUBLE_VALUE', 'DIGIT_IDENTIFIER'])
/** Tokens that may stand between a secret's name and the secret, which may be unquoted. */
const assigning = tokenSet('= => : BY IS TO AS')
/** After these words, the word that follows directly is the secret. */
const followed = /^(?:pass(?:word|wd|phrase|code)?|pwd|pw|secret|identified)$/i

interface Seen {
  readonly type: string
  readonly start: number
  readonly end: number
}

/**
 * Redacts comments. If the text did not parse and names a secret, or was too slow to parse, redacts everything that may
 * be a secret. An unclosed quote makes a literal of the rest.
 */
function findInTokens(sql: string, found: Found, parsed: Parsed): void {
  const scan = startScan()
  const candidates: Seen[] = []
  let namesOne = parsed === 'slow'
  /** Whether the scan is after a secret's name, or at the position where the next word is the secret. */
  let after: 'nothing' | 'name' | 'assigned' = 'nothing'
  let at = 0
  for (;;) {
    const blankEnd = skipBlank(sql, at, scan)
    editComments(sql, at, blankEnd, found)
    at = blankEnd
    if (at >= sql.length) break
    let type = scanToken(sql, at, scan)
    if (type === 'UNRECOGNIZED' && (sql.charAt(at) === "'" || sql.charAt(at) === '"')) {
      type = sql.charAt(at) === "'" ? 'STRING_LITERAL' : 'QUOTED_IDENTIFIER'
      scan.end = sql.length
    }
    const token: Seen = { type, start: at, end: scan.end }
    at = scan.end
    if (parsed === 'yes') continue
    const text = sql.slice(token.start, token.end)
    if (literals.has(type) || numbers.has(type)) {
      if (holdsSecret(text)) takeToken(sql, token, found)
      else candidates.push(token)
      after = 'nothing'
    } else if (type === 'QUOTED_IDENTIFIER' || type === 'BACKQUOTED_IDENTIFIER' || /^[A-Za-z_]/.test(text)) {
      const name = type === 'QUOTED_IDENTIFIER' ? text.slice(1, -1) : text
      if (isSecretName(name)) {
        namesOne = true
        if (after === 'assigned') candidates.push(token)
        after = followed.test(name) ? 'assigned' : 'name'
      } else if (after !== 'nothing' && assigning.has(type)) after = 'assigned'
      else {
        if (after === 'assigned' && !reservedWords.has(type)) candidates.push(token)
        after = 'nothing'
      }
      if (type === 'QUOTED_IDENTIFIER' && holdsSecret(name)) takeToken(sql, token, found)
    } else after = after !== 'nothing' && assigning.has(type) ? 'assigned' : 'nothing'
  }
  if (namesOne) for (const token of candidates) takeToken(sql, token, found)
}

/** Shorter values would match other text by accident. */
const SHORT = 3

/** Redacts literals and comments elsewhere in the text that contain a removed secret. */
function findAgain(sql: string, found: Found): void {
  const taken = [...found.values]
  withoutUserInfo(sql, taken)
  // A text that was already redacted stays as it is.
  const values = createSecretValues(taken.filter((value) => value.length >= SHORT && !value.includes(REDACTED)))
  if (values.isEmpty) return
  // Users in URIs are redacted separately.
  const holdsOne = (text: string): boolean =>
    values.isOne(text) || (values.holdsOne(text) && values.holdsOne(withoutUserInfo(text, [])))
  const known = new Set(found.edits.map(({ start }) => start))
  const scan = startScan()
  let at = 0
  for (;;) {
    const blankEnd = skipBlank(sql, at, scan)
    for (const { index, 0: comment } of sql.slice(at, blankEnd).matchAll(COMMENT)) {
      const start = at + index + 2
      const end = at + index + comment.length - (comment.startsWith('/*') ? 2 : 0)
      if (!known.has(start) && holdsOne(comment)) found.edits.push({ start, end, text: ' *** ' })
    }
    at = blankEnd
    if (at >= sql.length) return
    const type = scanToken(sql, at, scan)
    if (literals.has(type) && !known.has(at)) {
      const inner = sql.slice(sql.indexOf("'", at) + 1, scan.end - 1).replaceAll("''", "'")
      if (holdsOne(inner)) found.edits.push({ start: at, end: scan.end, text: REPLACEMENT })
    }
    at = scan.end
  }
}

function takeToken(sql: string, { type, start, end }: Seen, found: Found): void {
  const raw = sql.slice(start, end)
  found.edits.push({ start, end, text: REPLACEMENT })
  if (type === 'STRING_LITERAL') addValue(found, raw, raw.slice(1).replace(/'$/, '').replaceAll("''", "'"))
  else addValue(found, raw, raw)
}

const COMMENT = /--[^\r\n]*|\/\*[\s\S]*?\*\//g

function editComments(sql: string, start: number, end: number, found: Found): void {
  if (end - start < 3) return
  const blank = sql.slice(start, end)
  if (!isSuspicious(blank)) return
  for (const { index, 0: comment } of blank.matchAll(COMMENT)) {
    const bracketed = comment.startsWith('/*')
    const inner = comment.slice(2, bracketed ? -2 : undefined)
    const clean = redactComment(inner, found.values)
    if (clean === inner) continue
    // The remaining text must neither close the comment early nor merge with its end.
    if (bracketed && /\*\/|\*$/.test(clean)) found.edits.push({ start, end, text: ' ' })
    else found.edits.push({ start: start + index + 2, end: start + index + 2 + inner.length, text: clean })
  }
}
