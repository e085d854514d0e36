/** Examples of bodies by media type. */
export type MediaExamples = Record<string, unknown>

const ADA = '9f1c3c52-7f3e-4f8e-9d43-0d3f0f7f9a11'
export const GRACE = '3b7a1e0d-2c4f-4a61-8e95-6f0d1b2c3a44'
const TEAM = 'c1d90b5e-88f3-4c27-a0b6-57e2f4a9d310'
export const MADE_AT = '2026-11-02T09:30:00.000Z'
export const USED_AT = '2026-11-21T11:58:00.000Z'
const TOKEN = 'eyJhbGciOiJIUzI1NiIsImtpZCI6IjEifQ.eyJzdWIiOiI5ZjFjM2M1MiJ9.c2lnbmF0dXJl'

export const json = (body: unknown): MediaExamples => ({ 'application/json': body })

/** Example answers of the account routes, by operation. */
export function accountExamples(baseUrl: string): Record<string, MediaExamples> {
  return { ...ACCOUNT, ...EXPORT, ...KEYS, ...TEAMS, ...PROVIDER_KEYS, ...usage(), ...connections(baseUrl) }
}

const ACCOUNT: Record<string, MediaExamples> = {
  getReadyz: json({ status: 'ready', postgres: true, redis: true, problems: [] }),
  'getReadyz 503': json({ status: 'unavailable', postgres: true, redis: false, problems: [] }),
  signup: json({ token: TOKEN, user: { id: ADA, email: 'ada@example.com' } }),
  getMe: json({ id: ADA, email: 'ada@example.com', tier: 'developer', termsAcceptedAt: null }),
  readNotices: json({ byMail: true }),
  setNotices: json({ byMail: false }),
  readVerification: json({ emailVerified: false, liveCallsNeed: null }),
  getBillingStatus: json({
    tier: 'developer',
    plan: 'Free',
    limits: { perMinute: 10, perMonth: 1_000, inFlight: 5 },
    usage: { month: '2026-11', used: 15, remaining: 985, resetsAt: '2026-12-01T00:00:00.000Z' },
  }),
}

const KEY = {
  id: '5e2f7c90-1a3b-4d8e-b6c7-90a1f2e3d4c5',
  keyPrefix: 'agw_live_',
  environment: 'live',
  label: 'My laptop',
  createdAt: MADE_AT,
  lastFour: 'x7Qp',
  lastUsedAt: USED_AT,
  expiresAt: null,
  teamId: null,
  mayWrite: false,
  apis: ['weather', 'currency'],
  addresses: ['203.0.113.0/24', '2001:db8::7'],
  limits: { perMinute: 5, perMonth: 500, inFlight: null },
  replacedBy: null,
  createdBy: ADA,
}

const KEYS: Record<string, MediaExamples> = {
  createKey: json({
    key: 'agw_live_0123456789abcdefghijABCDEFGHIJ0123456789abc0Gx7Qp',
    id: KEY.id,
    keyPrefix: KEY.keyPrefix,
  }),
  listKeys: json({ keys: [KEY] }),
  updateKey: json({ ...KEY, label: 'My other laptop' }),
  rotateKey: json({
    key: 'agw_live_0123456789abcdefghijABCDEFGHIJ0123456789abc0Gx7Qp',
    id: '0d9c8b7a-6f5e-4d3c-8b2a-1f0e9d8c7b6a',
    keyPrefix: KEY.keyPrefix,
    previous: { id: KEY.id, expiresAt: '2026-11-22T11:58:00.000Z' },
  }),
}

const EXPORT: Record<string, MediaExamples> = {
  exportAccount: json({
    exportedAt: USED_AT,
    profile: { id: ADA, email: 'ada@example.com', tier: 'developer', hasPassword: true, createdAt: MADE_AT },
    sessions: [{ createdAt: MADE_AT, expiresAt: '2026-11-03T09:30:00.000Z', revokedAt: null }],
    identities: [],
    keys: [{ ...KEY, revokedAt: null }],
    connections: [],
    teams: [],
    providerKeys: [],
    usage: [{ day: '2026-11-21', key: KEY.id, api: 'weather', status: 200, mode: 'live', calls: 15 }],
    refusals: [],
    calls: [],
  }),
}

const team = { id: TEAM, name: 'Weather team', ownerId: ADA, createdAt: MADE_AT, updatedAt: MADE_AT }
const ada = {
  ...{ id: ADA, userId: ADA, email: 'ada@example.com', role: 'owner', joinedAt: MADE_AT, emailVerified: false },
}
const grace = { ...ada, id: GRACE, userId: GRACE, email: 'grace@example.com', role: 'member', joinedAt: USED_AT }
const teamKey = {
  ...KEY,
  id: 'd7b1c4a2-6e5f-4f90-8a3b-2c1d0e9f8a76',
  label: 'Dashboard',
  lastFour: 'K2wz',
  teamId: TEAM,
}

const TEAMS: Record<string, MediaExamples> = {
  listTeams: json({ teams: [team] }),
  createTeam: json({ team }),
  getTeam: json({ team, members: [ada, grace], keys: [teamKey], yourRole: 'owner' }),
  updateTeam: json({ team: { ...team, updatedAt: USED_AT } }),
  createTeamMember: json({ member: grace }),
  updateTeamMember: json({ member: { ...grace, role: 'admin' } }),
  transferTeam: json({ team: { ...team, ownerId: GRACE, updatedAt: USED_AT } }),
}

const saved = {
  apiSlug: 'news',
  displayName: 'News',
  accessMode: 'byok_available',
  status: 'unvalidated',
  maskedKey: '********c0de',
  savedAt: USED_AT,
  lastValidatedAt: null,
  validationFailure: null,
}
const validated = { ...saved, status: 'valid', lastValidatedAt: '2026-11-21T11:58:01.000Z' }

const PROVIDER_KEYS: Record<string, MediaExamples> = {
  putProviderKey: json(saved),
  listProviderKeys: json({ providerKeys: [validated] }),
  validateProviderKey: json(validated),
}

function usage(): Record<string, MediaExamples> {
  const row = { day: '2026-11-21', api: 'weather', key: KEY.id }
  const rows = [
    { calls: 15, ...row, status: 200 },
    { calls: 2, ...row, status: 429 },
  ]
  const span = { from: '2026-10-23', to: '2026-11-21', groupBy: ['day', 'api', 'key', 'status'] }
  return { getUsage: json({ ...span, total: 17, usage: rows }) }
}

function connections(baseUrl: string): Record<string, MediaExamples> {
  const connection = {
    id: 'a4c2e860-93d1-4b7f-8e05-1f6d7c8b9a02',
    clientId: 'https://agent.example.com/oauth/client.json',
    clientName: 'Example agent',
    redirectHost: 'agent.example.com',
    resource: `${baseUrl}/mcp`,
    apis: ['weather', 'currency'],
    addresses: null,
    limits: { perMinute: null, perMonth: 500, inFlight: null },
    mayWrite: false,
    perMonth: 500,
    createdAt: MADE_AT,
    lastUsedAt: USED_AT,
  }
  return { listConnections: json({ connections: [connection] }), updateConnection: json(connection) }
}
