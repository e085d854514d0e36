import Type from 'typebox'
import type { App } from './typed-app.ts'

/**
 * Parameters of a path. Any text fits. If an id is malformed, it names nothing, which is a 404, not
 * a 400.
 */
export const IdParams = Type.Object({ id: Type.String() })
export const SlugParams = Type.Object({ slug: Type.String() })
export const NameParams = Type.Object({ name: Type.String() })

const UUID_IN_ANY_CASE = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

/** Takes the ids in a scope's paths in capitals too, as a reader of UUIDs must (RFC 9562, 4). */
export function acceptIdsInAnyCase(scope: App): void {
  scope.addHook('onRequest', async (request) => {
    const params = request.params as Record<string, string>
    for (const [name, value] of Object.entries(params)) {
      if (UUID_IN_ANY_CASE.test(value)) params[name] = value.toLowerCase()
    }
  })
}
