/** Who gets into the operator console: a group of `SETTING_GROUPS`. */
export const OPERATOR_SETTINGS = {
  title: 'Operators',
  settings: [
    {
      names: ['OIDC_ISSUER', 'OIDC_CLIENT_ID', 'OIDC_CLIENT_SECRET'],
      byDefault: 'unset',
      about: 'Sign-in to the console by an OpenID Connect provider. Only `ops` needs them.',
    },
    {
      names: ['OIDC_OPERATOR_GROUPS', 'OIDC_VIEWER_GROUPS', 'OIDC_GROUPS_CLAIM'],
      byDefault: 'unset, unset, `groups`',
      about:
        'Groups whose members may do everything, and groups whose members may only read, comma-separated, for the trusted headers too. The third setting is the claim that lists the groups of a person. Nobody else gets in.',
    },
    {
      names: ['TRUSTED_USER_HEADER', 'TRUSTED_GROUPS_HEADER', 'TRUSTED_HEADER_SECRET'],
      byDefault: 'unset',
      about: 'Headers with which an access proxy in front of the console names a person. They need `TRUST_PROXY`.',
    },
    {
      names: ['OPERATOR_TOKEN_LOGIN'],
      byDefault: 'on',
      about: '`off` takes the form of the token from the log-in page. As bearer the token counts in any case.',
    },
  ],
}

/** Which calls are traced: a group of `SETTING_GROUPS`. */
export const TRACE_SETTINGS = {
  title: 'Traces',
  settings: [
    {
      names: ['OTEL_TRACES_SAMPLER', 'OTEL_TRACES_SAMPLER_ARG', 'OTEL_SDK_DISABLED'],
      byDefault: 'always_on, 1, false',
      about:
        'Which calls are traced: `always_on`, `always_off`, or `traceidratio` with a share from 0 to 1 in the second setting, each also with `parentbased_` before it. `true` in the third sends no traces.',
    },
  ],
}
