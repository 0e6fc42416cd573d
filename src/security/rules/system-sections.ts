import type { RE2JS } from 're2js'
import { z } from 'zod'
import { compileJava, namePattern, type NamePattern } from './java-regex.ts'
import { pattern, section, wrong } from './rule-patterns.ts'

// The sections about the server itself and about identities, as Trino reads them (FileBasedSystemAccessControl of 476).

const accessModes = ['read', 'write'] as const

const systemInformationRule = z.strictObject({
  user: pattern,
  role: pattern,
  allow: z
    .array(
      z
        .string()
        .transform((text) => text.toLowerCase())
        .pipe(z.enum(accessModes)),
    )
    .transform((modes): ReadonlySet<(typeof accessModes)[number]> => new Set(modes)),
})

const authorizationRule = z
  .strictObject({
    original_user: pattern,
    originalUser: pattern,
    original_group: pattern,
    originalGroup: pattern,
    original_role: pattern,
    originalRole: pattern,
    new_user: pattern,
    newUser: pattern,
    new_role: pattern,
    newRole: pattern,
    allow: z
      .boolean()
      .nullish()
      .transform((given) => given ?? true),
  })
  .transform((keys, context) => {
    const newUser = keys.new_user ?? keys.newUser
    const newRole = keys.new_role ?? keys.newRole
    if (newUser === undefined && newRole === undefined) return wrong(context, [], 'new_user or new_role is missing')
    return {
      user: keys.original_user ?? keys.originalUser,
      group: keys.original_group ?? keys.originalGroup,
      role: keys.original_role ?? keys.originalRole,
      newUser,
      newRole,
      allow: keys.allow,
    }
  })

export interface PrincipalRule {
  readonly principal: NamePattern
  readonly user: NamePattern | undefined
  /** The user that a principal becomes by `principal_to_user`. */
  readonly substituted: ((principal: string) => string) | undefined
  readonly allow: boolean
}

const principalRule = z
  .strictObject({
    principal: z.string(),
    user: pattern,
    principal_to_user: z.string().nullish(),
    allow: z.boolean().default(false),
  })
  .transform((keys, context): PrincipalRule => {
    const { principal, user, principal_to_user: template, allow } = keys
    if (user === undefined && (template ?? undefined) === undefined)
      return wrong(context, [], 'A principal rule needs user or principal_to_user')
    let key = 'principal'
    try {
      const known = namePattern(principal)
      const compiled = compileJava(principal)
      key = 'principal_to_user'
      const substituted = typeof template === 'string' ? substitution(compiled, template) : undefined
      return { principal: known, user, substituted, allow }
    } catch (error) {
      return wrong(context, [key], (error as Error).message)
    }
  })

/**
 * Replaces as Java does: `$1` and `${name}` stand for what the groups of the principal matched, `\` takes the next
 * character literally.
 * @throws Error for a group that does not exist
 */
function substitution(principal: RE2JS, template: string): (name: string) => string {
  const pieces = piecesOf(principal, template)
  return (name) => {
    const found = principal.matcher(name)
    let written = ''
    let done = 0
    // Every match is replaced. As in Java, `(.*)` also matches the empty text at the end.
    while (found.find()) {
      written += name.slice(done, found.start())
      for (const piece of pieces) written += 'text' in piece ? piece.text : (found.group(piece.group) ?? '')
      done = found.end()
    }
    return written + name.slice(done)
  }
}

type Piece = { readonly text: string } | { readonly group: number | string }

function piecesOf(principal: RE2JS, template: string): readonly Piece[] {
  const pieces: Piece[] = []
  for (let at = 0; at < template.length; at++) {
    const character = template[at]!
    if (character === '\\') {
      const next = template[++at]
      if (next === undefined) throw new Error(`'${template}' ends with a backslash`)
      pieces.push({ text: next })
    } else if (character === '$') {
      const { group, length } = groupAt(principal, template, at + 1)
      pieces.push({ group })
      at += length
    } else pieces.push({ text: character })
  }
  return pieces
}

function groupAt(principal: RE2JS, template: string, at: number): { group: number | string; length: number } {
  const rest = template.slice(at)
  const named = /^\{([A-Za-z][A-Za-z0-9]*)\}/.exec(rest)
  if (named && Object.hasOwn(principal.namedGroups(), named[1]!)) return { group: named[1]!, length: named[0].length }
  // As in Java, the longest number that is still a group.
  let digits = /^\d+/.exec(rest)?.[0] ?? ''
  while (digits.length > 1 && Number(digits) > principal.groupCount()) digits = digits.slice(0, -1)
  if (digits === '' || Number(digits) > principal.groupCount())
    throw new Error(`'${template}' names a group that the principal does not have`)
  return { group: Number(digits), length: digits.length }
}

export const systemSections = {
  system_information: section(systemInformationRule),
  authorization: section(authorizationRule),
  principals: section(principalRule),
}

export type SystemSections = { readonly [K in keyof typeof systemSections]: z.output<(typeof systemSections)[K]> }
