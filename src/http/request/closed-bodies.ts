import type { FastifyInstance } from 'fastify'

type Schema = Record<string, unknown>

/**
 * For bodies of which no member narrows what is made: forms and clients send further members, and
 * nothing is lost with them.
 */
export const OPEN_BODY = { additionalProperties: true }

/**
 * Refuses members of a JSON body that the route does not know: a misspelled member must not be
 * dropped, because what it was to narrow would be wider than its sender thinks. The schema itself
 * says so, and with it the OpenAPI document. Objects that say `additionalProperties` themselves
 * keep it. To be called before a route is added.
 */
export function closeBodies(app: FastifyInstance): void {
  app.addHook('onRoute', (route) => {
    if (route.schema?.body) route.schema = { ...route.schema, body: closed(route.schema.body) }
  })
}

function closed(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(closed)
  if (typeof schema !== 'object' || schema === null) return schema
  const { properties, items, anyOf, ...others } = schema as Schema
  const inner = properties === undefined ? undefined : Object.entries(properties as Schema)
  return {
    ...(inner && others.patternProperties === undefined ? { additionalProperties: false } : {}),
    ...others,
    ...(inner ? { properties: Object.fromEntries(inner.map(([name, member]) => [name, closed(member)])) } : {}),
    ...(items === undefined ? {} : { items: closed(items) }),
    ...(anyOf === undefined ? {} : { anyOf: closed(anyOf) }),
  }
}
