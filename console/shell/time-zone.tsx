import { createContext, use, useMemo, useState, type ReactNode } from 'react'

/** How the console shows instants: in the zone of the browser, or in UTC. */
export type ShownZone = 'local' | 'UTC'

interface TimeZone {
  readonly zone: ShownZone
  readonly setZone: (zone: ShownZone) => void
}

const KEY = 'quipu-time-zone'
const TimeZoneContext = createContext<TimeZone | undefined>(undefined)

/** Keeps the chosen zone in the browser's storage, so that it holds after a reload. */
export function TimeZoneProvider({ children }: { readonly children: ReactNode }) {
  const [zone, setZone] = useState<ShownZone>(() => (localStorage.getItem(KEY) === 'UTC' ? 'UTC' : 'local'))
  const value = useMemo(
    () => ({
      zone,
      setZone(chosen: ShownZone) {
        localStorage.setItem(KEY, chosen)
        setZone(chosen)
      },
    }),
    [zone],
  )
  return <TimeZoneContext value={value}>{children}</TimeZoneContext>
}

/** @throws Error outside of a TimeZoneProvider */
export function useTimeZone(): TimeZone {
  const value = use(TimeZoneContext)
  if (!value) throw new Error('There is no TimeZoneProvider around this component')
  return value
}
