import { camel } from '../catalog/type-name.ts'

/** The verb of an operation by its HTTP method. */
const VERBS: Record<string, string> = { GET: 'get', POST: 'create', PUT: 'update', PATCH: 'update', DELETE: 'delete' }

/**
 * The name of an operation in generated clients, made from method and path: `GET /v1/teams` becomes
 * `listTeams`, `PUT /v1/teams/{id}/members/{memberId}` becomes `updateTeamMember`, and
 * `POST /v1/auth/login` becomes `login`.
 */
export function operationId(method: string, path: string): string {
  const segments = path
    .split('/')
    .filter((segment) => segment !== '' && segment !== 'v1')
    .map((segment) => segment.replace(/\.(json|md|txt)$/, (_, type: string) => `-${type}`))
  const names = segments.filter((segment) => !segment.startsWith('{'))
  const isItem = segments.at(-1)?.startsWith('{') === true
  const last = names.at(-1) ?? 'root'
  const isCollection = !isItem && /[^s]s$/.test(last) && last !== 'status'
  // If a POST goes neither to a collection nor to an item, the last part of its path is a verb:
  // login, validate, password.
  if (method === 'POST' && !isCollection)
    return camel([
      last,
      ...names
        .slice(0, -1)
        .filter((name) => name !== 'auth')
        .map(singular),
    ])
  const owners = names.slice(0, -1).map(singular)
  const thing = isCollection && method === 'GET' ? last : singular(last)
  const verb = isCollection && method === 'GET' ? 'list' : (VERBS[method] ?? method.toLowerCase())
  const by = isItem && !/s$/.test(last) ? ['by', segments.at(-1)?.slice(1, -1) ?? ''] : []
  return camel([verb, ...owners, thing, ...by])
}

const singular = (word: string): string =>
  /ies$/.test(word) ? `${word.slice(0, -3)}y` : /[^su]s$/.test(word) ? word.slice(0, -1) : word
