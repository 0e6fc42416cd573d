import { Fault, type AttackFamily } from './attack-case.ts'
import { wellFormed } from './hostile-texts.ts'
import { identifierOf, literalOf, runStatement } from './statement.ts'

/** Expressions over a literal that return the literal unchanged. */
const sameAgain: readonly ((literal: string) => string)[] = [
  (one) => one,
  (one) => `CAST(${one} AS varchar)`,
  (one) => `concat(${one}, '')`,
  (one) => `${one} || ''`,
  (one) => `coalesce(NULL, ${one})`,
  (one) => `element_at(ARRAY[${one}], 1)`,
  (one) => `CASE WHEN ${one} = ${one} THEN ${one} END`,
  (one) => `if(${one} IS NOT NULL, ${one})`,
  (one) => `replace(${one}, 'no such text here', 'x')`,
  (one) => `substr(${one}, 1)`,
  (one) => `reverse(reverse(${one}))`,
  (one) => `try(${one})`,
  (one) => `map(ARRAY['k'], ARRAY[${one}])['k']`,
  (one) => `CAST(ROW(${one}) AS ROW(v varchar)).v`,
  (one) => `from_utf8(to_utf8(${one}))`,
  (one) => `from_utf8(from_hex(to_hex(to_utf8(${one}))))`,
  (one) => `json_extract_scalar(json_object('k' VALUE ${one}), '$.k')`,
  (one) => `array_join(ARRAY[${one}], '')`,
  (one) => `element_at(array_remove(ARRAY[${one}, 'no'], 'no'), 1)`,
  (one) => `element_at(filter(ARRAY[${one}], x -> x = ${one}), 1)`,
  (one) => `element_at(transform(ARRAY[''], x -> x || ${one}), 1)`,
  (one) => `reduce(ARRAY[${one}], '', (s, x) -> s || x, s -> s)`,
  (one) => `url_decode(url_encode(${one}))`,
  (one) => `max(${one})`,
  (one) => `max(${one}) FILTER (WHERE ${one} = ${one})`,
  (one) => `element_at(array_agg(${one} ORDER BY ${one}), 1)`,
  (one) => `listagg(${one}, ',') WITHIN GROUP (ORDER BY ${one})`,
  (one) => `max(${one}) OVER (PARTITION BY ${one} ORDER BY ${one})`,
  (one) => `first_value(${one}) OVER (ORDER BY ${one} ROWS UNBOUNDED PRECEDING)`,
  (one) => `lag('x', 1, ${one}) OVER (ORDER BY 1)`,
  (one) => `max_by(${one}, 1)`,
  (one) => `arbitrary(${one})`,
  (one) => `element_at(map_keys(histogram(${one})), 1)`,
]

/** Conditions over a literal that are true for every text. */
const decides: readonly ((literal: string) => string)[] = [
  (one) => `${one} = ${one}`,
  (one) => `${one} IN (${one}, 'no')`,
  (one) => `starts_with(${one}, ${one})`,
  (one) => `strpos(${one}, ${one}) = 1`,
  (one) => `contains(ARRAY[${one}], ${one})`,
  (one) => `length(${one}) = length(concat(${one}, ''))`,
  (one) => `${one} IS NOT DISTINCT FROM ${one}`,
  (one) => `array_position(ARRAY[${one}], ${one}) = 1`,
  (one) => `ROW(${one}, 1) = ROW(${one}, 1)`,
  (one) => `position(${one} IN ${one}) = 1`,
]

/** The sources of the row: none, values, or a file that a worker reads. */
const sources = [
  '',
  ' FROM (VALUES 1) AS v(a)',
  ' FROM region WHERE regionkey = 0',
  ' FROM lake.odd.people WHERE id = 1',
]

export const literals: AttackFamily = {
  name: 'literals',
  weight: 220,
  async run(context) {
    const { random, texts } = context
    const text = random.chance(0.01)
      ? wellFormed(texts.statement().repeat(20_000).slice(0, 200_000))
      : texts.statement()
    const literal = literalOf(text, context)
    const whole = random.chance(0.75)
    const expression = random.pick(whole ? sameAgain : decides)(literal)
    const alias = random.chance(0.5) ? ` AS ${identifierOf(texts.statement())}` : ''
    const sql = `SELECT ${expression}${alias}${random.pick(sources)}`
    expectOne(await runStatement(context, sql), whole ? text : true)
  },
}

/** Writes a text into a table, and reads it back by a condition with the same literal. */
export const writtenLiterals: AttackFamily = {
  name: 'written literals',
  weight: 12,
  async run(context) {
    const { random, texts } = context
    const text = texts.statement()
    const literal = literalOf(text, context)
    const table = `memory.default.t${random.whole(0, 2 ** 31)}`
    const column = identifierOf(`c${texts.statement()}`)
    const made = await runStatement(context, `CREATE TABLE ${table} AS SELECT ${literal} AS ${column}`)
    // The file format may not allow the name of the column.
    if (!made || made.error) return
    try {
      expectOne(await runStatement(context, `SELECT ${column} FROM ${table} WHERE ${column} = ${literal}`), text)
    } finally {
      await runStatement(context, `DROP TABLE ${table}`)
    }
  },
}

/** Any text as a parameter of a prepared statement stays a value. */
export const parameters: AttackFamily = {
  name: 'parameters',
  weight: 25,
  async run(context) {
    const { random, texts } = context
    const text = texts.statement()
    const literal = literalOf(text, context)
    const prepared = random.pick([
      "SELECT concat(?, '')",
      'SELECT max(?) OVER (PARTITION BY 1)',
      'SELECT ? FROM region LIMIT 1',
    ])
    const ran = await (random.chance(0.5)
      ? runStatement(context, `EXECUTE IMMEDIATE '${prepared.replaceAll("'", "''")}' USING ${literal}`)
      : runStatement(context, `EXECUTE p USING ${literal}`, {
          'x-trino-user': 'attack',
          'x-trino-catalog': 'tpch',
          'x-trino-schema': 'tiny',
          'x-trino-prepared-statement': `p=${encodeURIComponent(prepared)}`,
        }))
    expectOne(ran, text)
  },
}

function expectOne(ran: Awaited<ReturnType<typeof runStatement>>, value: CaseValue): void {
  if (!ran) throw new Fault('a statement with a literal is refused')
  if (ran.error) throw new Fault(`a literal is no value: ${ran.error.errorName}: ${ran.error.message.slice(0, 300)}`)
  const given = ran.rows[0]?.[0]
  if (ran.rows.length === 1 && given === value) return
  throw new Fault(
    `a literal gives ${JSON.stringify(ran.rows).slice(0, 300)} and not ${JSON.stringify(value).slice(0, 300)}`,
  )
}

type CaseValue = string | boolean
