// An event log that keeps nothing: every append is valid at once and gone. What a server with it lacks in time, beside the
// same server with a real log, is what durability costs: sealing, group commit, the log's disk, read-back, projections.
const NOTHING = {
  logId: 'noop',
  at: [{ offset: 0n, state: { epoch: 1, writer: 'noop', number: 0, count: 0, hash: '' } }],
}

export function createPostgresEventLog() {
  let offset = 0n
  const sequences = new Map()
  return {
    open: async () => ({ logId: 'noop', partitions: 1, maxEventBytes: 8 << 20 }),
    claim: async () => 1,
    async append(stream, expected, events) {
      let sequence = sequences.get(stream) ?? expected
      const recorded = events.map((event) => {
        const position = { partition: 0, offset: offset++ }
        const hashes = { prevhash: '', hash: '', digest: '', enc: 'none', stored: '' }
        return { ...event, stream, sequence: ++sequence, epoch: 1, ...hashes, position }
      })
      sequences.set(stream, sequence)
      return { ...recorded.at(-1).position, events: recorded }
    },
    read: async (from) => ({ events: [], next: { ...NOTHING, ...from } }),
    async *readStream() {},
    keepPages: async (_stream, pages) => ({ places: pages.map(() => undefined), beside: pages }),
    readPage: async () => undefined,
    forgettable: async () => [],
    forget: async () => {},
    subscribe: () => ({ checkpoint: NOTHING, done: new Promise(() => {}), stop: async () => {} }),
    tip: async () => NOTHING,
    fenced: new Promise(() => {}),
    close: async () => {},
  }
}
