import Type from 'typebox'
import { field, record, required } from '../catalog/fields.ts'
import { items, members } from '../catalog/json.ts'
import { freshFor, lifetime } from '../catalog/lifetimes.ts'
import { invalid } from '../catalog/response-class.ts'
import { defaulted, otherNames, TEXT_LENGTH_MAX } from '../catalog/shared-parameters.ts'
import { endpoint, path, singleSpaced, type Upstream } from '../catalog/upstream.ts'
import { github, githubProbe } from './families/github.ts'

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

const codeHostSearch: Upstream = {
  displayName: 'Code host search',
  category: 'developer',
  description: 'Search of public GitHub repositories by words and qualifiers such as language:, org: or stars:.',
  tags: ['github', 'code', 'developer', 'repositories', 'search'],
  keywords: ['project', 'open', 'source', 'library', 'stars', 'repo', 'git', 'software'],
  tierRequired: 'developer',
  terms: {
    summary: 'GitHub Terms of Service, section H: no excessive or abusive use.',
    url: 'https://docs.github.com/en/site-policy/github-terms/github-terms-of-service#h-api-terms',
  },
  ...github('search', { concurrency: 4, rates: [{ max: 30, seconds: 60 }] }),
  caps: { concurrency: 4, rates: [{ max: 10, seconds: 60 }] },
  // Free at GitHub, but every request pays from our cap of 10 a minute.
  probe: { request: githubProbe, everySeconds: 600 },
  mayLack: ['description', 'language', 'license', 'homepage'],
  endpoints: {
    '/repos': endpoint({
      description: 'Public repositories that match a query; no match is an empty list.',
      parameters: Type.Object({
        q: Type.String({
          minLength: 1,
          // GitHub counts 256 without qualifiers and operators, so the whole may be longer.
          maxLength: TEXT_LENGTH_MAX,
          description: 'Words and qualifiers, separated by blanks: tetris language:assembly',
        }),
        per_page: defaulted(
          Type.Integer({ minimum: 1, maximum: 30, default: 10, description: 'Maximum number of repositories' }),
        ),
      }),
      aliases: { q: otherNames('query', 'q'), per_page: otherNames('count', 'per_page') },
      data: search.schema,
      cache: { ...freshFor(600), staleIfErrorSeconds: lifetime.day },
      complete: (parameters) => ({ ...parameters, q: singleSpaced('q', parameters.q) }),
      // The upstream's own default is 30.
      request: ({ q, per_page }) => ({ path: path`/search/repositories`, query: { q, per_page } }),
      // The syntax of q, and qualifiers that name nothing.
      rejects: [422],
      map: ({ body }) => search.read(body) ?? invalid(),
      example: recordedRepos(),
    }),
  },
}

export default codeHostSearch

function recordedRepos() {
  return {
    parameters: { q: 'org:hub4j-test-org', per_page: 2 },
    responseFor: ({ q, per_page }: { q: string; per_page: number }, response: unknown) =>
      q === 'org:hub4j-test-org' && per_page <= 2
        ? { ...members(response), items: items(members(response).items).slice(0, per_page) }
        : undefined,
    // biome-ignore format: as recorded
    response: {
      total_count: 45, incomplete_results: false,
      items: [
        {
          id: 375534019, node_id: 'MDEwOlJlcG9zaXRvcnkzNzU1MzQwMTk=', name: 'testCreateRelease', full_name: 'hub4j-test-org/testCreateRelease', private: false,
          owner: { login: 'hub4j-test-org', id: 7544739, html_url: 'https://github.com/hub4j-test-org', type: 'Organization' },
          html_url: 'https://github.com/hub4j-test-org/testCreateRelease', description: null, fork: false,
          url: 'https://api.github.com/repos/hub4j-test-org/testCreateRelease', created_at: '2021-06-10T01:25:59Z', updated_at: '2021-06-10T01:31:14Z',
          pushed_at: '2021-06-14T20:07:53Z', homepage: null, size: 11948, stargazers_count: 0, watchers_count: 0, language: 'Java', forks_count: 0, archived: false,
          disabled: false, open_issues_count: 0,
          license: { key: 'mit', name: 'MIT License', spdx_id: 'MIT', url: 'https://api.github.com/licenses/mit', node_id: 'MDc6TGljZW5zZTEz' }, topics: [],
          visibility: 'public', default_branch: 'main', score: 1,
        },
        {
          id: 256256652, node_id: 'MDEwOlJlcG9zaXRvcnkyNTYyNTY2NTI=', name: 'test-issue-events', full_name: 'hub4j-test-org/test-issue-events', private: false,
          owner: { login: 'hub4j-test-org', id: 7544739, html_url: 'https://github.com/hub4j-test-org', type: 'Organization' },
          html_url: 'https://github.com/hub4j-test-org/test-issue-events', description: null, fork: false,
          url: 'https://api.github.com/repos/hub4j-test-org/test-issue-events', created_at: '2020-04-16T15:33:40Z', updated_at: '2020-04-16T15:34:43Z',
          pushed_at: '2020-04-16T15:33:41Z', homepage: null, size: 0, stargazers_count: 0, watchers_count: 0, language: null, forks_count: 0, archived: false,
          disabled: false, open_issues_count: 1, license: null, topics: [], visibility: 'public', default_branch: 'master', score: 1,
        },
      ],
    },
    // biome-ignore format: as recorded
    data: {
      total_count: 45, incomplete_results: false,
      repositories: [
        {
          id: 375534019, name: 'testCreateRelease', full_name: 'hub4j-test-org/testCreateRelease', owner: 'hub4j-test-org', description: null,
          html_url: 'https://github.com/hub4j-test-org/testCreateRelease', homepage: null, language: 'Java', stars: 0, forks: 0, open_issues: 0, topics: [],
          license: 'MIT', fork: false, archived: false, default_branch: 'main', created_at: '2021-06-10T01:25:59Z', updated_at: '2021-06-10T01:31:14Z',
          pushed_at: '2021-06-14T20:07:53Z', score: 1,
        },
        {
          id: 256256652, name: 'test-issue-events', full_name: 'hub4j-test-org/test-issue-events', owner: 'hub4j-test-org', description: null,
          html_url: 'https://github.com/hub4j-test-org/test-issue-events', homepage: null, language: null, stars: 0, forks: 0, open_issues: 1, topics: [],
          license: null, fork: false, archived: false, default_branch: 'master', created_at: '2020-04-16T15:33:40Z', updated_at: '2020-04-16T15:34:43Z',
          pushed_at: '2020-04-16T15:33:41Z', score: 1,
        },
      ],
    },
  }
}
