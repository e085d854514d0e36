import { inOwnForm } from '../../accounts/uuid.ts'
import { members } from '../../catalog/json.ts'
import type { App } from './typed-app.ts'

/**
 * Members of bodies that are ids. Other members stay unchanged, because a name or a password may
 * look like an id.
 */
const IDS_OF_BODIES = ['teamId', 'memberId']

/**
 * Accepts ids in capitals in path, query and body, as a reader of UUIDs must (RFC 9562, 4).
 * Handlers see ids only in our own form, so that they can compare and store them.
 */
export function acceptIdsInAnyCase(scope: App): void {
  scope.addHook('onRequest', async ({ params, query }) => {
    for (const texts of [members(params), members(query)]) rewrite(texts, Object.keys(texts))
  })
  scope.addHook('preValidation', async ({ body }) => rewrite(members(body), IDS_OF_BODIES))
}

function rewrite(texts: Record<string, unknown>, names: string[]): void {
  for (const name of names) {
    const given = texts[name]
    if (typeof given === 'string') texts[name] = inOwnForm(given)
  }
}
