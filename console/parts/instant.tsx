import { useTimeZone, type ShownZone } from '../shell/time-zone.tsx'

const formats: Record<ShownZone, Intl.DateTimeFormat> = {
  local: formatIn(undefined),
  UTC: formatIn('UTC'),
}

function formatIn(timeZone: string | undefined): Intl.DateTimeFormat {
  return new Intl.DateTimeFormat('sv-SE', {
    ...(timeZone === undefined ? {} : { timeZone }),
    dateStyle: 'short',
    timeStyle: 'medium',
  })
}

/** The time of an instant in a zone, without the date: `14:03:05`. */
export function shownTime(millis: number, zone: ShownZone): string {
  return formats[zone].format(millis).slice(-8)
}

/** An instant in the chosen zone, to the second; its title has the full instant in UTC. */
export function Instant({ iso }: { readonly iso: string | undefined }) {
  const { zone } = useTimeZone()
  if (iso === undefined) return null
  const time = new Date(iso)
  if (Number.isNaN(time.getTime())) return iso
  return (
    <time dateTime={iso} title={`${iso} (UTC)`}>
      {formats[zone].format(time)}
    </time>
  )
}
