import { join } from 'node:path'
import { writeFileSync } from 'node:fs'
import { writePasswordFile } from './password-file.ts'
import { alwaysSend, trinoHeaders } from './statement-client.ts'
import { FULL_TESTS } from './full-tests.ts'

const PASSWORD = 'open sesame'

/** The authentication of a test server, and the credentials of its clients. */
export interface AccessMode {
  readonly name: 'with authentication' | 'open to everybody'
  /** Makes every request of this file carry the credential. @returns settings of the server */
  use(folder: string): Readonly<Record<string, string>>
}

/** Clients authenticate with a password. */
export const authenticated: AccessMode = {
  name: 'with authentication',
  use(folder) {
    const user = trinoHeaders['x-trino-user']
    const [passwords, rules] = [join(folder, 'passwords'), join(folder, 'rules.json')]
    writePasswordFile(passwords, [user], PASSWORD)
    // Metrics contain names of users, so reading them needs a rule.
    writeFileSync(rules, JSON.stringify({ system_information: [{ allow: ['read', 'write'] }] }), { mode: 0o644 })
    alwaysSend({ authorization: `Basic ${Buffer.from(`${user}:${PASSWORD}`).toString('base64')}` })
    return { QUIPU_AUTHENTICATION: 'password', QUIPU_PASSWORD_FILE: passwords, QUIPU_ACCESS_RULES_FILE: rules }
  },
}

const open: AccessMode = {
  name: 'open to everybody',
  use() {
    alwaysSend({})
    return {}
  },
}

/**
 * Tests of take-overs and outages run in all of these modes. Checking the rights to a result needs the dependency that is
 * down, so the suite always checks rights, and only the full tests also run without authentication.
 */
export const accessModes: readonly AccessMode[] = FULL_TESTS ? [authenticated, open] : [authenticated]
