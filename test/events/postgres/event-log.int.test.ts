import { eventLogContract } from '../../contract/event-log.contract.ts'
import { postgresAdapter } from '../../support/event-log/postgres-fixture.ts'

eventLogContract(postgresAdapter)
