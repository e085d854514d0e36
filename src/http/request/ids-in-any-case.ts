import { inOwnForm } from '../../accounts/uuid.ts'
import { members } from '../../catalog/json.ts'
import type { App } from './typed-app.ts'

/** Members of bodies that are ids. A name or a password may look like an id and stays as it is. */
const IDS_OF_BODIES = ['teamId', 'memberId']

/**
 * Takes the ids that a scope's requests carry in capitals too, as a reader of UUIDs must (RFC 9562,
 * 4): in the path, in the query and in the body. Routes meet ids in our own form alone, so that
 * they can compare them and write them down.
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
