import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { parseArgs } from 'node:util'
import type { z } from 'zod'
import { deepFreeze } from '../shared/deep-freeze.ts'
import { ExitError } from '../shared/engine-error.ts'
import { exitCodes } from '../shared/exit-codes.ts'
import { isLoopback } from '../shared/loopback.ts'
import { configSchema, type Config } from './schema.ts'
import { fromText } from './setting.ts'
import { settingList, type Setting } from './setting-list.ts'
import { nodeCode } from '../shared/node-error.ts'

export type { Config } from './schema.ts'

const DEFAULT_FILE = 'etc/config.json'

/** The variable that names the file. Like `--config` it is not a setting, because it says where the settings are. */
const FILE_VARIABLE = 'QUIPU_CONFIG'
/** Variables of commands that send requests to a server. */
const CLIENT_VARIABLES = ['QUIPU_SERVER', 'QUIPU_PASSWORD', 'QUIPU_ACCESS_TOKEN']

type Tree = { [key: string]: unknown }

/**
 * Loads the configuration of a process: flags win over variables, variables over the file, the file over defaults.
 * Paths become absolute.
 * @param argv the arguments after the program's name, without positional ones
 * @throws ExitError 64 with one line: an unknown flag, variable or key, or an invalid value
 */
export function loadConfig(argv: readonly string[], env: NodeJS.ProcessEnv): Config {
  const flags = parseFlags(argv)
  const named = flags.values['config'] ?? env[FILE_VARIABLE]
  const file = readFile(named ?? DEFAULT_FILE, named !== undefined)
  refuseUnknownVariables(env)

  const origin = new Map<string, string>()
  const tree = file
  for (const setting of settingList) {
    const flagValue = flags.values[setting.flag]
    const variable = env[setting.env]
    // A compose file or a shell leaves a variable empty to say that it is not set.
    const value = flagValue ?? (variable === '' ? undefined : variable) ?? textWithUnit(tree, setting)
    if (value === undefined) continue
    put(tree, setting.path, fromText(setting.kind, value))
    if (flagValue !== undefined) origin.set(setting.path.join('.'), `--${setting.flag}`)
    else if (variable !== undefined && variable !== '') origin.set(setting.path.join('.'), setting.env)
  }

  const parsed = configSchema.safeParse(tree)
  if (!parsed.success) throw configurationError(describe(parsed.error.issues[0]!, origin, named ?? DEFAULT_FILE))
  const config = {
    ...parsed.data,
    dataDir: resolve(parsed.data.dataDir),
    catalogDir: resolve(parsed.data.catalogDir),
    ...(parsed.data.accessRulesFile === undefined ? {} : { accessRulesFile: resolve(parsed.data.accessRulesFile) }),
    ...(parsed.data.sessionPropertyRulesFile === undefined
      ? {}
      : { sessionPropertyRulesFile: resolve(parsed.data.sessionPropertyRulesFile) }),
    ...(parsed.data.resourceGroupsFile === undefined
      ? {}
      : { resourceGroupsFile: resolve(parsed.data.resourceGroupsFile) }),
    ...(parsed.data.routingRulesFile === undefined ? {} : { routingRulesFile: resolve(parsed.data.routingRulesFile) }),
    ...(parsed.data.pricesFile === undefined ? {} : { pricesFile: resolve(parsed.data.pricesFile) }),
    ...(parsed.data.clustersDir === undefined ? {} : { clustersDir: resolve(parsed.data.clustersDir) }),
  }
  checkTogether(config)
  return deepFreeze({ ...config, ...withCertificates(config) })
}

function parseFlags(argv: readonly string[]): { values: Record<string, string | undefined> } {
  const options: Record<string, { type: 'string' | 'boolean' }> = { config: { type: 'string' } }
  for (const { flag, kind } of settingList) options[flag] = { type: kind === 'flag' ? 'boolean' : 'string' }
  try {
    const { values } = parseArgs({ args: [...argv], options, allowNegative: true, strict: true })
    const texts = Object.entries(values).map(([name, value]) => [name, value === undefined ? value : String(value)])
    return { values: Object.fromEntries(texts) as Record<string, string | undefined> }
  } catch (error) {
    throw configurationError((error as Error).message.split('. ')[0]!)
  }
}

function readFile(path: string, required: boolean): Tree {
  let content: string
  try {
    content = readFileSync(path, 'utf8')
  } catch (error) {
    const code = nodeCode(error)
    if (code === 'ENOENT' && !required) return {}
    throw configurationError(`Cannot read ${path}: ${code === 'ENOENT' ? 'the file does not exist' : code}`)
  }
  let value: unknown
  try {
    value = JSON.parse(content)
  } catch (error) {
    throw configurationError(`${path} is not JSON: ${(error as Error).message}`)
  }
  if (!isTree(value)) throw configurationError(`${path} must hold a JSON object`)
  return value
}

/** Rejects unknown QUIPU_ variables. A misspelled one would silently leave the default in force. */
function refuseUnknownVariables(env: NodeJS.ProcessEnv): void {
  const known = new Set([FILE_VARIABLE, ...CLIENT_VARIABLES, ...settingList.map((setting) => setting.env)])
  const unknown = Object.keys(env).find((name) => name.startsWith('QUIPU_') && !known.has(name))
  if (unknown !== undefined) throw configurationError(`Unknown variable ${unknown}: quipu --help lists the settings`)
}

function put(tree: Tree, path: readonly string[], value: unknown): void {
  const [key, ...rest] = path
  if (rest.length === 0) {
    tree[key!] = value
    return
  }
  const below = tree[key!]
  if (below === undefined) tree[key!] = {}
  else if (!isTree(below)) return
  put(tree[key!] as Tree, rest, value)
}

/** The text of a size or a duration that the file gives with a unit, such as "90d". */
function textWithUnit(file: Tree, { kind, path }: Setting): string | undefined {
  if (kind !== 'bytes' && kind !== 'duration') return undefined
  let value: unknown = file
  for (const key of path) value = isTree(value) ? value[key] : undefined
  return typeof value === 'string' ? value : undefined
}

function describe(issue: z.core.$ZodIssue, origin: ReadonlyMap<string, string>, file: string): string {
  const path = issue.path.join('.')
  if (issue.code === 'unrecognized_keys') {
    return `Unknown key ${[...issue.path, issue.keys[0]].join('.')} in ${file}`
  }
  const setting: Setting | undefined = settingList.find((one) => one.path.join('.') === path)
  const wanted = setting && WANTED[setting.kind]
  const message = issue.code === 'invalid_type' && wanted ? `must be ${wanted}` : lowerFirst(issue.message)
  return `${origin.get(path) ?? `${path} in ${file}`}: ${message}`
}

const WANTED: Readonly<Record<Setting['kind'], string>> = {
  text: 'text',
  integer: 'a whole number',
  flag: 'true or false',
  list: 'a list of texts',
  bytes: 'whole bytes, or a number with B, kB, MB, GB or TB',
  duration: 'whole milliseconds, or a number with ms, s, m, h or d',
}

/**
 * Adds the certificate file to the address of Postgres. `pg` and libpq read all options from the address, so every
 * connection uses it.
 */
function withCertificates({ databaseUrl, databaseCaFile }: Config): Pick<Config, 'databaseUrl'> | undefined {
  if (databaseUrl === undefined || databaseCaFile === undefined) return undefined
  const at = databaseUrl.indexOf('?')
  const parameters = new URLSearchParams(at < 0 ? '' : databaseUrl.slice(at + 1))
  parameters.set('sslrootcert', resolve(databaseCaFile))
  // With a CA file, certificates are always verified, whatever the address asked for.
  parameters.set('sslmode', 'verify-full')
  return { databaseUrl: `${at < 0 ? databaseUrl : databaseUrl.slice(0, at)}?${parameters}` }
}

/** The scheme of this process's own address. */
export function schemeOf({ tlsCert }: Pick<Config, 'tlsCert'>): 'http' | 'https' {
  return tlsCert === undefined ? 'http' : 'https'
}

function checkTls({ tlsCert, tlsKey, tlsClientCaFile, advertisedUrl }: Config): void {
  if ((tlsCert === undefined) !== (tlsKey === undefined))
    throw configurationError('QUIPU_TLS_CERT and QUIPU_TLS_KEY must be set together')
  if (tlsClientCaFile !== undefined && tlsCert === undefined)
    throw configurationError('QUIPU_TLS_CLIENT_CA_FILE needs QUIPU_TLS_CERT: clients send certificates only over TLS')
  if (tlsCert !== undefined && advertisedUrl?.startsWith('http:'))
    throw configurationError(
      `QUIPU_ADVERTISED_URL: '${advertisedUrl}' must begin with https:// if QUIPU_TLS_CERT is set`,
    )
}

/**
 * Whether clients beyond this machine may connect: the operator allowed it without protection, or all clients must
 * authenticate over a connection that others cannot read.
 */
function mayListenBeyondLoopback({ insecure, authentication, tlsCert, trustedProxies }: Config): boolean {
  return insecure || (authentication.length > 0 && (tlsCert !== undefined || trustedProxies.length > 0))
}

function checkCredentials(config: Config): void {
  const { databaseUrl, databaseCaFile, kafkaSaslMechanism: mechanism } = config
  if (databaseCaFile !== undefined) {
    if (databaseUrl === undefined)
      throw configurationError(
        'QUIPU_DATABASE_CA_FILE needs DATABASE_URL: the embedded Postgres uses a socket, not TLS',
      )
    if (/[?&]sslmode=(disable|no-verify)\b/.test(databaseUrl))
      throw configurationError(
        'QUIPU_DATABASE_CA_FILE is set, but the sslmode in DATABASE_URL verifies no certificate: remove the sslmode',
      )
  }
  checkKafka('QUIPU_KAFKA', {
    tls: usesKafkaTls(config),
    certFile: config.kafkaCertFile,
    keyFile: config.kafkaKeyFile,
    mechanism,
    user: config.kafkaUser,
    passwords: [config.kafkaPassword, config.kafkaPasswordFile],
  })
}

function checkPublishing({ publishing }: Config): void {
  const { openLineageUrl: url, openLineageFile, openLineageApiKeyFile, openLineageCaFile } = publishing
  if (url !== undefined && openLineageFile !== undefined)
    throw configurationError('Set either QUIPU_OPEN_LINEAGE_URL or QUIPU_OPEN_LINEAGE_FILE, not both')
  if (url === undefined && (openLineageApiKeyFile ?? openLineageCaFile) !== undefined)
    throw configurationError(
      'QUIPU_OPEN_LINEAGE_API_KEY_FILE and QUIPU_OPEN_LINEAGE_CA_FILE need QUIPU_OPEN_LINEAGE_URL',
    )
  if (url !== undefined) {
    const { protocol, hostname, username, password } = new URL(url)
    if (username !== '' || password !== '')
      throw configurationError(
        'QUIPU_OPEN_LINEAGE_URL must not contain a user or a password: use QUIPU_OPEN_LINEAGE_API_KEY_FILE',
      )
    if (openLineageApiKeyFile !== undefined && protocol !== 'https:' && !isLoopback(hostname))
      throw configurationError(
        'QUIPU_OPEN_LINEAGE_URL: over http:// others could read the key on the way: use https://',
      )
  }
  checkKafka('QUIPU_PUBLIC_KAFKA', {
    tls: usesPublicKafkaTls(publishing),
    certFile: publishing.publicKafkaCertFile,
    keyFile: publishing.publicKafkaKeyFile,
    mechanism: publishing.publicKafkaSaslMechanism,
    user: publishing.publicKafkaUser,
    passwords: [publishing.publicKafkaPassword, publishing.publicKafkaPasswordFile],
  })
}

/** @param names prefix of the variables' names */
function checkKafka(
  names: string,
  access: {
    readonly tls: boolean
    readonly certFile: string | undefined
    readonly keyFile: string | undefined
    readonly mechanism: Config['kafkaSaslMechanism']
    readonly user: string | undefined
    readonly passwords: readonly (string | undefined)[]
  },
): void {
  const { tls, certFile, keyFile, mechanism, user } = access
  if ((certFile === undefined) !== (keyFile === undefined))
    throw configurationError(`${names}_CERT_FILE and ${names}_KEY_FILE must be set together`)
  const passwords = access.passwords.filter((one) => one !== undefined).length
  if (passwords > 1) throw configurationError(`Set either ${names}_PASSWORD or ${names}_PASSWORD_FILE, not both`)
  const complete = user !== undefined && passwords === 1
  const none = user === undefined && passwords === 0
  if (mechanism === undefined ? !none : !complete)
    throw configurationError(`${names}_SASL_MECHANISM, ${names}_USER and a password (or its file) must be set together`)
  if (mechanism === 'plain' && !tls)
    throw configurationError(`With the mechanism plain others could read the password on the way: set ${names}_TLS`)
}

function checkProvider(config: Config): void {
  const { oauth2Issuer: issuer, oauth2ClientId, oauth2ClientSecret, oauth2ClientSecretFile } = config
  if (oauth2ClientSecret !== undefined && oauth2ClientSecretFile !== undefined)
    throw configurationError('Set either QUIPU_OAUTH2_CLIENT_SECRET or QUIPU_OAUTH2_CLIENT_SECRET_FILE, not both')
  if (!config.authentication.includes('oauth2')) return
  if (issuer === undefined || oauth2ClientId === undefined)
    throw configurationError('The authentication oauth2 needs QUIPU_OAUTH2_ISSUER and QUIPU_OAUTH2_CLIENT_ID')
  const { protocol, hostname } = new URL(issuer)
  if (protocol !== 'https:' && !isLoopback(hostname))
    throw configurationError(
      `QUIPU_OAUTH2_ISSUER: '${issuer}' must use https, because an attacker on the way could log in as any user`,
    )
}

function checkAuthentication(config: Config): void {
  const { authentication, passwordFile, ldapUrl, ldapUserBindPattern, jwtKeyFile, jwksUrl } = config
  const has = (...values: readonly unknown[]): number => values.filter((one) => one !== undefined).length
  if (authentication.includes('password') ? has(passwordFile, ldapUrl) !== 1 : has(passwordFile, ldapUrl) > 0)
    throw configurationError(
      'The authentication password and exactly one of QUIPU_PASSWORD_FILE and QUIPU_LDAP_URL must be set together',
    )
  if (authentication.includes('jwt') ? has(jwtKeyFile, jwksUrl) !== 1 : has(jwtKeyFile, jwksUrl) > 0)
    throw configurationError(
      'The authentication jwt and exactly one of QUIPU_JWT_KEY_FILE and QUIPU_JWKS_URL must be set together',
    )
  if (jwksUrl !== undefined) {
    const { protocol, hostname } = new URL(jwksUrl)
    if (protocol !== 'https:' && !isLoopback(hostname))
      throw configurationError('QUIPU_JWKS_URL must use https:// to fetch keys from another machine')
  }
  if (ldapUrl !== undefined) checkLdap(ldapUrl, config)
  else if (ldapUserBindPattern !== undefined)
    throw configurationError('QUIPU_LDAP_USER_BIND_PATTERN needs QUIPU_LDAP_URL')
  if (has(config.userMappingPattern, config.userMappingFile) > 1)
    throw configurationError('Set either QUIPU_USER_MAPPING_PATTERN or QUIPU_USER_MAPPING_FILE, not both')
}

function checkLdap(ldapUrl: string, { ldapUserBindPattern: pattern, ldapInsecure }: Config): void {
  const url = URL.canParse(ldapUrl) ? new URL(ldapUrl) : undefined
  if (!url || !/^ldaps?:$/.test(url.protocol) || url.hostname === '')
    throw configurationError('QUIPU_LDAP_URL must be of the form ldaps://host:port')
  if (url.protocol === 'ldap:' && !isLoopback(url.hostname) && !ldapInsecure)
    throw configurationError(
      'QUIPU_LDAP_URL: over ldap:// others could read passwords on the way: use ldaps://, or add --ldap-insecure',
    )
  if (pattern === undefined || pattern.split(':').some((one) => !one.includes('${USER}')))
    throw configurationError('QUIPU_LDAP_USER_BIND_PATTERN must be set, and each of its patterns must contain ${USER}')
}

/** Whether Kafka is reached over TLS. */
export function usesKafkaTls(config: Pick<Config, 'kafkaTls' | 'kafkaCaFile' | 'kafkaCertFile'>): boolean {
  return config.kafkaTls || config.kafkaCaFile !== undefined || config.kafkaCertFile !== undefined
}

/** Whether the brokers of the public topic are reached over TLS. */
export function usesPublicKafkaTls({
  publicKafkaTls,
  publicKafkaCaFile,
  publicKafkaCertFile,
}: Config['publishing']): boolean {
  return publicKafkaTls || publicKafkaCaFile !== undefined || publicKafkaCertFile !== undefined
}

/** Checks rules that involve several settings. */
function checkTogether(config: Config): void {
  if (!isLoopback(config.host) && !mayListenBeyondLoopback(config)) {
    if (config.authentication.length > 0)
      throw configurationError(
        `Listening on ${config.host} without TLS lets others read requests on the way: set QUIPU_TLS_CERT, or QUIPU_TRUSTED_PROXIES that end TLS, or add --insecure (QUIPU_INSECURE=true)`,
      )
    throw configurationError(
      `Listening on ${config.host} without authentication lets anybody run statements: set authentication, or add --insecure (QUIPU_INSECURE=true) to allow it`,
    )
  }
  for (const [name, url] of [
    ['QUIPU_ADVERTISED_URL', config.advertisedUrl],
    ...config.coordinators.map((one) => ['QUIPU_COORDINATORS', one] as const),
  ] as const) {
    if (url !== undefined && !(/^https?:\/\/[^/]+\/?$/.test(url) && URL.canParse(url))) {
      throw configurationError(`${name}: '${url}' is not an address of the form http://host:port`)
    }
  }
  if (config.databaseUrl !== undefined && !/^postgres(ql)?:\/\//.test(config.databaseUrl)) {
    throw configurationError('DATABASE_URL must begin with postgresql://')
  }
  if (config.accessRulesFile !== undefined && config.authentication.length === 0) {
    throw configurationError('accessRulesFile has no effect without authentication: set authentication too')
  }
  checkCredentials(config)
  checkPublishing(config)
  checkTls(config)
  checkProvider(config)
  checkAuthentication(config)
  const { restartBackoffMinMs, restartBackoffMaxMs } = config.timeouts
  if (restartBackoffMinMs > restartBackoffMaxMs) {
    throw configurationError('restartBackoffMinMs must not be above restartBackoffMaxMs')
  }
}

function configurationError(message: string): ExitError {
  return new ExitError(exitCodes.configuration, message)
}

function isTree(value: unknown): value is Tree {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function lowerFirst(message: string): string {
  return message.charAt(0).toLowerCase() + message.slice(1)
}
