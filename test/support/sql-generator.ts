/** A generator of evenly spread numbers, equal for equal seeds (mulberry32). */
export function randomNumbers(seed: number): () => number {
  let state = seed | 0
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296
  }
}

/** number, string, boolean, date or time, array of integers */
type Kind = 'n' | 's' | 'b' | 'd' | 'a'

interface Column {
  readonly name: string
  readonly kind: Kind
}

interface Source {
  readonly sql: string
  readonly columns: readonly Column[]
}

interface Generated {
  readonly sql: string
  readonly kinds: readonly Kind[]
}

/** Queries of the dialect over TPC-H and literal tables, most of them valid. */
export class SqlGenerator {
  private readonly random: () => number
  private names = 0

  constructor(seed: number) {
    this.random = randomNumbers(seed)
  }

  next(): string {
    this.names = 0
    const { sql } = this.query(2)
    return this.chance(0.2) ? `WITH w AS (${sql}) SELECT * FROM w a, w b LIMIT 3` : sql
  }

  private pick<T>(items: readonly T[]): T {
    return items[Math.floor(this.random() * items.length)]!
  }

  private chance(probability: number): boolean {
    return this.random() < probability
  }

  private times<T>(least: number, most: number, make: () => T): T[] {
    return Array.from({ length: least + Math.floor(this.random() * (most - least + 1)) }, make)
  }

  private literal(kind: Kind): string {
    const literals: Readonly<Record<Kind, readonly string[]>> = {
      n: ['1', '2', '-3', '2.5', '1e1', `BIGINT '7'`, 'NULL'],
      s: [`'a'`, `'A%'`, `''`, `CAST('xy' AS char(3))`],
      b: ['true', 'false', 'NULL = 1'],
      d: [`DATE '1995-01-01'`, `TIMESTAMP '2020-01-01 00:00:00'`, `TIMESTAMP '2020-01-01 00:00:00 UTC'`],
      a: ['ARRAY[1, 2]', 'ARRAY[3, NULL]'],
    }
    return this.pick(literals[kind])
  }

  private column(columns: readonly Column[], kind: Kind): string {
    const fitting = columns.filter((column) => column.kind === kind)
    return fitting.length === 0 ? this.literal(kind) : this.pick(fitting).name
  }

  private expression(columns: readonly Column[], kind: Kind, depth: number, queries = false): string {
    if (depth <= 0 || this.chance(0.2)) return this.chance(0.75) ? this.column(columns, kind) : this.literal(kind)
    const e = (inner: Kind): string => this.expression(columns, inner, depth - 1, queries)
    const text = (): string => `CAST(${e('s')} AS varchar)`
    const choices: Readonly<Record<Kind, readonly (() => string)[]>> = {
      n: [
        () => `(${e('n')} ${this.pick(['+', '-', '*'])} ${e('n')})`,
        () => `coalesce(${e('n')}, ${e('n')})`,
        () => `nullif(${e('n')}, ${e('n')})`,
        () => `CASE WHEN ${e('b')} THEN ${e('n')} ELSE ${e('n')} END`,
        () => `CASE ${e('n')} WHEN ${e('n')} THEN ${e('n')} END`,
        () => `length(${text()})`,
        () => `abs(${e('n')})`,
        () => `try(${e('n')} / ${e('n')})`,
        () => `cardinality(${e('a')})`,
        () => `reduce(${e('a')}, 0, (s, q) -> s + coalesce(q, 0), s -> s)`,
        () => `greatest(${e('n')}, ${e('n')})`,
        () => `year(CAST(${e('d')} AS date))`,
        () =>
          queries
            ? `(SELECT ${this.pick(['max', 'count', 'min'])}(zz.regionkey) FROM nation zz WHERE zz.regionkey = ${this.column(columns, 'n')})`
            : e('n'),
      ],
      s: [
        () => `upper(${text()})`,
        () => `(${text()} || CAST(${e('n')} AS varchar))`,
        () => `coalesce(${e('s')}, ${e('s')})`,
        () => `substr(${text()}, 1, 2)`,
        () => `CAST(${e('d')} AS varchar)`,
      ],
      b: [
        () => `(${e('n')} ${this.pick(['=', '<', '>=', '<>'])} ${e('n')})`,
        () => `(${e('b')} ${this.pick(['AND', 'OR'])} ${e('b')})`,
        () => `(NOT ${e('b')})`,
        () => `(${e('s')} IS NULL)`,
        () => `(${text()} LIKE ${this.pick([`'A%'`, `'%_%'`, `'_B%a'`])})`,
        () => `(${e('n')} IN (1, ${e('n')}))`,
        () => `(${e('n')} BETWEEN ${e('n')} AND ${e('n')})`,
        () => `(${e('d')} < ${e('d')})`,
        () => `(${e('n')} IS DISTINCT FROM ${e('n')})`,
        () => `contains(${e('a')}, 1)`,
        () => (queries ? `(${this.column(columns, 'n')} IN (SELECT regionkey FROM region))` : e('b')),
      ],
      d: [
        () => `coalesce(${e('d')}, ${e('d')})`,
        () => `(${e('d')} + INTERVAL '1' DAY)`,
        () => `date_trunc('month', ${e('d')})`,
      ],
      a: [
        () => `transform(${e('a')}, q -> q + 1)`,
        () => `filter(${e('a')}, q -> q > 1)`,
        () => `array_sort(${e('a')})`,
      ],
    }
    return this.pick(choices[kind])()
  }

  private source(): Source {
    const alias = `t${this.names++}`
    const of = (...columns: readonly (readonly [string, Kind])[]): Column[] =>
      columns.map(([name, kind]) => ({ name: `${alias}.${name}`, kind }))
    return this.pick<() => Source>([
      () => ({
        sql: `nation ${alias}`,
        columns: of(['nationkey', 'n'], ['name', 's'], ['regionkey', 'n'], ['comment', 's']),
      }),
      () => ({ sql: `region ${alias}`, columns: of(['regionkey', 'n'], ['name', 's']) }),
      () => ({
        sql: `(VALUES (1, 'a', DATE '2020-01-01', ARRAY[1, 2]), (2, NULL, NULL, NULL), (NULL, 'b', DATE '1999-12-31', ARRAY[])) ${alias}(x, y, z, w)`,
        columns: of(['x', 'n'], ['y', 's'], ['z', 'd'], ['w', 'a']),
      }),
      () => ({
        sql: `(VALUES (TIMESTAMP '2020-01-01 10:00:00 UTC', 1e0), (TIMESTAMP '2020-01-01 11:00:00 +01:00', nan()), (NULL, NULL)) ${alias}(x, y)`,
        columns: of(['x', 'd'], ['y', 'n']),
      }),
      () => {
        const { sql, kinds } = this.query(1)
        return {
          sql: `(${sql}) ${alias}(${kinds.map((_, i) => `k${i}`).join(', ')})`,
          columns: of(...kinds.map((kind, i) => [`k${i}`, kind] as const)),
        }
      },
    ])()
  }

  private from(): Source {
    let left = this.source()
    for (const right of this.times(0, 2, () => this.source())) {
      const columns = [...left.columns, ...right.columns]
      const alias = `u${this.names++}`
      left = this.pick<() => Source>([
        () => ({ sql: `${left.sql} CROSS JOIN ${right.sql}`, columns }),
        () => ({
          sql: `${left.sql} CROSS JOIN LATERAL (SELECT ${this.expression(left.columns, 'n', 1)} AS v) ${alias}`,
          columns: [...left.columns, { name: `${alias}.v`, kind: 'n' }],
        }),
        () => ({
          sql: `${left.sql} CROSS JOIN UNNEST(${this.expression(left.columns, 'a', 1)}) ${alias}(e)`,
          columns: [...left.columns, { name: `${alias}.e`, kind: 'n' }],
        }),
        ...(['JOIN', 'LEFT JOIN', 'RIGHT JOIN', 'FULL JOIN'] as const).map((join) => () => ({
          sql: `${left.sql} ${join} ${right.sql} ON ${this.column(left.columns, 'n')} = ${this.column(right.columns, 'n')}`,
          columns,
        })),
      ])()
    }
    return left
  }

  private query(depth: number): Generated {
    if (depth > 0 && this.chance(0.15)) return this.setOperation()
    const from = this.from()
    const where = this.chance(0.5) ? ` WHERE ${this.expression(from.columns, 'b', 2, depth > 0)}` : ''
    return this.chance(0.35) ? this.grouped(from, where) : this.plain(from, where, depth)
  }

  private setOperation(): Generated {
    const first = this.query(0)
    const others = this.times(1, 2, () => {
      const from = this.from()
      return `SELECT ${first.kinds.map((kind) => this.expression(from.columns, kind, 1)).join(', ')} FROM ${from.sql}`
    })
    const operator = this.pick([' UNION ALL ', ' UNION ', ' INTERSECT ', ' EXCEPT '])
    return { sql: [first.sql, ...others].map((part) => `(${part})`).join(operator), kinds: first.kinds }
  }

  private grouped({ sql, columns }: Source, where: string): Generated {
    const keys = columns.filter(() => this.chance(0.3)).slice(0, 2)
    const e = (kind: Kind): string => this.expression(columns, kind, 1)
    const aggregates = this.times(1, 2, () =>
      this.pick<readonly [string, Kind]>([
        ['count(*)', 'n'],
        [`sum(${e('n')})`, 'n'],
        [`max(${e('s')})`, 's'],
        [`count(DISTINCT ${e('n')})`, 'n'],
        [`min(${e('d')})`, 'd'],
        [`avg(${e('n')}) FILTER (WHERE ${e('b')})`, 'n'],
        [`max_by(${this.column(columns, 's')}, ${this.column(columns, 'n')})`, 's'],
        [`rank() OVER (ORDER BY count(*))`, 'n'],
        [`sum(count(*)) OVER ()`, 'n'],
      ]),
    )
    const names = keys.map((key) => key.name).join(', ')
    const by =
      keys.length === 0
        ? ''
        : ` GROUP BY ${this.pick([names, names, `CUBE (${names})`, `GROUPING SETS ((${names}), ())`])}`
    const items = [...keys.map((key) => [key.name, key.kind] as const), ...aggregates]
    const tail = this.chance(0.3) ? ` ORDER BY 1${this.pick([' DESC', '', ' NULLS FIRST'])} LIMIT 5` : ''
    return {
      sql: `SELECT ${items.map(([item], i) => `${item} AS o${i}`).join(', ')} FROM ${sql}${where}${by}${this.chance(0.3) ? ' HAVING count(*) > 0' : ''}${tail}`,
      kinds: items.map(([, kind]) => kind),
    }
  }

  private plain({ sql, columns }: Source, where: string, depth: number): Generated {
    const items = this.times(1, 3, () => {
      const kind = this.pick<Kind>(['n', 'n', 'n', 's', 'b', 'd', 'a'])
      return [this.expression(columns, kind, 2, depth > 0), kind] as const
    })
    const n = (): string => this.column(columns, 'n')
    if (this.chance(0.25)) {
      const window = this.pick([
        `row_number() OVER (PARTITION BY ${n()} ORDER BY ${n()})`,
        `sum(${n()}) OVER (ORDER BY ${n()} ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)`,
        `lag(${n()}) OVER (ORDER BY ${this.column(columns, 's')})`,
        `max(${n()}) OVER (ORDER BY ${this.column(columns, 'd')})`,
      ])
      items.push([window, 'n'])
    }
    const distinct = this.chance(0.2)
    const key = this.pick(['1', 'o0', distinct ? '1' : this.expression(columns, 'n', 1)])
    const direction = this.pick([' DESC', '', ' NULLS FIRST', ' DESC NULLS FIRST'])
    const limit = this.pick([' LIMIT 3', ' OFFSET 1 LIMIT 2', ' FETCH FIRST 2 ROWS WITH TIES', ''])
    return {
      sql: `SELECT ${distinct ? 'DISTINCT ' : ''}${items.map(([item], i) => `${item} AS o${i}`).join(', ')} FROM ${sql}${where}${this.chance(0.35) ? ` ORDER BY ${key}${direction}${limit}` : ''}`,
      kinds: items.map(([, kind]) => kind),
    }
  }
}

const TOKEN = /'(?:[^']|'')*'|"(?:[^"]|"")*"|[A-Za-z_]\w*|\d+(?:\.\d+)?|[^\sA-Za-z_0-9'"]|\s+/g

/** Statements in which some words are removed, inserted or replaced by words of other statements. */
export function mutate(statements: readonly string[], seed: number): () => string {
  const random = randomNumbers(seed)
  const pick = <T>(items: readonly T[]): T => items[Math.floor(random() * items.length)]!
  const tokenized = statements.map((sql) => sql.match(TOKEN) ?? [])
  const words = [...new Set(tokenized.flat().filter((token) => /\S/.test(token)))]
  return () => {
    const tokens = [...pick(tokenized)]
    for (let change = Math.floor(random() * 3); change >= 0; change--) {
      const at = Math.floor(random() * tokens.length)
      const kind = random()
      if (kind < 0.3) tokens.splice(at, 1)
      else if (kind < 0.7) tokens[at] = pick(words)
      else tokens.splice(at, 0, ' ', pick(words), ' ')
    }
    return tokens.join('')
  }
}
