import { fingerprintOf, type NameDefaults } from '../../sql/fingerprint.ts'
import type { StatementText } from '../../sql/parsed-statement.ts'
import { namesIn, readsOnly } from '../../sql/statement-names.ts'
import { explainedBy, queryTypeOf } from '../../sql/statements/query-type.ts'
import type { StatementSurvey } from './thread-messages.ts'

/**
 * Finds the properties of a text that decide its route, from its syntax alone. A text that does not parse has no names.
 */
export function surveyOf(text: StatementText, at: NameDefaults): StatementSurvey {
  const parsed = text.parse()
  return {
    ...namesIn(parsed),
    fingerprint: fingerprintOf(parsed, at),
    readOnly: readsOnly(text),
    queryType: queryTypeOf(text),
    explains: explainedBy(text),
  }
}
