import type { Logger } from '../telemetry/logger.ts'
import type { Meters } from '../telemetry/meters.ts'
import type { CertificateNews } from './tls-identity.ts'

/** Reports news of a server's certificate, in the log and as metrics. */
export function certificateTelemetry(logger: Logger, meters: () => Meters): (news: CertificateNews) => void {
  return (news) => {
    meters().count('tlsCertificateLoads', { result: news.kind === 'serves' ? 'served' : 'refused' })
    if (news.kind === 'refused')
      return logger.error(
        'tls.trouble',
        { err: news.error },
        'The certificate files could not be loaded: the earlier certificate stays in use',
      )
    meters().set('tlsCertificateExpiry', {}, news.validUntil.getTime() / 1000)
    const { names, validUntil } = news
    logger.info('tls.certificate', { names, validUntil }, 'The server uses this certificate')
  }
}
