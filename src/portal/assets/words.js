/**
 * Words for people about a failure. The gateway's hints name routes and tokens for programs; these
 * name buttons and pages. If a code has no entry, its message is used without the tokens.
 */
const PLANS = { pro: 'Pro', business: 'Elite', enterprise: 'Elite (contract)' }

const WORDS = {
  EMAIL_IN_USE: () => 'This email already has an account. Log in instead.',
  INVALID_CREDENTIALS: () => 'Email or password is wrong.',
  INVALID_API_KEY: () => 'This key is not valid. Make a new one under API keys.',
  AUTH_REQUIRED: () => 'You are not logged in. Log in and send again.',
  INVALID_TOKEN: () => 'Your log-in has ended. Log in again.',
  TOKEN_EXPIRED: () => 'Your log-in has ended. Log in again.',
  MONTHLY_QUOTA_EXCEEDED: () => 'You have used all calls of this month. The count starts again on the 1st (UTC).',
  CONCURRENCY_LIMIT_EXCEEDED: (_, again) => `Too many of your calls are running.${again || ' Wait for one to end.'}`,
  PLAN_UPGRADE_REQUIRED: ({ upgrade_to: plan }) =>
    `This API needs ${plan ? `the ${PLANS[plan] ?? plan} plan` : 'a higher plan'}, also for test data. Account, Overview says who changes plans.`,
  ALREADY_MEMBER: () => 'This person is already a member.',
  KEY_LIMIT_REACHED: () => 'Key limit reached (50). Revoke a key first.',
  PROVIDER_KEY_REQUIRED: () => 'This API needs your own key. Save it under Account, Provider keys.',
  PROVIDER_KEY_INVALID: () => 'The source refused your key. Replace it under Account, Provider keys.',
  LOGIN_THROTTLED: (_, again) => `Too many attempts.${again}`,
  SIGNUP_THROTTLED: (_, again) => `Too many sign-ups from this address.${again}`,
  API_NOT_ENABLED: () => 'The operator has not enabled this API. Test data works if your plan includes it.',
}

/**
 * The usual messages of codes that can have other messages. If a failure has another message, it is
 * more precise, and is shown.
 */
const USUAL = {
  INVALID_CREDENTIALS: 'Email or password is wrong.',
  INVALID_API_KEY: 'The API key is not valid.',
  INVALID_TOKEN: 'The session token is not valid.',
  KEY_LIMIT_REACHED: 'Key limit reached (50).',
  PROVIDER_KEY_REQUIRED: 'This API needs a provider key of your own.',
  LOGIN_THROTTLED: 'Too many log-in attempts.',
}

/**
 * A wait in words, rounded up: `52 s`, `3 min`, `20 days`.
 *
 * @param {number} seconds
 */
export function waitWords(seconds) {
  if (seconds <= 120) return `${Math.ceil(seconds)} s`
  if (seconds <= 7_200) return `${Math.ceil(seconds / 60)} min`
  return seconds <= 172_800 ? `${Math.ceil(seconds / 3_600)} h` : `${Math.ceil(seconds / 86_400)} days`
}

/**
 * An error's words for a person.
 *
 * @param {{ code?: string; message?: string; hint?: string }} error
 */
export function forPeople({ code, message = '', hint = '' }) {
  const tokens = tokensOf(hint)
  const { limit, retry_after: wait } = tokens
  const again = wait ? ` Try again in ${waitWords(Number(wait))}.` : ''
  // A limit of a key is not a limit of the account, and the message says whose it is.
  if (tokens.limit_of) return message + again
  // Many limits are per minute, but only the calls have a limit that the plan sets.
  if (code === 'RATE_LIMIT_EXCEEDED' && limit) return `You have used your ${callsOf(limit)} of this minute.${again}`
  const say = (USUAL[code] ?? message) === message ? WORDS[code] : undefined
  if (say) return say(tokens, again)
  // What programs call a member of a request is a field of a form here.
  if (code === 'VALIDATION_ERROR') return message.replace(/^Member (\w)/, (_, letter) => letter.toUpperCase())
  const sentence = hint.replace(/(?:\s\w+=\S+)+$/, '')
  // A hint that names a route is for programs, and is not shown.
  const words = /\/v1\/|GET |POST |PUT |DELETE /.test(sentence) ? message : `${message} ${sentence}`.trim()
  if (/Retry later\.$/.test(words) && again) return words.replace(/Retry later\.$/, again.trim())
  return code === 'RATE_LIMIT_EXCEEDED' ? words + again : words
}

function tokensOf(hint) {
  return Object.fromEntries([...hint.matchAll(/\s(\w+)=(\S+)/g)].map(([, name, value]) => [name, value]))
}

const number = new Intl.NumberFormat()

/** A number of calls in words: `1 call`, `1,000 calls`. `kind` stands before the last word. */
export const callsOf = (count, kind = '') =>
  `${number.format(Number(count))} ${kind}${Number(count) === 1 ? 'call' : 'calls'}`

/**
 * The name of a caller, by the id in usage: a key, an application, or a log-in. Lists that could
 * not be read are absent.
 *
 * @param {string} id
 * @param {{
 *   keys?: { id: string; label: string | null; keyPrefix: string; lastFour: string }[]
 *   connections?: { id: string; clientName: string }[]
 * }} callers
 */
export function callerWords(id, { keys, connections }) {
  if (id === 'session') return 'Portal and sessions'
  if (id === 'other') return 'Free calls of days with many keys or APIs'
  const key = keys?.find((one) => one.id === id)
  if (key) return `${key.label ?? 'No label'} (${key.keyPrefix}…${key.lastFour})`
  const app = connections?.find((one) => one.id === id)
  if (app) return `${app.clientName} (connected app)`
  if (!keys || !connections) return 'A key or an app (names cannot be read now)'
  return 'A revoked key, a team’s key, or an app that was signed out'
}
