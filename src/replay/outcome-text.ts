import type { ReplayLine } from './replay-line.ts'
import { skipReasons } from './skip-reasons.ts'
import type { Chance, Difference } from './verdict.ts'

/** The outcome of a statement in one line. */
export function outcomeText(line: ReplayLine): string {
  switch (line.verdict) {
    case 'SAME':
      return 'the same'
    case 'SAME_OTHER_ORDER':
      return 'the same rows in another order'
    case 'DIFFERENT':
      return differenceText(line.difference)
    case 'NON_DETERMINISTIC':
      return `${chanceText(line.chance)}; ${differenceText(line.difference)}`
    case 'DATA_MOVED':
      return `${line.tables.join(', ')}; ${differenceText(line.difference)}`
    case 'FAILED_THERE':
      return `${line.there.name}: ${line.there.message}`
    case 'FAILED_HERE':
      return `${line.here.name}: ${line.here.message}`
    case 'FAILED_BOTH':
      return line.here.name === line.there.name
        ? `${line.here.name}: ${line.here.message}`
        : `here ${line.here.name}: ${line.here.message}; there ${line.there.name}: ${line.there.message}`
    case 'UNCONFIRMED':
      if (line.there) return `${line.there.name}: ${line.there.message}`
      return line.difference ? differenceText(line.difference) : 'the record has no digest to compare with'
    case 'SKIPPED':
      return skipReasons[line.reason]
  }
}

function differenceText(difference: Difference): string {
  switch (difference.kind) {
    case 'columns':
      return `columns here ${difference.here.join(', ')}; there ${difference.there.join(', ')}`
    case 'rows':
      return `${difference.here} rows here, ${difference.there} there`
    case 'values':
      return difference.names.length === 0
        ? 'the same values in other rows'
        : `different values in ${difference.names.join(', ')}`
    case 'floating':
      return `different numbers in ${difference.names.join(', ')}`
    case 'digest':
      return `different digests of ${difference.here} rows here and ${difference.there} there`
    case 'plan':
      return `the plans differ from node ${1 + firstUnlike(difference)} on`
  }
}

function firstUnlike({ here, there }: Extract<Difference, { kind: 'plan' }>): number {
  const at = here.findIndex((line, index) => line !== there[index])
  return at < 0 ? here.length : at
}

function chanceText(chance: Chance): string {
  switch (chance.kind) {
    case 'repeated':
      return 'the baseline gives another answer each time'
    case 'tie':
      return 'a LIMIT cuts between rows with the same sort values'
    case 'limit':
      return 'a LIMIT without an order'
    case 'functions':
      return `the statement calls ${chance.names.join(', ')}`
    case 'clock':
      return `the statement reads the clock: ${chance.names.join(', ')}`
    case 'server':
      return `the statement reads data about the server: ${chance.names.join(', ')}`
  }
}
