import { createHash } from 'node:crypto'
import type { GroupRules } from './group-rules.ts'
import type { GroupedSession, GroupedStatement } from './group-selector.ts'
import { choose, type Choice } from './rules-lookup.ts'

/** Of so many kinds of session it is remembered what they get. */
const MOST_REMEMBERED = 10_000

/** The groups that statements get while rules stay as they are: a thousand expressions are not evaluated for each. */
export class Choices {
  readonly #rules: GroupRules
  readonly #ofSessions = new WeakMap<GroupedSession, Choice>()
  readonly #ofKinds = new Map<string, Choice>()

  constructor(rules: GroupRules) {
    this.#rules = rules
  }

  /** Is it remembered what statements of this session get? */
  has(session: GroupedSession): boolean {
    return this.#ofSessions.has(session)
  }

  of(statement: GroupedStatement): Choice {
    const { session } = statement
    const known = this.#ofSessions.get(session)
    if (known) return known
    const choice = this.#ofKind(statement)
    this.#ofSessions.set(session, choice)
    return choice
  }

  #ofKind(statement: GroupedStatement): Choice {
    const kind = kindOf(statement.session)
    const known = this.#ofKinds.get(kind)
    if (known) return known
    let dependsOnText = false
    const choice = choose(this.#rules, {
      session: statement.session,
      queryType() {
        dependsOnText = true
        return statement.queryType()
      },
    })
    if (dependsOnText) return choice
    if (this.#ofKinds.size >= MOST_REMEMBERED) this.#ofKinds.clear()
    this.#ofKinds.set(kind, choice)
    return choice
  }
}

/** By all that a selector may ask of a session, which is as long as a client makes it: its digest. */
function kindOf(session: GroupedSession): string {
  const { user, groups, originalUser, principal, source, clientTags, resourceEstimates } = session
  const asked = JSON.stringify([user, groups, originalUser, principal, source, clientTags, resourceEstimates])
  return createHash('sha256').update(asked).digest('base64')
}
