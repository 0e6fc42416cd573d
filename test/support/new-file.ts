import { alwaysSend, alwaysTrust } from './statement-client.ts'

// Runs before each test file of a shared process: settings for all requests of a file end with the file.
alwaysSend({})
alwaysTrust(undefined)
