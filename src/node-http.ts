import { createRequire } from 'node:module'

/**
 * `node:http`, required instead of imported: an import reads every export, also the getters behind
 * which Node keeps its own fetch client, and to load that takes every process 50 ms of processor
 * time at its start.
 */
export const { createServer, IncomingMessage, STATUS_CODES } = createRequire(import.meta.url)(
  'node:http',
) as typeof import('node:http')
