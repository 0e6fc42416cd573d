import { readFileSync } from 'node:fs'
import type { SASLOptions } from 'kafkajs'
import { usesKafkaTls, usesPublicKafkaTls, type Config } from '../../config/load-config.ts'
import type { KafkaOptions } from '../../events/kafka/kafka-options.ts'
import { ExitError } from '../../shared/engine-error.ts'
import { exitCodes } from '../../shared/exit-codes.ts'
import { nodeCode } from '../../shared/node-error.ts'

/**
 * How to reach brokers and authenticate to them. `names` is the prefix of the settings' variables, for error messages.
 */
interface KafkaAccess {
  readonly names: string
  readonly tls: boolean
  readonly caFile: string | undefined
  readonly certFile: string | undefined
  readonly keyFile: string | undefined
  readonly mechanism: Config['kafkaSaslMechanism']
  readonly user: string | undefined
  readonly password: string | undefined
  readonly passwordFile: string | undefined
}

type KafkaSecurity = Pick<KafkaOptions, 'ssl' | 'sasl'>

/**
 * TLS and credentials for the Kafka of the event log, by the configuration. Reads the files now.
 * @throws ExitError 64 with one line for a file that cannot be read
 */
export function kafkaSecurityOf(config: Config): KafkaSecurity {
  return securityOf({
    names: 'QUIPU_KAFKA',
    tls: usesKafkaTls(config),
    caFile: config.kafkaCaFile,
    certFile: config.kafkaCertFile,
    keyFile: config.kafkaKeyFile,
    mechanism: config.kafkaSaslMechanism,
    user: config.kafkaUser,
    password: config.kafkaPassword,
    passwordFile: config.kafkaPasswordFile,
  })
}

/** The same for the brokers of the public topic. @throws ExitError 64 */
export function publicKafkaSecurityOf({ publishing }: Config): KafkaSecurity {
  return securityOf({
    names: 'QUIPU_PUBLIC_KAFKA',
    tls: usesPublicKafkaTls(publishing),
    caFile: publishing.publicKafkaCaFile,
    certFile: publishing.publicKafkaCertFile,
    keyFile: publishing.publicKafkaKeyFile,
    mechanism: publishing.publicKafkaSaslMechanism,
    user: publishing.publicKafkaUser,
    password: publishing.publicKafkaPassword,
    passwordFile: publishing.publicKafkaPasswordFile,
  })
}

function securityOf(access: KafkaAccess): KafkaSecurity {
  const { names, tls, caFile, certFile, keyFile } = access
  const sasl = saslOf(access)
  const ssl = tls && {
    ...(caFile === undefined ? {} : { ca: [textOf(`${names}_CA_FILE`, caFile)] }),
    ...(certFile === undefined ? {} : { cert: textOf(`${names}_CERT_FILE`, certFile) }),
    ...(keyFile === undefined ? {} : { key: textOf(`${names}_KEY_FILE`, keyFile) }),
  }
  return { ...(ssl ? { ssl } : {}), ...(sasl ? { sasl } : {}) }
}

function saslOf(access: KafkaAccess): SASLOptions | undefined {
  const { mechanism, user: username } = access
  const password = passwordOf(access)
  if (mechanism === undefined || username === undefined || password === undefined) return undefined
  // Case by case, because the type has a separate shape for each.
  switch (mechanism) {
    case 'plain':
      return { mechanism, username, password }
    case 'scram-sha-256':
      return { mechanism, username, password }
    case 'scram-sha-512':
      return { mechanism, username, password }
  }
}

function passwordOf({ names, password, passwordFile }: KafkaAccess): string | undefined {
  if (passwordFile === undefined) return password
  // Editors end files with a line break.
  return textOf(`${names}_PASSWORD_FILE`, passwordFile).replace(/\r?\n$/, '')
}

function textOf(setting: string, path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    const code = nodeCode(error)
    throw new ExitError(exitCodes.configuration, `${setting}: cannot read ${path}: ${code}`)
  }
}
