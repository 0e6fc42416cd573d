import { z } from 'zod'

/** The methods of authentication that can be configured. */
const authenticationMethods = ['password', 'jwt', 'oauth2', 'certificate'] as const
export type AuthenticationMethod = (typeof authenticationMethods)[number]

export const principalSchema = z.object({
  name: z
    .string()
    .min(1)
    .describe('The name as the authenticator writes it: the name in the password file, `sub` of a token'),
  user: z.string().min(1).describe('User of this name by the user mapping; without a mapping the name itself'),
  groups: z.array(z.string()).readonly(),
  method: z.enum(authenticationMethods),
})

/** A user who was verified. */
export type VerifiedPrincipal = Readonly<z.output<typeof principalSchema>>

/**
 * The most bytes of a principal. It is sent with each request that a coordinator passes on, and recorded with each
 * query.
 */
const MOST_PRINCIPAL_BYTES = 24 * 1024

/** Whether name, user and groups together are small enough to be sent with every request. */
export function isShort(principal: VerifiedPrincipal): boolean {
  return Buffer.byteLength(JSON.stringify(principal)) <= MOST_PRINCIPAL_BYTES
}

const LONGEST_NAME = 1_000

/** Whether a name from an external source can be written unchanged into events, tables, headers and lines. */
export function isTellable(name: string): boolean {
  return name.length <= LONGEST_NAME && !/[\p{Cc}\p{Cs}\u2028\u2029]/u.test(name)
}
