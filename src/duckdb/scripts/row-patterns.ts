import { holds, readRows, type ColumnKind, type ConditionCode, type Rows } from './pattern-conditions.ts'
import { SqlFailure, type ScalarFunction } from './scalar-function.ts'

/** A row pattern from the analyser; variables by their number. */
export type PatternCode =
  | number
  | { readonly all: readonly PatternCode[] }
  | { readonly any: readonly PatternCode[] }
  /** Its rows are part of the match, but not of the result of ALL ROWS PER MATCH. */
  | { readonly excluded: PatternCode }
  | { readonly start: true }
  | { readonly end: true }
  | { readonly repeat: PatternCode; readonly least: number; readonly most: number | null; readonly greedy: boolean }

export interface PatternProgram {
  readonly pattern: PatternCode
  /** Where the next match may begin; `first` and `last` mean a row with one of the variables. */
  readonly skip: { readonly to: 'past last' | 'next' | 'first' | 'last'; readonly variables: readonly number[] }
  /** Conditions that use rows matched before, by variable, with the columns that they need. */
  readonly conditions?: Readonly<Record<string, ConditionCode>>
  readonly columns?: readonly ColumnKind[]
  readonly names?: readonly string[]
}

/** Row masks are characters from here on: bit i is set if the row may be variable i. */
export const MASK_BASE = 0x4e00

/** Variables of a match's rows are characters from here on. */
export const VARIABLE_BASE = 0x41

/** Added to the variable of a row that is matched, but excluded. */
export const EXCLUDED = 32

/** Attempts per partition; a pattern that needs more has exponential cost. */
const MAX_STEPS = 5_000_000
const STEPS_PER_ROW = 100

type Repeat = Extract<PatternCode, { readonly repeat: PatternCode }>

/** The remaining work of a match: a part of the pattern, then the rest; undefined is the end of the match. */
type Todo =
  | {
      readonly what: 'code'
      readonly code: PatternCode
      /** Added to the part's variables. */
      readonly excluded: number
      readonly then: Todo | undefined
      readonly round: Round | undefined
    }
  | {
      /** Between two rounds, or at the end of a round that began at `from`. */
      readonly what: 'repeat' | 'round'
      readonly code: Repeat
      readonly count: number
      readonly from: number
      readonly excluded: number
      readonly then: Todo | undefined
      /** The outer round that contains it. */
      readonly round: Round | undefined
    }
type Round = Extract<Todo, { readonly what: 'repeat' | 'round' }>

/** An alternative: what remains, the row to continue from, and how many variables were matched before. */
interface Choice {
  readonly todo: Todo | undefined
  readonly at: number
  readonly length: number
  /** The length of the path that led to it. */
  readonly depth: number
}

/**
 * The states that matching has visited, for patterns without conditions on rows matched before. For these the result
 * from a state does not depend on the path to it, so no state is tried twice.
 */
class StateNumbers {
  readonly #codes = new Map<PatternCode, number>()
  readonly #numbers = new Map<string, number>()
  readonly #numberOf = new WeakMap<Todo, number>()
  readonly #been = new Map<string, Set<number>>()
  /** The states on the path to the current one: all other visited states have failed. */
  readonly #path: { readonly rows: Set<number>; readonly at: number }[] = []

  get depth(): number {
    return this.#path.length
  }

  /** @returns false if the state was visited before */
  enter(todo: Todo, at: number): boolean {
    let empty = 0
    for (let { round } = todo; round?.from === at; round = round.round) empty++
    const key = `${this.#number(todo)} ${empty}`
    const rows = this.#been.get(key) ?? new Set()
    if (rows.has(at)) return false
    this.#been.set(key, rows.add(at))
    this.#path.push({ rows, at })
    return true
  }

  back(depth: number): void {
    this.#path.length = depth
  }

  /** Forgets the states on the path, because they led to a match and would do so again. */
  matched(): void {
    for (const { rows, at } of this.#path.splice(0)) rows.delete(at)
  }

  /** A number that is equal for equal remaining work, except for the rows where rounds began. */
  #number(todo: Todo): number {
    const rest: Todo[] = []
    let at: Todo | undefined = todo
    while (at !== undefined && !this.#numberOf.has(at)) {
      rest.push(at)
      at = at.then
    }
    let number = at === undefined ? 0 : this.#numberOf.get(at)!
    for (const each of rest.toReversed()) {
      const key = `${each.what} ${this.#code(each.code)} ${countOf(each)} ${each.excluded} ${number}`
      number = this.#numbers.get(key) ?? this.#numbers.size + 1
      this.#numbers.set(key, number)
      this.#numberOf.set(each, number)
    }
    return number
  }

  #code(code: PatternCode): number {
    const number = this.#codes.get(code) ?? this.#codes.size
    this.#codes.set(code, number)
    return number
  }
}

/** The count of a repeat without maximum: all counts above the minimum are equivalent. */
function countOf(todo: Todo): number {
  if (todo.what === 'code') return 0
  const { code, count } = todo
  return code.most === null ? Math.min(count, code.least) : count
}

function roundOf(then: Todo | undefined): Round | undefined {
  return then === undefined || then.what === 'round' ? then : then.round
}

/** The matches of one partition: `start,variables`, rows counted from 1. */
export function findMatches(masks: readonly number[], program: PatternProgram, rows: Rows = []): string[] {
  const { pattern, skip, conditions = {}, names = [] } = program
  const matches: string[] = []
  const variables: number[] = []
  let begun = 0
  let steps = 0
  const mostSteps = MAX_STEPS + STEPS_PER_ROW * masks.length
  const stateNumbers = Object.keys(conditions).length === 0 ? new StateNumbers() : undefined
  const fits = (variable: number, at: number, excluded: number): boolean => {
    if (at >= masks.length || (masks[at]! & (1 << variable)) === 0) return false
    variables.push(variable + excluded)
    const condition = conditions[variable]
    const match = { start: begun, variables, matchNumber: matches.length + 1 }
    return condition === undefined || holds(condition, rows, names, match)
  }
  /**
   * The end of a match from `start`; undefined when there is none. Alternatives wait in a list, not on the stack:
   * matches may be long.
   */
  const matchFrom = (start: number): number | undefined => {
    const choices: Choice[] = [
      {
        todo: { what: 'code', code: pattern, excluded: 0, then: undefined, round: undefined },
        at: start,
        length: 0,
        depth: 0,
      },
    ]
    for (let choice = choices.pop(); choice !== undefined; choice = choices.pop()) {
      variables.length = choice.length
      stateNumbers?.back(choice.depth)
      let { todo, at }: { todo: Todo | undefined; at: number } = choice
      const later = (other: Todo | undefined): void => {
        choices.push({ todo: other, at, length: variables.length, depth: stateNumbers?.depth ?? 0 })
      }
      for (;;) {
        if (todo === undefined) {
          stateNumbers?.matched()
          return at
        }
        if (todo.what === 'round') {
          // A round without rows would repeat forever.
          if (at === todo.from && todo.count >= todo.code.least) break
          todo = { ...todo, what: 'repeat', count: todo.count + 1 }
        }
        if (++steps > mostSteps) {
          throw new SqlFailure('EXCEEDED_FUNCTION_MEMORY_LIMIT', 'Row pattern needs too many attempts')
        }
        if (todo.what === 'repeat') {
          if (stateNumbers?.enter(todo, at) === false) break
          const { code, count, then } = todo
          const round: Round = { ...todo, what: 'round', from: at }
          const again: Todo = {
            what: 'code',
            code: code.repeat,
            excluded: todo.excluded,
            then: round,
            round,
          }
          const more = code.most === null || count < code.most
          if (count < code.least) {
            if (!more) break
            todo = again
          } else if (code.greedy && more) {
            later(then)
            todo = again
          } else {
            if (more) later(again)
            todo = then
          }
          continue
        }
        const { code, excluded, then } = todo
        const before = (each: PatternCode, rest: Todo | undefined, out = excluded): Todo => ({
          what: 'code',
          code: each,
          excluded: out,
          then: rest,
          round: roundOf(rest),
        })
        if (typeof code === 'number') {
          if (!fits(code, at, excluded)) break
          at++
          todo = then
        } else if ('all' in code) {
          todo = code.all.reduceRight<Todo | undefined>((rest, each) => before(each, rest), then)
        } else if ('any' in code) {
          if (stateNumbers?.enter(todo, at) === false) break
          for (const each of code.any.slice(1).toReversed()) later(before(each, then))
          const [first] = code.any
          if (first === undefined) break
          todo = before(first, then)
        } else if ('excluded' in code) todo = before(code.excluded, then, EXCLUDED)
        else if ('start' in code) {
          if (at !== 0) break
          todo = then
        } else if ('end' in code) {
          if (at !== masks.length) break
          todo = then
        } else todo = { what: 'repeat', code, count: 0, from: at, excluded, then, round: roundOf(then) }
      }
    }
    stateNumbers?.back(0)
    return undefined
  }

  for (let start = 0; start < masks.length;) {
    variables.length = 0
    begun = start
    const end = matchFrom(start)
    if (end === undefined) {
      start++
      continue
    }
    const letters = variables.map((variable) => String.fromCharCode(VARIABLE_BASE + variable)).join('')
    matches.push(`${start + 1},${letters}`)
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

export const rowPatternScripts: readonly ScalarFunction[] = [
  { name: 'u_match_rows', parameters: ['VARCHAR', 'VARCHAR', 'VARCHAR'], returns: 'VARCHAR[]', call: matchRows },
]
