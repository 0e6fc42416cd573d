import type { PublicTopicOptions } from '../events/kafka/public-topic.ts'
import { unreachable } from '../shared/unreachable.ts'
import { lineFile, type LineFileOptions } from './line-file.ts'
import { openLineageServer, type OpenLineageServerOptions } from './open-lineage-server.ts'
import type { Destination } from './publication.ts'

/** The settings of a destination; plain data, so that a thread can get it. */
export type DestinationSettings =
  | ({ readonly kind: 'server' } & OpenLineageServerOptions)
  | ({ readonly kind: 'file' } & LineFileOptions)
  | ({ readonly kind: 'topic' } & PublicTopicOptions)

/** @throws ExitError 64 when certificates cannot be used */
export async function destinationOf(settings: DestinationSettings): Promise<Destination> {
  switch (settings.kind) {
    case 'server':
      return openLineageServer(settings)
    case 'file':
      return lineFile(settings)
    case 'topic': {
      // The module takes a tenth of a second to load.
      const { PublicTopic } = await import('../events/kafka/public-topic.ts')
      return new PublicTopic(settings)
    }
    default:
      return unreachable(settings)
  }
}
