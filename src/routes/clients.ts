import type { FastifyReply } from 'fastify'
import Type from 'typebox'
import { perCatalogState } from '../catalog/catalog-state.ts'
import { type ClientApi, type ClientGateway, clientApis } from '../clients/client-api.ts'
import { postmanCollection } from '../clients/postman.ts'
import { pythonClient } from '../clients/python-client.ts'
import { typescriptClient } from '../clients/typescript-client.ts'
import type { Context } from '../context.ts'
import { createCacheable, sendCacheable } from '../http/answer/cacheable.ts'
import { openToAnyOrigin } from '../http/request/any-origin.ts'
import type { App } from '../http/request/typed-app.ts'

interface ClientFile {
  path: string
  operationId: string
  summary: string
  mediaType: string
  write: (apis: ClientApi[], gateway: ClientGateway) => string
}

const FILES: ClientFile[] = [
  {
    path: '/client.ts',
    operationId: 'getTypescriptClient',
    summary: 'A typed client for TypeScript, one file',
    // Browsers display this type. TypeScript has no registered media type.
    mediaType: 'text/plain',
    write: typescriptClient,
  },
  {
    path: '/client.py',
    operationId: 'getPythonClient',
    summary: 'A typed client for Python, one file',
    mediaType: 'text/x-python',
    write: pythonClient,
  },
  {
    path: '/postman.json',
    operationId: 'getPostmanCollection',
    summary: 'A collection for Postman and Bruno',
    mediaType: 'application/json',
    write: (apis, { baseUrl }) => JSON.stringify(postmanCollection(apis, baseUrl), null, 2),
  },
]

/** Clients as single files, generated from the catalog. */
export async function clientRoutes(app: App, { catalog, config }: Context): Promise<void> {
  openToAnyOrigin(app)
  for (const { path, operationId, summary, mediaType, write } of FILES) {
    const content = { [mediaType]: { schema: mediaType === 'application/json' ? Type.Object({}) : Type.String() } }
    const schema = { summary, tags: ['Documentation'], operationId, response: { 200: { content } } }
    const gateway = { baseUrl: config.http.baseUrl, callTimeoutMs: config.callTimeoutMs }
    const file = perCatalogState(catalog, () =>
      createCacheable(write(clientApis(catalog), gateway), `${mediaType}; charset=utf-8`),
    )
    app.get(path, { schema }, async (_request, reply: FastifyReply) =>
      sendCacheable(reply, file(), 'public, max-age=60'),
    )
  }
}
