#!/usr/bin/env node
import { programUrl } from '../shared/programs.ts'

/** The commands, out of the bundle when there is one. */
await import(programUrl('cli/commands').href)
