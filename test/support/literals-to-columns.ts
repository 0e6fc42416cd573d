const TYPED =
  '(?:date|timestamp|time|real|double precision|double|decimal|boolean|tinyint|smallint|integer|int|bigint|uuid|json|ipaddress|char)'
const LITERAL = new RegExp(
  `\\bu&'[^']*'(?:\\s+uescape\\s+'.')?|'(?:lax|strict) (?:[^']|'')*'|\\bzone\\s+(?:interval\\s+)?'[^']*'|\\bx'[^']*'|\\binterval\\s+[-+]?\\s*'[^']*'\\s+\\w+(?:\\s+to\\s+\\w+)?|(?:\\b${TYPED}\\s+)?'(?:[^']|'')*'|\\b\\d+\\.\\d+\\b|\\b\\d+(?:\\.\\d+)?e\\d+\\b`,
  'gi',
)

/**
 * Turns the literals of a query without FROM (except whole numbers) into columns of a row that the engine reads from a
 * table, so that it can fold no constants. @returns undefined when no literal can be turned
 */
export function literalsToColumns(sql: string): string | undefined {
  if (!/^select\b/i.test(sql) || /\bfrom\b(?!\s+')/i.test(sql.replaceAll(/'(?:[^']|'')*'/g, "''"))) return undefined
  // Several queries would need several rows, and a query with FROM is left unchanged.
  if (/\b(?:union|intersect|except|having|group by)\b|\b(?:order by|limit|offset|fetch)\b[^()]*$/i.test(sql))
    return undefined
  const columns: string[] = []
  const turned = sql.replaceAll(LITERAL, (literal) => {
    // Names of zones, JSON paths and escapes are part of the syntax.
    if (/^(?:zone|'lax|'strict|u&)/i.test(literal)) return literal
    columns.push(`if(nationkey < 1, ${literal}) AS c${columns.length}`)
    return `c${columns.length - 1}`
  })
  return columns.length === 0
    ? undefined
    : `${turned} FROM (SELECT ${columns.join(', ')} FROM tpch.tiny.nation WHERE nationkey < 1)`
}
