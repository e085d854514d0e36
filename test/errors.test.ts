import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { it } from 'node:test'
import { KEYS_MAX } from '../src/accounts/key-schema.ts'
import { TEAMS_MAX } from '../src/accounts/team-schema.ts'
import { ERRORS, GatewayError } from '../src/errors.ts'
import { CONNECTIONS_MAX } from '../src/oauth/consent.ts'
import { CALL_CODES } from '../src/openapi/error-responses.ts'

const ROOT = resolve(import.meta.dirname, '..')

it('every code of the error table is used by an answer', () => {
  const files = globSync('{src,workers}/**/*.ts', { cwd: ROOT }).filter(
    (file) => file !== join('src', 'errors.ts') && !file.startsWith(join('src', 'openapi')),
  )
  const source = files.map((file) => readFileSync(join(ROOT, file), 'utf8')).join('\n')
  assert.deepEqual(
    Object.keys(ERRORS).filter((code) => !source.includes(`'${code}'`)),
    [],
  )
})

it('a code that only account routes use is not listed as a failure of calls in /openapi.json', () => {
  const folders = '{routes,identity,oauth,console,operator,portal,mcp,docs,openapi}'
  const outsideCalls = new Set(globSync(`src/${folders}/**/*.ts`, { cwd: ROOT }))
  const source = globSync('{src,workers}/**/*.ts', { cwd: ROOT })
    .filter((file) => file !== join('src', 'errors.ts') && !outsideCalls.has(file))
    .map((file) => readFileSync(join(ROOT, file), 'utf8'))
    .join('\n')
  assert.deepEqual(
    CALL_CODES.filter((code) => !source.includes(`'${code}'`)),
    [],
    'add these codes to NOT_OF_CALLS of src/openapi/error-responses.ts',
  )
})

it('a message that names a limit of the account names the number that the code holds', () => {
  const limits = {
    KEY_LIMIT_REACHED: KEYS_MAX,
    TEAM_LIMIT_REACHED: TEAMS_MAX,
    CONNECTION_LIMIT_REACHED: CONNECTIONS_MAX,
  } as const
  for (const [code, max] of Object.entries(limits)) {
    assert.match(ERRORS[code as keyof typeof limits].message, new RegExp(` \\(${max}\\)\\.$`))
  }
})

it('an internal error has its stack, a refusal has none, and errors after it have theirs', () => {
  assert.match(new GatewayError('INTERNAL_ERROR').stack ?? '', /errors\.test\.ts/)
  assert.doesNotMatch(new GatewayError('RATE_LIMIT_EXCEEDED').stack ?? '', /errors\.test\.ts/)
  assert.match(new Error('another').stack ?? '', /errors\.test\.ts/)
})
