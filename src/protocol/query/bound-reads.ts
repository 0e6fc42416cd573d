import type { IncomingMessage } from 'node:http'
import type { RequestHandler } from 'express'
import { createReadGate } from '../edge/read-gate.ts'
import { requestTarget } from '../edge/request-target.ts'

/** The limits of reads of one query or one page of the list. */
const READS = { running: 6, runningOfOne: 4, waiting: 512, waitingOfOne: 128 }
/**
 * The limits of lists of all tasks. Such a list is made from all events of the queries of the last minutes, and stays in
 * memory until its reader has received it.
 */
const LISTS = { running: 2, runningOfOne: 2, waiting: 32, waitingOfOne: 8 }

/**
 * Limits reads of `/v1/query`, `/v1/task` and the paths below them: a read waits while too many others run.
 * @param isInternal whether a request carries the cluster's key: processes of the cluster do not wait
 * @param lingerMs how long a read whose reader went away keeps its slot, milliseconds
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
