import { Button, Group, Text } from '@mantine/core'
import { Explained } from './explained.tsx'
import { EXPLANATIONS } from './explanations.ts'
import { shownCount } from './units.ts'

/** Goes through pages of rows that are already here. Shows nothing for a single page. */
export function Pager({
  page,
  pageSize,
  rows,
  onPage,
}: {
  /** From 0. */
  readonly page: number
  readonly pageSize: number
  /** The number of all rows. */
  readonly rows: number
  readonly onPage: (page: number) => void
}) {
  if (rows <= pageSize) return null
  const last = Math.ceil(rows / pageSize) - 1
  const from = page * pageSize
  return (
    <Group gap="xs" my="xs">
      <Button size="compact-sm" variant="default" disabled={page === 0} onClick={() => onPage(page - 1)}>
        Previous
      </Button>
      <Text size="sm" role="status">
        <Explained by={EXPLANATIONS.shownRows}>
          {shownCount(from + 1)} to {shownCount(Math.min(from + pageSize, rows))} of {shownCount(rows)}
        </Explained>
      </Text>
      <Button size="compact-sm" variant="default" disabled={page >= last} onClick={() => onPage(page + 1)}>
        Next
      </Button>
    </Group>
  )
}
