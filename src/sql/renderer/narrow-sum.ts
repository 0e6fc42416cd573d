import type { Factor } from '../analyzer/decimal-products.ts'
import type { Expr } from '../analyzer/tree.ts'
import { digits as number, joined, sql, type Sql } from '../../duckdb/text/sql.ts'

/** `render` writes a factor. */
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
  // DuckDB gives the product of decimals of at most 18 digits 18 digits again, and fails where it has more.
  return { fits: fits.length === 0 ? sql`true` : joined(fits, ' AND '), product: joined(texts, ' * ') }
}
