import type { Identity, QueryRules, Sight } from '../authorization.ts'
import { remembering } from './remembering.ts'
import { isAbout, identityKey } from './rule-patterns.ts'
import type { QueryAccess, QueryRule, RulesFile } from './rules-schema.ts'
import type { PrincipalRule } from './system-sections.ts'

/**
 * Decides by the sections `queries`, `impersonation`, `principals` and `system_information`, as Trino reads them. The
 * first rule that fits decides, a section without a rule that fits refuses. Users have no roles here, so a rule for a
 * role never fits.
 */
export function queryRulesOf(file: RulesFile): QueryRules {
  const { queries, impersonation, principals, system_information: system } = file
  /** The rules of `queries` that apply to a user, for any owner of the query. Each statement asks for them. */
  const rulesFor = remembering(identityKey, (identity): readonly QueryRule[] =>
    (queries ?? []).filter((rule) => isAbout(rule, identity)),
  )

  function ruleAllows(identity: Identity, action: QueryAccess, owner: string): boolean {
    const rule = rulesFor(identity).find(({ queryOwner }) => queryOwner?.matches(owner) ?? true)
    return rule?.allow.has(action) ?? false
  }

  return {
    execute(identity) {
      if (queries === undefined) return true
      const rule = rulesFor(identity).find(({ queryOwner }) => queryOwner === undefined)
      return rule?.allow.has('execute') ?? false
    },
    queries: (identity, action, owner) => queries === undefined || ruleAllows(identity, action, owner),
    results: (identity, action, owner) => queries !== undefined && ruleAllows(identity, action, owner),
    sight: (identity) => (queries === undefined ? 'all' : sightOf(rulesFor(identity))),
    impersonation({ user }, newUser) {
      // As Trino does: without this section the section `principals` decides.
      if (impersonation === undefined) return principals !== undefined
      const found = impersonation.find(
        (rule) =>
          rule.originalRole === undefined &&
          (rule.originalUser?.matches(user) ?? true) &&
          rule.newUser.matches(newUser, user),
      )
      return found?.allow ?? false
    },
    setUser: (principal, user) =>
      principals === undefined ||
      (principal !== undefined && (principals.find((rule) => becomes(rule, principal, user))?.allow ?? false)),
    system: ({ user }, access) =>
      system?.find((rule) => rule.role === undefined && (rule.user?.matches(user) ?? true))?.allow.has(access) ?? false,
  }
}

function becomes(rule: PrincipalRule, principal: string, user: string): boolean {
  if (!rule.principal.matches(principal)) return false
  return (rule.user?.matches(user) ?? false) || rule.substituted?.(principal) === user
}

/** The queries that a user may see for certain, whatever the owners are. */
function sightOf(rules: readonly QueryRule[]): Sight {
  const last = rules.findIndex(({ queryOwner }) => queryOwner === undefined || queryOwner.any)
  const reached = last < 0 ? rules : rules.slice(0, last + 1)
  const views = reached.map(({ allow }) => allow.has('view'))
  if (!views.includes(true)) return 'own'
  return last >= 0 && !views.includes(false) ? 'all' : 'some'
}
