export interface DiskRoom {
  /**
   * Whether there was enough room at the last check. If that is older than a second, a new check begins, without waiting.
   */
  enough(): boolean
}

const ASKED_AGAIN_MS = 1_000

/**
 * Checks whether the disk has room for the durable data of statements. Below the floor no statement is accepted, so
 * that the event log keeps room for the queries that are open.
 * @param ask the free space now; an error leaves the last answer in place
 */
export function createDiskRoom(
  floorBytes: number,
  ask: () => Promise<{ readonly freeBytes: number }>,
  clock: { monotonicMs(): number },
): DiskRoom {
  let enough = true
  let askedAt = clock.monotonicMs()
  const refresh = () =>
    ask().then(
      ({ freeBytes }) => {
        enough = freeBytes >= floorBytes
      },
      () => {},
    )
  void refresh()
  return {
    enough() {
      const now = clock.monotonicMs()
      if (now - askedAt >= ASKED_AGAIN_MS) {
        askedAt = now
        void refresh()
      }
      return enough
    },
  }
}
