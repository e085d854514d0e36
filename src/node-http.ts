import { createRequire } from 'node:module'

/**
 * `node:http`, loaded with `require`. An import would read every export, including getters that
 * load Node's own fetch client, which would cost each process 50 ms of processor time at its start.
 */
export const { createServer, IncomingMessage, METHODS, STATUS_CODES } = createRequire(import.meta.url)(
  'node:http',
) as typeof import('node:http')
