import Type from 'typebox'
import {
  defaulted,
  endpoint,
  filledText,
  flag,
  integer,
  invalid,
  isObject,
  items,
  members,
  nullable,
  number,
  path,
  singleSpaced,
  TEXT_LENGTH_MAX,
  text,
  texts,
  type Upstream,
} from '../catalog/upstream.ts'
import { github, githubProbe } from './families/github.ts'

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
      data: Type.Object({
        total_count: nullable(
          Type.Integer({ description: 'Number of all matches, of which the first 1,000 can be fetched' }),
        ),
        incomplete_results: nullable(Type.Boolean({ description: 'Whether the search ran out of time' })),
        repositories: Type.Array(
          Type.Object({
            id: nullable(Type.Integer({ description: 'Number of the repository; stays when it is renamed' })),
            name: nullable(Type.String({ description: 'Name without the owner' })),
            full_name: nullable(Type.String({ description: 'owner/name' })),
            owner: nullable(Type.String({ description: 'Account name of the owner' })),
            description: nullable(Type.String({ description: 'One line by the owner' })),
            html_url: nullable(Type.String({ description: 'Page of the repository' })),
            homepage: nullable(Type.String({ description: 'Website that the owner names' })),
            language: nullable(Type.String({ description: 'Language that most of its code is written in' })),
            stars: nullable(Type.Integer({ description: 'Number of stars' })),
            forks: nullable(Type.Integer({ description: 'Number of forks' })),
            open_issues: nullable(Type.Integer({ description: 'Pull requests included' })),
            topics: Type.Array(Type.String(), { description: 'Topics set by the owner' }),
            license: nullable(Type.String({ description: 'SPDX id, or NOASSERTION' })),
            fork: nullable(Type.Boolean({ description: 'Whether it is a fork of another repository' })),
            archived: nullable(Type.Boolean({ description: 'Whether it is read-only' })),
            default_branch: nullable(Type.String({ description: 'Name of the default branch' })),
            created_at: nullable(Type.String({ description: 'UTC' })),
            updated_at: nullable(Type.String({ description: 'UTC' })),
            pushed_at: nullable(Type.String({ description: 'UTC' })),
            score: nullable(Type.Number({ description: 'How well it fits the search' })),
          }),
          { description: 'Repositories found, best match first' },
        ),
      }),
      cache: { seconds: 600, staleWhileRevalidateSeconds: 600, staleIfErrorSeconds: 86_400 },
      complete: (parameters) => ({ ...parameters, q: singleSpaced('q', parameters.q) }),
      // The upstream's own default is 30.
      request: ({ q, per_page }) => ({ path: path`/search/repositories`, query: { q, per_page } }),
      map: ({ body }) => {
        const answer = members(body)
        if (!Array.isArray(answer.items)) return invalid()
        return {
          total_count: integer(answer.total_count),
          incomplete_results: flag(answer.incomplete_results),
          repositories: items(answer.items).filter(isObject).map(readRepository),
        }
      },
      example: recordedRepos(),
    }),
  },
}

export default codeHostSearch

function readRepository(repository: Record<string, unknown>) {
  return {
    id: integer(repository.id),
    name: text(repository.name),
    full_name: text(repository.full_name),
    owner: text(members(repository.owner).login),
    description: text(repository.description),
    html_url: text(repository.html_url),
    homepage: filledText(repository.homepage),
    language: text(repository.language),
    stars: integer(repository.stargazers_count),
    forks: integer(repository.forks_count),
    open_issues: integer(repository.open_issues_count),
    topics: texts(repository.topics),
    license: text(members(repository.license).spdx_id),
    fork: flag(repository.fork),
    archived: flag(repository.archived),
    default_branch: text(repository.default_branch),
    created_at: text(repository.created_at),
    updated_at: text(repository.updated_at),
    pushed_at: text(repository.pushed_at),
    score: number(repository.score),
  }
}

function recordedRepos() {
  return {
    parameters: { q: 'org:hub4j-test-org', per_page: 2 },
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
