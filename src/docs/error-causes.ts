import { spanWords } from '../catalog/limit-words.ts'
import type { ErrorCode } from '../errors.ts'
import { HALF_OPEN_PAUSE_MS_MAX, HALF_OPEN_PAUSE_MS_MIN } from '../health/health-thresholds.ts'

/** The usual cause of a failure and its fix, in more detail than the hint. */
export interface ErrorHelp {
  causes: string[]
  fix: string
}

const help = (fix: string, ...causes: string[]): ErrorHelp => ({ causes, fix })

const DISABLED = 'The operator disabled the account: ask the operator.'

const BACK_OFF = 'Wait for Retry-After, then send the call again; back off further if it fails again.'

/** Help for each code. A new error code needs a line here. */
export const ERROR_HELP: Record<ErrorCode, ErrorHelp> = {
  VALIDATION_ERROR: help(
    'Compare the body and the query with the reference of the route; the message names the field.',
    'A required field is missing.',
    'The body has a field that the route does not know. The message names this field, and the nearest field that the route knows.',
    'A field has another type, or is longer or shorter than allowed.',
  ),
  INVALID_JSON: help(
    'Serialise the body with a JSON library and send Content-Type: application/json.',
    'The body was cut off or built by joining texts.',
    'A member appears twice in one object.',
  ),
  INVALID_ENCODING: help(
    'Encode texts as UTF-8 and values in the address with encodeURIComponent or urlencode.',
    'Bytes of another encoding, such as Latin-1.',
    'A NUL character or half of a surrogate pair.',
  ),
  INVALID_PARAMETER: help(
    'The message names the parameter and what it must be; the page of the API lists all parameters.',
    'A required parameter is missing, empty or misspelled: then the message names what was sent in its place.',
    'A value is out of its bounds or not one of the options.',
    'A parameter is given twice, or its name is reserved.',
  ),
  EMAIL_IN_USE: help(
    'Log in, or sign up with another address.',
    'The address has an account already.',
    'An earlier sign-up got a 503 but succeeded. Log in with the password of that sign-up.',
  ),
  PROVIDER_KEY_REQUIRED: help(
    'Save your key under Account, Provider keys, or with PUT /v1/provider-keys/{apiSlug}.',
    'The source gives data only to callers with a key, and the operator has set no key.',
  ),
  PROVIDER_KEY_INVALID: help(
    'Check the key at the provider, then save the correct key.',
    'The key was revoked, has expired or was copied incompletely.',
  ),
  UPSTREAM_REJECTED: help(
    'Compare the values with the page of the API, and change them.',
    'The values are well-formed, but the source does not accept them together.',
    'A parameter that the catalog does not declare was forwarded and refused.',
  ),
  AUTH_REQUIRED: help(
    'Send X-Api-Key: agw_… on calls, or Authorization: Bearer with the session token on account routes.',
    'No credential was sent.',
    'An API key was sent to an account route, which takes only session tokens.',
    'A proxy or a redirect dropped the header.',
  ),
  INVALID_CREDENTIALS: help(
    'Check email and password; email addresses are compared in any letter case.',
    'A typing error in email or password.',
    'A change of the password with a wrong current password.',
    DISABLED,
  ),
  INVALID_API_KEY: help(
    'Make a new key and put it in the place of the old key.',
    'The key was revoked or has expired.',
    'The key was copied with a blank, a quote or a part missing, or the word Bearer stands before it in X-Api-Key.',
    'The placeholder YOUR_API_KEY was sent.',
    DISABLED,
  ),
  INVALID_TOKEN: help(
    'Log in again and use the new token; an application refreshes its access token at POST /oauth/token.',
    'A log-out or a new password ended the session.',
    'The access token of an application has expired, or its connection was ended.',
    'The Authorization header lacks the word Bearer, or has another scheme.',
    'An API key or an access token was sent to an account route, which takes only session tokens.',
    'A request to the operator API had another token than the value of OPERATOR_TOKEN.',
    'The account keeps its 20 newest sessions, so one more log-in ends the oldest session.',
    DISABLED,
  ),
  TOKEN_EXPIRED: help('Log in again; a session lasts at most 24 hours.', 'The session is older than 24 hours.'),
  PLAN_UPGRADE_REQUIRED: help(
    'Ask the operator for the plan that upgrade_to names. Test keys need this plan too.',
    'The API needs a higher plan than the account has.',
  ),
  FORBIDDEN: help(
    'The message says what is not permitted, and the hint who can permit it.',
    'The role in the team does not permit the action.',
    'The operator’s rules for sign-up: it is closed, or live calls wait until the email address is verified or the operator approves the account.',
    'The route is for pages of the portal, or the gateway sends no mail.',
  ),
  KEY_API_FORBIDDEN: help(
    'Call one of the APIs that the hint lists, or connect the application anew and allow more.',
    'An application signed in, and its user let it call certain APIs only.',
    'The key has a list of APIs, and this API is not in it.',
  ),
  KEY_ADDRESS_FORBIDDEN: help(
    'Compare the address in the hint, which the gateway saw, with the addresses of the key (API keys, Change). Add the address, or remove the list.',
    'The key or the application has a list of addresses, and the request came from an address that is not in it.',
    'The program moved, has no fixed address, or reached the gateway by IPv6 while the list has only its IPv4 address.',
    'The address is the address of a proxy in front of the gateway. The operator then has to name this proxy in TRUST_PROXY.',
    'Somebody else has the key. Rotate it.',
  ),
  CONNECTION_NOT_FOUND: help(
    'List the connected applications with GET /v1/connections.',
    'The connection has ended already, or is of another account.',
  ),
  CONNECTION_LIMIT_REACHED: help(
    'End connections that nobody uses under Account, Connected apps.',
    'An account has at most 100 connected applications.',
  ),
  REGISTRATION_THROTTLED: help(
    'Wait for Retry-After. Register once and keep the client id.',
    'An application registers itself anew with each start.',
  ),
  OWNER_IMMUTABLE: help(
    'Choose another member, or make another member the owner first.',
    'The owner of a team was to be removed or given another role.',
  ),
  NOT_FOUND: help('Compare method and path with the reference.', 'A typing error in the path, or a missing /v1.'),
  API_NOT_FOUND: help(
    'Use the name that the message suggests, or search GET /v1/catalog?q= for it.',
    'A typing error in the API’s name.',
    'The API was removed from the catalog, or MCP or the catalog was asked for an API that the operator switched off.',
  ),
  ENDPOINT_NOT_FOUND: help(
    'Take one of the endpoints that the message lists.',
    'A typing error, or an endpoint of another API.',
  ),
  KEY_NOT_FOUND: help(
    'List the keys and use an id of the list.',
    'The key was revoked before.',
    'The key belongs to another account.',
  ),
  TEAM_NOT_FOUND: help('List your teams and use an id of the list.', 'You are not a member, or no longer a member.'),
  MEMBER_NOT_FOUND: help('Read the team and use an id of its members.', 'The member left or was removed.'),
  USER_NOT_FOUND: help(
    'Ask the person to sign up, if sign-up is open, and to open the link of the mail, if a mail comes. Then add the person.',
    'Nobody signed up with this address.',
    'The gateway sends mail, and the person has not verified the email address yet.',
  ),
  CALL_NOT_FOUND: help(
    'Fetch results within 15 minutes, with the credential that made the call.',
    'The result is older than 15 minutes.',
    'The call was not asynchronous, or belongs to another account.',
    'An application, a team’s key, or a key with its own limits or lists asked for a call that it did not make.',
  ),
  UPSTREAM_NOT_FOUND: help(
    'Treat this as an answer. Do not retry, because the source has nothing under these values.',
    'A name, code or id that the source does not know.',
  ),
  METHOD_NOT_ALLOWED: help('Use a method that the Allow header lists.', 'GET instead of POST, or the reverse.'),
  REQUEST_TIMEOUT: help('Send header and body at once.', 'The connection is very slow or stopped midway.'),
  ALREADY_MEMBER: help('Change the role instead.', 'The person was added before.'),
  TEAM_LIMIT_REACHED: help(
    'Delete teams that nobody uses with DELETE /v1/teams/{id}.',
    'An account owns at most 20 teams.',
    'An account that owns 10 or more receives no other team by transfer.',
  ),
  KEY_LIMIT_REACHED: help(
    'Revoke keys that nobody uses; the list says when each was used last.',
    'The account has 50 keys that are neither revoked nor expired: live and test keys, including keys of its teams.',
    'Other members have made 25 keys in the teams that the account owns.',
    'A transfer was to a member whose own keys and the keys of the team are more than 50 together.',
  ),
  KEY_ALREADY_ROTATED: help(
    'Look for the key in replacedBy, and use, rotate or change that key.',
    'The key was rotated before, perhaps by a request at the same time or by another admin of the team.',
    'A key in its overlap ends when the rotation said: its expiry cannot be changed, but it can be revoked.',
  ),
  TEAM_OWNER: help(
    'Hand each team over with POST /v1/teams/{id}/transfer, or delete it with DELETE /v1/teams/{id}.',
    'The account is to be deleted, but owns teams. The message names the teams.',
  ),
  CALL_CANCELLED: help(
    'Make a new call.',
    'DELETE /v1/calls/{id} cancelled the call.',
    'The operator disabled the account, or took back its approval, while the call waited or ran.',
  ),
  CALL_ENDED: help('Fetch the result with GET /v1/calls/{id}.', 'The call had ended before it was to be cancelled.'),
  PAYLOAD_TOO_LARGE: help(
    'Send less, or several requests.',
    'The body is larger than 16 KiB; of a call than 64 KiB, of a batch or of messages to `/mcp` than 512 KiB, of a sign-up or log-in than 4 KiB, of a change of the password than 8 KiB.',
    'The body came in more than 2,000 chunks or packets. Larger chunks, or `Content-Length`, help.',
  ),
  URI_TOO_LONG: help(
    'Send the parameters as JSON in a POST to the same address.',
    'The address is longer than 8 KiB, or the address of a sign-in is longer than 4 KiB.',
  ),
  UNSUPPORTED_MEDIA_TYPE: help(
    'Send Content-Type: application/json, not compressed.',
    'A form encoding, or Content-Encoding: gzip.',
  ),
  RATE_LIMIT_EXCEEDED: help(
    'Wait for Retry-After; the message says what was too much. Spread calls evenly, or ask for a higher plan.',
    'More calls in 60 seconds than the plan has; all keys and sessions of an account count together.',
    'Many unknown API keys, connections, or requests without an account from one address.',
    'More requests of an account in a second than an agent or a page needs: of MCP, for results, or to account routes.',
    'Many provider keys saved or checked, or members added to teams, in a minute.',
    'More calls refused in a second than a client that reads the errors makes.',
    'More answers that were not read, or bodies that have not arrived, than one address or account may have.',
    'More than 200 API keys and connections of applications made in a day.',
    'More than 3 mails in an hour to verify an email address.',
  ),
  MONTHLY_QUOTA_EXCEEDED: help(
    'Wait for the first of the next month (UTC), or ask for a higher plan. Test keys have no monthly quota.',
    'The calls of the month are used up.',
  ),
  CONCURRENCY_LIMIT_EXCEEDED: help(
    'Send the next call when one has ended, or use fewer parallel workers.',
    'More calls at once than the plan has.',
    'Asynchronous calls that have not ended count too. Retry-After is when one of the calls is expected to end, by its forecast wait and the time that the API usually takes.',
  ),
  RESULT_STORAGE_FULL: help(
    'Wait for Retry-After: results end after 15 minutes. Ask for less at once, or call without Prefer, which keeps nothing.',
    'Large results of asynchronous calls in the last 15 minutes; the guide to asynchronous calls says how much each plan keeps.',
    'A call that ran, but whose result no longer fitted, gets the same answer.',
  ),
  LOGIN_THROTTLED: help(
    'Wait for Retry-After. A session lasts a day: keep its token instead of logging in for each request.',
    'Many wrong passwords from one address.',
    'More than ten log-ins to one account in a minute.',
    'So many log-ins and sign-ups are under way on the node that another would wait for seconds.',
  ),
  SIGNUP_THROTTLED: help('Wait for Retry-After.', 'Many sign-ups from one address.'),
  HEADERS_TOO_LARGE: help('Send fewer or smaller header fields.', 'Large cookies or tokens of other sites.'),
  INTERNAL_ERROR: help(
    'Retry once. If it stays, tell the operator the X-Request-Id of the answer.',
    'A fault of the gateway; nothing in the request explains it.',
  ),
  UPSTREAM_ERROR: help(
    BACK_OFF,
    'The source answered with a server error, or the connection to it broke.',
    'The source has moved the address, or refuses the gateway: a 404 that is not its own “not found”, or a 403 to a request without a key. A retry does not help then, and the hint says so.',
    'The source sent 100 Continue although the gateway had not asked for it, which ends the connection.',
    'Retries within the call’s time failed as well.',
  ),
  UPSTREAM_TIMEOUT: help(BACK_OFF, 'The source accepted the request and did not answer in time.'),
  OUTCOME_UNKNOWN: help(
    'Read the thing that the call was to change, and send the call again only if the change is missing.',
    'An endpoint that changes something was called. The source got the request, but did not answer or answered with a failure of its own, or the worker that had the call was lost.',
  ),
  UPSTREAM_INVALID_RESPONSE: help(
    BACK_OFF,
    'The source answered with HTML, cut-off JSON or another shape than it used to.',
  ),
  UPSTREAM_TOO_LARGE: help(
    'Ask for fewer results or a shorter span.',
    'The answer is larger than the gateway accepts.',
  ),
  UPSTREAM_REDIRECT_BLOCKED: help('Tell the operator: the source has moved.', 'The source moved the address.'),
  UPSTREAM_AUTH_FAILED: help(
    'Tell the operator: the source refuses the gateway.',
    'The operator’s key has expired or was revoked.',
    'The source takes no key, and refuses the address or the User-Agent of the gateway.',
  ),
  UPSTREAM_RATE_LIMITED: help(BACK_OFF, 'The source limits the gateway’s address in spite of the caps that are held.'),
  UPSTREAM_UNAVAILABLE: help(
    'Wait for Retry-After; the page of the API says since when the source is down.',
    `The source failed several times in a row: calls are refused at once, and the gateway tries the source again after a pause that grows from ${spanWords(HALF_OPEN_PAUSE_MS_MIN / 1_000)} to ${spanWords(HALF_OPEN_PAUSE_MS_MAX / 1_000)}.`,
  ),
  UPSTREAM_CAP_EXHAUSTED: help(
    'Wait for Retry-After, or send the call with Prefer: respond-async, which may wait ten minutes.',
    'All callers together used what the source allows, and the next slot comes too late for this call; Retry-After is exact.',
    'Your account has used its fair share while other accounts call too, as the message says; Retry-After is an estimate.',
  ),
  API_NOT_ENABLED: help(
    'Ask the operator. Test keys work if the plan includes the API.',
    'The source needs a key that the operator has not set.',
    'The operator switched the API off.',
    'No worker that runs now has loaded the API; the message says so.',
  ),
  API_PAUSED: help(
    'Wait until the operator resumes the API. Test keys are refused too.',
    'The operator paused the API, for instance during an incident at the source.',
  ),
  OVERLOADED: help(
    BACK_OFF,
    'More calls wait for the source than can be served in time, because the source answers slowly at the moment.',
    'Redis of the gateway is full, or cannot write to its disk.',
    'Answers to the account, or kept results, have no room at the moment.',
  ),
  DEADLINE_EXCEEDED: help(
    'Send the call again, with Prefer: respond-async if the call may take long.',
    'The call waited in the queue until its time was over.',
  ),
  DEPENDENCY_UNAVAILABLE: help(
    BACK_OFF,
    'Redis or Postgres of the gateway does not answer.',
    'A mail to verify an email address was to be sent, and the mail server does not answer or does not take the mail; the message says which.',
  ),
  DRAINING: help('Send the request again: another node answers it.', 'The node is being restarted.'),
}
