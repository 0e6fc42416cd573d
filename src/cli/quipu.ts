#!/usr/bin/env node
import { programUrl } from '../shared/programs.ts'

/** Runs the commands, from the bundle if there is one. */
await import(programUrl('cli/commands').href)
