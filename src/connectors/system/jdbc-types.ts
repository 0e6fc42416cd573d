/** The description of a type in `java.sql.DatabaseMetaData`. */
export interface JdbcType {
  /** A constant of `java.sql.Types`. */
  readonly dataType: number
  readonly columnSize: number | null
  readonly decimalDigits: number | null
  readonly radix: number | null
  readonly charOctetLength: number | null
}

const UNBOUNDED = 2_147_483_647
const JAVA_OBJECT = 2000

const SIMPLE: Readonly<Record<string, JdbcType>> = {
  boolean: jdbc(16, null),
  tinyint: jdbc(-6, 3, 0, 10),
  smallint: jdbc(5, 5, 0, 10),
  integer: jdbc(4, 10, 0, 10),
  bigint: jdbc(-5, 19, 0, 10),
  real: jdbc(7, 24, null, 2),
  double: jdbc(8, 53, null, 2),
  varchar: jdbc(12, UNBOUNDED, null, null, UNBOUNDED),
  varbinary: jdbc(-3, UNBOUNDED, null, null, UNBOUNDED),
  date: jdbc(91, '+5881580-07-11'.length),
}

/** @param type as Trino writes it */
export function jdbcType(type: string): JdbcType {
  const simple = Object.hasOwn(SIMPLE, type) ? SIMPLE[type] : undefined
  if (simple) return simple
  const [, base = type, first, second, zone] = /^(\w+)\((\d+)(?:, ?(\d+))?\)( with time zone)?$/.exec(type) ?? []
  const length = Number(first)
  const fraction = length > 0 ? length + 1 : 0
  switch (base) {
    case 'varchar':
      return jdbc(12, length, null, null, length)
    case 'char':
      return jdbc(1, length, null, null, length)
    case 'decimal':
      return jdbc(3, length, Number(second ?? 0), 10)
    case 'time':
      return zone ? jdbc(2013, '00:00:00+00:00'.length + fraction) : jdbc(92, '00:00:00'.length + fraction)
    case 'timestamp': {
      const size = '+5881580-07-11 00:00:00'.length + fraction
      return zone ? jdbc(2014, size + '+00:00'.length) : jdbc(93, size)
    }
    default:
      return type.startsWith('array(') ? jdbc(2003, null) : jdbc(JAVA_OBJECT, null)
  }
}

function jdbc(
  dataType: number,
  columnSize: number | null,
  decimalDigits: number | null = null,
  radix: number | null = null,
  charOctetLength: number | null = null,
): JdbcType {
  return { dataType, columnSize, decimalDigits, radix, charOctetLength }
}
