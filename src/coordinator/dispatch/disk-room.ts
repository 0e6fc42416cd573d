export interface DiskRoom {
  /** As last known; asks again when that is older than a second, without waiting. */
  enough(): boolean
}

const ASKED_AGAIN_MS = 1_000

/**
 * Whether the disk has room for what statements make durable: below the floor none is accepted, so that the event log
 * under open queries keeps its own.
 * @param ask free space now; an error leaves the answer as it was
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
