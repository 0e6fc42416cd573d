import { EngineError } from '../../../shared/engine-error.ts'
import { joined, literal, sql, type Sql } from '../../../duckdb/text/sql.ts'
import { char, varchar } from '../../types/sql-type.ts'
import { GROWING, PARTIAL, TOTAL, scalar, type Bindings, type FunctionDefinition } from '../function-definition.ts'
import type { RenderContext } from '../rendering.ts'

/** x + z * (x + 1): every gap may receive the replacement; unbounded if one of the two is. */
function replacedLength({ numbers }: Bindings): ReturnType<typeof varchar> {
  const [x, z] = [numbers['x'], numbers['z']]
  return x === undefined || z === undefined ? varchar() : varchar(Math.min(x + z * (x + 1), 2147483647))
}

function concatenated(context: RenderContext): Sql {
  return balancedConcat(valuesOf(context))
}

/** Concatenates as a balanced tree: a chain of `||` would nest as deep as its length. */
function balancedConcat(values: readonly Sql[]): Sql {
  if (values.length <= 8) return sql`(${joined(values, ' || ')})`
  const middle = values.length >> 1
  return sql`(${balancedConcat(values.slice(0, middle))} || ${balancedConcat(values.slice(middle))})`
}

function valuesOf(context: RenderContext): readonly Sql[] {
  return context.args.map((_, i) => context.value(i))
}

const LONGEST_CHAR = 65_536

function concatenatedChar(length: number): ReturnType<typeof char> {
  if (length > LONGEST_CHAR) throw new EngineError('TYPE_NOT_FOUND', `Unknown type: char(${length})`)
  return char(length)
}

/** concat_ws: the separator comes first; NULL parts are left out. */
function joinedWithSeparator(context: RenderContext): Sql {
  if (context.args.length < 2) {
    throw new EngineError('INVALID_FUNCTION_ARGUMENT', 'There must be two or more arguments to concat_ws')
  }
  return sql`concat_ws(${joined(valuesOf(context), ', ')})`
}

function trims(name: string): FunctionDefinition[] {
  return [
    scalar(`${name}(varchar(x))`, 'varchar(x)', `q_${name}($1)`, TOTAL),
    scalar(`${name}(varchar(x), CodePoints)`, 'varchar(x)', `${name}($1, $2)`, TOTAL),
    // The padding of a char consists of blanks, which are trimmed too.
    scalar(`${name}(char(x))`, 'varchar(x)', name === 'ltrim' ? `rtrim(q_ltrim($1), ' ')` : `q_${name}($1)`, TOTAL),
    scalar(`${name}(char(x), CodePoints)`, 'varchar(x)', `rtrim(${name}(rtrim($1, ' '), $2), ' ')`, TOTAL),
  ]
}

function pads(name: string): FunctionDefinition[] {
  return [
    scalar(`${name}(varchar(x), bigint, varchar(y))`, 'varchar', `t_${name}($1, $2, $3)`, GROWING),
    scalar(`${name}(varbinary, bigint, varbinary)`, 'varbinary', `t_${name}_bin($1, $2, $3)`, GROWING),
  ]
}

const substrings = ['substr', 'substring'].flatMap((name) => [
  scalar(`${name}(varchar(x), bigint)`, 'varchar(x)', 'q_substr($1, $2)', TOTAL),
  scalar(`${name}(varchar(x), bigint, bigint)`, 'varchar(x)', 'q_substr3($1, $2, $3)', TOTAL),
  scalar(`${name}(char(x), bigint)`, 'varchar(x)', 'q_substr($1, $2)', TOTAL),
  scalar(`${name}(char(x), bigint, bigint)`, 'varchar(x)', 'q_substr3($1, $2, $3)', TOTAL),
])

/** String functions in code points, as in Trino. Some of DuckDB's own functions count graphemes or bytes. */
export const stringFunctions: readonly FunctionDefinition[] = [
  scalar('length(varchar(x))', 'bigint', 'length($1)', TOTAL),
  scalar('length(char(x))', 'bigint', 'length($1)', TOTAL),
  scalar('length(varbinary)', 'bigint', 'octet_length($1)', TOTAL),
  scalar('lower(varchar(x))', 'varchar(x)', 'lower($1)', TOTAL),
  scalar('lower(char(x))', 'char(x)', 'lower($1)', TOTAL),
  scalar('upper(varchar(x))', 'varchar(x)', 'q_upper($1)', TOTAL),
  scalar('upper(char(x))', 'char(x)', 'q_upper($1)', TOTAL),
  scalar('reverse(varchar(x))', 'varchar(x)', 'q_reverse($1)', PARTIAL),
  scalar('reverse(char(x))', 'char(x)', 'q_reverse($1)', PARTIAL),
  scalar('reverse(varbinary)', 'varbinary', 'u_reverse_bytes($1)', PARTIAL),
  ...substrings,
  scalar('substr(varbinary, bigint)', 'varbinary', 'q_substr_bin($1, $2, octet_length($1))', PARTIAL),
  scalar('substr(varbinary, bigint, bigint)', 'varbinary', 'q_substr_bin($1, $2, $3)', PARTIAL),
  scalar('strpos(varchar(x), varchar(y))', 'bigint', 'instr($1, $2)', TOTAL),
  scalar('strpos(varchar(x), varchar(y), bigint)', 'bigint', 't_strpos($1, $2, $3)', PARTIAL),
  scalar('position(varchar(x), varchar(y))', 'bigint', 'instr($2, $1)', PARTIAL, { hidden: true }),
  scalar('index(varchar, varchar)', 'bigint', 'instr($1, $2)', PARTIAL),
  scalar('replace(varchar(x), varchar(y))', 'varchar(x)', `replace($1, $2, '')`, GROWING),
  scalar('replace(varchar(x), varchar(y), varchar(z))', replacedLength, 'q_replace($1, $2, $3)', GROWING),
  scalar('concat(varchar, varchar...)', 'varchar', concatenated, GROWING),
  scalar(
    'concat(char(x), char(y))',
    ({ numbers }) => concatenatedChar((numbers['x'] ?? 0) + (numbers['y'] ?? 0)),
    '($1 || $2)',
    GROWING,
  ),
  scalar('concat(varbinary, varbinary...)', 'varbinary', concatenated, GROWING),
  scalar('concat_ws(varchar, varchar...)', 'varchar', joinedWithSeparator, PARTIAL, { calledOnNull: true }),
  scalar(
    'concat_ws(varchar, array(varchar))',
    'varchar',
    (context) => {
      const separator = context.constant(0)
      return typeof separator === 'string'
        ? context.fill`CASE WHEN $2 IS NOT NULL THEN coalesce(array_to_string($2, ${literal(separator)}), '') END`
        : context.fill`q_concat_ws($1, $2)`
    },
    PARTIAL,
    { calledOnNull: true },
  ),
  scalar('starts_with(varchar(x), varchar(y))', 'boolean', 'starts_with($1, $2)', TOTAL),
  scalar('translate(varchar(x), varchar(y), varchar(z))', 'varchar', 'translate($1, $2, $3)', PARTIAL),
  ...pads('lpad'),
  scalar('lpad(char(x), bigint, varchar(y))', 'varchar', 't_lpad($1, $2, $3)', GROWING),
  ...pads('rpad'),
  ...trims('trim'),
  ...trims('ltrim'),
  ...trims('rtrim'),
  scalar('split(varchar(x), varchar(y))', 'array(varchar(x))', 'q_split($1, $2)', GROWING),
  scalar('split(varchar(x), varchar(y), bigint)', 'array(varchar(x))', 't_split($1, $2, $3)', GROWING),
  scalar('split_part(varchar(x), varchar(y), bigint)', 'varchar(x)', 't_split_part($1, $2, $3)', PARTIAL),
  scalar('split_to_map(varchar, varchar, varchar)', 'map(varchar,varchar)', 't_split_to_map($1, $2, $3)', PARTIAL),
  scalar(
    'split_to_multimap(varchar, varchar, varchar)',
    'map(varchar,array(varchar))',
    't_split_to_multimap($1, $2, $3)',
    PARTIAL,
  ),
  scalar('chr(bigint)', 'varchar(1)', 't_chr($1)', PARTIAL),
  scalar('codepoint(varchar(1))', 'integer', 'q_codepoint($1)', PARTIAL),
  scalar('levenshtein_distance(varchar(x), varchar(y))', 'bigint', 'q_levenshtein($1, $2)', GROWING),
  scalar('hamming_distance(varchar(x), varchar(y))', 'bigint', 'q_hamming($1, $2)', GROWING),
  scalar('normalize(varchar(x), varchar(y))', 'varchar', 'u_normalize($1, $2)', PARTIAL),
  scalar('normalize(varchar(x))', 'varchar', 'nfc_normalize($1)', PARTIAL, { hidden: true }),
  scalar('soundex(varchar)', 'varchar(4)', 'u_soundex($1)', PARTIAL),
  scalar('luhn_check(varchar)', 'boolean', 't_luhn($1)', PARTIAL),
  scalar('word_stem(varchar(x))', 'varchar(x)', `u_word_stem($1, 'en')`, PARTIAL, {
    note: "English alone, Porter's second algorithm",
  }),
  scalar('word_stem(varchar(x), varchar(2))', 'varchar(x)', 'u_word_stem($1, $2)', PARTIAL, {
    note: "English alone, Porter's second algorithm",
  }),
  scalar('char2hexint(varchar)', 'varchar', 'u_char2hexint($1)', PARTIAL),
]
