import type { FastifyReply } from 'fastify'
import Type from 'typebox'
import { perCatalogState } from '../catalog/catalog-state.ts'
import type { Context } from '../context.ts'
import { createCacheable, sendCacheable } from '../http/answer/cacheable.ts'
import { openToAnyOrigin } from '../http/request/any-origin.ts'
import type { App } from '../http/request/typed-app.ts'
import { createDocument } from '../openapi/document.ts'
import type { DocumentedRoute } from '../openapi/route-list.ts'

/** The machine-readable description of every route. */
export async function openApiRoutes(
  app: App,
  { catalog, config }: Context,
  listRoutes: () => DocumentedRoute[],
): Promise<void> {
  openToAnyOrigin(app)
  const document = perCatalogState(catalog, () =>
    createCacheable(
      JSON.stringify(createDocument(listRoutes(), catalog, config.http.baseUrl)),
      'application/json; charset=utf-8',
    ),
  )

  const schema = {
    summary: 'This OpenAPI 3.1 document',
    tags: ['Documentation'],
    operationId: 'getOpenApi',
    response: {
      200: {
        content: {
          'application/json': {
            schema: Type.Object({
              openapi: Type.Literal('3.1.0', { description: 'Version of the OpenAPI Specification' }),
            }),
          },
        },
      },
    },
  }
  app.get('/openapi.json', { schema }, async (_request, reply: FastifyReply) => {
    return await sendCacheable(reply, document(), 'public, max-age=60')
  })
}
