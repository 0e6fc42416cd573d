import { Alert } from '@mantine/core'

/** Says that a request failed, and why. */
export function Problem({ error }: { readonly error: Error }) {
  return (
    <Alert color="red" variant="outline" title="The request failed" role="alert">
      {error.message}
    </Alert>
  )
}
