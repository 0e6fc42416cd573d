import { join } from 'node:path'
import { writeFileSync } from 'node:fs'
import { writePasswordFile } from './password-file.ts'
import { alwaysSend, trinoHeaders } from './statement-client.ts'

const PASSWORD = 'open sesame'

/** How a server of a test lets clients in, and what its clients send. */
export interface AccessMode {
  readonly name: 'with authentication' | 'open to everybody'
  /** Makes every request of this file carry the credential. @returns settings of the server */
  use(folder: string): Readonly<Record<string, string>>
}

/** Clients are known by a password. */
export const authenticated: AccessMode = {
  name: 'with authentication',
  use(folder) {
    const user = trinoHeaders['x-trino-user']
    const [passwords, rules] = [join(folder, 'passwords'), join(folder, 'rules.json')]
    writePasswordFile(passwords, [user], PASSWORD)
    // Figures have names of users: nobody reads them without a rule.
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
 * Tests of take-overs and outages run in all of these. To find out who may have a result is one more question to what is
 * away, so the suite asks it always, and only the full tests run without it.
 */
export const accessModes: readonly AccessMode[] =
  process.env['QUIPU_FULL_TESTS'] === '1' ? [authenticated, open] : [authenticated]
