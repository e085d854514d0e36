import type { FastifyReply } from 'fastify'
import Type from 'typebox'
import type { Context } from '../context.ts'
import { openToAnyOrigin } from '../http/request/any-origin.ts'
import type { App } from '../http/request/typed-app.ts'

/** How long a security.txt is valid, milliseconds. Each answer has a new expiry. */
const SECURITY_MS = 180 * 86_400_000

const FRESH = 'public, max-age=3600'

/** Documents that programs expect at fixed addresses (RFC 8615). */
export async function wellKnownRoutes(app: App, { config }: Context): Promise<void> {
  const { baseUrl, securityContact } = config.http
  openToAnyOrigin(app)

  const catalogSchema = {
    summary: 'Where the descriptions of this API are (RFC 9727)',
    tags: ['Documentation'],
    operationId: 'getApiCatalog',
    response: {
      200: {
        content: {
          'application/linkset+json': {
            schema: Type.Object({
              linkset: Type.Array(Type.Unknown(), { description: 'Links to descriptions of the service (RFC 9727)' }),
            }),
          },
        },
      },
    },
  }
  app.get('/.well-known/api-catalog', { schema: catalogSchema }, async (_, reply: FastifyReply) =>
    reply
      .header('cache-control', FRESH)
      .type('application/linkset+json; profile="https://www.rfc-editor.org/info/rfc9727"')
      .send(JSON.stringify(apiCatalog(baseUrl))),
  )

  if (securityContact === undefined) return
  app.get('/.well-known/security.txt', { schema: { hide: true } }, async (_, reply) =>
    reply
      .header('cache-control', FRESH)
      .type('text/plain; charset=utf-8')
      .send(
        [
          `Contact: ${securityContact}`,
          `Expires: ${new Date(Date.now() + SECURITY_MS).toISOString()}`,
          `Canonical: ${baseUrl}/.well-known/security.txt`,
          '',
        ].join('\n'),
      ),
  )
}

/** The linkset that describes the gateway's two interfaces. */
function apiCatalog(baseUrl: string): object {
  return {
    linkset: [
      {
        anchor: `${baseUrl}/v1/`,
        'service-desc': [
          { href: `${baseUrl}/openapi.json`, type: 'application/vnd.oai.openapi+json;version=3.1' },
          { href: `${baseUrl}/postman.json`, type: 'application/json' },
        ],
        'service-doc': [
          { href: `${baseUrl}/docs`, type: 'text/html' },
          { href: `${baseUrl}/llms.txt`, type: 'text/plain' },
        ],
        status: [{ href: `${baseUrl}/readyz`, type: 'application/json' }],
      },
      {
        anchor: `${baseUrl}/mcp`,
        'service-doc': [{ href: `${baseUrl}/agents`, type: 'text/html' }],
      },
    ],
  }
}
