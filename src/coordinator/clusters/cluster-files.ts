import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { createSecureContext } from 'node:tls'
import { z } from 'zod'
import { readStrictJson } from '../../security/rules/read-rules.ts'
import { isClusterName, type ClusterName } from '../../shared/ids.ts'
import { isLoopback } from '../../shared/loopback.ts'
import { durationMillis } from '../../shared/quantities.ts'
import type { Cluster, ClusterTls } from './cluster.ts'

/** The clusters of a folder. */
export interface ClusterFiles {
  readonly clusters: readonly Cluster[]
  /** The files of certificates and keys that the cluster files name: a change of one of them changes the clusters. */
  readonly tlsFiles: readonly string[]
}

/** Limited, because the names of clusters are labels of metrics. */
const MOST_CLUSTERS = 100

const optional = <T extends z.ZodType>(schema: T) => schema.nullish().transform((given) => given ?? undefined)
const names = z.array(z.string().min(1)).transform((list): ReadonlySet<string> => new Set(list))
const path = z.string().min(1)

const authentication = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('none') }),
  z.strictObject({
    type: z.literal('password'),
    user: z.string().regex(/^[^:]+$/, 'a user with a password has no colon'),
    passwordFile: path,
  }),
  z.strictObject({ type: z.literal('token'), tokenFile: path }),
  z.strictObject({ type: z.literal('certificate') }),
])
type Authentication = z.output<typeof authentication>

const clusterSchema = z
  .strictObject({
    url: z.string().transform((text, context): URL => {
      const url = URL.canParse(text) ? new URL(text) : undefined
      const problem = urlProblem(url)
      if (url && problem === undefined) return url
      // The message does not repeat the text, which may contain a password.
      context.addIssue({ code: 'custom', message: problem ?? 'is no address of the form https://host:port' })
      return z.NEVER
    }),
    group: z.string().regex(/^[\w.-]{1,60}$/, 'a group has up to 60 letters, digits and _ . -'),
    weight: z.number().positive().max(1_000_000).default(1),
    maxRunning: optional(z.int().min(1).max(1_000_000)),
    catalogs: optional(names),
    mirrors: names.default(new Set<string>()),
    runAs: z.enum(['caller', 'service']).default('caller'),
    enforcesAccess: z.boolean().default(false),
    authentication: authentication.default({ type: 'none' }),
    caFile: optional(path),
    certFile: optional(path),
    keyFile: optional(path),
    clientTimeout: z
      .string()
      .default('5m')
      .transform((text, context): number => {
        const millis = durationMillis(text)
        if (millis !== undefined && millis >= 1000) return millis
        context.addIssue({ code: 'custom', message: `'${text}' is no duration of at least 1s` })
        return z.NEVER
      }),
    health: z
      .string()
      .regex(/^\/[\x21-\x7e]*$/, 'is a path that begins with /')
      .default('/v1/info'),
    insecure: z.boolean().default(false),
  })
  .superRefine((file, context) => {
    const complain = (key: string, message: string): void =>
      context.addIssue({ code: 'custom', path: [key], message, input: file })
    const secure = file.url.protocol === 'https:'
    const { type } = file.authentication
    if (!secure && !isLoopback(file.url.hostname)) {
      if (!file.insecure) complain('url', 'plain http to another machine needs "insecure": true')
      if (type !== 'none') complain('url', 'credentials are sent over https:// only')
    }
    if (file.enforcesAccess && file.runAs !== 'caller')
      complain('enforcesAccess', 'needs "runAs": "caller": the cluster checks the rights of the user that it sees')
    if ((file.certFile === undefined) !== (file.keyFile === undefined))
      complain('certFile', 'certFile and keyFile come together')
    if (type === 'certificate' && (!secure || file.certFile === undefined))
      complain('authentication', 'a certificate needs https://, certFile and keyFile')
  })
type ClusterFile = z.output<typeof clusterSchema>

function urlProblem(url: URL | undefined): string | undefined {
  if (url?.protocol !== 'http:' && url?.protocol !== 'https:') return 'is no address of the form https://host:port'
  if (url.username !== '' || url.password !== '') return 'has no credentials: authentication names them'
  if (url.pathname !== '/' || url.search !== '' || url.hash !== '') return 'has a scheme, a host and a port alone'
  return undefined
}

/**
 * Reads the cluster files of a folder. A mistake in one of them makes the whole folder invalid.
 * @param text a JSON object with the text of each `.json` file, by file name
 * @param folder relative paths in the files begin there
 * @throws Error whose text begins with the file and its line
 */
export function readClusterFiles(text: string, folder: string): ClusterFiles {
  const texts = Object.entries(z.record(z.string(), z.string()).parse(JSON.parse(text)))
  if (texts.length > MOST_CLUSTERS)
    throw new Error(`There are ${texts.length} cluster files, and may be ${MOST_CLUSTERS}`)
  const tlsFiles: string[] = []
  const clusters = texts.map(([file, content]) => {
    try {
      return clusterOf(file, content, folder, tlsFiles)
    } catch (error) {
      throw new Error(`${file}, ${(error as Error).message}`)
    }
  })
  return { clusters, tlsFiles }
}

function clusterOf(file: string, content: string, folder: string, tlsFiles: string[]): Cluster {
  const name = file.replace(/\.json$/, '')
  if (!isClusterName(name))
    throw new Error('line 1: The name of a cluster file has up to 60 small letters, digits, _ and -')
  const {
    authentication: by,
    caFile,
    certFile,
    keyFile,
    clientTimeout,
    health,
    insecure: _,
    ...described
  } = readStrictJson(content, clusterSchema)
  return {
    ...described,
    name: name as ClusterName,
    clientTimeoutMs: clientTimeout,
    healthPath: health,
    credentials: credentialsOf(by, folder),
    tls: tlsOf({ caFile, certFile, keyFile }, folder, tlsFiles),
    digest: createHash('sha256').update(content).digest('hex'),
  }
}

/** The credentials of a cluster. They are read from their files at each use, so that the files may be replaced. */
function credentialsOf(by: Authentication, folder: string): Cluster['credentials'] {
  switch (by.type) {
    case 'none':
    case 'certificate':
      return async () => ({})
    case 'password':
      return async () => {
        const password = await secretIn(resolve(folder, by.passwordFile))
        return { authorization: `Basic ${Buffer.from(`${by.user}:${password}`).toString('base64')}` }
      }
    case 'token':
      return async () => ({ authorization: `Bearer ${await secretIn(resolve(folder, by.tokenFile))}` })
  }
}

/** The first line of a file. @throws Error when it is empty or cannot be the value of a header */
async function secretIn(file: string): Promise<string> {
  const [secret = ''] = (await readFile(file, 'utf8')).split(/\r?\n/, 1)
  if (!/^[\x20-\x7e\u0080-\uffff]+$/.test(secret))
    throw new Error('The first line of the file of its credentials is no password or token')
  return secret
}

function tlsOf(
  { caFile, certFile, keyFile }: Pick<ClusterFile, 'caFile' | 'certFile' | 'keyFile'>,
  folder: string,
  tlsFiles: string[],
): ClusterTls | undefined {
  const read = (file: string | undefined): Buffer | undefined => {
    if (file === undefined) return undefined
    const path = resolve(folder, file)
    tlsFiles.push(path)
    return readFileSync(path)
  }
  const [ca, cert, key] = [read(caFile), read(certFile), read(keyFile)]
  if (!ca && !cert) return undefined
  const tls = { ...(ca && { ca }), ...(cert && { cert }), ...(key && { key }) }
  try {
    createSecureContext(tls)
  } catch (error) {
    throw new Error(`line 1: The certificates cannot be used: ${(error as Error).message}`)
  }
  return tls
}
