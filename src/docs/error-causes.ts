import type { ErrorCode } from '../errors.ts'
import { type ErrorHelp, FAILURE_HELP, help } from './failure-causes.ts'

const DISABLED = 'The operator disabled the account: ask the operator.'

/** Help for each code. A new error code needs a line here, or in `FAILURE_HELP`. */
export const ERROR_HELP: Record<ErrorCode, ErrorHelp> = {
  VALIDATION_ERROR: help(
    'Compare the body and the query with the reference of the route; the message names the field.',
    'A required field is missing.',
    'The body has a field that the route does not have. The message names this field, and the field with the most similar name.',
    'A field has the wrong type, or is longer or shorter than allowed.',
  ),
  INVALID_JSON: help(
    'Serialise the body with a JSON library and send Content-Type: application/json.',
    'The body was cut off, or the program built the JSON by joining strings.',
    'A member appears twice in one object.',
  ),
  INVALID_ENCODING: help(
    'Encode texts as UTF-8 and values in the address with encodeURIComponent or urlencode.',
    'The request contains bytes of another encoding, such as Latin-1.',
    'The request contains a NUL character or half of a surrogate pair.',
  ),
  INVALID_PARAMETER: help(
    'The message names the parameter and what it must be; the page of the API lists all parameters.',
    'A required parameter is missing, empty or misspelled. If it is misspelled, the message names the parameter that was sent instead.',
    'A value is outside its bounds or is not among the options. This includes the headers X-Gateway-Mode, X-Gateway-Response and X-Gateway-Scenario.',
    'A parameter is given twice, or its name is reserved.',
  ),
  EMAIL_IN_USE: help(
    'Log in, or sign up with another address.',
    'An account with this address exists already.',
    'An earlier sign-up got a 503 but succeeded. Log in with the password of that sign-up.',
  ),
  PROVIDER_KEY_REQUIRED: help(
    'Save your key under Account, Provider keys, or with PUT /v1/provider-keys/{apiSlug}.',
    'The source gives data only to callers with a key, and the operator has set no key.',
    'The provider key was deleted or replaced while the call waited. Make a new call.',
  ),
  PROVIDER_KEY_INVALID: help(
    'Check the key at the provider, and save the correct key.',
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
    'An API key was sent to an account route, which accepts only session tokens.',
    'A proxy or a redirect dropped the header.',
  ),
  INVALID_CREDENTIALS: help(
    'Check email and password. The letter case of the email address does not matter.',
    'The email address or the password is misspelled.',
    'A change of the password had the wrong current password.',
    DISABLED,
  ),
  INVALID_API_KEY: help(
    'Create a new key and use it instead of the old key.',
    'The key was revoked or has expired.',
    'The key was copied incompletely or with a space or a quote, or X-Api-Key contains the word Bearer before the key.',
    'The placeholder YOUR_API_KEY was sent.',
    DISABLED,
  ),
  INVALID_TOKEN: help(
    'Log in again and use the new token; an application refreshes its access token at POST /oauth/token.',
    'A log-out or a new password ended the session.',
    'The access token of an application has expired, or the user ended the connection.',
    'The Authorization header does not begin with the word Bearer.',
    'An API key or an access token was sent to an account route, which accepts only session tokens.',
    'The token of a request to the operator API is not the value of OPERATOR_TOKEN.',
    'The account keeps its 20 newest sessions, so one more log-in ends the oldest session.',
    DISABLED,
  ),
  TOKEN_EXPIRED: help('Log in again; a session lasts at most 24 hours.', 'The session is older than 24 hours.'),
  PLAN_UPGRADE_REQUIRED: help(
    'Ask the operator for the plan that upgrade_to names. Test keys need this plan too.',
    'The API needs a higher plan than the account has.',
  ),
  FORBIDDEN: help(
    'The message names the action that is not permitted, and the hint names who can permit it.',
    'The role in the team does not permit the action.',
    'The operator has closed sign-up, or the gateway accepts live calls only after the email address is verified or the operator has approved the account.',
    'The route is only for pages of the portal, or the gateway does not send mail.',
  ),
  KEY_API_FORBIDDEN: help(
    'Call an API that the hint lists, or connect the application again and allow more APIs.',
    'The user of the application allowed it to call only certain APIs.',
    'The key has a list of APIs, and this API is not in the list.',
  ),
  KEY_ADDRESS_FORBIDDEN: help(
    'Compare the address in the hint, which the gateway saw, with the addresses of the key (API keys, Change). Add the address, or remove the list.',
    'The key or the application has a list of addresses, and the request came from an address that is not in the list.',
    'The address of the program changed, or the program reached the gateway over IPv6 and the list has only its IPv4 address.',
    'The gateway saw the address of a proxy in front of it. The operator must add this proxy to TRUST_PROXY.',
    'Another person has the key: rotate the key.',
  ),
  CONNECTION_NOT_FOUND: help(
    'List the connected applications with GET /v1/connections.',
    'The connection has ended already, or belongs to another account.',
  ),
  CONNECTION_LIMIT_REACHED: help(
    'End connections that nobody uses under Account, Connected apps.',
    'An account has at most 100 connected applications.',
  ),
  REGISTRATION_THROTTLED: help(
    'Wait for Retry-After. Register once and keep the client id.',
    'An application registers at each start.',
  ),
  OWNER_IMMUTABLE: help(
    'Choose another member, or make another member the owner first.',
    'The request removes the owner of a team, or gives the owner another role.',
  ),
  NOT_FOUND: help('Compare method and path with the reference.', 'The path is misspelled, or /v1 is missing.'),
  API_NOT_FOUND: help(
    'Use the name that the message suggests, or search GET /v1/catalog?q= for it.',
    'The name of the API has a typing error.',
    'The API was removed from the catalog, or the request to MCP or to the catalog names an API that the operator has disabled.',
  ),
  ENDPOINT_NOT_FOUND: help(
    'Use an endpoint that the message lists.',
    'The path is misspelled, or belongs to another API.',
  ),
  KEY_NOT_FOUND: help(
    'List the keys and use an id of the list.',
    'The key was revoked before.',
    'The key belongs to another account.',
  ),
  TEAM_NOT_FOUND: help('List your teams and use an id of the list.', 'You are not a member, or no longer a member.'),
  MEMBER_NOT_FOUND: help('Read the team and use an id of its members.', 'The member left the team or was removed.'),
  USER_NOT_FOUND: help(
    'Ask the person to sign up, if sign-up is open, and to open the link in the mail, if the gateway sends one. Then add the person.',
    'Nobody signed up with this address.',
    'The gateway sends mail, and the person has not verified the email address yet.',
  ),
  CALL_NOT_FOUND: help(
    'Fetch results within 15 minutes, with the credential that made the call.',
    'The result is older than 15 minutes.',
    'The call was not asynchronous, or belongs to another account.',
    'An application, a team’s key, or a key with its own limits or lists requested a call that it did not make.',
  ),
  UPSTREAM_NOT_FOUND: help(
    'Treat this as an answer. Do not retry, because the source has no data for these values.',
    'The source does not have the name, code or id.',
  ),
  METHOD_NOT_ALLOWED: help('Use a method of the Allow header.', 'The request used GET for POST, or POST for GET.'),
  REQUEST_TIMEOUT: help('Send header and body without pauses.', 'The client sends slowly, or stopped sending.'),
  ALREADY_MEMBER: help('Change the role instead.', 'The person was added before.'),
  TEAM_LIMIT_REACHED: help(
    'Delete teams that nobody uses with DELETE /v1/teams/{id}.',
    'An account owns at most 20 teams.',
    'An account that owns 10 teams or more cannot receive another team by transfer.',
  ),
  KEY_LIMIT_REACHED: help(
    'Revoke keys that nobody uses; the list shows when each key was last used.',
    'The account has 50 keys that are neither revoked nor expired: live and test keys, including keys of its teams.',
    'Other members have made 25 keys in the teams that the account owns.',
    'The new owner of a transferred team would have more than 50 keys, including the keys of the team.',
  ),
  KEY_ALREADY_ROTATED: help(
    'Look for the key in replacedBy, and use, rotate or change that key.',
    'The key was rotated before, perhaps by a request at the same time or by another admin of the team.',
    'The rotation set the time at which the old key ends. You cannot change this time, but you can revoke the old key.',
  ),
  TEAM_OWNER: help(
    'Hand each team over with POST /v1/teams/{id}/transfer, or delete it with DELETE /v1/teams/{id}.',
    'The request deletes an account that owns teams. The message names the teams.',
  ),
  CALL_CANCELLED: help(
    'Make a new call.',
    'DELETE /v1/calls/{id} cancelled the call.',
    'While the call waited, its key, its connection or its log-in ended, or may no longer call the endpoint.',
    'The operator disabled the account, or withdrew its approval, while the call waited or ran.',
  ),
  CALL_ENDED: help('Fetch the result with GET /v1/calls/{id}.', 'The call ended before the request to cancel.'),
  PAYLOAD_TOO_LARGE: help(
    'Send less data, or several requests.',
    'The body is larger than allowed: 64 KiB for a call, 512 KiB for a batch and for messages to `/mcp`, 4 KiB for a sign-up or log-in, 8 KiB for a change of the password, and 16 KiB for all other requests.',
    'The body came in more than 2,000 chunks or packets. Send larger chunks, or `Content-Length`.',
  ),
  URI_TOO_LONG: help(
    'Send the parameters as JSON in a POST to the same address.',
    'The address is longer than 8 KiB, or the address of a sign-in is longer than 4 KiB.',
  ),
  UNSUPPORTED_MEDIA_TYPE: help(
    'Send Content-Type: application/json, not compressed.',
    'The body is encoded as a form, or compressed (Content-Encoding: gzip).',
  ),
  RATE_LIMIT_EXCEEDED: help(
    'Wait for Retry-After; the message names the limit. Spread calls evenly, or ask for a higher plan.',
    'The account made more calls in 60 seconds than its plan allows. All keys and sessions of an account count together.',
    'Too many unknown API keys, connections, or requests without an account came from one address.',
    'The account sent too many other requests in a second: MCP messages, requests for results, or requests to account routes.',
    'The account saved or validated too many provider keys, or added too many members to teams, in a minute.',
    'The gateway refused too many calls of the account in a second. A client should read the errors and wait.',
    'Too many answers to one address or account were not read, or too many of its bodies have not arrived completely.',
    'The account created more than 200 API keys and connections of applications in a day.',
    'The account requested more than 3 mails in an hour to verify its email address.',
  ),
  MONTHLY_QUOTA_EXCEEDED: help(
    'Wait for the first day of the next month (UTC), or ask for a higher plan. Test keys have no monthly quota.',
    'The calls of the month are used up.',
  ),
  CONCURRENCY_LIMIT_EXCEEDED: help(
    'Send the next call when one has ended, or use fewer parallel workers.',
    'The account has more calls at the same time than its plan allows.',
    'Asynchronous calls that have not ended count too. Retry-After is the time until a call of the account is expected to end, or until no other limit refuses the call.',
  ),
  RESULT_STORAGE_FULL: help(
    'Wait for Retry-After: the gateway deletes results after 15 minutes. Request less data, or call without Prefer: the gateway then stores no result.',
    'The results of asynchronous calls in the last 15 minutes are larger than the plan allows; the guide to asynchronous calls has the limits.',
    'The call ran, but there was no room for its result.',
  ),
  LOGIN_THROTTLED: help(
    'Wait for Retry-After. A session lasts a day: keep its token instead of logging in for each request.',
    'Too many wrong passwords came from one address.',
    'There were more than ten log-ins to one account in a minute.',
    'The node has so many log-ins and sign-ups in progress that another would wait for seconds.',
  ),
  SIGNUP_THROTTLED: help('Wait for Retry-After.', 'Too many sign-ups came from one address.'),
  HEADERS_TOO_LARGE: help('Send fewer or smaller header fields.', 'The client sent large cookies or tokens.'),
  ...FAILURE_HELP,
}
