import Type, { type Static } from 'typebox'
import { nullable } from '../catalog/json.ts'
import type { ApiKey } from '../db/schema.ts'
import { keyPrefix } from './api-key.ts'
import { allowedAnswerMembers, toAllowedAnswer } from './credential-limits.ts'

/** Live keys that an account may have, including the keys of its teams. */
export const KEYS_MAX = 50

/** A key as listings show it: never the key itself. */
export const KeyAnswer = Type.Object(
  {
    id: Type.String({ format: 'uuid', description: 'Id of the key' }),
    keyPrefix: Type.String({ description: 'Start of the key: agw_live_ or agw_test_' }),
    environment: Type.Enum(['live', 'test'], {
      description: 'live reaches the real APIs; test is answered from recorded examples',
    }),
    label: nullable(Type.String({ description: 'Your name for the key' })),
    createdAt: Type.String({ format: 'date-time', description: 'When the key was created' }),
    lastFour: Type.String({ description: 'The last four characters of the key' }),
    lastUsedAt: nullable(
      Type.String({ format: 'date-time', description: 'When the key was last used, to the minute' }),
    ),
    expiresAt: nullable(
      Type.String({ format: 'date-time', description: 'Time from which the gateway refuses the key; null: never' }),
    ),
    teamId: nullable(
      Type.String({ format: 'uuid', description: 'Id of the team that the key belongs to; null: your own key' }),
    ),
    ...allowedAnswerMembers,
    replacedBy: nullable(
      Type.String({
        format: 'uuid',
        description: 'Id of the key that replaced this key, which works until expiresAt; null: the key was not rotated',
      }),
    ),
    createdBy: nullable(
      Type.String({ format: 'uuid', description: 'Id of the account that created the key; null: not known' }),
    ),
  },
  { title: 'ApiKey' },
)

/** A key that was just made. */
export const CreatedKey = Type.Object({
  key: Type.String({ description: 'The full key. The gateway shows it only now' }),
  id: Type.String({ format: 'uuid', description: 'Id of the key' }),
  keyPrefix: Type.String({ description: 'Start of the key: agw_live_ or agw_test_' }),
})

export function toKeyAnswer(key: ApiKey): Static<typeof KeyAnswer> {
  return {
    id: key.id,
    keyPrefix: keyPrefix(key.environment),
    environment: key.environment,
    label: key.label,
    createdAt: key.created_at.toISOString(),
    lastFour: key.last_four,
    lastUsedAt: key.last_used_at?.toISOString() ?? null,
    expiresAt: key.expires_at?.toISOString() ?? null,
    teamId: key.team_id,
    ...toAllowedAnswer(key),
    replacedBy: key.replaced_by,
    createdBy: key.created_by,
  }
}
