import { readFileSync } from 'node:fs'
import type { SASLOptions } from 'kafkajs'
import { usesKafkaTls, type Config } from '../../config/load-config.ts'
import type { KafkaOptions } from '../../events/kafka/kafka-record-store.ts'
import { ExitError } from '../../shared/engine-error.ts'
import { exitCodes } from '../../shared/exit-codes.ts'
import { nodeCode } from '../../shared/node-error.ts'

/**
 * TLS and identity towards Kafka, as the configuration says; files are read now.
 * @throws ExitError 64 with one line for a file that cannot be read
 */
export function kafkaSecurityOf(config: Config): Pick<KafkaOptions, 'ssl' | 'sasl'> {
  const { kafkaCaFile, kafkaCertFile, kafkaKeyFile } = config
  const sasl = saslOf(config)
  const ssl = usesKafkaTls(config) && {
    ...(kafkaCaFile === undefined ? {} : { ca: [textOf('QUIPU_KAFKA_CA_FILE', kafkaCaFile)] }),
    ...(kafkaCertFile === undefined ? {} : { cert: textOf('QUIPU_KAFKA_CERT_FILE', kafkaCertFile) }),
    ...(kafkaKeyFile === undefined ? {} : { key: textOf('QUIPU_KAFKA_KEY_FILE', kafkaKeyFile) }),
  }
  return { ...(ssl ? { ssl } : {}), ...(sasl ? { sasl } : {}) }
}

function saslOf(config: Config): SASLOptions | undefined {
  const { kafkaSaslMechanism: mechanism, kafkaUser: username } = config
  const password = passwordOf(config)
  if (mechanism === undefined || username === undefined || password === undefined) return undefined
  // One by one: the type has a shape for each.
  switch (mechanism) {
    case 'plain':
      return { mechanism, username, password }
    case 'scram-sha-256':
      return { mechanism, username, password }
    case 'scram-sha-512':
      return { mechanism, username, password }
  }
}

function passwordOf({ kafkaPassword, kafkaPasswordFile }: Config): string | undefined {
  if (kafkaPasswordFile === undefined) return kafkaPassword
  // Editors end files with a line.
  return textOf('QUIPU_KAFKA_PASSWORD_FILE', kafkaPasswordFile).replace(/\r?\n$/, '')
}

function textOf(setting: string, path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    const code = nodeCode(error)
    throw new ExitError(exitCodes.configuration, `${setting}: cannot read ${path}: ${code}`)
  }
}
