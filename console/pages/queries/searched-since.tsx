import { Text } from '@mantine/core'
import { Instant } from '../../parts/instant.tsx'

/** Says that only the newest queries were searched for the text of the filter. @param iso since when */
export function SearchedSince({ iso }: { readonly iso: string }) {
  return (
    <Text size="sm" role="note">
      Only the newest queries were searched, those since <Instant iso={iso} />: an index finds texts with three letters
      or digits in a row.
    </Text>
  )
}
