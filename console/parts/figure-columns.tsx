import type { Column } from './data-table.tsx'
import { Count, Duration, Size } from './figure.tsx'
import { Instant } from './instant.tsx'
import { StateBadge } from './state-badge.tsx'
import { bytesOf, nanosOf } from './units.ts'

/** A column whose cells show one value each: its head, and the value of a row. */
interface Shown<T, V> extends Pick<Column<T>, 'id' | 'title' | 'explanation'> {
  readonly of: (row: T) => V
}

/** A column of durations of the REST interface. */
export function durationColumn<T>({ of, ...head }: Shown<T, string>): Column<T> {
  return { ...head, numeric: true, value: (row) => nanosOf(of(row)), cell: (row) => <Duration of={of(row)} /> }
}

/** A column of sizes of the REST interface. */
export function sizeColumn<T>({ of, ...head }: Shown<T, string>): Column<T> {
  return { ...head, numeric: true, value: (row) => bytesOf(of(row)), cell: (row) => <Size of={of(row)} /> }
}

/** A column of counts. */
export function countColumn<T>({ of, ...head }: Shown<T, number | undefined>): Column<T> {
  return { ...head, numeric: true, value: of, cell: (row) => <Count of={of(row)} /> }
}

/** A column of instants. */
export function instantColumn<T>({ of, ...head }: Shown<T, string | undefined>): Column<T> {
  return { ...head, value: of, cell: (row) => <Instant iso={of(row)} /> }
}

/** A column of states. */
export function stateColumn<T>({ of, ...head }: Shown<T, string>): Column<T> {
  return { ...head, value: of, cell: (row) => <StateBadge state={of(row)} /> }
}
