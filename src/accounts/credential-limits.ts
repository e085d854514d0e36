import Type, { type Static } from 'typebox'
import type { Catalog } from '../catalog/catalog.ts'
import { offeredApis } from '../catalog/catalog-state.ts'
import { nullable } from '../catalog/json.ts'
import { nearestName } from '../catalog/nearest-name.ts'
import type { AllowedColumns } from '../db/api-keys.ts'
import { GatewayError } from '../errors.ts'
import { normalizedNetwork } from '../net/address-list.ts'

/** Largest limit. It fits Postgres' integers and is above the limits of any plan. */
const LIMIT_MAX = 1_000_000_000

const Limit = (description: string) =>
  Type.Optional(nullable(Type.Integer({ minimum: 1, maximum: LIMIT_MAX, description })))

/** Members of bodies that say what an owner allows a key or a connection. */
export const allowedMembers = {
  apis: Type.Optional(
    nullable(
      Type.Array(Type.String({ maxLength: 64 }), {
        minItems: 1,
        maxItems: 200,
        description: 'Slugs of the APIs that the credential may call; null: all',
      }),
    ),
  ),
  addresses: Type.Optional(
    nullable(
      Type.Array(Type.String({ maxLength: 64 }), {
        minItems: 1,
        maxItems: 20,
        description:
          'IPv4 and IPv6 addresses and networks (CIDR, such as 203.0.113.0/24) from which the credential may be used; null: everywhere',
      }),
    ),
  ),
  limits: Type.Optional(
    nullable(
      Type.Object(
        {
          perMinute: Limit('Calls in any minute; null: only the limit of the plan'),
          perMonth: Limit('Live calls in a UTC month; null: only the limit of the plan'),
          inFlight: Limit('Calls at once; null: only the limit of the plan'),
        },
        {
          description:
            'Limits of the credential, in addition to the limits of the plan; null: none. The smaller number counts',
        },
      ),
    ),
  ),
  mayWrite: Type.Optional(
    Type.Boolean({
      description:
        'Whether the credential may call endpoints that change something at their source; by default it may only read',
    }),
  ),
}

type Allowed = Static<Type.TObject<typeof allowedMembers>>

/** The same members in answers. */
export const allowedAnswerMembers = {
  apis: nullable(
    Type.Array(Type.String(), { description: 'Slugs of the APIs that the credential may call; null: all' }),
  ),
  addresses: nullable(
    Type.Array(Type.String(), {
      description: 'Addresses and networks (CIDR) from which the credential may be used; null: everywhere',
    }),
  ),
  limits: Type.Object(
    {
      perMinute: nullable(Type.Integer({ description: 'Calls in any minute; null: only the limit of the plan' })),
      perMonth: nullable(Type.Integer({ description: 'Live calls in a UTC month; null: only the limit of the plan' })),
      inFlight: nullable(Type.Integer({ description: 'Calls at once; null: only the limit of the plan' })),
    },
    { description: 'Limits of the credential, in addition to the limits of the plan' },
  ),
  mayWrite: Type.Boolean({
    description: 'Whether the credential may call endpoints that change something at their source',
  }),
}

export function toAllowedAnswer(columns: AllowedColumns) {
  const { apis, addresses, per_minute, per_month, in_flight, may_write } = columns
  return {
    apis,
    // Postgres writes each address with a length.
    addresses: addresses?.map((network) => normalizedNetwork(network) ?? network) ?? null,
    limits: { perMinute: per_minute, perMonth: per_month, inFlight: in_flight },
    mayWrite: may_write,
  }
}

/**
 * The columns that a body changes. Null removes a limit; an absent member keeps it.
 *
 * @throws GatewayError VALIDATION_ERROR for an API that the catalog does not have, or for a text
 *   that is not an address or network
 */
export function readAllowed(catalog: Catalog, allowed: Allowed): Partial<AllowedColumns> {
  const { apis, addresses, limits, mayWrite } = allowed
  const { perMinute, perMonth, inFlight } = limits ?? { perMinute: null, perMonth: null, inFlight: null }
  return {
    ...(apis === undefined ? {} : { apis: apis && checkedApis(catalog, apis) }),
    ...(addresses === undefined ? {} : { addresses: addresses && checkedAddresses(addresses) }),
    ...(limits === undefined || perMinute === undefined ? {} : { per_minute: perMinute }),
    ...(limits === undefined || perMonth === undefined ? {} : { per_month: perMonth }),
    ...(limits === undefined || inFlight === undefined ? {} : { in_flight: inFlight }),
    ...(mayWrite === undefined ? {} : { may_write: mayWrite }),
  }
}

function checkedApis(catalog: Catalog, apis: string[]): string[] {
  const index = apis.findIndex((slug) => !catalog.has(slug))
  const unknown = apis[index]
  if (unknown === undefined) return [...new Set(apis)].sort()
  const meant = nearestName(
    unknown,
    offeredApis(catalog).map(({ slug }) => slug),
  )
  // The message does not repeat a text that cannot be a slug.
  const problem = /^[\w-]+$/.test(unknown)
    ? `The catalog has no API ${unknown}`
    : `Item ${index + 1} of the list of APIs is not the name of an API`
  throw new GatewayError('VALIDATION_ERROR', {
    message: `${problem}${meant === undefined ? '.' : `; did you mean ${meant}?`}`,
    hint: 'Correct the list of APIs and send the request again',
    tokens: { param: 'apis' },
  })
}

function checkedAddresses(written: string[]): string[] {
  const networks = written.map((entry, index) => {
    const network = normalizedNetwork(entry)
    if (network !== undefined) return network
    throw new GatewayError('VALIDATION_ERROR', {
      message: `Item ${index + 1} of the list of addresses is not an IPv4 or IPv6 address or network.`,
      hint: 'Write each address as 203.0.113.7 or 2001:db8::7, and each network as 203.0.113.0/24 or 2001:db8::/32',
      tokens: { param: 'addresses' },
    })
  })
  return [...new Set(networks)]
}
