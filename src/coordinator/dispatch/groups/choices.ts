import { createHash } from 'node:crypto'
import type { GroupRules } from './group-rules.ts'
import type { GroupedSession, GroupedStatement } from './group-selector.ts'
import { choose, type Choice } from './rules-lookup.ts'

/** The most kinds of session whose group is cached. */
const MOST_REMEMBERED = 10_000

/**
 * Caches the groups of statements while the rules stay the same, so that a thousand expressions are not evaluated each
 * time.
 */
export class Choices {
  readonly #rules: GroupRules
  readonly #ofSessions = new WeakMap<GroupedSession, Choice>()
  readonly #ofKinds = new Map<string, Choice>()

  constructor(rules: GroupRules) {
    this.#rules = rules
  }

  /** Whether the group for statements of this session is cached. */
  has(session: GroupedSession): boolean {
    return this.#ofSessions.has(session)
  }

  of(statement: GroupedStatement): Choice {
    const { session } = statement
    if (this.#rules.single) return this.#rules.single
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

/** A digest of everything that a selector may ask of a session; a client may make those texts long. */
function kindOf(session: GroupedSession): string {
  const { user, groups, originalUser, principal, source, clientTags, resourceEstimates } = session
  const asked = JSON.stringify([user, groups, originalUser, principal, source, clientTags, resourceEstimates])
  return createHash('sha256').update(asked).digest('base64')
}
