import { objectRulesOf } from '../../src/security/rules/object-rules.ts'
import { readRules } from '../../src/security/rules/read-rules.ts'
import type { ObjectRights } from '../../src/shared/object-rights.ts'

/** The rights of users without groups under these rules of the file of rules. */
export function rightsUnder(rules: object): (user: string) => ObjectRights {
  const objects = objectRulesOf(readRules(JSON.stringify(rules)))
  return (user) => objects({ user, groups: [] })
}
