import type { ClosedPage, TaskStatus } from '../api/task.ts'

interface Listed extends ClosedPage {
  /** The worker's version when the page was listed. */
  readonly version: number
}

/** A task's listed pages, in the order of their tokens, and how far their reader has acknowledged them. */
export interface OutputBuffer {
  list(page: ClosedPage, version: number): void
  page(token: number): ClosedPage | undefined
  /** Pages listed after a version; without a version all pages, even acknowledged ones. */
  since(version: number | undefined): ClosedPage[]
  /**
   * Notes an acknowledgement. @returns the pages to remove now: those before `token` that were not acknowledged earlier
   */
  acknowledge(token: number): readonly ClosedPage[]
  /** First token that is not acknowledged. */
  acknowledged(): number
  /** Notes that one answer carried the whole output; a reader that did not get it may ask for the pages again. */
  send(): void
  isSent(): boolean
  /** Number of pages that were sent. */
  sent(): number
  listed(): number
  rows(): number
  bytes(): number
  /** Bytes of the pages not acknowledged. */
  bufferedBytes(): number
  /** Closes the buffer: no page will be listed any more. */
  close(state: 'ended' | 'failed' | 'dropped'): void
  state(): TaskStatus['bufferState']
  /** Resolves once the page is there, or no page will come, or the time is over. */
  wait(token: number, millis: number): Promise<void>
}

export function createOutputBuffer(): OutputBuffer {
  const pages: Listed[] = []
  let acknowledged = 0
  let isSent = false
  let rows = 0
  let bytes = 0
  let bufferedBytes = 0
  let closed: 'ended' | 'failed' | 'dropped' | undefined
  const waiting = new Set<() => void>()

  function sent(): number {
    return isSent ? pages.length : acknowledged
  }

  function wake(): void {
    const woken = [...waiting]
    waiting.clear()
    for (const check of woken) check()
  }

  return {
    list(page, version) {
      pages.push({ version, ...page })
      rows += page.rows
      bytes += page.bytes
      bufferedBytes += page.bytes
      wake()
    },
    page: (token) => pages[token],
    since(version) {
      const from = version === undefined ? 0 : pages.findIndex((page) => page.version > version)
      return from < 0 ? [] : pages.slice(from).map(({ version: _, ...page }) => page)
    },
    acknowledge(token) {
      const passed = pages.slice(acknowledged, Math.max(acknowledged, token))
      acknowledged += passed.length
      for (const page of passed) bufferedBytes -= page.bytes
      return passed
    },
    acknowledged: () => acknowledged,
    send: () => void (isSent = true),
    isSent: () => isSent,
    sent,
    listed: () => pages.length,
    rows: () => rows,
    bytes: () => bytes,
    bufferedBytes: () => bufferedBytes,
    close(state) {
      closed = state
      wake()
    },
    state() {
      if (closed === 'failed') return 'FAILED'
      if (closed === 'dropped') return 'FINISHED'
      // The first update names the buffers: none can be added later.
      if (closed === undefined) return 'NO_MORE_BUFFERS'
      return sent() === pages.length ? 'FINISHED' : 'FLUSHING'
    },
    wait(token, millis) {
      if (token < pages.length || closed !== undefined || millis <= 0) return Promise.resolve()
      return new Promise((resolve) => {
        const done = (): void => {
          clearTimeout(timer)
          waiting.delete(check)
          resolve()
        }
        const check = (): void => {
          if (token < pages.length || closed !== undefined) done()
          else waiting.add(check)
        }
        const timer = setTimeout(done, millis)
        waiting.add(check)
      })
    },
  }
}
