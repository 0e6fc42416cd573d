import type { Factor } from '../analyzer/decimal-products.ts'
import type { Expr } from '../analyzer/tree.ts'
import { digits as number, joined, sql, type Sql } from '../../duckdb/text/sql.ts'

/** @param render renders a factor */
export function narrowProduct(
  factors: readonly Factor[],
  render: (expr: Expr) => Sql,
): { readonly fits: Sql; readonly product: Sql } {
  const texts = factors.map(({ expr }) => render(expr))
  const fits = factors.flatMap(({ type: { precision, scale }, digits }, i) => {
    if (digits >= precision) return []
    const most = number(`${'9'.repeat(digits - scale)}${scale > 0 ? `.${'9'.repeat(scale)}` : ''}`)
    return [sql`${texts[i]!} BETWEEN -${most} AND ${most}`]
  })
  // DuckDB's product of decimals of at most 18 digits has 18 digits again, and fails if the value needs more.
  return { fits: fits.length === 0 ? sql`true` : joined(fits, ' AND '), product: joined(texts, ' * ') }
}
