import { holds, readRows, type ColumnKind, type ConditionCode, type Rows } from './pattern-conditions.ts'
import { SqlFailure, type ScalarFunction } from './scalar-function.ts'

/** A row pattern as the analyser hands it over; variables by their number. */
export type PatternCode =
  | number
  | { readonly all: readonly PatternCode[] }
  | { readonly any: readonly PatternCode[] }
  /** Its rows are part of the match, but not of what ALL ROWS PER MATCH gives. */
  | { readonly excluded: PatternCode }
  | { readonly start: true }
  | { readonly end: true }
  | { readonly repeat: PatternCode; readonly least: number; readonly most: number | null; readonly greedy: boolean }

export interface PatternProgram {
  readonly pattern: PatternCode
  /** Where the next match may begin; `first` and `last` go to a row with one of the variables. */
  readonly skip: { readonly to: 'past last' | 'next' | 'first' | 'last'; readonly variables: readonly number[] }
  /** Conditions that look at rows matched before, by variable, and what they need. */
  readonly conditions?: Readonly<Record<string, ConditionCode>>
  readonly columns?: readonly ColumnKind[]
  readonly names?: readonly string[]
}

/** Row masks are characters from here on: bit i is set where the row may be variable i. */
export const MASK_BASE = 0x4e00

/** Variables of a match's rows are characters from here on. */
export const VARIABLE_BASE = 0x41

/** Added to the variable of a row that is matched, but excluded. */
export const EXCLUDED = 32

/** Attempts per partition; a pattern that needs more explodes. */
const MAX_STEPS = 5_000_000

type Next = (at: number) => boolean

/** The matches of one partition: `start,variables`, rows counted from 1. */
export function findMatches(masks: readonly number[], program: PatternProgram, rows: Rows = []): string[] {
  const { pattern, skip, conditions = {}, names = [] } = program
  const matches: string[] = []
  const variables: number[] = []
  let begun = 0
  let steps = 0
  const run = (code: PatternCode, at: number, next: Next, excluded = 0): boolean => {
    if (++steps > MAX_STEPS) {
      throw new SqlFailure('EXCEEDED_FUNCTION_MEMORY_LIMIT', 'Row pattern needs too many attempts')
    }
    if (typeof code === 'number') {
      if (at >= masks.length || (masks[at]! & (1 << code)) === 0) return false
      variables.push(code + excluded)
      const condition = conditions[code]
      const match = { start: begun, variables, matchNumber: matches.length + 1 }
      if ((condition === undefined || holds(condition, rows, names, match)) && next(at + 1)) return true
      variables.pop()
      return false
    }
    if ('all' in code) {
      const step = (index: number, from: number): boolean =>
        index === code.all.length ? next(from) : run(code.all[index]!, from, (to) => step(index + 1, to), excluded)
      return step(0, at)
    }
    if ('any' in code) return code.any.some((each) => run(each, at, next, excluded))
    if ('excluded' in code) return run(code.excluded, at, next, EXCLUDED)
    if ('start' in code) return at === 0 && next(at)
    if ('end' in code) return at === masks.length && next(at)
    const more = (count: number, from: number): boolean => {
      const again = (): boolean =>
        (code.most === null || count < code.most) &&
        // A round without rows would go on for ever.
        run(code.repeat, from, (to) => (to === from && count >= code.least ? false : more(count + 1, to)), excluded)
      if (count < code.least) return again()
      return code.greedy ? again() || next(from) : next(from) || again()
    }
    return more(0, at)
  }

  for (let start = 0; start < masks.length;) {
    variables.length = 0
    begun = start
    let end = -1
    const found = run(pattern, start, (at) => {
      end = at
      return true
    })
    if (!found) {
      start++
      continue
    }
    matches.push(`${start + 1},${String.fromCharCode(...variables.map((variable) => VARIABLE_BASE + variable))}`)
    start = end === start ? start + 1 : nextStart(start, end, variables, skip)
  }
  return matches
}

function nextStart(
  start: number,
  end: number,
  variables: readonly number[],
  { to, variables: targets }: PatternProgram['skip'],
): number {
  if (to === 'past last') return end
  if (to === 'next') return start + 1
  const wanted = (variable: number): boolean => targets.includes(variable % EXCLUDED)
  const index = to === 'first' ? variables.findIndex(wanted) : variables.findLastIndex(wanted)
  if (index < 0) {
    throw new SqlFailure('GENERIC_USER_ERROR', 'AFTER MATCH SKIP TO failed: pattern variable is not present in match')
  }
  if (index === 0) {
    throw new SqlFailure('GENERIC_USER_ERROR', 'AFTER MATCH SKIP TO failed: cannot skip to first row of match')
  }
  return start + index
}

const programs = new Map<string, PatternProgram>()
const MAX_CACHED = 100

function matchRows(masks: string, program: string, values: string): string[] {
  let parsed = programs.get(program)
  if (parsed === undefined) {
    parsed = JSON.parse(program) as PatternProgram
    if (programs.size >= MAX_CACHED) programs.clear()
    programs.set(program, parsed)
  }
  return findMatches(
    Array.from(masks, (character) => character.charCodeAt(0) - MASK_BASE),
    parsed,
    parsed.columns === undefined ? [] : readRows(values, parsed.columns),
  )
}

export const rowPatternFunctions: readonly ScalarFunction[] = [
  { name: 'u_match_rows', parameters: ['VARCHAR', 'VARCHAR', 'VARCHAR'], returns: 'VARCHAR[]', call: matchRows },
]
