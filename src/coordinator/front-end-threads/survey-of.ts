import type { StatementText } from '../../sql/parsed-statement.ts'
import { namesIn, readsOnly } from '../../sql/statement-names.ts'
import { explainedBy, queryTypeOf } from '../../sql/statements/query-type.ts'
import type { StatementSurvey } from './thread-messages.ts'

/**
 * Finds the properties of a text that decide its route, from its syntax alone. A text that does not parse has no names.
 */
export function surveyOf(text: StatementText): StatementSurvey {
  return {
    ...namesIn(text.parse()),
    readOnly: readsOnly(text),
    queryType: queryTypeOf(text),
    explains: explainedBy(text),
  }
}
