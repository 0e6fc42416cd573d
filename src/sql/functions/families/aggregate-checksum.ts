import { digits, sql, type Sql } from '../../../duckdb/text/sql.ts'
import { rowFieldOf, rowOf, structOf } from '../../types/duckdb-representation.ts'
import type { SqlType } from '../../types/sql-type.ts'
import { comparisonKey } from '../comparison.ts'
import type { RenderContext } from '../rendering.ts'

/** The contribution of NULL to a checksum. */
const CHECKSUM_OF_NULL = digits('-7046029288634856825')

/** The xxHash64 of a value in the form that checksum uses. */
function checksumOf(type: SqlType, x: Sql, names: RenderContext['names']): Sql {
  switch (type.kind) {
    case 'boolean':
    case 'tinyint':
    case 'smallint':
    case 'integer':
    case 'bigint':
    case 'interval day to second':
    case 'interval year to month':
      return sql`u_checksum_long(CAST(${x} AS BIGINT))`
    case 'date':
      return sql`u_checksum_long(CAST(date_diff('day', DATE '1970-01-01', ${x}) AS BIGINT))`
    case 'double':
      return sql`u_checksum_double(${x})`
    case 'real':
      return sql`u_checksum_real(CAST(${x} AS DOUBLE))`
    case 'varchar':
    case 'json':
      return sql`u_checksum_bytes(encode(${x}))`
    case 'char':
      return sql`u_checksum_bytes(encode(rtrim(${x}, ' ')))`
    case 'varbinary':
      return sql`u_checksum_bytes(${x})`
    case 'decimal':
      if (type.precision <= 18) return sql`u_checksum_long(CAST(replace(CAST(${x} AS VARCHAR), '.', '') AS BIGINT))`
      break
    case 'timestamp':
      if (type.precision <= 6) return sql`u_checksum_long(epoch_us(${x}))`
      break
    default:
  }
  return sql`u_checksum_bytes(encode(CAST(${oneOfEqual(type, x, names)} AS VARCHAR)))`
}

/** Normalizes equal values to one text: zeros and NaN without sign, entries in order, instants without their zone. */
function oneOfEqual(type: SqlType, x: Sql, names: RenderContext['names']): Sql {
  switch (type.kind) {
    case 'double':
    case 'real':
      return sql`CASE WHEN isnan(${x}) THEN abs(${x}) ELSE ${x} + 0 END`
    case 'array': {
      const item = names.fresh()
      return sql`list_transform(${x}, lambda ${item}: ${oneOfEqual(type.element, item, names)})`
    }
    case 'map': {
      const entry = names.fresh()
      const parts = structOf({
        k: oneOfEqual(type.key, sql`${entry}.key`, names),
        v: oneOfEqual(type.value, sql`${entry}.value`, names),
      })
      return sql`list_sort(list_transform(map_entries(${x}), lambda ${entry}: ${parts}))`
    }
    case 'row': {
      const fields = type.fields.map((field, i) => oneOfEqual(field.type, rowFieldOf(x, i), names))
      return sql`CASE WHEN ${x} IS NOT NULL THEN ${rowOf(fields)} END`
    }
    default:
      return comparisonKey(type, x, names)
  }
}

export function checksum(context: RenderContext): Sql {
  const hash = checksumOf(context.types[0]!, context.value(0), context.names)
  return context.fill`u_checksum_end(CAST(sum(coalesce(${hash}, ${CHECKSUM_OF_NULL}))$F AS VARCHAR))`
}
