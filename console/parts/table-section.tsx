import { DataTable, type DataTableProps } from './data-table.tsx'
import { Section } from './section.tsx'

/** A part of a page that is one table, which has the name of the part. */
export function TableSection<T extends object>({
  title,
  ...table
}: Omit<DataTableProps<T>, 'label'> & { readonly title: string }) {
  return (
    <Section title={title}>
      <DataTable label={title} {...table} />
    </Section>
  )
}
