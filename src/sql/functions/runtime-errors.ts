import { EngineError } from '../../shared/engine-error.ts'
import { isErrorName } from '../../shared/error-table.ts'

/** The form in which DuckDB reports an error raised by Quipu's own functions. */
const OWN = /^(?:[A-Za-z][A-Za-z ]* Error: )?(?:Error parsing json: : )?\u0001([A-Z][A-Z0-9_]*): ([^]*)$/

const integerNames: Readonly<Record<string, string>> = {
  INT8: 'tinyint',
  INT16: 'smallint',
  INT32: 'integer',
  INT64: 'bigint',
}

const limits: readonly (readonly [bigint, string])[] = [
  [128n, 'tinyint'],
  [32768n, 'smallint'],
  [2147483648n, 'integer'],
  [9223372036854775808n, 'bigint'],
]

/** Trino's message for the minimum value divided by -1. */
const beyond: Readonly<Record<string, string>> = {
  '-128': 'MAX_BYTE',
  '-32768': 'MAX_SHORT for type smallint',
  '-2147483648': 'MAX_INT for type integer',
}

type Rule = readonly [RegExp, (match: RegExpExecArray) => EngineError]

const outOfRange = (message: string): EngineError => new EngineError('NUMERIC_VALUE_OUT_OF_RANGE', message)
const decimalOverflow = (): EngineError => outOfRange('Decimal overflow')
const cannotCast = (message: string): EngineError => new EngineError('INVALID_CAST_ARGUMENT', message)

/** DuckDB messages for which Trino has an error of its own; the first match decides. */
const rules: readonly Rule[] = [
  [/Out of Memory|failed to (?:allocate|pin)|could not allocate|std::bad_alloc/i, () => exceededMemory()],
  [
    /No space left on device|max_temp_directory_size|failed to offload/i,
    () => new EngineError('EXCEEDED_SPILL_LIMIT', 'Query exceeded the limit of data spilled to disk'),
  ],
  [/^(?:INTERRUPT Error: )?Interrupted/i, () => new EngineError('USER_CANCELED', 'Query was canceled')],
  [
    /Overflow in (addition|subtraction|multiplication) of (INT8|INT16|INT32|INT64) \((.*)\)!/,
    ([, operation, type, operands]) => {
      const negated = operation === 'subtraction' ? /^0 - (-\d+)$/.exec(operands!)?.[1] : undefined
      if (negated !== undefined) return outOfRange(`${integerNames[type!]} negation overflow: ${negated}`)
      return outOfRange(`${integerNames[type!]} ${operation} overflow: ${operands}`)
    },
  ],
  [
    /Overflow in (?:addition|subtraction|multiplication) of (?:INT128|DECIMAL)|Overflow in HUGEINT|to DECIMAL|DECIMAL\(38/,
    decimalOverflow,
  ],
  [
    /Overflow on abs\((-?\d+)\)/,
    ([, value]) => outOfRange(`Value ${value} is out of range for abs(${typeOfSmallest(value!)})`),
  ],
  [
    /Overflow in division of (-\d+) \/ -1/,
    ([, value]) =>
      value === '-9223372036854775808'
        ? outOfRange(`bigint division overflow: ${value} / -1`)
        : new EngineError('GENERIC_INTERNAL_ERROR', `Value ${value!.slice(1)} exceeds ${beyond[value!]}`),
  ],
  [/Overflow in (?:negation|negate)/, () => outOfRange('negation overflow')],
  [/Type INT128 with value .* can't be cast .* INT64/, () => outOfRange('bigint addition overflow')],
  [/Type (?:INT\d+|UINT\d+|HUGEINT) with value .* can't be cast .* INT32/, () => outOfRange('integer overflow')],
  [
    /not in timestamp range|Type INT32 with value \S+(?: \(BC\))? can't be cast .* INT64/,
    () => outOfRange('Date or time out of range'),
  ],
  [/Overflow|out of range|Out of Range|value is out of range/, () => outOfRange('Numeric value out of range')],
  [
    /Could not convert string '([^]*)' to (\w+)/,
    ([, value, type]) => cannotCast(`Cannot cast '${value}' to ${(integerNames[type!] ?? type!).toUpperCase()}`),
  ],
  [/Malformed JSON/, () => cannotCast('The value cannot be read as the type')],
  [
    /invalid (?:date|timestamp|time) field format|(?:date|timestamp|time) field value out of range/,
    () => cannotCast('Value cannot be cast to a date or time'),
  ],
  [
    /^IO Error: Cannot open file "[^]*": Permission denied(?:\n|$)/,
    () => new EngineError('PERMISSION_DENIED', 'A file of the table may not be opened by the user that Quipu runs as'),
  ],
  [
    /More than one row returned by a subquery/i,
    () => new EngineError('SUBQUERY_MULTIPLE_ROWS', 'Scalar sub-query has returned multiple rows'),
  ],
  [
    /max_expression_depth|maximum recursion depth|Max expression depth|stack overflow/i,
    () => new EngineError('STACK_OVERFLOW', 'statement is too large (stack overflow during analysis)'),
  ],
  [/Map keys must be unique/, () => new EngineError('INVALID_FUNCTION_ARGUMENT', 'Duplicate map keys are not allowed')],
  [/Map keys can not be NULL/, () => new EngineError('INVALID_FUNCTION_ARGUMENT', 'map key cannot be null')],
  [
    /Invalid unicode|Invalid UTF-?8|not valid UTF8/i,
    () => new EngineError('INVALID_FUNCTION_ARGUMENT', 'Invalid UTF-8'),
  ],
]

function exceededMemory(): EngineError {
  return new EngineError('EXCEEDED_LOCAL_MEMORY_LIMIT', 'Query exceeded per-node memory limit')
}

function typeOfSmallest(value: string): string {
  return limits.find(([limit]) => BigInt(value) >= -limit)?.[1] ?? 'bigint'
}

/**
 * Translates the message of a failed DuckDB statement to an error of Trino. Messages of Quipu's functions begin with
 * chr(1) and carry `NAME: message`. DuckDB messages with a counterpart in Trino are translated. All others become
 * GENERIC_INTERNAL_ERROR with a fixed message: DuckDB's message must not reach a client and is kept for the log.
 */
export function translateError(text: string): EngineError {
  // Only at the beginning: the rest may quote the statement, including a chr(1).
  const own = OWN.exec(text)
  const name = own?.[1]
  if (own !== null && name !== undefined && isErrorName(name)) return new EngineError(name, trimmed(own[2]!))
  for (const [expression, translate] of rules) {
    const match = expression.exec(text)
    if (match !== null) return translate(match)
  }
  return new EngineError('GENERIC_INTERNAL_ERROR', 'The query engine failed on this statement', {
    cause: new Error(text),
  })
}

/** Removes the position in the DuckDB statement, which DuckDB may append. */
function trimmed(message: string): string {
  return message.replace(/\n\nLINE \d+: [^]*$/, '')
}
