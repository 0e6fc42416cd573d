import type { IncomingMessage } from 'node:http'
import type { RequestHandler } from 'express'
import { createReadGate } from '../edge/read-gate.ts'
import { requestTarget } from '../edge/request-target.ts'

/** Reads of one query or one page of the list. */
const READS = { running: 6, runningOfOne: 4, waiting: 512, waitingOfOne: 128 }
/** Lists of all tasks, made of all events of all queries of the last minutes, for as long as their readers take. */
const LISTS = { running: 2, runningOfOne: 2, waiting: 32, waitingOfOne: 8 }

/**
 * Reads of history wait for each other, and not for long: queries and tasks alone, whatever stands behind it.
 * @param isInternal carries the cluster's key: its processes wait for nobody
 * @param lingerMs longest wait, milliseconds
 */
export function boundReads(isInternal: (request: IncomingMessage) => boolean, lingerMs: number): RequestHandler {
  const [reads, lists] = [createReadGate({ ...READS, lingerMs }), createReadGate({ ...LISTS, lingerMs })]
  return (request, response, next) => {
    const { path } = requestTarget(request)
    const isRead = request.method === 'GET' || request.method === 'HEAD'
    if (!isRead || !/^\/v1\/(query|task)(\/|$)/.test(path) || isInternal(request)) return next()
    const gate = /^\/v1\/task\/?$/.test(path) ? lists : reads
    gate.enter(request, response).then((entered) => {
      if (entered) next()
    }, next)
  }
}
