import { createCipheriv, createDecipheriv, createHmac } from 'node:crypto'
import { z } from 'zod'
import type { QueryId, TaskId } from '../../../shared/ids.ts'
import { parseJson } from '../../../shared/parse-json.ts'
import type { RemoteUri } from './relay-port.ts'

/** The page at a cluster from which a page of this server is made. The client's nextUri contains it in sealed form. */
export interface RelayedPage {
  /** The number of the attempt, from 0 on. Pages of an earlier attempt, at another cluster, are no longer used. */
  readonly attempt: number
  readonly cluster: string
  readonly uri: RemoteUri
  /** Whether rows were sent before this page: then the query cannot begin again at another cluster. */
  readonly rowsSent: boolean
}

/**
 * Seals addresses at clusters, because an address alone is enough to read the rows. A sealed text can neither be read
 * nor changed without the key, and is valid only with the ids that it was sealed with.
 */
export interface AddressSeal {
  sealPage(queryId: QueryId, token: number, page: RelayedPage): string
  /** @returns undefined when the text was not sealed for this page, or with another key */
  openPage(queryId: QueryId, token: number, sealed: string): RelayedPage | undefined
  /** Seals the address of a task for its events. */
  sealUri(taskId: TaskId, uri: RemoteUri): string
  /** @returns undefined when the text was not sealed for this task, or with another key */
  openUri(taskId: TaskId, sealed: string): RemoteUri | undefined
}

const CIPHER = 'aes-256-gcm'
const NONCE_BYTES = 12
const TAG_BYTES = 16

/** The form of the sealed text. A later form gets another number, so that clients can still use older addresses. */
const PAGE_FORM = 1
const pageSchema = z.tuple([
  z.literal(PAGE_FORM),
  z.int().nonnegative(),
  z.string(),
  z.string().startsWith('/'),
  z.boolean(),
])

/**
 * @param key 32 bytes: see `deriveKey`
 */
export function createAddressSeal(key: Buffer): AddressSeal {
  const derive = (purpose: string): Buffer => createHmac('sha256', key).update(purpose).digest()
  const [cipherKey, nonceKey] = [derive('cipher'), derive('nonce')]

  /**
   * The nonce is a MAC of everything that is sealed: the same page gives the same text, so a client that asks again
   * gets the same bytes, and two texts never share a nonce.
   */
  function seal(boundTo: string, text: string): string {
    const mac = createHmac('sha256', nonceKey)
      .update(JSON.stringify([boundTo, text]))
      .digest()
    const nonce = mac.subarray(0, NONCE_BYTES)
    const cipher = createCipheriv(CIPHER, cipherKey, nonce, { authTagLength: TAG_BYTES })
    cipher.setAAD(Buffer.from(boundTo))
    return Buffer.concat([nonce, cipher.update(text, 'utf8'), cipher.final(), cipher.getAuthTag()]).toString(
      'base64url',
    )
  }

  function open(boundTo: string, sealed: string): string | undefined {
    const bytes = Buffer.from(sealed, 'base64url')
    // Several Base64 texts decode to the same bytes. Only the text that was made here is accepted.
    if (bytes.length < NONCE_BYTES + TAG_BYTES || bytes.toString('base64url') !== sealed) return undefined
    const decipher = createDecipheriv(CIPHER, cipherKey, bytes.subarray(0, NONCE_BYTES), { authTagLength: TAG_BYTES })
    decipher.setAAD(Buffer.from(boundTo))
    decipher.setAuthTag(bytes.subarray(-TAG_BYTES))
    try {
      const text = decipher.update(bytes.subarray(NONCE_BYTES, -TAG_BYTES))
      return Buffer.concat([text, decipher.final()]).toString('utf8')
    } catch {
      return undefined
    }
  }

  return {
    sealPage: (queryId, token, { attempt, cluster, uri, rowsSent }) =>
      seal(`page/${queryId}/${token}`, JSON.stringify([PAGE_FORM, attempt, cluster, uri, rowsSent])),
    openPage(queryId, token, sealed) {
      const text = open(`page/${queryId}/${token}`, sealed)
      const parsed = text === undefined ? undefined : pageSchema.safeParse(parseJson(text))
      if (!parsed?.success) return undefined
      const [, attempt, cluster, uri, rowsSent] = parsed.data
      return { attempt, cluster, uri: uri as RemoteUri, rowsSent }
    },
    sealUri: (taskId, uri) => seal(`task/${taskId}`, uri),
    openUri: (taskId, sealed) => open(`task/${taskId}`, sealed) as RemoteUri | undefined,
  }
}
