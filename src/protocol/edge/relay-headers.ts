/**
 * Headers of one coordinator's request to another. They belong to no family of headers (`x-trino-` and so on), of which
 * a request may carry only one.
 */
export const relayHeaders = {
  /** The credential, valid for this request only. */
  credential: 'x-quipu-relay',
  /** On an answer: this coordinator does not write the log either. */
  notWriter: 'x-quipu-not-writer',
  /** On an answer: the credential's time is too far from that of this process. The value is this process's time. */
  clock: 'x-quipu-relay-clock',
} as const

/** A credential names at most a principal (`MOST_PRINCIPAL_BYTES`) and a connection, in Base64. */
export const MOST_CREDENTIAL_BYTES = 36 * 1024
/** Further headers that are not the client's: Host, Content-Length and Connection where the client sent none. */
export const RELAYED_MORE = { headers: 3, bytes: 512 } as const
