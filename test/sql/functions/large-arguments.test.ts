import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { EngineError } from '../../../src/shared/engine-error.ts'
import { openLibraryRunner, type LibraryRunner } from '../../support/library-runner.ts'

/** 400,000 code points. Two of three have one byte. */
const text = `rpad('', 400000, 'abé')`
/** 100,000 numbers: all distinct, and with only 10,000 distinct values. */
const numbers = `flatten(transform(sequence(0, 9), i -> transform(sequence(1, 10000), x -> x + i * 10000)))`
const repeated = `flatten(repeat(sequence(1, 10000), 10))`
const texts = `transform(${repeated}, x -> 'k' || CAST(x AS varchar))`
const entries = `array_join(transform(${numbers}, x -> CAST(x AS varchar) || '=v'), ',')`
const instants = `transform(sequence(1, 5000), x -> from_unixtime(x))`

/** The answers of statements: a value, or Trino's error name. With quadratic time each would take many minutes. */
const answers: readonly (readonly [sql: string, answer: unknown])[] = [
  [`length(replace(${text}, '', 'x'))`, 800_001],
  [`length(char2hexint(${text}))`, 1_600_000],
  [`luhn_check(rpad('', 400000, '4'))`, true],
  [`strpos(${text}, 'b', 100000)`, 299_999],
  [`strpos(${text}, 'bé', -100000)`, 100_001],
  [`strpos(rpad('', 400000, 'a'), rpad('', 200000, 'a'), 200000)`, 200_000],
  [`length(concat_ws('-', ${texts}))`, 588_939],
  [`length(array_join(${repeated}, '-', 'none'))`, 488_939],
  [`word_stem(rpad('', 400000, 'a') || 's') = rpad('', 400000, 'a')`, true],
  [`date_parse('', rpad('', 400000, '7'))`, 'INVALID_FUNCTION_ARGUMENT'],
  [`parse_datetime('', rpad('', 400000, '-'))`, 'INVALID_FUNCTION_ARGUMENT'],
  [`regexp_like('a', rpad('', 400000, 'a{9}'))`, 'INVALID_FUNCTION_ARGUMENT'],
  [`from_base(rpad('', 400000, '1'), 10)`, 'INVALID_FUNCTION_ARGUMENT'],
  [`cardinality(split_to_map(${entries}, ',', '='))`, 100_000],
  [`cardinality(split_to_map(${entries} || ',7=v', ',', '='))`, 'INVALID_FUNCTION_ARGUMENT'],
  [`cardinality(split_to_multimap(${entries} || ',7=w', ',', '=')['7'])`, 2],
  [`cardinality(array_distinct(${texts}))`, 10_000],
  [`array_distinct(${instants} || ${instants}) = ${instants}`, true],
  [`cardinality(array_union(${numbers}, ${repeated}))`, 100_000],
  [`cardinality(array_intersect(${numbers}, ${repeated}))`, 10_000],
  [`cardinality(array_except(${numbers}, ${repeated}))`, 90_000],
  [`array_histogram(${texts})['k7']`, 10],
  [`cardinality(ngrams(${numbers}, 3))`, 99_998],
  [`cardinality(combinations(${numbers}, 1))`, 100_000],
  [`cardinality(combinations(sequence(1, 200), 2))`, 19_900],
  [`combinations(sequence(1, 60), 5)`, 'INVALID_FUNCTION_ARGUMENT'],
  [`cardinality(map(${numbers}, ${numbers}))`, 100_000],
  [`map(${repeated}, ${repeated})`, 'INVALID_FUNCTION_ARGUMENT'],
  [`map_from_entries(transform(${repeated}, x -> (x, x)))`, 'INVALID_FUNCTION_ARGUMENT'],
  [`cardinality(multimap_from_entries(transform(${repeated}, x -> (x, x)))[7])`, 10],
  [`(SELECT cardinality(multimap_agg(x, x)[7]) FROM UNNEST(${repeated}) t(x))`, 10],
  [`(SELECT cardinality(map_union(MAP(ARRAY[x], ARRAY[1]))) FROM UNNEST(${repeated}) t(x))`, 10_000],
  [`(SELECT cardinality(histogram(x)) FROM UNNEST(${instants}) t(x))`, 5000],
  [
    `(SELECT cardinality(merge(s)) BETWEEN 90000 AND 110000 FROM (SELECT approx_set(x) AS s FROM UNNEST(${numbers}) t(x) GROUP BY x % 2))`,
    true,
  ],
  [`length(format('%2000000000d', 1))`, 'EXCEEDED_FUNCTION_MEMORY_LIMIT'],
  [`length(format('%.2000000000f', 1e0))`, 'EXCEEDED_FUNCTION_MEMORY_LIMIT'],
  [`length(format('%2000000000s', 'a'))`, 'EXCEEDED_FUNCTION_MEMORY_LIMIT'],
  [`(SELECT value_at_quantile(qdigest_agg(x, 1000000000000), 0.5e0) FROM UNNEST(sequence(1, 3)) t(x))`, 2],
]

describe('Functions over large texts, arrays and maps avoid quadratic time, whether they succeed or fail', () => {
  let runner: LibraryRunner
  beforeAll(async () => {
    runner = await openLibraryRunner()
  })
  afterAll(() => runner.close())

  it.each(answers)('%s', async (sql, answer) => {
    const given = await runner.run(`SELECT ${sql}`).then(
      ({ rows }) => rows[0]?.[0],
      (error: unknown) => {
        if (error instanceof EngineError) return error.errorName
        throw error
      },
    )
    expect(typeof answer === 'number' ? Number(given) : given).toBe(answer)
  })
})
