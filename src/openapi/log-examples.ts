/** An entry of the log of calls. */
const CALL = {
  ...{ id: 'call_0b5b8d0c6f3a4a5e9f1d2c3b4a596871', requestId: 'req_5d0f1c8a7b6e4d3c9a2b1f0e8d7c6b5a' },
  ...{ at: '2026-11-21T11:58:00.123Z', api: 'weather', endpoint: '/current', status: 200, code: null, cause: null },
  key: { id: '4a5f7f0e-6f0e-4a38-9a53-0f6c3a1d2b4c', label: 'agent', lastFour: 'x7Qm', application: null },
  ...{ mode: 'live', via: 'call', tool: null, attempts: 1, quotedMs: 0, admissionMs: 2.1, queueMs: 1.4, permitMs: 0.6 },
  ...{ upstreamMs: 84.3, totalMs: 89.2, cache: 'miss', bytes: 118 },
} as const

/** Example answers of the routes of the log of calls, by operation and media type. */
export const LOGS = {
  listLoggedCalls: {
    'application/json': { calls: [CALL] },
    'application/x-ndjson': `${JSON.stringify(CALL)}\n${JSON.stringify({ done: true })}\n`,
  },
  findLoggedCalls: { 'application/json': { call: CALL } },
}
