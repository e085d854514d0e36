@dataclasses.dataclass(frozen=True)
class Meta:
    """Metadata of an answer."""

    #: HTTP status.
    status: int
    #: Names the request in the gateway's logs.
    request_id: Optional[str]
    #: Names the call.
    call_id: Optional[str]
    #: Whether the data are a recorded example.
    is_test: bool
    #: Whether a stored answer was used (Cache-Status, RFC 9211).
    cache: Optional[str]
    #: What is left, as the RateLimit header says it.
    rate_limit: Optional[str]
    #: Where the time went (Server-Timing).
    timing: Optional[str]
    #: Every header, by its name in lower case.
    headers: Dict[str, str]


@dataclasses.dataclass(frozen=True)
class Answer:
    """The data of an answer, with its metadata."""

    data: Any
    meta: Meta


class GatewayError(Exception):
    """A call that was answered with a failure."""

    def __init__(self, status: int, headers: Dict[str, str], error: Dict[str, str]) -> None:
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
        #: Seconds until it may be tried again, if that is known.
        self.retry_after: Optional[float] = _seconds_of(headers.get("retry-after"))
        #: Names the request in the gateway's logs.
        self.request_id: Optional[str] = headers.get("x-request-id")
        #: Names the call in the log of your calls.
        self.call_id: Optional[str] = headers.get("x-call-id")
        # Whether no connection was opened, so that the gateway cannot have got the call.
        self._is_unsent = False


class _BatchCall(TypedDict):
    api: str
    endpoint: str


class BatchCall(_BatchCall, total=False):
    """A call of a batch. ref is your own name for the call, and the result has it too."""

    parameters: Dict[str, Any]
    ref: str


class BatchAnswer(TypedDict):
    """The results in the order of the calls, each with data or an error, and what the batch cost."""

    results: List[Dict[str, Any]]
    ok: int
    failed: int
    charged: int
    deduplicated: int
    mode: str


@dataclasses.dataclass(frozen=True)
class _Received:
    meta: Meta
    answer: Any


def _meta_of(status: int, received: Any) -> Meta:
    headers = {str(name).lower(): str(value) for name, value in received.items()}
    return Meta(
        status=status,
        request_id=headers.get("x-request-id"),
        call_id=headers.get("x-call-id"),
        is_test=headers.get("x-gateway-mode") == "test",
        cache=headers.get("cache-status"),
        rate_limit=headers.get("ratelimit"),
        timing=headers.get("server-timing"),
        headers=headers,
    )


def _data_of(received: _Received) -> Any:
    answer = received.answer
    if received.meta.status < 300 and isinstance(answer, dict) and answer.get("status") == "success" and "data" in answer:
        return answer["data"]
    raise _failure(received)


def _failure(received: _Received) -> GatewayError:
    meta = received.meta
    return GatewayError(meta.status, meta.headers, _error_of(received.answer, meta.status))


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
