/** The lifecycle of all long-lived parts. */
export interface Service {
  /** Resolves once work is accepted; rejects, leaving nothing open, if it cannot be. */
  start(): Promise<void>
  /** Waits for a start in progress, drains, then closes. Later calls return the first call's promise. */
  stop(): Promise<void>
}
