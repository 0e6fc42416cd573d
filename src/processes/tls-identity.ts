import { constants, createHmac, createPrivateKey, X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import type { Server } from 'node:http'
import { createSecureContext, type Server as TlsServer, type TlsOptions } from 'node:tls'
import type { Config } from '../config/load-config.ts'
import { deriveKey } from '../security/cluster-secret.ts'
import { ExitError } from '../shared/engine-error.ts'
import { exitCodes } from '../shared/exit-codes.ts'

/** What became of the files of a server's certificate. */
export type CertificateNews =
  | { readonly kind: 'serves'; readonly names: string; readonly validUntil: Date }
  /** They changed and are of no use: the pair before goes on. */
  | { readonly kind: 'refused'; readonly error: Error }

/** By what a server is known over TLS. */
export interface TlsIdentity {
  readonly options: TlsOptions
  /** From now on that server has the certificate of the files, whenever they change. */
  serve(server: Server): void
  /** Told of the last news, and of all that come. */
  tell(told: (news: CertificateNews) => void): void
  close(): void
}

type IdentityConfig = Pick<
  Config,
  'tlsCert' | 'tlsKey' | 'tlsCaFile' | 'tlsClientCaFile' | 'sharedSecret' | 'authentication'
>

/** Texts of the files. */
interface Pair {
  readonly cert: string
  readonly key: string
  readonly clientCa: string | undefined
}

const LOOK_EVERY_MS = 1_000

/**
 * Certificate and key of the configured files, and whether clients are asked for theirs. The files are looked at again and
 * again, by their content: they may be written, renamed into place, or lie behind links that change.
 * @returns undefined where none is configured
 * @throws ExitError 64 when the files are of no use
 */
export function openTlsIdentity(config: IdentityConfig): TlsIdentity | undefined {
  const { tlsCert, tlsKey, authentication } = config
  if (tlsCert === undefined || tlsKey === undefined) return undefined
  const clientCaFile = authentication.includes('certificate') ? (config.tlsClientCaFile ?? config.tlsCaFile) : undefined
  const paths = { cert: tlsCert, key: tlsKey, clientCa: clientCaFile }
  let seen = readPair(paths)
  let served = seen
  let refused: Pair | undefined
  let closed = false
  let tell = (_news: CertificateNews): void => {}
  let last: CertificateNews
  let timer: NodeJS.Timeout | undefined
  try {
    last = check(seen)
  } catch (error) {
    throw unusable(paths.cert, error)
  }

  function optionsOf(pair: Pair): TlsOptions {
    return {
      ...secureOptionsOf(pair),
      ...(config.sharedSecret !== undefined && { ticketKeys: ticketKeys(config.sharedSecret, pair) }),
      sessionIdContext: 'quipu',
      ...(pair.clientCa !== undefined && { requestCert: true, rejectUnauthorized: false }),
    }
  }

  /** Looks whether the files have changed, and what of it. */
  async function look(server: Server): Promise<void> {
    const now = await readAgain(paths)
    // Files that differ from those at the look before may be being written: what is wrong with them may not stay so.
    const settled = isSame(now, seen)
    seen = now
    if (isSame(now, served)) {
      if (last.kind === 'refused') news(check(served))
      return
    }
    if (refused && isSame(now, refused)) return
    try {
      const found = check(now)
      ;(server as Server & Pick<TlsServer, 'setSecureContext'>).setSecureContext(optionsOf(now))
      served = now
      news(found)
    } catch (error) {
      if (!settled) return
      refused = now
      news({ kind: 'refused', error: error as Error })
    }
  }

  function news(what: CertificateNews): void {
    last = what
    tell(what)
  }

  function serve(server: Server): void {
    timer = setTimeout(() => {
      look(server)
        // Between two names, or not this process's to read any more.
        .catch((error: unknown) => {
          if (last.kind === 'serves') news({ kind: 'refused', error: error as Error })
        })
        .finally(() => closed || serve(server))
    }, LOOK_EVERY_MS).unref()
  }

  return {
    options: optionsOf(seen),
    serve,
    tell(told) {
      tell = told
      told(last)
    },
    close() {
      closed = true
      clearTimeout(timer)
    },
  }
}

/** @throws Error when key and certificate do not belong together, or are none */
function check(pair: Pair): CertificateNews {
  createSecureContext(secureOptionsOf(pair))
  const certificate = new X509Certificate(pair.cert)
  // OpenSSL takes a key of another kind, and fails at every handshake then.
  if (!certificate.checkPrivateKey(createPrivateKey(pair.key)))
    throw new Error('the key is not that of the certificate')
  const { subjectAltName, subject, validTo } = certificate
  return { kind: 'serves', names: subjectAltName ?? subject, validUntil: new Date(validTo) }
}

function secureOptionsOf({ cert, key, clientCa }: Pair): TlsOptions {
  return {
    cert,
    key,
    ...(clientCa !== undefined && { ca: clientCa }),
    minVersion: 'TLSv1.2',
    secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
  }
}

/**
 * Sessions go on with whichever process of the cluster a client comes to next. They hold who the client was found to be, so
 * others who vouch for clients begin others.
 */
function ticketKeys(secret: string, { clientCa }: Pair): Buffer {
  return createHmac('sha512', deriveKey(secret, 'tls-tickets'))
    .update(clientCa ?? '')
    .digest()
    .subarray(0, 48)
}

interface PairPaths {
  readonly cert: string
  readonly key: string
  readonly clientCa: string | undefined
}

function readPair({ cert, key, clientCa }: PairPaths): Pair {
  const read = (path: string): string => {
    try {
      return readFileSync(path, 'utf8')
    } catch (error) {
      throw unusable(path, error)
    }
  }
  return { cert: read(cert), key: read(key), clientCa: clientCa === undefined ? undefined : read(clientCa) }
}

async function readAgain({ cert, key, clientCa }: PairPaths): Promise<Pair> {
  const [certText, keyText, caText] = await Promise.all([
    readFile(cert, 'utf8'),
    readFile(key, 'utf8'),
    clientCa === undefined ? undefined : readFile(clientCa, 'utf8'),
  ])
  return { cert: certText, key: keyText, clientCa: caText }
}

function isSame(a: Pair, b: Pair): boolean {
  return a.cert === b.cert && a.key === b.key && a.clientCa === b.clientCa
}

function unusable(path: string, error: unknown): ExitError {
  return new ExitError(exitCodes.configuration, `Cannot use ${path} for TLS: ${(error as Error).message}`)
}
