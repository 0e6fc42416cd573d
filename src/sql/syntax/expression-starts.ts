import { nonReservedWords } from './keywords.ts'

const starts: ReadonlySet<string> = new Set([
  ...nonReservedWords,
  ...['IDENTIFIER', 'QUOTED_IDENTIFIER', 'BACKQUOTED_IDENTIFIER', 'DIGIT_IDENTIFIER'],
  ...['STRING_LITERAL', 'UNICODE_STRING', 'BINARY_LITERAL', 'INTEGER_VALUE', 'DECIMAL_VALUE', 'DOUBLE_VALUE'],
  ...[
    '(',
    '[',
    '+',
    '-',
    '?',
    'NULL',
    'TRUE',
    'FALSE',
    'NOT',
    'CASE',
    'CAST',
    'EXISTS',
    'TRIM',
    'EXTRACT',
    'NORMALIZE',
  ],
  ...['LISTAGG', 'GROUPING', 'JSON_ARRAY', 'JSON_EXISTS', 'JSON_OBJECT', 'JSON_QUERY', 'JSON_VALUE'],
  ...['CURRENT_CATALOG', 'CURRENT_DATE', 'CURRENT_PATH', 'CURRENT_SCHEMA', 'CURRENT_TIME', 'CURRENT_TIMESTAMP'],
  ...['CURRENT_USER', 'LOCALTIME', 'LOCALTIMESTAMP'],
])

/** Whether an expression may begin with a token of this type. */
export function startsExpression(type: string): boolean {
  return starts.has(type)
}
