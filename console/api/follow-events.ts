import { useQueryClient, type QueryKey } from '@tanstack/react-query'
import { useEffect, useState } from 'react'
import { send } from './request.ts'

const REFRESH_MS = 1000
const RECONNECT_MS = 2000

/**
 * Follows the server's feed of events and reads the queries of a key again when it has news, at most once a second.
 * @param address of a feed, `/v1/events?query=…`; undefined: follows nothing
 * @param key keys of TanStack Query that the news make stale
 * @returns whether the console is connected to the feed
 */
export function useFollowedEvents(address: string | undefined, key: QueryKey): boolean {
  const client = useQueryClient()
  const [connected, setConnected] = useState(false)
  const name = JSON.stringify(key)
  useEffect(() => {
    if (address === undefined) return
    const closing = new AbortController()
    let due: ReturnType<typeof setTimeout> | undefined
    const onNews = () => {
      due ??= setTimeout(() => {
        due = undefined
        void client.invalidateQueries({ queryKey: JSON.parse(name) as QueryKey })
      }, REFRESH_MS)
    }
    void follow(address, closing.signal, { onNews, onConnected: setConnected })
    return () => {
      closing.abort()
      clearTimeout(due)
      setConnected(false)
    }
  }, [address, client, name])
  return connected
}

interface FeedListener {
  readonly onNews: () => void
  readonly onConnected: (connected: boolean) => void
}

async function follow(address: string, signal: AbortSignal, listener: FeedListener): Promise<void> {
  while (!signal.aborted) {
    await readFeed(address, signal, listener).catch(() => undefined)
    if (signal.aborted) return
    listener.onConnected(false)
    await new Promise((resolve) => setTimeout(resolve, RECONNECT_MS))
    // Events may have been missed while the connection was away.
    listener.onNews()
  }
}

async function readFeed(address: string, signal: AbortSignal, listener: FeedListener): Promise<void> {
  const answer = await send(address, { signal, headers: { accept: 'text/event-stream' } })
  if (!answer.body) return
  listener.onConnected(true)
  const decoder = new TextDecoder()
  const reader = answer.body.getReader()
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return
    if (decoder.decode(value, { stream: true }).includes('data:')) listener.onNews()
  }
}
