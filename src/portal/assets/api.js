/** A refusal of the gateway, in its own words. */
export class ApiError extends Error {
  constructor(status, { code = 'UNKNOWN', message = 'The answer cannot be read.', hint = '', docs = '' } = {}) {
    super(message)
    this.status = status
    this.code = code
    this.hint = hint
    this.docs = docs
  }
}

/** Sends a request with the session of the cookie. The header makes the cookie count. */
export async function api(path, options) {
  return (await ask(path, options)).data
}

/** Reads a page of a listing, and the address of the next page if there is a next page. */
export async function apiPage(path) {
  const { data, headers } = await ask(path)
  return { data, next: /^<([^>]+)>; rel="next"$/.exec(headers.get('link') ?? '')?.[1] }
}

/** Reads a listing: the items of all its pages, under the names that they have in each page. */
export async function apiAll(path) {
  const all = {}
  for (let next = path; next !== undefined; ) {
    const page = await apiPage(next)
    for (const [name, items] of Object.entries(page.data)) all[name] = [...(all[name] ?? []), ...items]
    next = page.next
  }
  return all
}

/** Reads a report: its first page, with the lines of all pages under `name`. */
export async function apiReport(path, name) {
  const { data, next } = await apiPage(path)
  const rest = next === undefined ? {} : await apiReport(next, name)
  return { ...data, [name]: [...data[name], ...(rest[name] ?? [])] }
}

/**
 * @param {string} path
 * @param {{ method?: string; body?: unknown }} [options]
 */
async function ask(path, { method = 'GET', body } = {}) {
  const { status, headers, data } = await request(path, {
    method,
    headers: { 'x-portal-request': '1', ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  if (status >= 400) throw new ApiError(status, data?.error?.code ? data.error : (data ?? {}))
  return { data, headers }
}

/** Sends a request and reads the answer, whatever its status. */
export async function request(path, options) {
  let response
  try {
    response = await fetch(path, { cache: 'no-store', ...options })
  } catch {
    throw new ApiError(0, {
      code: 'OFFLINE',
      message: 'The gateway cannot be reached.',
      hint: 'Check the connection and try again.',
    })
  }
  const text = await response.text()
  let data
  try {
    data = text === '' ? undefined : JSON.parse(text)
  } catch {
    data = undefined
  }
  return { status: response.status, headers: response.headers, data, text }
}
