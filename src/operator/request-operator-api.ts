import type { Static } from 'typebox'
import { asSentence } from '../catalog/openapi/words.ts'
import type { OperatorClient } from '../config.ts'
import type { OverviewAnswer } from '../fleet/overview-schema.ts'
import type { UsersAnswer } from './change-user.ts'
import { UsageError } from './command-line.ts'
import type { UpstreamAnswer } from './describe-upstream.ts'

type Users = Static<typeof UsersAnswer>
export type ListedUser = Users['users'][number]

/**
 * Sends a request of the command line to the operator API.
 *
 * @returns the JSON of the answer
 * @throws UsageError that tells a person why there is no answer
 */
export async function request(
  { url, token, tokenFrom, name }: OperatorClient,
  route: `${'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'} ${string}`,
  body?: object,
): Promise<unknown> {
  const [method = '', path = ''] = route.split(' ', 2)
  const headers = { authorization: `Bearer ${token}`, 'x-operator': name }
  const response = await fetch(url + path, {
    method,
    headers: body ? { ...headers, 'content-type': 'application/json' } : headers,
    ...(body ? { body: JSON.stringify(body) } : {}),
  }).catch((cause) => {
    throw new UsageError(`The operator API at ${url} does not answer. Is the service running?`, { cause })
  })
  const answer = Object(await response.json().catch(() => ({})))
  if (response.status === 401) {
    throw new UsageError(`The operator API at ${url} refuses the token of ${tokenFrom}: 401 ${answer.code}.`)
  }
  if (response.status === 404 && (answer.code === undefined || answer.code === 'NOT_FOUND')) {
    throw new UsageError(
      `There is no operator API at ${url}. --url is the address of the console, which has a port of its own: OPS_PORT.`,
    )
  }
  if (!response.ok) {
    const { code = '', message = 'refused', hint = '' } = answer
    throw new UsageError(`${response.status} ${code}: ${message} ${asSentence(hint)}`.trimEnd())
  }
  return answer
}

export async function readOverview(client: OperatorClient): Promise<Static<typeof OverviewAnswer>> {
  return (await request(client, 'GET /v1/operator/overview')) as Static<typeof OverviewAnswer>
}

export async function listUpstreams(client: OperatorClient): Promise<Static<typeof UpstreamAnswer>[]> {
  return Object(await request(client, 'GET /v1/operator/upstreams')).upstreams
}

export async function listUsers(client: OperatorClient, text: string, unapproved = false): Promise<Users> {
  const query = new URLSearchParams({ email: text, ...(unapproved ? { unapproved: 'true' } : {}) })
  return (await request(client, `GET /v1/operator/users?${query}`)) as Users
}

/** @throws UsageError if no account has the id or email */
export async function findUser(client: OperatorClient, subject: string): Promise<ListedUser> {
  const { users } = await listUsers(client, subject)
  const wanted = subject.toLowerCase()
  const user = users.find(({ id, email: address }) => id === wanted || address.toLowerCase() === wanted)
  if (!user) throw new UsageError(`No account has the ${subject.includes('@') ? 'email' : 'id'} ${subject}.`)
  return user
}
