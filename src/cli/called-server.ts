import {
  askServer,
  createHttpClient,
  type HttpClient,
  type ServerAnswer,
  type ServerQuestion,
} from '../shared/http-client.ts'
import { ExitError } from '../shared/engine-error.ts'
import { exitCodes } from '../shared/exit-codes.ts'
import { isLoopback } from '../shared/loopback.ts'
import { createServerTrust } from '../shared/server-trust.ts'
import { serverOf, userName } from './server-address.ts'

/** The flags of all commands that send requests to a server: the address and the user. */
export const serverFlags = {
  server: { type: 'string' },
  user: { type: 'string' },
  ca: { type: 'string' },
} as const

export const SERVER_USAGE = `  --server <url>      coordinator (QUIPU_SERVER; default: http://127.0.0.1:8080, or port QUIPU_PORT)
  --user <name>       user of the requests (default: the user of this shell). QUIPU_PASSWORD holds the password, or
                      QUIPU_ACCESS_TOKEN a token. Over plain HTTP they are sent only to this machine
  --ca <file>         certificates (PEM) to verify the server with (QUIPU_TLS_CA_FILE; default: public authorities)`

/** A coordinator to which a command sends requests. */
export interface CalledServer {
  readonly url: string
  readonly user: string
  readonly http: HttpClient
  /**
   * The headers with the user's credentials, for requests to this server only. @throws Error with one line for another
   * server's address
   */
  credentialsFor(url: string): Readonly<Record<string, string>>
}

/** @throws ExitError 64 when the address is invalid, or others could read the credentials */
export function callServer(
  flags: { readonly server?: string | undefined; readonly user?: string | undefined; readonly ca?: string | undefined },
  env: NodeJS.ProcessEnv = process.env,
): CalledServer {
  const url = serverOf(flags.server)
  const user = flags.user ?? userName()
  const authorization = authorizationOf(user, env)
  const { origin, protocol, hostname } = new URL(url)
  if (authorization !== undefined && protocol !== 'https:' && !isLoopback(hostname))
    throw new ExitError(
      exitCodes.configuration,
      `The password or token is not sent to ${origin}, because others could read it on the way: use https://`,
    )
  const tlsCaFile = flags.ca ?? nonEmpty(env['QUIPU_TLS_CA_FILE'])
  return {
    url,
    user,
    http: createHttpClient(createServerTrust({ tlsCaFile }), { keepAlive: true }),
    credentialsFor(address) {
      if (authorization === undefined) return {}
      const other = new URL(address).origin
      if (other !== origin)
        throw new Error(`The server at ${origin} refers to ${other}: the password or token is not sent there`)
      return { authorization }
    },
  }
}

/**
 * Sends a request as the calling user.
 * @param program name of the command, for the record
 * @param target path and query
 * @throws Error with one line when the server cannot be reached
 */
export async function askCalled(
  server: CalledServer,
  program: string,
  target: string,
  question: ServerQuestion,
): Promise<ServerAnswer> {
  const headers = {
    ...question.headers,
    'X-Engine-User': server.user,
    'X-Engine-Source': program,
    ...server.credentialsFor(server.url),
  }
  return askServer(server.http, server.url, target, { ...question, headers }).catch((error: Error) => {
    throw new Error(`Cannot reach ${new URL(server.url).origin}: ${error.message}`)
  })
}

function authorizationOf(user: string, env: NodeJS.ProcessEnv): string | undefined {
  const [password, token] = [nonEmpty(env['QUIPU_PASSWORD']), nonEmpty(env['QUIPU_ACCESS_TOKEN'])]
  if (password !== undefined && token !== undefined)
    throw new ExitError(exitCodes.configuration, 'Set either QUIPU_PASSWORD or QUIPU_ACCESS_TOKEN, not both')
  if (password !== undefined) {
    if (user.includes(':'))
      throw new ExitError(exitCodes.configuration, 'The name of a user with a password must not contain a colon')
    return `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`
  }
  if (token !== undefined && !/^[\x21-\x7e]+$/.test(token))
    throw new ExitError(
      exitCodes.configuration,
      'QUIPU_ACCESS_TOKEN is not a token: it must be printable ASCII without spaces',
    )
  return token === undefined ? undefined : `Bearer ${token}`
}

function nonEmpty(text: string | undefined): string | undefined {
  return text === '' ? undefined : text
}
