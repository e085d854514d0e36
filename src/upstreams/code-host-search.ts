import { field, record, required } from '../catalog/fields.ts'
import { items, members } from '../catalog/json.ts'
import { freshFor, lifetime } from '../catalog/lifetimes.ts'
import { singleSpaced } from '../catalog/parameter-values.ts'
import { namesOf, param } from '../catalog/parameters.ts'
import { endpoint, upstream, words } from '../catalog/upstream-file.ts'
import { path } from '../catalog/upstream-request.ts'
import { github, githubProbe } from './families/github.ts'
import recordings from './recordings/code-host-search.json' with { type: 'json' }

const search = record({
  total_count: field.integer('total_count', 'Number of all matches, of which the first 1,000 can be fetched'),
  incomplete_results: field.flag('incomplete_results', 'Whether the search ran out of time'),
  repositories: required.records('items', 'Repositories found, best match first', {
    id: field.integer('id', 'Number of the repository; stays when it is renamed'),
    name: field.text('name', 'Name without the owner'),
    full_name: field.text('full_name', 'owner/name'),
    owner: field.text('owner.login', 'Account name of the owner'),
    description: field.text('description', 'One line by the owner'),
    html_url: field.text('html_url', 'Page of the repository'),
    homepage: field.filledText('homepage', 'Website that the owner names'),
    language: field.text('language', 'Language that most of its code is written in'),
    stars: field.integer('stargazers_count', 'Number of stars'),
    forks: field.integer('forks_count', 'Number of forks'),
    open_issues: field.integer('open_issues_count', 'Pull requests included'),
    topics: field.texts('topics', 'Topics set by the owner'),
    license: field.text('license.spdx_id', 'SPDX id, or NOASSERTION'),
    fork: field.flag('fork', 'Whether it is a fork of another repository'),
    archived: field.flag('archived', 'Whether it is read-only'),
    default_branch: field.text('default_branch', 'Name of the default branch'),
    created_at: field.text('created_at', 'UTC'),
    updated_at: field.text('updated_at', 'UTC'),
    pushed_at: field.text('pushed_at', 'UTC'),
    score: field.number('score', 'How well it fits the search'),
  }),
})

export default upstream({
  displayName: 'Code host search',
  category: 'developer',
  description: 'Search of public GitHub repositories by words and qualifiers such as language:, org: or stars:.',
  tags: ['github', 'code', 'developer', 'repositories', 'search'],
  keywords: words('project open source library stars repo git software'),
  terms: {
    summary: 'GitHub Terms of Service, section H: no excessive or abusive use.',
    url: 'https://docs.github.com/en/site-policy/github-terms/github-terms-of-service#h-api-terms',
  },
  ...github('search', { concurrency: 4, rates: [{ max: 30, seconds: 60 }] }),
  caps: { concurrency: 4, rates: [{ max: 10, seconds: 60 }] },
  // Free at GitHub, but every request counts against our cap of 10 a minute.
  probe: { request: githubProbe, everySeconds: 600 },
  mayLack: words('description language license homepage'),
  endpoints: {
    '/repos': endpoint({
      description: 'Public repositories that match a query; no match is an empty list.',
      parameters: {
        // GitHub's limit of 256 characters does not count qualifiers and operators, so the whole
        // query may be longer.
        q: param.text('Words and qualifiers, separated by blanks: tetris language:assembly', {
          normalize: singleSpaced,
          aliases: namesOf.query,
        }),
        per_page: param.integer('Maximum number of repositories', {
          minimum: 1,
          maximum: 30,
          default: 10,
          aliases: namesOf.count,
        }),
      },
      data: search,
      cache: { ...freshFor(600), staleIfErrorSeconds: lifetime.day },
      // `per_page` is always sent, because the upstream's own default is 30.
      request: ({ q, per_page }) => ({ path: path`/search/repositories`, query: { q, per_page } }),
      // The upstream refuses a wrong syntax of q, and qualifiers that name nothing.
      rejects: [422],
      example: { ...recordings['/repos'], responseFor: recordedPage },
    }),
  },
})

/** The recorded search, cut to fewer repositories. */
function recordedPage({ q, per_page }: { q: string; per_page: number }, response: unknown) {
  const { parameters } = recordings['/repos']
  if (q !== parameters.q || per_page > parameters.per_page) return undefined
  return { ...members(response), items: items(members(response).items).slice(0, per_page) }
}
