import type { Column } from './data-table.tsx'
import { Count, Duration, Size } from './figure.tsx'
import { Instant } from './instant.tsx'
import { StateBadge } from './state-badge.tsx'
import { bytesOf, nanosOf, shownCost, shownSize, type Priced } from './units.ts'

/** A column whose cells show one value each: its head, and the value of a row. */
interface Shown<T, V> extends Pick<Column<T>, 'id' | 'title' | 'explanation' | 'serverSort'> {
  readonly of: (row: T) => V
}

/** A column of numbers, which always has an explanation. */
type ShownNumber<T, V> = Shown<T, V> & Required<Pick<Column<T>, 'explanation'>>

/** A column of durations of the REST interface. */
export function durationColumn<T>({ of, ...head }: ShownNumber<T, string>): Column<T> {
  return { ...head, numeric: true, value: (row) => nanosOf(of(row)), cell: (row) => <Duration of={of(row)} /> }
}

/** A column of sizes of the REST interface. */
export function sizeColumn<T>({ of, ...head }: ShownNumber<T, string>): Column<T> {
  return { ...head, numeric: true, value: (row) => bytesOf(of(row)), cell: (row) => <Size of={of(row)} /> }
}

/** A column of numbers of bytes, some of which are unknown. */
export function bytesColumn<T>({ of, ...head }: ShownNumber<T, number | undefined>): Column<T> {
  return {
    ...head,
    numeric: true,
    value: of,
    cell(row) {
      const bytes = of(row)
      return bytes === undefined ? '' : shownSize(bytes)
    },
  }
}

/** A column of counts. */
export function countColumn<T>({ of, ...head }: ShownNumber<T, number | undefined>): Column<T> {
  return { ...head, numeric: true, value: of, cell: (row) => <Count of={of(row)} /> }
}

/** A column of costs. */
export function costColumn<T>({ of, ...head }: ShownNumber<T, Priced>): Column<T> {
  return { ...head, numeric: true, value: (row) => of(row).cost, cell: (row) => shownCost(of(row)) }
}

/** A column of instants. */
export function instantColumn<T>({ of, ...head }: Shown<T, string | undefined>): Column<T> {
  return { ...head, value: of, cell: (row) => <Instant iso={of(row)} /> }
}

/** A column of states. */
export function stateColumn<T>({ of, ...head }: Shown<T, string>): Column<T> {
  return { ...head, value: of, cell: (row) => <StateBadge state={of(row)} /> }
}
