class GatewayError(Exception):
    """A call that was answered with a failure."""

    def __init__(self, status, headers, error):
        super().__init__(f"{error['code']}: {error['message']} {error['hint']}")
        #: What went wrong, for programs.
        self.code: str = error["code"]
        self.message: str = error["message"]
        #: The next action, with machine tokens such as param=id.
        self.hint: str = error["hint"]
        #: Address of the code's documentation.
        self.docs: str = error["docs"]
        #: HTTP status; 0 if no answer arrived, and 401 for a key that cannot be sent.
        self.status: int = status
        #: Seconds until it may be tried again, where that is known.
        self.retry_after: Optional[float] = _seconds_of(headers.get("Retry-After"))
        #: Names the request in the gateway's logs.
        self.request_id: Optional[str] = headers.get("X-Request-Id")


class _Transport:
    def __init__(self, key: str, base_url: str, retries_max: int, retry_wait_max: float, timeout: float):
        self._credential = _credential_of(key)
        self._base_url = base_url.rstrip("/")
        self._retries_max = retries_max
        self._retry_wait_max = retry_wait_max
        self._timeout = timeout

    def call(
        self,
        api: str,
        endpoint: str,
        parameters: Optional[Dict[str, Any]] = None,
        headers: Optional[Dict[str, str]] = None,
        method: str = "GET",
        once: bool = False,
    ) -> Any:
        """Calls any endpoint, also one that this file does not know, and returns the data of its answer.

        method: POST sends the parameters as JSON.
        once: the call changes something; it is not made again when no answer says what came of it.

        Raises GatewayError when the call failed, after the retries that its Retry-After allows.
        """
        retries = 0
        while True:
            try:
                return self._send(api, endpoint, parameters or {}, headers or {}, method)
            except GatewayError as error:
                is_passing = error.code in _RETRYABLE or (not once and error.code in _FOREIGN and error.status in _PASSING)
                if not is_passing or retries >= self._retries_max:
                    raise
                wait = error.retry_after
                if wait is None:
                    # Half a second, then twice as long each time, spread so that callers do not come together.
                    wait = 0.5 * 2**retries * random.uniform(0.5, 1.5)
                if wait > self._retry_wait_max:
                    raise
            time.sleep(wait)
            retries += 1

    def _send(
        self, api: str, endpoint: str, parameters: Dict[str, Any], headers: Dict[str, str], method: str
    ) -> Any:
        given = {name: value for name, value in parameters.items() if value is not None}
        body = json.dumps(given).encode() if method == "POST" else None
        pairs = [
            (name, _text(item))
            for name, value in given.items()
            for item in (value if isinstance(value, (list, tuple)) else [value])
        ]
        url = f"{self._base_url}/v1/call/{urllib.parse.quote(api, safe='')}/{urllib.parse.quote(endpoint.lstrip('/'), safe='')}"
        if pairs and body is None:
            url += "?" + urllib.parse.urlencode(pairs)
        try:
            sent = {**headers, **self._credential, "Accept": "application/json"}
            if body is not None:
                sent["Content-Type"] = "application/json"
            request = urllib.request.Request(url, data=body, headers=sent, method=method)
            try:
                with _OPENER.open(request, timeout=self._timeout) as response:
                    status, received, answer = response.status, response.headers, _json_of(response)
            except urllib.error.HTTPError as failure:
                with failure:
                    status, received, answer = failure.code, failure.headers, _json_of(failure)
        except (OSError, http.client.HTTPException, ValueError) as cause:
            words = {"code": "NO_ANSWER", "message": f"No answer arrived: {cause}.", "hint": "", "docs": ""}
            raise GatewayError(0, {}, words) from cause
        if status < 300 and isinstance(answer, dict) and answer.get("status") == "success" and "data" in answer:
            return answer["data"]
        raise GatewayError(status, received, _error_of(answer, status))


# An access token has 43 characters, a session token three parts.
_TOKEN = re.compile(r"(?!agw_)(?:[A-Za-z0-9_-]{43}|[A-Za-z0-9_-]+[.][A-Za-z0-9_-]+[.][A-Za-z0-9_-]+)")


def _credential_of(given: Any) -> Dict[str, str]:
    """The header for a key. Programs pass a variable that is not set; files end with a line break."""
    key = given.strip() if isinstance(given, str) else ""
    if key == "":
        raise _key_error("AUTH_REQUIRED", "There is no API key.", "Set AGW_API_KEY, or pass key.")
    # The key itself is in no message.
    if not re.fullmatch("[!-~]+", key):
        message = "The API key has characters that no key has."
        raise _key_error("INVALID_API_KEY", message, "Pass the whole key as it was shown.")
    return {"Authorization": f"Bearer {key}"} if _TOKEN.fullmatch(key) else {"X-Api-Key": key}


def _key_error(code: str, message: str, hint: str) -> GatewayError:
    return GatewayError(401, {}, {"code": code, "message": message, "hint": hint, "docs": ""})


# Codes of this client, for answers of somebody else and for none.
_FOREIGN = frozenset(["INVALID_ANSWER", "NO_ANSWER"])

# Statuses of proxies and balancers that pass by themselves; 0 is no answer.
_PASSING = frozenset([0, 408, 425, 429, 500, 502, 503, 504])


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A redirect is an answer: the key never goes to another address."""

    def redirect_request(self, req, fp, code, msg, headers, newurl):
        return None


_OPENER = urllib.request.build_opener(_NoRedirects)


def _seconds_of(after: Optional[str]) -> Optional[float]:
    """Seconds of a Retry-After, which is a number or a date; None for anything else."""
    text = (after or "").strip()
    try:
        if re.fullmatch(r"[0-9]+", text):
            return int(text)
        if re.fullmatch(r"[0-9]*[.][0-9]+", text):
            return float(text)
        at = email.utils.parsedate_tz(text)
        return None if at is None else max(0, email.utils.mktime_tz(at) - time.time())
    except (ValueError, OverflowError):
        return None


def _json_of(response: Any) -> Any:
    try:
        return json.load(response)
    except (ValueError, RecursionError):
        return None


def _error_of(answer: Any, status: int) -> Dict[str, str]:
    """The failure in an answer, whose members stand under error in answers to calls."""
    for given in (answer.get("error"), answer) if isinstance(answer, dict) else ():
        if isinstance(given, dict) and isinstance(given.get("code"), str):
            return {name: str(given.get(name, "")) for name in ("code", "message", "hint", "docs")}
    message = f"HTTP {status} without an answer of the gateway."
    return {"code": "INVALID_ANSWER", "message": message, "hint": "", "docs": ""}


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


