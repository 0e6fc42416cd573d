import { Fenced, type EventLog } from './event-log.ts'

/** The log as one epoch of this process writes it. */
export interface LogOfEpoch {
  readonly log: EventLog
  /** What is left of the epoch writes no more, though this process may claim the log again. */
  end(): void
}

/** The same log, whose writing ends with the epoch that it was claimed for. */
export function logOfEpoch(log: EventLog): LogOfEpoch {
  let ended = false
  const { fenced } = log
  const whileItLasts = <A extends readonly unknown[], R>(write: (...given: A) => Promise<R>) => {
    return (...given: A): Promise<R> =>
      ended ? Promise.reject(new Fenced('The epoch of this process is over')) : write(...given)
  }
  return {
    log: {
      open: () => log.open(),
      close: () => log.close(),
      append: whileItLasts(log.append.bind(log)),
      keepPages: whileItLasts(log.keepPages.bind(log)),
      forgettable: whileItLasts(log.forgettable.bind(log)),
      forget: whileItLasts(log.forget.bind(log)),
      claim: whileItLasts(log.claim.bind(log)),
      read: log.read.bind(log),
      readStream: log.readStream.bind(log),
      readPage: log.readPage.bind(log),
      start: log.start.bind(log),
      subscribe: log.subscribe.bind(log),
      tip: log.tip.bind(log),
      fenced,
    },
    end: () => void (ended = true),
  }
}
