import { Title } from '@mantine/core'
import { usePageTitle } from '../../shell/use-page-title.ts'
import { Activity } from './activity.tsx'
import { Clusters } from './clusters.tsx'
import { ServerFacts } from './server-facts.tsx'
import { Workers } from './workers.tsx'

/** The coordinator that answers, its workers, and the clusters behind it. */
export function ClusterPage() {
  usePageTitle('Cluster')
  return (
    <>
      <Title order={1} size="h2">
        Cluster
      </Title>
      <ServerFacts />
      <Activity />
      <Workers />
      <Clusters />
    </>
  )
}
