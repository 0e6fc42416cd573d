import { z } from 'zod'

/** The ways of being known that may be configured. */
const authenticationMethods = ['password', 'jwt', 'oauth2', 'certificate'] as const
export type AuthenticationMethod = (typeof authenticationMethods)[number]

export const principalSchema = z.object({
  name: z
    .string()
    .min(1)
    .describe('As whoever vouches for it writes it: the name in the password file, `sub` of a token'),
  user: z.string().min(1).describe('The user that the name is here, by the user mapping; the name itself without one'),
  groups: z.array(z.string()).readonly(),
  method: z.enum(authenticationMethods),
})

/** Somebody who was verified. */
export type VerifiedPrincipal = Readonly<z.output<typeof principalSchema>>

/** What is told of somebody is in each request that a coordinator passes on, and in each of his queries: not more. */
const MOST_PRINCIPAL_BYTES = 24 * 1024

/** Are name, user and groups, together, what may be told with every request? */
export function isShort(principal: VerifiedPrincipal): boolean {
  return Buffer.byteLength(JSON.stringify(principal)) <= MOST_PRINCIPAL_BYTES
}

const LONGEST_NAME = 1_000

/** What others vouch for is a name only if it can be told, in events, tables, headers and lines, as itself and nothing else. */
export function isTellable(name: string): boolean {
  return name.length <= LONGEST_NAME && !/[\p{Cc}\p{Cs}\u2028\u2029]/u.test(name)
}
