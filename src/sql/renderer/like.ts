import { EngineError } from '../../shared/engine-error.ts'
import type { Names } from '../functions/rendering.ts'
import { bindName } from '../functions/fill-template.ts'
import { typedNull } from '../types/duckdb-representation.ts'
import { BOOLEAN } from '../types/sql-type.ts'
import type { Expr, LikeExpr } from '../analyzer/tree.ts'
import { literal, sql, type Sql } from '../../duckdb/text/sql.ts'

type Token = { readonly kind: 'text'; readonly text: string } | { readonly kind: 'one' | 'any' }

const BAD_ESCAPE = `Escape character must be followed by '%', '_' or the escape character itself`
const LONG_ESCAPE = 'Escape string must be a single character'

/**
 * LIKE without DuckDB's backtracking, which takes exponential time for patterns that combine `_` or an escape with
 * several `%`. Such patterns, and those that are not constant, become regular expressions, which take linear time.
 */
export function renderLike(names: Names, value: Sql, { pattern, escape }: LikeExpr, render: (expr: Expr) => Sql): Sql {
  const constant = constantText(pattern)
  const escapeText = escape === undefined ? undefined : constantText(escape)
  if (constant === null || escapeText === null) return typedNull(BOOLEAN)
  if (constant !== undefined && (escape === undefined || escapeText !== undefined)) {
    return renderTokens(value, tokensOf(constant, escapeText))
  }
  if (escapeText !== undefined && [...escapeText].length !== 1) {
    throw new EngineError('INVALID_FUNCTION_ARGUMENT', LONG_ESCAPE)
  }
  const name = names.fresh()
  if (escape !== undefined) {
    const matched = sql`regexp_full_match(${value}, q_like(${render(pattern)}, ${name}), 's')`
    return bindName(name, render(escape), matched)
  }
  return bindName(name, render(pattern), sql`regexp_full_match(${value}, ${plainRegex(name)}, 's')`)
}

function constantText(expr: Expr): string | null | undefined {
  if (expr.kind !== 'constant') return undefined
  return expr.value === null ? null : String(expr.value)
}

function tokensOf(pattern: string, escape: string | undefined): readonly Token[] {
  if (escape !== undefined && [...escape].length !== 1) {
    throw new EngineError('INVALID_FUNCTION_ARGUMENT', LONG_ESCAPE)
  }
  const tokens: Token[] = []
  let text = ''
  const flush = (): void => {
    if (text !== '') tokens.push({ kind: 'text', text })
    text = ''
  }
  const characters = [...pattern]
  for (let i = 0; i < characters.length; i++) {
    const character = characters[i]!
    if (character === escape) {
      const next = characters[++i]
      if (next === undefined || (next !== '%' && next !== '_' && next !== escape)) {
        throw new EngineError('INVALID_FUNCTION_ARGUMENT', BAD_ESCAPE)
      }
      text += next
    } else if (character === '%' || character === '_') {
      flush()
      if (character === '_' || tokens.at(-1)?.kind !== 'any') tokens.push({ kind: character === '_' ? 'one' : 'any' })
    } else text += character
  }
  flush()
  return tokens
}

function renderTokens(value: Sql, tokens: readonly Token[]): Sql {
  const [first, second, third] = tokens
  if (first === undefined) return sql`(${value} = '')`
  if (tokens.length === 1 && first.kind === 'text') return sql`(${value} = ${literal(first.text)})`
  if (tokens.length === 2 && first.kind === 'text' && second?.kind === 'any') {
    return sql`starts_with(${value}, ${literal(first.text)})`
  }
  if (tokens.length === 2 && first.kind === 'any' && second?.kind === 'text') {
    return sql`ends_with(${value}, ${literal(second.text)})`
  }
  if (tokens.length === 3 && first.kind === 'any' && second?.kind === 'text' && third?.kind === 'any') {
    return sql`contains(${value}, ${literal(second.text)})`
  }
  const wildcards = tokens.filter((token) => token.kind === 'any').length
  const escaped = tokens.some((token) => token.kind === 'text' && /[%_]/.test(token.text))
  const ones = tokens.some((token) => token.kind === 'one')
  // Without escapes, the pattern has the same meaning in DuckDB, which has no default escape character.
  if (!escaped && (!ones || wildcards <= 1)) {
    const plain = tokens
      .map((token) => (token.kind === 'text' ? token.text : token.kind === 'any' ? '%' : '_'))
      .join('')
    return sql`(${value} LIKE ${literal(plain)})`
  }
  const regex = tokens.map((token) =>
    token.kind === 'text' ? escapeRegex(token.text) : token.kind === 'any' ? '.*' : '.',
  )
  return sql`regexp_full_match(${value}, ${literal(regex.join(''))}, 's')`
}

function escapeRegex(text: string): string {
  return text.replaceAll(/[\\^$.|?*+()[\]{}-]/g, String.raw`\$&`)
}

/** `regexp_escape` puts a backslash before `%`, but not before `_`. */
function plainRegex(pattern: Sql): Sql {
  return sql`replace(replace(regexp_escape(${pattern}), '\\%', '.*'), '_', '.')`
}
