import { Fenced, type EventLog } from './event-log.ts'

/** The log as this process writes it in one epoch. */
export interface LogOfEpoch {
  readonly log: EventLog
  /** Stops all writes of this epoch, even if this process claims the log again. */
  end(): void
}

/** Wraps the log so that its writes end with the epoch. */
export function logOfEpoch(log: EventLog): LogOfEpoch {
  let ended = false
  const { fenced } = log
  const whileItLasts = <A extends readonly unknown[], R>(write: (...given: A) => Promise<R>) => {
    return (...given: A): Promise<R> =>
      ended ? Promise.reject(new Fenced('The epoch of this process has ended')) : write(...given)
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
