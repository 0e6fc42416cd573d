import { Code } from '@mantine/core'

/** A value as indented JSON. */
export function JsonText({ value }: { readonly value: unknown }) {
  return (
    <Code block className="sql" tabIndex={0}>
      {value === undefined ? '' : JSON.stringify(value, null, 2)}
    </Code>
  )
}
