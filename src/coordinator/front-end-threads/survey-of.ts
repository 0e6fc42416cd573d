import type { StatementText } from '../../sql/parsed-statement.ts'
import { namesIn, readsOnly } from '../../sql/statement-names.ts'
import { queryTypeOf } from '../../sql/statements/query-type.ts'
import type { StatementSurvey } from './thread-messages.ts'

/** What the syntax of a text says about its route. A text that is no statement has no names. */
export function surveyOf(text: StatementText): StatementSurvey {
  return { ...namesIn(text.parse()), readOnly: readsOnly(text), queryType: queryTypeOf(text) }
}
