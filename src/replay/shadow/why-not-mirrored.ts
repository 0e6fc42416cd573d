import { StatementText } from '../../sql/parsed-statement.ts'
import { namesIn, readsOnly } from '../../sql/statement-names.ts'
import { explainedBy } from '../../sql/statements/query-type.ts'
import type { RecordedStatement } from '../recorded-statement.ts'
import type { SkipReason } from '../verdict.ts'

/**
 * The reason why a live statement must not run on another server; undefined for a statement that only reads. The record
 * already says that the statement only read on its own server. This checks its text too, because another server may
 * give the text another meaning.
 */
export function whyNotMirrored({ sql, session }: Pick<RecordedStatement, 'sql' | 'session'>): SkipReason | undefined {
  const { transactionId = 'NONE', preparedStatements } = session
  if (transactionId.toUpperCase() !== 'NONE') return 'transaction'
  // Two servers may choose differently among names that differ only in case.
  const names = Object.keys(preparedStatements).map((name) => name.toLowerCase())
  if (new Set(names).size < names.length) return 'notAnalysed'
  const text = new StatementText(sql, preparedStatements)
  const parsed = text.parse()
  if (parsed.kind === 'invalid') return 'notAnalysed'
  if (!readsOnly(text)) return 'write'
  if (parsed.tree.kind === 'ExplainAnalyze') return 'notAQuery'
  const explained = explainedBy(text)
  if (explained && explained.queryType !== 'SELECT' && explained.queryType !== 'DESCRIBE') return 'write'
  return namesIn(parsed).unresolved ? 'effects' : undefined
}
