import { generateKeyPairSync, randomBytes } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { request as httpRequest, type IncomingHttpHeaders } from 'node:http'
import { join } from 'node:path'
import { SignJWT } from 'jose'
import { internalBearer } from '../../src/security/cluster-secret.ts'
import { writePasswordFile } from './password-file.ts'
import { temporaryFolder } from './quipu-process.ts'
import { CLUSTER_SECRET } from './standby-cluster.ts'
import { trinoHeaders } from './statement-client.ts'

const PASSWORD = 'open sesame'
const METRICS_TOKEN = 'for figures alone'

/** Trino's rules file, as an object. */
type RulesJson = Readonly<Record<string, unknown>>

export interface GuardedAnswer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  /** The body of the answer; for a feed its first part. */
  readonly text: string
}

interface GuardedRequest {
  readonly method?: string
  /** The target as it is sent. */
  readonly target: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | undefined
}

/** The users and rules of a server, in files that a test writes. */
export interface Guard {
  /** The settings of the programs. */
  readonly env: Readonly<Record<string, string>>
  setRules(rules: RulesJson): void
  setGroups(groups: Readonly<Record<string, readonly string[]>>): void
  /** The headers of a credential. */
  readonly credentials: {
    readonly password: (user: string, password?: string) => Record<string, string>
    readonly token: (user: string, seconds?: number) => Promise<Record<string, string>>
    readonly forgedToken: (user: string) => Promise<Record<string, string>>
    readonly key: Record<string, string>
    readonly metrics: Record<string, string>
  }
  remove(): Promise<void>
}

/** @param people the users with a password */
export function createGuard(people: readonly string[], rules: RulesJson): Guard {
  const folder = temporaryFolder()
  const file = (name: string, text: string): string => {
    const path = join(folder.path, name)
    writeFileSync(path, text)
    return path
  }
  const signing = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const others = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const passwords = join(folder.path, 'passwords')
  writePasswordFile(passwords, people, PASSWORD, 2_000)
  const setRules = (changed: RulesJson): string => file('rules.json', JSON.stringify(changed))
  const setGroups = (groups: Readonly<Record<string, readonly string[]>>): string =>
    file(
      'groups',
      Object.entries(groups)
        .map(([group, users]) => `${group}:${users.join(',')}\n`)
        .join(''),
    )
  const tokenBy = async (key: typeof signing.privateKey, user: string, seconds: number) => {
    const token = await new SignJWT({ sub: user })
      .setProtectedHeader({ alg: 'ES256' })
      .setExpirationTime(Math.floor(Date.now() / 1000) + seconds)
      .sign(key)
    return { authorization: `Bearer ${token}` }
  }
  return {
    env: {
      QUIPU_AUTHENTICATION: 'password,jwt',
      QUIPU_PASSWORD_FILE: passwords,
      QUIPU_JWT_KEY_FILE: file('jwt.pem', String(signing.publicKey.export({ type: 'spki', format: 'pem' }))),
      QUIPU_JWT_CLOCK_SKEW_MS: '0s',
      QUIPU_ACCESS_RULES_FILE: setRules(rules),
      QUIPU_GROUPS_FILE: setGroups({}),
      QUIPU_METRICS_TOKEN: METRICS_TOKEN,
      QUIPU_TRUSTED_PROXIES: '127.0.0.1',
      // A query that a test does not follow for a while continues.
      QUIPU_FIRST_FOLLOW_MS: '30m',
      QUIPU_CLIENT_ABSENT_MS: '30m',
      // A process of another user could not read these files.
      ...(process.getuid?.() === 0 ? { QUIPU_RUN_AS: 'root' } : {}),
    },
    setRules,
    setGroups,
    credentials: {
      password: (user, password = PASSWORD) => ({
        authorization: `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`,
      }),
      token: (user, seconds = 3600) => tokenBy(signing.privateKey, user, seconds),
      forgedToken: (user) => tokenBy(others.privateKey, user, 3600),
      key: { authorization: `Bearer ${internalBearer(CLUSTER_SECRET)}` },
      metrics: { authorization: `Bearer ${METRICS_TOKEN}` },
    },
    remove: () => folder.remove(),
  }
}

/** How long the answer of an event feed is read, because it never ends. */
const FEED_MS = 300
const MOST_BYTES = 4_000_000

/** A request as a proxy forwards it, from a client with a separate address. */
export function askThroughProxy(
  base: string,
  { method = 'GET', target, headers, body }: GuardedRequest,
): Promise<GuardedAnswer> {
  const { hostname, port } = new URL(base)
  return new Promise((resolve, reject) => {
    const sent = {
      'x-forwarded-for': headers?.['x-forwarded-for'] ?? someAddress(),
      'x-forwarded-proto': 'https',
      ...(body === undefined ? {} : { 'content-length': String(Buffer.byteLength(body)) }),
      ...headers,
    }
    const asked = httpRequest({ hostname, port, agent: false, method, path: target, headers: sent }, (answer) => {
      const parts: Buffer[] = []
      let length = 0
      const report = (): void => {
        const text = Buffer.concat(parts).toString('utf8')
        resolve({ status: answer.statusCode ?? 0, headers: answer.headers, text })
        asked.destroy()
      }
      answer.on('data', (part: Buffer) => {
        parts.push(part)
        length += part.length
        if (length > MOST_BYTES) report()
      })
      if (answer.headers['content-type']?.startsWith('text/event-stream')) setTimeout(report, FEED_MS)
      answer.on('error', reject).on('end', report)
    })
    asked.setTimeout(60_000, () => asked.destroy(new Error(`${method} ${target} is not answered`)))
    asked.on('error', reject)
    asked.end(body)
  })
}

/** The address of a new client, because failed log-ins block the address of a client. */
function someAddress(): string {
  return `10.${[...randomBytes(3)].join('.')}`
}

/** The headers of a session without its user, which is the authenticated user. */
export const sessionHeaders: Readonly<Record<string, string>> = Object.fromEntries(
  Object.entries(trinoHeaders).filter(([name]) => name !== 'x-trino-user'),
)
